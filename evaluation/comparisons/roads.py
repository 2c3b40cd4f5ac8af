"""INTERNAL. Roads to a prediction: a table and a model trained on it, or a private predictor without a table.

Four kinds of road cost the same budget: a vanilla, a stratified or a pooled table with a model trained on it, and a
predictor fitted directly. For each kind and epsilon, the road with the best score for everybody on the hold-out
represents its kind. Every two of these four are tested against each other in each group over repetitions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.evaluation.comparisons.paired import (
    BASELINE,
    COVERAGE,
    DIRECT,
    ENOUGH,
    VANILLA,
    better,
    holm,
    mean_interval,
    p_values,
    setting_name,
)
from stratsynth.evaluation.learning.learners import CONSTANT
from stratsynth.evaluation.tables import EVERYBODY, GROUP, OK
from stratsynth.report.numbers import listed, several

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

KINDS = ("vanilla table", "stratified table", "pooled table", "direct")
SCORES = ("accuracy", "mean_absolute_error")
"""Scores that roads are judged by: for classes, and for numbers."""


def roads(frame: pd.DataFrame, by: Sequence[str], pooled: Collection[str] = ()) -> pd.DataFrame:
    """Compare the kinds of road to a prediction: their scores for everybody and in each group, at each epsilon.

    A kind is `best` if its mean is, in groups that are not small. `beaten` are those whose paired difference from it is
    beyond chance, by Student's t with Holm's allowance for all pairs of kinds and epsilons, and of groups among
    themselves, over `ENOUGH` repetitions or more. Repetitions share the rows: tests are about noise, drawing and
    training, not about other people. The road of a kind was chosen on the same hold-out, which flatters kinds of many
    roads a little.

    Args:
        frame: Result of `compare`.
        by: Columns of its groups.
        pooled: Labels of the mechanisms that pool strata.

    Returns:
        A row for each epsilon, scope, group and kind: `road`, the mean over repetitions with its 95 % interval, the
        number of rows and repetitions, `best`, `beaten`. Empty if nothing is predicted, or by one kind alone.
    """
    import pandas as pd

    own = _own(frame, pooled)
    names = [
        "epsilon",
        "scope",
        *by,
        "group",
        "n",
        "metric",
        "kind",
        "road",
        "value",
        "low",
        "high",
        "repetitions",
        "status",
        "best",
        "beaten",
        "stamp",
    ]
    if own.empty or own["kind"].nunique() < 2:
        return pd.DataFrame(columns=names)
    own = _chosen(own)
    keys = ["epsilon", "scope", *by, "group"]
    heads, values = [], []
    for _, part in own.groupby(keys, sort=False, dropna=False):
        kinds = [kind for kind in KINDS if kind in set(part["kind"])]
        seeds = sorted(set(part["seed"]))
        table = part.pivot_table(index="kind", columns="seed", values="value", dropna=False)
        heads.append((part.iloc[0], kinds, {k: part[part["kind"] == k].iloc[0] for k in kinds}))
        values.append(table.reindex(index=kinds, columns=seeds).to_numpy(float))
    beaten: dict[int, set[tuple[str, str]]] = {}
    for scope in (EVERYBODY, GROUP):  # Holm's allowance is for tests of one scope, as in `paired`
        places = [i for i, (head, _, _) in enumerate(heads) if head["scope"] == scope]
        beaten |= zip(places, _beaten([heads[i][1] for i in places], [values[i] for i in places]), strict=True)
    sign = better(str(own["metric"].iloc[0]))
    rows = []
    for at, ((head, kinds, each), scores) in enumerate(zip(heads, values, strict=True)):
        mean, low, high = mean_interval(scores)
        known = np.isfinite(mean)
        enough = known.any() and all(one["status"] == OK for one in each.values())
        best = kinds[int(np.argmax(np.where(known, sign * mean, -np.inf)))] if enough else ""
        losers = ", ".join(k for k in kinds if (best, k) in beaten[at])
        rows += [
            {
                **{key: head[key] for key in keys},
                "n": int(head["n"]),
                "metric": own["metric"].iloc[0],
                "kind": kind,
                "road": each[kind]["road"],
                "value": mean[i],
                "low": low[i],
                "high": high[i],
                "repetitions": int(np.isfinite(scores[i]).sum()),
                "status": str(each[kind]["status"]),
                "best": best,
                "beaten": losers,
                "stamp": str(head["stamp"]),
            }
            for i, kind in enumerate(kinds)
        ]
    return pd.DataFrame(rows, columns=names)


def kind_of(mechanism: str, stratification: str, pooled: Collection[str]) -> str:
    """Kind of road, one of `KINDS`, of a mechanism's label and stratification; `pooled` are labels that pool strata."""
    if stratification in (VANILLA, DIRECT):
        return KINDS[0] if stratification == VANILLA else KINDS[3]
    return KINDS[2] if mechanism in pooled else KINDS[1]


