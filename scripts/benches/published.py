"""`answers --only tables`: twenty published two-way tables, by `fixed` and from the rows of MST.

The error of a table is the sum over its cells of the absolute difference from the true count, as a part of the rows;
the mean over the tables is shown. Tables by `fixed` are its consistent answers, not rounded and not cut off at 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import stratsynth as ss
from stratsynth import census
from stratsynth.answers import Query
from stratsynth.answers.ask import answers
from stratsynth.evaluation.scores.coverage import real_values
from stratsynth.evaluation.scores.marginals import coded
from stratsynth.mechanisms import make
from studies.figures import Figure, limited

if TYPE_CHECKING:
    from numpy.typing import NDArray

EXCERPT = (
    "SEX,AGEP SEX,RAC1P AGEP,RAC1P SEX,HISP RAC1P,HISP SEX,MSP AGEP,MSP SEX,EDU RAC1P,EDU AGEP,EDU SEX,PINCP_DECILE "
    "RAC1P,PINCP_DECILE EDU,PINCP_DECILE RAC1P,OWN_RENT AGEP,OWN_RENT AGEP,DPHY SEX,DREM HISP,EDU RAC1P,POVPIP "
    "OWN_RENT,PINCP_DECILE"
)
"""Marginals of the ACS excerpt: profiles of people by age, sex, race, origin, schooling, income and tenure."""
SIMULATED = (
    "SEX,AGEP SEX,RAC1P AGEP,RAC1P SEX,HISP RAC1P,HISP SEX,MAR AGEP,MAR SEX,SCHL RAC1P,SCHL AGEP,SCHL SEX,PINCP "
    "RAC1P,PINCP SCHL,PINCP RAC1P,TEN AGEP,TEN AGEP,DIS SEX,DREM HISP,SCHL RAC1P,POVPIP TEN,PINCP"
)
"""Marginals of the built-in census that correspond to those."""
ROWS = 27_000


def published(acs: str | None, seeds: int) -> list[Figure]:
    """Return the mean errors of `fixed` and of MST, and their quotient."""
    if acs is None:
        schema, frame, said = census.schema(), census.make(ROWS), SIMULATED
    else:
        from studies.acs import excerpt
        from studies.data import texts

        schema, said = excerpt(), EXCERPT
        frame = texts(Path(acs), schema.names)
    tables = [tuple(table.split(",")) for table in said.split()]
    queries = [Query(table) for table in tables]
    truth = real_values(coded(frame, schema), schema, queries)
    settings: dict[str, dict[str, Any]] = {"fixed": {"tables": tables, "errors": "absolute"}, "mst": {}}
    found: dict[str, list[float]] = {name: [] for name in settings}
    for seed in range(seeds):
        for name, given in settings.items():
            table = ss.open_table(frame, schema=schema, declared_size=len(frame), public=True)
            release = ss.fit(make(name, given), table, ss.Budget(epsilon=1, delta=1e-9))
            if name == "fixed":
                made = [answer.estimate for answer in answers(release.answers.squares, queries)]
            else:
                made = real_values(coded(release.sample(len(frame), seed=seed), schema), schema, queries)
            found[name].append(_error(made, truth, len(frame)))
    what = f"{len(tables)} two-way tables of {len(frame):,} people, epsilon 1"
    means = {name: float(np.mean(errors)) for name, errors in found.items()}
    figures = [
        Figure(f"{what}: mean error of {name}", means[name], "of rows", seeds, (max(errors) - min(errors)) / 2)
        for name, errors in found.items()
    ]
    return [
        *figures,
        limited(f"{what}: fixed, the error of MST's rows being 1", means["fixed"] / means["mst"], 0.5, "", seeds),
    ]


def _error(made: Sequence[NDArray[np.float64]], truth: Sequence[NDArray[np.float64]], rows: int) -> float:
    return float(np.mean([np.abs(one - other).sum() / rows for one, other in zip(made, truth, strict=True)]))
