"""The level at which long code lists are counted: by public sizes and the budget, never by rows."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import stratsynth as ss
from stratsynth.adapters import MST, GroupRegression, Pooled
from stratsynth.errors import SchemaError, UsageError
from stratsynth.fitting import request_of
from stratsynth.mechanisms import prepare
from stratsynth.mechanisms.nesting import EVENLY, SHARED
from stratsynth.schema import Categorical, Nested, Numeric, Rule, Schema
from stratsynth.schema.schema import Unit
from stratsynth.schema.weight import RowWeight

JOBS = tuple(f"{group}{i:02}" for group in range(1, 6) for i in range(40))
GROUPS = {f"group {g}": tuple(code for code in JOBS if code[0] == str(g)) for g in range(1, 6)}
BUDGET = ss.Budget(epsilon=1, delta=1e-9, first=0)  # all of it decides at which level codes are counted


def column(**keys: object) -> Nested:
    return Nested(**{"levels": ("N", *JOBS), "not_applicable": "N", "groupings": (GROUPS,), **keys})  # type: ignore[arg-type]


def schema(rules: tuple[Rule, ...] = (), **keys: object) -> Schema:
    sex, age = Categorical(levels=("1", "2")), Numeric(lower=0, upper=99, integer=True, bins=10)
    return Schema({"SEX": sex, "AGEP": age, "OCCP": column(**keys)}, rules=rules)


def by_sex(first: float = 0.5) -> ss.Stratified:
    shares = pd.DataFrame({"SEX": ["1", "2"], "share": [first, 1 - first]})
    return ss.Stratified("mst", ["SEX"], ss.Weights.public(shares, citation="made up"))


def table(of: Schema, rows: int = 3000, **keys: object) -> ss.open_table:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {"SEX": rng.choice(["1", "2"], rows), "AGEP": rng.integers(0, 99, rows), "OCCP": rng.choice(JOBS, rows)}
    )
    return ss.open_table(frame, schema=of, **{"declared_size": rows, **keys})


def counted(how: object, size: int | None, of: Schema | None = None, budget: ss.Budget = BUDGET) -> int:
    return prepare(how, of or schema(), budget, size).public.schema.size("OCCP")


def test_the_finest_level_with_enough_records_for_the_noise():
    prepared = prepare("mst", schema(), BUDGET, 10_000)
    noise = math.sqrt(3 / prepared.allot.amount)
    edge = EVENLY * noise * 201
    assert counted("mst", math.floor(edge)) == 6
    assert counted("mst", math.ceil(edge)) == 201
    assert counted("mst", 10) == 6  # none has enough: the coarsest


def test_public_shares_of_codes_make_groups_worth_more():
    shares = {"shares": dict.fromkeys(JOBS, 1.0), "source": "a census"}
    edge = SHARED * math.sqrt(3 / prepare("mst", schema(), BUDGET, 9).allot.amount) * 201
    assert counted("mst", math.floor(edge), schema(**shares)) == 6
    assert counted("mst", math.ceil(edge), schema(**shares)) == 201


def test_more_budget_allows_a_finer_level():
    assert counted("mst", 2_000, budget=ss.Budget(epsilon=0.5, delta=1e-9)) == 6
    assert counted("mst", 2_000, budget=ss.Budget(epsilon=5, delta=1e-9)) == 201


def test_of_strata_the_one_of_the_middle_person_decides():
    size = math.ceil(EVENLY * math.sqrt(3 / prepare("mst", schema(), BUDGET, 9).allot.amount) * 201)
    assert counted("mst", size) == 201
    assert counted(by_sex(0.5), size) == 6
    assert counted(by_sex(0.5), 2 * size) == 201
    assert counted(by_sex(0.9), round(size / 0.8)) == 201


def test_pooled_counts_everybody_first():
    shares = pd.DataFrame({"SEX": ["1", "2"], "share": [0.5, 0.5]})
    size = math.ceil(EVENLY * math.sqrt(3 / prepare("mst", schema(), BUDGET, 9).allot.amount) * 201)
    how = Pooled(base=MST(), by=["SEX"], weights=ss.Weights.public(shares, citation="made up"))
    assert counted(how, 2 * size) == 201


@pytest.mark.parametrize(
    ("keys", "size", "levels"),
    [
        ({"measure": 0}, 10, 201),
        ({"measure": 1}, 10**7, 6),
        ({"groupings": ()}, 10, 201),
        ({}, None, 201),
    ],
)
def test_the_schema_may_decide_and_without_a_size_nothing_does(keys, size, levels):
    assert counted("mst", size, schema(**keys)) == levels


def test_columns_that_define_strata_are_counted_as_declared():
    shares = pd.DataFrame({"OCCP": ["N", *JOBS], "share": 1 / 201})
    how = ss.Stratified("mst", ["OCCP"], ss.Weights.public(shares, citation="made up"))
    prepared = prepare(how, schema(), BUDGET, 1000)
    assert prepared.public.schema.size("OCCP") == 201
    assert prepared.code_lists[0].why == "it defines strata"


def test_predictors_are_given_the_codes_as_declared():
    prepared = prepare(GroupRegression(target="AGEP", features=["OCCP"], groups=["SEX"]), schema(), BUDGET, 1000)
    assert prepared.public.schema == schema()
    assert prepared.code_lists == ()


def test_a_rule_about_whole_groups_holds_for_groups():
    rule = Rule(when={"AGEP": "< 10"}, never={"OCCP": GROUPS["group 1"]})
    found = prepare("mst", schema((rule,)), BUDGET, 1000).public.schema
    assert found.size("OCCP") == 6
    assert found.rules[0].never == {"OCCP": ("group 1",)}


def test_a_rule_that_cuts_a_group_keeps_the_codes():
    rule = Rule(when={"AGEP": "< 10"}, never={"OCCP": "100"})
    assert counted("mst", 1000, schema((rule,))) == 201
    with pytest.raises(SchemaError, match="OCCP: a rule names some codes"):
        counted("mst", 1000, schema((rule,), measure=1))


def test_a_release_gives_codes_and_says_what_was_measured(tmp_path):
    release = ss.fit("mst", table(schema(shares={"100": 3.0, "101": 1.0}, source="a census")), BUDGET)
    rows = release.sample(4000, seed=1)
    found = set(rows["OCCP"])
    assert {"100", "101"} <= found <= {"N", *JOBS} - set(GROUPS["group 1"][2:])
    [said] = release.certificate["code_lists"]
    assert (said["codes"], said["levels"], said["drawn"], said["source"]) == (201, 6, "by public shares", "a census")
    cells = release.measurements.to_pandas().query("clique == 'OCCP'")["cell"]
    assert len(cells.unique()) == 6
    release.save(tmp_path / "release", rows=100, seed=1)
    loaded = ss.Release.load(tmp_path / "release")
    pd.testing.assert_frame_equal(loaded.sample(4000, seed=1), rows)
    assert ss.verify(tmp_path / "release").ok
    page = (tmp_path / "release" / "report.html").read_text()
    assert "counted in 6 groups of its 201 codes" in page
    assert "drawn by public shares, a census, and were not measured" in page


def test_a_fit_of_what_was_prepared_is_of_the_same_table():
    prepared = prepare("mst", schema(), BUDGET, 2000)
    from stratsynth.fitting import fitted

    with fitted(prepared, table(schema(), declared_size=2000), BUDGET) as release:
        assert release.certificate["code_lists"][0]["levels"] == 6
    with pytest.raises(ss.StratsynthError, match="another schema"), fitted(prepared, table(schema(measure=0)), BUDGET):
        pass


@pytest.mark.parametrize(
    "change",
    [
        lambda of: replace(of, unit=Unit(column="WHO", max_rows=3)),
        lambda of: replace(of, row_weight=RowWeight(5, "W")),
        lambda of: replace(of, columns={**of.columns, "SEX": replace(of.columns["SEX"], public=True)}),
        lambda of: replace(of, columns={**of.columns, "AGEP": replace(of.columns["AGEP"], upper=200)}),
        lambda of: of.restrict(["SEX", "AGEP"]),
        lambda of: of.restrict(["SEX", "OCCP"]),
        lambda of: replace(of, rules=(Rule(when={"SEX": "1"}, never={"OCCP": "group 1"}),)),
    ],
)
def test_rows_are_read_by_the_declared_schema_and_its_groups_alone(change):
    """However it was made: units, weights and bounds are those that the budget was made for."""
    prepared = prepare("mst", schema(), BUDGET, 100)
    assert prepared.declared is not None
    assert replace(prepared, code_lists=()).public is prepared.public
    with pytest.raises(UsageError, match="another schema than the declared one"):
        replace(prepared, public=replace(prepared.public, schema=change(prepared.public.schema)))


def test_the_choice_knows_no_rows():
    """Tables that differ in everything but their public facts are counted alike."""
    one = table(schema())
    other = replace(one, backend=table(schema(), rows=7).backend)
    levels = [ss.fit("mst", t, BUDGET).certificate["code_lists"] for t in (one, other)]
    assert levels[0] == levels[1]


@pytest.mark.parametrize("how", ["mst", "aim", "gem"])
def test_where_an_attribute_is_protected_the_counted_schema_is_priced_as_an_exchange_too(how):
    of = schema()
    of = replace(of, columns={**of.columns, "SEX": replace(of.columns["SEX"], public=True)})
    prepared = prepare(how, of, replace(BUDGET, neighbours="attribute"), 100)
    assert prepared.public.schema.size("OCCP") == 6
    assert prepared.public.neighbours == "replace"


def test_a_plan_says_it():
    found = ss.plan("mst", schema(), BUDGET, declared_size=2000)
    assert found.code_lists[0]["levels"] == 6
    assert "OCCP: counted in 6 groups of its 201 codes (the finest with" in " ".join(str(found).split())
    assert "drawn evenly, and were not measured" in " ".join(str(found).split())


def test_samples_keep_a_group_that_was_asked_for():
    release = ss.fit("mst", table(schema(), rows=500), BUDGET)
    with pytest.raises(SchemaError, match="counted in groups here: name 'group 2', which has '201' in it"):
        release.sample(50, where={"OCCP": "201"})
    assert set(release.sample(50, where={"OCCP": "group 2"}, seed=1)["OCCP"]) <= set(GROUPS["group 2"])


def test_where_records_have_weights_noise_covers_the_largest():
    weighted = replace(schema(), row_weight=RowWeight(20, "PWGTP"))
    one, other = (prepare("mst", of, BUDGET, 40_000) for of in (schema(), weighted))
    assert (one.public.schema.size("OCCP"), other.public.schema.size("OCCP")) == (201, 6)
    assert other.code_lists[0].noise == pytest.approx(20 * one.code_lists[0].noise, rel=0.01)


def test_a_fit_without_a_first_question_is_known_by_the_levels_that_it_counts():
    """At the edge a percent of the budget makes another level."""
    shares = {"shares": dict.fromkeys(JOBS, 1.0), "source": "a census"}
    edge = SHARED * math.sqrt(3 / prepare("mst", schema(), BUDGET, 9).allot.amount) * 201
    of, size = schema(**shares), math.ceil(edge)
    asking, plain = (prepare("mst", of, replace(BUDGET, first=share), size) for share in (0.01, 0))
    assert asking.first.asked
    assert asking.code_lists != plain.code_lists
    assert request_of(asking.without_first(), 1).identity == request_of(plain, 1).identity
