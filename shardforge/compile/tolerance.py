"""How many items may fail before a build stops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from shardforge.compile.report import told_counts
from shardforge.compile.staging import ShardResult
from shardforge.errors import TooManyFailuresError


def allowed_failures(max_errors: str | None, items: int) -> int:
    """How many failed items are tolerated."""
    if max_errors is None:
        return max(10, items // 100)
    if max_errors.endswith("%"):
        return int(float(max_errors[:-1]) * items / 100)
    return int(max_errors)


def check_failures(results: Iterable[ShardResult], in_flight: int, allowed: int, items: int) -> None:
    finished = list(results)
    failed = sum(result.failed for result in finished) + in_flight
    if failed > allowed:
        reasons = sum((Counter(result.reasons) for result in finished), Counter())
        told = f" ({told_counts(dict(reasons.most_common()))} in the shards that are done)" if reasons else ""
        raise TooManyFailuresError(
            f"stopped: {failed:,} of {items:,} items have failed{told}, more than the {allowed:,} allowed",
            todo="Run the same command with a higher --max-errors (such as 50 or 5%) to go on from here; "
            "or mend the files and start anew with --overwrite.",
        )
