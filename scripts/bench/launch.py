"""Runs one contender once, in a child process of its own interpreter."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts.bench.environments import ROOT, MissingError, last_line
from scripts.bench.table import Run

TIMEOUT = 3600
"""Seconds one run may take."""


def launch(python: Path, module: str, arguments: Sequence[object]) -> Run:
    """What ``python -m module arguments`` measured; it prints a :class:`Run` as its last line of JSON.

    Raises:
        MissingError: see :func:`answer_of`.
    """
    return Run(**answer_of(python, module, arguments))


def answer_of(python: Path, module: str, arguments: Sequence[object]) -> dict[str, Any]:
    """The JSON object on the last line that ``python -m module arguments`` prints.

    Raises:
        MissingError: it failed, or did not end; the text says why.
    """
    command = [str(part) for part in (python, "-m", module, *arguments)]
    pipe = subprocess.PIPE
    try:
        child = subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
        try:
            answer, said = child.communicate(timeout=TIMEOUT)
        finally:
            # With all that it started, which may hold its pipes.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingError(str(error)) from None
    if child.returncode:
        raise MissingError(last_line(said))
    content: dict[str, Any] = json.loads(answer.splitlines()[-1])
    return content
