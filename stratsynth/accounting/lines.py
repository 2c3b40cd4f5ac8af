"""The lines of a ledger file: their fields by kind, and the check that a file's lines are a ledger's.

ledger    the first: cap, delta, neighbours, unit, fingerprint of the data, and any reason to begin it beside another
account   the name under which versions of the data share it
version   the fingerprint of another version of the data
reserve   a fit: its identity, its whole allotment (with a first question, that question's), the hashes of the
                    certificate's section on its prior and of all its sections that are fixed beforehand, and the
                    version that wrote the line
rest      the whole allotment of a fit with a first question, in the place of that question's
charge    a batch of a fit: journal key, and the charges of its questions
answered  the answers to a charge are in the journal, with the digest of that file; written before anybody sees them
done      the release is in place
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stratsynth.accounting.account import Request, fresh_seed
from stratsynth.accounting.budget import Allotment, Budget, Currency, Neighbours
from stratsynth.accounting.chain import RESTORE
from stratsynth.accounting.charges import Charge, Spending
from stratsynth.checks import is_whole
from stratsynth.errors import LedgerError, UsageError
from stratsynth.version import VERSION

FORMAT = "stratsynth-ledger/1"
BY_SHAPE = "shape"
"""Value of `known_by` in reservations whose journal keys digest public shapes; without it they digest every number."""


def head_of(path: Path, lines: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the first of the `lines`, dicts, of the ledger `path`, all checked; LedgerError on a bad one."""
    if lines[0].get("format") != FORMAT:
        versions = {str(line["version"]) for line in lines if "version" in line}
        by = f", but was written by stratsynth {' and '.join(sorted(versions))}" if versions else ""
        raise LedgerError(f"ledger: {path} is not a ledger of format {FORMAT}{by}.")
    number = 0
    try:
        currencies: dict[str, Currency] = {}
        for number, line in enumerate(lines, start=1):
            _check_line(line, currencies, first=number == 1)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, UsageError):
        raise LedgerError(
            f"ledger: {path} is damaged: line {number} is no ledger's. Nothing is spent on a damaged ledger; {RESTORE}"
        ) from None
    return lines[0]


def _check_line(line: Mapping[str, Any], currencies: dict[str, Currency], *, first: bool) -> None:
    """Raise ValueError, KeyError or TypeError on a `line`, `first` or not, with amiss fields, by runs' `currencies`."""
    kind = line["kind"]
    if first != (kind == "ledger"):
        raise ValueError(kind)
    if kind == "ledger":
        like = Budget(1.0, line["delta"], line["neighbours"], line.get("unit", "record"), public=line.get("public", ()))
        capped = line["cap_epsilon"] is None or 0 < float(line["cap_epsilon"]) < math.inf
        # public columns go with neighbours that differ in an attribute, and with no others
        if not capped or (like.neighbours == Neighbours.ATTRIBUTE) != bool(like.public):
            raise ValueError(kind)
        _texts(line, "data", *(["reason"] if "reason" in line else []))
    elif kind in ("account", "version"):
        _texts(line, "name" if kind == "account" else "data", "at", *({"reason"} & line.keys()))
    elif kind in ("reserve", "rest"):
        new = kind == "reserve"
        _texts(line, "run", "at", *(("identity", "mechanism") if new else ()))
        _texts(line, *({"version", "data", "prior", "sections"} & line.keys()))
        allot = allotment_of(line)
        sound = 0 < float(allot.amount) < math.inf and (is_whole(line["seed"]) if new else True)
        if not sound or (line["run"] in currencies) == new:
            raise ValueError(kind)
        currencies[line["run"]] = allot.currency
    elif kind == "charge":
        _texts(line, "asked")
        spending = Spending(Neighbours.ADD_REMOVE)
        spending.add(Charge.from_dict(c, currencies[line["run"]]) for c in line["charges"])
        if not (0 <= line["distance"] <= 1 and isinstance(line["moment"], int) and float(spending.spent()) >= 0):
            raise ValueError(kind)
    elif kind == "answered":
        _texts(line, "asked", "sha256")
        currencies[line["run"]]
        if not isinstance(line["moment"], int):
            raise ValueError(kind)
    elif kind == "done":
        _texts(line, "identity")
        currencies[line["run"]]
    else:
        raise ValueError(kind)


