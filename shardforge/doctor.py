"""What this installation can do on this machine, and what stands in the way."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from shardforge.installation import (
    Package,
    Pillow,
    Problem,
    find_decoders,
    find_gpus,
    inspect_pillow,
    libjpeg_turbo_versions,
    load,
    version_of,
)
from shardforge.machine import Machine, inspect_machine

# Import name -> distributions that may carry it, the expected one first.
REQUIRED: Mapping[str, tuple[str, ...]] = {
    "numpy": ("numpy",),
    "torch": ("torch",),
    "webdataset": ("webdataset",),
    "cv2": ("opencv-python-headless", "opencv-contrib-python-headless", "opencv-python", "opencv-contrib-python"),
    "imagecodecs": ("imagecodecs",),
    "simplejpeg": ("simplejpeg",),
    "pydicom": ("pydicom",),
    "pyarrow": ("pyarrow",),
    "pydantic": ("pydantic",),
    "yaml": ("pyyaml",),
}
# Distribution that the package uses where it is there -> how to get it.
OPTIONAL: Mapping[str, str] = {
    "pillow-heif": "pip install --no-deps pillow-heif",
}
MIN_SHARED_MEMORY = 2**30
MIN_OPEN_FILES = 1024


@dataclass(frozen=True)
class Report:
    """The findings of `diagnose`.

    Attributes:
        shardforge: installed version, None when it runs from a folder that was never installed.
        packages: what shardforge needs; ``optional``: what it uses where that is there.
        libjpeg_turbo: package -> the libjpeg-turbo release it decodes JPEG with.
        decoders: image format -> the package that decodes it, None where that is not installed.
        cuda_version: CUDA release torch was built for, None for a CPU build or without torch.
        gpus: names of the devices torch can use.
    """

    shardforge: str | None
    python: str
    platform: str
    machine: Machine
    packages: tuple[Package, ...]
    optional: tuple[Package, ...]
    pillow: Pillow | None
    libjpeg_turbo: Mapping[str, str]
    decoders: Mapping[str, str | None]
    cuda_version: str | None
    gpus: tuple[str, ...]
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return {**asdict(self), "ok": self.ok}

    def lines(self) -> list[str]:
        """The report as text, problems last."""
        machine, pillow = self.machine, self.pillow
        quota = "" if machine.cpu_quota is None else f", {machine.cpu_quota:g} of their time"
        cuda = "none in this torch" if self.cuda_version is None else self.cuda_version
        facts = [
            ("shardforge", self.shardforge or "not installed as a distribution"),
            ("Python", self.python),
            ("platform", self.platform),
            ("processors", f"{machine.cpus}{quota}"),
            ("memory", _size(machine.memory_bytes)),
            ("/dev/shm", _size(machine.shared_memory_bytes)),
            ("open files", "no limit" if machine.open_files is None else f"{machine.open_files}"),
            ("CUDA", f"{cuda}; devices: {', '.join(self.gpus) or 'none'}"),
            *((package.name, package.version or "missing") for package in self.packages),
            *((package.name, package.version or f"absent ({package.hint})") for package in self.optional),
        ]
        if pillow is not None:
            kind = "SIMD" if pillow.simd else "no SIMD"
            facts.append(("PIL", f"{pillow.distribution}, {kind}, codecs: {', '.join(pillow.codecs)}"))
        if self.libjpeg_turbo:
            facts.append(("libjpeg-turbo", ", ".join(f"{name} {told}" for name, told in self.libjpeg_turbo.items())))
        for decoder in dict.fromkeys(self.decoders.values()):
            formats = ", ".join(kind for kind, name in self.decoders.items() if name == decoder)
            facts.append(("not decoded" if decoder is None else f"decoded by {decoder}", formats))
        text = [f"{name:<24}{value}" for name, value in facts]
        text += [f"problem: {problem.what}. {problem.todo}" for problem in self.problems]
        return text if self.problems else [*text, "no problems found"]


def diagnose() -> Report:
    """Looks at the machine and imports every required package. Never raises: what fails becomes a problem."""
    machine = inspect_machine()
    pillow, problems = inspect_pillow()
    packages = [
        Package(name, version) for name in ("pillow-simd", "pillow") if (version := version_of(name)) is not None
    ]
    for module, distributions in REQUIRED.items():
        installed = [Package(name, version) for name in distributions if (version := version_of(name)) is not None]
        packages += installed or [Package(distributions[0], None)]
        if len(installed) > 1:
            names = " and ".join(package.name for package in installed)
            problems.append(
                Problem(f"{names} are all installed and overwrite each other's files", "Keep one and reinstall it")
            )
        _, failure = load(module, distributions[0])
        if failure is not None:
            problems.append(failure)
    if machine.shared_memory_bytes is not None and machine.shared_memory_bytes < MIN_SHARED_MEMORY:
        problems.append(
            Problem(
                f"/dev/shm holds only {_size(machine.shared_memory_bytes)}, and DataLoader workers hand their "
                "batches over through it",
                "In Docker: --shm-size=8g or --ipc=host; in Kubernetes: an emptyDir of medium Memory at /dev/shm",
            )
        )
    if machine.open_files is not None and machine.open_files < MIN_OPEN_FILES:
        problems.append(Problem(f"a process may open only {machine.open_files} files", f"ulimit -n {MIN_OPEN_FILES}"))
    cuda_version, gpus = find_gpus()
    return Report(
        shardforge=version_of("shardforge"),
        python=platform.python_version(),
        platform=platform.platform(),
        machine=machine,
        packages=tuple(packages),
        optional=tuple(Package(name, version_of(name), hint) for name, hint in OPTIONAL.items()),
        pillow=pillow,
        libjpeg_turbo=libjpeg_turbo_versions(),
        decoders=find_decoders(),
        cuda_version=cuda_version,
        gpus=gpus,
        problems=tuple(problems),
    )


def _size(count: int | None) -> str:
    return "unknown" if count is None else f"{count / 2**30:.1f} GiB"
