import hashlib
import json
import math
from pathlib import Path

import numpy as np
import pydicom
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardforge.dicom.series import Slice, SliceGroup, group_slices

AXIAL = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)


def different(_: int) -> bytes | None:
    return None


def stack(positions: list[tuple[float, float, float]], **more: object) -> list[Slice]:
    return [
        Slice(f"f{i}", "S", sop=f"1.{i}", position=position, **{"orientation": AXIAL, "instance": i, **more})
        for i, position in enumerate(positions)
    ]


def along_z(*z: float, **more: object) -> list[Slice]:
    return stack([(0.0, 0.0, value) for value in z], **more)


def only(slices: list[Slice]) -> SliceGroup:
    (group,) = group_slices(slices, different)
    return group


def read_slices(folder: Path) -> tuple[list[str], list[Slice], list[bytes]]:
    names = sorted(path.name for path in folder.iterdir())
    slices, digests = [], []
    for name in names:
        ds = pydicom.dcmread(folder / name)
        orientation, position, spacing = ds.ImageOrientationPatient, ds.ImagePositionPatient, ds.get("PixelSpacing")
        slices.append(
            Slice(
                name,
                ds.SeriesInstanceUID,
                sop=ds.SOPInstanceUID,
                position=tuple(map(float, position)),
                orientation=tuple(map(float, orientation)),
                rows=ds.Rows,
                columns=ds.Columns,
                spacing=None if spacing is None else tuple(map(float, spacing)),
                image_type=tuple(ds.get("ImageType", ())),
                instance=int(ds.InstanceNumber),
                acquisition=ds.get("AcquisitionNumber"),
            )
        )
        digests.append(hashlib.sha256(ds.PixelData).digest())
    return names, slices, digests


@pytest.mark.parametrize("name", ["ct", "made_flip", "made_gap", "made_pet", "made_shuffled", "made_tilt"])
def test_corpus_series_have_the_order_and_figures_the_corpus_states(corpus: Path, name: str) -> None:
    folder = corpus / f"dicom/series_{name}"
    names, slices, digests = read_slices(folder)
    expected = {
        Path(row["path"]).name: row["expect"]["series"]
        for row in map(json.loads, (corpus / "expected.jsonl").open())
        if row["path"].startswith(f"dicom/series_{name}/")
    }
    (group,) = group_slices(slices, digests.__getitem__)
    found, one = group.finding, expected[names[0]]
    order = [expected[names[i]]["index_by_position"] for i in group.order]
    # The corpus counts this one by ascending z, against its normal.
    assert order == sorted(order, reverse=name == "made_flip")
    assert found.n_slices == len(order) == one["n_slices"]
    assert found.sorted_by == "position"
    assert found.missing == one.get("missing", 0)
    assert found.regular == one.get("regular", True)
    assert found.tilt_deg == pytest.approx(one.get("tilt_deg", 0), abs=0.01)
    assert found.tilted == ("tilt_deg" in one)
    assert found.spacing_mm == pytest.approx(one.get("spacing_mm", 2.0), abs=1e-3)
    if "distance_along_normal_mm" in one:
        assert group.distances == pytest.approx(
            [expected[names[i]]["distance_along_normal_mm"] for i in group.order], abs=1e-3
        )


def test_duplicates_other_volumes_and_localizers_are_told_apart(corpus: Path) -> None:
    names, slices, digests = read_slices(corpus / "dicom/series_made_dup_localizer")
    asked: list[int] = []

    def digest(index: int) -> bytes:
        asked.append(index)
        return digests[index]

    axial, other, localizer = group_slices(slices, digest)
    assert [names[i] for i in axial.order] == [f"f0{i}.dcm" for i in (3, 6, 1, 4, 0, 5, 7, 2)]
    assert {names[i]: names[j] for i, j in axial.duplicates.items()} == {
        "f90_same_pixels.dcm": "f00.dcm",
        "f91_same_sop_uid.dcm": "f01.dcm",
    }
    assert (axial.finding.n_slices, axial.finding.duplicates, axial.finding.regular) == (8, 2, False)
    assert [names[i] for i in other.order] == ["f92_same_pos_other_pixels.dcm"]
    assert axial.finding.same_position
    assert other.finding.same_position
    assert [names[i] for i in localizer.order] == ["f93_localizer.dcm"]
    assert localizer.finding.localizer
    assert not axial.finding.localizer
    assert axial.finding.mixed_orientation
    assert localizer.finding.mixed_orientation
    assert {names[i][:3] for i in asked} <= {"f00", "f90", "f01", "f91", "f02", "f92"}, "only suspects are read"


