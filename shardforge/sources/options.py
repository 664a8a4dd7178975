"""What a recipe says about the raw data, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class SourceOptions:
    """What a recipe says about the raw data.

    Attributes:
        table: a csv, tsv, parquet or jsonl file that lists the items.
        path_column, label_columns, group_column, split_column, caption_column, mask_column, key_column: columns of
            the table; where none is given, those with an obvious name serve, but for group and key, which are
            decisions.
        label_separator: between several classes in one cell.
        follow_symlinks: whether links that leave the source folder are followed.
        fields: sidecar fields beyond ``json``, ``txt``, ``npy`` and ``mask.png``, lower case.
    """

    table: Path | None = None
    path_column: str | None = None
    label_columns: tuple[str, ...] = ()
    group_column: str | None = None
    split_column: str | None = None
    caption_column: str | None = None
    mask_column: str | None = None
    key_column: str | None = None
    label_separator: str | None = None
    follow_symlinks: bool = False
    fields: Mapping[str, Literal["required", "optional"]] = field(default_factory=dict)

    @property
    def named_columns(self) -> list[str]:
        """Every column that is named."""
        single = (
            self.path_column,
            self.group_column,
            self.split_column,
            self.caption_column,
            self.mask_column,
            self.key_column,
        )
        return [*(name for name in single if name is not None), *self.label_columns]
