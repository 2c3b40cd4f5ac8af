"""Groups asked by themselves under `replace`: whoever changes group is seen by two of them, and both are paid for."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from stratsynth import Budget, Categorical, Numeric, Schema, Stratified, Weights, fit, open_table
from stratsynth.adapters import DPFermi, FairSGD
from stratsynth.adapters.predictors import GroupRegression
from stratsynth.errors import Unsupported

SCHEMA = Schema(
    {
        "SEX": Categorical(levels=("1", "2")),
        "AGE": Numeric(lower=0, upper=100, bins=5),
        "WORK": Categorical(levels=("no", "yes")),
    }
)
RNG = np.random.default_rng(3)
PEOPLE = pd.DataFrame(
    {"SEX": RNG.choice(["1", "2"], 900), "AGE": RNG.uniform(0, 100, 900), "WORK": RNG.choice(["no", "yes"], 900)}
)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize(
    ("mode", "objective", "accounting"),
    [
        ("DPNoSE", "maximum", "combined"),  # not with DPSE: one noise for all groups cannot be tailored
        *(
            (mode, objective, accounting)
            for mode, objective in (("DPNoSE", "maximum"), ("DPSE", "maximum"))
            for accounting in ("parallel", "paper")
        ),
        ("DPSE", "pooled", "parallel"),
    ],
)
def test_losses_of_groups_are_asked_within_the_budget(mode, objective, accounting, neighbours):
    how = GroupRegression(
        features=["AGE"],
        target="WORK",
        groups=["SEX"],
        model="logistic",
        mode=mode,
        objective=objective,
        accounting=accounting,
        iterations=3,
    )
    table = open_table(PEOPLE, schema=SCHEMA, declared_size=900, public=True)
    release = fit(how, table, Budget(epsilon=1, delta=1e-6, neighbours=neighbours))
    assert release.certificate["prices"][neighbours] <= 1
    if accounting == "parallel" and (mode, objective) == ("DPNoSE", "maximum"):
        assert release.certificate["prices"][neighbours] == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("kind", [partial(DPFermi, penalty=1.0), FairSGD])
def test_steps_on_samples_in_strata_are_refused_under_replace_with_the_remedy(kind):
    schema = Schema({**SCHEMA.columns, "GROUP": Categorical(levels=("a", "b"))})
    people = PEOPLE.assign(GROUP=np.where(PEOPLE.index % 2, "a", "b"))
    weights = Weights.public(pd.DataFrame({"GROUP": ["a", "b"], "share": [0.5, 0.5]}), citation="made up")
    how = Stratified(
        kind(features=["AGE"], target="WORK", groups=["SEX"], sampling=0.05), by=["GROUP"], weights=weights
    )
    table = open_table(people, schema=schema, declared_size=900, public=True)
    with pytest.raises(Unsupported, match=r'leave one stratum and enter another.* use neighbours = "add-remove"'):
        fit(how, table, Budget(epsilon=1, delta=1e-6, neighbours="replace"))
