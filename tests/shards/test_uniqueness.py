"""Keys that occur twice."""

from __future__ import annotations

import hashlib

from shardforge.shards.uniqueness import KeyHashes, key_hash


def test_only_repeated_keys_are_suspected() -> None:
    keys = KeyHashes()
    keys.add([f"{n:09d}" for n in range(5000)])
    keys.add([])
    keys.add(["x", "000004999", "y", "y", "y"])
    assert keys.suspects() == {key_hash("000004999"), key_hash("y")}


def test_no_keys_are_no_suspects() -> None:
    assert KeyHashes().suspects() == frozenset()


def test_hash_is_the_big_endian_blake2b_of_the_text() -> None:
    assert key_hash("a/b") == int(hashlib.blake2b(b"a/b", digest_size=8).hexdigest(), 16)
