"""What to compile: the typed, validated recipe, YAML loading, and the recipes that come with the package."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from shardforge.dicom.windows import Request, parse_windows
from shardforge.errors import StorageError, UsageError
from shardforge.recipe_values import (
    as_tuple,
    check_fields,
    check_keys,
    check_max_errors,
    check_split,
    parse_bytes,
    parse_size,
    parse_split,
)
from shardforge.sections import BoxOptions, DicomOptions, FilterOptions, KeypointOptions, parse_annotation


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


class LimitOptions(_Section):
    """Budgets checked from a file's header, before anything is decoded. They are part of a dataset's identity."""

    pixels: Annotated[int, Field(ge=1)] = 200_000_000
    """Width × height of one frame."""
    frames: Annotated[int, Field(ge=1)] = 10_000
    """Frames or pages in one file."""
    total_pixels: Annotated[int, Field(ge=1)] = 4_000_000_000
    """Sum of width × height over the frames of one file, where each becomes a sample (``frames: all``)."""
    source_bytes: Annotated[int, BeforeValidator(parse_bytes), Field(ge=1)] = 2**30
    """Size of one file."""


class RunOptions(_Section):
    """How to build. No part of a dataset's identity: a resumed build may change all of these."""

    workers: Annotated[int, Field(ge=1)] | None = None
    """Processes; by default one for each processor this process may use."""
    max_errors: Annotated[str, BeforeValidator(check_max_errors)] | None = None
    """Stop beyond this many failed items (``20``) or this share of all (``2%``). Default: beyond 1 % and 10."""
    cpu_seconds: Annotated[int, Field(ge=1)] = 60
    """CPU time one item may take."""
    memory: Annotated[int, BeforeValidator(parse_bytes), Field(ge=2**28)] = 4 * 2**30
    """Bytes a worker may use beyond what it needs to start."""
    overwrite: bool = False
    """Remove what an earlier build left in OUT and start anew."""
    key_file: str | None = None
    """The secret key that identifiers are hashed with; by default one per user, made on first use."""
    private_map: bool = False
    """Write beside the key which hash stands for which identifier."""


