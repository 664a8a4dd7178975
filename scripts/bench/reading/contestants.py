"""Who takes part in the reading benchmark. Importable without any of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Payload = Literal["jpg", "npy"]
REFERENCES: dict[Payload, str] = {"jpg": "shardforge", "npy": "shardforge_npy"}


@dataclass(frozen=True)
class Contender:
    """One way of reading.

    Attributes:
        title: in the table.
        module: of ``scripts.bench.reading.contenders``; its dict ``READERS`` has an entry of the contender's name.
        payload: what is stored.
        peer: whose environment it needs; None: our own.
    """

    title: str
    module: str
    payload: Payload = "jpg"
    peer: str | None = None


CONTENDERS: dict[str, Contender] = {
    "shardforge": Contender("shardforge ShardLoader(threads=2)", "shardforge"),
    "bound": Contender("bound: two plain threads", "bound"),
    "shardforge_worker": Contender("shardforge ShardLoader(workers=1, threads=2)", "shardforge"),
    "shardforge_dataset": Contender("shardforge ShardDataset in a DataLoader", "shardforge"),
    "webdataset_tuned": Contender("webdataset, hand-tuned decoder", "webdataset", peer="webdataset"),
    "webdataset": Contender("webdataset as documented", "webdataset", peer="webdataset"),
    "ffcv": Contender("FFCV", "ffcv", peer="ffcv"),
    "dali": Contender("DALI on the CPU", "dali", peer="dali"),
    "litdata_tuned": Contender("LitData, hand-tuned decoder", "litdata", peer="litdata"),
    "litdata": Contender("LitData as documented", "litdata", peer="litdata"),
    "mosaic_tuned": Contender("Mosaic streaming, hand-tuned decoder", "mosaic", peer="mosaic"),
    "mosaic": Contender("Mosaic streaming as documented", "mosaic", peer="mosaic"),
    "imagefolder": Contender("a folder, Pillow, DataLoader", "imagefolder", peer="imagefolder"),
    "shardforge_npy": Contender("shardforge ShardLoader(threads=2)", "shardforge", "npy"),
    "bound_npy": Contender("bound: two plain threads", "bound", "npy"),
    "ffcv_raw": Contender("FFCV, raw", "ffcv", "npy", peer="ffcv"),
}
PEERS = tuple(dict.fromkeys(contender.peer for contender in CONTENDERS.values() if contender.peer))
