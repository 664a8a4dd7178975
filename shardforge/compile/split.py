"""Which split an item belongs to. Pure functions of names, seed and labels."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

_RANGE = 1 << 64


def keyed_hash(seed: int, purpose: str, name: str) -> int:
    """A 64-bit hash of a name; ``purpose`` keeps splitting and shuffling independent of each other."""
    text = f"{seed}\0{purpose}\0{name}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


def group_digest(group: str, conceal: Callable[[str], str] | None = None) -> str:
    """How a group appears in the manifest: 16 hex digits; of what ``conceal`` makes of its name, so that nobody can
    try out names without the key."""
    if conceal is not None:
        group = conceal(group)
    return hashlib.blake2b(group.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def hash_split(group: str, seed: int, shares: Mapping[str, Decimal]) -> str:
    """The split of a group by a threshold on its hash.

    The answer depends on nothing but the arguments, so further data moves no group to another split.

    Args:
        shares: split → share, adding up to 1, in canonical order.
    """
    place, bound, name = keyed_hash(seed, "split", group), Fraction(0), ""
    for name, share in shares.items():
        bound += Fraction(share)
        if place < bound * _RANGE:
            return name
    return name


def stratified_split(
    groups: Sequence[str],
    strata: Sequence[Sequence[int]],
    seed: int,
    shares: Mapping[str, Decimal],
    frozen: Mapping[str, str],
    conceal: Callable[[str], str] | None = None,
) -> dict[str, str]:
    """Splits whole groups so that every label is shared out as asked for.

    Greedy: large groups first, each to the split that lacks most of what the group holds, counted in items; groups
    that an earlier dataset has assigned keep their split.

    Args:
        groups: the group of every item.
        strata: the label ids of every item (several for multi-label, one bucket number for regression).
        frozen: group digest → split, from an earlier dataset.
        conceal: as for :func:`group_digest`.

    Returns:
        group → split.
    """
    names = list(shares)
    width = 1 + max((max(labels, default=0) for labels in strata), default=0)
    holds = _count_by_group(groups, strata)
    total = np.zeros(width + 1)
    for counts in holds.values():
        for label, count in counts.items():
            total[label] += count
    target = np.outer([float(share) for share in shares.values()], total)
    have = np.zeros_like(target)

    chosen: dict[str, str] = {}
    open_groups = []
    for group, counts in holds.items():
        kept = frozen.get(group_digest(group, conceal)) if frozen else None
        if kept is not None and kept in shares:
            chosen[group] = kept
            _add(have[names.index(kept)], counts)
        else:
            open_groups.append(group)
    open_groups.sort(key=lambda group: (-sum(holds[group].values()), keyed_hash(seed, "stratify", group), group))
    for group in open_groups:
        lacking = (target - have)[:, list(holds[group])]
        best = int(np.argmax(lacking @ np.array(list(holds[group].values()), float)))
        chosen[group] = names[best]
        _add(have[best], holds[group])
    _fill_empty(chosen, open_groups, names)
    return chosen


def _count_by_group(groups: Sequence[str], strata: Sequence[Sequence[int]]) -> dict[str, dict[int, int]]:
    """group → (label id + 1 → items); 0 counts items whatever their label, so that sizes are balanced too."""
    holds: dict[str, dict[int, int]] = {}
    for group, labels in zip(groups, strata, strict=True):
        counts = holds.setdefault(group, defaultdict(int))
        counts[0] += 1
        for label in labels:
            counts[label + 1] += 1
    return holds


def _add(row: npt.NDArray[np.float64], counts: Mapping[int, int]) -> None:
    for label, count in counts.items():
        row[label] += count


def _fill_empty(chosen: dict[str, str], open_groups: Sequence[str], names: Sequence[str]) -> None:
    """A split that rounding left empty takes the smallest open group of the split with most groups."""
    for name in names:
        if name in chosen.values():
            continue
        holders = _by_split(chosen)
        donor = max(holders, key=lambda split: len(holders[split]), default=None)
        movable = [group for group in open_groups if donor is not None and chosen[group] == donor]
        if movable and donor is not None and len(holders[donor]) > 1:
            chosen[movable[-1]] = name


def _by_split(chosen: Mapping[str, str]) -> dict[str, list[str]]:
    holders: dict[str, list[str]] = {}
    for group, split in chosen.items():
        holders.setdefault(split, []).append(group)
    return holders


def freeze(
    assignment: Iterable[tuple[str, str]], conceal: Callable[[str], str] | None = None
) -> dict[str, tuple[str, ...]]:
    """(group, split) pairs → split → sorted group digests, as the manifest keeps them."""
    found: dict[str, set[str]] = {}
    for group, split in assignment:
        found.setdefault(split, set()).add(group_digest(group, conceal))
    return {split: tuple(sorted(digests)) for split, digests in found.items()}
