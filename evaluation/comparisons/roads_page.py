"""INTERNAL. Chapter on the roads to a prediction: which is better, for whom, at which epsilon."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from stratsynth.evaluation.comparisons.paired import ENOUGH
from stratsynth.evaluation.comparisons.roads import KINDS, by_road, words
from stratsynth.evaluation.report.figures import Panel, listing, panels
from stratsynth.evaluation.report.groups import group_name
from stratsynth.evaluation.tables import EVERYBODY, OK
from stratsynth.report.numbers import Numbers, known, several, short
from stratsynth.report.page import Figure, Section
from stratsynth.report.strip import Axis, legend

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from markupsafe import Markup

    from stratsynth.schema import Schema

PANELS = 9
GAPS = {"equalized_odds_difference": "odds apart", "demographic_parity_difference": "selection apart"}
ABOUT = (
    "Four kinds of road to a prediction at one budget: a model trained on a vanilla, a stratified or a pooled table, "
    "and a private predictor without a table. All are scored on the same real people, who were in no training data. "
    "Each kind is represented, at each epsilon, by its road with the best score for everybody; this flatters kinds "
    "with many roads a little."
)


def roads_section(
    frame: pd.DataFrame, found: pd.DataFrame, by: Sequence[str], pooled: Collection[str], schema: Schema
) -> list[Section]:
    """Return a list of the page's Section on `found`, the frame by `roads`; an empty list if that is empty.

    A road is a way to a prediction; `frame` is the result of `compare`, `by` its schema's columns of groups, `pooled`
    the labels of mechanisms that pool strata.
    """
    if found.empty:
        return []
    times = int(found["repetitions"].max())
    few = f" There are no verdicts from fewer than {ENOUGH} repetitions." if times < ENOUGH else ""
    figures = [_lines(found, by, schema, times), _whom(found, by, schema, few), _every(frame, pooled, found)]
    return [Section("roads", "Which road to a prediction", text=[ABOUT, *words(found)], figures=figures)]


def _called(row: Any, by: Sequence[str], schema: Schema) -> str:
    """Return the name for readers of the group of `row`, a frame's row; "everybody" for a row of this scope.

    It is made of the schema's labels of the columns `by`.
    """
    return "everybody" if row["scope"] == EVERYBODY else group_name({c: row[c] for c in by}, schema)


def _scopes(found: pd.DataFrame) -> Iterator[tuple[Any, pd.DataFrame]]:
    """Yield (first row, all rows) of the frame `found` of `roads`: for everybody, then each group from the largest."""
    ordered = found.assign(place=found["scope"].ne(EVERYBODY)).sort_values(
        ["place", "n"], ascending=[True, False], kind="stable"
    )
    for _, part in ordered.groupby(["scope", "group"], sort=False, dropna=False):
        yield part.iloc[0], part


def _lines(found: pd.DataFrame, by: Sequence[str], schema: Schema, times: int) -> Figure:
    """Return a Figure of score against epsilon, a line a kind of road: a panel for everybody, largest groups.

    `found` is the frame by `roads`, of groups of the schema's columns `by`; bands are over `times` repetitions.
    """
    sound = found[found["status"] == OK]
    x = Axis.over(sorted(set(found["epsilon"])), log=True)
    ends = [*sound["value"], *sound["low"], *sound["high"]]
    y = Axis.over([v for v in ends if math.isfinite(v)], zero=False)
    drawings = [_panel(part, _called(head, by, schema), x, y) for head, part in _scopes(sound)][:PANELS]
    score = str(found["metric"].iloc[0]).replace("_", " ")
    names = ["epsilon", *by, "kind", "road", "value", "low", "high", "n", "status", "best", "beaten"]
    plain = found[names].astype(object).where(found[names].notna(), None)
    return Figure(
        f"{score.capitalize()} by kind of road",
        "Everybody, then the largest groups; all on one scale.",
        picture=panels(drawings),
        legend=legend(
            [(kind, i) for i, kind in enumerate(KINDS) if kind in set(found["kind"])],
            note=f"Bands: 95 % intervals over {several(times, 'repetition')}." if times > 1 else "",
        ),
        numbers=Numbers("roads", names, plain.to_numpy().tolist()),
    )


def _panel(part: pd.DataFrame, name: str, x: Axis, y: Axis) -> Markup:
    """Return the drawing, Markup, of the frame `part` of one group: score by epsilon and kind.

    `name` is the group's; `x` and `y` are each an `Axis`.
    """
    panel = Panel(x, y, x_name="epsilon", y_name="", ticks=sorted(set(part["epsilon"])))
    said = []
    for i, kind in enumerate(KINDS):
        own = part[part["kind"] == kind].sort_values("epsilon")
        points = list(zip(own["epsilon"], own["value"], own["low"], own["high"], strict=True))
        if points:
            panel.line(i, points)
            panel.points(i, [(p[0], p[1]) for p in points], 3)
            said.append(f"{kind} " + ", ".join(f"{short(p[1])} at {p[0]:g}" for p in points))
    n = int(part["n"].iloc[0])
    return panel.drawing(f"{name} ({n:,} held out)", f"By epsilon, {name}: {'; '.join(said)}")


def _whom(found: pd.DataFrame, by: Sequence[str], schema: Schema, few: str) -> Figure:
    """Return a Figure, a table of the best kind of road at each epsilon: a row for everybody and each group.

    `found` is the frame by `roads`, of groups of the schema's columns `by`; cells name the kinds beaten; `few`, a
    sentence, ends the note.
    """
    epsilons = sorted(set(found["epsilon"]))
    rows: list[list[str | float | None]] = []
    for head, part in _scopes(found):
        cells: list[str | float | None] = []
        for epsilon in epsilons:
            here = part[part["epsilon"] == epsilon].set_index("kind")
            best = str(here["best"].iloc[0]) if len(here) else ""
            if not best:
                cells.append("too few to say")
                continue
            mark = f", beats {here['beaten'].iloc[0]}" if here["beaten"].iloc[0] else ""
            cells.append(f"{best} {short(float(here.loc[best, 'value']))}{mark}")
        rows.append([_called(head, by, schema), int(head["n"]), *cells])
    heads = [("group", "text"), ("held out", "number"), *((f"epsilon {epsilon:g}", "text") for epsilon in epsilons)]
    return listing(
        "For whom, at which epsilon",
        "The kind with the best mean. “Beats” names the kinds with a worse mean by a test at 5 %, corrected for the "
        f"number of pairs of kinds, epsilons and groups.{few}",
        heads,
        rows,
        "The best kind of road; everybody, then the largest groups first.",
    )


def _every(frame: pd.DataFrame, pooled: Collection[str], found: pd.DataFrame) -> Figure:
    """Return a Figure, a table of every road at every epsilon of the tidy `frame`; the best of a kind come first.

    `found` is the frame by `roads`; `pooled` are labels of mechanisms that pool strata.
    """
    columns = [
        ("epsilon", "text"),
        ("kind", "text"),
        ("road", "text"),
        ("everybody", "number"),
        ("worst group", "number"),
        *((title, "number") for title in GAPS.values()),
    ]
    rows = [
        [
            f"{row['epsilon']:g}",
            row["kind"],
            row["road"],
            *(known(row[key]) for key in ("everybody", "worst group", *GAPS)),
        ]
        for row in by_road(frame, pooled)
    ]
    score = str(found["metric"].iloc[0]).replace("_", " ")
    return listing(
        "Every road",
        f"{score.capitalize()} for everybody and in the worst group that is not small; the "
        "equalized odds and demographic parity differences between groups (0 is equal).",
        columns,
        rows,
        "Means over repetitions.",
    )
