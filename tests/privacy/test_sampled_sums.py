"""A step on a sample is paid as one Gaussian query, however many blocks its sum has."""

from fractions import Fraction

import numpy as np
import pytest

from stratsynth.accounting.budget import Currency, Neighbours
from stratsynth.driver.rows import StoredRows
from stratsynth.noise import SeededEntropy
from stratsynth.questions import Columns, Design, Moments, Total
from stratsynth.questions.base import Setting
from stratsynth.questions.reading import Exact
from stratsynth.questions.sums.base import GRID
from stratsynth.schema import Categorical, Numeric, Schema
from stratsynth.schema.rows import CodedRows

SCHEMA = Schema({"SEX": Categorical(levels=("1", "2")), "PAY": Numeric(lower=0, upper=10)})
SETTING = Setting(SCHEMA, Neighbours.ADD_REMOVE)
QUESTION = Total(Moments(Design(("SEX",)), "PAY", clip=1.0), 1.5, Currency.SAMPLED, rate=0.1)
BLOCKS = QUESTION.query.blocks(SCHEMA)


def test_a_row_that_fills_every_block_costs_one_step():
    """Each block moves by its clip at once: 1 / z^2 adds up over blocks, and may come to that of one query."""
    assert len(BLOCKS) > 1
    empty = Exact(sums=[[np.zeros(block.size, np.int64) for block in BLOCKS]])
    filled = Exact(sums=[[np.eye(1, block.size, dtype=np.int64)[0] * GRID for block in BLOCKS]])
    answer = QUESTION.answer(SETTING, empty, SeededEntropy(1), {})
    cost = QUESTION.cost(SETTING, empty, filled, answer)
    (charge,) = QUESTION.charges(SCHEMA, (), Neighbours.ADD_REMOVE)
    assert cost <= Fraction(charge.amount)
    assert cost == pytest.approx(charge.amount, rel=1e-9)  # and no more noise than that


def test_the_noise_that_is_drawn_is_the_noise_that_is_stated():
    still = Exact(sums=[[np.zeros(block.size, np.int64) for block in BLOCKS]])
    entropy = SeededEntropy(2)
    answers = [QUESTION.answer(SETTING, still, entropy, {}) for _ in range(3000)]
    drawn = [[part.values[0] / part.sigma for part in answer] for answer in answers]
    assert np.mean(np.square(drawn), axis=0) == pytest.approx(np.ones(len(BLOCKS)), rel=0.15)


def test_each_row_takes_part_by_a_coin_of_its_own():
    """Amplification is claimed for Poisson samples: their sizes vary, and no row's presence says anything of others."""
    rows, rate, times = 40, 0.3, 3000
    numbers = {"PAY": np.full(rows, 10.0)}
    codes = {name: np.zeros(rows, np.uint8) for name in SCHEMA.names}
    query, entropy = Columns(("PAY",), (0.0,), (1.0,), clip=1.0), SeededEntropy(3)
    table = StoredRows([CodedRows(SCHEMA, codes, numbers, rows)])
    drawn = [table.sums([((), query, rate)], entropy)[0][0][0] / GRID for _ in range(times)]
    assert np.mean(drawn) == pytest.approx(rows * rate, rel=0.03)
    assert np.var(drawn) == pytest.approx(rows * rate * (1 - rate), rel=0.2)  # 0 for batches of one size
    assert table.sums([((), query, 1.0)], entropy)[0][0][0] == rows * GRID


def test_a_new_sample_is_drawn_for_every_step():
    assert len({tuple(one) for one in _samples(60)}) > 50


def _samples(times):
    rows, entropy = 30, SeededEntropy(4)
    # a sum of powers of 2 tells which rows took part
    numbers = {"PAY": np.array([10.0 * 2.0 ** -(i + 1) for i in range(rows)])}
    table = StoredRows([CodedRows(SCHEMA, {name: np.zeros(rows, np.uint8) for name in SCHEMA.names}, numbers, rows)])
    query = Columns(("PAY",), (0.0,), (1.0,), clip=10.0)
    return [table.sums([((), query, 0.5)], entropy)[0][0] for _ in range(times)]