def _own(frame: pd.DataFrame, pooled: Collection[str]) -> pd.DataFrame:
    """Rows of a comparison's tidy frame with the score of each road to a prediction, with columns `kind` and `road`.

    No baselines or constants; `pooled` are labels of mechanisms that pool strata.
    """
    frame = frame.reset_index(drop=True)
    metric, _, model = (frame["metric"].astype(str).str.partition(":")[i] for i in range(3))
    score = next((name for name in SCORES if (metric.eq(name) & model.ne("")).any()), SCORES[0])
    wanted = metric.eq(score) & model.ne("") & model.ne(CONSTANT) & frame["stratification"].ne(BASELINE)
    own = frame[wanted & frame["scope"].isin([EVERYBODY, GROUP])]
    settings = list(zip(own["mechanism"].astype(str), own["stratification"].astype(str), strict=True))
    said = [
        setting_name(*setting) if name == DIRECT else f"{name} on {setting_name(*setting)}"
        for setting, name in zip(settings, model[own.index], strict=True)
    ]
    return own.assign(kind=[kind_of(*setting, pooled) for setting in settings], road=said, metric=score)


def _chosen(own: pd.DataFrame) -> pd.DataFrame:
    """Rows of the frame `own` (of `_own`) of one road a kind and epsilon: that with everybody's best mean."""
    sign = better(str(own["metric"].iloc[0]))
    every = own[own["scope"] == EVERYBODY].groupby(["epsilon", "kind", "road"], sort=False)["value"].mean() * sign
    chosen = every.dropna().reset_index().sort_values("value", ascending=False, kind="stable")
    return own.merge(chosen.drop_duplicates(["epsilon", "kind"])[["epsilon", "kind", "road"]])


def _beaten(kinds: Sequence[Sequence[str]], values: Sequence[NDArray[np.float64]]) -> list[set[tuple[str, str]]]:
    """List of sets of ordered pairs of kinds that differ beyond chance, in both orders: a set an epsilon and group.

    For each of these `kinds` has a list of the kinds' names, `values` an array (kinds, repetitions) of scores.
    """
    tests = [
        (at, pair, p_values(scores[pair[0]] - scores[pair[1]]), np.isfinite(scores[list(pair)]).all(axis=0).sum())
        for at, scores in enumerate(values)
        for pair in combinations(range(len(kinds[at])), 2)
    ]
    found: list[set[tuple[str, str]]] = [set() for _ in values]
    for (at, (one, two), _, times), p in zip(tests, holm(np.array([float(t[2]) for t in tests])), strict=True):
        if times >= ENOUGH and p < 1 - COVERAGE:
            found[at] |= {(kinds[at][one], kinds[at][two]), (kinds[at][two], kinds[at][one])}
    return found


def words(found: pd.DataFrame) -> list[str]:
    """List of lines, one an epsilon of the frame `found` by `roads`: everybody's best road, best kinds by group."""
    lines = []
    for epsilon in sorted(set(found["epsilon"])):
        part = found[found["epsilon"] == epsilon]
        every = part[part["scope"] == EVERYBODY].set_index("kind")
        best = str(every["best"].iloc[0])
        if not best:
            continue
        losers = [kind for kind in str(every["beaten"].iloc[0]).split(", ") if kind]
        beyond = f"beyond chance ahead of {listed(losers)}" if losers else "ahead of no other kind beyond chance"
        groups = part[(part["scope"] == GROUP) & (part["status"] == OK)].drop_duplicates("group")
        served = groups["best"].value_counts()
        sure = groups[groups["beaten"] != ""]["best"].value_counts()
        whom = "; ".join(
            f"{kind} in {served[kind]}" + (f" (in {sure[kind]} ahead of another beyond chance)" if kind in sure else "")
            for kind in KINDS
            if kind in served
        )
        road, value = str(every.loc[best, "road"]), float(every["value"].to_dict()[best])
        lines.append(
            f"Epsilon {epsilon:g}: for everybody the best road is {road} ({value:.3f}), {beyond}. "
            f"Best in the {several(len(groups), 'group that is', 'groups that are')} not small: {whom}."
        )
    return lines


def by_road(frame: pd.DataFrame, pooled: Collection[str]) -> list[dict[str, Any]]:
    """List of dicts, one a road and epsilon of the tidy frame: everybody's score, worst group's, gaps between groups.

    The keys are "epsilon", "kind", "road", "everybody", "worst group", "equalized_odds_difference" and
    "demographic_parity_difference". `pooled` are labels of mechanisms that pool strata; the list is empty if nothing is
    predicted.
    """
    own = _own(frame, pooled)
    if own.empty:
        return []
    sign = better(str(own["metric"].iloc[0]))
    gaps = frame[frame["scope"] == "between"].set_index(["mechanism", "stratification", "epsilon", "metric"])["value"]
    rows = []
    keys = ["epsilon", "kind", "road", "mechanism", "stratification"]
    for key, part in own.groupby(keys, sort=False):
        epsilon, kind, road, mechanism, stratification = key
        model = DIRECT if stratification == DIRECT else str(road).partition(" on ")[0]
        groups = part[(part["scope"] == GROUP) & (part["status"] == OK)].groupby("group")["value"].mean()
        apart = {
            name: float(gaps.get((mechanism, stratification, epsilon, f"{name}:{model}"), gaps.iloc[:0]).mean())
            for name in ("equalized_odds_difference", "demographic_parity_difference")
        }
        rows.append(
            {
                "epsilon": epsilon,
                "kind": kind,
                "road": road,
                "everybody": float(part[part["scope"] == EVERYBODY]["value"].mean()),
                "worst group": float(sign * (sign * groups).min()) if len(groups) else np.nan,
                **apart,
            }
        )
    order = {kind: i for i, kind in enumerate(KINDS)}
    return sorted(rows, key=lambda row: (row["epsilon"], order[row["kind"]], -sign * row["everybody"]))
