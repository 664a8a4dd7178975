"""The staging folder of an unfinished build: the frozen plan, and which shards are done.

OUT/.staging/
  lock              held by the build and its workers
  plan.arrow        one record batch per shard task
  plan.json         what is the same for all tasks, and what the plan was made from; written last
  SHARD.tar .rows .hist   a shard in the making
  SHARD.done.json   a published shard's result
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shardforge.compile.annotations import ORIGINAL, TYPE
from shardforge.compile.planned_item import PlannedItem, PlannedShard, SampleSettings
from shardforge.errors import DamagedError
from shardforge.recipe import Recipe
from shardforge.shards.catalogue import Reason
from shardforge.shards.layout import STAGING, parquet_path, tar_path
from shardforge.shards.manifest import FieldInfo, ImageField, LabelInfo
from shardforge.shards.metadata import DICOM, schema
from shardforge.storage import write_durably

if TYPE_CHECKING:
    # Planning is nothing that worker processes should have to load.
    from shardforge.compile.plan import Draft


@dataclass(frozen=True)
class ShardResult:
    """What a finished shard task reports.

    Attributes:
        bytes, sha256: of the tar.
        source_bytes: of the main source files that were read.
        reasons: reason → failed items.
        filtered_reasons: reason → filtered items.
        histogram: counts [channels][256], or wider for 16 bits.
    """

    name: str
    samples: int
    failed: int
    filtered: int
    skipped: int
    bytes: int
    sha256: str
    parquet_bytes: int
    parquet_sha256: str
    source_bytes: int
    reasons: dict[str, int]
    filtered_reasons: dict[str, int]
    histogram: list[list[int]]


@dataclass(frozen=True)
class PlanRecord:
    """What ``plan.json`` says.

    Attributes:
        recipe: its identity, as plain values.
        user_columns: names of the user's columns in ``plan.arrow``.
        annotations: ``boxes`` or ``keypoints`` → the column for them; the user's own has ``_original`` appended.
        inputs, times: digests of the items and of their modification times.
        groups: frozen groups of a stratified split.
        privacy: as in the manifest.
        versions: of the libraries that make the bytes.
    """

    recipe: dict[str, Any]
    fields: dict[str, FieldInfo]
    label: LabelInfo
    classes: dict[str, int]
    image_field: ImageField
    user_columns: list[str]
    annotations: dict[str, str]
    shards: list[PlannedShard]
    inputs: str
    times: str
    items: int
    groups: dict[str, list[str]]
    privacy: dict[str, str]
    versions: dict[str, str]

    @cached_property
    def settings(self) -> SampleSettings:
        return SampleSettings(
            Recipe.model_validate(self.recipe), self.fields, self.label, self.image_field, self.annotations
        )

    def shards_by_split(self) -> dict[str, list[str]]:
        """Split → names of its shards, both in the plan's order."""
        found: dict[str, list[str]] = {}
        for shard in self.shards:
            found.setdefault(shard.split, []).append(shard.name)
        return found

    @property
    def channels(self) -> int:
        return self.settings.recipe.stored_channels

    @property
    def depth(self) -> int:
        """Bits per stored value; modality values are counted as 16-bit ones."""
        return 16 if self.settings.recipe.modality_values else self.settings.recipe.depth


