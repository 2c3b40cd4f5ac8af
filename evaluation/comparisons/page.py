"""INTERNAL. A comparison as a page: mechanisms and stratifications side by side, over epsilons and seeds, by group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from stratsynth.evaluation.comparisons.findings import findings
from stratsynth.evaluation.comparisons.numbers import numbers_lead, numbers_sections
from stratsynth.evaluation.comparisons.paired import DIRECT, ENOUGH
from stratsynth.evaluation.comparisons.runs import BASELINE, Runs
from stratsynth.evaluation.report import BANNER
from stratsynth.evaluation.report.figures import Panel, heat, panels, ranked
from stratsynth.evaluation.report.groups import GroupErrors, card, series_of, smallest_groups, with_people, worst_first
from stratsynth.evaluation.tables import EVERYBODY, GROUP, STAMP
from stratsynth.release.declared import DECLARED, MEASURED
from stratsynth.report.numbers import Numbers, listed, several, short
from stratsynth.report.page import Figure, Page, Section
from stratsynth.report.strip import Axis, legend

if TYPE_CHECKING:
    import pandas as pd
    from markupsafe import Markup

    from stratsynth.schema import Schema

PANELS = 9
GROUPS = 60
"""Largest number of groups in a heat map or a card, by error; the files have all."""
WORST = 10
WORDS = {DECLARED: "by its declared share", MEASURED: "by its measured size"}
OURS = ("group", "stamp", "seconds")
"""Columns of the tidy table that are neither figures nor levels of groups."""


def comparison_page(
    frame: pd.DataFrame,
    *,
    metric: str | None = None,
    epsilon: float | None = None,
    title: str = "Who gains from stratification, and who loses",
    schema: Schema | None = None,
    facts: Mapping[str, str] | None = None,
    banner: str | None = BANNER,
    findings: Sequence[Section] = (),
    numbers: pd.DataFrame | None = None,
) -> Page:
    """Return the Page of a comparison: a card for each mechanism, curves over epsilon, a heat map, the worst tables.

    Args:
        frame: Frame with a row for each figure, and the columns

                mechanism, stratification, epsilon, seed
                                    which release it is about. Rows whose mechanism or stratification is
                                    "subsample" are the sampling-error baseline, whatever their epsilon
                metric              the name of the error in `value`
                scope               "group" or "everybody"
                the groups' columns, or `group`
                                    the levels that make the group; any column that is not named here is one
                clique              the columns of a marginal, joined by a comma; empty or null for a whole metric
                value, low, high    the figure and its interval; null where there is none
                n                   real rows of the group
                status              "ok", "far_off", "small" or "not_estimable"

        metric: The metric to draw; by default workload error if it is there, or else the commonest.
        epsilon: The epsilon of the disparity card and the heat map; by default the one closest to 1.
        title: The heading.
        schema: Schema, for the meaning of the groups' levels.
        facts: Mapping from name to text, further facts for the section "How it was made".
        banner: The notice of an INTERNAL page; None for research on public data.
        findings: Further Sections, before the last.
        numbers: The tidy frame of a grid, for sentences and a section on means and medians; None for neither.
    """
    runs = Runs(frame, metric, epsilon, schema)
    sections = [
        *([] if numbers is None else numbers_sections(numbers, runs.by, runs.schema)),
        Section("card", "Who got what", figures=list(_cards(runs))),
        *([Section("epsilon", "Error against epsilon", figures=list(_lines(runs)))] if len(runs.epsilons) > 1 else []),
        *([Section("where", "Every group under every method", figures=[_heat(runs)])] if runs.groups else []),
        *([Section("worst", "The worst tables", figures=worst)] if (worst := list(_worst(runs))) else []),
        *findings,
        Section("how", "How it was made", facts=[*_facts(runs), *(facts or {}).items()]),
    ]
    return Page(
        title=title,
        subtitle=f"{several(len(runs.methods), 'method')}, {several(len(runs.groups), 'group')}, "
        f"epsilon {listed([f'{e:g}' for e in runs.epsilons])}, {several(runs.seeds, 'seed')}",
        lead=[*([] if numbers is None else numbers_lead(numbers, runs.epsilon)), *_lead(runs)],
        sections=sections,
        internal=banner,
        made_with="Made by stratsynth compare. Figures are means over seeds; every single one is in the table "
        "beside this file.",
    )


def grid_page(
    frame: pd.DataFrame,
    tests: pd.DataFrame,
    bases: Mapping[str, str],
    schema: Schema,
    stamp: str,
    chapters: Sequence[Section] = (),
    groups: str = DECLARED,
) -> Page:
    """Return the Page of a grid's results, from the tidy `frame` of its scores and the frame `tests` of paired tests.

    Of the baselines the real subsample is drawn. A pooled mechanism stands beside the vanilla and the stratified
    releases of its base, if these were compared too; `bases` maps its label to the base's. `schema` has the names of
    groups. `stamp` is the text of the notice on it; `chapters`, Sections, come before all other findings. `groups`, a
    key of `WORDS`, says what the rows of groups follow, in releases with strata.
    """
    base = frame["mechanism"].eq(f"({BASELINE})")
    drawn = frame[base | ~frame["mechanism"].str.startswith("(") & frame["stratification"].ne(DIRECT)].drop(
        columns=[c for c in OURS if c in frame]
    )
    drawn = drawn.assign(mechanism=drawn["mechanism"].where(~base.loc[drawn.index], BASELINE))
    for label, name in bases.items():
        own = drawn["mechanism"].eq(label)
        by = drawn["stratification"].where(~own, "pooled by " + drawn["stratification"].astype(str))
        drawn = drawn.assign(mechanism=drawn["mechanism"].where(~own, name), stratification=by)
    facts = {"Data": stamp, "Rows of each group, with strata": WORDS[groups]}
    banner = BANNER if stamp == STAMP else None
    return comparison_page(
        drawn, schema=schema, facts=facts, banner=banner, findings=[*chapters, *findings(frame, tests)], numbers=frame
    )


def _lead(runs: Runs) -> Iterator[str]:
    """Yield the first sentences of a grid's page: what was compared in `runs`, and for whom which way is better."""
    many = "their least and largest over seeds" if runs.seeds > 1 else "chance in the rows"
    yield (
        f"{several(len(runs.methods), 'way')} to make a synthetic table of the same people, measured by "
        f"{runs.metric.replace('_', ' ')}: the less, the better. At epsilon {runs.epsilon:g}, unless said otherwise; "
        f"intervals are {many}."
    )
    if runs.seeds < ENOUGH:
        yield (
            f"{several(runs.seeds, 'repetition is', 'repetitions are')} too few to say which way is better; a verdict "
            f"needs {ENOUGH}."
        )
        return
    brief = False
    for mechanism in dict.fromkeys(m for m, _ in runs.methods):
        names = [s for m, s in runs.methods if m == mechanism]
        if "vanilla" not in names:
            continue
        groups, everybody = runs.group_errors(mechanism, runs.epsilon)
        for mine in names:
            if mine != "vanilla" and groups:
                what = f"With {mechanism}, {'stratification' if mine == 'stratified' else mine}"
                yield smallest_groups(groups, everybody, mine, "vanilla", what, brief=brief)
                brief = True


