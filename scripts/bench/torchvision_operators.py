"""torchvision beside a CPU build of torch."""

from __future__ import annotations


def declare() -> None:
    """Declares the operators for lack of which importing torchvision fails with RuntimeError beside a CPU build of
    torch: its compiled part does not load there. Nothing in the benchmarks needs them."""
    import torch

    for name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
