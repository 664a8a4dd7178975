"""The sections of a recipe: mappings of options that belong together."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

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
