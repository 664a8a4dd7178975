"""The options of a build as Python keywords; the same names and meanings as on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from shardforge.recipe import Recipe, RunOptions, load_recipe
from shardforge.sections import DicomOptions, FilterOptions


class BuildOptions(TypedDict, total=False):
    """Each option overrides the recipe. Meanings, units and defaults: :mod:`shardforge.recipe`."""

    size: int | str | tuple[int, int]
    resize: str
    resampler: str
    enlarge: bool
    kind: str
    channels: int
    background: tuple[int, int, int]
    format: str
    reencode: str
    quality: int
    subsampling: str
    depth: int
    frames: str
    damage: str
    table: str | Path
    path: str
    label: str | Sequence[str]
    label_kind: str
    label_separator: str
    classes: Sequence[str]
    caption: str
    mask: str
    mask_frame: str
    fields: Mapping[str, str]
    follow_symlinks: bool
    boxes: str | Mapping[str, str]
    keypoints: str | Mapping[str, str]
    filters: Mapping[str, Any]
    min_side: int
    max_side: int
    min_area: int
    max_area: int
    min_aspect: float
    max_aspect: float
    where: str
    dicom: Mapping[str, Any]
    unit: str
    neighbours: int
    window: str
    voi: str
    values: str
    spacing: float | str | tuple[float, float, float]
    irregular: str
    crop: str
    group_by: str
    burned_in: str
    truncated: str
    repair: str
    segmentations: bool
    identifiers: str
    label_key: str
    columns: str | Sequence[str]
    first_slice: int
    uncertain: str
    cross_check: int
    dedup: str
    duplicates: str
    split: str | Mapping[str, float]
    split_by: str
    split_column: str
    split_from: str | Path
    group: str
    shard_size: int | str
    shard_samples: int
    shuffle: bool
    seed: int
    keys: str
    max_pixels: int
    max_frames: int
    max_total_pixels: int
    max_source_bytes: int | str
    workers: int
    max_errors: int | str
    cpu_seconds: int
    memory: int | str
    overwrite: bool
    key_file: str | Path
    private_map: bool


_SECTIONS = ("run", "limits", "filters", "dicom")
_LIMITS = {
    "max_pixels": "pixels",
    "max_frames": "frames",
    "max_total_pixels": "total_pixels",
    "max_source_bytes": "source_bytes",
}


def resolve(recipe: str | Path | Recipe | None, options: BuildOptions) -> Recipe:
    """A recipe with the given options laid over it.

    Raises:
        UsageError: an unknown recipe, option or value.
    """
    overrides: dict[str, Any] = {}
    for name, value in options.items():
        plain = str(value) if isinstance(value, Path) else value
        if name in RunOptions.model_fields:
            overrides.setdefault("run", {})[name] = plain
        elif name in FilterOptions.model_fields:
            overrides["filters"] = {**overrides.get("filters", {}), name: plain}
        elif name in DicomOptions.model_fields:
            overrides["dicom"] = {**overrides.get("dicom", {}), name: plain}
        elif name in _LIMITS:
            overrides.setdefault("limits", {})[_LIMITS[name]] = plain
        elif name in ("filters", "dicom"):
            overrides[name] = {**value, **overrides.get(name, {})}  # type: ignore[dict-item]
        else:
            overrides[name] = plain
    if isinstance(recipe, Recipe):
        overrides = {**recipe.model_dump(exclude_unset=True, exclude=set(_SECTIONS)), **overrides}
        for section in _SECTIONS:
            given = getattr(recipe, section).model_dump(exclude_unset=True)
            overrides[section] = {**given, **overrides.get(section, {})}
        recipe = None
    return load_recipe(recipe, overrides)
