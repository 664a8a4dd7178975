"""Keyed hashes of identifiers: stable, unrelated across kinds and keys, and by the definition of HMAC."""

from __future__ import annotations

import hashlib
import pickle
from typing import get_args

import pytest

from shardforge.dicom.privacy import IdentityKey, Kind

KEY = IdentityKey(bytes(range(32)))
KINDS: tuple[Kind, ...] = get_args(Kind)


def _hmac(secret: bytes, message: bytes) -> str:
    """RFC 2104 with SHA-256, written out."""
    block = secret.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block) + message).digest()
    return hashlib.sha256(bytes(byte ^ 0x5C for byte in block) + inner).hexdigest()


@pytest.mark.parametrize("kind", KINDS)
def test_a_hash_is_the_first_half_of_an_hmac_over_kind_and_value(kind: Kind) -> None:
    expected = _hmac(KEY.secret, f"shardforge/1\0{kind}\0Zoë 7".encode())
    assert KEY.hash_identifier(kind, "Zoë 7") == expected[:32]


def test_one_value_has_unrelated_hashes_as_different_kinds() -> None:
    assert len({KEY.hash_identifier(kind, "1.2.3") for kind in KINDS}) == len(KINDS)


def test_the_same_key_gives_the_same_hashes_in_another_process() -> None:
    again = pickle.loads(pickle.dumps(KEY))  # noqa: S301 - our own object
    assert again.hash_identifier("patient", "P1") == KEY.hash_identifier("patient", "P1")


def test_another_key_gives_other_hashes_and_another_key_id() -> None:
    other = IdentityKey(bytes(range(1, 33)))
    assert other.key_id != KEY.key_id
    assert other.hash_identifier("patient", "P1") != KEY.hash_identifier("patient", "P1")


def test_padding_is_not_significant_but_case_is() -> None:
    assert KEY.hash_identifier("patient", "P1 ") == KEY.hash_identifier("patient", "P1")
    assert KEY.hash_identifier("sop", "1.2.3\0") == KEY.hash_identifier("sop", "1.2.3")
    assert KEY.hash_identifier("patient", "p1") != KEY.hash_identifier("patient", "P1")
    assert KEY.hash_identifier("source", "a ") != KEY.hash_identifier("source", "a")


@pytest.mark.parametrize("blank", ["", "  ", "\0"])
def test_an_absent_identifier_has_no_hash(blank: str) -> None:
    with pytest.raises(ValueError, match="no patient identifier"):
        KEY.hash_identifier("patient", blank)


def test_the_key_id_and_the_printed_key_say_nothing_of_the_secret() -> None:
    assert len(KEY.key_id) == 16
    assert KEY.key_id not in KEY.secret.hex()
    assert KEY.key_id != hashlib.sha256(KEY.secret).hexdigest()[:16]
    assert repr(KEY) == "IdentityKey()"


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_key_has_32_bytes(size: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        IdentityKey(bytes(size))
