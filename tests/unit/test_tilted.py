"""Weighted rows: the tilt against its definition, trust, rounding, and the stored model."""

import itertools
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.priors import SCHEMA, last_year
from stratsynth.adapters.engine import MeasuredTable
from stratsynth.adapters.tilted import TiltedLearner, TiltedRows, fit, rounding
from stratsynth.adapters.tilted.arbiter import (
    ASSUMED,
    COLUMN,
    LEAST,
    MEMORY,
    SHARED,
    SHARED_IN_STRATA,
    Arbiter,
    arbitrated,
    share,
)
from stratsynth.adapters.tilted.blended import Blended, of
from stratsynth.adapters.tilted.blocks import ROWS_A_CELL, cells_within, columns_counted, laid_out, packed
from stratsynth.adapters.tilted.borrowed_rows import reweighted
from stratsynth.adapters.tilted.fit import Aim, Tilt, tilt
from stratsynth.adapters.tilted.learner import FEWER, LEAST_LENT, MOST_LENT, MOST_OF_EVERYBODY, trust
from stratsynth.adapters.tilted.rounding import rounded
from stratsynth.errors import MechanismError, ReleaseError
from stratsynth.mechanisms import Public
from stratsynth.mechanisms.known import Known
from stratsynth.models import State
from stratsynth.questions import Work
from stratsynth.schema import Categorical, Schema
from stratsynth.strata import Stratum, within

TOTAL = 1_000.0


def tilted(base, aims):
    base = np.asarray(base, float)
    codes = {str(i): np.asarray(cells, np.uint8) for i, (cells, _) in enumerate(aims)}
    sizes = {str(i): aim.values.size for i, (_, aim) in enumerate(aims)}
    named = tuple(replace(aim, clique=(str(i),)) for i, (_, aim) in enumerate(aims))
    return tilt([Tilt(codes, sizes, base / base.sum(), named, TOTAL, np.zeros(0), 500)])[0].weights


def table(cells, values, spread):
    return cells, Aim((), np.asarray(values, float), spread)


@pytest.fixture
def exact(monkeypatch):
    """Fits go on as long as a step brings anything."""
    monkeypatch.setattr(fit, "TOLERANCE", 0.0)


@pytest.mark.usefixtures("exact")
def test_two_cells_have_a_closed_form():
    # rows 0 and 1 in cell 0, row 2 in cell 1: w0 = w1, and with s the sum of both the derivative vanishes
    weights = tilted([1, 1, 2], [table([0, 0, 1], [700, 300], 400.0)])
    s = weights[:2].sum()
    assert weights[0] == pytest.approx(weights[1])
    slope = 2 * TOTAL * (TOTAL * s - 700) / 400**2 + np.log(s / (1 - s))
    assert slope == pytest.approx(0, abs=1e-4)
    assert 0.5 < s < 0.7


def test_every_row_obeys_the_condition_of_the_minimum(monkeypatch):
    rng = np.random.default_rng(0)
    base, cells = rng.random(50), [rng.integers(0, k, 50) for k in (3, 4)]
    aims = [table(c, rng.random(k) * TOTAL / k, 300.0) for c, k in zip(cells, (3, 4), strict=True)]
    hasty = tilted(base, aims)
    monkeypatch.setattr(fit, "TOLERANCE", 0.0)
    weights = tilted(base, aims)
    assert 0 < np.abs(hasty - weights).sum() < 0.005  # where a fit stops otherwise
    pull = np.log(weights / (base / base.sum()))
    for place, aim in aims:
        counts = TOTAL * np.bincount(place, weights, aim.values.size)
        pull = pull + TOTAL * ((counts - aim.values) / aim.spread**2)[place]
    assert np.ptp(pull) < 1e-4