def _cards(runs: Runs) -> Iterator[Figure]:
    """Yield a Figure for each mechanism in `runs`: its disparity card at the page's epsilon."""
    for mechanism in dict.fromkeys(m for m, _ in runs.methods):
        groups, everybody = runs.group_errors(mechanism, runs.epsilon)
        kept = worst_first(groups)[:GROUPS]
        hidden = len(groups) - len(kept)
        yield card(
            kept,
            everybody,
            title=f"Disparity card: {mechanism}",
            note=f"Error at epsilon {runs.epsilon:g}, by group."
            + (f" {several(hidden, 'group')} with smaller errors are not drawn." if hidden else ""),
            interval=f"Lines: least and largest of {several(runs.seeds, 'seed')}."
            if runs.seeds > 1
            else "Lines: 95 % intervals of chance in the rows.",
        )


def _lines(runs: Runs) -> Iterator[Figure]:
    """Yield a Figure for each mechanism, error against epsilon in `runs`: panels for everybody, smallest groups."""
    keys = [(), *list(reversed(runs.groups))[: PANELS - 1]]
    hidden = len(runs.groups) - len(keys) + 1
    x = Axis.over(runs.epsilons, log=True)
    for mechanism in dict.fromkeys(m for m, _ in runs.methods):
        methods = [method for method in runs.methods if method[0] == mechanism]
        series = series_of([method[1] for method in methods])
        drawings = [_panel(runs, methods, series, key, x) for key in keys]
        rows = [
            [*method, e, runs.name(key), score.value, score.low, score.high, runs.base(key)]
            for method in methods
            for e in runs.epsilons
            for key in [(), *runs.groups]
            if (score := runs.score(method, e, key))
        ]
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
            ),
        )


