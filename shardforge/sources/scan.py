"""Lists the raw data of a build: which items there are, and what is known of them before any pixel is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from shardforge.errors import StorageError, UsageError
from shardforge.shards.catalogue import Reason
from shardforge.sources.folders import scan_folders
from shardforge.sources.inventory import take_inventory
from shardforge.sources.item import Item, Scan, UnknownFile
from shardforge.sources.names import sort_items, source_name
from shardforge.sources.options import SourceOptions
from shardforge.sources.siblings import Roles
from shardforge.sources.table import scan_table

__all__ = ["Scan", "SourceOptions", "check_root", "demand_labels", "scan"]


def scan(root: Path, options: SourceOptions) -> Scan:
    """Lists the items below ``root``.

    The first that fits, named in :attr:`Scan.layout`:

    1. a table: its rows are the items;
    2. split folders: every top-level folder that holds images has a split's name (train, val, test, …), train among
       them; below each of them as follows;
    3. a labels list (``labels.csv``, ``.tsv`` or ``.txt``) that names files beside it or in ``images/``;
    4. class folders: the first folder is the label;
    5. a flat folder without labels.

    In all of them sidecars with an image's stem become fields of its item, and every file that is neither is in
    :attr:`Scan.unknown`. If any item has a label, the others have the problem ``missing_label``.

    Raises:
        UsageError: the root is no folder or holds no image; or the table, a labels list or an option is unusable.
        StorageError: a folder or a list cannot be read, so that items might be missed.
    """
    check_root(root)
    inventory = take_inventory(root, Roles(options.fields), options.follow_symlinks)
    if options.table is not None:
        found = scan_table(inventory, options.table, options)
    elif not inventory.images:
        raise UsageError(
            f"no image found: {inventory.describe_rest()}", where=source_name(str(root)), todo="Is this the folder?"
        )
    else:
        found = scan_folders(inventory, options)
    if inventory.inner_links:
        found.notes.append(
            f"{inventory.inner_links:,} symbolic links lead to other places of the source: what is there is listed "
            "twice (--dedup bytes keeps both in one split, or drops one)"
        )
    demand_labels(found.items)
    sort_items(found.items)
    found.unknown = sorted(
        (UnknownFile(source_name(thing.path), thing.why) for thing in found.unknown), key=lambda thing: thing.path
    )
    return found


def check_root(root: Path) -> None:
    """Refuses a root that is no folder.

    Raises:
        UsageError, StorageError: why.
    """
    where = source_name(str(root))
    try:
        exists, is_folder = root.exists(), root.is_dir()
    except OSError as error:
        raise StorageError(f"cannot be examined ({error.strerror})", where=where) from None
    if not exists:
        raise UsageError("there is no such folder", where=where)
    if not is_folder:
        raise UsageError("is not a folder", where=where, todo="Name the folder that holds the images.")


def demand_labels(items: list[Item]) -> None:
    """Where some items have labels, the others lack theirs."""
    if any(item.label is not None for item in items):
        for index, item in enumerate(items):
            if item.label is None and item.problem is None:
                items[index] = replace(item, problem=Reason.MISSING_LABEL, detail="no label is given for it")
