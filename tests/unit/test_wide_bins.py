"""Warnings of bins whose law decides means, by public facts alone."""

from dataclasses import replace

import pytest

from stratsynth import Budget, Numeric, Schema, Temporal
from stratsynth.planning import plan
from stratsynth.schema.wide_bins import wide_bins

INCOME = Numeric(
    lower=-20_000, upper=4_000_000, edges=(-20_000, 0, 10_000, 300_000, 4_000_001), spikes=(0,), integer=True
)


def test_the_plan_names_an_outer_bin_that_its_shape_decides():
    schema = Schema({"PINCP": INCOME, "AGEP": Numeric(lower=0, upper=99, integer=True)})
    (said,) = plan("independent", schema, Budget(1, 1e-9), declared_size=10_000).warnings
    assert "PINCP: numbers of its bin 300000-4000000 are drawn by the shape 'even', with mean 2.15e+06" in said
    assert 'shape = "pareto"' in said


@pytest.mark.parametrize(
    ("column", "number"),
    [
        (INCOME, 1),
        (replace(INCOME, shape="log", transform_unit=1_000), 1),
        (replace(INCOME, shape="pareto"), 0),
        (replace(INCOME, edges=(-20_000, 0, 10_000, 300_000, 1_000_000, 4_000_001)), 0),
        (replace(INCOME, lower=-4_000_000, edges=(-4_000_000, -300_000, 0, 300_000, 1_000_000, 4_000_001)), 1),
        (Numeric(lower=0, upper=10_000_000, bins=20), 1),
        (Numeric(lower=0, upper=10_000_000, bins=20, spacing="log", transform_unit=1_000), 0),
        (Numeric(lower=0, upper=100, bins=20), 0),
        (Numeric(lower=0, upper=1, bins=1), 0),
        (Temporal(kind="date", lower="1900-01-01", upper="2020-01-01", bins=2), 0),
        (Temporal(kind="duration", lower=1, upper=1_000_000, bins=2), 0),
    ],
)
def test_only_bins_too_wide_for_means_are_named(column, number):
    assert len(wide_bins(Schema({"x": column}))) == number