class Recipe(_Section):
    """Everything that decides what a dataset is.

    Raises:
        pydantic.ValidationError: through :func:`load_recipe`, which turns it into a UsageError.
    """

    size: Annotated[
        int | tuple[int, int],
        BeforeValidator(parse_size),
    ] = 256
    """Target in pixels; (width, height) for ``exact`` and ``pad``."""
    resize: Literal["shortest", "longest", "exact", "pad", "none"] = "shortest"
    resampler: Literal["lanczos", "bicubic", "bilinear", "box"] = "lanczos"
    """Antialiasing filter, as Pillow names them."""
    enlarge: bool = False
    kind: Literal["auto", "images", "dicom"] = "auto"
    """What the source holds; ``auto``: what most of its files are."""
    channels: Annotated[int, Field(ge=1)] | None = None
    """1 (grey) or 3 (RGB). Default: 3; of DICOM one for each window, where 3 keeps the colours of colour images."""
    background: tuple[int, int, int] = (255, 255, 255)
    """RGB under transparent pixels and around padded images (padded DICOM images are black)."""
    format: Literal["jpg", "png", "webp", "npy", "keep"] = "jpg"
    reencode: Literal["auto", "always", "never"] = "auto"
    """Whether a file that has the dataset's format and size already is encoded again; ``never`` fails the others."""
    quality: Annotated[int, Field(ge=1, le=100)] = 95
    subsampling: Literal["420", "444"] = "420"
    depth: Literal[8, 16] = 8
    """Bits per stored sample. 16 needs png or npy; sources of fewer bits are scaled to the full range (v · 257)."""
    frames: Literal["first", "all", "reject"] = "first"
    """Of a file with several frames or pages: take the first, make a sample of each, or fail the file."""
    damage: Literal["strict", "judge", "keep"] = "judge"
    """``strict`` fails what would be kept with the flag ``suspect``; ``keep`` also keeps, flagged, JPEGs with damage
    in their entropy-coded data, if no part of the picture is missing."""

    table: str | None = None
    """A csv, tsv, parquet or jsonl file that lists the items."""
    path: str | None = None
    """The table's column of paths."""
    label: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = ()
    """The table's column of labels, or several."""
    label_kind: Literal["auto", "class", "multi", "number", "none"] = "auto"
    label_separator: str | None = None
    """Between several classes in one cell."""
    classes: tuple[str, ...] | None = None
    """Fixes the classes and their ids; by default the classes found, sorted."""
    caption: str | None = None
    mask: str | None = None
    mask_frame: Literal["upright", "stored"] = "upright"
    """Masks lie over the picture as it is seen, or (as from tools that ignore EXIF) over the stored pixels; one with
    an orientation of its own is turned by that."""
    fields: Annotated[dict[str, Literal["required", "optional"]], AfterValidator(check_fields)] = {}
    """Sidecar fields beyond json, txt and mask.png, and which of them every item must have."""
    follow_symlinks: bool = False
    boxes: Annotated[BoxOptions | None, BeforeValidator(parse_annotation)] = None
    keypoints: Annotated[KeypointOptions | None, BeforeValidator(parse_annotation)] = None
    dicom: DicomOptions = DicomOptions()
    filters: FilterOptions = FilterOptions()
    dedup: Literal["none", "bytes"] = "none"
    """Whether files are compared, so that identical ones stay in one split."""
    duplicates: Literal["keep", "first"] = "keep"
    """What becomes of identical files: all are kept, or the first and the others are filtered."""

    split: Annotated[dict[str, Decimal], BeforeValidator(parse_split), AfterValidator(check_split)] | None = None
    split_by: Literal["auto", "source", "hash", "stratified"] = "auto"
    split_column: str | None = None
    split_from: str | None = None
    """A dataset built ``--split-by stratified`` whose assignment of groups is kept."""
    group: str | None = None
    """The table's column whose equal values stay in one split."""

    shard_size: Annotated[int, BeforeValidator(parse_bytes), Field(ge=2**10)] = 256 * 2**20
    """Target bytes of a tar."""
    shard_samples: Annotated[int, Field(ge=1)] = 10_000
    shuffle: bool = True
    seed: int = 0
    keys: Annotated[str, AfterValidator(check_keys)] = "index"

    limits: LimitOptions = LimitOptions()
    run: RunOptions = RunOptions()

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        sides = (self.size,) if isinstance(self.size, int) else self.size
        if not all(1 <= side <= 65_500 for side in sides):
            raise ValueError("size: not between 1 and 65500 pixels")
        if isinstance(self.size, tuple) and self.resize not in ("exact", "pad"):
            raise ValueError(f"size: width x height needs resize exact or pad, not {self.resize}")
        self._check_channels()
        if any(not 0 <= level <= 255 for level in self.background):
            raise ValueError("background: three values from 0 to 255")
        if self.depth == 16 and self.format not in ("png", "npy"):
            raise ValueError(f"depth: 16 bits need format png or npy, not {self.format}")
        if self.format == "keep" and "resize" in self.model_fields_set and self.resize != "none":
            raise ValueError(f"format: keep leaves pixels as they are; it cannot go with resize {self.resize}")
        if self.split_by in ("hash", "stratified") and self.split is None:
            raise ValueError(f"split_by: {self.split_by} needs split, such as train=0.9,val=0.1")
        if self.split_from is not None and self.split_by != "stratified":
            raise ValueError("split_from: goes with split_by stratified")
        if self.classes is not None and len(set(self.classes)) != len(self.classes):
            raise ValueError("classes: a name appears twice")
        if self.duplicates == "first" and self.dedup == "none":
            raise ValueError("duplicates: first needs dedup bytes")
        if self.boxes is not None and self.keypoints is not None and self.boxes.column == self.keypoints.column:
            raise ValueError(f"keypoints: the column {self.boxes.column!r} holds boxes already")
        needs_table = [name for name in ("path", "split_column", "group", "caption", "mask") if getattr(self, name)]
        needs_table += ["label"] if self.label else []
        needs_table += ["keys"] if self.keys.startswith("column:") else []
        if self.table is None and needs_table:
            raise ValueError(f"{needs_table[0]}: names a column, which needs a table")
        return self

    def _check_channels(self) -> None:
        if self.kind == "images" and self.channels not in (None, 1, 3):
            raise ValueError(f"channels: 1 or 3, not {self.channels}")
        if self.kind != "dicom":
            return
        made = self._channels_made
        if self.channels not in (None, made) and (self.channels, made) != (3, 1):
            raise ValueError(f"channels: {self.channels}, where the windows make {made}")
        if self.format != "npy" and made not in (1, 3):
            raise ValueError(f"format: {self.format} holds 1 or 3 channels, and the windows make {made}; use npy")
        if self.modality_values and (self.format != "npy" or self.depth != 8):
            raise ValueError("window: none (modality values) needs format npy, and no depth")
        if self.dicom.unit == "volume" and (self.format != "npy" or len(self.windows) > 1):
            raise ValueError("unit: volume needs format npy and one window (or none)")
        if self.dicom.unit == "volume" and {"resize", "size"} & self.model_fields_set and self.resize != "none":
            raise ValueError("resize: volumes are resampled by spacing")
        if self.dicom.spacing is not None and self.dicom.unit != "volume":
            raise ValueError("spacing: goes with unit volume")
        if self.format == "keep":
            raise ValueError("format: keep is for ordinary images")
        if self.run.private_map and self.dicom.identifiers == "keep":
            raise ValueError("private_map: goes with hashed identifiers")

    @property
    def windows(self) -> tuple[Request, ...]:
        """The windows of a DICOM build, one per channel; none where modality values are stored."""
        return parse_windows(self.dicom.window) if self.kind == "dicom" else ()

    @property
    def modality_values(self) -> bool:
        """Whether a DICOM build stores modality values instead of windows of them."""
        return self.kind == "dicom" and not self.windows

    @property
    def _channels_made(self) -> int:
        stacked = 2 * self.dicom.neighbours + 1 if self.dicom.unit == "stack" else 1
        return max(1, len(self.windows)) * stacked

    @property
    def stored_channels(self) -> int:
        """Channels of the images; of a volume 1."""
        return self.channels or (self._channels_made if self.kind == "dicom" else 3)

    def settled(self, kind: Literal["images", "dicom"]) -> Recipe:
        """The recipe for a source that turned out to hold this kind of file.

        Raises:
            UsageError: the options do not go together for it.
        """
        if kind == "images" and self.dicom.model_fields_set:
            names = ", ".join(sorted(self.dicom.model_fields_set))
            todo = "Leave them out, or add --kind dicom."
            raise UsageError(f"options for DICOM ({names}), and the source holds ordinary images", todo=todo)
        try:
            settled = Recipe.model_validate({**self.model_dump(exclude_unset=True), "kind": kind})
        except ValidationError as error:
            raise UsageError(_explain(error)) from None
        update: dict[str, Any] = {"channels": settled.stored_channels}
        if len(settled.windows) > 1 and "subsampling" not in self.model_fields_set:
            # Channels that are windows are no colours: halving two of them would blur bone and not brain.
            update["subsampling"] = "444"
        return settled.model_copy(update=update)

    def identity(self) -> dict[str, Any]:
        """The recipe as plain JSON values, without what may change when a build is resumed and without folders."""
        content = self.model_dump(mode="json", exclude={"run", "dicom"} if self.kind == "images" else {"run"})
        content["resize"] = self.effective_resize
        for name in ("table", "split_from"):
            if content[name] is not None:
                content[name] = Path(content[name]).name
        return content

    @property
    def effective_resize(self) -> Literal["shortest", "longest", "exact", "pad", "none"]:
        """The resize mode; ``none`` where the format is kept, and for volumes, whose spacing decides."""
        volume = self.kind == "dicom" and self.dicom.unit == "volume"
        return "none" if volume or self.format == "keep" else self.resize