@pytest.mark.usefixtures("exact")
def test_tables_that_are_counted_together_obey_it_too():
    rng, sizes = np.random.default_rng(0), {"A": 3, "B": 4, "C": 2, "D": 2}
    codes = {name: rng.integers(0, size, 800).astype(np.uint8) for name, size in sizes.items()}
    cliques = [("A",), ("B", "A"), ("C",), ("D", "C"), ("A", "C")]
    shape = [tuple(sizes[name] for name in clique) for clique in cliques]
    assert len(packed(cliques, sizes, 800 // ROWS_A_CELL)) < len(cliques)
    aims = [Aim(c, rng.random(np.prod(s)) * TOTAL / np.prod(s), 200.0) for c, s in zip(cliques, shape, strict=True)]
    nothing = Aim(("B",), np.full(4, TOTAL), np.inf)  # nobody knows
    weights = tilt([Tilt(codes, sizes, np.full(800, 1 / 800), (*aims, nothing), TOTAL, np.zeros(0), 500)])[0].weights
    pull = np.log(800 * weights)
    for aim, some in zip(aims, shape, strict=True):
        place = np.ravel_multi_index([codes[name] for name in aim.clique], some)
        counts = TOTAL * np.bincount(place, weights, aim.values.size)
        pull = pull + TOTAL * ((counts - aim.values) / aim.spread**2)[place]
    assert np.ptp(pull) < 1e-3


def test_tables_go_together_as_long_as_their_columns_have_few_cells():
    sizes = {"A": 10, "B": 10, "C": 2, "D": 3}
    blocks = packed([("A",), ("B", "A"), ("C",), ("D",)], sizes, 20)
    assert blocks == [(("B", "A"), [1, 0]), (("D", "C"), [3, 2])]
    assert list(cells_within(sizes, ("D", "A", "C"), ("C", "D"))) == [
        c * 3 + d for d in range(3) for _ in "A" * 10 for c in (0, 1)
    ]


def test_columns_are_counted_together_as_by_themselves_for_all_weights_at_once():
    rng, sizes = np.random.default_rng(0), {"A": 3, "B": 4, "C": 2, "D": 1}
    codes = {name: rng.integers(0, size, 50).astype(np.uint8) for name, size in sizes.items()}
    weights = rng.random((2, 50))
    for found, some in zip(columns_counted(codes, sizes, list("DACB"), *weights), weights, strict=True):
        for name, counts in zip("DACB", found, strict=True):
            assert counts == pytest.approx(np.bincount(codes[name], some, sizes[name]))


def test_strata_of_about_as_many_rows_share_a_layout():
    sizes, cliques = {"A": 3, "B": 4}, [("A",), ("B", "A")]
    assert laid_out(cliques, sizes, 1_000) is laid_out(cliques, sizes, 900)
    assert laid_out(cliques, sizes, 0).blocks == (("B", "A"),)


def test_the_lightest_rows_foretell_nothing():
    at = TiltedRows(SCHEMA, learner().codes, np.zeros(0))
    weights = np.r_[np.full(100, 1e-6), np.full(at.codes["A"].size - 100, 1.0)]
    at = replace(at, weights=weights / weights.sum())
    assert at.heaviest(1e-3).weights.size == weights.size - 100
    assert at.heaviest(0.0) is at


def test_rows_that_weigh_nothing_foretell_nothing():
    at = learner()
    at.weights = np.where(np.arange(at.base.size) % 2, 1e-9, at.base)
    at.weights /= at.weights.sum()
    assert at.marginals([("A", "B")])[0] == pytest.approx(at.model.marginal(("A", "B")), abs=1e-4)
    assert at._telling.weights.size == at.base.size / 2


def test_fewer_rows_are_worthwhile_where_they_weigh_little():
    at = learner()
    assert at.worthwhile(1_000) == FEWER * 1_000
    at.share = MOST_LENT / 2
    assert at.worthwhile(1_000) == 500
    at.share = 0.9  # of a stratum's own rows, none may be there
    assert at.worthwhile(1_000) == 1_000


def test_a_sure_table_is_met_and_one_of_nothing_but_noise_changes_nothing():
    cells = [0, 0, 1, 2]
    sure = tilted([1, 2, 3, 4], [table(cells, [500, 200, 300], 1e-3)])
    assert np.bincount(cells, sure) == pytest.approx([0.5, 0.2, 0.3], abs=1e-4)
    assert sure[1] == pytest.approx(2 * sure[0])  # within a cell nothing is known but the prior
    assert tilted([1, 2, 3, 4], [table(cells, [500, 200, 300], 1e9)]) == pytest.approx([0.1, 0.2, 0.3, 0.4])


def test_cells_that_do_not_count_pull_at_nothing():
    place, aim = table([0, 1, 1], [900, 100], 1.0)
    assert tilted([1, 1, 1], [(place, replace(aim, counted=np.array([False, False])))]) == pytest.approx([1 / 3] * 3)


def learner(people=1_000, size=2_000):
    rows = last_year(people).rows(SCHEMA)
    return TiltedLearner.of(Public(SCHEMA, size, prior=rows), settled=float(size))


def trusted(at, values, sigma):
    table = MeasuredTable(("A",), np.rint(values).astype(np.int64), sigma)
    return trust(table, at.marginals([("A",)])[0], at.total, at._most)


def test_where_nothing_has_changed_a_prior_is_worth_what_two_samples_are():
    at = learner()
    counts = 2_000 * at.marginals([("A",)])[0]
    assert trusted(at, counts, 1.0) == pytest.approx(1 / (1 / 2_000 + 1 / 1_000))
    assert trusted(at, counts + np.array([50, -50, 0]), 100.0) == pytest.approx(
        1 / (1 / 2_000 + 1 / 1_000)
    )  # noise may do that


def test_an_answer_that_is_far_away_costs_trust_by_its_distance():
    at = learner()
    share = at.marginals([("A",)])[0]
    off = np.array([400, -400, 0])
    expected = 2_000**2 * (share * (1 - share)).sum() / (2 * 400**2 - 3 * 1.0)
    assert trusted(at, 2_000 * share + off, 1.0) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("n", [0, 1, 9, 5_000])
def test_exactly_n_rows_are_drawn_each_the_floor_or_the_ceiling_of_what_is_due(n):
    rng = np.random.default_rng(n)
    weights = rng.random(60)
    weights[::7] = 0
    drawn = np.bincount(rounded({"A": np.arange(60) % 5, "B": np.arange(60) % 3}, weights, n, rng), minlength=60)
    due = weights / weights.sum() * n
    assert drawn.sum() == n
    assert (np.abs(drawn - due) < 1 + 1e-9).all()
    assert not drawn[::7].any()


def pairs_apart(codes, weights, rows, n):
    """The sum of the differences of all tables of pairs."""
    apart = 0.0
    for one, other in itertools.combinations(codes, 2):
        cell = codes[one] * 10 + codes[other]
        due = np.bincount(cell, weights / weights.sum() * n, minlength=100)
        apart += np.abs(np.bincount(cell[rows], minlength=100) - due).sum()
    return apart


def test_exchanging_rows_brings_pairs_nearer_and_leaves_shares_as_they_are(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(1)
    codes = {name: rng.integers(0, 3, 400) for name in "ABCD"}
    weights = rng.random(400)
    weights[::9] = 0
    share = np.bincount(codes["A"], weights) / weights.sum()
    drawn = [rounded(codes, weights, 40, rng) for _ in range(100)]
    assert {len(rows) for rows in drawn} == {40}
    assert not any((weights[rows] == 0).any() for rows in drawn)
    means = [np.bincount(codes["A"][rows], minlength=3) / 40 for rows in drawn]
    assert np.mean(means, axis=0) == pytest.approx(share, abs=0.01)
    monkeypatch.setattr(rounding, "SWAPS", 0)
    before = [rounded(codes, weights, 40, rng) for _ in range(100)]
    chosen, chance = (np.mean([pairs_apart(codes, weights, r, 40) for r in rows]) for rows in (drawn, before))
    assert chosen < 0.8 * chance


def test_no_exchange_of_two_rows_is_left_that_would_help_the_worst_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rounding, "SWAPS", 10_000)
    rng = np.random.default_rng(3)
    codes = {name: rng.integers(0, 4, 60) for name in "ABC"}
    weights = rng.random(60)
    rows = rounded(codes, weights, 20, rng)
    now = pairs_apart(codes, weights, rows, 20)
    losses = [pairs_apart(codes, weights, np.delete(rows, i), 20) for i in range(20)]
    rest = np.delete(rows, int(np.argmin(losses)))
    assert min(pairs_apart(codes, weights, np.append(rest, j), 20) for j in range(60)) > now - 1e-5


def test_of_many_columns_only_so_many_pairs_are_looked_at():
    rng = np.random.default_rng(4)
    codes = {f"c{i}": rng.integers(0, 2, 50) for i in range(60)}
    assert len(rounded(codes, np.ones(50), 25, rng)) == 25
    pairs = rounding._Pairs(codes, np.ones(50), np.arange(50), 25)
    assert pairs._cells.shape == (50, rounding.MOST_PAIRS)
    assert pairs._cells.dtype == np.int32


def test_large_groups_of_many_rows_are_not_exchanged_for_ever(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(6)
    codes = {name: rng.integers(0, 3, 400) for name in "ABCD"}
    weights = rng.random(400)
    monkeypatch.setattr(rounding, "DRAWS", 1)
    drawn = [rounded(codes, weights, 40, np.random.default_rng(0))]
    monkeypatch.setattr(rounding, "LOOKS", 400 * 6 * 2)  # two exchanges
    drawn.append(rounded(codes, weights, 40, np.random.default_rng(0)))
    monkeypatch.setattr(rounding, "SWAPS", 0)
    drawn.append(rounded(codes, weights, 40, np.random.default_rng(0)))
    number = [np.bincount(rows, minlength=400) for rows in drawn]
    assert 0 < np.abs(number[1] - number[2]).sum() <= 4 < np.abs(number[0] - number[2]).sum()


def borrowing(own, others):
    """Rows of two columns: a stratum's own with the first shares, and 2,000 borrowed ones with the others."""
    count = int(sum(own))
    first = np.concatenate(
        [np.repeat(np.arange(3), own), np.repeat(np.arange(3), (np.array(others) * 2_000).round().astype(int))]
    )
    codes = {"A": first, "B": (first + np.arange(first.size) % 2) % 3}
    lent = np.arange(first.size) >= count
    weights = np.where(lent, 300 / 2_000, 1.0)
    return {n: c.astype(np.uint8) for n, c in codes.items()}, weights, lent


def made_like(own, others):
    codes, weights, lent = borrowing(own, others)
    columns = {n: Categorical(levels=("0", "1", "2")) for n in "AB"}
    problem = reweighted(Schema(columns), codes, weights / weights.sum(), lent, weights.sum())
    (found,) = tilt([problem])
    return np.bincount(codes["A"][lent], found.weights, 3)


def test_borrowed_rows_take_the_shares_of_a_stratum_that_differs_and_keep_theirs_where_chance_explains_it():
    others = [0.6, 0.3, 0.1]
    assert made_like([100, 400, 500], others) == pytest.approx([0.1, 0.4, 0.5], abs=0.03)
    assert made_like([63, 27, 10], others) == pytest.approx(others, abs=0.02)
    few = made_like([0, 1, 4], others)  # five people say little
    assert 0.1 < few[2] < 0.6


def test_a_column_in_which_all_rows_have_one_level_is_left_alone():
    codes, weights, lent = borrowing([10, 0, 0], [1.0, 0.0, 0.0])
    columns = {n: Categorical(levels=("0", "1", "2")) for n in "AB"}
    problem = reweighted(Schema(columns), codes, weights / weights.sum() * (1 + 1e-15), lent, weights.sum())
    assert len(problem.aims) == 1  # B alone


def test_without_rows_of_its_own_a_stratum_takes_what_it_borrows_as_it_is():
    codes, weights, lent = borrowing([0, 0, 0], [0.6, 0.3, 0.1])
    columns = {n: Categorical(levels=("0", "1", "2")) for n in "AB"}
    assert reweighted(Schema(columns), codes, weights / weights.sum(), lent, weights.sum()) is None


def test_a_learner_makes_borrowed_rows_alike_once():
    rows = last_year(1_000).rows(SCHEMA)
    stratum = Stratum.of({"G": "1"})
    inside = within(SCHEMA, (stratum,))
    prior = rows.within(stratum, inside)
    at = TiltedLearner.of(Public(inside, 500, prior=prior), settled=500.0)
    asked = []

    def run(steps):
        answer = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration:
                return
            assert isinstance(step, Work)
            asked.append(step.problem)
            answer = step.solver.solve([step.problem])[0]

    before = at.base.copy()
    run(at.fit())
    assert len(asked) == 2  # the borrowed rows, and the tables
    assert at.base.sum() == pytest.approx(1)
    assert at.base[prior.lent].sum() == pytest.approx(before[prior.lent].sum())
    assert at.base[~prior.lent] == pytest.approx(before[~prior.lent])
    assert not np.allclose(at.base, before)
    run(at.fit())
    assert len(asked) == 3


def model():
    rng = np.random.default_rng(2)
    codes = {n: rng.integers(0, SCHEMA.size(n), 200).astype(np.uint8) for n in SCHEMA.names}
    weights = rng.random(200)
    return TiltedRows(SCHEMA, codes, weights / weights.sum(), 50.0, {"A": 0.25})


def test_masses_marginals_and_conditions_are_sums_of_weights():
    made = model()
    joint = made.marginal(("B", "A"))
    assert joint.sum() == pytest.approx(1)
    assert made.mass({"A": frozenset({1}), "B": frozenset({0, 2})}) == pytest.approx(joint[[0, 2], 1].sum())
    rows = made.sample(300, np.random.default_rng(0), {"A": frozenset({1})})
    assert (rows["A"] == 1).all()
    with pytest.raises(MechanismError, match="its mass"):
        made.sample(1, np.random.default_rng(0), {"A": frozenset()})


def test_given_levels_that_no_row_has_all_rows_get_them():
    made = model()
    made = replace(
        made, weights=np.where(made.codes["G"] == 1, 0.0, made.weights / made.weights[made.codes["G"] == 0].sum())
    )
    inside = made.conditioned(SCHEMA.without(["G"]), {"G": [1]})
    assert inside.weights.sum() == pytest.approx(1)
    assert inside.oneway("A") == pytest.approx(made.oneway("A"))


DAMAGE = {
    "weights that do not add up": ("weights", lambda a: a * 2),
    "a weight below zero": ("weights", lambda a: np.concatenate([[-a[0]], a[1:]])),
    "a level that there is not": ("column A", lambda a: np.full_like(a, 3)),
    "levels of another length": ("column B", lambda a: a[1:]),
    "levels that are no whole numbers": ("column C", lambda a: a.astype(float)),
}


def test_a_stored_model_is_the_same_again():
    made = model()
    again = TiltedRows.from_state(SCHEMA, made.state())
    assert again.off == made.off
    assert (again.weights == made.weights).all()
    assert (
        again.sample(50, np.random.default_rng(3))["B"].tolist()
        == made.sample(50, np.random.default_rng(3))["B"].tolist()
    )


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_model_is_refused(case):
    name, spoil = DAMAGE[case]
    state = model().state()
    with pytest.raises(ReleaseError, match="damaged"):
        TiltedRows.from_state(SCHEMA, State(state.facts, {**state.arrays, name: spoil(state.arrays[name])}))


def arbiter(own=None):
    """Between the rows of `learner` and a model of the tables that the function `own` gives."""
    own = SimpleNamespace(tables=[], marginals=own, model=None)
    return Arbiter(schema=SCHEMA, settled=1_000.0, own=own, tilted=learner())


def judged(at, shares, off, sigma, times=1):
    """A table of A and B whose answers are `off` records from what the prior's rows foretold, in two cells."""
    values = at.total * shares
    values.flat[0] += off
    values.flat[1] -= off
    for _ in range(times):
        at.judge([MeasuredTable(("A", "B"), values, sigma)], [shares])


SHARES = np.full((3, 4), 1 / 12)


def right(at):
    """Squared error of a right prior in a table of SHARES: two samples of one population."""
    return at.total**2 * (1 - 1 / 12) * (1 / at.total + 1 / at.tilted.people)


def test_the_error_of_a_prior_is_what_noise_does_not_explain():
    at = arbiter()
    assert at.error == 1
    sigma, off = 2.0, 30.0
    judged(at, SHARES, off, sigma)
    beyond = (2 * off**2 - 12 * sigma**2) / right(at)
    weight = 1 / (1 + 24 * (sigma**2 / right(at)) ** 2)
    past = ASSUMED * MEMORY**weight
    assert at.error == pytest.approx(((past + weight * np.sqrt(beyond)) / (past + weight)) ** 2)
    column = arbiter()
    column.judge([MeasuredTable(("C",), np.array([530, 470]), 0.01)], [np.array([0.5, 0.5])])
    again = arbiter()
    again.judge([MeasuredTable(("C", "G"), np.array([[530], [470]]), 0.01)], [np.array([[0.5], [0.5]])])
    assert (np.sqrt(column.error) - 1) / (np.sqrt(again.error) - 1) == pytest.approx(
        COLUMN * (ASSUMED * MEMORY + 1) / (ASSUMED * MEMORY**COLUMN + COLUMN), rel=1e-3
    )


def test_the_error_is_unbiased_under_noise():
    rng, at = np.random.default_rng(0), arbiter()
    sigma = 30.0
    for _ in range(400):
        answers = at.total * SHARES + rng.normal(0, sigma, SHARES.shape)
        at.judge([MeasuredTable(("A", "B"), answers, sigma)], [SHARES])
    assert at.error < 0.2  # exactly right but for the noise, which is six times a right prior's error


def test_a_table_that_is_mostly_noise_makes_nothing_forgotten():
    at = arbiter()
    judged(at, SHARES, 200.0, 1.0, 5)
    before = at.error
    assert before > 20
    judged(at, SHARES, 0.0, 2_000.0, 200)
    assert at.error == pytest.approx(before, rel=0.1)
    judged(at, SHARES, 5.0, 1.0, 30)
    assert at.error < 0.05 * before  # what was long ago counts little


def test_the_share_of_the_own_model_is_the_ratio_of_the_rows_error_to_the_distance_of_both():
    at = arbiter(lambda cliques: [np.full(SCHEMA.shape(c), 1 / SCHEMA.cells(c)) for c in cliques])
    cliques = list(itertools.combinations(SCHEMA.names, 3))
    roots = [
        np.sqrt(((p - q) ** 2).sum() / (p * (1 - p)).sum())
        for p, q in zip(at.tilted.marginals(cliques), at.own.marginals(cliques), strict=True)
    ]
    unit = 1 / at.total + 1 / at.tilted.people
    assert at.tilted.surviving == pytest.approx(1)
    assert at.kept == pytest.approx((1 - SHARED / at.total / unit) * unit / np.mean(roots) ** 2)
    assert 0 < at.kept < 0.5
    at.error = 0.0
    assert at.kept == pytest.approx((LEAST - SHARED / at.total / unit) * unit / np.mean(roots) ** 2)
    at.error = 1e6
    assert at.kept > 0.99
    assert at.model is at.own.model


def test_rows_that_were_reweighted_far_get_a_small_share():
    at = arbiter(lambda cliques: [np.full(SCHEMA.shape(c), 1 / SCHEMA.cells(c)) for c in cliques])
    before = at.kept
    at.tilted.weights = np.where(np.arange(at.tilted.base.size) < 20, 1 / 20, 0.0)
    at.tilted._telling = None
    assert at.tilted.surviving == pytest.approx(20 * float(at.tilted.base @ at.tilted.base))
    assert at.kept > before


def uniform(schema):
    return lambda cliques: [np.full(schema.shape(c), 1 / schema.cells(c)) for c in cliques]


def test_a_stratum_keeps_no_more_of_its_own_model_than_everybody_does():
    public = Public(SCHEMA, 2_000, prior=last_year(1_000).rows(SCHEMA))
    inside = public.within(Stratum.of({"G": "1"}), 0.1)
    everybody, own = (
        SimpleNamespace(schema=s, size=n, settled=None, tables=[], published=(), marginals=uniform(s), model=None)
        for s, n in ((SCHEMA, 2_000), (inside.schema, 200))
    )
    everybody.stratum = lambda *_: (yield from ()) or own
    at = arbitrated(everybody, public)
    at.error = 3.0
    stratum = done(at.stratum(inside, 20.0))
    assert (stratum.own, stratum.most) == (own, at.kept)
    assert (at.shared, stratum.shared, arbitrated(own, inside).shared) == (SHARED, SHARED_IN_STRATA, SHARED_IN_STRATA)
    assert stratum.tables is own.tables
    assert stratum.error == pytest.approx(1 + 2 * at._right / stratum._right)
    assert 1 < stratum.error < 3
    stratum.error = 1e6
    assert stratum.kept == at.kept < 1
    at.error = 1e6  # everybody has left the prior
    assert done(at.stratum(inside, 20.0)) is own


def test_the_share_grows_without_a_jump_and_is_never_all():
    ratios = np.linspace(0, 50, 2_001)
    shares = np.array([share(ratio) for ratio in ratios])
    assert (np.diff(shares) > 0).all()
    assert np.diff(shares).max() <= 0.0251
    assert shares[0] == 0
    assert 0.99 < shares[-1] < 1


def test_rounds_go_by_the_own_model_alone():
    at = arbiter(lambda cliques: [f"own {c}" for c in cliques])
    at.own.fitting, at.own.expected = dict, list
    at.tilted = None
    assert at.marginals([("A",)]) == ["own ('A',)"]
    assert at.fitting({("A",): 1.0}) == {("A",): 1.0}
    assert at.expected([("A",)]) == [("A",)]


def blend(kept=0.25):
    own = TiltedRows(SCHEMA, {name: np.zeros(1, np.uint8) for name in SCHEMA.names}, np.ones(1), 50.0)
    return Blended(SCHEMA, own, model(), kept)


def test_a_blend_is_both_models_each_with_its_share():
    made = blend()
    apart = 0.25 * made.own.marginal(("A", "C")) + 0.75 * made.tilted.marginal(("A", "C"))
    assert made.marginal(("A", "C")) == pytest.approx(apart)
    where = {"A": frozenset({0}), "C": frozenset({0, 1})}
    assert made.mass(where) == pytest.approx(float(apart[0].sum()))
    assert made.made == pytest.approx(0.25)
    rows = made.sample(400, np.random.default_rng(1))
    own = np.all([rows[name] == 0 for name in SCHEMA.names], axis=0)
    assert own.sum() >= 100
    assert 40 < own[:200].sum() < 160  # in no order
    assert (made.sample(50, np.random.default_rng(1), {"A": frozenset({1})})["A"] == 1).all()
    assert all(codes.size == 0 for codes in made.sample(0, np.random.default_rng(1)).values())
    with pytest.raises(MechanismError, match="mass under the model is 0"):
        made.sample(1, np.random.default_rng(1), {"A": frozenset()})


def test_a_condition_changes_the_shares_of_a_blend():
    made, inside = blend(), within(SCHEMA, (Stratum.of({"A": "1"}),))
    some = made.conditioned(inside, {"A": [1]})
    assert isinstance(some, TiltedRows)  # the own model of this blend has no such row
    first = made.conditioned(within(SCHEMA, (Stratum.of({"A": "0"}),)), {"A": [0]})
    assert first.kept == pytest.approx(0.25 / made.mass({"A": frozenset({0})}))


def test_a_blend_with_next_to_nothing_of_one_model_is_the_other():
    own, rows = blend().own, blend().tilted
    assert of(SCHEMA, own, rows, 0.01) is rows
    assert of(SCHEMA, own, rows, 0.99) is own
    assert of(SCHEMA, own, rows, 0.5).kept == 0.5


def test_a_stored_blend_is_the_same_and_a_damaged_one_is_refused():
    made = blend()
    state = State(json.loads(json.dumps(made.state().facts)), made.state().arrays)
    # the own model here is of rows too: any kind with tables may be
    again = Blended.from_state(SCHEMA, state)
    assert again.marginal(("A", "B")) == pytest.approx(made.marginal(("A", "B")))
    assert (again.kept, again.off, again.total) == (made.kept, made.off, made.total)
    parts = state.facts["parts"]
    for facts in (
        {"kept": 1.5, "parts": parts},
        {"kept": float("nan"), "parts": parts},
        {"kept": 0.5, "parts": [parts[0], {**parts[1], "kind": "graphical"}]},
        {"kept": 0.5, "parts": [{"kind": "blended", "facts": {}}, parts[1]]},
        {"kept": 0.5, "parts": [{"kind": "estimate", "facts": {}}, parts[1]]},
    ):
        with pytest.raises(ReleaseError):
            Blended.from_state(SCHEMA, State(facts, state.arrays))


def lent(at, n=400):
    rng = np.random.default_rng(3)
    at.lend({name: rng.integers(0, SCHEMA.size(name), n) for name in SCHEMA.names})
    return at


def test_rows_that_are_lent_weigh_little_until_the_prior_was_wrong():
    at = lent(learner())
    at.begin()
    assert at.borrowed == pytest.approx(LEAST_LENT)
    assert at.model.codes["A"].dtype == at.codes["A"].dtype
    at.tables.append(MeasuredTable(("A",), np.array([200, 200, 1_600]), 1.0))
    at.tables.append(MeasuredTable(("C",), np.rint(2_000 * at.marginals([("C",)])[0]).astype(np.int64), 1.0))
    lent(at).begin()
    assert at.wrong == 0.5
    assert at.borrowed == pytest.approx(0.5 * MOST_LENT)
    at.lend(dict.fromkeys(SCHEMA.names, np.zeros(0, dtype=np.int64)))  # a model whose rows all break a rule
    assert at.model.weights.size == at.base.size + 400


def test_a_tilt_takes_lent_rows_where_the_prior_has_none():
    at = learner()
    only = at.codes["B"] != 1
    at.codes, at.base = {n: c[only] for n, c in at.codes.items()}, at.base[only] / at.base[only].sum()
    at.tables.append(MeasuredTable(("B",), np.array([100, 1_500, 300, 100]), 5.0))
    lent(at)
    done(at.fit(last=True))
    assert at.model.oneway("B") == pytest.approx([0.05, 0.75, 0.15, 0.05], abs=0.01)
    assert at.borrowed > 0.7


def test_a_stratum_has_everybody_beside_its_own_the_more_the_more_the_prior_was_wrong():
    for values, wrong in ((None, 0.0), (np.array([200, 200, 1_600]), 1.0)):
        public = Public(SCHEMA, 2_000, prior=last_year(1_000).rows(SCHEMA))
        at = TiltedLearner.of(public, settled=2_000.0)
        right = np.rint(2_000 * at.marginals([("A",)])[0]).astype(np.int64)
        at.tables.append(MeasuredTable(("A",), right if values is None else values, 1.0))
        done(at.fit(last=True))
        inside = done(at.stratum(public.within(Stratum.of({"G": "1"}), 0.1), 20.0))
        assert at.wrong == wrong
        assert inside.borrowed == pytest.approx(min(wrong, MOST_OF_EVERYBODY) or LEAST_LENT)
        assert (inside.weights > 0).all()  # so that paid answers can still raise any of them
        assert inside.model.made == pytest.approx(inside.borrowed)
        assert inside.worth == (at.trusted[0] if wrong else np.inf)
        assert inside.model.weights.sum() == pytest.approx(1)


def done(program):
    """Result of a program that asks for nothing but work."""
    try:
        question = next(program)
        while True:
            question = program.send(question.solver.solve([question.problem])[0])
    except StopIteration as stop:
        return stop.value


def test_fits_are_handed_out_as_work_and_nothing_is_asked():
    at = learner()
    at.tables.append(MeasuredTable(("A",), np.array([900, 700, 400]), 5.0))
    program = at.fit()
    question = next(program)
    assert isinstance(question, Work)
    with pytest.raises(StopIteration):
        program.send(question.solver.solve([question.problem])[0])
    assert at.model.oneway("A") == pytest.approx([0.45, 0.35, 0.2], abs=0.03)


def test_a_stratum_leaves_published_tables_that_answers_about_everybody_contradict():
    public = Public(SCHEMA, 2_000, prior=last_year(1_000).rows(SCHEMA))
    tables = (Known(("A",), np.array([0.98, 0.01, 0.01])), Known(("B",), np.full(4, 0.25)))
    at = TiltedLearner.of(public, settled=2_000.0)
    at.published = tables
    at.tables += [MeasuredTable(("A",), np.array([20, 20, 1_960]), 1.0), MeasuredTable(("B",), np.full(4, 500), 1.0)]
    within = replace(public.within(Stratum.of({"G": "1"}), 0.1), known=tables)
    assert [known.clique for known in done(at.stratum(within, 20.0)).published] == [("B",)]
