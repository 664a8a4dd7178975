"""One sequential pass over a tar made elsewhere: its samples, collected by key wherever their members lie."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO

from shardforge.shards.foreign_tar import ForeignMember, ForeignWalk
from shardforge.shards.one_pass import OnePass
from shardforge.shards.tar import Extent, TarDamage, is_field, split_name

MAX_LOOK = 2**28
"""Larger payloads are passed over, not looked at, in bytes."""

_META = re.compile(r"__[^/]*__(?:$|[/.])")
_SAME = {"jpeg": "jpg", "jpe": "jpg", "jfif": "jpg"}


@dataclass
class ForeignSample:
    """One sample as its tar holds it; grows while members are read.

    Attributes:
        source: name of its first member.
        extents: field → place of its payload.
        crc32: checksum of all its payloads, in the order in which they lie.
        cut: ``lost`` a member to damage; ``last`` before damage, perhaps incomplete; or ``no``.
        sha256: of the main payload, and ``class_text``, where they were asked for.
    """

    key: str
    source: str
    extents: dict[str, Extent] = field(default_factory=dict)
    crc32: int = 0
    cut: str = "no"
    sha256: str | None = None
    class_text: bytes | None = None


@dataclass(frozen=True)
class ForeignScan:
    """A whole tar.

    Attributes:
        size: bytes of the file.
        sha256: of the whole file, in hex.
        samples: in the order of their first members.
        damage: empty, or where and how the tar ends to make sense.
        skipped: kind of entry that is no member of a sample → how many.
    """

    size: int
    sha256: str
    samples: tuple[ForeignSample, ...]
    damage: tuple[TarDamage, ...]
    skipped: Mapping[str, int]


Look = Callable[[ForeignSample, str, bytes], None]
"""Is given a sample, a field and its payload."""


def scan_foreign(file: IO[bytes], *, prefix: str, wanted: Callable[[str], bool], look: Look) -> ForeignScan:
    """Reads a tar from front to back, once, with one payload and the places of all others in memory.

    Args:
        prefix: stands in front of every key.
        wanted: the fields whose payloads, of :data:`MAX_LOOK` bytes at most, ``look`` is given.

    Raises:
        OSError: the disk cannot be read.
    """
    source = OnePass(file)
    size = os.fstat(file.fileno()).st_size
    walk, samples, skipped = ForeignWalk(source, size), dict[str, ForeignSample](), Counter[str]()
    last: ForeignSample | None = None
    for member in walk:
        key, name = member_parts(member.name)
        if key is None:
            skipped[name] += 1
            continue
        sample = samples.setdefault(key, ForeignSample(prefix + key, member.name))
        if name in sample.extents:
            skipped["members that a sample has twice"] += 1
            continue
        last = sample
        _read(source, sample, name, member, look if wanted(name) and member.size <= MAX_LOOK else None)
    if walk.damage is not None:
        if last is not None:
            last.cut = "last"
        lost = None if walk.lost is None else samples.get(member_parts(walk.lost)[0] or "")
        if lost is not None:
            lost.cut = "lost"
    source.pass_over(size - source.position)
    damage = () if walk.damage is None else (walk.damage,)
    return ForeignScan(
        source.position, source.digest.hexdigest(), tuple(samples.values()), damage, walk.skipped + skipped
    )


def _read(source: OnePass, sample: ForeignSample, name: str, member: ForeignMember, look: Look | None) -> None:
    sample.extents[name] = Extent(member.offset, member.size)
    source.crc32 = sample.crc32
    if look is None:
        source.pass_over(member.size)
    else:
        look(sample, name, source.take(member.size))
    sample.crc32 = source.crc32


def look_for(image_field: str, class_field: str | None) -> tuple[Callable[[str], bool], Look]:
    """What a verification wants to see: the digest of the main payload and the text of the class."""

    def look(sample: ForeignSample, name: str, payload: bytes) -> None:
        if name == image_field:
            sample.sha256 = hashlib.sha256(payload).hexdigest()
        else:
            sample.class_text = payload[:64]

    return lambda name: name in (image_field, class_field), look


def member_parts(name: str) -> tuple[str | None, str]:
    """(key, field) of a member's name, as webdataset cuts it, in lower case and with one word for JPEG.

    Without a key, the second part says what the member is instead.
    """
    key, suffix = split_name(name)
    if _META.match(name):
        return None, "webdataset's own metadata"
    if not key or key.endswith("/"):
        return None, "hidden files"
    if not suffix:
        return None, "members without a suffix"
    head, dot, form = suffix.lower().rpartition(".")
    normal = f"{head}{dot}{_SAME.get(form, form)}"
    return (key, normal) if is_field(normal) else (None, "members whose suffix is no field name")
