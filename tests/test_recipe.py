"""Recipes: validated, merged with options, and clear about what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardforge.compile.options import resolve
from shardforge.errors import UsageError
from shardforge.recipe import Recipe, load_recipe, named_recipes
from shardforge.sections import BoxOptions, FilterOptions, KeypointOptions


def test_defaults_are_those_of_the_documentation() -> None:
    recipe = load_recipe(None, {})
    assert (recipe.size, recipe.resize, recipe.format, recipe.quality) == (256, "shortest", "jpg", 95)
    assert (recipe.shard_size, recipe.shard_samples, recipe.seed, recipe.keys) == (256 * 2**20, 10_000, 0, "index")


def test_flags_override_the_file(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text("size: 128\nquality: 80\nrun: {workers: 3}\nlimits: {pixels: 1000000}\n")
    recipe = resolve(path, {"size": "64", "max_errors": "5%"})
    assert (recipe.size, recipe.quality) == (64, 80)
    assert (recipe.run.workers, recipe.run.max_errors) == (3, "5%")
    assert (recipe.limits.pixels, recipe.limits.frames) == (1_000_000, 10_000)


def test_single_filters_join_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text("filters: {min_side: 10, where: 'a > 1'}\nboxes: {column: b, format: xyxy}\n")
    recipe = resolve(path, {"max_side": 90, "where": "a > 2", "keypoints": "p:q:xyv,stored,relative"})
    assert recipe.filters == FilterOptions(min_side=10, max_side=90, where="a > 2")
    assert recipe.boxes == BoxOptions(column="b", format="xyxy", units="pixels", frame="upright")
    assert recipe.keypoints == KeypointOptions(column="p:q", format="xyv", units="relative", frame="stored")
    again = resolve(recipe, {"filters": {"min_area": 4}, "min_side": 20})
    assert again.filters == FilterOptions(min_side=20, max_side=90, min_area=4, where="a > 2")
    assert Recipe.model_validate(again.identity()).identity() == again.identity()


def test_a_recipe_object_can_be_overridden_too() -> None:
    recipe = resolve(Recipe(size=99, quality=50), {"quality": 60, "workers": 1})
    assert (recipe.size, recipe.quality, recipe.run.workers) == (99, 60, 1)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("sise: 256", ["'sise'", "did you mean 'size'"]),
        ("run: {wokers: 2}", ["'run.wokers'", "did you mean 'workers'"]),
        ("limits: {pixel: 2}", ["'limits.pixel'", "'pixels'"]),
        ("quality: 101", ["quality", "100"]),
        ("format: jpeg2000", ["format", "'jpg'"]),
        ("split: train=0.9,val=0.2", ["split", "1.1"]),
        ("split: {Train: 0.9, val: 0.1}", ["split", "'Train'"]),
        ("split: train=0.9,train=0.1", ["split", "train=0.9,val=0.1"]),
        ("split: train=x,val=0.1", ["split"]),
        ("size: 640x480", ["size", "exact or pad"]),
        ("size: 0", ["size"]),
        ("shard_size: 1 parsec", ["shard_size", "256MiB"]),
        ("keys: name", ["keys", "column:NAME"]),
        ("keys: column:id", ["keys", "table"]),
        ("group: patient", ["group", "table"]),
        ("format: keep\nresize: exact", ["keep"]),
        ("split_by: hash", ["split_by"]),
        ("split_from: x", ["split_from"]),
        ("run: {max_errors: lots}", ["max_errors", "2%"]),
        ("fields: {Mask.PNG: required}", ["fields"]),
        ("background: [0, 0, 300]", ["background"]),
        ("boxes: bbox", ["boxes", "names no format", "bbox:xywh"]),
        ("boxes: bbox:yxyx", ["boxes.format", "'xyxy', 'xywh' or 'cxcywh'"]),
        ("boxes: bbox:xyxy,xywh", ["boxes", "format twice"]),
        ("boxes: {column: bbox}", ["boxes.format", "required"]),
        ("boxes: {column: b, format: xyxy, unit: pixels}", ["'boxes.unit'", "did you mean 'units'"]),
        ("boxes: b:xyxy\nkeypoints: b:xy", ["keypoints", "holds boxes already"]),
        ("keypoints: {column: p, format: xyz}", ["keypoints.format", "'xy' or 'xyv'"]),
        ("filters: {min_sde: 3}", ["'filters.min_sde'", "did you mean 'min_side'"]),
        ("filters: {min_side: 0}", ["filters.min_side"]),
        ("filters: {min_area: 9, max_area: 4}", ["filters", "min_area 9 is above max_area 4"]),
        ("filters: {min_side: 9, max_side: 4}", ["filters", "min_side 9 is above max_side 4"]),
        ("filters: {max_aspect: .inf}", ["filters.max_aspect"]),
        ("dedup: pixels", ["dedup", "'none' or 'bytes'"]),
        ("duplicates: first", ["duplicates: first needs dedup bytes"]),
        ("- a list", ["mapping"]),
        ("size: [", ["YAML"]),
    ],
)
def test_what_is_wrong_is_named_in_one_line(tmp_path: Path, content: str, words: list[str]) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(content)
    with pytest.raises(UsageError) as caught:
        load_recipe(path, {})
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_yaml_objects_are_not_made(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text("size: !!python/object/apply:os.getcwd []")
    with pytest.raises(UsageError, match="YAML"):
        load_recipe(path, {})


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="imagenet-256"):
        load_recipe("imagenet256", {})


@pytest.mark.parametrize("name", named_recipes())
def test_ready_recipes_are_valid(name: str) -> None:
    assert isinstance(load_recipe(name, {}), Recipe)


@pytest.mark.parametrize(
    ("text", "count"), [("300", 300), ("1k", 1000), ("1 KiB", 1024), ("1.5MiB", 1572864), ("2GB", 2 * 10**9)]
)
def test_sizes_in_bytes(text: str, count: int) -> None:
    expected = max(count, 1024)
    assert load_recipe(None, {"shard_size": text if count >= 1024 else "1024"}).shard_size == expected


def test_identity_leaves_out_how_and_where_it_runs() -> None:
    one = load_recipe(None, {"table": "/data/a/items.csv", "run": {"workers": 2}}).identity()
    two = load_recipe(None, {"table": "/elsewhere/items.csv", "run": {"workers": 7, "max_errors": "9"}}).identity()
    assert one == two
    assert one["table"] == "items.csv"


def test_identity_is_a_recipe_again() -> None:
    recipe = load_recipe(None, {"split": {"val": 0.25, "train": 0.75}, "size": [30, 20], "resize": "pad"})
    assert Recipe.model_validate(recipe.identity()).identity() == recipe.identity()
    assert list(recipe.split or {}) == ["train", "val"]


def test_options_for_dicom_are_refused_on_ordinary_images() -> None:
    with pytest.raises(UsageError, match=r"options for DICOM \(crop, window\)"):
        resolve(None, {"window": "lung", "crop": "breast"}).settled("images")


def test_an_option_of_a_section_is_told_where_it_belongs(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("key_file: k")
    with pytest.raises(UsageError, match="it belongs into the section 'run'"):
        load_recipe(tmp_path / "r.yaml", {})
