"""Values of a recipe as people write them, for flags and YAML alike → plain Python values.

Each raises ValueError, in words for whoever wrote it.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from shardforge.shards.layout import SPLIT_NAME
from shardforge.shards.tar import is_field

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def parse_bytes(value: Any) -> Any:
    """``"256MiB"``, ``"1.5GB"``, ``"300k"`` or a plain number → bytes."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", value.lower())
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"{value!r} is no size in bytes; write 256MiB or 1GB")
    return int(Decimal(match[1]) * _UNITS[match[2]])


def parse_size(value: Any) -> Any:
    """``256`` or ``"640x480"`` (width x height) → pixels."""
    if isinstance(value, str):
        match = re.fullmatch(r"(\d+)(?:x(\d+))?", value.strip().lower())
        if match is None:
            raise ValueError(f"{value!r} is no size; write 256 or 640x480 (width x height)")
        return int(match[1]) if match[2] is None else (int(match[1]), int(match[2]))
    return value


def parse_split(value: Any) -> Any:
    """``"train=0.9,val=0.1"`` → a mapping."""
    if not isinstance(value, str):
        return value
    shares: dict[str, str] = {}
    for part in value.split(","):
        name, equals, share = part.partition("=")
        if not equals or name.strip() in shares:
            raise ValueError(f"{value!r} is no split; write train=0.9,val=0.1")
        shares[name.strip()] = share.strip()
    return shares


def check_split(shares: dict[str, Decimal]) -> dict[str, Decimal]:
    for name, share in shares.items():
        if SPLIT_NAME.fullmatch(name) is None:
            raise ValueError(f"{name!r} is no split name (lower case letters, digits and _, starting with a letter)")
        if not 0 < share <= 1:
            raise ValueError(f"the share of {name!r} is {share}, not between 0 and 1")
    if sum(shares.values()) != 1:
        raise ValueError(f"the shares add up to {sum(shares.values())}, not 1")
    # One canonical order, so that thresholds do not depend on how the recipe was written or stored.
    ordered = sorted(shares.items(), key=lambda item: (item[0] != "train", item[0]))
    return {name: share.normalize() for name, share in ordered}


def check_keys(value: str) -> str:
    if value not in ("index", "stem") and re.fullmatch(r"column:.+", value) is None:
        raise ValueError(f"{value!r} is none of index, stem, column:NAME")
    return value


def check_fields(value: dict[str, str]) -> dict[str, str]:
    for name in value:
        if not is_field(name) or name.rpartition(".")[2] not in ("json", "txt", "png", "npy"):
            raise ValueError(f"{name!r} is no sidecar field; they end in json, txt, png (a mask) or npy")
    return value


def check_max_errors(value: Any) -> Any:
    text = str(value).strip()
    if re.fullmatch(r"\d+(\.\d+)?%|\d+", text) is None:
        raise ValueError(f"{value!r} is neither a count (20) nor a share (2%)")
    return text


def as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value
