"""Whether the keys of a dataset are all different, with eight bytes of memory for each."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


class KeyHashes:
    """Collects hashes of keys and tells which occur more than once.

    Different keys may share a hash: who is suspected has to be looked at again.
    """

    def __init__(self) -> None:
        self._parts: list[npt.NDArray[np.uint64]] = []

    def add(self, keys: Sequence[str]) -> None:
        """Adds the keys of one shard."""
        self._parts.append(np.fromiter(map(key_hash, keys), np.uint64, len(keys)))

    def suspects(self) -> frozenset[int]:
        """The hashes that occur more than once."""
        everything = np.sort(np.concatenate([np.empty(0, np.uint64), *self._parts]))
        return frozenset(everything[1:][everything[1:] == everything[:-1]].tolist())


def key_hash(key: str) -> int:
    """64 bits of a key's BLAKE2b."""
    return int.from_bytes(hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
