"""INTERNAL. A comparison as a page: mechanisms and stratifications side by side, over epsilons and seeds, by group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from stratsynth.evaluation.report import BANNER
from stratsynth.evaluation.report.parts import Panel, heat, panels, ranked
from stratsynth.evaluation.report.scored import (
    SERIES,
    Score,
    Scored,
    card,
    group_name,
    series_of,
    smallest,
    with_people,
)
from stratsynth.evaluation.tables import EVERYBODY, GROUP, NOT_ESTIMABLE, OK, SMALL, STAMP

from stratsynth.errors import UsageError
from stratsynth.report.numbers import Numbers, listed, several, short
from stratsynth.report.page import Figure, Page, Section, render
from stratsynth.report.strip import Scale, legend

if TYPE_CHECKING:
    import pandas as pd
    from markupsafe import Markup

    from stratsynth.schema import Schema

COLUMNS = ("mechanism", "stratification", "epsilon", "seed", "metric", "scope", "clique", "value", "low", "high", "n",
           "status")  # fmt: skip
ERRORS = ("workload_error", "workload", "parity_marginals", "error")
"""What a comparison is drawn by where nobody says, in order of preference."""
BASELINE = "subsample"
PANELS = 9
GROUPS = 60
"""As many groups as a heat map or a card shows, the worst; the files have all."""
WORST = 10


def comparison_page(
    frame: pd.DataFrame,
    *,
    metric: str | None = None,
    epsilon: float | None = None,
    title: str = "Who gains from stratification, and who loses",
    schema: Schema | None = None,
    facts: Mapping[str, str] | None = None,
) -> str:
    """The HTML of a comparison.

    Args:
        frame: A row for each figure, with the columns

                mechanism, stratification, epsilon, seed
                                    which release it is about. Rows whose mechanism or stratification is
                                    "subsample" are the sampling-error baseline, whatever their epsilon
                metric              what `value` measures; the less, the better
                scope               "group" or "everybody"
                the groups' columns, or `group`
                                    the levels that make the group; any column that is not named here is one
                clique              the columns of a marginal, joined by a comma; empty or null for a whole metric
                value, low, high    the figure and its interval; null where there is none
                n                   real rows of the group
                status              "ok", "small" or "not_estimable"

        metric: The metric to draw; by default workload error if it is there, or else the commonest.
        epsilon: The epsilon of the disparity card and the heat map; by default the one closest to 1.
        title: The heading.
        schema: For the meaning of the groups' levels.
        facts: What else a reader should know of how the figures came about.
    """
    runs = Runs(frame, metric, epsilon, schema)
    sections = [
        Section("card", "Who got what", figures=list(_cards(runs))),
        *([Section("epsilon", "Error against epsilon", figures=list(_lines(runs)))] if len(runs.epsilons) > 1 else []),
        *([Section("where", "Every group under every method", figures=[_heat(runs)])] if runs.groups else []),
        *([Section("worst", "The worst tables", figures=worst)] if (worst := list(_worst(runs))) else []),
        Section("how", "How it was made", facts=[*_facts(runs), *(facts or {}).items()]),
    ]
    return render(
        Page(
            title=title,
            subtitle=f"{several(len(runs.methods), 'method')}, {several(len(runs.groups), 'group')}, "
            f"epsilon {listed([f'{e:g}' for e in runs.epsilons])}, {several(runs.seeds, 'seed')}",
            lead=list(_lead(runs)),
            sections=sections,
            internal=BANNER,
            made_with="Made by stratsynth compare. Figures are means over seeds; every single one is in the table "
            "beside this file.",
        )
    )


class Runs:
    """The figures of one metric, looked up by mechanism, stratification, epsilon and group."""

    def __init__(self, frame: pd.DataFrame, metric: str | None, epsilon: float | None, schema: Schema | None) -> None:
        """Means over seeds, with their least and largest."""
        missing = [name for name in COLUMNS if name not in frame.columns and name != "clique"]
        if missing or frame.empty:
            raise UsageError(f"report: the comparison {f'lacks the column {missing[0]}' if missing else 'is empty'}.")
        self.metric = metric if metric is not None else _metric(frame)
        frame = frame[frame["metric"] == self.metric]
        if frame.empty:
            raise UsageError(f"report: the comparison has no metric {self.metric!r}.")
        self.by = [name for name in frame.columns if name not in COLUMNS and name != "stamp"]
        whole = _whole(frame)
        self.cliques = frame[~whole]
        self.schema = schema
        frame = frame[whole & frame["scope"].isin([GROUP, EVERYBODY])]
        based = (frame["mechanism"] == BASELINE) | (frame["stratification"] == BASELINE)
        runs, self._base = frame[~based], _by_group(frame[based], self.by)
        if runs.empty:
            raise UsageError(f"report: the comparison has no figure of {self.metric!r} for groups or everybody.")
        self.methods = sorted(
            {(str(m), str(s)) for m, s in zip(runs["mechanism"], runs["stratification"], strict=True)},
            key=lambda pair: (pair[0], SERIES.get(pair[1], len(SERIES)), pair[1]),
        )
        self.epsilons = sorted({float(e) for e in runs["epsilon"]})
        if epsilon is not None and epsilon not in self.epsilons:
            raise UsageError(
                f"report: there is no epsilon {epsilon:g}; there are {listed([f'{e:g}' for e in self.epsilons])}."
            )
        self.epsilon = (
            epsilon if epsilon is not None else min(self.epsilons, key=lambda e: (abs(math.log(max(e, 1e-9))), e))
        )
        self.seeds = int(runs["seed"].nunique())
        self.found: dict[tuple[str, str, float], dict[tuple[str, ...], dict[str, Any]]] = {}
        for method in runs.groupby(["mechanism", "stratification", "epsilon"], sort=False):
            key, part = cast("tuple[Any, pd.DataFrame]", method)
            self.found[str(key[0]), str(key[1]), float(key[2])] = _by_group(part, self.by)
        sizes: dict[tuple[str, ...], float] = {}
        for groups in self.found.values():
            for key, row in groups.items():
                sizes[key] = max(sizes.get(key, 0.0), row["n"])
        self.sizes = sizes
        self.groups = sorted((key for key in sizes if key), key=lambda key: (-sizes[key], key))

    def score(self, method: tuple[str, str], epsilon: float, key: tuple[str, ...]) -> Score:
        """The mean over seeds; from the least to the largest, or of one seed its own interval."""
        row = self.found.get((*method, epsilon), {}).get(key)
        return Score(math.nan) if row is None else Score(row["value"], row["low"], row["high"])

    def name(self, key: tuple[str, ...]) -> str:
        """A group for readers."""
        if self.by == ["group"]:
            return key[0] if key else "everybody"
        return group_name(dict(zip(self.by, key, strict=True)) if key else {}, self.schema)

    def scored(self, mechanism: str, epsilon: float) -> tuple[list[Scored], Scored]:
        """Every group, and everybody, with the errors of the stratifications of one mechanism."""
        methods = [method for method in self.methods if method[0] == mechanism]

        def one(key: tuple[str, ...]) -> Scored:
            errors = {method[1]: self.score(method, epsilon, key) for method in methods}
            rows = [self.found.get((*method, epsilon), {}).get(key) for method in methods]
            worth = {row["status"] for row in rows if row is not None}
            status = next((s for s in (NOT_ESTIMABLE, SMALL) if s in worth), OK)
            levels = dict(zip(self.by, key, strict=True)) if key else {}
            n, base = self.sizes.get(key, math.nan), self._base.get(key)
            return Scored(self.name(key), n, errors, math.nan if base is None else base["value"], status, levels)

        return [one(key) for key in self.groups], one(())

    def base(self, key: tuple[str, ...]) -> float:
        """The sampling error."""
        return float(self._base[key]["value"]) if key in self._base else math.nan


def _metric(frame: pd.DataFrame) -> str:
    there = frame["metric"].value_counts()
    return next((name for name in ERRORS if name in there.index), str(there.index[0]))


def _whole(frame: pd.DataFrame) -> Any:
    """Which rows are about a whole metric, and not about one clique."""
    if "clique" not in frame.columns:
        return frame["value"].notna() | True
    return frame["clique"].isna() | (frame["clique"].astype(str) == "")


def _by_group(frame: pd.DataFrame, by: Sequence[str]) -> dict[tuple[str, ...], dict[str, Any]]:
    """For each group (the empty key is everybody), the mean of its values, from the least to the largest."""
    rows: dict[tuple[str, ...], list[Any]] = {}
    for row in frame.to_dict("records"):
        key = () if row["scope"] == EVERYBODY else tuple(str(row[name]) for name in by)
        rows.setdefault(key, []).append(row)
    return {key: _mean(several_) for key, several_ in rows.items()}


def _mean(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    values = [v for row in rows if math.isfinite(v := _number(row["value"]))]
    status = [str(row["status"]) for row in rows]
    worth = next((s for s in (NOT_ESTIMABLE, SMALL) if s in status), OK)
    ends = (min(values), max(values)) if len(values) > 1 else (_number(rows[0]["low"]), _number(rows[0]["high"]))
    sizes = [n for row in rows if math.isfinite(n := _number(row["n"]))]
    mean = sum(values) / len(values) if values else math.nan
    return {"value": mean, "low": ends[0], "high": ends[1], "n": max(sizes, default=0.0), "status": worth}


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _lead(runs: Runs) -> Iterator[str]:
    many = "their least and largest over seeds" if runs.seeds > 1 else "chance in the rows"
    yield (
        f"{several(len(runs.methods), 'way')} to make a synthetic table of the same people, measured by "
        f"{runs.metric.replace('_', ' ')}: the less, the better. At epsilon {runs.epsilon:g}, unless said otherwise; "
        f"intervals are {many}."
    )
    brief = False
    for mechanism in dict.fromkeys(m for m, _ in runs.methods):
        names = [s for m, s in runs.methods if m == mechanism]
        if "vanilla" not in names:
            continue
        groups, everybody = runs.scored(mechanism, runs.epsilon)
        for mine in names:
            if mine != "vanilla" and groups:
                what = f"With {mechanism}, {'stratification' if mine == 'stratified' else mine}"
                yield smallest(groups, everybody, mine, "vanilla", what, brief=brief)
                brief = True


def _cards(runs: Runs) -> Iterator[Figure]:
    for mechanism in dict.fromkeys(m for m, _ in runs.methods):
        groups, everybody = runs.scored(mechanism, runs.epsilon)
        kept = sorted(groups, key=lambda s: -s.worst if math.isfinite(s.worst) else math.inf)[:GROUPS]
        hidden = len(groups) - len(kept)
        yield card(
            kept, everybody, title=f"Disparity card: {mechanism}",
            note=f"Error at epsilon {runs.epsilon:g}, by group."
            + (f" {several(hidden, 'group')} with smaller errors are not drawn." if hidden else ""),
            interval=f"Lines: least and largest of {several(runs.seeds, 'seed')}." if runs.seeds > 1 else
            "Lines: 95 % intervals of chance in the rows.",
        )  # fmt: skip


def _lines(runs: Runs) -> Iterator[Figure]:
    """For each mechanism: everybody, then groups from the smallest, all on one scale of epsilons."""
    keys = [(), *list(reversed(runs.groups))[: PANELS - 1]]
    hidden = len(runs.groups) - len(keys) + 1
    x = Scale.over(runs.epsilons, log=True)
    for mechanism in dict.fromkeys(m for m, _ in runs.methods):
        methods = [method for method in runs.methods if method[0] == mechanism]
        series = series_of([method[1] for method in methods])
        drawings = [_panel(runs, methods, series, key, x) for key in keys]
        rows = [
            [*method, e, runs.name(key), score.value, score.low, score.high, runs.base(key)]
            for method in methods for e in runs.epsilons for key in [(), *runs.groups]
            if (score := runs.score(method, e, key))
        ]  # fmt: skip
        yield Figure(
            f"{mechanism}, by epsilon",
            "Everybody, then the smallest groups first. Each panel has a scale of its own; epsilons are on a "
            "logarithmic one." + (f" {several(hidden, 'larger group')} are in the numbers only." if hidden > 0 else ""),
            picture=panels(drawings),
            legend=legend([*series.items(), ("chance alone", -1)], note="Bands: least and largest over seeds."),
            numbers=Numbers(
                f"error by epsilon {mechanism}",
                ["mechanism", "stratification", "epsilon", "group", "error", "low", "high", "chance alone"],
                rows,
                STAMP,
            ),
        )  # fmt: skip


def _panel(
    runs: Runs, methods: Sequence[tuple[str, str]], series: Mapping[str, int], key: tuple[str, ...], x: Scale
) -> Markup:
    scores = {method: [runs.score(method, e, key) for e in runs.epsilons] for method in methods}
    base = runs.base(key)
    tops = [v for line in scores.values() for s in line for v in (s.value, s.high)]
    panel = Panel(x, Scale.over([*tops, base]), x_name="epsilon", y_name="error", ticks=_apart(runs.epsilons, x))
    if math.isfinite(base):
        panel.line(-1, [(e, base, math.nan, math.nan) for e in runs.epsilons])
    said = []
    for method, line in scores.items():
        known = [(e, s) for e, s in zip(runs.epsilons, line, strict=True) if s.known]
        panel.line(series[method[1]], [(e, s.value, s.low, s.high) for e, s in known])
        panel.points(series[method[1]], [(e, s.value) for e, s in known], 3)
        said.append(f"{method[1]} " + ", ".join(f"{short(s.value)} at {e:g}" for e, s in known))
    name, n = runs.name(key), runs.sizes.get(key, math.nan)
    titled = with_people(Scored(name, n, {})) if math.isfinite(n) else name
    titled += "" if any(s.known for line in scores.values() for s in line) else ": not estimable"
    alone = f"; chance alone {short(base)}" if math.isfinite(base) else ""
    return panel.drawing(titled, f"Error against epsilon, {name}: {'; '.join(said)}{alone}")


def _apart(values: Sequence[float], scale: Scale, least: float = 9.0) -> list[float]:
    """Those of some numbers whose places are not too close to write them side by side."""
    kept: list[float] = []
    for value in values:
        if not kept or scale.at(value) - scale.at(kept[-1]) >= least:
            kept.append(value)
    return kept


def _heat(runs: Runs) -> Figure:
    columns = {method: " ".join(method) for method in runs.methods}
    worst = {
        key: max(
            (s.value for method in runs.methods if (s := runs.score(method, runs.epsilon, key)).known), default=-1.0
        )
        for key in runs.groups
    }
    kept = sorted(runs.groups, key=lambda key: -worst[key])[:GROUPS]
    values = {
        (runs.name(key), column): runs.score(method, runs.epsilon, key).value
        for key in kept for method, column in columns.items()
    }  # fmt: skip
    hidden = len(runs.groups) - len(kept)
    return heat(
        "Error by group and method",
        f"At epsilon {runs.epsilon:g}, worst groups first."
        + (f" {several(hidden, 'group')} with smaller errors are not shown." if hidden else ""),
        [runs.name(key) for key in kept], list(columns.values()), values, corner="Group", item="method",
    )  # fmt: skip


def _worst(runs: Runs) -> Iterator[Figure]:
    """The cliques that are farthest off, over everybody where the comparison has them."""
    frame = runs.cliques
    frame = frame[(frame["epsilon"] == runs.epsilon) & frame["value"].notna()]
    if frame.empty:
        return
    scope = EVERYBODY if (frame["scope"] == EVERYBODY).any() else GROUP
    here = frame[(frame["scope"] == scope) & (frame["mechanism"] != BASELINE) & (frame["stratification"] != BASELINE)]
    keys = ["mechanism", "stratification", "clique", *(runs.by if scope == GROUP else [])]
    rows: list[list[str | float]] = []
    for one in here.groupby(keys, sort=False):
        key, part = cast("tuple[Any, pd.DataFrame]", one)
        values = [float(v) for v in part["value"]]
        group = [runs.name(tuple(map(str, key[3:])))] if scope == GROUP else []
        name = [str(key[2]).replace(",", ", "), f"{key[0]} {key[1]}", *group]
        rows.append([*name, sum(values) / len(values), min(values), max(values)])
    rows.sort(key=lambda row: -float(row[-3]))
    heads = ["Columns", "Method", *(["Group"] if scope == GROUP else [])]
    yield ranked(f"At epsilon {runs.epsilon:g}", "Farthest off first.", rows[:WORST], heads, "error")


def _facts(runs: Runs) -> Iterator[tuple[str, str]]:
    yield "Metric", runs.metric
    yield "Methods", listed([" ".join(method) for method in runs.methods])
    yield "Epsilons", listed([f"{e:g}" for e in runs.epsilons])
    yield "Seeds", f"{runs.seeds}; a point is the mean over them"
    yield "Chance alone", "the error of a perfect model of the real people, sampled as often"
