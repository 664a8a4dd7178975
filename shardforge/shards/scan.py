"""One sequential pass over a shard: what is really in it, and all that has to agree with other files."""

from __future__ import annotations

import hashlib
import os
import zlib
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO

from shardforge.shards.one_pass import OnePass
from shardforge.shards.tar import BLOCK, Extent, TarDamage, TarMember, member_at


@dataclass
class ScannedSample:
    """One sample as the tar holds it; grows while its members are read.

    Attributes:
        start, end: its bytes, headers and padding included.
        crc32: checksum of these bytes.
        extents: field → place of its payload.
        sha256: of the main payload, in hex; None without one.
        class_text: the first :data:`~shardforge.shards.one_pass.TEXT` bytes of the class payload; None without one.
    """

    key: str
    start: int
    end: int
    crc32: int = 0
    extents: dict[str, Extent] = field(default_factory=dict)
    sha256: str | None = None
    class_text: bytes | None = None


@dataclass(frozen=True)
class Scan:
    """A whole shard as it is on disk.

    Attributes:
        size: bytes of the file.
        sha256: of the whole file, in hex.
        samples: in file order; a sample cut in two by damage may appear in parts.
        damage: places where the bytes are not what a shard may have there, in file order.
    """

    size: int
    sha256: str
    samples: tuple[ScannedSample, ...]
    damage: tuple[TarDamage, ...]


def scan(file: IO[bytes], *, image_field: str, class_field: str | None, restarts: Sequence[int]) -> Scan:
    """Reads a shard from front to back, once, in bounded memory.

    Args:
        image_field: the member whose payload is hashed.
        class_field: the member whose payload is the label as text, if there is one.
        restarts: sorted places, in bytes, where samples are said to start; after damage the scan goes on at the
            next one. Without any, the first damage ends the look at the structure; the rest is only hashed.

    Raises:
        OSError: the disk cannot be read.
    """
    return _Scanner(file, image_field, class_field, restarts).run()


class _Scanner:
    def __init__(self, file: IO[bytes], image_field: str, class_field: str | None, restarts: Sequence[int]) -> None:
        self._pass = OnePass(file)
        self._size = os.fstat(file.fileno()).st_size
        self._image_field, self._class_field, self._restarts = image_field, class_field, restarts
        self._samples: list[ScannedSample] = []
        self._damage: list[TarDamage] = []
        self._keys: set[str] = set()

    def run(self) -> Scan:
        while self._step():
            pass
        self._pass.pass_over(self._size - self._pass.position)
        return Scan(self._pass.position, self._pass.digest.hexdigest(), tuple(self._samples), tuple(self._damage))

    def _step(self) -> bool:
        """Reads one member, or one place of damage; False at the end of what can be understood."""
        at = self._pass.position
        block = self._pass.take(BLOCK)
        restart = self._next_restart()
        if block == bytes(BLOCK) and restart is None:
            self._end(at)
            return False
        try:
            if len(block) < BLOCK:
                raise TarDamage(at, "the file ends without an end of archive (truncated)")
            member = member_at(block, at)
            if member.end > self._size:
                raise TarDamage(at, f"{member.name!r} runs past the end of the file (truncated)")
        except TarDamage as damage:
            self._damage.append(damage)
            self._pass.pass_over((self._size if restart is None else restart) - self._pass.position)
            return restart is not None
        self._member(member, block)
        return True

    def _next_restart(self) -> int | None:
        number = bisect_left(self._restarts, self._pass.position)
        restart = self._restarts[number] if number < len(self._restarts) else self._size
        return restart if restart < self._size else None

    def _member(self, member: TarMember, block: bytes) -> None:
        at, key, name = member.offset - BLOCK, member.key, member.field
        sample = self._samples[-1] if self._samples and self._samples[-1].end == at else None
        if sample is None or sample.key != key:
            if key in self._keys:
                self._damage.append(TarDamage(at, f"members of {key!r} do not stand together"))
            self._keys.add(key)
            self._pass.crc32 = zlib.crc32(block)
            sample = ScannedSample(key, at, at)
            self._samples.append(sample)
        elif name <= max(sample.extents):
            self._damage.append(TarDamage(at, f"{member.name!r} stands out of order, or twice"))
        digest = hashlib.sha256() if name == self._image_field else None
        head = self._pass.pass_over(member.size, digest)
        if any(self._pass.take(-member.size % BLOCK)):
            self._damage.append(
                TarDamage(member.offset + member.size, f"the padding after {member.name!r} is not empty")
            )
        sample.extents[name] = Extent(member.offset, member.size)
        sample.end, sample.crc32 = member.end, self._pass.crc32
        if digest is not None:
            sample.sha256 = digest.hexdigest()
        if name == self._class_field:
            sample.class_text = head

    def _end(self, at: int) -> None:
        if self._pass.take(BLOCK) != bytes(BLOCK):
            self._damage.append(TarDamage(at, "the end of the archive is not two empty blocks"))
        elif self._pass.position < self._size:
            extra = self._size - self._pass.position
            self._damage.append(TarDamage(self._pass.position, f"{extra:,} bytes after the end of the archive"))
