"""The bench of ages in single years: three ways of counting them, scored on the same tables."""

import numpy as np
import pandas as pd

from benches import ordered
from stratsynth.schema import Categorical, Numeric, Schema

AGES = Numeric(lower=3, upper=62, integer=True, shape="smooth")
SCHEMA = Schema({"SEX": Categorical(levels=("1", "2")), "MAR": Categorical(levels=("1", "2")), "AGEP": AGES})


def test_bands_of_five_begin_at_multiples_of_five():
    column = ordered._in_fives(AGES)
    assert column.all_levels[:2] == ("3-4", "5-9")
    assert column.all_levels[-1] == "60-62"
    assert column.shape == "even"


def test_three_ways_have_a_score_and_two_errors_each():
    rng = np.random.default_rng(0)
    sexes, states = rng.choice(["1", "2"], 600), rng.choice(["1", "2"], 600)
    frame = pd.DataFrame({"SEX": sexes, "MAR": states, "AGEP": rng.integers(3, 63, 600)})
    figures = ordered._compared("made up", frame, SCHEMA, "mst", 1.0, 1)
    assert [figure.unit for figure in figures] == ["of 1000", "of 2", "of 2"] * 3
    assert all(0 <= figure.value <= 1000 for figure in figures)
    assert [figure.name.split(":")[0] for figure in figures[::3]] == [
        f"made up, mst, epsilon 1, {way}" for way in ordered.WAYS
    ]