@pytest.mark.parametrize(
    ("count", "step", "shear", "degrees"),
    [(54, 2.371, 0.3346, 18.5), (58, 2.397, 0.2962, 16.5), (140, 1.0, 0.0, 0.0)],
)
def test_measured_scanners_give_their_tilt(count: int, step: float, shear: float, degrees: float) -> None:
    # dcm_qa_ct, Philips: sin 18.5 = 0.317 of the way, so tan 18.5 = 0.3346 along the normal.
    found = only(stack([(0.0, -shear * step * i, step * i) for i in range(count)])).finding
    assert found.regular
    assert found.n_slices == count
    assert found.spacing_mm == pytest.approx(step)
    assert found.tilt_deg == pytest.approx(degrees, abs=0.01)
    assert found.tilted == (degrees > 0)


def test_irregular_and_tilted_is_both() -> None:
    steps = np.linspace(1.081, 6.999, 27)
    z = np.concatenate([[0.0], np.cumsum(steps)])
    shear = math.tan(math.radians(18.5))
    found = only(stack([(0.0, shear * value, value) for value in z])).finding
    assert set(found.words) == {"irregular", "tilted"}
    assert found.tilt_deg == pytest.approx(18.5)
    assert found.missing == 0, "uneven distances are no holes in a grid"


def test_one_percent_of_the_spacing_is_still_regular() -> None:
    assert only(along_z(0, 1, 2, 3.009, 4)).finding.regular
    assert not only(along_z(0, 1, 2, 3.02, 4)).finding.regular


def test_several_missing_slices_are_counted() -> None:
    found = only(along_z(0, 2.5, 5, 12.5, 15, 20, 22.5)).finding
    assert (found.missing, found.spacing_mm, found.words) == (3, 2.5, ("gaps",))


@pytest.mark.parametrize("z", [(0, 1, 2, 3.4, 4.4), (0, 1, 2, 4.3, 5.3)])
def test_distances_that_are_no_whole_multiples_are_no_missing_slices(z: tuple[float, ...]) -> None:
    found = only(along_z(*z)).finding
    assert (found.missing, found.words) == (0, ("irregular",))


def test_a_slice_moved_within_its_plane_makes_a_stack_irregular() -> None:
    found = only(stack([(0.0, 0.0, 0.0), (0.0, 0.0, 1.0), (5.0, 0.0, 2.0), (0.0, 0.0, 3.0)])).finding
    assert found.shift_mm == pytest.approx(5)
    assert found.words == ("irregular",)


def test_acquisitions_counted_along_one_stack_stay_together() -> None:
    # As GE scanners do: three slices an acquisition.
    slices = [
        Slice(f"{i}", "S", sop=f"1.{i}", position=(0.0, 0.0, 2.5 * i), orientation=AXIAL, acquisition=1 + i // 3)
        for i in range(9)
    ]
    assert only(slices).finding.words == ()


def test_interleaved_acquisitions_of_one_grid_stay_together() -> None:
    slices = [
        Slice(f"{i}", "S", position=(0.0, 0.0, float(i)), orientation=AXIAL, acquisition=1 + i % 2) for i in range(10)
    ]
    assert only(slices).finding.n_slices == 10


@pytest.mark.parametrize("number", ["echo", "temporal", "b_value", "acquisition"])
def test_volumes_at_the_same_positions_are_told_apart_by_their_numbers(number: str) -> None:
    slices = [
        Slice(f"{k}-{i}", "S", f"1.{k}.{i}", position=(0.0, 0.0, float(i)), orientation=AXIAL, **{number: k})
        for i in range(5)
        for k in (1, 2, 3)
    ]
    groups = group_slices(slices, lambda _: b"all black")
    assert [[slices[i].name for i in group.order] for group in groups] == [
        [f"{k}-{i}" for i in range(5)] for k in (1, 2, 3)
    ]
    assert all(group.finding.words == () for group in groups), "equal pixels of other volumes are no duplicates"


def test_overlapping_scans_of_different_grids_are_two_volumes() -> None:
    first = [(0.0, 0.0, float(i)) for i in range(6)]
    second = [(0.0, 0.0, 0.3 + i) for i in range(6)]
    slices = [
        Slice(f"{k}-{i}", "S", position=p, orientation=AXIAL, acquisition=k)
        for k, positions in enumerate((first, second))
        for i, p in enumerate(positions)
    ]
    groups = group_slices(slices, different)
    assert [group.finding.words for group in groups] == [(), ()]


def test_image_type_matrix_and_spacing_separate() -> None:
    slices = [
        *along_z(0, 1),
        *along_z(0, 1, image_type=("DERIVED", "SECONDARY", "MPR")),
        *along_z(0, 1, rows=5),
        *along_z(0, 1, spacing=(0.5, 0.5)),
    ]
    assert [group.finding.n_slices for group in group_slices(slices, different)] == [2, 2, 2, 2]


def test_rounded_direction_cosines_are_one_orientation() -> None:
    slices = along_z(0, 1, 2)
    slices[1] = Slice("r", "S", position=(0.0, 0.0, 1.0), orientation=(1.0, 0.0004, 0.0, -0.0004, 1.0, 0.0))
    assert only(slices).finding.n_slices == 3


def test_few_slices_across_many_are_a_localizer() -> None:
    sagittal = Slice("x", "S", position=(0.0, 0.0, 0.0), orientation=(0.0, 1.0, 0.0, 0.0, 0.0, -1.0))
    many, few = group_slices([sagittal, *along_z(*range(8))], different)
    assert many.finding.words == ("mixed_orientation",)
    assert few.finding.words == ("localizer", "mixed_orientation")


def test_three_planes_of_one_slice_are_no_localizer_of_each_other() -> None:
    planes = [AXIAL, (0.0, 1.0, 0.0, 0.0, 0.0, -1.0), (1.0, 0.0, 0.0, 0.0, 0.0, -1.0)]
    slices = [Slice(f"{i}", "S", position=(0.0, 0.0, 0.0), orientation=plane) for i, plane in enumerate(planes)]
    assert [group.finding.words for group in group_slices(slices, different)] == [("mixed_orientation",)] * 3


def test_without_positions_instance_numbers_order_and_say_so() -> None:
    slices = [Slice(f"{9 - i}", "S", f"1.{i}", instance=i, spacing_between_slices=3.0) for i in (4, 2, 3, 1)]
    group = only(slices)
    assert [slices[i].instance for i in group.order] == [1, 2, 3, 4]
    assert group.finding.sorted_by == "instance_number"
    assert group.distances is None
    assert (group.finding.spacing_mm, group.finding.spacing_from) == (3.0, "spacing_between_slices")
    assert not group.finding.regular
    assert group.finding.words == ("irregular", "no_positions")


def test_frames_of_a_cine_loop_keep_their_order() -> None:
    slices = [Slice("a", "S", "1.1", frame=frame, instance=7) for frame in (2, 0, 1)]
    group = only(slices)
    assert [slices[i].frame for i in group.order] == [0, 1, 2]
    assert group.finding.sorted_by == "instance_number"


def test_no_spacing_is_made_up() -> None:
    found = only([Slice("a", "S")]).finding
    assert found.spacing_mm is None
    assert found.spacing_from is None
    assert found.regular


def test_orientation_that_is_no_direction_counts_as_none() -> None:
    found = only(along_z(0, 1, orientation=(0.0,) * 6)).finding
    assert found.sorted_by == "instance_number"
    assert found.normal is None


vectors = st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda v: np.linalg.norm(v) > 0.2)


