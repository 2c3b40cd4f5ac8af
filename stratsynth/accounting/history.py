"""Past and coming fits of a ledger file, as `ledger show` and plans tell of them. Nothing is spent.

Whoever spends relies on none of it: `FileLedger.open` looks for itself.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stratsynth.accounting.budget import Budget
from stratsynth.accounting.chain import Chain
from stratsynth.accounting.half_done import refuse_half_done
from stratsynth.accounting.ledger import Request
from stratsynth.accounting.ledger_file import FileLedger
from stratsynth.accounting.lines import Shared, allotment_of, head_of, reservations, runs_of, shared_by
from stratsynth.accounting.standing import Outlook, afford_all, largest, readable, rule
from stratsynth.accounting.totals import in_rho, total
from stratsynth.errors import UsageError


def unfinished(path: Path) -> dict[str, frozenset[str]]:
    """Return a mapping from identity to a set of hashes: the fits of ledger `path` that equal requests would resume.

    The hashes are of the certificate's sections at their beginning, as far as kept; {} without a ledger file.
    """
    if not os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises where a name is too long
        return {}
    lines, found = Chain(path).read(), dict[str, frozenset[str]]()
    over = runs_of(lines) if lines and head_of(path, lines) else {}
    for line in (line for line in lines if line["kind"] == "reserve" and not over[line["run"]]):
        found[line["identity"]] = found.get(line["identity"], frozenset()) | {line.get("sections", "")} - {""}
    return found


def coming(ledger: FileLedger, requests: Sequence[Request], *, refuse: bool = True) -> Outlook:
    """Return the `Outlook` of a `FileLedger` with all `requests`; if `refuse`, BudgetRefused where these pass its cap.

    Nothing is reserved: `open` checks again what other processes may have reserved since.
    """
    ledger.refuse_other()
    lines = Chain(ledger.path).read() if ledger.path.exists() else []
    cap, delta = ledger.cap_epsilon, requests[0].budget.delta
    if lines:
        head = head_of(ledger.path, lines)
        ledger.check(head, lines, head["data"], requests[0].budget)  # which data these are is not looked at
        cap, delta = head["cap_epsilon"], head["delta"]
    over = runs_of(lines)
    resumed = {line["identity"] for line in lines if line["kind"] == "reserve" and not over[line["run"]]}
    new = [request for request in requests if request.identity not in resumed]
    for request in new:
        refuse_half_done(ledger.path, lines, request)
    reserved = [allotment_of(line) for line in reservations(lines)]
    return afford_all(cap, reserved, [request.allot for request in new], delta, requests[0].allot, refuse=refuse)


def read_ledger(path: Path) -> dict[str, Any]:
    """Return the ledger `path`, verified, as a dict: cap, delta, epsilon spent and left, a list of its fits.

    Keys are `ledger`, `cap_epsilon`, `delta`, `spent_epsilon`, `left_epsilon`, `rule`, `fits` and others. UsageError
    for no file.
    """
    if not os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises where a name is too long
        raise UsageError(f"there is no ledger {path}.")
    lines = Chain(path).read()
    if not lines:
        return {"ledger": path.name, "cap_epsilon": None, "delta": None, "spent_epsilon": 0.0, "fits": []}
    head = head_of(path, lines)
    made, whole = reservations(lines), {line["run"] for line in lines if line["kind"] == "rest"}
    done = {line["run"] for line in lines if line["kind"] == "done"}
    asked = Counter(line["run"] for line in lines if line["kind"] == "charge")
    reserved = [allotment_of(line) for line in made]
    delta = readable(reserved, head["delta"])
    spent = total(reserved, delta)
    cap = head["cap_epsilon"]
    fits = [
        {
            "run": number, "at": line["at"], "mechanism": line["mechanism"], **line["budget"],
            **line["allot"], "state": "done" if line["run"] in done else "open",
            "questions": asked[line["run"]],
            **({"part": "first question"} if line.get("first") and line["run"] not in whole else {}),
        }
        for number, line in enumerate(made, start=1)  # the run's own name is made of a plain hash of its request
    ]  # fmt: skip
    left = {} if cap is None else {"left_epsilon": max(0.0, cap - spent)}
    if cap is not None:
        unit, public = head.get("unit", "record"), head.get("public", ())
        like = Budget(1.0, head["delta"], head["neighbours"], unit, public=public, accounting=in_rho(reserved)[0])
        left["largest_epsilon"] = largest(cap, reserved, like.zcdp() if like.delta else like.pure(), head["delta"])
    return {
        "ledger": path.name, **_named(shared_by(lines)), "cap_epsilon": cap, "delta": delta,
        **({"public_columns": head["public"]} if "public" in head else {}),
        "spent_epsilon": spent, **left, "rule": rule(head["delta"], in_rho(reserved)[0]), "fits": fits,
    }  # fmt: skip


def _named(whose: Shared) -> dict[str, Any]:
    """Return a dict: `account`, the name of a `Shared` account, and its number of `versions`; {} without a name."""
    return {} if whose.name is None else {"account": whose.name, "versions": len(whose.versions)}
