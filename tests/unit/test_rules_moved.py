"""Rows that rules change are counted, and no sample of any kind breaks a rule."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import stratsynth as ss
from helpers import small
from helpers.certificates import record
from stratsynth import cli
from stratsynth.adapters.external import Drawn
from stratsynth.adapters.independent import Product
from stratsynth.errors import MechanismError
from stratsynth.mechanisms import make
from stratsynth.models import combine
from stratsynth.models.rules import Moved, broken, draw_allowed
from stratsynth.noise import SeededEntropy
from stratsynth.schema import Categorical, Rule, Schema
from stratsynth.strata import crossing, within
from stratsynth.weights import Resolved

LEVELS = ("x", "y", "z")
NAMES = ("A", "B", "C", "D")


def fitted(name, *, stratified, rows=3_000):
    """A fit in which children under three have no work, by a mechanism that may know nothing of it."""
    schema = Schema(small.SCHEMA.columns, rules=(Rule(when={"AGE": "0-2"}, never={"WORK": ("yes", "no")}),))
    how = make(name, {})
    if stratified:
        how = ss.Stratified(
            how,
            ["SEX"],
            ss.Weights.public(pd.DataFrame({"SEX": ["1", "2"], "share": [0.25, 0.75]}), citation="made up"),
        )
    table = ss.open_table(small.people(rows), schema=schema, declared_size=rows)
    return ss.fit(how, table, ss.Budget(5, 1e-9), entropy=SeededEntropy(2))


@pytest.mark.parametrize("stratified", [False, True])
def test_the_count_is_the_model_s_mass_on_forbidden_rows(stratified):
    release = fitted("independent", stratified=stratified)
    expected = release.model.mass({"AGE": frozenset({0}), "WORK": frozenset({1, 2})})
    moved = release.rules_moved(40_000, seed=1)
    assert moved["rows"] == 40_000
    assert moved["redrawn"] / 40_000 == pytest.approx(expected, abs=0.01)
    assert moved["mended"] == 0
    if stratified:
        assert {name: part["rows"] for name, part in moved["strata"].items()} == {"1": 10_000, "2": 30_000}
        for stratum, part in release.model.parts.items():
            mass = part.mass({"AGE": frozenset({0}), "WORK": frozenset({1, 2})})
            counted = moved["strata"][stratum.label]
            assert counted["redrawn"] / counted["rows"] == pytest.approx(mass, abs=0.02)
    else:
        assert moved["strata"] == {}


@pytest.mark.parametrize("stratified", [False, True])
def test_a_model_that_holds_the_rules_moves_nothing(stratified):
    moved = fitted("mst", stratified=stratified).rules_moved(5_000, seed=1)
    assert (moved["redrawn"], moved["mended"], moved["strata"]) == (0, 0, {})


def test_counting_changes_no_row():
    release = fitted("independent", stratified=True)
    before = release.sample(500, seed=1)
    release.rules_moved(500, seed=1)
    pd.testing.assert_frame_equal(release.sample(500, seed=1), before)


def test_what_is_mended_is_counted_as_such():
    schema = Schema(
        {"A": Categorical(levels=LEVELS), "B": Categorical(levels=LEVELS)},
        rules=(Rule(when={"A": "x"}, never={"B": "x"}),),
    )
    rng = np.random.default_rng(0)

    def stubborn(n, _):
        return {"A": np.zeros(n, dtype=np.int64), "B": np.zeros(n, dtype=np.int64)}

    moved = Moved()
    draw_allowed(schema, 30, rng, stubborn, moved=moved)
    assert moved.to_dict() == {"rows": 30, "redrawn": 30, "mended": 30, "strata": {}}
    assert Moved().to_dict() == {"rows": 0, "redrawn": 0, "mended": 0, "strata": {}}


def test_strata_of_strata_are_told_apart():
    schema = fitted("independent", stratified=False).model.schema
    inner = ss.Stratified(make("independent", {}), ["GROUP"], small.even(schema, "GROUP"))
    how = ss.Stratified(inner, ["SEX"], small.even(schema, "SEX"))
    table = ss.open_table(small.people(3_000), schema=schema, declared_size=3_000)
    moved = ss.fit(how, table, ss.Budget(5, 1e-9, first=0), entropy=SeededEntropy(2)).rules_moved(8_000, seed=1)
    assert set(moved["strata"]) == {"1|a", "1|b", "2|a", "2|b"}
    assert moved["redrawn"] == sum(part["redrawn"] for part in moved["strata"].values())


conditions = st.dictionaries(
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(LEVELS), min_size=1, max_size=2, unique=True),
    min_size=1,
    max_size=2,
)


@st.composite
def rules(draw):
    when, never = draw(conditions), draw(conditions)
    left = {name: levels for name, levels in never.items() if name not in when}
    assume(left)
    return Rule(when={n: tuple(v) for n, v in when.items()}, never={n: tuple(v) for n, v in left.items()})


def part(schema, kind, rng):
    sizes = {name: schema.size(name) for name in schema.names}
    if kind == "drawn":
        return Drawn.of(schema, {name: rng.integers(0, size, 30) for name, size in sizes.items()})
    return Product(schema, {name: rng.dirichlet(np.ones(size)) for name, size in sizes.items()})


@given(
    st.lists(rules(), min_size=1, max_size=3),
    st.sampled_from(["product", "drawn"]),
    st.sampled_from([(), ("A",), ("A", "B")]),
    st.integers(0, 2**32),
)
def test_no_sample_breaks_a_rule_whatever_the_rules(given_rules, kind, by, seed):
    """Vanilla and stratified, plain, balanced and under a condition; or rules that cannot be kept are refused."""
    schema = Schema({name: Categorical(levels=LEVELS) for name in NAMES}, rules=tuple(given_rules))
    rng = np.random.default_rng(seed)
    if by:
        strata = crossing(schema, by)
        parts = {stratum: part(within(schema, (stratum,)), kind, rng) for stratum in strata}
        model = combine(schema, parts, Resolved(dict.fromkeys(strata, 1 / len(strata))))
    else:
        model = part(schema, kind, rng)
    release = ss.Release(model, record(strata={"by": list(by)}), None)
    for settings in ({}, {"balance": ["C"]}, {"where": {"D": ["x", "y"]}}):
        try:
            rows = release.sample(60, seed=1, **settings)
        except (MechanismError, ss.StratsynthError):  # a stratum, or a condition, in which no row is allowed
            continue
        codes = {name: rows[name].map(LEVELS.index).to_numpy() for name in NAMES}
        assert not broken(schema, codes).any()
        assert len(rows) == 60


def test_a_release_says_what_its_rules_moved_and_one_without_rules_says_nothing(tmp_path, capsys):
    folder = fitted("independent", stratified=True).save(tmp_path / "release", rows=2_000, seed=3)
    said = json.loads((folder / "rules.json").read_text(encoding="utf-8"))
    assert said["format"] == "stratsynth-rules/1"
    assert said["rows"] == 2_000
    assert said["redrawn"] > 100
    assert ss.Release.load(folder).rules_moved(2_000, seed=3) == {k: v for k, v in said.items() if k != "format"}
    assert cli.run(["certificate", str(folder)]) == 0
    assert "were drawn again" in capsys.readouterr().out
    assert cli.run(["sample", str(folder), "-n", "50", "-o", str(tmp_path / "a.csv")]) == 0
    assert "were drawn again" in capsys.readouterr().out
    (folder / "rules.json").write_text("[]", encoding="utf-8")
    assert cli.run(["certificate", str(folder)]) == 2
    assert "damaged" in capsys.readouterr().err
    without = small.small_release().save(tmp_path / "without", rows=5)
    assert not (without / "rules.json").exists()
    assert cli.run(["certificate", str(without)]) == 0
    assert "drawn again" not in capsys.readouterr().out
