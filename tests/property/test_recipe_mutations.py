"""Recipes with a value exchanged for any other: a plan is made, or refused with an error of ours."""

import contextlib
import re
import shutil
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from helpers.small import RECIPE, write_recipe
from stratsynth.cli.work import plan_recipe
from stratsynth.errors import StratsynthError

VALUES = (
    "0",
    "-1",
    "1",
    "2",
    "1e-320",
    "1e308",
    "1e30",
    "-0.0",
    "nan",
    "inf",
    "2147483648",
    "9223372036854775807",
    '""',
    '"SEX"',
    '"share"',
    '"\\u0000"',
    '"people.csv"',
    '"shares.csv"',
    '"schema.toml"',
    '"/dev/null"',
    '"."',
    '"mst"',
    '"aim"',
    '"gem"',
    '"pooled"',
    '"private"',
    '"holdout"',
    '"raked"',
    '"TODO"',
    "true",
    "false",
    "[]",
    "{}",
    "[[]]",
    '["SEX"]',
    '["SEX", "SEX"]',
    '["AGE", "WORK"]',
    "[1]",
    '{ a = ["1"] }',
    "1979-05-27",
    "00:00:00",
    '"x" * 3',
)
EXTRA = (
    "workload",
    "rounds",
    "share",
    "prior",
    "small",
    "threshold",
    "merge",
    "bands",
    "hierarchy",
    "neighbours",
    "public",
    "confidential",
    "rare",
    "iterations",
    "engine",
    "components",
    "margins",
    "start",
    "strata",
    "ledger_epsilon",
)
LINES = [i for i, line in enumerate(RECIPE.splitlines()) if "=" in line]
SECTIONS = [i for i, line in enumerate(RECIPE.splitlines()) if line.startswith("[")]


@pytest.fixture(scope="module")
def folder():
    made = Path(tempfile.mkdtemp())
    write_recipe(made)
    yield made
    shutil.rmtree(made)


changes = st.one_of(
    st.tuples(st.just("value"), st.sampled_from(LINES), st.sampled_from(VALUES)),
    st.tuples(st.just("gone"), st.sampled_from(LINES + SECTIONS), st.none()),
    st.tuples(st.sampled_from(EXTRA), st.sampled_from(SECTIONS), st.sampled_from(VALUES)),
)


@example([("value", 1, '"\\u0000"')])
@given(st.lists(changes, min_size=1, max_size=3))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_mutated_recipe_is_planned_or_refused_with_a_typed_error(folder, mutations):
    lines = RECIPE.splitlines()
    for what, at, value in mutations:
        if what == "value":
            lines[at] = re.sub("=.*", lambda _, v=value: f"= {v}", lines[at])
        elif what == "gone":
            lines[at] = ""
        else:
            lines[at] += f"\n{what} = {value}"
    recipe = folder / "mutated.toml"
    recipe.write_text("\n".join(lines), encoding="utf-8")
    start = time.process_time()
    with contextlib.suppress(StratsynthError):
        plan_recipe(recipe, None)
    assert time.process_time() - start < 20
