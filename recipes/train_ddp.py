"""Trains a small image classifier on a compiled dataset, on one or several processes.

    torchrun --nproc_per_node 2 recipes/train_ddp.py --data OUT --epochs 10 --batch-size 64

Gloo on CPUs; NCCL and autocast on GPUs, one process per GPU. Every rank takes the same number of steps, and together
they give every training sample exactly once per epoch: the last, incomplete batch has masked rows instead of repeated
or dropped ones, and the loss leaves these out. Exit code 1 if ``--target-accuracy`` is missed, 2 or 3 if the dataset
cannot be used.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from shardforge import ShardforgeError, ShardLoader, UsageError
from shardforge.transforms import CenterCrop, Normalize, RandomHorizontalFlip, RandomResizedCrop, Resize

FAILED = 3


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Trains a small image classifier on a compiled dataset.")
    parser.add_argument("--data", required=True, type=Path, help="the dataset: a folder made by `shardforge build`")
    parser.add_argument("--train-split", default="train")
    parser.add_argument("--val-split", default="val")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64, help="per process")
    parser.add_argument("--workers", type=int, default=0, help="reading processes per rank and split")
    parser.add_argument("--lr", type=float, default=3e-3, help="highest learning rate")
    parser.add_argument("--crop", type=int, help="augment: random crops of this size, and flips")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target-accuracy", type=float, help="exit with 1 if validation accuracy (0…1) stays below")
    # Not "--log": torchrun takes an abbreviation of its own options for itself, even after the script's name.
    parser.add_argument("--log-file", type=Path, help="append one JSON object per epoch to this file")
    return parser.parse_args()


def classifier(shape: torch.Size, classes: int) -> nn.Sequential:
    """A plain convolutional network for images [N, C, H, W]; halves them until about four pixels are left.

    Group instead of batch normalisation: rows of a batch don't see each other, so masked ones change nothing.
    """
    channels, width = shape[1], 32
    layers: list[nn.Module] = [nn.Conv2d(channels, width, 3, padding=1), nn.GroupNorm(8, width), nn.ReLU()]
    for _ in range(max(1, round(math.log2(min(shape[2:]) / 4)))):
        wider = min(2 * width, 256)
        layers += [nn.Conv2d(width, wider, 3, stride=2, padding=1), nn.GroupNorm(8, wider), nn.ReLU()]
        width = wider
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * width, classes))


def say(text: str) -> None:
    if dist.get_rank() == 0:
        print(text, flush=True)


def stop_together(problem: ShardforgeError | Exception | None) -> None:
    """Goes on only if no rank has a problem; else every rank ends, with the same exit code, and none waits.

    A rank that raised alone would leave the others waiting in their next collective operation.
    """
    mine = None if problem is None else (getattr(problem, "exit_code", FAILED), str(problem) or repr(problem))
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, mine)
    problems = [(rank, *found) for rank, found in enumerate(everyone) if found is not None]
    if not problems:
        return
    if dist.get_rank() == 0:
        for text in dict.fromkeys(text for _, _, text in problems):
            ranks = ", ".join(str(rank) for rank, _, other in problems if other == text)
            print(f"rank {ranks}: {text}", file=sys.stderr, flush=True)
    leave(problems[0][1])


def leave(code: int) -> NoReturn:
    """Ends this process at once.

    Threads of the process group outlive its destruction for a moment; an interpreter that winds down meanwhile is
    aborted now and then ("terminate called without an active exception"), long after all the work is done.
    """
    dist.destroy_process_group()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def open_loaders(options: argparse.Namespace) -> tuple[ShardLoader, ShardLoader]:
    train_steps, val_steps = [], []
    if options.crop:
        train_steps = [RandomResizedCrop(options.crop), RandomHorizontalFlip()]
        val_steps = [Resize(options.crop * 8 // 7), CenterCrop(options.crop)]
    common = {"workers": options.workers, "seed": options.seed, "tail": "mask", "fields": ("image", "label", "key")}
    train = ShardLoader(options.data, options.train_split, options.batch_size, transform=train_steps, **common)
    val = ShardLoader(
        options.data, options.val_split, options.batch_size, transform=val_steps, shuffle=False, **common
    )
    if train.dataset.manifest.label.kind != "class":
        raise UsageError("this recipe trains on single-class labels", where=options.data)
    return train, val


def in_step(loader: ShardLoader, device: torch.device) -> Iterator[tuple[dict[str, Any], torch.Tensor]]:
    """One epoch: this rank's batches, each with the number of valid rows of all ranks.

    The ranks exchange that number before every step anyway; with it goes whether anyone failed to read.
    """
    batches = iter(loader)
    for _ in range(len(loader)):
        problem, batch = None, {"valid": torch.zeros(1)}
        try:
            batch = next(batches)
        except ShardforgeError as error:
            problem = error
        counts = torch.tensor([int(batch["valid"].sum()), int(problem is not None)], device=device)
        dist.all_reduce(counts)
        if counts[1].item():
            stop_together(problem)
        yield batch, counts[0]


class Trainer:
    """Model, optimizer and the arithmetic of one step; the same on CPU and GPU."""

    def __init__(
        self, options: argparse.Namespace, train: ShardLoader, device: torch.device, shape: torch.Size
    ) -> None:
        self.device, self.world = device, dist.get_world_size()
        cuda = device.type == "cuda"
        layout = torch.channels_last if cuda else torch.contiguous_format
        self.normalize = Normalize.from_dataset(train.dataset, memory_format=layout).to(device)
        torch.manual_seed(options.seed)
        batch, height, width, channels = shape
        model = classifier(torch.Size((batch, channels, height, width)), max(train.dataset.classes.values()) + 1)
        model = model.to(device, memory_format=layout)
        self.model = DistributedDataParallel(model, device_ids=[device.index] if cuda else None)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=options.lr, weight_decay=0.01)
        steps = options.epochs * len(train)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, options.lr, total_steps=steps)
        self.half = torch.bfloat16 if not cuda or torch.cuda.is_bf16_supported() else torch.float16
        self.scaler = torch.amp.GradScaler(device.type, enabled=cuda and self.half is torch.float16)

    def _autocast(self) -> AbstractContextManager[Any]:
        return torch.autocast(self.device.type, dtype=self.half, enabled=self.device.type == "cuda")

    def _forward(self, batch: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        images = batch["image"].to(self.device, non_blocking=True)
        label = batch["label"].to(self.device, non_blocking=True)
        with self._autocast():
            return self.model(self.normalize(images)).float(), label

    def step(self, batch: dict[str, Any], rows: torch.Tensor) -> torch.Tensor:
        """One step; the summed loss of this rank's valid rows. ``rows``: the number of valid rows of all ranks.

        The gradient is that of the mean over the valid rows of *all* ranks: DDP averages over ranks, so each rank's
        sum is multiplied by their number and divided by the number of valid rows everywhere.
        """
        self.model.train()
        scores, label = self._forward(batch)
        # Masked rows have the label -100, which cross_entropy leaves out.
        loss = F.cross_entropy(scores, label, ignore_index=-100, reduction="sum")
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss * self.world / rows.clamp(min=1)).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.schedule.step()
        return loss.detach()

    @torch.no_grad()
    def accuracy(self, loader: ShardLoader) -> tuple[float, int]:
        """Over all ranks, every sample once: the share of right answers, and the number of samples."""
        self.model.eval()
        counts = torch.zeros(2, dtype=torch.int64, device=self.device)
        loader.set_epoch(0)
        for batch, _ in in_step(loader, self.device):
            scores, label = self._forward(batch)
            valid = batch["valid"].to(self.device)
            counts += torch.stack([(scores.argmax(1) == label)[valid].sum(), valid.sum()])
        dist.all_reduce(counts)
        right, seen = counts.tolist()
        return right / max(1, seen), seen


def fingerprints(keys: list[str]) -> np.ndarray[Any, Any]:
    """Eight bytes per key: enough to see that none is missing or given twice, small enough to gather."""
    return np.array([int.from_bytes(hashlib.blake2b(k.encode(), digest_size=8).digest()) for k in keys], np.uint64)


def gather_epoch(steps: int, keys: list[str]) -> tuple[list[int], int, int]:
    """Steps of every rank; samples given by all of them; how many different ones."""
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, (steps, fingerprints(keys)))
    given = np.concatenate([marks for _, marks in everyone])
    return [count for count, _ in everyone], len(given), len(np.unique(given))


def train(options: argparse.Namespace, device: torch.device) -> float:
    """Trains and returns the last validation accuracy."""
    problem: Exception | None = None
    try:
        loader, val = open_loaders(options)
        # The first batches show whether shards can be read and samples batched, before anybody depends on it.
        shape = next(iter(loader))["image"].shape
        next(iter(val))
    except Exception as error:
        problem = error
    stop_together(problem)
    trainer = Trainer(options, loader, device, shape)
    samples, accuracy = loader.dataset.samples, 0.0
    say(f"{samples} samples, {len(loader)} steps per rank and epoch, {dist.get_world_size()} ranks, {device.type}")
    for epoch in range(options.epochs):
        began, keys, steps, loss = time.perf_counter(), [], 0, torch.zeros((), device=device)
        loader.set_epoch(epoch)
        for batch, rows in in_step(loader, device):
            loss += trainer.step(batch, rows)
            steps += 1
            keys += [key for key, valid in zip(batch["key"], batch["valid"].tolist(), strict=True) if valid]
        dist.all_reduce(loss)
        accuracy, seen = trainer.accuracy(val)
        every, given, different = gather_epoch(steps, keys)
        exact = given == different == samples and seen == val.dataset.samples
        say(
            f"epoch {epoch}: loss {loss.item() / given:.4f}, accuracy {accuracy:.4f} of {seen}, "
            f"steps by rank {every}, {given} samples given, {different} different of {samples}: "
            f"{'every sample exactly once' if exact else 'NOT every sample exactly once'}, "
            f"{time.perf_counter() - began:.1f} s"
        )
        if options.log_file and dist.get_rank() == 0:
            record = {"epoch": epoch, "loss": loss.item() / given, "accuracy": accuracy, "validated": seen}
            record |= {"steps": every, "given": given, "different": different, "samples": samples}
            with open(options.log_file, "a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
    loader.close()
    val.close()
    return accuracy


def main() -> None:
    options = arguments()
    local = int(os.environ.get("LOCAL_RANK", 0))
    device = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    backend, patience = "nccl" if device.type == "cuda" else "gloo", timedelta(minutes=10)
    if "RANK" in os.environ:
        dist.init_process_group(backend, timeout=patience)
    else:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1, timeout=patience)
    accuracy = train(options, device)
    missed = options.target_accuracy is not None and accuracy < options.target_accuracy
    if missed:
        say(f"validation accuracy {accuracy:.4f} is below the target of {options.target_accuracy}")
    leave(1 if missed else 0)


if __name__ == "__main__":
    main()
