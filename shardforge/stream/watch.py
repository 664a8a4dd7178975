"""Worker processes do not outlive the training process, whatever ended that."""

from __future__ import annotations

import multiprocessing
import os
import select
import threading


def end_with_parent() -> None:
    """Ends this worker process at once when the process that it works for is gone, however that was ended.

    A DataLoader's worker looks at its parent's number now and then, which for ``forkserver`` is the server's. So a
    thread waits for the process that asked for this one, by a descriptor of it (``pidfd_open(2)``) or, where the
    system has none, by the end of a pipe that it holds.
    """
    trainer = multiprocessing.parent_process()
    if trainer is not None:
        threading.Thread(target=_wait_and_end, args=(trainer,), name="shardforge-watch", daemon=True).start()


def _wait_and_end(trainer: multiprocessing.process.BaseProcess) -> None:
    try:
        descriptor = os.pidfd_open(trainer.pid or 0)
    except ProcessLookupError:
        os._exit(1)
    except (AttributeError, OSError):
        # Closed by the end of the process; so a sibling that was forked later and holds it too delays this.
        trainer.join()
    else:
        select.select([descriptor], [], [])
    os._exit(1)