def _panel(
    runs: Runs, methods: Sequence[tuple[str, str]], series: Mapping[str, int], key: tuple[str, ...], x: Axis
) -> Markup:
    """Return the drawing, as Markup, of error in `runs` against epsilon (axis `x`) of group `key`: a line a method.

    `methods` are pairs (mechanism, stratification), and `series` maps a stratification to the number of its colour.
    """
    scores = {method: [runs.score(method, e, key) for e in runs.epsilons] for method in methods}
    base = runs.base(key)
    tops = [v for line in scores.values() for s in line for v in (s.value, s.high)]
    panel = Panel(x, Axis.over([*tops, base]), x_name="epsilon", y_name="error", ticks=_apart(runs.epsilons, x))
    if math.isfinite(base):
        panel.line(-1, [(e, base, math.nan, math.nan) for e in runs.epsilons])
    said = []
    for method, line in scores.items():
        known = [(e, s) for e, s in zip(runs.epsilons, line, strict=True) if s.known]
        panel.line(series[method[1]], [(e, s.value, s.low, s.high) for e, s in known])
        panel.points(series[method[1]], [(e, s.value) for e, s in known], 3)
        said.append(f"{method[1]} " + ", ".join(f"{short(s.value)} at {e:g}" for e, s in known))
    name, n = runs.name(key), runs.sizes.get(key, math.nan)
    titled = with_people(GroupErrors(name, n, {})) if math.isfinite(n) else name
    titled += "" if any(s.known for line in scores.values() for s in line) else ": not estimable"
    alone = f"; chance alone {short(base)}" if math.isfinite(base) else ""
    return panel.drawing(titled, f"Error against epsilon, {name}: {'; '.join(said)}{alone}")


def _apart(values: Sequence[float], scale: Axis, least: float = 9.0) -> list[float]:
    """Return the list of those ascending `values` whose places on the scale, an `Axis`, are `least` percent apart."""
    kept: list[float] = []
    for value in values:
        if not kept or scale.at(value) - scale.at(kept[-1]) >= least:
            kept.append(value)
    return kept


def _heat(runs: Runs) -> Figure:
    """Return a Figure, a heat map of error in `runs` by group (worst first) and method, at the page's epsilon."""
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
        for key in kept
        for method, column in columns.items()
    }
    hidden = len(runs.groups) - len(kept)
    return heat(
        "Error by group and method",
        f"At epsilon {runs.epsilon:g}, worst groups first."
        + (f" {several(hidden, 'group')} with smaller errors are not shown." if hidden else ""),
        [runs.name(key) for key in kept],
        list(columns.values()),
        values,
        corner="Group",
        item="method",
    )


def _worst(runs: Runs) -> Iterator[Figure]:
    """Yield one figure of the runs' marginals with the largest mean error, of everybody or else of groups; or none."""
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
    """Yield pairs of texts (name, value) on `runs`: metric, methods, epsilons, seeds, and chance."""
    yield "Metric", runs.metric
    yield "Methods", listed([" ".join(method) for method in runs.methods])
    yield "Epsilons", listed([f"{e:g}" for e in runs.epsilons])
    yield "Seeds", f"{runs.seeds}; a point is the mean over them"
    yield "Chance alone", "the error of a perfect model of the real people, sampled as often"
