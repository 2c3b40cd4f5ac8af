"""INTERNAL. Numbers in a comparison: errors of means, medians, deciles and shares, with their spread over repetitions.

Metrics are `mean_error:PINCP`, `median_error:PINCP`, `decile_error:PINCP` (mean size of nine errors),
`P90_error:PINCP`, `P99_error:PINCP` and `share_error:PINCP above 200000`, as `evaluation.scores.headline` defines them:
signed, synthetic minus real, in per cent or in percentage points. Of baselines, which are means over draws, they are
sizes without a sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.evaluation.comparisons.paired import BASELINE, SIGNED, setting_name
from stratsynth.evaluation.report.groups import group_name
from stratsynth.evaluation.scores.baseline import SUBSAMPLE
from stratsynth.evaluation.scores.headline import (
    DECILES,
    ENOUGH_NUMBERS,
    LACKING,
    MEAN,
    MEDIAN,
    P99,
    TENTHS,
    headline_frame,
    number_columns,
    thresholds_by_column,
)
from stratsynth.evaluation.tables import EVERYBODY, GROUP, OK, EncodedRows, groups_of
from stratsynth.evaluation.tables.numbers import RawNumbers
from stratsynth.report.numbers import several, short, signed
from stratsynth.report.page import Cell, Column, Figure, Section, Table, Value

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.evaluation.comparisons.scoring import Scoring
    from stratsynth.schema import Schema

P90 = TENTHS[-1]
METRICS = {MEAN: "mean_error", MEDIAN: "median_error", DECILES: "decile_error", P90: "P90_error", P99: "P99_error"}
"""Statistic -> its metric; of shares it is `SHARES`."""
SHARES = "share_error"
TITLES = {
    "mean_error": "Means: error in per cent of the real mean",
    "median_error": "Medians: error in per cent of the real median",
    "decile_error": "Deciles: mean size of the nine errors, in per cent of the real P90 minus P10",
    "P90_error": "P90: error in per cent of the real P90 minus P10",
    "P99_error": "P99: error in per cent of the real P99",
    SHARES: "Shares: error in percentage points",
}
BRIEF = ("mean_error", "median_error", "decile_error")
"""Metrics that a terminal shows."""
GROUPS = 200
"""Largest number of rows in the table of groups."""
ROUNDING = 1e-9
"""Largest standard deviation, in per cent, that is none: means of equal errors are rounded."""
WORDS = (
    "Numbers as in the files: synthetic minus real. After ± is the standard deviation over repetitions, and rms is the "
    "root of their mean square, in which both count. Chance alone: mean size of the error of real rows, drawn as often."
)


def raw_numbers(data: object, schema: Schema, by: Sequence[str], *, weigh: bool = False) -> RawNumbers:
    """Read the numbers that a comparison scores, RawNumbers, from `data`: rows, or a path, of a schema.

    They are of all columns of numbers but `by`, which make the groups; with `weigh` rows count as their weights.
    """
    return RawNumbers.read(data, schema, number_columns(schema, by), by, weigh=weigh)


def number_scores(
    real: RawNumbers, made: RawNumbers, schema: Schema, scoring: Scoring, *, sizes: bool = False
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield (`metric:column`, frame) for each of the schema's columns and statistics: errors of `made` against `real`.

    Both are RawNumbers. The Scoring has the groups' columns and thresholds; with `sizes` errors have no sign.
    """
    levels = thresholds_by_column(schema, dict(scoring.thresholds))
    wanted = {name: levels[name] for name in number_columns(schema, scoring.by)}
    found = headline_frame(real, made, wanted, scoring.by, groups_of(schema, scoring.by)[1])
    if sizes:
        found = found.assign(value=found["value"].abs(), low=np.nan, high=np.nan)
    for names, frame in found.groupby(["variable", "statistic"], sort=False):
        column, statistic = map(str, names)
        if statistic in METRICS:
            yield f"{METRICS[statistic]}:{column}", frame
        elif statistic == LACKING or statistic.startswith("above"):
            yield f"{SHARES}:{column} {statistic}", frame


def encoded_number_scores(real: EncodedRows, made: EncodedRows, scoring: Scoring) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield (metric:column, frame) of the errors of encoded rows `made`, a baseline, against `real`, by column.

    Errors have no sign; `scoring` has groups and thresholds.
    """
    true, other = (raw_numbers(table, real.schema, scoring.by) for table in (real, made))
    yield from number_scores(true, other, real.schema, scoring, sizes=True)


def numbers_sections(frame: pd.DataFrame, by: Sequence[str] = (), schema: Schema | None = None) -> list[Section]:
    """Return a list of one Section on numbers, from a comparison's tidy frame, with the groups of columns `by`.

    It is empty if the frame has no errors of numbers; groups' levels are labelled by the schema, if any.
    """
    here = frame[frame["metric"].str.partition(":")[0].isin(TITLES)]
    if here.empty:
        return []
    names = here["metric"].str.partition(":")
    here = here.assign(kind=names[0], item=names[2])
    whole = here[here["scope"] == EVERYBODY]
    figures = [
        _by_epsilon(whole[whole["kind"] == metric], title, detail=metric not in BRIEF)
        for metric, title in TITLES.items()
        if (whole["kind"] == metric).any()
    ]
    inside = here[(here["scope"] == GROUP) & (here["kind"] == METRICS[MEAN]) & (here["stratification"] != BASELINE)]
    figures += [_groups(inside, by, schema)] if by and len(inside) else []
    return [Section("numbers", "Numbers", text=[WORDS], figures=figures)]


def numbers_summary(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a list of dicts for JSON: everybody's errors of numbers in a tidy frame, by metric, setting, epsilon.

    `mean` and `deviation` are over the repetitions with a value, `rms` is the root of their mean square; null where
    there are too few of them.
    """
    kind = frame["metric"].str.partition(":")[0]
    own = frame[kind.isin(TITLES) & (frame["scope"] == EVERYBODY) & (frame["stratification"] != BASELINE)]
    keys = ["metric", "mechanism", "stratification", "epsilon"]
    found = []
    for names, part in own.groupby(keys, sort=False):
        values = part["value"].dropna().to_numpy(float)
        figures = {
            "mean": float(values.mean()) if len(values) else None,
            "deviation": float(values.std(ddof=1)) if len(values) > 1 else None,
            "rms": _rms(part) if len(values) else None,
        }
        found.append({**dict(zip(keys, names, strict=True)), "repetitions": len(values), **figures})
    return found


