"""Makes one sample of one DICOM item.

The order is: padding mask, modality transformation, padding filled, crop, one resampling, rounding, windows,
polarity, padding black, quantisation. Values are resampled before any window is applied (PS3.4 N.2 leaves it open):
that serves any number of windows, and a window applied in training gives what it gives here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from shardforge.codecs.dicom.read import DicomFile, read_dicom
from shardforge.codecs.encode import encode, encode_array
from shardforge.codecs.file_bytes import Bytes, FileBytes
from shardforge.codecs.pixel_hash import pixel_hash
from shardforge.compile.annotations import place_annotations
from shardforge.compile.count_levels import count_levels
from shardforge.compile.dicom.columns import file_columns, frame_columns, window_columns
from shardforge.compile.dicom.cut import find_cut
from shardforge.compile.dicom.frame import Frame, read_frame
from shardforge.compile.dicom.masks import SegmentationMasks
from shardforge.compile.dicom.opened import Opened, OpenedFiles, is_shared
from shardforge.compile.dicom.picture import Shown, show, with_channels
from shardforge.compile.dicom.placement import place_dicom
from shardforge.compile.dicom.spares import SliceCopies, first_readable
from shardforge.compile.dicom.volume import make_volume
from shardforge.compile.geometry_filter import judge_geometry
from shardforge.compile.inputs import sidecar_digest
from shardforge.compile.planned_item import PlannedItem, SampleSettings
from shardforge.compile.sample import Sample
from shardforge.compile.sidecars import sidecar_members
from shardforge.compile.source_file import SourceReader
from shardforge.dicom.modality import ModalityTables
from shardforge.dicom.privacy import IdentityKey
from shardforge.dicom.voi import VoiTables
from shardforge.errors import SampleError
from shardforge.geometry.resize import Placement
from shardforge.shards.catalogue import Flag, Reason, Status, status_of
from shardforge.shards.metadata import Outcome
from shardforge.shards.statistics import Histogram


class DicomSampleMaker:
    """Makes samples one after the other, keeping look-up tables and open archives. Not for several threads.

    Args:
        root: the source folder.
        key: hides the digests of source files; None: they are stored as they are.
    """

    def __init__(self, settings: SampleSettings, root: Path, key: IdentityKey | None) -> None:
        self._settings, self._recipe, self._key = settings, settings.recipe, key
        self._modality, self._voi = ModalityTables(), VoiTables()
        self._sources = SourceReader(root, settings.limits)
        self._masks = SegmentationMasks(settings.limits)
        self._opened = OpenedFiles()

    def __call__(self, item: PlannedItem) -> Sample:
        """Makes a sample of an item. Whatever is wrong with the item becomes a failed outcome, what the recipe
        excludes a filtered one, what is no image a skipped one.

        Raises:
            MemoryError: the item needs more memory than the worker may use.
        """
        known = Outcome(Status.FAILED, duplicate_of=item.duplicate_of)
        try:
            if item.problem is not None:
                raise SampleError(item.problem, item.detail or "")
            opened = self._opened.get(item)
            raw, plain = self._read(item, opened)
            digests = {name: self._concealed(digest) for name, digest in plain.items()}
            main, size = digests.pop("image"), len(raw["image"])
            known = known.but(source_bytes=size, source_sha256=main, sidecar_sha256=sidecar_digest(digests))
            if item.planned_sha256 not in (None, plain["image"]):
                raise SampleError(Reason.CHANGED, "other bytes than when files were compared")
            file = first_readable(raw, "image", self._settings.limits)[0] if opened is None else opened.file
            if opened is None:
                self._opened.keep(item, Opened(raw["image"], plain["image"], file))
            known = known.but(
                original_width=file.format.columns,
                original_height=file.format.rows,
                original_format="dicom",
                n_frames=file.frames,
                flags=file.flags,
            )
            judge_geometry(file.format.columns, file.format.rows, self._recipe.filters)
            make = self._volume if self._recipe.dicom.unit == "volume" else self._image
            sample = make(item, raw, file, known)
            if isinstance(raw["image"], FileBytes) and not raw["image"].unchanged:
                raise SampleError(Reason.CHANGED, "written into while it was read")
            return sample
        except SampleError as error:
            return Sample(known.but(status=status_of(error.reason), reason=error.reason), detail=error.detail)

    def _read(self, item: PlannedItem, opened: Opened | None) -> tuple[Mapping[str, Bytes], dict[str, str]]:
        """An item's files and their sha256 in hex, by field."""
        if opened is not None:
            return {"image": opened.data}, {"image": opened.digest}
        if is_shared(item):
            data = self._sources.open(*item.files["image"])
            return {"image": data}, {"image": self._opened.digest(item, data)}
        raw = {name: self._sources.read(path, size) for name, (path, size) in item.files.items()}
        return raw, {name: hashlib.sha256(data).hexdigest() for name, data in raw.items()}

    def _concealed(self, plain: str) -> str:
        return plain if self._key is None else self._key.hash_identifier("source_sha256", plain)

    def _frame(self, file: DicomFile, number: int, item: PlannedItem) -> Frame:
        return read_frame(file, number, self._recipe.dicom, self._modality, checked=item.cross_check)

    def _image(self, item: PlannedItem, raw: Mapping[str, Bytes], file: DicomFile, known: Outcome) -> Sample:
        recipe = self._recipe
        frame = self._frame(file, item.frame, item)
        known = known.but(flags=frame.flags, decoder=frame.decoder)
        height, width = frame.values.shape[:2]
        cut = find_cut(item.crop, file, frame, self._voi)
        placement = place_dicom(width, height, frame.meaning.aspect, cut.box, recipe)
        annotations = place_annotations(item.annotations, recipe, placement, 1)
        named = {self._settings.annotations[role]: value for role, value in annotations.items()}
        shown = [self._show(one, placement, file.modality) for one in self._stacked(item, raw, frame)]
        pixels = with_channels(shown, recipe.stored_channels)
        noticed: list[Flag] = []
        mask = partial(
            self._masks.member,
            image=file,
            number=item.frame,
            meaning=frame.meaning,
            placement=placement,
            noticed=noticed,
        )
        members = sidecar_members(item, _beside(raw), self._settings, named, mask)
        payload = self._encode(pixels)
        outcome = _placed(known, placement, recipe.resampler).but(
            annotations=named,
            flags=tuple(dict.fromkeys([*known.flags, *(flag for one in shown for flag in one.flags), *noticed])),
            dicom={
                **file_columns(file),
                **frame_columns(frame),
                **window_columns(shown),
                "dicom_chest_wall": cut.chest_wall,
            },
        )
        counts = shown[0].counts if len(shown) == 1 else None
        return self._sample(outcome, pixels, payload, members, counts)

    def _stacked(self, item: PlannedItem, raw: Mapping[str, Bytes], centre: Frame) -> list[Frame]:
        """The frames whose channels follow each other: the item's own, or it and its neighbours in order of place."""
        if self._recipe.dicom.unit != "stack":
            return [centre]
        frames = []
        for name, number in zip(_in_place(raw), item.slice_frames, strict=True):
            if name == "image":
                frames.append(centre)
                continue
            found = self._frame(read_dicom(raw[name], self._settings.limits, whole=False), number, item)
            if found.values.shape != centre.values.shape:
                raise SampleError(Reason.BAD_GEOMETRY, "a neighbour has another size")
            frames.append(found)
        return frames

    def _show(self, frame: Frame, placement: Placement, modality: str) -> Shown:
        return show(frame, placement, self._recipe, modality, self._voi)

    def _encode(self, pixels: NDArray[Any]) -> bytes:
        if self._settings.image_field == "npy":
            return encode_array(pixels)
        recipe = self._recipe
        return encode(
            pixels, format=self._settings.image_field, quality=recipe.quality, subsampling=recipe.subsampling
        )

    def _volume(self, item: PlannedItem, raw: Mapping[str, Bytes], file: DicomFile, known: Outcome) -> Sample:
        volume = make_volume(self._places(item, raw), self._recipe, self._modality, self._voi)
        _, height, width = volume.values.shape
        resampled = (height, width) != (file.format.rows, file.format.columns)
        outcome = known.but(
            decoder=volume.first.decoder,
            flags=volume.flags,
            resampler="triangle" if resampled else "none",
            scale_x=width / file.format.columns,
            scale_y=height / file.format.rows,
            offset_x=0.0,
            offset_y=0.0,
            dicom={
                **file_columns(file),
                **frame_columns(volume.first),
                **window_columns([volume.shown]),
                **volume.columns,
            },
        )
        members = sidecar_members(item, _beside(raw), self._settings, {}, _no_mask)
        return self._sample(outcome, volume.values, encode_array(volume.values), members)

    def _places(self, item: PlannedItem, raw: Mapping[str, Bytes]) -> list[SliceCopies]:
        """Every slice of a series, in order of place."""
        names = _in_place(raw)
        copies = {name: first_readable(raw, name, self._settings.limits) for name in names}
        frames = item.slice_frames
        placed = zip(names * len(frames) if len(names) == 1 else names, frames, strict=True)
        return [
            SliceCopies(*copies[name], number, self._settings.limits, item.cross_check) for name, number in placed
        ]

    def _sample(
        self,
        outcome: Outcome,
        pixels: NDArray[Any],
        payload: bytes,
        members: Mapping[str, bytes],
        counts: Histogram | None = None,
    ) -> Sample:
        volume = self._recipe.dicom.unit == "volume"
        outcome = outcome.but(
            status=Status.SUCCESS,
            width=pixels.shape[2 if volume else 1],
            height=pixels.shape[1 if volume else 0],
            channels=1 if volume else pixels.shape[2],
            bytes=len(payload),
            sha256=hashlib.sha256(payload).hexdigest(),
            pixels_hash=pixel_hash(pixels),
        )
        if counts is None:
            counts = count_levels(pixels.reshape(pixels.shape[0], -1, 1) if volume else pixels)
        return Sample(outcome, {self._settings.image_field: payload, **members}, counts)


def _beside(raw: Mapping[str, Bytes]) -> dict[str, bytes]:
    """The files that are read whole: all but one with frames for other samples too, which has none beside it."""
    return {name: data for name, data in raw.items() if isinstance(data, bytes)}


def _in_place(raw: Mapping[str, Bytes]) -> list[str]:
    """The fields that are slices of a stack or volume, in order of place: ``slice.-1``, ``image``, ``slice.+1``."""
    places = {name: int(name.removeprefix("slice.")) for name in raw if name.startswith("slice.")}
    return sorted([*places, "image"], key=lambda name: places.get(name, 0))


def _placed(known: Outcome, placement: Placement, resampler: str) -> Outcome:
    return known.but(
        scale_x=placement.scale_x,
        scale_y=placement.scale_y,
        offset_x=placement.offset_x,
        offset_y=placement.offset_y,
        resampler="none" if placement.identity else resampler,
    )


def _no_mask(data: bytes) -> bytes:
    raise SampleError(Reason.UNSUPPORTED, "masks of volumes")