def recipe_folder() -> Path:
    """Where the recipes that come with the package lie: inside it, or at the top of a checkout."""
    inside = Path(str(files("shardforge"))) / "_recipes"
    return inside if inside.is_dir() else Path(str(files("shardforge"))).parent / "recipes"


def named_recipes() -> list[str]:
    """The names ``--recipe`` accepts besides files."""
    return sorted(path.stem for path in recipe_folder().glob("*.yaml"))


def load_recipe(source: str | Path | None, overrides: Mapping[str, Any]) -> Recipe:
    """Reads a recipe and lays the given options over it.

    Args:
        source: a YAML file, the name of a recipe that comes with the package, or None for the defaults.
        overrides: option → value; options of :class:`RunOptions`, :class:`LimitOptions` and
            :class:`~shardforge.sections.FilterOptions` by their own names inside ``run``, ``limits`` and ``filters``
            mappings.

    Raises:
        UsageError: an unknown recipe, key or value; it names the nearest known one.
        StorageError: the file cannot be read.
    """
    content = {} if source is None else _read_yaml(source)
    where = None if source is None else str(source)
    merged: dict[str, Any] = dict(content)
    for name, value in overrides.items():
        if isinstance(value, Mapping) and name in ("run", "limits", "filters", "dicom"):
            merged[name] = {**(merged.get(name) or {}), **value}
        else:
            merged[name] = value
    try:
        return Recipe.model_validate(merged)
    except ValidationError as error:
        raise UsageError(_explain(error), where=where) from None


