"""GEM's figures, for `synth`: one fit in a fresh process each, `python -m benches.gem JSON`.

With `--acs FILE` on twelve columns of NIST's excerpt; without it on twelve columns of simulated people, for
which there are no targets.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benches.figures import Timing, fresh, seconds
from studies.figures import Figure, limited

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.schema import Schema

BY = "RAC1P"
FEW = 500
"""Groups of fewer people are left out of the parity error, as in the published figures."""


def run(acs: str | None = None) -> list[Figure]:
    """Vanilla with either generator; stratified against vanilla."""
    found: list[Figure] = []
    for epsilon, slowest, largest, share in ((1.0, 30, 0.15, 1.0), (5.0, 60, 0.06, 0.6)):
        plain = fresh("gem", {"acs": acs, "epsilon": epsilon})
        table = fresh("gem", {"acs": acs, "epsilon": epsilon, "settings": {"generator": "table"}})
        strata = fresh("gem", {"acs": acs, "epsilon": epsilon, "stratified": True})
        name = f"epsilon {epsilon:g}"
        found += [
            seconds(f"GEM vanilla, {name}: fit", _once(plain), at_most=slowest if acs else None),
            limited("  mean L1 of all three-way marginals", plain["error"], largest if acs else None, "of 2"),
            limited("  peak memory after the fit", plain["peak"], 1000 if acs else None, "MB"),
            seconds(f"GEM vanilla, {name}, generator table: fit", _once(table)),
            Figure("  mean L1 of all three-way marginals", table["error"], "of 2"),
            seconds(f"GEM stratified by {BY}, {name}: fit", _once(strata)),
            Figure("  mean L1 of all three-way marginals", strata["error"], "of 2"),
            limited(
                f"  parity error of means, groups of {FEW} or more, against vanilla's",
                strata["parity"] / plain["parity"],
                share if acs else None,
                "x",
            ),
            limited(
                "  the same, levels as the numbers they spell",
                strata["spelled"] / plain["spelled"],
                share if acs else None,
                "x",
            ),
            Figure("  parity error of means, all groups, against vanilla's", strata["all"] / plain["all"], "x"),
        ]
    return found


def _once(fit: dict[str, Any]) -> Timing:
    return Timing((fit["fit"],))


def main(wanted: dict[str, Any]) -> dict[str, Any]:
    """Fit the wanted mechanism and measure it."""
    import stratsynth as ss
    from stratsynth.evaluation.scores.marginals import coded, mean_l1
    from stratsynth.mechanisms import make
    from studies.figures import peak_megabytes

    frame, schema = data(wanted["acs"])
    how = make("gem", wanted.get("settings", {}))
    if wanted.get("stratified"):
        counted = frame[BY].value_counts(normalize=True).reindex(schema.levels(BY), fill_value=0.0)
        shares = counted.rename_axis(BY).rename("share").reset_index()
        how = ss.Stratified(how, [BY], ss.Weights.public(shares, citation="the table itself, for a benchmark"))
    table = ss.open_table(frame, schema=schema, declared_size=len(frame), public=True)
    start = time.perf_counter()
    release = ss.fit(how, table, ss.Budget(epsilon=wanted["epsilon"], delta=1e-9))
    taken, peak = time.perf_counter() - start, peak_megabytes()
    sampled = release.sample(len(frame), seed=1)
    triples = list(combinations(schema.names, 3))
    return {
        "fit": taken,
        "peak": peak,
        "error": mean_l1(coded(frame, schema), coded(sampled, schema), schema, triples),
        "parity": parity(frame, sampled, schema, FEW),
        "all": parity(frame, sampled, schema, 1),
        "spelled": parity(frame, sampled, schema, FEW, spelled=True),
    }


def data(acs: str | None) -> tuple[pd.DataFrame, Schema]:
    """The excerpt's twelve columns, or twelve columns of simulated people."""
    if acs is None:
        from stratsynth import census

        schema = census.schema()
        schema = schema.restrict([BY, *(name for name in schema.names if name != BY)][:12])
        return census.make(27_000)[list(schema.names)], schema
    from studies.acs import twelve
    from studies.data import texts

    schema = twelve()
    return texts(Path(acs), schema.names), schema


def parity(real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, few: int, *, spelled: bool = False) -> float:
    """Paper 003, Definition 10: the groups' relative errors of means added up, and everybody's for 1/k of k groups.

    The mean over columns. A level counts as its place, from 1 on; or as the number that it spells, where it spells
    one, and then a mean near 0 can outweigh all others. A mean of 0 has no relative error, and a group that the
    release lacks counts as 1.
    """
    sizes = real[BY].astype(str).value_counts()
    groups = [level for level in schema.levels(BY) if sizes.get(level, 0) >= few]
    values = (_spelled if spelled else _places)(real, schema), (_spelled if spelled else _places)(synthetic, schema)
    keys = real[BY].astype(str), synthetic[BY].astype(str)
    errors = []
    for column in schema.names:
        truth, guess = (v[column].groupby(key).mean().reindex(groups) for v, key in zip(values, keys, strict=True))
        if column == BY or truth.isna().all():
            continue
        apart = ((truth - guess).abs() / truth.abs())[truth.abs() > 0].fillna(1.0)
        whole, other = (float(v[column].mean()) for v in values)
        errors.append(float(apart.sum()) + abs(whole - other) / abs(whole) / len(groups))
    return sum(errors) / len(errors)


def _spelled(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({c: pd.to_numeric(frame[c].astype(str), errors="coerce") for c in schema.names})


def _places(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    import pandas as pd

    from stratsynth.evaluation.scores.marginals import coded

    return pd.DataFrame({column: codes.astype(float) + 1 for column, codes in coded(frame, schema).items()})


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.loads(sys.argv[1]))) + "\n")
