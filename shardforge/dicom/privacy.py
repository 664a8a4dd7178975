"""Identifiers as keyed hashes: they tell same from different, and nothing else to whoever lacks the key."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["patient", "study", "series", "sop", "source", "source_sha256", "group"]

SECRET_BYTES = 32
HASH_DIGITS = 32
"""128 of the 256 bits (RFC 2104, section 5, asks for half at least): among 2^32 identifiers two share a hash with
a chance of 2^-65, and a guess cannot be checked without the key, however short the hash is."""

_KEY_ID_DIGITS = 16
_PADDED = frozenset(("patient", "study", "series", "sop", "group"))


@dataclass(frozen=True)
class IdentityKey:
    """The secret that turns identifiers into hashes. Stays outside of every dataset.

    Attributes:
        secret: 32 bytes.

    Raises:
        ValueError: another number of bytes.
    """

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) != SECRET_BYTES:
            raise ValueError(f"an identity key has {SECRET_BYTES} bytes, not {len(self.secret)}")

    @property
    def key_id(self) -> str:
        """16 hex digits for manifests: they tell whether two datasets share a key, and nothing of the key."""
        return self._digest("key id", "")[:_KEY_ID_DIGITS]

    def hash_identifier(self, kind: Kind, value: str) -> str:
        """HMAC-SHA256 of an identifier, as 32 hex digits.

        The same value and key give the same hash in every build; the same value as another kind gives an unrelated
        one. DICOM pads its strings with spaces and zeros that are not significant (PS3.5 6.2): they are left out, so
        ``P1`` and ``P1 `` are one patient. Paths and digests are taken as they are.

        Args:
            value: not blank. A file without a PatientID has no hash of it; the hash of "" would merge strangers.

        Raises:
            ValueError: a blank value.
        """
        significant = value.strip(" \0") if kind in _PADDED else value
        if not significant:
            raise ValueError(f"no {kind} identifier to hash")
        return self._digest(kind, significant)[:HASH_DIGITS]

    def _digest(self, purpose: str, value: str) -> str:
        text = f"shardforge/1\0{purpose}\0{value}".encode("utf-8", "surrogatepass")
        return hmac.digest(self.secret, text, "sha256").hex()
