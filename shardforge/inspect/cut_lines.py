"""Logs as a kill leaves them: nothing at all, or a last line of which a part is missing."""

from __future__ import annotations

import csv
import json
import re

_LINE = re.compile(rb"[^\n]*\n?")


def without_cut_jsonl(data: bytes) -> tuple[bytes, int]:
    """The lines that are whole, and how many were cut.

    A line may be cut at the end of the file or, where a resumed run appended to it, before the next line's ``{``,
    which is kept. Any other line that is no JSON stays, for the reader to refuse.
    """
    whole, found = [], 0
    lines = [line for line in _LINE.findall(data) if line]
    for line in lines:
        if not line.strip() or _is_json(line):
            whole.append(line)
        elif _is_json(rest := line[line.rindex(b"{") :] if line.rfind(b"{") > 0 else b""):
            whole.append(rest)
            found += 1
        elif line is lines[-1] and not line.endswith(b"\n"):
            found += 1
        else:
            whole.append(line)
    return b"".join(whole), found


def without_cut_csv(data: bytes) -> tuple[bytes, int]:
    """The same for a last line of fewer columns than the first, or inside quotes.

    One that only lacks its end of line may be whole, and stays.
    """
    body, _, last = data.rpartition(b"\n")
    if not body or not last.strip():
        return data, 0
    columns = _columns(body.partition(b"\n")[0])
    cut = last.count(b'"') % 2 == 1 or _columns(last) < columns
    return (body + b"\n", 1) if cut else (data, 0)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _columns(line: bytes) -> int:
    return len(next(csv.reader([line.decode("utf-8", "replace").strip()]), []))
