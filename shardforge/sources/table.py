"""Items of a source that a table lists."""

from __future__ import annotations

from pathlib import Path

from shardforge.sources.inventory import Finder, Inventory
from shardforge.sources.item import Scan, UnknownFile
from shardforge.sources.meanings import find_meanings
from shardforge.sources.options import SourceOptions
from shardforge.sources.rows import Listing, RowReader, RowTally, settle_columns
from shardforge.sources.tables.open import open_table


def scan_table(inventory: Inventory, path: Path, options: SourceOptions) -> Scan:
    """One item per row, in the table's order; neither sorted nor checked for missing labels.

    A path in the table is relative to the source folder; where no file is there, to the table's own folder. It never
    leads out of the source folder, whether by ``..``, as an absolute path, or through a link that is not followed.

    Raises:
        UsageError: the table is absent, of no known kind, cannot be parsed, has no column of paths or lacks one that
            is asked for; or none of its files exists.
        StorageError: it cannot be read.
    """
    table = open_table(path)
    meanings = find_meanings(table, options)
    finder = Finder(inventory)
    listing = Listing(table, meanings, bases=(inventory.root, str(path.parent.absolute())))
    columns = settle_columns([listing])
    tally = RowTally()
    items = list(RowReader(listing, columns, finder, inventory.root, options.label_separator, tally).items())
    skip = tally.used | set(finder.relative(str(path.absolute()), listing.bases))
    rest = [file.path for fields in inventory.images for file in fields.values()]
    rest += (file.path for file, _ in inventory.rest)
    unknown = [UnknownFile(name, "not in the table") for name in dict.fromkeys(rest) if name not in skip]
    unknown += (UnknownFile(name, "the label comes from elsewhere") for name in tally.ignored)
    return Scan(
        layout=f"table {path.name}",
        items=items,
        unknown=[*inventory.blocked, *unknown],
        columns={name: kind for name, (kind, _) in columns.items()},
        splits_declared=any(item.split is not None for item in items),
        notes=[*meanings.notes, *tally.notes()],
    )
