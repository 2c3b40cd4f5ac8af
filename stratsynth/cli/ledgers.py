"""The command about accounts: `ledger show`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from stratsynth.cli.options import AsJson
from stratsynth.cli.terminal import echo, print_json
from stratsynth.report.page import Column, Figure, Page, Row, Section, Table
from stratsynth.report.text import render

HEADS = ("when", "mechanism", "epsilon", "delta", "questions", "state")
ledger_app = typer.Typer(help="The account of a data file.", no_args_is_help=True, rich_markup_mode=None)


@ledger_app.command("show")
def ledger_show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A ledger file.")], as_json: AsJson = False
) -> None:
    """Show what was spent on a data file, by which fits, and what is left."""
    from stratsynth.accounting.history import read_ledger

    found = read_ledger(file)
    if as_json:
        print_json(found)
    else:
        echo(render(ledger_page(found)))


def _state(fit: Mapping[str, Any]) -> str:
    """Return the words on how far a fit has come."""
    if fit["state"] == "done":
        return "done"
    if "part" in fit:
        return f"its first question alone: {fit.get('rho', fit['epsilon']):.3g} {'rho' if 'rho' in fit else 'epsilon'}"
    return "open: the same recipe goes on from here"


def ledger_page(found: Mapping[str, Any]) -> Page:
    """Return the Page of a ledger's facts: epsilon spent at its delta, the rest of the cap, and one row per fit."""
    if not found["fits"]:
        return Page(f"{found['ledger']}: nothing has been spent.")
    cap, left = found["cap_epsilon"], found.get("left_epsilon")
    limit = "no cap was set" if cap is None else f"{left:.6g} left of {cap:g}"
    lead = [f"{found['ledger']}: epsilon {found['spent_epsilon']:.6g} spent at delta {found['delta']:g}, {limit}"]
    if cap is not None:
        most = f"{found['largest_epsilon']:g}"
        lead.append(f"The largest epsilon that one more fit can ask for at delta {found['delta']:g} is {most}.")
    if "public_columns" in found:
        open_ = ", ".join(found["public_columns"])
        lead.append(f"For neighbours that differ in an attribute; NOT PROTECTED: {open_}.")
    rows: list[Row] = [
        [
            fit["at"][:19],
            fit["mechanism"],
            f"{fit['epsilon']:g}",
            f"{fit['delta']:g}",
            fit["questions"],
            _state(fit),
        ]
        for fit in found["fits"]
    ]
    heads = [Column(name, "text" if name in ("when", "mechanism", "state") else "number") for name in HEADS]
    fits = Figure("", table=Table("", heads, rows, most=len(rows)))
    return Page("", lead=[*lead, found["rule"]], sections=[Section("fits", "", figures=[fits])])