def _read_yaml(source: str | Path) -> dict[str, Any]:
    # Here, as worker processes read no YAML.
    import yaml

    path = Path(source)
    if not path.is_file() and path.suffix not in (".yaml", ".yml"):
        path = recipe_folder() / f"{source}.yaml"
        if str(source) not in named_recipes():
            near = difflib.get_close_matches(str(source), named_recipes(), 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known recipes: {', '.join(named_recipes())}."
            raise UsageError(f"no recipe file and no known recipe named {str(source)!r}", todo=hint)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError("no such recipe file", where=path) from None
    except OSError as error:
        raise StorageError(f"cannot be read ({error.strerror})", where=path) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"is not valid YAML ({' '.join(str(error).split())})", where=path) from None
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise UsageError("a recipe is a mapping of options to values", where=path)
    return content


_SECTIONS: dict[str, type[BaseModel]] = {
    "run": RunOptions,
    "limits": LimitOptions,
    "dicom": DicomOptions,
    "boxes": BoxOptions,
    "keypoints": KeypointOptions,
    "filters": FilterOptions,
}


def _explain(error: ValidationError) -> str:
    """One line for each problem, unknown keys with the nearest known one."""
    lines = []
    for problem in error.errors(include_url=False):
        place = [str(part) for part in problem["loc"]]
        if problem["type"] == "extra_forbidden":
            known = list((_SECTIONS[place[0]] if len(place) > 1 else Recipe).model_fields)
            near = difflib.get_close_matches(place[-1], known, 1, 0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            inside = [section for section, kind in _SECTIONS.items() if place[-1] in kind.model_fields]
            if len(place) == 1 and inside:
                hint = f"it belongs into the section {inside[0]!r}"
            lines.append(f"unknown key {'.'.join(place)!r}; {hint}")
        else:
            message = problem["msg"].removeprefix("Value error, ")
            name = ".".join(place[: 2 if place and place[0] in _SECTIONS else 1])
            lines.append(f"{name}: {message}" if name else message)
    return "; ".join(dict.fromkeys(lines))
