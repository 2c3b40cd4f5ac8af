"""Rows that count more than 1: answers, what a row can move, and noise grow together."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

import stratsynth as ss
from helpers import small
from helpers.contract import violations
from helpers.small import BUDGET, SCHEMA
from stratsynth.accounting.budget import PRICED, Currency, Neighbours
from stratsynth.adapters import AIM, MST, Independent
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.driver.lockstep import Asked
from stratsynth.errors import SchemaError
from stratsynth.noise import SeededEntropy
from stratsynth.questions import Choose, Columns, Counts, Distance, NoisyTable, Peak, Total
from stratsynth.questions.base import Setting
from stratsynth.questions.reading import Exact
from stratsynth.questions.sums.base import GRID
from stratsynth.schema.weight import RowWeight
from stratsynth.strata import crossing, within
from stratsynth.testing import check_contract, worlds
from stratsynth.testing.privacy_loss import exact_answers, privacy_loss

HEAVY = dataclasses.replace(SCHEMA, row_weight=RowWeight(3))
AGE = Columns(("AGE",), (4.0,), (3.0,), clip=1.0)
COUNTS = Counts((("SEX",), ("AGE", "WORK")), 0.4, (1.0, 2.0))
TOTALS = {
    "zcdp": Total(AGE, 0.3),
    "pure": Total(dataclasses.replace(AGE, norm="l1"), 0.3, Currency.PURE),
    "sampled": Total(AGE, 0.9, Currency.SAMPLED, rate=1.0),
}


def exact(schema, *questions, path=()):
    inner = within(schema, path)
    return exact_answers(load_rows(schema, open_source(small.people())), [Asked(path, inner, q) for q in questions])


@pytest.mark.parametrize("path", [(), crossing(SCHEMA, ["GROUP"])[:1]], ids=["everybody", "a stratum"])
def test_exact_answers_count_every_row_three_times(path):
    asked = (COUNTS, *TOTALS.values())
    for light, heavy in zip(exact(SCHEMA, *asked, path=path), exact(HEAVY, *asked, path=path), strict=True):
        assert light.tables or light.sums
        for one, three in zip(light.tables, heavy.tables, strict=True):
            assert np.array_equal(3 * one, three)
        for one, same in zip(light.sums, heavy.sums, strict=True):  # handlers weigh sums, in integers without an end
            assert all(np.array_equal(a, b) for a, b in zip(one, same, strict=True))


def test_scores_of_weighted_sums_do_not_wrap_around():
    """A row moves a sum by 2^30 units: in 64 bits, 2^23 rows of weight 1,024 would be 0."""
    schema = dataclasses.replace(SCHEMA, row_weight=RowWeight(1024))
    peak = Peak(AGE, np.array([[1.0]]), np.zeros(1))
    at, rows = Setting(schema, Neighbours.ADD_REMOVE), 2**23
    (one,), reach = Peak.units([peak], Exact(sums=[[np.array([(rows - 1) * GRID])]]), at, {})
    (two,), _ = Peak.units([peak], Exact(sums=[[np.array([rows * GRID])]]), at, {})
    assert 0 < two - one <= reach


@pytest.mark.parametrize("neighbours", PRICED)
@pytest.mark.parametrize("question", [COUNTS, TOTALS["zcdp"], TOTALS["pure"]], ids=["counts", "zcdp", "pure"])
def test_a_price_buys_three_times_the_noise_for_three_times_the_sensitivity(question, neighbours):
    light, heavy = (question.charges(schema, (), neighbours) for schema in (SCHEMA, HEAVY))
    for one, three in zip(light, heavy, strict=True):
        assert three.amount == one.amount
        assert {n: s / 3 for n, s in three.sensitivity.items()} == pytest.approx(dict(one.sensitivity), rel=1e-12)
        for name in {"sigma", "scale"} & one.details.keys():
            assert three.details[name] == pytest.approx(3 * one.details[name], rel=1e-12)
        assert {"sigma", "scale"} & one.details.keys()


def test_a_step_on_a_sample_has_three_times_the_noise_too():
    light, heavy = (TOTALS["sampled"].scales(schema, Neighbours.ADD_REMOVE) for schema in (SCHEMA, HEAVY))
    assert heavy == pytest.approx([3 * scale for scale in light], rel=1e-12)


@pytest.mark.parametrize("neighbours", PRICED)
def test_a_choice_costs_the_same_and_a_row_moves_its_scores_by_three_times_as_much(neighbours):
    table = np.array([40.0, 60.0])
    distances = Choose((Distance(("SEX",), table), Distance(("GROUP",), table, weight=0.5, norm="largest")), 0.2)
    peaks = Choose((Peak(AGE, np.array([[1.0], [-2.0]]), np.zeros(2)),), 0.2)
    for question in (distances, peaks):
        (light,), (heavy,) = (question.charges(schema, (), neighbours) for schema in (SCHEMA, HEAVY))
        assert heavy == light
        for score in question.scores:
            assert score.sensitivity(HEAVY, neighbours) == pytest.approx(3 * score.sensitivity(SCHEMA, neighbours))
        kind, (found,) = type(question.scores[0]), exact(SCHEMA, question)
        reach = [kind.units(question.scores, found, Setting(s, neighbours), {})[1] for s in (SCHEMA, HEAVY)]
        assert reach[1] / reach[0] == pytest.approx(3, rel=1e-6)


def test_one_row_is_priced_to_the_last_bit_of_what_was_charged():
    """Neighbouring tables, the noise that was drawn, and what telling them apart costs: within the charge, and near."""
    people = small.people()
    asked = Asked((), HEAVY, Counts((("SEX",),), 0.4))
    here, there = (exact_answers(load_rows(HEAVY, open_source(rows)), [asked])[0] for rows in (people, people.iloc[1:]))
    release = ss.fit(Independent(), ss.open_table(people, schema=HEAVY, declared_size=300), BUDGET)
    (charge,) = release.certificate["charges"]
    (sigma,) = asked.question.sigmas(HEAVY, Neighbours.ADD_REMOVE)
    answer = [NoisyTable(("SEX",), np.zeros(2, np.int64), sigma)]
    cost = privacy_loss(asked, here, there, Neighbours.ADD_REMOVE, answer)
    assert Fraction(0.4) * (1 - Fraction(1, 10**12)) <= cost <= Fraction(0.4)
    assert charge["sensitivity"]["add-remove"] == pytest.approx(3 * len(HEAVY.names) ** 0.5)


def heavier(world):
    return dataclasses.replace(world, schema=dataclasses.replace(world.schema, row_weight=RowWeight(3)))


HEAVY_WORLDS = [heavier(world) for world in worlds()]
HOW = {
    "independent": lambda w, _: Independent(),
    "mst in strata": lambda w, _: ss.Stratified(MST(), w.by, w.weights),
    "aim": lambda w, _: AIM(rounds=2),
    "private weights": lambda w, _: ss.Stratified(Independent(), w.by, ss.Weights.private(share=0.2)),
}


@pytest.mark.parametrize("how", HOW)
def test_the_contract_holds(how):
    assert violations(HOW[how], among=HEAVY_WORLDS) == []


def test_the_contract_holds_for_sums():
    from stratsynth.adapters import CoinPress

    numeric = [world for world in HEAVY_WORLDS if "AGE" in world.schema.names]
    assert violations(lambda w, _: CoinPress(), among=numeric) == []


@pytest.mark.parametrize("how", HOW)
def test_rows_that_count_more_than_the_schema_says_are_caught(how):
    def load(schema, source):
        return load_rows(dataclasses.replace(schema, row_weight=RowWeight(3)), source)

    assert "sensitivity" in {f.kind for f in check_contract(HOW[how], load=load, tables=3, neighbours=4, orders=0)}


def test_a_fit_counts_them():
    """With hardly any noise its tables are three times those of the rows, and shares are as they were."""
    table = ss.open_table(small.people(), schema=HEAVY, declared_size=300)
    release = ss.fit(Independent(), table, ss.Budget(20, 1e-6), entropy=SeededEntropy(1))
    counted = release.measurements.to_pandas()
    assert counted[counted["clique"] == "SEX"]["value"].sum() == pytest.approx(300, abs=30)
    assert release.model.mass({"SEX": frozenset({0})}) == pytest.approx(0.5, abs=0.05)


def test_the_weight_is_part_of_what_a_schema_is():
    assert HEAVY != SCHEMA
    assert HEAVY.sha256 != SCHEMA.sha256
    assert dataclasses.replace(HEAVY, row_weight=RowWeight()).sha256 == SCHEMA.sha256
    assert HEAVY.without(["SEX"]).row_weight == within(HEAVY, crossing(HEAVY, ["GROUP"])[:1]).row_weight == RowWeight(3)


@pytest.mark.parametrize("most", [0, -1, 1.5, True, "2", 2**10 + 1, None])
def test_a_weight_is_a_whole_number_that_leaves_room_for_sums(most):
    with pytest.raises(SchemaError, match="weight of a row"):
        RowWeight(most)
