"""Small valid datasets for tests, format "shardforge/1", written through ``shardforge.shards`` alone.

Pictures are encoded by Pillow, numpy and imagecodecs, so that a reader is held against other implementations.
"""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from PIL import Image

from shardforge.shards import index, layout, metadata, statistics
from shardforge.shards.catalogue import Reason, Status
from shardforge.shards.manifest import (
    FieldInfo,
    InputInfo,
    LabelInfo,
    LabelKind,
    Manifest,
    ShardInfo,
    SplitInfo,
)
from shardforge.shards.metadata import Outcome
from shardforge.shards.tar import TarWriter

Pixels = npt.NDArray[Any]

CLASS_NAMES = ("ant", "bee", "cat", "dog")
SITES = ("north", "south", "west")
USER_COLUMNS = pa.schema([("age", pa.int32()), ("site", pa.string())])


def picture(number: int, size: tuple[int, int] = (32, 32), channels: int = 3) -> Pixels:
    """The picture of item ``number``: uint8 [H, W, C], a smooth ramp of its own with a bright block somewhere."""
    height, width = size
    chance = np.random.Generator(np.random.Philox(number))
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    slopes, levels = chance.uniform(-1.5, 1.5, (channels, 2)), chance.uniform(60, 180, channels)
    planes = [
        level + a * (y - height / 2) + b * (x - width / 2) for level, (a, b) in zip(levels, slopes, strict=True)
    ]
    out = np.clip(np.stack(planes, axis=-1), 0, 255).astype(np.uint8)
    top, left = int(chance.integers(max(1, height // 2))), int(chance.integers(max(1, width // 2)))
    out[top : top + max(1, height // 4), left : left + max(1, width // 4)] = 230
    return out


def mask(number: int, size: tuple[int, int] = (32, 32)) -> Pixels:
    """The mask of item ``number``: uint16 [H, W] with values over 255."""
    return (np.arange(size[0] * size[1], dtype=np.uint16).reshape(size) + np.uint16(number)) % np.uint16(1000)


def class_label(number: int) -> int:
    return number % len(CLASS_NAMES)


def multi_label(number: int) -> list[int]:
    """Class ids; empty for every fifth item."""
    return [] if number % 5 == 0 else sorted({number % 4, number // 2 % 4})


def number_label(number: int) -> float:
    return number / 4 - 3


def vector_label(number: int, size: int) -> list[float]:
    return [number / 4 + i for i in range(size)]


def make_dataset(
    root: Path,
    splits: Mapping[str, Sequence[int]] | None = None,
    *,
    label_kind: LabelKind = "class",
    label_size: int = 1,
    size: tuple[int, int] | Callable[[int], tuple[int, int]] = (32, 32),
    channels: int = 3,
    format: str = "jpg",
    pixels: Callable[[int], Pixels] | None = None,
    label: Callable[[int], Any] | None = None,
    classes: Mapping[str, int] | None = None,
    sidecars: Sequence[str] = (),
    optional: Sequence[str] = (),
    failed_per_shard: int = 0,
) -> Manifest:
    """Writes a complete dataset into ``root`` (made if needed) and returns its manifest.

    Items are numbered through the whole dataset in the order of ``splits``, shards and positions; item ``n`` has the
    key ``f"{n:09d}"``, the user columns ``age`` (int32, ``n``) and ``site`` (``SITES[n % 3]``), and the picture, mask
    and label that the functions of this module give for ``n``.

    Args:
        splits: split → number of *successful* samples per shard; default ``{"train": [8, 8], "val": [5]}``.
        label_kind: ``class`` (also writes the ``cls`` member), ``multi`` (list of class ids), ``number`` or ``none``.
        label_size: how many numbers a ``number`` label has.
        size: (height, width) of every picture, or a function of the item's number.
        channels: 1 or 3.
        format: the image field: ``jpg`` (quality 95, 4:4:4), ``png``, ``webp`` (lossless) or ``npy`` ([H, W, C]).
        pixels: replaces :func:`picture`: item number → uint8 [H, W, C] (any dtype for ``npy``).
        label: replaces the label function: item number → label as the parquet holds it.
        classes: name → id; default :data:`CLASS_NAMES`.
        sidecars: further members, of ``txt`` (``"caption n"``), ``json`` (``{"number": n}``) and ``mask.png``
            (:func:`mask`, 16 bits).
        optional: which of the sidecars every third item (``n % 3 == 0``) lacks.
        failed_per_shard: failed rows in every shard (reason ``truncated``), spread among the good ones; they use up
            item numbers and positions too.
    """
    splits = {"train": [8, 8], "val": [5]} if splits is None else splits
    root.mkdir(parents=True, exist_ok=True)
    named = label_kind in ("class", "multi")
    ids = dict(classes or {name: i for i, name in enumerate(CLASS_NAMES)}) if named else {}
    info = LabelInfo(label_kind, label_size)
    fields = {format: FieldInfo("image"), **_sidecar_infos(sidecars, optional)}
    if label_kind == "class":
        fields["cls"] = FieldInfo("class")

    def shape(number: int) -> tuple[int, int]:
        return size(number) if callable(size) else size

    def pixels_of(number: int) -> Pixels:
        return picture(number, shape(number), channels) if pixels is None else pixels(number)

    def members(number: int) -> tuple[Pixels, dict[str, bytes]]:
        image = pixels_of(number)
        out = {format: encode(image, format)}
        if label_kind == "class":
            out["cls"] = str(label_of(number)).encode()
        for name in sidecars:
            if name not in optional or number % 3:
                out[name] = _sidecar(name, number, image.shape[:2])
        return image, out

    def label_of(number: int) -> Any:
        if label is not None:
            return label(number)
        if label_kind == "number":
            return number_label(number) if label_size == 1 else vector_label(number, label_size)
        return {"class": class_label, "multi": multi_label, "none": lambda _: None}[label_kind](number)

    target = metadata.schema(tuple(fields), info, USER_COLUMNS)
    names = {i: name for name, i in ids.items()}
    made: dict[str, SplitInfo] = {}
    first = 0
    for split, counts in splits.items():
        shards, parts, histogram = [], [], np.zeros((channels, statistics.LEVELS), np.int64)
        for number, count in enumerate(counts):
            items = range(first, first + count + failed_per_shard)
            first = items.stop
            shard = layout.shard_name(split, number)
            bad = {items[(2 * i + 1) * len(items) // (2 * failed_per_shard)] for i in range(failed_per_shard)}
            writer, outcomes, labels = TarWriter(layout.tar_path(root, shard)), [], [label_of(i) for i in items]
            for item in items:
                if item in bad:
                    outcomes.append(Outcome(Status.FAILED, Reason.TRUNCATED))
                    continue
                image, payloads = members(item)
                histogram += _histogram(image)
                written = writer.add(f"{item:09d}", payloads)
                outcomes.append(_success(image, payloads[format], format, written.extents, written.crc32))
            digest = writer.finish()
            planned = {
                "key": pa.array([f"{i:09d}" for i in items], pa.string()),
                "shard": pa.array([shard] * len(items), pa.string()),
                "position": pa.array(range(len(items)), pa.int32()),
                "source": pa.array([f"raw/picture {i}.{format}" for i in items], pa.string()),
                "frame": pa.array([0] * len(items), pa.int32()),
                "group": pa.array([None] * len(items), pa.string()),
                "split": pa.array([split] * len(items), pa.string()),
                "label": pa.array(labels, target.field("label").type),
                "label_name": pa.array(
                    [_label_name(value, label_kind, names) for value in labels], target.field("label_name").type
                ),
                "age": pa.array(items, pa.int32()),
                "site": pa.array([SITES[i % len(SITES)] for i in items], pa.string()),
            }
            rows = metadata.table(pa.RecordBatch.from_pydict(planned), outcomes, target)
            metadata.write(layout.parquet_path(root, shard), rows)
            parts.append(index.rows(number, rows, index.schema(tuple(fields), info)))
            parquet_digest = hashlib.sha256(layout.parquet_path(root, shard).read_bytes()).hexdigest()
            shards.append(ShardInfo(shard, count, writer.size, digest, parquet_digest))
        index.write(layout.index_path(root, split), parts, index.schema(tuple(fields), info))
        made[split] = SplitInfo(
            samples=sum(counts),
            failed=failed_per_shard * len(counts),
            filtered=0,
            skipped=0,
            bytes=sum(shard.bytes for shard in shards),
            index_sha256=hashlib.sha256(layout.index_path(root, split).read_bytes()).hexdigest(),
            shards=tuple(shards),
            stats=statistics.PixelStatistics.of(histogram),
        )
    manifest = Manifest(
        recipe={},
        seed=0,
        fields=fields,
        label=info,
        channels=channels,
        classes=ids,
        inputs=InputInfo(first, hashlib.sha256(str(first).encode()).hexdigest()),
        splits=made,
    ).with_fingerprint()
    manifest.write(root / layout.MANIFEST)
    return manifest


def encode(image: Pixels, format: str) -> bytes:
    """Encodes uint8 [H, W, C] (``npy``: any array)."""
    file = io.BytesIO()
    if format == "npy":
        np.save(file, image, allow_pickle=False)
        return file.getvalue()
    if format == "webp":
        # WebP knows no grey.
        colour = np.repeat(image, 3, axis=2) if image.shape[-1] == 1 else image
        return bytes(imagecodecs.webp_encode(colour, lossless=True))
    picture = Image.fromarray(image[..., 0] if image.ndim == 3 and image.shape[-1] == 1 else image)
    if format == "jpg":
        picture.save(file, "JPEG", quality=95, subsampling=0)
    else:
        picture.save(file, "PNG")
    return file.getvalue()


def _histogram(image: Pixels) -> statistics.Histogram:
    channels = image.shape[-1] if image.ndim == 3 else 1
    if image.dtype != np.uint8:
        return np.zeros((channels, statistics.LEVELS), np.int64)
    planes = image.reshape(-1, channels)
    return np.stack([np.bincount(planes[:, c], minlength=statistics.LEVELS) for c in range(channels)])


def _sidecar_infos(sidecars: Sequence[str], optional: Sequence[str]) -> dict[str, FieldInfo]:
    kinds: dict[str, Any] = {"txt": "text", "json": "json", "mask.png": "mask"}
    return {name: FieldInfo(kinds[name], name in optional) for name in sidecars}


def _sidecar(name: str, number: int, size: tuple[int, ...]) -> bytes:
    if name == "txt":
        return f"caption {number}".encode()
    if name == "json":
        return json.dumps({"number": number}, sort_keys=True).encode()
    return encode(mask(number, (size[0], size[1])), "png")


def _label_name(label: Any, kind: LabelKind, names: Mapping[int, str]) -> Any:
    if kind == "class":
        return names[label]
    return [names[i] for i in label] if kind == "multi" else None


def _success(image: Pixels, payload: bytes, format: str, extents: Mapping[str, Any], crc32: int) -> Outcome:
    height, width = image.shape[:2]
    source = zlib.compress(payload)
    return Outcome(
        Status.SUCCESS,
        width=width,
        height=height,
        channels=image.shape[-1] if image.ndim == 3 else 1,
        original_width=width,
        original_height=height,
        original_format={"jpg": "jpeg"}.get(format, format),
        bytes=len(payload),
        sha256=hashlib.sha256(payload).hexdigest(),
        source_bytes=len(source),
        source_sha256=hashlib.sha256(source).hexdigest(),
        scale_x=1.0,
        scale_y=1.0,
        offset_x=0.0,
        offset_y=0.0,
        decoder="none",
        resampler="none",
        extents=extents,
        sample_crc32=crc32,
    )
