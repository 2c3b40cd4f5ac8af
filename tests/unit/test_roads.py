"""Roads to a prediction: which stands for its kind, which is best, and what is beyond chance."""

import numpy as np
import pandas as pd
import pytest

from helpers import small
from stratsynth.evaluation.comparisons.roads import by_road, kind_of, roads, words
from stratsynth.evaluation.comparisons.roads_page import roads_section

GROUPS = (("everybody", None, 100), ("group", "a", 60), ("group", "b", 40))


def frame(means, seeds=5, score="accuracy", spread=0.001):
    """Roads (mechanism, stratification, model) and their scores for everybody and in two groups."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "mechanism": m,
            "stratification": s,
            "epsilon": 1.0,
            "seed": seed,
            "metric": f"{score}:{model}",
            "scope": scope,
            "GROUP": group,
            "group": group,
            "value": value + spread * rng.standard_normal(),
            "n": n,
            "status": "ok",
            "stamp": "PUBLIC DATA",
        }
        for (m, s, model), values in means.items()
        for (scope, group, n), value in zip(GROUPS, values, strict=True)
        for seed in range(1, seeds + 1)
    ]
    return pd.DataFrame(rows).astype(dict.fromkeys(("scope", "GROUP", "group", "status", "stamp"), "string"))


MEANS = {
    ("mst", "vanilla", "linear"): (0.70, 0.72, 0.67),
    ("mst", "vanilla", "forest"): (0.75, 0.80, 0.60),
    ("mst", "vanilla", "constant"): (0.99, 0.99, 0.99),
    ("mst", "GROUP", "forest"): (0.72, 0.72, 0.72),
    ("both", "GROUP", "forest"): (0.74, 0.74, 0.74),
    ("fermi", "direct", "direct"): (0.76, 0.78, 0.72),
}


def at(found, group):
    part = found[found["scope"].eq("everybody") if group is None else found["group"].eq(group).fillna(False)]
    return part.set_index("kind")


def test_each_kind_is_stood_for_by_the_road_that_serves_everybody_best():
    found = roads(frame(MEANS), ["GROUP"], {"both"})
    every = at(found, None)
    assert dict(every["road"]) == {
        "vanilla table": "forest on mst, vanilla",
        "stratified table": "forest on mst by GROUP",
        "pooled table": "forest on both by GROUP",
        "direct": "fermi, direct",
    }
    assert every["value"].to_dict() == pytest.approx(
        {"vanilla table": 0.75, "stratified table": 0.72, "pooled table": 0.74, "direct": 0.76}, abs=0.002
    )
    assert at(found, "b").loc["vanilla table", "value"] == pytest.approx(0.60, abs=0.002)  # the forest's, not linear's


def test_the_best_kind_differs_by_group_and_says_whom_it_beats():
    found = roads(frame(MEANS), ["GROUP"], {"both"})
    assert [at(found, g)["best"].iloc[0] for g in (None, "a", "b")] == ["direct", "vanilla table", "pooled table"]
    assert at(found, "a")["beaten"].iloc[0] == "stratified table, pooled table, direct"
    (line,) = words(found)
    assert line.startswith("Epsilon 1: for everybody the best road is fermi, direct (0.76")
    assert "pooled table in 1 (in 1 ahead of another beyond chance)" in line


@pytest.mark.parametrize(("seeds", "spread"), [(4, 0.001), (5, 0.2)])
def test_few_repetitions_and_chance_give_no_verdict(seeds, spread):
    found = roads(frame(MEANS, seeds, spread=spread), ["GROUP"], {"both"})
    assert set(found["beaten"]) == {""}
    assert "ahead of no other kind beyond chance" in words(found)[0]


def test_a_small_group_has_no_best_road():
    whole = frame(MEANS)
    found = roads(
        whole.assign(status=whole["status"].mask(whole["group"].eq("b").fillna(False), "small")), ["GROUP"], {"both"}
    )
    assert set(at(found, "b")["best"]) == {""}
    assert at(found, "a")["best"].iloc[0] == "vanilla table"
    assert "in the 1 group that is not small" in words(found)[0]


def test_of_errors_less_is_better():
    found = roads(frame(MEANS, score="mean_absolute_error"), ["GROUP"], {"both"})
    every = at(found, None)
    assert every["best"].iloc[0] == "vanilla table"
    assert every.loc["vanilla table", "road"] == "linear on mst, vanilla"


def test_one_kind_alone_is_no_question_and_baselines_are_no_roads():
    alone = {setting: value for setting, value in MEANS.items() if setting[1] == "vanilla"}
    base = frame({("(real rows)", "(baseline)", "forest"): (0.9, 0.9, 0.9)})
    assert roads(pd.concat([frame(alone), base]), ["GROUP"]).empty
    assert roads_section(frame(alone), roads(frame(alone), ["GROUP"]), ["GROUP"], (), small.SCHEMA) == []


def test_kinds_are_of_settings():
    settings = [("mst", "vanilla"), ("mst", "SEX"), ("both", "SEX"), ("fermi", "direct")]
    assert [kind_of(*setting, {"both"}) for setting in settings] == [
        "vanilla table",
        "stratified table",
        "pooled table",
        "direct",
    ]


def test_every_road_is_listed_with_the_group_it_serves_worst():
    rows = by_road(frame(MEANS), {"both"})
    assert [row["road"] for row in rows] == [
        "forest on mst, vanilla",
        "linear on mst, vanilla",
        "forest on mst by GROUP",
        "forest on both by GROUP",
        "fermi, direct",
    ]
    assert rows[0]["worst group"] == pytest.approx(0.60, abs=0.002)
