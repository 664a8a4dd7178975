"""Slices of a volume that are there more than once, with different pixels: the first copy that decodes counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from shardforge.codecs.dicom.meaning import frame_meaning
from shardforge.codecs.dicom.read import DicomFile, read_dicom
from shardforge.codecs.file_bytes import Bytes
from shardforge.codecs.limits import Limits
from shardforge.compile.dicom.frame import Frame, read_frame
from shardforge.dicom.modality import ModalityTables, modality_dtype
from shardforge.errors import SampleError
from shardforge.sections import DicomOptions
from shardforge.shards.catalogue import Flag, Reason


@dataclass(frozen=True)
class SliceCopies:
    """One slice of a volume.

    Attributes:
        file: the first copy whose header can be read.
        spares: the bytes of all copies after it.
        late: ``file`` is not the first copy itself.
        number: of the frame, in each of them.
        limits: for reading spares.
        checked: compare with a second decoder.
    """

    file: DicomFile
    spares: tuple[Bytes, ...]
    late: bool
    number: int
    limits: Limits
    checked: bool = False

    def decode(self, options: DicomOptions, tables: ModalityTables) -> Frame:
        """The frame of the first copy that can be decoded, flagged ``spare_slice`` where that is another one.

        Raises:
            SampleError: what is wrong with the first copy, where no other one of the same type is whole;
                ``decoders_disagree``.
        """
        try:
            frame = read_frame(self.file, self.number, options, tables, checked=self.checked)
            return _flagged(frame) if self.late else frame
        except SampleError as error:
            if error.reason is Reason.DECODERS_DISAGREE:
                raise
            for found in self._others(options, tables):
                return _flagged(found)
            raise error from None

    def _others(self, options: DicomOptions, tables: ModalityTables) -> Iterator[Frame]:
        meaning, _ = frame_meaning(self.file, self.number)
        of = self.file.format
        planned = (modality_dtype(of, meaning), (of.rows, of.columns))
        for data in self.spares:
            try:
                found = read_frame(
                    read_dicom(data, self.limits, whole=False), self.number, options, tables, checked=self.checked
                )
            except SampleError:
                continue
            # The volume is planned for the type and shape that the first copy's header promises.
            if (found.values.dtype, found.values.shape) == planned:
                yield found


def first_readable(raw: Mapping[str, Bytes], name: str, limits: Limits) -> tuple[DicomFile, tuple[Bytes, ...], bool]:
    """The file of a field, or its first spare whose header can be read.

    Args:
        raw: field → bytes; the spares of ``slice.003`` are ``spare.003.1``, …, those of ``image`` ``spare.000.1``, ….

    Returns:
        The file, the spares after it, and whether it is a spare itself.

    Raises:
        SampleError: what is wrong with the field's own file, where no spare is better.
    """
    place = name.removeprefix("slice.")
    spares = {
        int(field.rpartition(".")[2]): data
        for field, data in raw.items()
        if field.startswith("spare.") and _is_of(field.split(".")[1], place)
    }
    copies = (raw[name], *(spares[number] for number in sorted(spares)))
    problem: SampleError | None = None
    for number, data in enumerate(copies):
        try:
            return read_dicom(data, limits, whole=False), copies[number + 1 :], number > 0
        except SampleError as error:
            problem = problem or error
    assert problem is not None
    raise problem


def _is_of(spare: str, place: str) -> bool:
    return int(spare) == 0 if place == "image" else spare == place


def _flagged(frame: Frame) -> Frame:
    return replace(frame, flags=(*frame.flags, Flag.SPARE_SLICE))
