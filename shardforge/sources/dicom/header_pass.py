"""The header pass: the headers of many files, read by several processes, in the order of the files."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from queue import SimpleQueue

from shardforge.errors import SampleError, ShardforgeError
from shardforge.shards.catalogue import Reason
from shardforge.sources.dicom.foreign import FIRST_BYTES, describe_foreign
from shardforge.sources.dicom.header import Header
from shardforge.sources.dicom.read_header import HeaderSettings, read_header
from shardforge.sources.dicom.zips import Archives
from shardforge.sources.item import SourceFile

_CHUNK = 64
_WORTH_PROCESSES = 2048
"""Fewer files are read faster than processes start."""

_STARTS = 3
"""How often a process that never became ready is started."""
_DEATHS = 2
"""Processes that have to die on a file alone before it is to blame: somebody may have killed one."""
# The worker finds modules where its parent does, installed or not; and nothing of the parent's script is run again.
_WORKER = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from shardforge.sources.dicom.header_pass import serve
serve(int(sys.argv[2]))
"""


def read_headers(
    root: Path,
    files: Sequence[SourceFile],
    settings: HeaderSettings,
    workers: int,
    progress: Callable[[int, int], None] | None = None,
) -> list[Header]:
    """One header per file, in their order. A file that makes a parser fail, or kills its process, is a header with
    a problem.

    Args:
        root: the source folder.
        files: below it; members of archives by their paths.
        workers: processes to use; few files are read without any.
        progress: called with the number of headers read and the number of files.

    Raises:
        ShardforgeError: a process cannot be started.
    """
    chunks = [files[start : start + _CHUNK] for start in range(0, len(files), _CHUNK)]
    found: list[Header] = []
    if workers < 2 or len(files) < _WORTH_PROCESSES:
        with Archives(root) as archives:
            for chunk in chunks:
                found += [_read(archives, file, settings) for file in chunk]
                _tell(progress, found, files)
        return found
    idle: SimpleQueue[_Worker] = SimpleQueue()
    started = [_Worker(root, settings) for _ in range(min(workers, len(chunks)))]

    def run(chunk: Sequence[SourceFile]) -> list[Header]:
        worker = idle.get()
        try:
            return worker.read(chunk)
        finally:
            idle.put(worker)

    threads = ThreadPoolExecutor(len(started))
    try:
        # They load their libraries side by side.
        for worker in started:
            worker.wait()
            idle.put(worker)
        for headers in threads.map(run, chunks):
            found += headers
            _tell(progress, found, files)
    finally:
        threads.shutdown(cancel_futures=True)
        for worker in started:
            worker.stop()
    return found


def serve(descriptor: int) -> None:
    """The worker's side: reads chunks of files until the pipe closes."""
    with Connection(descriptor) as pipe, contextlib.suppress(EOFError):
        root, settings = pipe.recv()
        pipe.send("ready")
        with Archives(root) as archives:
            while True:
                files: list[SourceFile] = pipe.recv()
                pipe.send([_read(archives, file, settings) for file in files])


def _read(archives: Archives, source: SourceFile, settings: HeaderSettings) -> Header:
    try:
        with archives.open(source.path) as file:
            header = read_header(file, source, settings)
            if header.problem is not Reason.NOT_DICOM:
                return header
            file.seek(0)
            return replace(header, detail=describe_foreign(file.read(FIRST_BYTES)))
    except SampleError as error:
        return Header(source, problem=error.reason, detail=error.detail)
    except OSError as error:
        return Header(source, problem=Reason.UNREADABLE, detail=str(error.strerror))


def _tell(progress: Callable[[int, int], None] | None, found: Sequence[Header], files: Sequence[SourceFile]) -> None:
    if progress is not None:
        progress(len(found), len(files))


class _Worker:
    """A process that reads headers, once it has been waited for; a fresh one takes over when it dies."""

    def __init__(self, root: Path, settings: HeaderSettings) -> None:
        self._settings = (root, settings)
        self._pipe, self._process = self._start()

    def wait(self) -> None:
        """Until the process can read. One that is killed before that is started again.

        Raises:
            ShardforgeError: it cannot be started.
        """
        for _ in range(_STARTS):
            try:
                self._pipe.send(self._settings)
                self._pipe.recv()
                return
            except (EOFError, OSError):
                self.stop()
                self._pipe, self._process = self._start()
        self.stop()
        raise ShardforgeError("a process that reads headers cannot be started")

    def read(self, files: Sequence[SourceFile], deaths: int = 0) -> list[Header]:
        """Their headers. ``deaths``: of processes that read just these files."""
        try:
            self._pipe.send(list(files))
            headers: list[Header] = self._pipe.recv()
            return headers
        except (EOFError, OSError):
            self.stop()
            self._pipe, self._process = self._start()
            self.wait()
        if len(files) == 1 and deaths + 1 < _DEATHS:
            return self.read(files, deaths + 1)
        if len(files) == 1:
            return [Header(files[0], problem=Reason.DECODER_CRASH, detail="the process died on its header")]
        half = len(files) // 2
        return self.read(files[:half]) + self.read(files[half:])

    def stop(self) -> None:
        self._pipe.close()
        self._process.kill()
        self._process.wait()

    def _start(self) -> tuple[Connection, subprocess.Popen[bytes]]:
        ours, theirs = Pipe()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-c", _WORKER, json.dumps(sys.path), str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # What libraries say of a file may quote it.
                stderr=subprocess.DEVNULL,
            )
        return ours, process
