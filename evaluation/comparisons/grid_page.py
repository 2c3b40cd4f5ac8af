"""The page of a comparison's folder: its tidy table, put as the page wants it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stratsynth.evaluation.comparisons.page import comparison_page
from stratsynth.evaluation.comparisons.runs import BASELINE
from stratsynth.evaluation.report import BANNER
from stratsynth.evaluation.tables import STAMP

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.schema import Schema

OURS = ("group", "stamp", "seconds")
"""Columns of the tidy table that are neither figures nor levels of groups."""


def grid_page(frame: pd.DataFrame, mechanisms: Mapping[str, Mapping[str, Any]], schema: Schema, stamp: str) -> str:
    """The HTML of a whole grid.

    Of the baselines the real subsample is drawn. A pooled mechanism stands beside the vanilla and the stratified
    releases of its base, if these were compared too.
    """
    base = frame["mechanism"].eq(f"({BASELINE})")
    drawn = frame[base | ~frame["mechanism"].str.startswith("(")].drop(columns=[c for c in OURS if c in frame])
    drawn = drawn.assign(mechanism=drawn["mechanism"].where(~base.loc[drawn.index], BASELINE))
    for label, section in mechanisms.items():
        inner = section.get("base", "aim")
        name = inner if isinstance(inner, str) else inner.get("name")
        if section.get("name") == "pooled" and name in mechanisms:
            own = drawn["mechanism"].eq(label)
            by = drawn["stratification"].where(~own, "pooled by " + drawn["stratification"].astype(str))
            drawn = drawn.assign(mechanism=drawn["mechanism"].where(~own, name), stratification=by)
    facts = {"Data": stamp}
    return comparison_page(drawn, schema=schema, facts=facts, banner=BANNER if stamp == STAMP else None)
