"""Consequences of structural rules are decided before anything is charged: in fits and plans alike."""

from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.small import BUDGET, SCHEMA, people
from stratsynth import Schema, Stratified, Weights, fit, open_table
from stratsynth.adapters import AIM, MST, Independent
from stratsynth.errors import SchemaError, UsageError, WeightsError
from stratsynth.models.rules import broken
from stratsynth.planning import plan
from stratsynth.schema import Categorical, Rule
from stratsynth.schema.rules import Feasible
from stratsynth.strata import crossing, impossible

NO_MEN_IN_B = Rule(when={"SEX": "1"}, never={"GROUP": "b"})
ZERO = replace(SCHEMA, rules=(NO_MEN_IN_B,))
BY = ["SEX", "GROUP"]


def margin(column, *shares):
    levels = SCHEMA.levels(column)
    return Weights.public(pd.DataFrame({column: levels, "share": shares}), citation="a yearbook")


def joint(*shares):
    cells = [s.to_dict() for s in crossing(SCHEMA, BY)]
    return pd.DataFrame([{**c, "share": w} for c, w in zip(cells, shares, strict=True)])


SOURCES = {
    "public": Weights.public(joint(0.4, 0.1, 0.3, 0.2), citation="a yearbook"),
    "raked": Weights.raked(margin("SEX", 0.4, 0.6), margin("GROUP", 0.7, 0.3)),
    "raked on a start": Weights.raked(
        margin("SEX", 0.4, 0.6),
        margin("GROUP", 0.7, 0.3),
        start=Weights.public(joint(0.25, 0.25, 0.25, 0.25), citation="last year"),
    ),
    "holdout": Weights.holdout(people(40), citation="a survey"),
    "private": Weights.private(share=0.2),
    "private with a prior": Weights.private(
        share=0.2, prior=Weights.public(joint(0.4, 0.1, 0.3, 0.2), citation="made up")
    ),
    "invariant": Weights.invariant(joint(0.4, 0.1, 0.3, 0.2)),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("mechanism", [Independent(), MST()], ids=["independent", "mst"])
def test_a_group_that_a_rule_forbids_has_no_share_and_does_not_stop_a_fit(source, mechanism):
    how = Stratified(mechanism, by=BY, weights=SOURCES[source])
    rows = pd.concat([people(), people().assign(SEX="1", GROUP="b")])  # dirty rows: the noisy count is far from 0
    release = fit(how, open_table(rows, schema=ZERO, declared_size=200), BUDGET)
    weights = {s.label: w for s, w in release.model.table_model().weights.items()}
    assert weights["1|b"] == 0
    assert sum(weights.values()) == pytest.approx(1)
    frame = release.sample(300, seed=1)
    assert not ((frame.SEX.astype(str) == "1") & (frame.GROUP.astype(str) == "b")).any()
    assert release.certificate["weights"]["impossible"]["strata"] == ["1|b"]
    shares = {s.stratum: s.size for s in plan(how, ZERO, BUDGET, declared_size=200).strata}
    assert shares["1|b"] == 0


def test_raking_keeps_the_margins_around_a_group_that_cannot_occur():
    shares = {s.label: w for s, w in SOURCES["raked"].resolve(crossing(ZERO, BY), ZERO).shares.items()}
    assert shares == pytest.approx({"1|a": 0.4, "1|b": 0.0, "2|a": 0.3, "2|b": 0.3})
    with pytest.raises(WeightsError, match="did not converge"):
        Weights.raked(margin("SEX", 0.8, 0.2), margin("GROUP", 0.5, 0.5)).resolve(crossing(ZERO, BY), ZERO)


CONTRADICTION = (
    Rule(when={"AGE": (*SCHEMA.levels("AGE"),)}, never={"SEX": "1"}),
    Rule(when={"GROUP": ("a", "b")}, never={"WORK": "N"}),
    Rule(when={"SEX": "2"}, never={"GROUP": "a"}),
    Rule(when={"GROUP": "b"}, never={"SEX": "2"}),
)


def reading_is_an_error(monkeypatch):
    def read(*_, **settings):
        raise AssertionError("rows were read")

    monkeypatch.setattr("stratsynth.data.load.load_rows", read)
    monkeypatch.setattr("stratsynth.data.backends.load_rows", read)


@pytest.mark.parametrize(
    "mechanism",
    [MST(), AIM(), Stratified(MST(), by=BY, weights=SOURCES["public"])],
    ids=["mst", "aim", "stratified"],
)
def test_rules_that_contradict_each_other_are_refused_before_the_charge(mechanism, monkeypatch):
    reading_is_an_error(monkeypatch)
    schema = replace(SCHEMA, rules=CONTRADICTION)
    table = open_table(people(), schema=schema, declared_size=100)
    with pytest.raises(SchemaError, match=r"rules 1, 3, 4 of the schema contradict each other"):
        fit(mechanism, table, BUDGET)
    with pytest.raises(SchemaError, match="contradict each other"):
        plan(mechanism, schema, BUDGET, declared_size=100)
    assert table.ledger.reserved == ()


def test_shares_of_forbidden_groups_alone_are_refused_before_the_charge():
    table = open_table(people(), schema=ZERO, declared_size=100)
    how = Stratified(Independent(), by=BY, weights=Weights.public(joint(0, 1, 0, 0), citation="a yearbook"))
    with pytest.raises(WeightsError, match="forbid every group that has a share"):
        fit(how, table, BUDGET)
    assert table.ledger.reserved == ()


def test_rules_that_together_empty_a_group_are_seen():
    rules = (Rule(when={"SEX": "1"}, never={"WORK": ("N", "yes")}), Rule(when={"SEX": "1"}, never={"WORK": "no"}))
    schema = replace(SCHEMA, rules=rules)
    assert {s.label for s in impossible(schema, crossing(schema, ["SEX"]))} == {"1"}
    how = Stratified(MST(), by=["SEX"], weights=margin("SEX", 0.5, 0.5))
    release = fit(how, open_table(people(), schema=schema, declared_size=100), BUDGET)
    assert set(release.sample(50, seed=1).SEX.astype(str)) == {"2"}


COLUMNS = {"A": ("0", "1"), "B": ("0", "1", "2"), "C": ("0", "1")}


@st.composite
def rules(draw):
    found = []
    for _ in range(draw(st.integers(1, 6))):
        names = draw(st.permutations(sorted(COLUMNS)))[: draw(st.integers(2, 3))]
        some = {n: tuple(draw(st.sets(st.sampled_from(COLUMNS[n]), min_size=1))) for n in names}
        first = names[0]
        found.append(Rule(when={first: some[first]}, never={n: some[n] for n in names[1:]}))
    return tuple(found)


@given(rules(), st.sampled_from(["A", "B", "C"]), st.integers(0, 1))
@settings(max_examples=300, deadline=None)
def test_feasibility_is_that_of_trying_every_row(given_rules, column, code):
    import numpy as np

    schema = Schema({n: Categorical(levels=levels) for n, levels in COLUMNS.items()}, rules=given_rules)
    grid = np.meshgrid(*(np.arange(schema.size(n)) for n in schema.names), indexing="ij")
    rows = {n: axis.ravel() for n, axis in zip(schema.names, grid, strict=True)}
    kept = ~broken(schema, rows)
    assert Feasible(schema).keeps() == kept.any()
    assert Feasible(schema).keeps({column: {code}}) == (kept & (rows[column] == code)).any()


def test_plan_and_fit_refuse_the_same_size_and_delta():
    for size in (0, -1, 2**60):
        with pytest.raises(UsageError, match="declared_size must be a whole number"):
            plan(MST(), SCHEMA, BUDGET, declared_size=size)
    with pytest.raises(UsageError, match="one over the declared size"):
        plan(MST(), SCHEMA, replace(BUDGET, delta=0.01), declared_size=100)
