"""The commands about accounts: `ledger show`, `ledger name`, `ledger correct`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from stratsynth.cli.options import AsJson, Select, TableName
from stratsynth.cli.terminal import echo, print_json
from stratsynth.report.page import Column, Figure, Page, Row, Section, Table
from stratsynth.report.text import render

HEADS = ("when", "mechanism", "epsilon", "delta", "questions", "state")
LedgerFile = Annotated[Path, typer.Argument(metavar="FILE", help="A ledger file.")]
ledger_app = typer.Typer(help="The account of a data file.", no_args_is_help=True, rich_markup_mode=None)


@ledger_app.command("show")
def ledger_show(file: LedgerFile, as_json: AsJson = False) -> None:
    """Show what was spent on a data file, by which fits, and what is left."""
    from stratsynth.accounting.history import read_ledger

    found = read_ledger(file)
    if as_json:
        print_json(found)
    else:
        echo(render(ledger_page(found)))


@ledger_app.command("name")
def ledger_name(
    file: LedgerFile, name: Annotated[str, typer.Argument(metavar="NAME", help='A name, such as "persons 2024".')]
) -> None:
    """Give an account a name, by which later versions of the data share its ledger. Nothing is spent or read."""
    from stratsynth.accounting.amending import name_account

    new = name_account(file, name)
    echo(f"{file.name} is {'now' if new else 'already'} the account {name!r}: fits name it by account = {name!r}.")


@ledger_app.command("correct")
def ledger_correct(
    file: LedgerFile,
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The corrected data.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why they were changed; certificates quote it.")],
    table: TableName = None,
    query: Select = None,
) -> None:
    """Add corrected data to an account, so that fits go on with them. Nothing is spent, and nothing is given back.

    The data are read for their keyed fingerprint alone. What was spent on the data before counts on.
    """
    from functools import partial

    from stratsynth.accounting.amending import correct_data
    from stratsynth.data.fingerprint import fingerprint
    from stratsynth.data.sources import open_source

    if correct_data(file, partial(fingerprint, open_source(data, table, query)), reason):
        echo(f"{file.name} has the corrected data: the next fit goes on with them, and its certificate says why.")
    else:
        echo(f"{file.name} has these very data already. Nothing was changed.")


def _state(fit: Mapping[str, Any]) -> str:
    """Return words on how far `fit`, a ledger's dict of it, has come: "done", its first question alone, or open."""
    if fit["state"] == "done":
        return "done"
    if "part" in fit:
        return f"its first question alone: {fit.get('rho', fit['epsilon']):.3g} {'rho' if 'rho' in fit else 'epsilon'}"
    return "open: the same recipe goes on from here"


def ledger_page(found: Mapping[str, Any]) -> Page:
    """Return the Page of `read_ledger`'s mapping `found`: epsilon spent at its delta, the cap's rest, and the fits."""
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
