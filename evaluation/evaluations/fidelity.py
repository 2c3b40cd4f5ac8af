"""INTERNAL. Section on fidelity: likeness of a release to the real rows, by NIST's measures, for any schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from markupsafe import Markup

from stratsynth.evaluation.report.figures import Panel, from_frame, listing, panels
from stratsynth.evaluation.report.groups import group_name
from stratsynth.evaluation.scores.declared import declared, with_mean
from stratsynth.evaluation.scores.matching import WARNING
from stratsynth.evaluation.tables import EVERYBODY, GROUP, OK
from stratsynth.report.numbers import Numbers, short
from stratsynth.report.page import Figure, Section
from stratsynth.report.strip import Axis, legend

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.evaluation.evaluations.evaluate import Evaluation

MOST = 12
APART = (("real", "real", "number"), ("synthetic", "synthetic", "number"), ("value", "apart", "number"))
"""Columns of a figure in both tables and of their distance: name in the frame, heading, kind."""
DOTS = 400
"""Number of rows of each table in the picture."""


def fidelity(evaluation: Evaluation) -> Section:
    """Return one Section of an evaluation's page: the likeness of the release's rows to the real ones."""
    told, matched = _propensity(evaluation), _matches(evaluation)
    detail = [*_raw(evaluation), *_declared(evaluation)], [*_correlations(evaluation), _levels(evaluation)]
    before, after = ([replace(figure, detail=True) for figure in figures] for figures in detail)
    figures = [*before, *told, *after, *_components(evaluation), matched]
    return Section("fidelity", "How alike it is", facts=list(_facts(evaluation)), figures=figures)


def _facts(evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    """Yield pairs of texts (name, value) on everybody's rows, for a page: broken rules, lost levels, declared scores.

    They are those of an evaluation.
    """
    if evaluation.schema.rules:
        rules = evaluation.inconsistencies
        broken = rules[(rules["rule"] == "(any)") & (rules["scope"] == EVERYBODY)].iloc[0]
        yield "Rows that break a rule", f"{broken['synthetic_rows']:,} synthetic, {broken['real_rows']:,} real"
    lost = evaluation.levels[evaluation.levels["scope"] == EVERYBODY].groupby("kind")["levels"].sum()
    yield "Levels lost", f"{lost.get('lost', 0)}; invented: {lost.get('invented', 0)}; by group in levels.csv"
    for name, score in with_mean().items():
        if name in evaluation.declared:
            whole = score.overall(evaluation.declared[name], evaluation.by, evaluation.facts["few"])
            yield score.summary, short(whole[whole["scope"] == EVERYBODY]["value"].iloc[0])


def _raw(evaluation: Evaluation) -> list[Figure]:
    """Return a list of one Figure, a table of an evaluation's raw means and quartiles, farthest off first.

    [] if unknown.
    """
    known = evaluation.raw[evaluation.raw["value"].notna()].sort_values("value", ascending=False, kind="stable")
    if known.empty:
        return []
    return [
        from_frame(
            "Means and quartiles of the numbers themselves",
            "Numbers as in the files, neither binned nor clipped. Shares of bins can be right while numbers within "
            "them are not.",
            known,
            [("variable", "column", "text"), ("statistic", "figure", "text"), *APART],
            f"Apart: in standard deviations of the real numbers. The {MOST} farthest off; all are in raw.csv.",
            most=MOST,
        )
    ]


def _declared(evaluation: Evaluation) -> list[Figure]:
    """Return a list of Figures, one a declared score of an evaluation: a table of everybody's items, largest first.

    It has at most `MOST` rows.
    """
    return [
        from_frame(
            score.title,
            score.note,
            _first(evaluation.declared[score.name], score.order),
            score.columns,
            score.caption,
            most=MOST,
        )
        for score in declared()
        if score.name in evaluation.declared
    ]


def _first(frame: pd.DataFrame, order: str = "value") -> pd.DataFrame:
    """Rows of a score's frame about everybody, sorted by the column named `order`, the largest first."""
    return frame[frame["scope"] == EVERYBODY].sort_values(order, ascending=False, kind="stable")