@settings(max_examples=80, deadline=None)
@given(row=vectors, other=vectors, steps=st.lists(st.floats(0.3, 9), min_size=1, max_size=12), data=st.data())
def test_any_order_of_files_gives_the_same_stack(
    row: tuple[float, ...], other: tuple[float, ...], steps: list[float], data: st.DataObject
) -> None:
    r = np.array(row) / np.linalg.norm(row)
    normal = np.cross(r, other)
    if np.linalg.norm(normal) < 0.1:
        return
    normal /= np.linalg.norm(normal)
    column = np.cross(normal, r)
    distances = np.cumsum([0.0, *steps])
    positions = [tuple(map(float, 7 * r - 3 * column + d * normal)) for d in distances]
    slices = stack(positions, orientation=(*map(float, r), *map(float, column)))
    shuffled = data.draw(st.permutations(slices))
    straight, mixed = only(slices), only(shuffled)
    assert [shuffled[i] for i in mixed.order] == [slices[i] for i in straight.order] == slices
    assert mixed.finding == straight.finding
    assert mixed.distances == straight.distances
    assert np.diff(mixed.distances or ()) == pytest.approx(steps)
    # Seen from behind, the same stack runs the other way.
    flipped = [
        Slice(one.name, "S", one.sop, position=one.position, orientation=(*map(float, -r), *map(float, column)))
        for one in shuffled
    ]
    assert [flipped[i].name for i in only(flipped).order] == [one.name for one in reversed(slices)]


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(12)))
def test_duplicates_and_parts_do_not_depend_on_the_order_of_files(order: list[int]) -> None:
    slices = [
        Slice(f"{i}", "S", sop=f"1.{i % 10}", position=(0.0, 0.0, float(i % 4)), orientation=AXIAL, instance=i % 5)
        for i in range(12)
    ]
    pixels = [b"%d" % (i % 3) for i in range(12)]

    def told(permutation: list[int]) -> object:
        groups = group_slices([slices[i] for i in permutation], lambda i: pixels[permutation[i]])
        return [
            (
                [slices[permutation[i]].name for i in group.order],
                {slices[permutation[i]].name: slices[permutation[j]].name for i, j in group.duplicates.items()},
                group.finding,
            )
            for group in groups
        ]

    assert told(order) == told(list(range(12)))
