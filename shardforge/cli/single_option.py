"""Options of the command line that take one value, and refuse a second instead of forgetting the first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


class SingleOption(click.Option):
    """An option that may be given once; flags, and options with ``multiple=True``, are as in click.

    Raises:
        click.BadOptionUsage: while arguments are parsed, if it is given again.
    """

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Has the parser collect all values, where it would keep the last."""
        collects = self.multiple
        self.multiple = collects or not self.is_flag
        try:
            super().add_to_parser(parser, ctx)
        finally:
            self.multiple = collects

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> Any:
        """The one value that was given, or what click finds elsewhere."""
        given = opts.get(self.name or "")
        if isinstance(given, list) and not self.multiple:
            if len(given) > 1:
                told = " and ".join(repr(value) for value in given)
                raise click.BadOptionUsage(self.opts[0], f"{self.opts[0]} takes one value; given were {told}", ctx)
            opts = {**opts, self.name or "": given[0]}
        return super().consume_value(ctx, opts)


def option(*names: str, **attributes: Any) -> Callable[[Command], Command]:
    """``click.option`` with :class:`SingleOption`."""
    return click.option(*names, cls=SingleOption, **attributes)