def _propensity(evaluation: Evaluation) -> list[Figure]:
    """Return a list of one Figure, a table of how well an evaluation's models tell real rows; [] if unknown."""
    frame = evaluation.propensity
    if frame is None:
        return []
    return [
        from_frame(
            "Can a model tell it from real rows?",
            "Probability that a model, given a real and a synthetic row, picks the synthetic one: one half if it "
            "cannot tell them apart, 1 if it always can.",
            frame[frame["scope"] == EVERYBODY],
            [
                ("model", "model", "text"),
                ("auc", "chance", "number"),
                ("value", "pMSE", "number"),
                ("null", "pMSE by chance", "number"),
            ],
            "pMSE is the mean squared distance of predictions from a coin's; 0 where rows cannot be told apart.",
        )
    ]


def _correlations(evaluation: Evaluation) -> list[Figure]:
    """Return a list of one Figure, a table of an evaluation's pairs of columns whose Cramer's V is most off; or []."""
    frame = evaluation.correlations
    if frame is None:
        return []
    return [
        from_frame(
            "Which columns should go together more, or less",
            "Cramér's V of two columns: 0 if the columns are independent, 1 if one determines the other.",
            _first(frame[(frame["measure"] == "cramer") & (frame["status"] == OK)]),
            [("one", "column", "text"), ("two", "and", "text"), *APART],
            f"The {MOST} pairs that are farthest off; Pearson's and Kendall's are in correlations.csv.",
            most=MOST,
        )
    ]


def _levels(evaluation: Evaluation) -> Figure:
    """Return a Figure, a table of an evaluation's lost and invented levels by column and group, the worst first."""
    frame = evaluation.levels
    scope = GROUP if evaluation.by else EVERYBODY
    here = frame[(frame["scope"] == scope) & (frame["levels"] > 0)].sort_values("value", ascending=False, kind="stable")
    rows = [
        [
            r["column"],
            group_name({c: r[c] for c in evaluation.by}, evaluation.schema) if evaluation.by else "everybody",
            r["kind"],
            str(r["names"]).replace("|", ", "),
            r["value"],
        ]
        for r in here.head(MOST).to_dict("records")
    ]
    more = len(here) - len(rows)
    return listing(
        "Levels lost and invented",
        "Levels that occur among the real people of a group and not in the release, or the other way round. Levels "
        "with the largest share of a group come first" + (f"; {more:,} more are in levels.csv." if more > 0 else "."),
        [("column", "text"), ("group", "text"), ("kind", "text"), ("levels", "text"), ("share", "number")],
        rows,
        "Share: of the group's real rows, or for invented levels of its synthetic ones.",
    )


def _components(evaluation: Evaluation) -> list[Figure]:
    """Return a list of one Figure: an evaluation's rows, real and synthetic, on two principal components; or []."""
    frame = evaluation.components
    if frame is None or "pc2" not in frame:
        return []
    scales = [Axis.over(frame[axis].tolist(), zero=False) for axis in ("pc1", "pc2")]
    drawings, numbers = [], []
    for series, name in enumerate(("real", "synthetic")):
        panel = Panel(*scales, x_name="first component", y_name="second component")
        here = frame[frame["table"] == name].head(DOTS)
        points = list(zip(here["pc1"].tolist(), here["pc2"].tolist(), strict=True))
        panel.points(series, points, 2)
        numbers += [[name, x, y] for x, y in points]
        drawings.append(panel.drawing(f"{name} rows", f"{len(points)} {name} rows on two principal components"))
    return [
        Figure(
            "Both tables from afar",
            "Some rows of each on the two axes along which real rows differ most. Clouds of one shape are a good sign.",
            picture=panels(drawings),
            legend=legend([]) if not drawings else Markup(""),
            numbers=Numbers("components", ["table", "pc1", "pc2"], numbers),
        )
    ]


def _matches(evaluation: Evaluation) -> Figure:
    """Return a Figure, a table of an evaluation's unique matches of synthetic rows with people, held out or not."""
    frame: pd.DataFrame = evaluation.matches[evaluation.matches["scope"] == EVERYBODY]
    people = frame["people"].replace({"real": "in the data", "holdout": "held out"})
    return from_frame(
        "Real people whom it seems to show",
        f"{WARNING[:1].upper()}{WARNING[1:]}.",
        frame.assign(people=people, measure=frame["measure"].str.replace("_", " ")),
        [
            ("measure", "match", "text"),
            ("people", "people", "text"),
            ("matches", "matches", "number"),
            ("base", "of", "number"),
            ("value", "share", "number"),
            ("similarity", "agreement", "number"),
        ],
        "Share of unique real people who are equal to a synthetic row in all columns, or in the columns that "
        "neighbours may know. If people who were held out match as often as those in the data, matches do not come "
        "from having been in the data.",
    )
