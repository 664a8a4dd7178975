"""The command line, one module for each command."""

from shardforge.cli.group import main

__all__ = ["main"]
