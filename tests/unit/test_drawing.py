"""Rows drawn a column at a time: each row by the odds, and tables of rows near the model's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from stratsynth.adapters.engine.drawing import Draws, _strides

ODDS = np.array([[0.5, 0.3, 0.15, 0.05], [0.02, 0.02, 0.48, 0.48], [0.0, 1.0, 0.0, 3.0]])


@pytest.mark.parametrize("n", [1, 7, 40])
def test_every_row_follows_the_odds_of_its_line(n):
    """Over seeds each row alone has the odds' frequencies: 2,000 draws, false alarms 1e-5 for each row tested."""
    times, given = 2_000, np.arange(n) % 3
    first, second = np.empty((times, n), dtype=int), np.empty((times, n), dtype=int)
    for seed in range(times):
        draws = Draws(n, np.random.default_rng(seed))
        first[seed], second[seed] = draws.draw(ODDS, given), draws.draw(ODDS[:1])
    for row in {0, n // 2, n - 1}:
        for codes, odds in ((first[:, row], ODDS[given[row]]), (second[:, row], ODDS[0])):
            due = times * odds / odds.sum()
            seen = np.bincount(codes, minlength=4)
            assert (seen[due == 0] == 0).all()
            assert stats.chisquare(seen[due > 0], due[due > 0]).pvalue > 1e-5


def test_columns_of_one_row_are_independent_given_the_line():
    """Pairs of two columns of one row over seeds: none is coupled to an earlier one by the order of rows."""
    pairs = np.zeros((4, 4))
    for seed in range(4_000):
        draws = Draws(9, np.random.default_rng(seed))
        one, two = draws.draw(ODDS[:1]), draws.draw(ODDS[:1])
        pairs[one[4], two[4]] += 1
    assert stats.chi2_contingency(pairs, correction=False).pvalue > 1e-5


@pytest.mark.parametrize("n", [100, 1_001, 20_000])
def test_a_level_s_count_is_within_two_records_of_its_expectation(n):
    given = np.random.default_rng(0).integers(0, 3, n)
    draws = Draws(n, np.random.default_rng(1))
    for _ in range(4):
        drawn = draws.draw(ODDS, given)
        for line in range(3):
            due = ODDS[line] / ODDS[line].sum() * (given == line).sum()
            assert (np.abs(np.bincount(drawn[given == line], minlength=4) - due) < 2).all()


def test_tables_of_columns_drawn_apart_are_nearer_than_random_order_has_them():
    """Four independent columns: pairs and triples of rows are nearer to the product than by steps in random order."""
    n, odds = 2_000, ODDS[0]

    def distance(seed, shuffled, number):
        rng = np.random.default_rng(seed)
        draws, columns = Draws(n, rng), []
        for _ in range(4):
            if shuffled:
                draws = Draws(n, rng)
            columns.append(draws.draw(ODDS[:1]))
        cells = np.ravel_multi_index(columns[-number:], (4,) * number)
        due = odds
        for _ in range(number - 1):
            due = np.multiply.outer(due, odds)
        return np.abs(np.bincount(cells, minlength=due.size) / n - due.ravel()).sum()

    for number, most in ((2, 0.4), (3, 0.6)):
        near, far = (np.mean([distance(seed, kind, number) for seed in range(20)]) for kind in (False, True))
        assert near < most * far


def test_strides_go_through_every_step_once():
    sizes = np.arange(600)
    for m, stride in zip(sizes[1:], _strides(sizes)[1:], strict=True):
        steps = np.rint(np.arange(m) * stride * m).astype(int) % m
        assert len(set(steps.tolist())) == m
    far = _strides(sizes[20:])
    assert (np.abs(far - 0.618) < 0.2).all()
