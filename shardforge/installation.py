"""What is installed beside shardforge: versions, codecs, what fails to import. Imports only what it looks at."""

from __future__ import annotations

import importlib
import importlib.metadata
import platform
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PILLOW_CODECS = ("jpg", "zlib", "webp", "libtiff", "littlecms2", "avif", "jpg_2000")


@dataclass(frozen=True)
class Package:
    """A distribution; ``version`` is None where it is absent, ``hint`` then says how to get it."""

    name: str
    version: str | None
    hint: str | None = None


@dataclass(frozen=True)
class Pillow:
    """What ``import PIL`` gives: the distribution it comes from, and the codecs it was compiled with."""

    distribution: str
    version: str
    simd: bool
    codecs: tuple[str, ...]


@dataclass(frozen=True)
class Problem:
    """Something to repair: what is wrong and what to do."""

    what: str
    todo: str


def inspect_pillow() -> tuple[Pillow | None, list[Problem]]:
    """The active Pillow, None where it does not import, and what is wrong with it.

    pillow-simd and pillow install the same files; whichever came last is what ``import PIL`` gives.
    pillow-simd numbers its releases as post releases of the Pillow they stem from.
    """
    simd_belongs = platform.machine() in ("x86_64", "AMD64")
    wanted = "pillow-simd" if simd_belongs else "pillow"
    problems = []
    if version_of("pillow") is not None and simd_belongs:
        problems.append(
            Problem(
                "pillow was installed over pillow-simd, or instead of it; resizing is then several times slower",
                "pip uninstall -y pillow && pip install --force-reinstall --no-deps pillow-simd",
            )
        )
    imaging, failure = load("PIL.Image", wanted)
    features, _ = load("PIL.features", wanted)
    if imaging is None or features is None:
        return None, [*problems, *([failure] if failure is not None else [])]
    version = str(imaging.__version__)
    simd = ".post" in version
    supported = features.get_supported()
    codecs = tuple(name for name in PILLOW_CODECS if name in supported)
    for name, header in (("jpg", "libjpeg-dev"), ("zlib", "zlib1g-dev")):
        if name not in codecs:
            rebuild = f"pip install --force-reinstall --no-deps --no-cache-dir {wanted}"
            problems.append(Problem(f"Pillow was compiled without {name}", f"apt-get install {header} && {rebuild}"))
    return Pillow("pillow-simd" if simd else "pillow", version, simd, codecs), problems


def version_of(distribution: str) -> str | None:
    """The installed version, None where it is absent or its metadata cannot be read."""
    try:
        return importlib.metadata.version(distribution)
    except Exception:
        return None


def load(module: str, distribution: str) -> tuple[Any, Problem | None]:
    """The imported module, or None and what to do about it."""
    try:
        return importlib.import_module(module), None
    except ModuleNotFoundError as error:
        return None, Problem(f"import {module} fails ({error})", f"pip install {distribution}")
    # A broken native library shows itself only here, in whatever exception it likes.
    except Exception as error:
        text = f"import {module} fails ({type(error).__name__}: {' '.join(str(error).split())})"
        return None, Problem(text, f"pip install --force-reinstall {distribution}")


def libjpeg_turbo_versions() -> dict[str, str]:
    """Package -> the libjpeg-turbo release it decodes JPEG with; those that do not tell are left out."""
    found = {}
    for name, module, pattern in (
        ("pillow", "PIL.features", r"([\d.]+)"),
        ("simplejpeg", "simplejpeg._jpeg", r"libjpeg-turbo version ([\d.]+)"),
        ("opencv", "cv2", r"libjpeg-turbo \(ver ([\d.]+)"),
        ("imagecodecs", "imagecodecs", r"libjpeg_turbo ([\d.]+)"),
    ):
        try:
            told = re.search(pattern, _jpeg_build(importlib.import_module(module)))
        except Exception:
            continue
        if told is not None:
            found[name] = told[1]
    return found


def _jpeg_build(module: Any) -> str:
    match module.__name__:
        case "PIL.features":
            return str(module.version("libjpeg_turbo"))
        case "cv2":
            return str(module.getBuildInformation())
        case "imagecodecs":
            return str(module.jpeg8_version())
        case _:
            # simplejpeg has no call for it, but the library inside its extension carries its version string.
            return Path(module.__file__).read_bytes().decode("latin-1")


def find_decoders() -> dict[str, str | None]:
    """Image format -> the package that decodes it, None if not installed; empty where codecs do not load."""
    try:
        table = importlib.import_module("shardforge.codecs.decode").DECODERS
    except Exception:
        return {}
    names = {kind: name for kind, (name, _) in table.items()}
    present = {name for name in names.values() if name == "pillow" or version_of(name) is not None}
    return {kind: name if name in present else None for kind, name in names.items()}


def find_gpus() -> tuple[str | None, tuple[str, ...]]:
    """The CUDA release torch was built for, None for a CPU build or without torch; its devices' names."""
    try:
        torch = importlib.import_module("torch")
        names = [str(torch.cuda.get_device_name(number)) for number in range(torch.cuda.device_count())]
        return torch.version.cuda, tuple(names)
    except Exception:
        return None, ()