def numbers_lead(frame: pd.DataFrame, epsilon: float) -> list[str]:
    """Return a list of sentences: the column whose mean, and whose median, a setting gets most wrong at this epsilon.

    `frame` is the tidy frame of a comparison.
    """
    found = []
    summary = [row for row in numbers_summary(frame) if row["epsilon"] == epsilon and row["rms"] is not None]
    for statistic in (MEAN, MEDIAN):
        here = [row for row in summary if row["metric"].startswith(f"{METRICS[statistic]}:")]
        if here:
            row = max(here, key=lambda row: row["rms"])
            found.append(
                f"Of the {statistic}s of numbers, that of {row['metric'].partition(':')[2]} is farthest off, by "
                f"{short(row['rms'])} %, under {setting_name(row['mechanism'], row['stratification'])} at epsilon "
                f"{epsilon:g}."
            )
    return found


def _rms(part: pd.DataFrame) -> float:
    """Root of the mean square of the known values in the column `value` of the frame `part`; NaN if none is."""
    values = part["value"].dropna().to_numpy(float)
    return float(np.sqrt((values**2).mean())) if len(values) else np.nan


def _cell(part: pd.DataFrame) -> Cell:
    """Cell of one setting's error at an epsilon, from its rows `part`, one a repetition; sorted by root mean square.

    It shows mean, standard deviation and that root; of one value only this; of none a dash.
    """
    values = part["value"].dropna().to_numpy(float)
    if not len(values):
        return Cell("–", None)
    spell = signed if str(part["kind"].iloc[0]) in SIGNED else short
    mean, size = spell(float(values.mean())), _rms(part)
    if len(values) == 1:
        return Cell(mean, size)
    spread = float(values.std(ddof=1))
    return Cell(f"{mean} ± {short(spread if spread > ROUNDING else 0.0, 2)} (rms {short(size)})", size)


def _by_epsilon(part: pd.DataFrame, title: str, *, detail: bool) -> Figure:
    """Return a Figure, a table with a `title`, from the frame `part` of everybody's scores by one metric.

    It has a row for each column of numbers and setting. Epsilons are its columns; with `detail` it is on the page
    alone.
    """
    own, base = part[part["stratification"] != BASELINE], part[part["stratification"] == BASELINE]
    epsilons = sorted(set(own["epsilon"]))
    rows: list[list[Value]] = []
    for item, some in own.groupby("item", sort=False):
        for (mechanism, stratification), each in some.groupby(["mechanism", "stratification"], sort=False):
            cells = [_cell(each[each["epsilon"] == epsilon]) for epsilon in epsilons]
            rows.append([str(item), setting_name(str(mechanism), str(stratification)), *cells])
        if len(alone := base[(base["item"] == item) & (base["mechanism"] == f"({SUBSAMPLE})")]):
            size = _rms(alone)
            rows.append([str(item), "chance alone, size", *[Cell(short(size), size)] * len(epsilons)])
    heads = [Column("column", "text"), Column("setting", "text"), *(Column(f"epsilon {e:g}") for e in epsilons)]
    repeated = several(int(own["seed"].nunique()), "repetition")
    table = Table(f"Over {repeated}; every single one is in comparison.csv.", heads, rows)
    return Figure(title, "", table, numbers=table.numbers(title), detail=detail)


def _groups(part: pd.DataFrame, by: Sequence[str], schema: Schema | None) -> Figure:
    """Return a Figure, a table of the groups' mean errors, from rows `part` of the tidy frame, farthest off first.

    Groups, by the columns `by`, are named by the schema's labels; those of few numbers are left out.
    """
    keys = [*by, "item", "mechanism", "stratification"]
    epsilons = sorted(set(part["epsilon"]))
    rows: list[tuple[float, list[Value]]] = []
    small = set()
    for key, some in part.groupby(keys, sort=False):
        levels, (item, mechanism, stratification) = key[: len(by)], map(str, key[len(by) :])
        if not some["status"].eq(OK).all():
            small.add((*levels, item))
            continue
        cells = [_cell(some[some["epsilon"] == epsilon]) for epsilon in epsilons]
        name = group_name(dict(zip(by, levels, strict=True)), schema)
        row: list[Value] = [name, item, setting_name(mechanism, stratification), int(some["n"].iloc[0]), *cells]
        rows.append((_rms(some), row))
    ordered = [row for _, row in sorted(rows, key=lambda one: -one[0])][:GROUPS]
    heads = [Column("Group", "text"), Column("column", "text"), Column("setting", "text"), Column("numbers", "count")]
    table = Table("", [*heads, *(Column(f"epsilon {e:g}") for e in epsilons)], ordered, rest="more in the files")
    note = (
        f"In per cent of each group's real mean, farthest off first. No claim is made of groups with fewer than "
        f"{ENOUGH_NUMBERS:,} numbers in either table: {several(len(small), 'pair')} of a group and a column, left out."
    )
    return Figure("Means, group by group", note, table, numbers=table.numbers("numbers by group"), detail=True)
