"""Builds with boxes and keypoints: where they end up, and what becomes of those that are none."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import shardforge
from shardforge.errors import UsageError
from shardforge.shards.verify import verify
from tests.built import payload, rows
from tests.pictures import digest_tree, run, write_picture


def write_marked(path: Path, box: tuple[int, int, int, int], orientation: int) -> None:
    """A black PNG, 60 x 40 as stored, with one white box, and an EXIF orientation."""
    pixels = np.zeros((40, 60, 3), np.uint8)
    pixels[box[1] : box[3], box[0] : box[2]] = 255
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(pixels).save(path, exif=exif)


@pytest.mark.parametrize("frame", ["stored", "upright"])
def test_boxes_and_points_lie_on_what_they_mark(tmp_path: Path, frame: str) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    stored = (6, 8, 26, 20)
    lines = []
    for orientation in range(1, 9):
        write_marked(raw / f"{orientation}.png", stored, orientation)
        box: Any = stored
        if frame == "upright":
            # By hand: what the picture looks like when it is turned.
            x0, y0, x1, y1 = stored
            box = {
                1: (x0, y0, x1, y1), 2: (60 - x1, y0, 60 - x0, y1), 3: (60 - x1, 40 - y1, 60 - x0, 40 - y0),
                4: (x0, 40 - y1, x1, 40 - y0), 5: (y0, x0, y1, x1), 6: (40 - y1, x0, 40 - y0, x1),
                7: (40 - y1, 60 - x1, 40 - y0, 60 - x0), 8: (y0, 60 - x1, y1, 60 - x0),
            }[orientation]  # fmt: skip
        x0, y0, x1, y1 = box
        corners = [x0, y0, 2, x1, y1, 1, 0, 0, 0]
        line = {"path": f"{orientation}.png", "bbox": [x0, y0, x1 - x0, y1 - y0], "points": corners, "n": orientation}
        lines.append(json.dumps(line))
    table = tmp_path / "items.jsonl"
    table.write_text("\n".join(lines))
    report = shardforge.build(
        raw, tmp_path / "out", table=table, size=48, resize="pad", format="png", background=(0, 0, 0), quiet=True,
        boxes={"column": "bbox", "format": "xywh", "frame": frame},
        keypoints={"column": "points", "format": "xyv", "frame": frame},
    )  # fmt: skip
    assert report.samples == 8
    assert verify(tmp_path / "out").damage == ()
    for source, row in rows(tmp_path / "out").items():
        pixels = np.asarray(Image.open(io.BytesIO(payload(tmp_path / "out", row, "png"))))[:, :, 0]
        ys, xs = np.nonzero(pixels > 127)
        ((x, y, width, height),) = row["bbox"]
        # 60 pixels become 48, so an edge of the blurred mark is found within one pixel.
        found = [xs.min(), ys.min(), xs.max() + 1, ys.max() + 1]
        np.testing.assert_allclose([x, y, x + width, y + height], found, atol=0.8, err_msg=source)
        (ax, ay, av), (bx, by, bv), nothing = row["points"]
        np.testing.assert_allclose(sorted([ax, bx]), [x, x + width], atol=1e-4)
        np.testing.assert_allclose(sorted([ay, by]), [y, y + height], atol=1e-4)
        assert (av, bv, nothing) == (2, 1, [0, 0, 0])
        member = json.loads(payload(tmp_path / "out", row, "json"))
        assert np.array(member["bbox"], np.float32).tolist() == row["bbox"]
        assert np.array(member["points"], np.float32).tolist() == row["points"]
        assert row["bbox_original"][2:] == ([20, 12] if frame == "stored" or row["n"] < 5 else [12, 20])


@pytest.fixture(scope="module")
def csv_raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    raw = tmp_path_factory.mktemp("raw")
    for i in range(8):
        write_picture(raw / f"{i}.jpg", i, width=80, height=40)
    (raw / "0.json").write_text('{"bbox": "old", "note": 1}')
    cells = {
        0: "[0.25, 0.5, 0.5, 1]",
        1: "[[0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1]]",
        2: "",
        3: "[]",
        4: "[0.25, 0.5, 0.5, NaN]",
        5: "[0.5, 0.5, 0.25, 1]",
        6: "[2, 0.5, 3, 1]",
        7: "a car",
    }
    lines = ["path,label,bbox,width", *(f'{i}.jpg,{i % 2},"{cell}",{i}' for i, cell in cells.items())]
    (raw / "items.csv").write_text("\n".join(lines) + "\n")
    return raw


def test_json_text_in_a_csv_and_what_is_wrong_with_it(csv_raw: Path, tmp_path: Path) -> None:
    arguments = ("--table", csv_raw / "items.csv", "--boxes", "bbox:xyxy,relative", "--size", "20", "--workers", "1")
    result = run("build", csv_raw, tmp_path / "out", *arguments, "--json")
    report = json.loads(result.stdout)
    assert (result.returncode, report["reasons"]) == (1, {"bad_annotation": 4})
    for words in ("no finite number", "box 0 has no area", "outside the image of 80 x 40", "'a car' is no JSON"):
        assert words in result.stderr
    found = rows(tmp_path / "out")
    assert {source for source, row in found.items() if row["status"] == "failed"} == {
        f"{i}.jpg" for i in (4, 5, 6, 7)
    }
    assert found["0.jpg"]["bbox"] == [[0.25, 0.5, 0.5, 1]]
    assert found["0.jpg"]["bbox_original"] == "[0.25, 0.5, 0.5, 1]"
    assert len(found["1.jpg"]["bbox"]) == 2
    assert (found["2.jpg"]["bbox"], found["3.jpg"]["bbox"]) == (None, [])
    assert json.loads(payload(tmp_path / "out", found["0.jpg"], "json")) == {"bbox": [[0.25, 0.5, 0.5, 1]], "note": 1}
    assert payload(tmp_path / "out", found["2.jpg"], "json") == b'{"bbox":null}'
    assert found["7.jpg"]["bbox_original"] == "a car"
    assert found["7.jpg"]["user_width"] == 7
    schema = pq.read_schema(tmp_path / "out" / "train-000000.parquet")
    assert schema.field("bbox").type == pa.list_(pa.list_(pa.float32()))
    assert verify(tmp_path / "out").damage == ()
    again = run("build", csv_raw, tmp_path / "two", *arguments[:-1], "2", "--quiet")
    assert again.returncode == 1
    assert digest_tree(tmp_path / "two") == digest_tree(tmp_path / "out")
    other = run("build", csv_raw, tmp_path / "out", *arguments[:2], "--boxes", "bbox:xywh,relative", "--size", "20")
    assert other.returncode == 2
    assert "was built with another recipe: boxes" in other.stderr


def test_a_column_that_is_not_there_is_named_with_those_that_are(csv_raw: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"boxes: the source has no column 'box' for them.*bbox, width"):
        shardforge.build(csv_raw, tmp_path / "out", table=csv_raw / "items.csv", boxes="box:xyxy", quiet=True)


def test_a_parquet_table_with_flat_boxes_beside_names_that_are_taken(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    for i in range(3):
        write_picture(raw / f"{i}.png", i, width=40, height=20)
    boxes = pa.array([[0, 0, 40, 20], None, [-4, 2, 10, 30]], pa.list_(pa.float32(), 4))
    columns = {
        "path": [f"{i}.png" for i in range(3)],
        "bbox_original": ["a", "b", "c"],
        "width": boxes,
        "bbox": boxes,
    }
    pq.write_table(pa.table(columns), tmp_path / "items.parquet")
    shardforge.build(raw, tmp_path / "out", table=tmp_path / "items.parquet", boxes="width:xyxy", size=10, quiet=True)
    row = rows(tmp_path / "out")["2.png"]
    assert (row["width"], row["user_width"], row["user_width_original"]) == (20, [[-2, 1, 5, 15]], [-4, 2, 10, 30])
    shardforge.build(raw, tmp_path / "two", table=tmp_path / "items.parquet", boxes="bbox:xyxy", size=10, quiet=True)
    row = rows(tmp_path / "two")["2.png"]
    assert (row["bbox"], row["bbox_original"], row["user_bbox_original"]) == ([[-2, 1, 5, 15]], [-4, 2, 10, 30], "c")
    assert rows(tmp_path / "two")["1.png"]["bbox"] is None
    for out in ("out", "two"):
        assert verify(tmp_path / out).damage == ()
    reader = shardforge.open(tmp_path / "two")
    assert reader[0]["json"]["bbox"] is None or len(reader[0]["json"]["bbox"]) == 1
