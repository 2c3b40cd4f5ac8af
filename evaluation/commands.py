"""The commands that the evaluation adds to `stratsynth`. Nothing heavy is imported before one of them runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the commands; the core calls this by the entry-point group `stratsynth.commands`."""
    app.command()(audit)
    app.command()(demo)


def demo(
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where to put everything; by default a new folder here.")
    ] = None,
    rows: Annotated[int, typer.Option(metavar="N", min=100, help="How many people to simulate.")] = 50_000,
) -> None:
    """Run the whole job on the built-in census: plan, a vanilla and a stratified fit, what each group got."""
    from stratsynth.evaluation.demo import run_demo

    run_demo(out, rows, typer.echo)


def audit(
    mechanism: Annotated[
        str | None, typer.Argument(metavar="[MECHANISM]", help="An installed mechanism; without, what all build on.")
    ] = None,
    long: Annotated[bool, typer.Option("--long", help="Minutes instead of seconds.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Try to catch the noise being too small. Exit code 1 if it was, or if a broken control was missed.

    Reads no data of yours: the tables are made for the purpose.
    """
    from stratsynth.evaluation.audit import audit_primitives
    from stratsynth.evaluation.audit.mechanism import audit_registered

    report = audit_primitives(long=long) if mechanism is None else audit_registered(mechanism, long=long)
    typer.echo(json.dumps(report.to_dict(), indent=1) if as_json else report.to_text())
    if not report.passed:
        raise typer.Exit(1)
