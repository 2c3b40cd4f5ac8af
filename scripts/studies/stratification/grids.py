"""The two grids on one study: paper 003's tables, and the roads to a prediction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from studies.stratification import people
from studies.stratification.authors import EPSILONS
from studies.stratification.claims import POOLED

if TYPE_CHECKING:
    from studies.stratification.people import Study

BASES = ("mst", "aim", "gem")
DELTA = 1e-9
METRICS = ("workload_error", "parity_means", "parity_marginals", "downstream", "mean_disparity")
QUICK: dict[str, Sequence[Any]] = {
    "stratifications": ([], ["RAC1P"], ["SEX", "RAC1P"]),
    "pooled": ("mst",),
}
"""Pooled AIM and GEM, which are not in the paper, would take longer than all else together."""
FULL: dict[str, Sequence[Any]] = {
    "stratifications": ([], ["SEX"], ["RAC1P"], ["SEX", "RAC1P"]),
    "pooled": BASES,
}
ROADS = (0.3, 1.0, 3.0)
"""Epsilons of the roads."""
DIRECT: dict[str, dict[str, Any]] = {
    "group_regression": {"model": "logistic"},
    "reductions": {"constraints": {"equalized_odds": 0.1}},
    "fermi": {"penalty": 1.0},
    "fair_sgd": {},
}
"""The predictors and their settings; target and groups are those of the study, all else is as it comes, but for the
penalty of `fermi`, which has no default."""


def tables(seeds: int, *, full: bool) -> dict[str, Any]:
    """The section [compare] of paper 003's synthesizers."""
    grid = FULL if full else QUICK
    return {
        "mechanisms": [
            *BASES,
            *({"label": f"{base}{POOLED}", "name": "pooled", "base": base} for base in grid["pooled"] if base in BASES),
        ],
        "stratifications": list(grid["stratifications"]),
        "epsilons": list(EPSILONS),
        "seeds": seeds,
        "metrics": list(METRICS),
        "models": ["forest"],
    }


def roads(seeds: int) -> dict[str, Any]:
    """The section [compare] of MST's tables, vanilla, stratified and pooled, and of the predictors."""
    asked = {"target": people.TARGET, "groups": list(people.BY)}
    return {
        "mechanisms": [
            "mst",
            {"label": f"mst{POOLED}", "name": "pooled", "base": "mst"},
            *({"label": name, "name": name, **asked, **own} for name, own in DIRECT.items()),
        ],
        "stratifications": [[], list(people.BY)],
        "epsilons": list(ROADS),
        "seeds": seeds,
        "metrics": ["workload_error", "downstream"],
        "models": ["linear", "boosting", "fairlearn"],
    }


def recipe(study: Study, compared: dict[str, Any]) -> str:
    """The recipe of a comparison on these people."""
    import tomli_w

    return tomli_w.dumps(
        {
            "data": {"path": "people.csv", "schema": "schema.toml", "declared_size": len(study.train), "public": True},
            "strata": {"by": list(people.BY)},
            "weights": {"source": "public", "path": "shares.csv", "citation": study.citation},
            "mechanism": {"name": BASES[0]},
            "budget": {"epsilon": 1.0, "delta": DELTA},
            "release": {"rows": len(study.train), "directory": "release", "seed": 1},
            "compare": {**compared, "holdout": "holdout.csv", "target": people.TARGET},
        }
    )
