"""What a build is made of: the items of the source, and the recipe as that kind of source settles it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from shardforge.compile.frames import expand_frames
from shardforge.compile.identity_key import KeyFile
from shardforge.compile.private_map import Original, write_private_map
from shardforge.compile.progress import Reporter
from shardforge.compile.source_file import hash_source
from shardforge.compile.source_options import source_options
from shardforge.dicom.slices import SeriesFinding
from shardforge.recipe import Recipe
from shardforge.sources.kind import find_kind
from shardforge.sources.scan import Scan, check_root, scan


@dataclass(frozen=True)
class Listing:
    """A source, listed.

    Attributes:
        root: the source folder.
        key: what identifiers are hashed with; None: they are kept, or there are none.
        originals: what each hash stands for.
        series: hash or UID of a DICOM series, and what was found of its slices.
        privacy: as in the manifest.
    """

    root: Path
    scan: Scan
    recipe: Recipe
    key: KeyFile | None = None
    originals: tuple[Original, ...] = ()
    series: tuple[tuple[str, SeriesFinding], ...] = ()
    privacy: dict[str, str] = field(default_factory=dict)

    @property
    def key_file(self) -> str | None:
        """Where workers find the key."""
        return None if self.key is None else str(self.key.path)

    def digest(self, path: str) -> str | None:
        """The sha256 of a source file as rows have it; None when it cannot be read."""
        plain = hash_source(self.root, path)
        if plain is None or self.key is None:
            return plain
        return self.key.key.hash_identifier("source_sha256", plain)

    def write_private_map(self, outside: tuple[Path, ...]) -> None:
        """Writes beside the key what each hash stands for, if the recipe asks for it.

        Raises:
            UsageError, StorageError: it cannot be written there.
        """
        if self.key is not None and self.recipe.run.private_map:
            write_private_map(self.key.map_path, self.originals, outside)

    @property
    def conceal(self) -> Callable[[str], str] | None:
        """What stands for names of files and groups where others could try them out."""
        key = self.key
        return None if key is None else lambda name: key.key.hash_identifier("source", name or "\0")


def list_source(source: Path, out: Path, recipe: Recipe, reporter: Reporter) -> Listing:
    """Lists the items of a source, whatever kind it is.

    Raises:
        UsageError, StorageError: the source, a table or the identity key cannot be used.
    """
    check_root(source)
    note = None
    kind = recipe.kind
    if kind == "auto":
        kind, note = find_kind(source, recipe.follow_symlinks)
    recipe = recipe.settled(kind)
    if kind == "images":
        found = expand_frames(scan(source, source_options(recipe)), source, recipe)
        listing = Listing(source, found, recipe)
    else:
        from shardforge.compile.dicom.listing import list_dicom

        listing = list_dicom(source, out, recipe, reporter)
    if note is not None:
        listing.scan.notes.append(note)
    return listing
