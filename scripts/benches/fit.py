"""One fit in a process of its own: `python -m benches.fit JSON`, for `synth`.

Prints JSON: seconds of the fit, peak memory, objective and steps of the solver, error of the sample, and how
often and what was measured.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.schema import Schema

TRIPLES = 64
BY = ("SEX", "RAC1P")


def main(wanted: dict[str, Any]) -> dict[str, Any]:
    """Fit the wanted mechanism and measure it."""
    import stratsynth as ss
    from stratsynth.mechanisms import make
    from stratsynth.noise import SeededEntropy
    from studies.figures import peak_megabytes

    frame, schema, shares = data(wanted.get("acs"), wanted.get("rows"))
    mechanism = make(wanted["mechanism"], wanted["settings"])
    how = mechanism if not wanted["stratified"] else ss.Stratified(mechanism, BY, shares)
    table = ss.open_table(frame, schema=schema, declared_size=len(frame), public=True)
    start = time.perf_counter()
    # with a seed two fits see the same noise; these are public data
    entropy = SeededEntropy(0) if wanted["seeded"] else None
    release = ss.fit(how, table, ss.Budget(epsilon=wanted["epsilon"], delta=1e-9), entropy=entropy)
    seconds = time.perf_counter() - start
    peak = peak_megabytes()
    sampled = release.sample(len(frame), seed=1)
    models, asked = _models(release.model), release.measurements
    return {
        "fit": seconds,
        "peak": peak,
        "rows": len(frame),
        "error": three_way(frame, sampled, schema),
        "objective": sum(m.objective for m in models),
        "steps": sum(m.steps for m in models),
        "asked": len(set(asked["question"].to_pylist())),
        "cliques": len(set(asked["clique"].to_pylist())),
    }


def data(acs: str | None, rows: int | None, by: Sequence[str] = BY) -> tuple[pd.DataFrame, Schema, Any]:
    """The excerpt, person records (Parquet), or simulated people; the schema; the public shares of groups."""
    by = list(by)
    import pandas as pd

    import stratsynth as ss

    if acs is None:
        from stratsynth import census

        shares = census.shares(by)
        return census.make(rows or 27_000), census.schema(), ss.Weights.public(shares, citation=census.CITATION)
    from studies.data import survey, texts

    schema = survey(Path(acs))
    frame = texts(Path(acs), schema.names)
    if "PUMA" in schema.names and not frame["PUMA"].isin(schema.levels("PUMA")).all():  # areas of one state
        areas = ss.Categorical(levels=tuple(sorted(frame["PUMA"].unique())))
        schema = ss.Schema({**schema.columns, "PUMA": areas})
    counted = frame.groupby(by).size().div(len(frame)).rename("share").reset_index()
    every = pd.MultiIndex.from_product([schema.levels(c) for c in by], names=by).to_frame(index=False)
    merged = every.merge(counted, how="left").fillna({"share": 0.0})
    return frame, schema, ss.Weights.public(merged, citation="the file itself, for a benchmark")


def three_way(real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema) -> float:
    """The mean L1 distance (0 to 2) over 64 fixed triples of columns."""
    from stratsynth.evaluation.scores.marginals import coded, mean_l1, some_cliques

    return mean_l1(coded(real, schema), coded(synthetic, schema), schema, some_cliques(schema.names, 3, TRIPLES))


def _models(model: Any) -> list[Any]:
    """The fitted models: one, or one a stratum."""
    from stratsynth.models import Mixture

    return list(model.parts.values()) if isinstance(model, Mixture) else [model]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.loads(sys.argv[1]))) + "\n")
