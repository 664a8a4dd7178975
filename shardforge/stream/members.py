"""Members of a sample from anywhere → values, by what their names and contents say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shardforge.errors import DamagedError, UsageError
from shardforge.shards.manifest import FieldInfo, FieldKind
from shardforge.stream.decode import Undecodable, decode, picture_format

_PICTURES = {"jpg": "jpg", "jpeg": "jpg", "jpe": "jpg", "jfif": "jpg", "png": "png", "webp": "webp"}
_IMAGES = (*_PICTURES, "npy")
_KINDS: dict[str, FieldKind] = {
    "cls": "class",
    "txt": "text",
    "text": "text",
    "caption": "text",
    "json": "json",
    "npy": "array",
}


@dataclass(frozen=True)
class MemberDecoder:
    """Makes the wanted values of a sample.

    Attributes:
        names: ``image``, ``label`` (the member ``cls``), ``key``, or the suffix of any member.
        image: suffix of the member that holds the image; None: the first of jpg, jpeg, png, webp and npy.
        channels, depth: of the images given: 1 or 3; 8 or 16 bits.
    """

    names: tuple[str, ...]
    image: str | None
    channels: int
    depth: int

    def __post_init__(self) -> None:
        if self.channels not in (1, 3) or self.depth not in (8, 16):
            raise UsageError(f"channels={self.channels} and depth={self.depth}: 1 or 3, and 8 or 16")

    def values(self, sample: Mapping[str, Any]) -> dict[str, Any]:
        """Name → value: ``image`` uint8 or uint16 [H, W, C], ``label`` and ``cls`` int64, texts, what JSON says,
        arrays, further pictures uint8 [H, W, 3] but grey PNGs uint8 or uint16 [H, W] as masks; the bytes themselves
        where the suffix is none that is known.

        Raises:
            DamagedError: a member is missing, or not what its suffix says.
        """
        return {name: self._value(name, sample) for name in self.names}

    def _value(self, name: str, sample: Mapping[str, Any]) -> Any:
        if name == "key":
            return sample["__key__"]
        suffix = "cls" if name == "label" else self._image_of(sample) if name == "image" else name
        payload = sample.get(suffix)
        if payload is None or suffix.startswith("__"):
            raise _problem(sample, f"has no member {suffix!r}", f"It has: {', '.join(_suffixes(sample))}.")
        info, form = FieldInfo("image"), suffix.rpartition(".")[2]
        if name == "image":
            form = picture_format(memoryview(payload)) or _PICTURES.get(form, form)
        elif form in _KINDS:
            info = FieldInfo(_KINDS[form])
        elif form in _PICTURES:
            info = FieldInfo("mask" if form == "png" and _is_grey(payload) else "picture")
            form = _PICTURES[form]
        else:
            return payload
        try:
            return self._decoded(memoryview(payload), form, info)
        except Undecodable as error:
            raise _problem(sample, f"its member {suffix!r}: {error}") from None

    def _decoded(self, payload: memoryview, form: str, info: FieldInfo) -> Any:
        try:
            value = decode(payload, form, info, self.channels, depth=self.depth)
        except Undecodable as error:
            # A decoder's doubts about a picture that it could make are no reason to lose it.
            if not error.tolerable:
                raise
            value = decode(payload, form, info, self.channels, depth=self.depth, strict=False)
        return np.int64(value) if info.kind == "class" else value

    def _image_of(self, sample: Mapping[str, Any]) -> str:
        if self.image is not None:
            return self.image
        found = next((suffix for suffix in _IMAGES if suffix in sample), None)
        if found is None:
            what = "has no image (jpg, jpeg, png, webp or npy)"
            todo = f"It has: {', '.join(_suffixes(sample))}. image= names the member that holds it."
            raise _problem(sample, what, todo)
        return found


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names as a tuple.

    Raises:
        UsageError: a single text, none, or one twice.
    """
    if isinstance(names, str) or not names:
        raise UsageError(f"fields={names!r}: a list of names is needed", todo='For example fields=("image", "key").')
    if len(set(names)) != len(names):
        raise UsageError(f"fields={tuple(names)!r}: a field is named twice")
    return tuple(names)


def _is_grey(payload: bytes) -> bool:
    """Whether a PNG's header names colour type 0 (PNG specification, 11.2.2), or there is no such header."""
    return not payload.startswith(b"\x89PNG") or payload[25:26] in (b"\0", b"")


def _suffixes(sample: Mapping[str, Any]) -> list[str]:
    return sorted(name for name in sample if not name.startswith("__"))


def _problem(sample: Mapping[str, Any], what: str, todo: str | None = None) -> DamagedError:
    return DamagedError(what, where=f"{sample['__url__']}, sample {sample['__key__']}", todo=todo)
