"""The sections of a recipe: mappings of options that belong together."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from shardforge.dicom.windows import parse_windows

_UNITS, _FRAMES = ("pixels", "relative"), ("upright", "stored")


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


class _AnnotationOptions(_Section):
    column: str
    """The table's column: lists, or JSON text. An empty cell means: nothing is known of this item."""
    units: Literal["pixels", "relative"] = "pixels"
    """Of what is given, and of what is written: pixels, or fractions of the image's width and height."""
    frame: Literal["upright", "stored"] = "upright"
    """What is given refers to the picture as it is seen, or (as by tools that ignore EXIF) to the stored pixels."""


class BoxOptions(_AnnotationOptions):
    """Where the boxes of objects are."""

    format: Literal["xyxy", "xywh", "cxcywh"]


class KeypointOptions(_AnnotationOptions):
    """Where points are; ``xyv``: COCO's triples."""

    format: Literal["xy", "xyv"]


class FilterOptions(_Section):
    """Which items are left out, as rows with the status ``filtered``; sizes are those of the upright source image."""

    min_side: Annotated[int, Field(ge=1)] | None = None
    """Pixels of the shorter side."""
    max_side: Annotated[int, Field(ge=1)] | None = None
    """Pixels of the longer side."""
    min_area: Annotated[int, Field(ge=1)] | None = None
    """Width × height in pixels."""
    max_area: Annotated[int, Field(ge=1)] | None = None
    min_aspect: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Width / height."""
    max_aspect: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    where: str | None = None
    """An expression over the table's columns that the items to keep fulfil; :mod:`shardforge.compile.where`."""

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        for what in ("area", "aspect"):
            low, high = getattr(self, f"min_{what}"), getattr(self, f"max_{what}")
            if low is not None and high is not None and low > high:
                raise ValueError(f"min_{what} {low} is above max_{what} {high}")
        if self.min_side is not None and self.max_side is not None and self.min_side > self.max_side:
            raise ValueError(f"min_side {self.min_side} is above max_side {self.max_side}")
        return self

    @property
    def judges_geometry(self) -> bool:
        """Whether anything but ``where`` is set."""
        return any(value is not None for name, value in self if name != "where")


def _parse_spacing(value: Any) -> Any:
    """``1`` or ``"1.5x1x1"`` (slices x rows x columns) → millimetres."""
    if isinstance(value, int | float):
        return (value, value, value)
    if isinstance(value, str):
        parts = value.lower().split("x")
        return tuple(parts * 3 if len(parts) == 1 else parts)
    return value


def _parse_names(value: Any) -> Any:
    """``a,b`` → names."""
    return tuple(name.strip() for name in value.split(",")) if isinstance(value, str) else value


def _check_window(text: str) -> str:
    parse_windows(text)
    return text


Millimetres = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class DicomOptions(_Section):
    """How DICOM files become samples."""

    unit: Literal["slice", "frame", "stack", "volume"] = "slice"
    """``slice``: every image; ``frame``: every frame of multi-frame objects; ``stack``: a slice with its neighbours
    as channels; ``volume``: a whole series as one array."""
    neighbours: Annotated[int, Field(ge=1, le=16)] = 1
    """Of a stack, on each side."""
    window: Annotated[str, AfterValidator(_check_window)] = "header"
    """Center/width (``40/400``), a preset (``lung``), ``header``, ``percentile`` or ``none`` (modality values);
    several with commas become channels."""
    voi: Literal["auto", "linear", "linear_exact", "sigmoid"] = "auto"
    """The function of windows; ``auto``: the file's own for those of the header, ``linear`` for others."""
    values: Literal["int16", "float32"] = "int16"
    """How modality values are stored (``window: none``); items that ``int16`` would round fail."""
    spacing: Annotated[tuple[Millimetres, Millimetres, Millimetres] | None, BeforeValidator(_parse_spacing)] = None
    """Of volumes, in mm: slices, rows, columns. Default: as they are."""
    irregular: Literal["fail", "keep"] = "fail"
    """Volumes and stacks of series with gaps, uneven spacing or a tilted gantry."""
    crop: Literal["none", "breast", "ultrasound"] = "none"
    """What is cut out before resizing: the breast of a mammogram, the regions of an ultrasound image."""
    group_by: Literal["patient", "study", "series", "none"] = "patient"
    """What stays in one split."""
    burned_in: Literal["quarantine", "crop", "keep"] = "quarantine"
    """Images that may show identifying text: filtered; kept where an ultrasound image can be cut to its regions; kept
    as they are."""
    truncated: Literal["refuse", "salvage"] = "refuse"
    """Pixel data that end early: a failed item, or filled up and flagged."""
    repair: Literal["none", "wrapped"] = "none"
    """``wrapped``: undo the wrap-around of 12-bit unsigned CT values."""
    segmentations: bool = True
    """Whether segmentation objects become masks of the slices they refer to."""
    identifiers: Literal["hash", "keep"] = "hash"
    """Patients, studies, series, instances and file names: as keyed hashes, or as they are."""
    label_key: str | None = None
    """What the table's rows name: ``sop``, ``series``, ``study``, ``patient``, ``slice`` or ``path``, with the
    columns (``slice:patient_id,index``). Default: found by the columns' names."""
    columns: Annotated[tuple[str, ...], BeforeValidator(_parse_names)] = ()
    """Further columns of the table that go into the dataset. Default: all if identifiers are kept, else none, as
    anything may stand in them. Conditions may use all."""
    first_slice: Literal[0, 1] = 0
    """What the table calls the first slice of a series. Not given: 0, but refused where the numbers tell of 1."""
    uncertain: Literal["ignore", "keep", "positive", "negative"] = "ignore"
    """What -1 means in label columns of 1, 0, -1 and blanks."""
    cross_check: Annotated[int, Field(ge=0)] = 0
    """So many items are decoded by a second decoder as well; those that come out differently fail."""


def parse_annotation(value: Any) -> Any:
    """``COLUMN:FORMAT`` or ``COLUMN:FORMAT,relative,stored`` → a mapping, as the command line has it."""
    if not isinstance(value, str):
        return value
    column, colon, words = value.rpartition(":")
    if not colon or not column:
        raise ValueError(f"{value!r} names no format; write COLUMN:FORMAT, such as bbox:xywh or points:xy,relative")
    options: dict[str, str] = {"column": column}
    for word in words.split(","):
        name = "units" if word in _UNITS else "frame" if word in _FRAMES else "format"
        if name in options:
            raise ValueError(f"{value!r} names {name} twice")
        options[name] = word
    return options
