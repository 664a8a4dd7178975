"""Looks into datasets that tests have built of DICOM files."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from shardforge.shards.manifest import Manifest
from tests.built import payload


def all_rows(out: Path) -> list[dict[str, Any]]:
    """The rows of all shards, in order."""
    names = [shard.name for split in Manifest.read(out).splits.values() for shard in split.shards]
    return [row for name in names for row in pq.read_table(out / f"{name}.parquet").to_pylist()]


def samples(out: Path) -> Iterator[dict[str, Any]]:
    """The rows that became samples."""
    return (row for row in all_rows(out) if row["status"] == "success")


def by_source(out: Path) -> dict[str, list[dict[str, Any]]]:
    """source → its rows, by frame."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(all_rows(out), key=lambda row: (row["source"], row.get("frame") or 0)):
        found.setdefault(row["source"], []).append(row)
    return found


def picture_of(out: Path, row: dict[str, Any]) -> NDArray[Any]:
    """The stored PNG [H, W, C] in RGB order, or npy as it is, without this package's readers."""
    if row.get("npy_offset") is not None:
        return np.load(io.BytesIO(payload(out, row, "npy")), allow_pickle=False)
    field = "png" if "png_offset" in row else "jpg"
    found = cv2.imdecode(np.frombuffer(payload(out, row, field), np.uint8), cv2.IMREAD_UNCHANGED)
    assert found is not None
    return found[:, :, None] if found.ndim == 2 else np.ascontiguousarray(found[:, :, ::-1])


def mask_of(out: Path, row: dict[str, Any]) -> NDArray[Any]:
    """The stored mask [H, W]."""
    found = cv2.imdecode(np.frombuffer(payload(out, row, "mask.png"), np.uint8), cv2.IMREAD_UNCHANGED)
    assert found is not None
    return found
