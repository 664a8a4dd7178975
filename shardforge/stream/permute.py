"""Keyed permutations of 0 … n-1 that are computed place by place, without holding the permutation.

Everything is exact 64-bit integer arithmetic, so a permutation depends on its key alone: not on numpy's random
streams (which may change between versions), the platform or the process.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]

SORTED = 256
"""Up to this size a permutation is made by sorting random words: exactly uniform, where a Feistel network over so
small a domain is measurably not (on Z_3 × Z_3 it only reaches even permutations)."""
ROUNDS = 8

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def key_of(*parts: object) -> np.uint64:
    """A 64-bit key from anything with a stable ``str``; parts are kept apart."""
    text = "\x1f".join(str(part) for part in parts)
    return np.uint64(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little"))


def words(key: Words | np.uint64, counter: Words) -> Words:
    """Random words: SplitMix64 (Steele, Lea, Flood 2014) with state ``key`` at ``counter``; arrays broadcast."""
    with np.errstate(over="ignore"):
        z = key + (counter + np.uint64(1)) * _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * _MIX_1
        z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


def uniforms(key: np.uint64, counter: Words) -> npt.NDArray[np.float64]:
    """Random numbers in [0, 1), multiples of 2^-53."""
    return (words(key, counter) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def permute(values: Words, size: int, keys: Words) -> Words:
    """Where the permutation of 0 … size-1 with key ``keys[i]`` sends ``values[i]``.

    Args:
        values: uint64 [n], each below ``size``.
        size: of the domain, at least 1.
        keys: uint64 [n], or [1] for one key.
    """
    return _by_sorting(values, size, keys) if size <= SORTED else _by_feistel(values, size, keys)


def _by_sorting(values: Words, size: int, keys: Words) -> Words:
    distinct, which = np.unique(keys, return_inverse=True)
    ranks = np.argsort(words(distinct[:, None], np.arange(size, dtype=np.uint64)[None, :]), axis=1, kind="stable")
    return ranks[np.broadcast_to(which, values.shape), values.astype(np.int64)].astype(np.uint64)


def _by_feistel(values: Words, size: int, keys: Words) -> Words:
    """A generalised Feistel network (Black, Rogaway 2002) on Z_a × Z_b with a·b ≥ size, and cycle walking.

    a·b exceeds ``size`` by less than a ≈ √size, so hardly any value needs a second walk.
    """
    a = math.isqrt(size - 1) + 1
    b = -(-size // a)
    schedule = words(keys[None, :], np.arange(ROUNDS, dtype=np.uint64)[:, None])
    out = _network(values, np.uint64(a), np.uint64(b), schedule)
    outside = np.flatnonzero(out >= size)
    while len(outside):
        rounds = schedule if schedule.shape[1] == 1 else schedule[:, outside]
        out[outside] = _network(out[outside], np.uint64(a), np.uint64(b), rounds)
        outside = outside[out[outside] >= size]
    return out


def _network(values: Words, a: np.uint64, b: np.uint64, schedule: Words) -> Words:
    left, right = values // b, values % b
    for number, keys in enumerate(schedule):
        if number % 2 == 0:
            left = (left + words(keys, right) % a) % a
        else:
            right = (right + words(keys, left) % b) % b
    return left * b + right
