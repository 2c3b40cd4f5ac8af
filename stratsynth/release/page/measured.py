"""Measured tables for readers: each group's size, and each column's counts as bars with their noise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from stratsynth.answers.tables import measured as tables_of
from stratsynth.errors import StratsynthError
from stratsynth.models.intervals import NORMAL_95
from stratsynth.report.numbers import Numbers, several, short
from stratsynth.report.page import Figure, Section
from stratsynth.report.strip import Axis, bar
from stratsynth.schema.counted_tables import OTHERS, PARENT, REST, SECOND, slot_of
from stratsynth.strata import Stratum, StratumPath, label, within

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from stratsynth.answers.sizes import SizeEstimates
    from stratsynth.certificate import Certificate
    from stratsynth.schema import Schema

EVERYBODY = ""
"""Label of the path to everybody."""
CELLS = 4_000
"""Largest number of counts that are drawn, so that the file stays below 2 MB; measurements.parquet has all."""
LEVELS = 24
"""Largest number of levels of a column that are drawn, by count; the numbers beside the picture have all."""


@dataclass(frozen=True, eq=False, slots=True)
class GroupTable:
    """Table of one group; repeated measurements are averaged, weighted by inverse variance."""

    group: str
    clique: str
    """Columns of the table, joined by a comma."""
    values: NDArray[np.float64]
    """Counts of a table of one column; empty for several columns, which a page does not show."""
    cells: int
    """Number of counts."""
    sigma: float
    """Noise scale of a cell, in records."""
    times: int

    def of_slot(self, weight: int) -> GroupTable:
        """Return a counted table of linked ones in units of `weight`, a household's; its group is the table's name."""
        return replace(self, group=slot_of(self.clique), values=self.values / weight, sigma=self.sigma / weight)


def measured(measurements: pa.Table) -> list[GroupTable]:
    """Return a list of `GroupTable`, the noisy tables in an Arrow table, by first measurement; repeats are averaged.

    Weights are 1 / sigma^2.
    """
    sums: dict[tuple[str, str], NDArray[np.float64]] = {}
    worth: dict[tuple[str, str], list[float]] = {}
    sizes: dict[tuple[str, str], int] = {}
    for group, columns, values, sigma in tables_of(measurements):
        key, weight = (group, ",".join(columns)), 1 / max(sigma, 1e-12) ** 2
        worth.setdefault(key, []).append(weight)
        sizes[key] = len(values)
        if len(columns) < 2:
            sums[key] = sums.get(key, 0.0) + weight * values
    none = np.zeros(0)
    return [
        GroupTable(*key, sums[key] / sum(of) if key in sums else none, sizes[key], 1 / math.sqrt(sum(of)), len(of))
        for key, of in worth.items()
    ]


def number_of_sums(measurements: pa.Table) -> int:
    """Return the number of noisy sums in an Arrow table of measurements; 0 if it has no column `sum`."""
    import pyarrow.compute as pc

    if "sum" not in measurements.column_names:
        return 0
    sums = pc.not_equal(measurements.column("sum").cast("string"), "")
    return int(pc.sum(pc.and_(sums, pc.equal(measurements.column("cell"), 0))).as_py() or 0)


@dataclass(frozen=True)
class GroupSize:
    """Estimated number of records in a group."""

    group: str
    value: float
    sigma: float
    """Standard deviation of `value`, in records."""
    cell: float
    """Median noise scale of one count in the tables of one column, in records."""

    @property
    def fewer(self) -> float | None:
        """Number that the group's records are fewer than, at 95 per cent, if noise may have made them; None if not."""
        noise = NORMAL_95 * self.sigma
        return max(self.value + noise, 1.0) if self.value < noise else None


