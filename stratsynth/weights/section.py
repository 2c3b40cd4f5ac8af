"""The section [weights] of a recipe: a source, and the keys that belong to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stratsynth.checks import check_keys
from stratsynth.errors import RecipeError, WeightsError, nearest
from stratsynth.weights.sources import SOURCES, Weights

KEYS: Mapping[str, Mapping[str, Any]] = {
    "public": {"path": str, "citation": str},
    "holdout": {"path": str, "citation": str, "confidential": bool},
    "private": {"share": float, "prior": Mapping},
    "raked": {"margins": Sequence, "start": Mapping},
    "invariant": {"path": str, "citation": str},
}
"""The keys of each source, and their types."""
NEEDED = {
    "public": ("path", "citation"),
    "holdout": ("path",),
    "private": ("share",),
    "raked": ("margins",),
    "invariant": ("path",),
}
"""The keys that a source cannot do without."""
HELP = {
    "path": "a CSV file with the strata's columns and `share` or `count`",
    "citation": "where the shares were published",
    "share": "the part of the budget that the counts of groups may cost, such as 0.1",
    "margins": 'a list of tables, each with path and citation, as { path = "sex.csv", citation = "..." }',
    "confidential": "whether the people of the holdout are not public: the certificate then says so",
    "prior": "a table of public weights, with path and citation, by which plans and rules for small groups go",
    "start": "a table of weights, with path and citation, whose associations the raked shares keep",
}
"""What keys mean, for messages and for the reference."""


def read_weights(section: Mapping[str, Any], folder: Path, where: str = "[weights]") -> Weights:
    """The weights that a section describes; paths are relative to the recipe's folder."""
    source = section.get("source", "public" if where != "[weights]" else None)
    if not isinstance(source, str) or source not in KEYS:
        hint = nearest(str(source), SOURCES)
        raise RecipeError(f"{where} source: {source!r} is not supported; it is one of {', '.join(SOURCES)}{hint}.")
    _check(section, source, where)
    if source == "private":
        prior = section.get("prior")
        return Weights.private(
            share=section["share"], prior=None if prior is None else read_weights(prior, folder, f"{where} prior")
        )
    if source == "raked":
        margins = [_table(margin, folder, f"{where} margins") for margin in section["margins"]]
        start = section.get("start")
        return Weights.raked(*margins, start=None if start is None else _table(start, folder, f"{where} start"))
    path, citation = folder / section["path"], section.get("citation", "")
    if source == "holdout":
        confidential = section.get("confidential", False)
        return Weights.holdout(path, citation=citation, confidential=confidential)
    if source == "invariant":
        return Weights.invariant(path, **({"citation": citation} if citation else {}))
    return Weights.public(path, citation=citation)


def _table(section: object, folder: Path, where: str) -> Weights:
    """One of the tables that raked weights are made of."""
    if not isinstance(section, Mapping):
        raise RecipeError(f"{where} is made of tables, each with path and citation.")
    if section.get("source") in ("raked", "private"):  # whatever a recipe holds there, lists too
        raise WeightsError("weights: raked weights are made of public, holdout or invariant weights.")
    return read_weights(section, folder, where)


def _check(section: Mapping[str, Any], source: str, where: str) -> None:
    keys = {key: value for key, value in section.items() if key != "source"}
    check_keys(keys, KEYS[source], where, f" with source {source!r}")
    for key in NEEDED[source]:
        if key not in section:
            raise RecipeError(f"{where} {key} is missing with source {source!r}: {HELP[key]}.")
