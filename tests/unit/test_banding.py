"""The bands in which smooth numbers are counted: by public sizes and the budget, never by rows."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import stratsynth as ss
from stratsynth.errors import SchemaError, UsageError
from stratsynth.fitting import request_of
from stratsynth.mechanisms import prepare
from stratsynth.mechanisms.banding import LEAST
from stratsynth.schema import Categorical, Numeric, Rule, Schema
from stratsynth.schema.schema import Unit
from stratsynth.schema.weight import RowWeight

BUDGET = ss.Budget(epsilon=1, delta=1e-9, first=0)  # all of it decides in which bands ages are counted
CHILD = Rule(when={"AGEP": "< 17"}, never={"MAR": "1"})


def schema(rules: tuple[Rule, ...] = (), **keys: object) -> Schema:
    age = Numeric(**{"lower": 0, "upper": 99, "integer": True, "shape": "smooth", **keys})
    return Schema(
        {"SEX": Categorical(levels=("1", "2")), "MAR": Categorical(levels=("1", "2")), "AGEP": age}, rules=rules
    )


def table(of: Schema, rows: int = 3000, **keys: object) -> ss.open_table:
    rng = np.random.default_rng(5)
    ages = np.clip(rng.normal(40, 20, rows), 0, 99).astype(int)
    frame = pd.DataFrame({"SEX": rng.choice(["1", "2"], rows), "MAR": rng.choice(["1", "2"], rows), "AGEP": ages})
    return ss.open_table(frame, schema=of, **{"declared_size": rows, **keys})


def by_sex() -> ss.Stratified:
    shares = pd.DataFrame({"SEX": ["1", "2"], "share": [0.5, 0.5]})
    return ss.Stratified("mst", ["SEX"], ss.Weights.public(shares, citation="made up"))


def bands(how: object, size: int | None, of: Schema | None = None, budget: ss.Budget = BUDGET) -> int:
    return prepare(how, of or schema(), budget, size).public.schema.size("AGEP")


def size_for(width: int, width_below: int) -> int:
    """Least declared size for bands of `width` by the least count of `width_below`."""
    noise = math.sqrt(3 / prepare("mst", schema(), BUDGET, 10).allot.amount)
    return math.ceil(LEAST[width_below] * noise * 100 / width)


def test_the_narrowest_bands_with_enough_records_for_the_noise():
    assert bands("mst", 10) == 10
    for width, number in ((5, 20), (2, 50), (1, 100)):
        enough = size_for(width, width)
        assert bands("mst", enough) == number
        assert bands("mst", enough - 1) < number


def test_more_budget_allows_narrower_bands():
    assert bands("mst", 3_000, budget=ss.Budget(epsilon=0.1, delta=1e-9)) == 10
    assert bands("mst", 3_000, budget=ss.Budget(epsilon=25, delta=1e-9)) == 100


def test_of_strata_the_one_of_the_middle_person_decides():
    size = size_for(1, 1)
    assert (bands("mst", size), bands(by_sex(), size)) == (100, 50)


def test_weights_cover_the_largest():
    assert bands("mst", size_for(1, 1), replace(schema(), row_weight=RowWeight(20, "PWGTP"))) < 100


@pytest.mark.parametrize("how", ["mst", "aim", "gem", "independent"])
def test_every_mechanism_that_draws_rows_counts_in_bands(how):
    assert bands(how, 100) == 10


@pytest.mark.parametrize(
    ("keys", "number"),
    [
        ({"shape": "even"}, 100),
        ({"edges": tuple(range(0, 101, 4))}, 25),
        ({"spikes": (40,)}, 100),
        ({"upper": 19}, 20),
        ({"labels": {"65": "Pension"}}, 100),
    ],
)
def test_what_is_declared_otherwise_stays(keys, number):
    found = prepare("mst", schema(**keys), BUDGET, 100)
    assert found.public.schema.size("AGEP") == number


def test_without_a_size_single_values_are_counted():
    found = prepare("mst", schema(), BUDGET, None)
    assert found.bands[0].why == "no size is declared"
    assert (found.declared, found.public.schema.size("AGEP")) == (None, 100)


def test_a_column_that_defines_strata_is_counted_as_declared():
    shares = pd.DataFrame({"AGEP": [str(i) for i in range(100)], "share": [0.01] * 100})
    how = ss.Stratified("mst", ["AGEP"], ss.Weights.public(shares, citation="made up"))
    found = prepare(how, schema(), BUDGET, 100)
    assert found.public.schema.size("AGEP") == 100
    assert found.bands[0].why == "strata or shares are defined by it"


def test_bands_begin_at_multiples_of_their_width_and_where_a_rule_begins_to_hold():
    levels = prepare("mst", schema((CHILD,), lower=3), BUDGET, size_for(5, 5)).public.schema.levels("AGEP")
    assert levels[:5] == ("3-4", "5-9", "10-14", "15-16", "17-19")
    assert levels[-1] == "95-99"


def test_rows_keep_a_rule_that_cuts_a_band():
    release = ss.fit("mst", table(schema((CHILD,))), BUDGET)
    drawn = release.sample(3000, seed=1)
    assert not ((drawn["AGEP"] < 17) & (drawn["MAR"] == "1")).any()


def test_a_rule_that_names_single_values_keeps_them():
    rule = Rule(when={"AGEP": ("3", "7")}, never={"MAR": "1"})
    found = prepare("mst", schema((rule,)), BUDGET, 100)
    assert found.public.schema.size("AGEP") == 100
    assert found.bands[0].why == "a rule names single values"


def test_a_public_table_of_single_values_keeps_them():
    shares = pd.DataFrame({"AGEP": [str(i) for i in range(100)], "share": [0.01] * 100})
    known = ss.Prior.tables([ss.PublishedTable(shares, "U.S. Census Bureau, 2020 Census, table P12")])
    found = prepare("mst", schema(), BUDGET, 100, prior=known)
    assert found.public.schema.size("AGEP") == 100
    assert found.bands[0].why == "a public table has its single values"


def test_rows_of_a_prior_are_counted_in_the_same_bands():
    rows = pd.DataFrame({"SEX": ["1", "2"] * 50, "MAR": ["1", "2"] * 50, "AGEP": range(100)})
    prior = ss.Prior.public(rows, citation="U.S. Census Bureau, 2020 Census, a sample")
    found = prepare("mst", schema(), BUDGET, 1000, prior=prior).public
    assert found.schema.size("AGEP") == 10
    assert found.prior is not None
    assert found.prior.schema == found.schema


def test_a_release_says_it_and_draws_single_ages():
    release = ss.fit("mst", table(schema()), BUDGET)
    [said] = release.certificate["bands"]
    assert (said["values"], said["bands"], said["width"]) == (100, 20, 5)
    assert set(release.sample(20_000, seed=1)["AGEP"]) >= set(range(20, 60))
    with pytest.raises(SchemaError, match="is one number of '40-44'"):
        release.sample(50, where={"AGEP": 42})
    assert set(release.sample(500, where={"AGEP": "40..49"}, seed=1)["AGEP"]) <= set(range(40, 50))


def test_a_plan_says_it():
    found = ss.plan("mst", schema(), BUDGET, declared_size=3000)
    assert found.bands[0]["bands"] == 20
    text = " ".join(str(found).split())
    assert "AGEP: its 100 values are counted in 20 bands of 5 (the narrowest with" in text
    assert "were not measured" in text
    single = ss.plan("mst", schema(), BUDGET, declared_size=10**7)
    assert "AGEP: each of its 100 values is counted" in " ".join(str(single).split())


@pytest.mark.parametrize(
    "change",
    [
        lambda of: replace(of, unit=Unit(column="WHO", max_rows=3)),
        lambda of: replace(of, row_weight=RowWeight(5, "W")),
        lambda of: replace(of, columns={**of.columns, "AGEP": replace(of.columns["AGEP"], upper=98)}),
        lambda of: replace(of, columns={**of.columns, "AGEP": replace(of.columns["AGEP"], edges=(-5, 50, 105))}),
        lambda of: replace(of, columns={**of.columns, "AGEP": replace(of.columns["AGEP"], missing=True)}),
        lambda of: replace(of, columns={**of.columns, "AGEP": replace(of.columns["AGEP"], public=True)}),
        lambda of: replace(of, columns={**of.columns, "AGEP": Categorical(levels=("0", "1"))}),
        lambda of: of.restrict(["SEX", "MAR"]),
    ],
)
def test_rows_are_read_by_the_declared_schema_in_bands_of_its_values_alone(change):
    """However it was made: units, weights and bounds are those that the budget was made for."""
    prepared = prepare("mst", schema(), BUDGET, 100)
    assert prepared.declared is not None
    assert replace(prepared, bands=()).public is prepared.public
    with pytest.raises(UsageError, match="another schema than the declared one"):
        replace(prepared, public=replace(prepared.public, schema=change(prepared.public.schema)))


def test_a_column_that_is_not_smooth_is_read_as_it_was_declared():
    prepared = prepare("mst", schema(), BUDGET, 100)
    even = schema(shape="even")
    own = replace(prepared.public.schema.columns["AGEP"], shape="even")
    counted = replace(even, columns={**even.columns, "AGEP": own})
    with pytest.raises(UsageError, match="another schema than the declared one"):
        replace(prepared, declared=even, public=replace(prepared.public, schema=counted))


def test_the_choice_knows_no_rows():
    """Tables that differ in everything but their public facts are counted alike."""
    one = table(schema())
    other = replace(one, backend=table(schema(), rows=7).backend)
    found = [ss.fit("mst", t, BUDGET).certificate["bands"] for t in (one, other)]
    assert found[0] == found[1]


def test_a_fit_without_a_first_question_is_known_by_the_bands_that_it_counts():
    """At the edge a percent of the budget makes other bands."""
    size = size_for(1, 1)
    asking, plain = (prepare("mst", schema(), replace(BUDGET, first=share), size) for share in (0.01, 0))
    assert asking.first.asked
    assert asking.bands != plain.bands
    assert request_of(asking.without_first(), 1).identity == request_of(plain, 1).identity
