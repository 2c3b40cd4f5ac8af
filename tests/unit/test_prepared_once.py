"""Consequences of public facts are computed once a fit: candidates, strata, and a holdout's shares."""

import numpy as np
import pandas as pd
import pytest

import stratsynth as ss
from stratsynth import Budget, Categorical, Schema, Weights
from stratsynth.adapters import AIM, GEM, MST, Pooled
from stratsynth.adapters.shared import workload
from stratsynth.data.frames import FrameSource
from stratsynth.errors import UsageError
from stratsynth.fitting import fitted
from stratsynth.mechanisms import prepare
from stratsynth.noise import SeededEntropy
from stratsynth.stratified import wrapper

LEVELS = {"g": 3, "a": 3, "b": 2, "c": 4}
SCHEMA = Schema({name: Categorical(levels=tuple(map(str, range(k)))) for name, k in LEVELS.items()})
BASES = {
    "aim": lambda: AIM(iterations=50, rounds=4),
    "mst": lambda: MST(iterations=50),
    "gem": lambda: GEM(components=8, latent=4, hidden=[8], iterations=3, rounds=3, least=20),
}


def people(rows=3_000, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.integers(k, size=rows).astype(str) for name, k in LEVELS.items()})


def public():
    return Weights.public(pd.DataFrame({"g": ["0", "1", "2"], "share": [0.3, 0.3, 0.4]}), citation="made up")


def holdout():
    return Weights.holdout(people(500, seed=1)[["g"]], citation="made up")


def private():
    return Weights.private(share=0.1, prior=holdout())


@pytest.fixture
def worked_out(monkeypatch):
    """Counts by columns: closures, layouts, and reads of frames that hold the strata's column alone."""
    found = {"closure": [], "lay_out": [], "read": []}

    def counted(module, name, what):
        real = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, **k: found[name].append(what(*a)) or real(*a, **k))

    counted(workload, "closure", lambda sets: frozenset(column for clique in sets for column in clique))
    counted(wrapper, "lay_out", lambda schema, *_: schema)
    counted(FrameSource, "read", lambda source, columns: tuple(columns))
    return found


@pytest.mark.parametrize("size", [3_000, None])
@pytest.mark.parametrize("weights", [public, holdout, private], ids=lambda made: made.__name__)
@pytest.mark.parametrize("how", [ss.Stratified, Pooled], ids=lambda kind: kind.name)
@pytest.mark.parametrize("base", BASES)
def test_a_fit_works_out_once_what_public_facts_decide(base, how, weights, size, worked_out):
    strata = {"by": ["g"], "weights": weights()}
    made = how(BASES[base](), **strata) if how is ss.Stratified else how(base=BASES[base](), **strata)
    table = ss.open_table(people(), schema=SCHEMA, declared_size=size)
    for found in worked_out.values():
        found.clear()
    ss.fit(made, table, Budget(1, 1e-9), entropy=SeededEntropy(1), seed=1)
    assert len(worked_out["closure"]) <= 1  # everybody and all strata have the same columns
    assert len(worked_out["lay_out"]) == 1
    assert worked_out["read"].count(("g",)) == (0 if weights is public else 1)


@pytest.mark.parametrize(
    "changed", [{"declared_size": 2_999}, {"schema": SCHEMA.without(["g"])}, {"budget": Budget(2, 1e-9)}], ids=str
)
def test_what_was_prepared_for_something_else_is_refused_before_anything_is_reserved(changed):
    prepared = prepare(MST(), SCHEMA, Budget(1, 1e-9), 3_000)
    given = {"schema": SCHEMA, "declared_size": 3_000, "budget": Budget(1, 1e-9), **changed}
    budget, table = given.pop("budget"), ss.open_table(people(), **given)
    with pytest.raises(UsageError, match="prepare it again"), fitted(prepared, table, budget):
        pass
    assert table.ledger.reserved == ()
