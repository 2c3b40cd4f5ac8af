"""Refusal of a fit that another version of this package has begun: a mistake here costs a second charge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.lines import runs_of, stated_budget
from stratsynth.errors import LedgerError
from stratsynth.version import VERSION

if TYPE_CHECKING:
    from stratsynth.accounting.account import Request


def refuse_half_done(path: Path, lines: Sequence[Mapping[str, Any]], request: Request) -> None:
    """Raise LedgerError if a request resembles an unfinished fit of another version in `lines` of ledger `path`.

    The identity of a fit may differ between versions, so this one would charge all of it a second time. Two fits
    resemble each other if mechanism and budget are equal, and the seed too unless the request has none.
    """
    over = runs_of(lines)
    for line in lines:
        same = line["kind"] == "reserve" and (line["mechanism"], line["budget"]) == (
            request.mechanism, stated_budget(request.budget),
        )  # fmt: skip
        if not same or request.seed not in (None, line["seed"]):
            continue
        if line.get("version") != VERSION and not over[line["run"]]:
            raise LedgerError(
                f"ledger: {path} holds an unfinished fit of {request.mechanism} with this budget and seed, begun by "
                f"stratsynth {line.get('version', '0.1.0 or before')}; stratsynth {VERSION} cannot go on with it. "
                "Finish it with that version, or give another seed for a new fit, which is charged."
            )
