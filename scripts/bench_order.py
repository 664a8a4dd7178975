"""Time and memory of an order, and of a rank's share of it, for very many samples: python scripts/bench_order.py

    --samples 100000000 --shards 100000 --world 64 --batch-size 256

Nothing is read: the manifest is a synthetic one. Each measurement has a process of its own, whose peak memory is
compared with that of a process which only imports the same modules.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import numpy as np

from shardforge.stream.order import SampleOrder
from shardforge.stream.share import Share


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time and memory of an order for very many samples.")
    parser.add_argument("--samples", type=int, default=100_000_000)
    parser.add_argument("--shards", type=int, default=100_000)
    parser.add_argument("--world", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--shuffle", choices=["full", "window", "none", "nothing"], help=argparse.SUPPRESS)
    return parser.parse_args()


def measure(options: argparse.Namespace) -> None:
    """Prints seconds to the first batch, microseconds per further batch, and peak memory in MB, of this process."""
    first = each = 0.0
    if options.shuffle != "nothing":
        counts = np.full(options.shards, options.samples // options.shards)
        counts[: options.samples % options.shards] += 1
        shuffle = {"full": True, "window": 16_384, "none": False}[options.shuffle]
        begun = time.perf_counter()
        order = SampleOrder("synthetic", 0, 0, counts.tolist(), shuffle)
        share = Share(options.samples, options.batch_size, options.world - 1, options.world, "drop")
        order.at(share.rows(np.array([0]))[0])
        first = time.perf_counter() - begun
        steps = np.linspace(0, share.steps - 1, 200).astype(np.int64)
        begun = time.perf_counter()
        for step in steps:
            order.at(share.rows(step[None])[0])
        each = (time.perf_counter() - begun) / len(steps)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(first, each * 1e6, peak)


def main() -> None:
    """Prints a table."""
    options = arguments()
    if options.shuffle:
        measure(options)
        return
    found = {}
    for shuffle in ("nothing", "full", "window", "none"):
        command = [sys.executable, *sys.argv, "--shuffle", shuffle]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found[shuffle] = [float(text) for text in done.stdout.split()]
    print(f"{options.samples:,} samples, {options.shards:,} shards, rank {options.world - 1} of {options.world}")
    print(f"{'shuffle':8} {'first batch':>12} {'each further':>13} {'memory':>8}")
    for shuffle in ("full", "window", "none"):
        first, each, peak = found[shuffle]
        print(f"{shuffle:8} {first:10.2f} s {each:10.0f} µs {peak - found['nothing'][2]:5.0f} MB")


if __name__ == "__main__":
    main()
