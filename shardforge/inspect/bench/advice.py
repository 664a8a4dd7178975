"""What the measurements mean: what holds training up, and which setting to use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from shardforge.inspect.bench.settings import Setting, Speed

Binding = Literal["storage", "CPU", "hand-over", "step"]

_FED = 0.95
"""A step is fed if it comes round at this part of its own pace."""
_ALIKE = 0.97
"""Settings this close to the best are as good."""


@dataclass(frozen=True)
class Advice:
    """What to do.

    Attributes:
        binds: ``storage`` (reading), ``CPU`` (decoding and transforming), ``hand-over`` (making batches of samples)
            or ``step`` (the GPU: batches come faster than they are used).
        why: one sentence.
        use: the smallest setting that is as good as the best.
    """

    binds: Binding
    why: str
    use: Setting


def advise(means: Mapping[str, float], speeds: Sequence[Speed], batch_size: int) -> Advice:
    """Judges measurements.

    Args:
        means: stage → mean seconds per sample.
        speeds: of all settings; those beside a step, if there are any, decide.
    """
    stepped = [speed for speed in speeds if speed.step_ms]
    judged = stepped or list(speeds)
    best = max(judged, key=lambda speed: speed.rate)
    enough = _ALIKE * best.rate
    if stepped:
        wanted = 1000 * batch_size / best.step_ms
        if best.rate >= _FED * wanted:
            why = f"a step of {best.step_ms:g} ms uses {wanted:,.0f} images/s at most, and they are there"
            return Advice("step", why, _smallest(judged, _FED * wanted))
    cpu = means["decode"] + means["transform"]
    total = sum(means.values()) or 1.0
    parts: dict[Binding, float] = {"storage": means["storage"], "CPU": cpu, "hand-over": means["hand-over"]}
    binds = max(parts, key=lambda name: parts[name])
    details = {
        "storage": "waiting for storage",
        "CPU": "decoding" if means["decode"] >= means["transform"] else "transforming",
        "hand-over": "making batches of samples",
    }
    seconds = max(means["decode"], means["transform"]) if binds == "CPU" else parts[binds]
    why = f"{details[binds]} takes {100 * seconds / total:.0f} % of a sample's time"
    return Advice(binds, why, _smallest(judged, enough))


def _smallest(speeds: Sequence[Speed], rate: float) -> Setting:
    return min((speed.setting for speed in speeds if speed.rate >= rate), key=lambda setting: setting.size)
