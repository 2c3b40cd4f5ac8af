"""The commands about weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from stratsynth.cli.terminal import echo

weights_app = typer.Typer(
    help="The groups' shares that a release was put together by.", no_args_is_help=True, rich_markup_mode=None
)


@weights_app.command("sensitivity")
def weights_sensitivity(
    release: Annotated[Path, typer.Argument(metavar="RELEASE_DIR", help="A stratified release's folder.")],
    threshold: Annotated[
        float, typer.Option(metavar="PART", help="How far a result must go to have moved: 0.02 is 2 %, or 2 points.")
    ] = 0.02,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Only this column, and all its levels; repeat for more columns."),
    ] = None,
    off: Annotated[
        float | None, typer.Option(metavar="PART", help="Show bands: every share may be off by this part of itself.")
    ] = None,
    intervals: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Show bands: a CSV file with the groups' levels, low and high.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """How wrong a group's share must be to move an overall result. Reads no data, spends nothing."""
    from stratsynth.release import Release
    from stratsynth.release.sensitivity import weight_sensitivity
    from stratsynth.release.sensitivity_text import describe

    found = weight_sensitivity(
        Release.load(release), threshold=threshold, columns=column or None, off=off, intervals=intervals
    )
    echo(json.dumps(found.to_dict(), indent=1) if as_json else describe(found, every=bool(column)))
