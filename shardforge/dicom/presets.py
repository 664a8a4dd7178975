"""Named windows of radiology, and stacks of them as used in practice; centers and widths in Hounsfield units.

There is no standard for them: each has the values that are met most often, and names others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Preset:
    """A named window for CT.

    Attributes:
        center, width: in HU.
        shows: what it is for, in a line.
        variants: (center, width) of others in use under this name.
    """

    center: float
    width: float
    shows: str
    variants: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Combination:
    """Several windows of one image, as channels.

    Attributes:
        windows: (center, width) in HU, in the order of channels.
        shows: what it is for, in a line.
    """

    windows: tuple[tuple[float, float], ...]
    shows: str


PRESETS: Mapping[str, Preset] = {
    "lung": Preset(
        -600, 1500, "airways, nodules, emphysema", ((-500, 1500), (-400, 1500), (-600, 1600), (-500, 1000))
    ),
    "mediastinum": Preset(50, 350, "heart, vessels and lymph nodes of the chest", ((40, 400), (50, 300))),
    "soft-tissue": Preset(40, 400, "muscle and organs anywhere", ((50, 350), (50, 400), (40, 350))),
    "abdomen": Preset(60, 400, "organs of the abdomen", ((50, 350), (50, 400), (40, 350))),
    "liver": Preset(90, 150, "liver and its lesions", ((60, 150), (100, 200), (80, 305))),
    "liver-narrow": Preset(30, 150, "liver lesions, with less room above"),
    "pelvis": Preset(40, 400, "organs of the pelvis", ((50, 250),)),
    "breast": Preset(-50, 400, "breast on CT (mammograms have windows of their own)"),
    "angio": Preset(300, 600, "vessels filled with contrast", ((100, 700), (170, 600))),
    "bone": Preset(480, 2500, "fractures, cortex", ((300, 1500), (500, 2000), (1000, 3000), (400, 1800))),
    "temporal-bone": Preset(600, 2800, "inner and middle ear, skull", ((700, 4000),)),
    "spine-soft": Preset(50, 250, "discs and spinal canal"),
    "spine-bone": Preset(400, 1800, "vertebrae"),
    "brain": Preset(40, 80, "grey and white matter, bleeding", ((35, 80), (45, 125))),
    "subdural": Preset(80, 200, "blood beside bone", ((100, 300), (75, 215))),
    "stroke": Preset(40, 40, "early loss of contrast between grey and white matter", ((32, 8),)),
    "posterior-fossa": Preset(80, 250, "cerebellum and brain stem"),
    "full": Preset(500, 3000, "everything from air to dense bone"),
}

COMBINATIONS: Mapping[str, Combination] = {
    "brain-subdural-bone": Combination(((40, 80), (80, 200), (600, 2800)), "bleeding in the head (RSNA 2019)"),
    "brain-subdural-soft": Combination(((40, 80), (80, 200), (40, 380)), "bleeding in the head, soft tissue third"),
    "pe": Combination(((-600, 1500), (100, 700), (40, 400)), "pulmonary embolism: lung, arteries, mediastinum"),
}
