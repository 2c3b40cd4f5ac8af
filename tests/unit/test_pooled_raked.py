"""Strata of `pooled`, moved to everybody's tables: what moves, what must not, and that nothing is asked for it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import stratsynth as ss
from helpers.byhand import frame_of, schema_of
from stratsynth import Budget, Groups, Prior, PublishedTable, Weights
from stratsynth.adapters import AIM, MST, Pooled
from stratsynth.adapters.pooled import mechanism
from stratsynth.adapters.pooled import raked as raked_module
from stratsynth.adapters.pooled.raked import FARTHEST, raked
from stratsynth.models.files import restore
from stratsynth.noise import SeededEntropy
from stratsynth.schema import Rule

LEVELS = {"g": 4, "a": 3, "b": 4, "c": 2, "d": 3}
RULE = Rule(when={"a": "0"}, never={"b": ("2", "3")})
SIZES = (1_500, 900, 595, 5)
ROWS = sum(SIZES)
BUDGET = Budget(3, 1e-9, first=0)


def people():
    rng = np.random.default_rng(0)
    g = np.repeat(range(4), SIZES)
    a = (rng.random(ROWS) * (1.6 + 0.4 * g)).astype(int).clip(0, 2)
    b = np.where(a == 0, rng.integers(0, 2, ROWS), (a + rng.integers(0, 3, ROWS)) % 4)
    c = (rng.random(ROWS) < 0.2 + 0.2 * (b > 1) + 0.1 * g).astype(int)
    return frame_of({"g": g, "a": a, "b": b, "c": c, "d": (b + c) % 3})


@pytest.fixture(scope="module")
def schema():
    return schema_of(LEVELS, (RULE,))


@pytest.fixture(scope="module")
def weights():
    shares = pd.DataFrame({"g": list("0123"), "share": np.array(SIZES) / ROWS})
    return Weights.public(shares, citation="made up for testing")


def fitted(how, schema, **settings):
    table = ss.open_table(people(), schema=schema, declared_size=ROWS)
    return ss.fit(how, table, BUDGET, seed=1, entropy=SeededEntropy(1), **settings)


def before_and_after(monkeypatch, how, schema, **settings):
    """Everybody's learner, the mixture as fitted, and the release of a fit."""
    calls = []

    def kept(model, everybody, sigma):
        calls.append((everybody, model, sigma))
        return raked(model, everybody, sigma)

    monkeypatch.setattr(mechanism, "raked", kept)
    release = fitted(how, schema, **settings)
    ((everybody, model, _),) = calls
    return everybody, model, release


def distance(mixture, everybody):
    """L1 distance of the moved strata's tables from everybody's fitted ones, per table."""
    cliques = [table.clique for table in everybody.tables]
    moved = [(mixture.weights[s], part) for s, part in mixture.parts.items() if part.kind == "graphical"]
    total = sum(share for share, _ in moved)
    parts = [(share / total, part.marginals(cliques)) for share, part in moved]
    return np.mean(
        [
            np.abs(sum(share * tables[i] for share, tables in parts) - true).sum()
            for i, true in enumerate(everybody.marginals(cliques))
        ]
    )


@pytest.mark.parametrize("base", [MST(), AIM(model_cells=2**12)], ids=["mst", "aim"])
def test_the_mixture_is_moved_to_everybody_s_tables(monkeypatch, schema, weights, base):
    how = Pooled(base=base, by=["g"], weights=weights, share=0.7)
    everybody, before, release = before_and_after(monkeypatch, how, schema)
    after = release.model
    assert distance(after, everybody) < 0.4 * distance(before, everybody)
    assert after.weights == before.weights
    alike = [before.parts[stratum] is part for stratum, part in after.parts.items()]
    assert alike == [False, False, False, True]  # the last one is too small to measure, and is everybody's model
    for stratum, part in after.parts.items():
        assert part.tree == before.parts[stratum].tree
        # the rule's cells stay impossible, whatever the factors
        assert not part.marginal(("a", "b"))[0, 2:].any()
        pair = [np.log(model.marginal(("a", "b"))[1:]) for model in (part, before.parts[stratum])]
        assert np.abs(pair[0] - pair[1]).max() < 4 * FARTHEST


