"""Command that the study of means adds to `stratsynth`. Nothing heavy is imported before it runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from stratsynth.cli.terminal import echo


def register(app: typer.Typer) -> None:
    """Add the command to `app`; the core calls this by the entry-point group `stratsynth.commands`."""
    app.command()(means)


def means(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe whose mechanism is a private mean.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="The release folder, instead of the recipe's."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the means and intervals into a .png, .svg or .pdf.")
    ] = None,
    internal: Annotated[
        bool,
        typer.Option("--internal", help="INTERNAL: put the true means beside them, read from the data uncharged."),
    ] = False,
    level: Annotated[float, typer.Option(metavar="P", help="The level of the intervals.")] = 0.95,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show a recipe's private means, of everybody and of each group, with intervals.

    Reads the release if it is there, and otherwise spends the recipe's budget and writes it, as `fit` does.
    """
    from stratsynth.evaluation.means.shown import means_page, plain, show_means
    from stratsynth.report.text import render

    table, note = show_means(recipe, out, plot=plot, internal=internal, level=level)
    if as_json:
        echo(json.dumps({"internal": internal, "level": level, "means": plain(table)}, indent=1))
    else:
        echo(render(means_page(table, level, note, internal=internal)))
