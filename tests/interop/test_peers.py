"""Hugging Face ``datasets``, wids and DALI themselves read what a build makes: every sample once, with our bytes.

Each in an environment of its own, made with pip in a cache folder on first use.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shardforge
from scripts.bench.environments import environment
from shardforge.stream.reader import Dataset, open_dataset
from tests.pictures import class_folders

# One process makes and uses the environments; the largest, DALI's, takes minutes to install.
pytestmark = [pytest.mark.long, pytest.mark.xdist_group("peers"), pytest.mark.timeout(1500)]

CACHE = Path.home() / ".cache" / "shardforge-tests"
Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """PNGs of three classes, train and val, several shards each, with every sidecar."""
    raw, out = tmp_path_factory.mktemp("raw"), tmp_path_factory.mktemp("built") / "out"
    class_folders(raw, {"ant": 9, "bee": 8, "cat": 7})
    options: Any = {"format": "png", "split": "train=0.7,val=0.3", "shard_samples": 4, "size": 24}
    shardforge.build(raw, out, sidecars=["wids", "dali"], quiet=True, **options)
    return out


def ask(python: Path, code: str, *arguments: object, **environ: str) -> Any:
    """What a program, run by a peer's own interpreter, prints as JSON in its last line."""
    command = [str(python), "-W", "ignore", "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env={**os.environ, **environ})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def ours(built: Path) -> tuple[Dataset, dict[str, list[list[Any]]]]:
    """Split → [key, label, digest of the pixels] of every sample, in shard order."""
    data = open_dataset(built)
    told = {
        name: [[s["key"], s["label"], hashlib.sha256(s["image"].tobytes()).hexdigest()] for s in split]
        for name, split in data.splits.items()
    }
    return data, told


DATASETS = """
import hashlib, json, sys, datasets, numpy
found = datasets.load_dataset(sys.argv[1], cache_dir=sys.argv[2])
digest = lambda image: hashlib.sha256(numpy.asarray(image).tobytes()).hexdigest()
rows = lambda split: [[s["__key__"], s["cls"], digest(s["png"])] for s in split]
print(json.dumps({name: rows(split) for name, split in found.items()}))
"""


def test_hugging_face_loads_the_folder_by_its_card(built: Path, tmp_path: Path) -> None:
    python = environment(CACHE / "datasets", ["datasets", "pillow"])
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    found = ask(python, DATASETS, built, tmp_path / "cache", **offline)
    assert found == ours(built)[1]


WIDS = """
import hashlib, json, sys, wids
def read(split):
    found = wids.ShardListDataset(f"{sys.argv[1]}/{split}.shardindex.json", keep=True, localname=lambda url: url)
    found.transformations = []
    return [[s["__key__"], int(s[".cls"].read()), hashlib.sha256(s[".png"].read()).hexdigest()] for s in found]
print(json.dumps({split: read(split) for split in ("train", "val")}))
"""


def test_wids_reads_every_split_by_its_sidecar(built: Path) -> None:
    """Without its dependencies, of which torch is here already: the last versions of webdataset that have wids."""
    packages = CACHE / "wids"
    if not (packages / "wids").is_dir():
        install = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--target",
            str(packages),
            "webdataset<1",
        ]
        subprocess.run(install, check=True, capture_output=True)
    found = ask(Path(sys.executable), WIDS, built, PYTHONPATH=str(packages))
    data, _ = ours(built)
    rows = data.metadata.to_pylist()
    assert found == {
        name: [[row["key"], row["label"], row["sha256"]] for row in rows if row["split"] == name]
        for name in data.splits
    }


DALI = """
import hashlib, json, sys
from nvidia.dali import fn, pipeline_def
shards, count = sys.argv[2].split(","), int(sys.argv[3])
@pipeline_def(batch_size=count, num_threads=1, device_id=None)
def read():
    paths, indexes = ([f"{sys.argv[1]}/{shard}.{kind}" for shard in shards] for kind in ("tar", "idx"))
    image, label = fn.readers.webdataset(paths=paths, index_paths=indexes, ext=["png", "cls"])
    return image, label, fn.decoders.image(image, device="cpu")
pipe = read()
pipe.build()
images, labels, pixels = pipe.run()
text = lambda array: bytes(array).decode()
digest = lambda array: hashlib.sha256(array.tobytes()).hexdigest()
print(json.dumps([[int(text(labels.at(n))), digest(images.at(n)), digest(pixels.at(n))] for n in range(count)]))
"""


@pytest.fixture(scope="module")
def dali() -> Path:
    return environment(CACHE / "dali", ["nvidia-dali-cuda120", "numpy"])


def test_dali_reads_and_decodes_on_the_cpu_by_its_sidecar(built: Path, dali: Path) -> None:
    data, told = ours(built)
    rows = data.metadata.to_pylist()
    for name, split in data.splits.items():
        found = ask(dali, DALI, built, ",".join(split.shards), len(split))
        payloads = [row["sha256"] for row in rows if row["split"] == name]
        expected = zip(told[name], payloads, strict=True)
        assert found == [[label, payload, pixels] for (_, label, pixels), payload in expected]


def test_our_dali_sidecars_are_byte_for_byte_those_of_its_own_tool(built: Path, dali: Path, tmp_path: Path) -> None:
    tars = sorted(built.glob("*.tar"))
    assert len(tars) > 3
    for tar in tars:
        theirs = tmp_path / f"{tar.stem}.idx"
        done = subprocess.run(
            [str(dali), "-W", "ignore", "-m", "wds2idx", str(tar), str(theirs)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        lines, own = theirs.read_text().split("\n"), tar.with_suffix(".idx").read_text().split("\n")
        assert own == lines