def sizes(tables: Sequence[GroupTable], estimates: SizeEstimates | None) -> list[GroupSize]:
    """Return a list of `GroupSize`, numbers of records, for each group that has a noisy table of one column.

    Args:
        tables: Every noisy table, a `GroupTable`.
        estimates: `SizeEstimates` by least squares over all of them, those of every other number of the page; for a
            group without one its one-column tables' sums are averaged by inverse variance.
    """
    known = {} if estimates is None else {**estimates.groups, EVERYBODY: estimates.total}
    found, groups = [], dict[str, list[GroupTable]]()
    for table in tables:
        groups.setdefault(table.group, []).append(table)
    for group, own in groups.items():
        here = [t for t in own if "," not in t.clique and t.clique]
        if here:
            weights = np.array([1 / (t.cells * t.sigma**2) for t in here]).clip(max=1e24)
            sums = np.array([t.values.sum() for t in here])
            value, sigma = float(weights @ sums / weights.sum()), float(weights.sum() ** -0.5)
            if group in known:
                value, sigma = known[group].value, known[group].noise_sd
            found.append(GroupSize(group, value, sigma, float(np.median([t.sigma for t in here]))))
    return found


class Names:
    """Names of groups and cells, from the schema and the certificate, which are public."""

    def __init__(self, schema: Schema, certificate: Certificate) -> None:
        """Name the groups in which something was charged: each has the label of a charge's path."""
        self._schema = schema
        self._labels = {name: column.labels for name, column in schema.columns.items()}
        self.counted = "records" if certificate.row_weight is None else "people"
        self._called: dict[str, str] = {}
        if not isinstance(certificate.unit, str) and certificate.unit.tables:
            parent, child = certificate.unit.tables
            self.counted = f"{parent}s"
            self._called |= {PARENT: f"{parent}s with their first {child}", SECOND: f"second {child} rows"}
            self._called |= {OTHERS: f"third and further {child} rows", REST: f"{child} rows but the first"}
        paths = dict.fromkeys(tuple(tuple(step.items()) for step in charge.path) for charge in certificate.charges)
        self._paths: dict[str, StratumPath] = {}
        for steps in paths:
            path = named_path(tuple(Stratum.from_dict(dict(step)) for step in steps), certificate)
            self._paths[label(path)] = path
            parts = []
            for stratum in path:
                for (column, levels), name in zip(stratum.items, stratum.names, strict=True):
                    meaning = self._labels.get(column, {}).get(levels[0], "") if len(levels) == 1 else ""
                    parts.append(f"{column} {name}{f' ({meaning})' if meaning else ''}")
            self._called[label(path)] = ", ".join(parts)
        self._called[EVERYBODY] = "everybody"
        self.order = [EVERYBODY, *(name for name in self._paths if name != EVERYBODY)]

    def group(self, name: str) -> str:
        """Return text for readers: columns and levels, with meanings, of the group labelled `name`.

        Else `name` itself.
        """
        return self._called.get(name, name)

    def cells(self, table: GroupTable) -> list[str]:
        """Return a list of names of the cells of a `GroupTable` of one column: levels with meanings.

        "cell 0", "cell 1", ... if the column has another number of levels.
        """
        try:
            levels = within(self._schema, self._paths.get(table.group, ())).levels(table.clique)
        except StratsynthError:
            levels = ()
        if len(levels) != table.cells:
            return [f"cell {i}" for i in range(table.cells)]
        labels = self._labels.get(table.clique, {})
        return [f"{level} {labels[level]}" if labels.get(level) else level for level in levels]


def named_path(path: StratumPath, certificate: Certificate) -> StratumPath:
    """Return `path`, a tuple of strata, with merged ones under the names that the Certificate gives them."""
    merged = {tuple(merge.levels.items()): merge.stratum for merge in certificate.strata.merged}
    return tuple(_named(stratum, merged) for stratum in path) if merged else path


def _named(stratum: Stratum, merged: Mapping[Any, str]) -> Stratum:
    """Return the stratum with names from `merged` if it is a merge in it; else the stratum itself.

    `merged` maps a stratum's items, (column, levels) pairs, to its name, one part a column, joined by |.
    """
    name = merged.get(stratum.items)
    parts = () if name is None else tuple(name.split("|"))
    return replace(stratum, names=parts) if len(parts) == len(stratum.items) else stratum


