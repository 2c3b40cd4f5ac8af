"""The question for usable records and values outside: exact numbers, sensitivity, noise, price."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

from stratsynth import Budget, Categorical, Numeric, Schema
from stratsynth.accounting.budget import Currency, Neighbours
from stratsynth.accounting.sampled import epsilon_sampled
from stratsynth.accounting.units import for_units
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.driver.answering import Reader
from stratsynth.errors import MechanismError, StratsynthError
from stratsynth.noise import SeededEntropy
from stratsynth.questions import Usable
from stratsynth.questions.base import Setting
from stratsynth.questions.reading import OUTSIDE, Exact, Wanted
from stratsynth.schema.schema import Unit
from stratsynth.schema.weight import RowWeight
from stratsynth.strata import crossing

SCHEMA = Schema(
    columns={
        "SEX": Categorical(levels=("f", "m")),
        "WORK": Categorical(levels=("yes", "no", "other"), outside="other"),
        "NATIVE": Categorical(levels=("N", "yes"), not_applicable="N"),
        "AGE": Numeric(lower=0, upper=90, bins=9),
        "PAY": Numeric(lower=0, upper=100, bins=4, outside="missing", missing=True),
    }
)
ROWS = pd.DataFrame(
    {
        "SEX": ["f", "m", "F", "m", None],
        "WORK": ["yes", "odd", "no", "no", None],
        "NATIVE": [None, "yes", "yes", "no", "yes"],
        "AGE": [20.0, 200.0, -3.0, np.nan, 30.0],
        "PAY": [1.0, np.nan, 101.0, 50.0, 2.0],
    }
)
CURRENCIES = [Currency.ZCDP, Currency.PURE, Currency.SAMPLED, Currency.CLAIMED]


def exact(rows, schema=SCHEMA):
    (found,) = Reader(load_rows(schema, open_source(rows)), SeededEntropy(0)).each([((), Usable(0.1).wanted())])
    return found


def test_values_without_a_level_or_bin_are_counted_whatever_becomes_of_them():
    """WORK keeps unknown values as "other", PAY numbers beyond as missing, and AGE clips."""
    assert exact(ROWS).tables[0].tolist() == [2, 2, 2, 1, 1, 2]


def test_records_count_their_weight_and_so_do_values_outside():
    schema = replace(SCHEMA, row_weight=RowWeight(9, "W", missing=2))
    weights = ROWS.assign(W=[1, 20, 4, np.nan, 3])
    assert exact(weights, schema).tables[0].tolist() == [1 + 9, 4 + 3, 9 + 3, 2, 2, 9 + 4]


def test_of_a_unit_the_rows_that_count_are_looked_at():
    schema = replace(SCHEMA, unit=Unit(column="ID", max_rows=1))
    assert exact(ROWS.assign(ID=[1, 1, 1, 1, 2]), schema).tables[0].tolist() == [1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize("parts", ["memory", "stream"])
def test_engines_count_the_same(parts, tmp_path):
    from stratsynth.data.backends import backend

    many = pd.concat([ROWS] * 50, ignore_index=True)
    many.to_parquet(tmp_path / "rows.parquet", row_group_size=7)
    held = backend(parts, open_source(tmp_path / "rows.parquet"), SCHEMA).rows(numbers=False)
    assert held.counts([((), [OUTSIDE])])[0][0].tolist() == [100, 100, 100, 50, 50, 100]


def test_tasks_of_spark_count_the_same_and_answer_as_many_bytes_whatever_the_rows():
    from stratsynth.data.spark_tasks import SUMS, VERSION, CountTables, FromSpark

    task = CountTables(VERSION, SCHEMA, [((), [OUTSIDE])], FromSpark(SCHEMA.names, 0))

    def usable_of(rows):
        return list(task(pa.Table.from_pandas(rows, preserve_index=False).combine_chunks().to_batches()))

    for rows, numbers in ((pd.concat([ROWS] * 3), [6, 6, 6, 3, 3, 6]), (ROWS.head(0), [0] * 6)):
        answers = usable_of(rows)
        (cells,) = (batch for batch in answers if batch["first"][0].as_py() != SUMS)
        assert np.frombuffer(cells["cells"][0].as_buffer(), np.int64).tolist() == numbers
        assert [batch["cells"][0].as_buffer().size for batch in answers] == [8, 48]


def test_strata_are_not_asked():
    rows = load_rows(SCHEMA, open_source(ROWS))
    with pytest.raises(StratsynthError, match="of no stratum"):
        rows.counts([((crossing(SCHEMA, ["SEX"])[0],), [OUTSIDE])])


def pool(weight):
    """Rows that are as far from one another as rows can be."""
    good = {"SEX": "f", "WORK": "yes", "NATIVE": "yes", "AGE": 20.0, "PAY": 1.0}
    kept = {**good, "WORK": "odd", "PAY": np.nan}
    bad = dict.fromkeys(good)
    made = [good, kept, {**bad, "AGE": np.nan, "PAY": np.nan}]
    return [{**row, "AGE": row["AGE"] if row["AGE"] is not None else np.nan, "W": w} for row in made for w in weight]


@pytest.mark.parametrize("currency", CURRENCIES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_no_neighbours_cost_more_than_is_charged(currency, weighted, neighbours):
    schema = replace(SCHEMA, row_weight=RowWeight(7, "W")) if weighted else SCHEMA
    question, at = Usable(0.2, currency), Setting(schema, neighbours)
    (charge,) = question.charges(schema, (), neighbours.priced)
    charged = Fraction(charge.details.get("rho", charge.amount))
    base, most = pool([3])[:1], Fraction(0)
    for old in [None, *pool([0, 7])]:
        for new in [None, *pool([0, 7])]:
            if (neighbours is Neighbours.ADD_REMOVE) == (old is not None and new is not None):
                continue
            here, there = (exact(pd.DataFrame(base + [r for r in [one] if r]), schema) for one in (old, new))
            answer = question.answer(at, here, SeededEntropy(1), {})
            most = max(most, question.cost(at, here, there, answer))
    assert 0 < most <= charged
    assert charge.sensitivity[Neighbours.ADD_REMOVE] == charge.sensitivity[Neighbours.REPLACE]


def test_the_sensitivity_is_the_stated_one():
    """w sqrt(1 + columns) for Gaussian noise, w (1 + columns) for Laplace noise."""
    weighted = replace(SCHEMA, row_weight=RowWeight(7, "W"))
    assert Usable(0.2).sensitivity(SCHEMA) == pytest.approx(math.sqrt(6), rel=1e-12)
    assert Usable(0.2).sensitivity(weighted) == pytest.approx(7 * math.sqrt(6), rel=1e-12)
    assert Usable(0.2, Currency.PURE).sensitivity(weighted) == 42


def test_a_unit_of_k_rows_pays_k_times_as_much_in_epsilon_and_k_squared_in_rho():
    budget = Budget(1, 1e-9, unit="ID", rows=3)
    for currency, times in ((Currency.ZCDP, 9), (Currency.PURE, 3)):
        (charge,) = for_units(Usable(0.2, currency).charges(SCHEMA, (), Neighbours.ADD_REMOVE), budget)
        assert charge.amount == pytest.approx(0.2 * times)


@pytest.mark.parametrize("currency", [Currency.ZCDP, Currency.SAMPLED])
def test_gaussian_noise_has_the_closed_form_and_no_other(currency):
    """Variance (1 + columns) w^2 / (2 rho) + 25; at 0.7 and 1.3 of its root the same numbers are refused."""
    rho, truth = 2e-3, np.arange(6) * 1000
    sigma = math.sqrt(6 / (2 * rho) + 25)
    question = Usable(rho, currency)
    assert question.scale(SCHEMA) == pytest.approx(sigma, rel=1e-12)
    at, entropy = Setting(SCHEMA, Neighbours.ADD_REMOVE), SeededEntropy(5)
    drawn = np.array([question.answer(at, Exact([truth]), entropy, {}).values - truth for _ in range(400)]).ravel()
    chance = [
        stats.kstest(drawn + 0.5 * (entropy_free(len(drawn)) * 2 - 1), "norm", (0, f * sigma)).pvalue
        for f in (1, 0.7, 1.3)
    ]
    assert chance[0] > 1e-3
    assert max(chance[1:]) < 1e-6


@pytest.mark.parametrize("currency", [Currency.PURE, Currency.CLAIMED])
def test_laplace_noise_has_the_closed_form_and_no_other(currency):
    epsilon, truth = 0.02, np.arange(6) * 1000
    question = Usable(epsilon, currency)
    assert question.scale(SCHEMA) == pytest.approx(6 / epsilon, rel=1e-12)
    at, entropy = Setting(SCHEMA, Neighbours.ADD_REMOVE), SeededEntropy(5)
    drawn = np.array([question.answer(at, Exact([truth]), entropy, {}).values - truth for _ in range(400)]).ravel()
    chance = [
        stats.kstest(drawn + entropy_free(len(drawn)) - 0.5, "laplace", (0, f * 6 / epsilon)).pvalue
        for f in (1, 0.7, 1.3)
    ]
    assert chance[0] > 1e-3
    assert max(chance[1:]) < 1e-6


def entropy_free(size):
    """Uniform numbers that spread integers over the reals between them."""
    return np.random.default_rng(3).random(size)


def test_an_answer_is_kept_and_recalled_as_it_was_given():
    question, at = Usable(0.1), Setting(SCHEMA, Neighbours.ADD_REMOVE)
    answer = question.answer(at, exact(ROWS), SeededEntropy(2), {})
    again = Usable.recall(Usable.keep(answer))
    assert again.values.tolist() == answer.values.tolist()
    assert again.sigma == answer.sigma
    assert not answer.values.flags.writeable
    assert question.simulate(at, (), 500.0, np.random.default_rng(0))[0].values.shape == (6,)


@pytest.mark.parametrize("price", [0.0, -1.0, math.nan, 1e-40, "0.1"])
def test_a_price_that_pays_for_no_noise_is_refused(price):
    with pytest.raises(MechanismError, match="usable"):
        Usable(price).check(SCHEMA)


def test_beside_steps_on_samples_it_is_a_gaussian_of_its_rho():
    """One Gaussian of multiplier 1 / sqrt(2 rho) alone: the exact privacy profile."""
    rho, delta = 0.01, 1e-9
    found = epsilon_sampled(1.0, 0.5, 0, delta, first=rho)
    for neighbours in (Neighbours.ADD_REMOVE, Neighbours.REPLACE):
        assert epsilon_sampled(1.0, 0.5, 0, delta, neighbours, first=rho) == pytest.approx(found, rel=1e-3)
    moved = math.sqrt(2 * rho)
    profile = stats.norm.cdf(moved / 2 - found / moved) - math.exp(found) * stats.norm.cdf(-moved / 2 - found / moved)
    assert profile == pytest.approx(delta, rel=0.05)
    assert epsilon_sampled(1.0, 0.01, 20, delta, first=rho) > epsilon_sampled(1.0, 0.01, 20, delta)


def test_the_reads_hold_no_other_table():
    assert Usable(0.1).wanted() == Wanted(cliques=(OUTSIDE,))
    assert OUTSIDE == ()
