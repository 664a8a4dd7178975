"""Where a sequential reader's tars are: what the user wrote → one URL or path for each shard."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from pathlib import Path

from braceexpand import braceexpand

from shardforge.errors import UsageError

Urls = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PATTERN = re.compile(r"[*?\[]")


def expand(urls: Urls) -> tuple[str, ...]:
    """Braces (``train-{000..099}.tar``) become several URLs; patterns of local paths (``*``, ``?``, ``[…]``) the
    files that they match, in sorted order, unless a file of that very name exists.

    Raises:
        UsageError: nothing is named, braces are not balanced, a pattern matches no file, or a path is a folder.
    """
    given = [urls] if isinstance(urls, str | os.PathLike) else list(urls)
    found = [url for entry in given for url in _expand_one(os.fspath(entry))]
    if not found:
        raise UsageError("no shard is named", todo='For example "train-{000000..000099}.tar" or "data/train-*.tar".')
    return tuple(found)


def _expand_one(text: str) -> list[str]:
    if _is_local(text) and Path(text).is_file():
        return [text]
    try:
        texts = list(braceexpand(text))
    except ValueError as error:
        raise UsageError(f"braces that cannot be expanded ({error})", where=text) from None
    return [url for each in texts for url in (_matches(each) if _is_local(each) else [each])]


def _is_local(text: str) -> bool:
    return _SCHEME.match(text) is None and text != "-"


def _matches(path: str) -> list[str]:
    if Path(path).is_dir():
        raise UsageError(
            "is a folder, not a shard", where=path, todo=f"Name the shards in it: {path.rstrip('/')}/*.tar"
        )
    if Path(path).exists() or _PATTERN.search(path) is None:
        return [path]
    # Path.glob takes no absolute patterns.
    found = sorted(glob.glob(path, recursive=True))  # noqa: PTH207
    if not found:
        raise UsageError("matches no file", where=path)
    return found
