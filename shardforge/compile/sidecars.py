"""What a sample holds besides its image, from sidecar files and from the plan."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from shardforge.compile.planned_item import PlannedItem, SampleSettings
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason
from shardforge.shards.manifest import LabelInfo
from shardforge.shards.npy import BadArray, read_npy


def sidecar_members(
    item: PlannedItem,
    raw: Mapping[str, bytes],
    settings: SampleSettings,
    annotations: Mapping[str, Any],
    mask: Callable[[bytes], bytes],
) -> dict[str, bytes]:
    """The members of a sample besides its image: class, text, JSON, arrays, and masks brought to where the image is.

    Args:
        raw: field → bytes of the item's files.
        mask: makes the member of a mask's file.
        annotations: column → boxes or points in the stored image, for the ``json`` member.

    Raises:
        SampleError: ``bad_sidecar``, or what ``mask`` raises.
    """
    members = {}
    for name, info in settings.fields.items():
        if info.kind == "class":
            members[name] = str(item.label).encode("ascii")
        elif info.kind == "json":
            content = _json_member(item, raw.get(name), settings.label, annotations)
            if content is not None:
                members[name] = content
        elif info.kind == "text" and item.caption is not None:
            members[name] = item.caption.encode("utf-8")
        elif name in raw and info.kind == "text":
            members[name] = _text(raw[name]).encode("utf-8")
        elif name in raw and info.kind == "array":
            members[name] = _checked_array(raw[name])
        elif name in raw and info.kind == "mask":
            members[name] = mask(raw[name])
    return members


def _json_member(
    item: PlannedItem, data: bytes | None, label: LabelInfo, annotations: Mapping[str, Any]
) -> bytes | None:
    """The item's own JSON with sorted keys; labels that ``cls`` cannot hold join it under names it does not use.

    Boxes and points join it under their column's name, in place of what the file says there: coordinates of the
    source would be wrong beside the stored image.
    """
    content = None if data is None else _parse_json(data)
    labelled = label.kind in ("multi", "number")
    if labelled or annotations:
        content = content if isinstance(content, dict) else {} if data is None else {"data": content}
        if labelled:
            content.setdefault("label", item.label)
        if label.kind == "multi":
            content.setdefault("label_name", item.label_name)
        content.update(annotations)
    elif data is None:
        return None
    return json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def _parse_json(data: bytes) -> Any:
    try:
        content = json.loads(_text(data), parse_constant=_no_constant)
        json.dumps(content, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise SampleError(Reason.BAD_SIDECAR, f"json: {error}") from None
    return content


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SampleError(Reason.BAD_SIDECAR, f"text: {error}") from None


def _checked_array(data: bytes) -> bytes:
    """The bytes of an ``npy`` file that readers of the dataset will take; pickled objects are refused."""
    try:
        read_npy(memoryview(data))
    except BadArray as error:
        raise SampleError(Reason.BAD_SIDECAR, f"npy: {error}") from None
    return data
