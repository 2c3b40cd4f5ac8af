"""The command about accounts: `ledger show`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from stratsynth.cli.options import AsJson
from stratsynth.cli.terminal import echo, print_json

ledger_app = typer.Typer(help="The account of a data file.", no_args_is_help=True, rich_markup_mode=None)


@ledger_app.command("show")
def ledger_show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A ledger file.")], as_json: AsJson = False
) -> None:
    """Show what was spent on a data file, by which fits, and what is left."""
    from stratsynth.accounting.ledger_file import read_ledger

    found = read_ledger(file)
    if as_json:
        print_json(found)
    else:
        echo(describe_ledger(found))


def describe_ledger(found: Mapping[str, Any]) -> str:
    """The ledger for a reader."""
    if not found["fits"]:
        return f"{found['ledger']}: nothing has been spent."
    cap, left = found["cap_epsilon"], found.get("left_epsilon")
    limit = "no cap was set" if cap is None else f"{left:.6g} left of {cap:g}"
    lines = [f"{found['ledger']}: epsilon {found['spent_epsilon']:.6g} spent at delta {found['delta']:g}, {limit}"]
    if cap is not None:
        lines.append(
            f"The largest epsilon that one more fit can ask for at delta {found['delta']:g} is {_most(found)}."
        )
    if "public_columns" in found:
        lines.append(
            f"For neighbours that differ in an attribute; NOT PROTECTED: {', '.join(found['public_columns'])}."
        )
    lines += [found["rule"], ""]
    width = max(len("mechanism"), *(len(fit["mechanism"]) for fit in found["fits"]))
    lines.append(f"{'when':19}  {'mechanism':{width}} {'epsilon':>8} {'delta':>8} {'questions':>10}  state")
    for fit in found["fits"]:
        spent = f"{fit['epsilon']:>8g} {fit['delta']:>8g} {fit['questions']:>10}"
        state = "done" if fit["state"] == "done" else "open: the same recipe goes on from here"
        lines.append(f"{fit['at'][:19]}  {fit['mechanism']:{width}} {spent}  {state}")
    return "\n".join(lines)


def _most(found: Mapping[str, Any]) -> str:
    return f"{found['largest_epsilon']:g}"