class Staging:
    """Reads and writes a staging folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @staticmethod
    def of(out: Path) -> Staging:
        return Staging(out / STAGING)

    @property
    def has_plan(self) -> bool:
        return (self.folder / "plan.json").is_file()

    def write_plan(self, draft: Draft, shards: Sequence[PlannedShard], versions: Mapping[str, str]) -> PlanRecord:
        """Freezes a plan."""
        record = PlanRecord(
            recipe=draft.identity,
            fields=draft.fields,
            label=draft.label,
            classes=draft.classes,
            image_field=draft.image_field,
            user_columns=draft.user.names,
            annotations=draft.annotations,
            shards=list(shards),
            inputs=draft.inputs.content,
            times=draft.inputs.times,
            items=draft.rows.num_rows,
            groups={split: list(digests) for split, digests in draft.groups.items()},
            privacy=draft.privacy,
            versions=dict(versions),
        )
        with pa.OSFile(str(self.folder / "plan.arrow"), "wb") as file:
            writer = None
            for shard in shards:
                batch = _shard_rows(draft, shard)
                writer = writer or pa.ipc.new_file(file, batch.schema)
                writer.write_batch(batch)
            if writer is not None:
                writer.close()
        write_durably(self.folder / "plan.json", json.dumps(asdict(record), default=str).encode())
        return record

    def read_plan(self) -> PlanRecord:
        """The frozen plan.

        Raises:
            DamagedError: it cannot be understood.
        """
        path = self.folder / "plan.json"
        try:
            return _parse_plan(path, path.stat().st_mtime_ns)
        except (ValueError, TypeError, KeyError) as error:
            raise DamagedError(
                f"the plan of the unfinished build cannot be read ({error})",
                where=path,
                todo="Use --overwrite to start anew.",
            ) from None

    def batch(self, number: int) -> pa.RecordBatch:
        """The rows of one shard task, mapped."""
        return pa.ipc.open_file(pa.memory_map(str(self.folder / "plan.arrow"))).get_batch(number)

    def rows(self) -> pa.Table:
        """The whole plan, mapped."""
        return pa.ipc.open_file(pa.memory_map(str(self.folder / "plan.arrow"))).read_all()

    def done_path(self, shard: str) -> Path:
        return self.folder / f"{shard}.done.json"

    def write_done(self, result: ShardResult) -> None:
        write_durably(self.done_path(result.name), json.dumps(asdict(result)).encode())

    def clear_unfinished(self) -> None:
        """Removes shards in the making; after a crash of the machine nobody vouches for them."""
        for path in self.folder.iterdir():
            if path.suffix in (".rows", ".hist", ".tar", ".parquet", ".mark"):
                path.unlink()

    def read_done(self, shard: str, out: Path) -> ShardResult | None:
        """The result of a published shard, or None when it is not (or no longer) there as it was published."""
        try:
            result = ShardResult(**json.loads(self.done_path(shard).read_bytes()))
            sizes = (tar_path(out, shard).stat().st_size, parquet_path(out, shard).stat().st_size)
        except (OSError, ValueError, TypeError):
            return None
        return result if sizes == (result.bytes, result.parquet_bytes) else None


def _shard_rows(draft: Draft, shard: PlannedShard) -> pa.RecordBatch:
    """A shard's part of the plan as one batch, with its ``shard`` and ``position`` columns."""
    part = draft.rows.slice(shard.start, shard.stop - shard.start)
    part = part.append_column("shard", pa.array([shard.name] * part.num_rows, pa.string()))
    part = part.append_column("position", pa.array(range(part.num_rows), pa.int32()))
    return part.combine_chunks().to_batches()[0]


@lru_cache(maxsize=2)
def _parse_plan(path: Path, mtime_ns: int) -> PlanRecord:
    """Cached, because a worker needs the same record for every shard; ``mtime_ns`` tells a new plan from an old."""
    content = json.loads(path.read_bytes())
    content["fields"] = {name: FieldInfo(**info) for name, info in content["fields"].items()}
    content["label"] = LabelInfo(**content["label"])
    content["shards"] = [PlannedShard(**shard) for shard in content["shards"]]
    return PlanRecord(**content)


def planned_items(record: PlanRecord, batch: pa.RecordBatch) -> list[PlannedItem]:
    """The rows of a shard task as items."""
    names = ["key", "source", "frame", "frames", "label", "label_name", "caption", "detail"]
    names += ["planned_sha256", "duplicate_of", "crop", "cross_check"]
    frames = ["dicom_frames"] if "dicom_frames" in record.user_columns else []
    cells = {role: f"{column}{ORIGINAL}" for role, column in record.annotations.items()}
    rows = pa.Table.from_batches([batch]).select([*names, *frames, "files", "problem", *cells.values()]).to_pylist()
    return [
        PlannedItem(
            **{name: row[name] for name in names},
            files={file["field"]: (file["path"], file["size"]) for file in row["files"]},
            problem=None if row["problem"] is None else Reason(row["problem"]),
            annotations={role: row[column] for role, column in cells.items()},
            slice_frames=tuple(row.get("dicom_frames") or ()),
        )
        for row in rows
    ]


def parquet_schema(record: PlanRecord, batch: pa.RecordBatch) -> pa.Schema:
    """The schema of the dataset's parquet files; ``batch`` tells the types of the user's columns."""
    placed = {f"{column}{ORIGINAL}": pa.field(column, TYPE) for column in record.annotations.values()}
    user = []
    for name in record.user_columns:
        user += [placed[name]] if name in placed else []
        user.append(batch.schema.field(name))
    if record.settings.recipe.kind == "dicom":
        user += [pa.field(name, kind) for name, kind in DICOM.items() if name not in record.user_columns]
    return schema(list(record.fields), record.label, pa.schema(user))