def columns(
    tables: list[GroupTable], names: Names, schema: Schema, about: str = "", nearer: Sequence[str] = ()
) -> Section:
    """Return the Section "What was measured": for each group a Figure, bars of the noisy counts of each column.

    They are the one-column ones of `tables`, a list of `GroupTable`, of at most CELLS cells in all, in the schema's
    order. `names`, a `Names`, names groups for readers; `about` is a sentence on columns and pairs without tables.
    `nearer` names what the page has of all tables together.
    """
    place = {name: i for i, name in enumerate(names.order)}
    oneways = sorted(
        (t for t in tables if t.clique and "," not in t.clique), key=lambda t: place.get(t.group, len(place))
    )
    so_far = itertools.accumulate(t.cells for t in oneways)
    kept = [t for t, sum_ in zip(oneways, so_far, strict=True) if sum_ <= CELLS]
    left = len(oneways) - len(kept)
    if not kept:
        none = "No count of a single column is part of this release."
        return Section("columns", "What was measured", text=[none, *([about] if about else [])])
    groups = list(dict.fromkeys(t.group for t in kept))
    figures, rows = [], []
    for group in groups:
        here = [t for t in kept if t.group == group]
        order = {name: i for i, name in enumerate(schema.names)}
        here.sort(key=lambda t: order.get(t.clique, len(order)))
        bars = Markup('<div class="columns">{}</div>').format(Markup("").join(_bars(t, names) for t in here))
        title = names.group(group) if len(groups) > 1 else None
        figures.append(Figure(title or "", picture=bars, group=title))
        for t in here:
            cells = zip(names.cells(t), t.values, strict=True)
            rows += [[group or "everybody", t.clique, cell, round(float(value), 1), t.sigma] for cell, value in cells]
    more = f" {several(left, 'more table')} of single columns {'is' if left == 1 else 'are'} in measurements.parquet."
    combined = (
        f"{' and '.join(nearer)} {'combine' if len(nearer) > 1 else 'combines'} all tables that count the same "
        "records, so that the same count is a little different there, and nearer."
    )
    figures.append(Figure("", numbers=Numbers("counts", ["group", "column", "level", "count", "sigma"], rows)))
    return Section(
        "columns",
        "What was measured",
        text=[
            "Counts of each column, with their noise: bars are the counts as released, the thin line is where the "
            "true count lies in 95 of 100 cases. Counts below zero are noise; they are part of the honest answer. "
            "Counts of several columns together are in measurements.parquet. Each count is that of one table alone"
            + (f"; {combined}" if nearer else ".")
            + (more if left else ""),
            *([about] if about else []),
        ],
        figures=figures,
        groups=[names.group(group) for group in groups] if len(groups) > 1 else [],
    )


def _bars(table: GroupTable, names: Names) -> Markup:
    """Return HTML: bars of a `GroupTable`, one column's noisy counts with noise; `names` has its levels' meanings."""
    noise = NORMAL_95 * table.sigma
    cells = list(zip(names.cells(table), table.values.tolist(), strict=True))
    shown = cells
    if len(cells) > LEVELS:
        least = sorted((value for _, value in cells), reverse=True)[LEVELS - 1]
        shown = [cell for cell in cells if cell[1] >= least][:LEVELS]
    scale = Axis.over([max(value, 0.0) + noise for _, value in shown])
    lines = [
        Markup('<div class="level"><span>{}</span>{}<span>{}</span></div>').format(
            name,
            bar(scale, value, value - noise, value + noise, f"{name}: {value:,.0f}, give or take {short(noise)}"),
            f"{value:,.0f}".replace("-", "−"),
        )
        for name, value in shown
    ]
    again = f", measured {table.times} times" if table.times > 1 else ""
    hidden = len(cells) - len(shown)
    note = f"{several(hidden, 'level')} of smaller counts only in the table of numbers; " if hidden else ""
    return Markup("<div><h4>{}</h4><small>{}each count is within {} {} in 95 of 100 cases{}</small>{}</div>").format(
        table.clique, note, short(noise), names.counted, again, Markup("").join(lines)
    )
