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


def test_rows_that_are_the_real_ones_are_without_error_in_all_three_ways(monkeypatch):
    rng = np.random.default_rng(0)
    sexes, states = rng.choice(["1", "2"], 600), rng.choice(["1", "2"], 600)
    frame = pd.DataFrame({"SEX": sexes, "MAR": states, "AGEP": rng.integers(3, 63, 600)})
    other = frame.assign(AGEP=rng.integers(3, 63, 600))
    ways = []

    def drawn(_: object, schema: Schema, *__: object) -> pd.DataFrame:
        ways.append((schema.size("AGEP"), schema.column("AGEP").shape))
        return frame if schema.size("AGEP") == 60 else other

    monkeypatch.setattr(ordered, "_drawn", drawn)
    figures = ordered._compared("made up", frame, SCHEMA, "mst", 1.0, 1)
    assert ways == [(60, "even"), (13, "even"), (60, "smooth")]
    assert [figure.name.split(":")[0] for figure in figures[::3]] == [
        f"made up, mst, epsilon 1, {way}" for way in ordered.WAYS
    ]
    assert [figure.value for figure in figures[:3]] == [figure.value for figure in figures[6:]] == [1000, 0, 0]
    assert figures[3].value < 1000
    assert min(figures[4].value, figures[5].value) > 0
