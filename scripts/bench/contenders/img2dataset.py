"""img2dataset, which downloads: from a web server on this machine that serves the folder."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import webdataset
from img2dataset import download

from scripts.bench.work import QUALITY, SIZE, sources


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """Yields the address of a server that runs as long as the context."""
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(folder)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout is not None
        port = server.stdout.readline().partition(" port ")[2].split()[0]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.communicate()


def build(source: Path, out: Path, workers: int) -> None:
    with _served(source) as address:
        addresses = [f"{address}/{path.name}" for path in sources(source)]
        listed = out / "list.txt"
        listed.write_text("\n".join(addresses) + "\n")
        download(
            url_list=str(listed),
            input_format="txt",
            output_folder=str(out / "shards"),
            output_format="webdataset",
            processes_count=workers,
            # Enough shards for all processes to share the work evenly.
            number_sample_per_shard=max(1, len(addresses) // (4 * workers)),
            resize_mode="keep_ratio",
            resize_only_if_bigger=True,
            image_size=SIZE,
            encode_quality=QUALITY,
            enable_wandb=False,
        )
    listed.unlink()


def stored(out: Path) -> Iterator[tuple[str, bytes]]:
    shards = [str(path) for path in sorted((out / "shards").glob("*.tar"))]
    for sample in webdataset.WebDataset(shards, shardshuffle=False):
        yield Path(json.loads(sample["json"])["url"]).stem, sample["jpg"]