def test_groups_keep_their_shares_and_rows_their_rules(schema, weights):
    release = fitted(Pooled(base="mst", by=["g"], weights=weights, share=0.7), schema)
    rows = release.sample(6_000, seed=1)
    assert rows.groupby("g").size().tolist() == [2 * size for size in SIZES]
    assert not ((rows.a == "0") & rows.b.isin(["2", "3"])).any()
    some = release.sample(50, seed=1, where={"g": "1", "b": "2"})
    assert set(some.g) == {"1"}
    assert set(some.b) == {"2"}
    state = release.model.state()
    again = restore(release.model.kind, schema, state)
    assert again.mass({"b": frozenset({1})}) == release.model.mass({"b": frozenset({1})})
    assert (
        fitted(Pooled(base="mst", by=["g"], weights=weights, share=0.7), schema)
        .sample(100, seed=1)
        .equals(release.sample(100, seed=1))
    )


def test_raking_is_post_processing(monkeypatch, schema, weights):
    how = Pooled(base="mst", by=["g"], weights=weights)
    with_it = fitted(how, schema)
    monkeypatch.setattr(mechanism, "raked", lambda model, *_: model)
    without = fitted(how, schema)
    assert not with_it.sample(3_000, seed=1).equals(without.sample(3_000, seed=1))
    assert with_it.measurements.equals(without.measurements)
    for part in ("charges", "guarantee"):
        assert with_it.certificate[part] == without.certificate[part]
    assert with_it.query(["b"]).equals(without.query(["b"]))


def test_merged_strata_and_groups_of_one_way_tables(monkeypatch, schema):
    shares = pd.DataFrame({"g": list("0123"), "share": np.array(SIZES) / ROWS})
    weights = Weights.public(shares, citation="made up for testing")
    merged = Pooled(base="mst", by=["g"], weights=weights, groups=Groups(merge={"g": {"most": ["0", "1"]}}), share=0.7)
    everybody, before, release = before_and_after(monkeypatch, merged, schema)
    moved = [stratum for stratum, part in release.model.parts.items() if before.parts[stratum] is not part]
    assert any(stratum.is_merge for stratum in moved)
    few = replace(merged, groups=Groups(small="one-way", threshold=2_000))
    everybody, before, release = before_and_after(monkeypatch, few, schema)
    assert {part.kind for part in release.model.parts.values()} == {"graphical", "product"}
    assert distance(release.model, everybody) < distance(before, everybody)
    assert release.sample(3_000, seed=1).groupby("g").size().tolist() == list(SIZES)


def test_public_tables_and_other_models_are_left_alone(monkeypatch, schema, weights):
    how = Pooled(base="mst", by=["g"], weights=weights)
    everybody, before, _ = before_and_after(monkeypatch, how, schema)
    assert raked(before, object(), 1.0) is before  # another model of everybody, as GEM's
    monkeypatch.setattr(raked_module, "MOST_CELLS", 10)
    assert raked(before, everybody, 1.0) is before
    monkeypatch.setattr(mechanism, "raked", lambda *_: pytest.fail("strata keep to public tables"))
    cells = people().groupby(["g", "c"]).size().rename("count").reset_index()
    fitted(how, schema, prior=Prior.tables([PublishedTable(cells, "made up for testing")]))


def test_cells_that_were_not_fitted_to_their_noise_get_no_factor(monkeypatch, schema, weights):
    how = Pooled(base=MST(rare=1e6), by=["g"], weights=weights, share=0.7)
    _, before, release = before_and_after(monkeypatch, how, schema)
    for stratum, part in release.model.parts.items():
        for own, other in zip(part.potentials, before.parts[stratum].potentials, strict=True):
            np.testing.assert_array_equal(own, other)