def runs_of(lines: Sequence[Mapping[str, Any]]) -> dict[str, bool]:
    """Return {run: True if over} of a ledger's lines: done, or a claimed fit that charged (it keeps no answers)."""
    found, claimed = dict[str, bool](), set[str]()
    for line in lines:
        if line["kind"] in ("reserve", "rest"):
            found[line["run"]] = False
            if line["allot"]["currency"] == Currency.CLAIMED:
                claimed.add(line["run"])
        elif line["kind"] == "done" or (line["kind"] == "charge" and line["run"] in claimed):
            found[line["run"]] = True
    return found


def reservations(lines: Sequence[Mapping[str, Any]], until: int | None = None) -> list[Mapping[str, Any]]:
    """Return a list of `reserve` lines, each with the allotment of its fit's `rest` line, if in the first `until`."""
    rests = {line["run"]: line["allot"] for line in lines[:until] if line["kind"] == "rest"}
    made = [line for line in lines if line["kind"] == "reserve"]
    return [{**line, "allot": rests[line["run"]]} if line["run"] in rests else line for line in made]


def _texts(line: Mapping[str, Any], *keys: str) -> None:
    for key in keys:
        if not isinstance(line[key], str):
            raise TypeError(key)


@dataclass(frozen=True)
class Shared:
    """The name of an account, and the versions of the data that it covers."""

    name: str | None
    """Account name given by users; None if the ledger belongs to one data file."""
    versions: tuple[str, ...]
    """Fingerprints of the versions of the data, oldest first."""
    corrections: tuple[str, ...] = ()
    """Stated reasons of corrections of the data, oldest first."""


def shared_by(lines: Sequence[Mapping[str, Any]]) -> Shared:
    """Return the account's `Shared`: latest name (None without one), data versions, corrections, by ledger lines."""
    names = [line["name"] for line in lines if line["kind"] == "account"]
    versions = [line["data"] for line in lines if line["kind"] in ("ledger", "version")]
    why = tuple(line["reason"] for line in lines if line["kind"] == "version" and "reason" in line)
    return Shared(names[-1] if names else None, tuple(dict.fromkeys(versions)), why)


def reservation(request: Request, run: str, data: str) -> dict[str, Any]:
    """Return the `reserve` line, a dict, of a request for `run` on `data`, a fingerprint: identity, seed, allotment."""
    return {
        "kind": "reserve", "run": run, "identity": request.identity, "at": now(), "mechanism": request.mechanism,
        "seed": fresh_seed(request), "version": VERSION, "budget": stated_budget(request.budget),
        "allot": (request.opening or request.allot).to_dict(), "known_by": BY_SHAPE,
        "data": data, **({"first": True} if request.opening is not None else {}),
        **({"prior": request.prior} if request.prior is not None else {}),
        **({"sections": request.sections} if request.sections is not None else {}),
    }  # fmt: skip


def stated_budget(budget: Budget) -> dict[str, Any]:
    """Return a budget as a dict of `Budget`'s arguments; unit, rows, public columns, accounting if not the defaults."""
    unit = {} if budget.unit == "record" else {"unit": budget.unit, "rows": budget.rows}
    more: dict[str, Any] = {"public": list(budget.public)} if budget.public else {}
    more |= {"accounting": budget.accounting} if budget.accounting != Currency.ZCDP else {}
    return {"epsilon": budget.epsilon, "delta": budget.delta, "neighbours": str(budget.neighbours), **unit, **more}


def allotment_of(line: Mapping[str, Any]) -> Allotment:
    """Return the `Allotment` that a `reserve` line of a ledger states, with its budget."""
    return Allotment.from_dict(line["allot"], Budget(**line["budget"]))


def now() -> str:
    """Return the present time in UTC as an ISO 8601 text, to the second."""
    return dt.datetime.now(tz=dt.UTC).isoformat(timespec="seconds")
