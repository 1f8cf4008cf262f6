"""Help in two lengths: ``--help`` shows what most people need, ``--help-all`` everything."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from typing import Any

import click

_ALL = "help_all of sfumato"


class ShortHelp(click.Command):
    """A command with many options, of which ``--help`` shows the common ones.

    Parameters
    ----------
    common : collection of str
        Options that are shown, by the names of their parameters.

    Notes
    -----
    Of the docstring ``--help`` shows what comes before a form feed, as click has it.
    """

    def __init__(self, *args: Any, common: Collection[str], **settings: Any) -> None:
        super().__init__(*args, **settings)
        unknown = set(common) - {parameter.name for parameter in self.params}
        if unknown:
            problem = f"{self.name}: no such options: {', '.join(sorted(unknown))}"
            raise TypeError(problem)
        self._common = common
        said = "Show all options and examples, and exit."
        shown = click.Option(["--help-all"], is_flag=True, is_eager=True, expose_value=False, help=said)
        shown.callback = _show_all
        self.params.append(shown)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the text, or the part of it that most people need."""
        if _ALL not in ctx.meta:
            super().format_help_text(ctx, formatter)
            return
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(inspect.cleandoc(self.help or "").replace("\f", ""))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, or the common ones."""
        names = {*self._common, "help_all", *(own.name for own in [self.get_help_option(ctx)] if own is not None)}
        every = self.get_params(ctx)
        shown = [own.get_help_record(ctx) for own in every if _ALL in ctx.meta or own.name in names]
        with formatter.section("Options" if _ALL in ctx.meta else "Common options (all: --help-all)"):
            formatter.write_dl([record for record in shown if record is not None])


def _show_all(context: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    if is_wanted and not context.resilient_parsing:
        context.meta[_ALL] = True
        click.echo(context.get_help(), color=context.color)
        context.exit()
