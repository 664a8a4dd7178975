"""Tables as RSNA, VinDr and CheXpert publish them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shardforge.compile.labels import label_items
from shardforge.errors import UsageError
from shardforge.recipe import Recipe
from shardforge.shards.catalogue import Reason
from shardforge.sources.dicom_labels.ids import SliceIds
from shardforge.sources.dicom_labels.join import LabelJoin, join_labels
from shardforge.sources.dicom_labels.options import JoinOptions, Uncertain
from shardforge.sources.item import Item
from shardforge.sources.options import SourceOptions

VINDR = """image_id,class_name,class_id,rad_id,x_min,y_min,x_max,y_max
aa,No finding,14,R11,,,,
aa,No finding,14,R7,,,,
bb,Cardiomegaly,3,R10,691.0,1375.0,1653.0,1831.0
bb,Aortic enlargement,0,R8,1264.0,743.0,1611.0,1019.0
bb,Cardiomegaly,3,R9,690.0,1370.0,1650.0,1830.0
"""
PNEUMONIA = """patientId,x,y,width,height,Target
p1,,,,,0
p2,264.0,152.0,213.0,379.0,1
p2,562.0,152.0,256.0,453.0,1
"""
HEMORRHAGE = """ID,Label
ID_12cadc6af_epidural,0
ID_12cadc6af_subdural,0
ID_12cadc6af_any,0
ID_38fd7baa0_epidural,0
ID_38fd7baa0_subdural,1
ID_38fd7baa0_any,1
ID_38fd7baa0_any,1
"""
CHEXPERT = """Path,Sex,Age,Frontal/Lateral,AP/PA,No Finding,Cardiomegaly,Edema,Fracture
CheXpert-v1.0-small/train/patient00001/study1/view1_frontal.jpg,Female,68,Frontal,AP,1.0,,,
CheXpert-v1.0-small/train/patient00002/study2/view1_frontal.jpg,Female,87,Frontal,AP,,-1.0,1.0,
CheXpert-v1.0-small/train/patient00002/study1/view2_lateral.jpg,Male,83,Lateral,,,1.0,-1.0,0.0
CheXpert-v1.0-small/train/patient00003/study1/view1_frontal.jpg,Male,41,Frontal,AP,,-1.0,,
"""
FINDINGS = ("No Finding", "Cardiomegaly", "Edema", "Fracture")


def join(tmp_path: Path, text: str, ids: list[SliceIds], options: JoinOptions | None = None) -> LabelJoin:
    path = tmp_path / "train.csv"
    path.write_text(text)
    return join_labels(path, options or JoinOptions(), [(slice_ids,) for slice_ids in ids])


def stems(*names: str) -> list[SliceIds]:
    return [SliceIds(f"1.2.{at}", path=f"train/{name}.dicom") for at, name in enumerate(names)]


def test_vindr_rows_are_boxes_and_their_classes(tmp_path: Path) -> None:
    joined = join(tmp_path, VINDR, stems("aa", "bb", "cc"))
    none, found, absent = joined.items
    assert (none.label, none.columns["boxes"], none.columns["box_labels"]) == (("No finding",), [], [])
    assert found.label == ("Cardiomegaly", "Aortic enlargement")
    assert found.columns["boxes"] == [[691, 1375, 1653, 1831], [1264, 743, 1611, 1019], [690, 1370, 1650, 1830]]
    assert found.columns["box_labels"] == ["Cardiomegaly", "Aortic enlargement", "Cardiomegaly"]
    assert (absent.label, absent.columns["boxes"]) == (None, None)
    assert joined.columns["boxes"] == pa.list_(pa.list_(pa.float64()))
    pa.array([item.columns["boxes"] for item in joined.items], joined.columns["boxes"])


def test_no_finding_has_no_box_even_where_numbers_stand_in_its_place(tmp_path: Path) -> None:
    joined = join(tmp_path, VINDR.replace("R7,,,,", "R7,0,0,1,1"), stems("aa"))
    assert joined.items[0].columns["boxes"] == []


def test_rsna_corners_and_sizes_become_corners(tmp_path: Path) -> None:
    joined = join(tmp_path, PNEUMONIA, [SliceIds("1.1", patient="p1"), SliceIds("1.2", patient="p2")])
    assert [item.label for item in joined.items] == ["0", "1"]
    assert joined.items[0].columns["boxes"] == []
    assert joined.items[1].columns["boxes"] == [[264, 152, 477, 531], [562, 152, 818, 605]]


@pytest.mark.parametrize("cells", ["10,20,30,", "10,20,30,left", "10,20,30,inf"])
def test_half_a_box_fails_its_item(tmp_path: Path, cells: str) -> None:
    joined = join(tmp_path, f"image_id,class_name,x_min,y_min,x_max,y_max\naa,Nodule,{cells}\n", stems("aa"))
    assert joined.items[0].problem is Reason.BAD_ANNOTATION


def test_a_column_that_the_join_makes_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has a column 'boxes'"):
        join(tmp_path, "image_id,label,x_min,y_min,x_max,y_max,boxes\naa,a,1,2,3,4,0\n", stems("aa"))


def test_rsna_rows_of_one_class_make_several_classes(tmp_path: Path) -> None:
    ids = [SliceIds("ID_12cadc6af", path="x/ID_12cadc6af.dcm"), SliceIds("9.9", path="x/ID_38fd7baa0.dcm")]
    joined = join(tmp_path, HEMORRHAGE, ids)
    assert [item.label for item in joined.items] == [(), ("any", "subdural")]
    assert joined.classes == ("any", "epidural", "subdural")


def test_a_class_marked_twice_differently_fails_its_item(tmp_path: Path) -> None:
    joined = join(tmp_path, HEMORRHAGE + "ID_38fd7baa0_epidural,1\n", stems("ID_38fd7baa0", "ID_12cadc6af"))
    assert [item.problem for item in joined.items] == [Reason.BAD_LABEL, None]
    assert "'epidural'" in joined.items[0].detail
    assert joined.items[0].label is None


def test_a_mark_that_is_neither_0_nor_1_fails_its_item(tmp_path: Path) -> None:
    joined = join(tmp_path, "ID,Label\nID_1a_any,0.7\n", stems("ID_1a"))
    assert joined.items[0].problem is Reason.BAD_LABEL


def chexpert(tmp_path: Path, uncertain: Uncertain) -> LabelJoin:
    names = ["00001/study1/view1_frontal", "00002/study2/view1_frontal", "00002/study1/view2_lateral"]
    ids = [SliceIds(f"1.{at}", path=f"train/patient{name}.dcm") for at, name in enumerate(names)]
    ids.append(SliceIds("1.9", path="train/patient00003/study1/view1_frontal.dcm"))
    return join(tmp_path, CHEXPERT, ids, JoinOptions(SourceOptions(label_columns=FINDINGS), uncertain=uncertain))


def compiled(joined: LabelJoin) -> tuple[str, list[Any]]:
    """The kind of label that a build makes of it, and its values."""
    items = [Item(str(at), {}, label=item.label) for at, item in enumerate(joined.items)]
    labelling = label_items(items, Recipe(table="train.csv", label=list(FINDINGS)), from_folders=False)
    assert labelling.problems == [None] * len(items)
    return labelling.info.kind, labelling.names if labelling.info.kind == "multi" else labelling.values


def test_an_uncertain_finding_is_not_positive_and_is_told(tmp_path: Path) -> None:
    joined = chexpert(tmp_path, "ignore")
    assert compiled(joined) == ("multi", [["No Finding"], ["Edema"], ["Cardiomegaly"], []])
    told = [item.columns["label_uncertain"] for item in joined.items]
    assert told == [[], ["Cardiomegaly"], ["Edema"], ["Cardiomegaly"]]
    assert joined.items[1].columns["Age"] == 87
    assert any("uncertain findings (-1) of 3 items" in note for note in joined.notes)


def test_an_uncertain_finding_can_count_as_either(tmp_path: Path) -> None:
    positive = ["Cardiomegaly", "Edema"]
    assert compiled(chexpert(tmp_path, "positive")) == (
        "multi",
        [["No Finding"], positive, positive, ["Cardiomegaly"]],
    )
    assert compiled(chexpert(tmp_path, "negative")) == ("multi", [["No Finding"], ["Edema"], ["Cardiomegaly"], []])


def test_an_uncertain_finding_can_stay_a_number(tmp_path: Path) -> None:
    kind, values = compiled(chexpert(tmp_path, "keep"))
    assert (kind, values) == ("number", [[1, 0, 0, 0], [0, -1, 1, 0], [0, 1, -1, 0], [0, -1, 0, 0]])


def test_columns_of_other_numbers_are_no_findings(tmp_path: Path) -> None:
    options = JoinOptions(SourceOptions(label_columns=("a", "b")))
    joined = join(tmp_path, "image_id,a,b\naa,-1,2\n", stems("aa"), options)
    assert joined.items[0].label == ("-1", "2")
    assert "label_uncertain" not in joined.columns


def test_one_column_of_signs_is_no_finding(tmp_path: Path) -> None:
    joined = join(tmp_path, "image_id,label\naa,-1\nbb,1\n", stems("aa", "bb"))
    assert [item.label for item in joined.items] == ["-1", "1"]


def test_a_finding_that_another_view_is_sure_of_is_not_uncertain(tmp_path: Path) -> None:
    options = JoinOptions(SourceOptions(label_columns=("a", "b")), multi=True)
    joined = join(tmp_path, "StudyInstanceUID,a,b\n7,-1,-1\n7,1,\n", [SliceIds("1.1", study="7")], options)
    assert joined.items[0].label == (1, "")
    assert joined.items[0].columns["label_uncertain"] == ["b"]


def test_views_of_one_study_merge_column_by_column(tmp_path: Path) -> None:
    text = "StudyInstanceUID,a,b,c\n7,1,,0\n7,,0,0\n8,1,0,0\n8,0,0,0\n"
    ids = [SliceIds("1.1", study="7"), SliceIds("1.2", study="8")]
    columns = SourceOptions(label_columns=("a", "b", "c"))
    one = join(tmp_path, text, ids, JoinOptions(columns))
    assert [item.label for item in one.items] == [("1", "0", "0"), None]
    assert one.items[1].problem is Reason.BAD_LABEL
    several = join(tmp_path, text, ids, JoinOptions(columns, multi=True))
    assert [item.label for item in several.items] == [("1", "0", "0"), ("1", "0", "0")]
