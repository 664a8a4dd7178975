"""Running a contender's module in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from scripts.bench.environments import ROOT, MissingError, last_line

TIMEOUT = 3600
"""Seconds one run may take."""


def answer_of(python: Path, module: str, *arguments: object) -> dict[str, Any]:
    """The JSON object on the last line that ``python -m module …`` prints.

    Raises:
        MissingError: it fails; the text is its last words.
    """
    pipe = subprocess.PIPE
    command = list(map(str, (python, "-m", module, *arguments)))
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
