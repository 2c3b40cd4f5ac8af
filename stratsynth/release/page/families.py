"""Chapter of a report on two linked tables: what their rows look like together, as they were drawn.

Pictures are of the synthetic tables beside the report: sizes of households, children by size, ages of couples and of
those one after another, generations, incomes by size. Which of them there are, the schema says.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from stratsynth.release.drawn_rows import DrawnRows
from stratsynth.release.page.both_tables import both_tables
from stratsynth.release.page.words import given_up
from stratsynth.report.numbers import Numbers, percent, several, short
from stratsynth.report.page import Column, Figure, Points, Row, Section, Table
from stratsynth.report.strip import Axis, Mark, picture
from stratsynth.schema.bands import Bands
from stratsynth.schema.columns import Numeric
from stratsynth.schema.counted_tables import difference_bands, number_bands
from stratsynth.schema.temporal import Temporal

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from stratsynth.certificate import Certificate
    from stratsynth.schema.linked import LinkedSchema

    Array = NDArray[Any]

SIZES = 8
"""Number of child rows that stands for itself and all larger ones in tables by size."""
STEPS = 4
"""Largest number of generations that is told apart."""


def families(linked: LinkedSchema, tables: Mapping[str, pa.Table], certificate: Certificate) -> list[Section]:
    """Return a list of one Section on drawn rows of a `LinkedSchema`, `tables`, {name: Arrow table}; [] without rows.

    The `Certificate` says what drawing gave up.
    """
    rows = DrawnRows(linked, tables)
    if not len(rows.size) or not len(rows.home):
        return []
    parent, child = linked.names
    text = [
        (
            f"{several(len(rows.size), parent)} and {several(len(rows.home), f'{child} row')}, as they lie beside this "
            f"file: what follows was counted in them, and has the noise of the measured tables and the errors of the "
            f"models. A share of few {parent}s is mostly chance."
            + ("" if certificate.strata.by else " Counts with intervals: stratsynth query.")
        )
    ]
    own = _counted_kind(rows)
    if own is not rows:
        kind = f"{linked.kind_column} {' or '.join(linked.occupied[str(linked.kind_column)])}"
        text.append(
            f"Pictures are of the {several(len(own.size), parent)} with {kind}; tables of columns are of all kinds."
        )
    drawn = [_sizes(own), *_counts(own), *_pairs(own), *_generations(own), *_sums(own)] if len(own.home) else []
    figures = [*drawn, *both_tables(rows)]
    return [
        Section("families", f"The {parent}s", text=text, facts=list(_given_up(linked, certificate)), figures=figures)
    ]


def _counted_kind(rows: DrawnRows) -> DrawnRows:
    """Return `DrawnRows` of the parents of the counted kind with their child rows: `rows` if no other was drawn."""
    linked, column = rows.linked, rows.linked.kind_column
    if column is None:
        return rows
    (above, parents), (below, children) = rows.tables.items()
    kept = np.isin(rows.codes(above, column), linked.codes_of()[column])
    if kept.all():
        return rows
    return DrawnRows(linked, {above: parents.filter(kept), below: children.filter(kept[rows.home])})


def _given_up(linked: LinkedSchema, certificate: Certificate) -> Iterator[tuple[str, str]]:
    """Yield (caption, sentence) pairs of a `LinkedSchema` on what drawing gave up, as the certificate counts it."""
    drawn = certificate.drawn
    if drawn is None:
        return
    parent, child = linked.names
    yield "Drawn with less", given_up(drawn.to_dict(), parent, child)
    if linked.sum is not None:
        name, total = linked.sum
        yield (
            "Sums",
            (
                f"{name} is the sum of {total.column} over all {child} rows. In {drawn.other_bands:,} of "
                f"{drawn.parents:,} {parent}s it is in another bin than drawn; {several(drawn.relaxed, 'row')} had "
                "no value that what was left of the sum allowed, and took another."
            ),
        )


def _bars(title: str, note: str, shares: Sequence[tuple[str, float]]) -> Markup:
    """Return HTML, a bar for each (name, share) of `shares` below a `title` and a `note`."""
    scale = Axis.over([share for _, share in shares])
    lines = []
    for name, share in shares:
        zero, end = scale.at(0.0), scale.at(share)
        bar = Markup('<rect class="bar" x="{:.2f}%" y="4" width="{:.2f}%" height="10"/>').format(zero, end - zero)
        lines.append(
            Markup('<div class="level"><span>{}</span>{}<span>{}</span></div>').format(
                name, picture(f"{name}: {percent(share)}", [bar], 18), percent(share)
            )
        )
    return Markup("<div><h4>{}</h4><small>{}</small>{}</div>").format(title, note, Markup("").join(lines))


def _side_by_side(title: str, note: str, pictures: Sequence[tuple[str, str, Sequence[tuple[str, float]]]]) -> Figure:
    """Return a Figure called `title`, with a `note`, of several `pictures`, side by side, and their numbers.

    Each is (title, note, list of (name, share) pairs).
    """
    numbers = [[caption, name, share] for caption, _, shares in pictures for name, share in shares]
    return Figure(
        title,
        note,
        picture=Markup('<div class="columns">{}</div>').format(Markup("").join(_bars(*one) for one in pictures)),
        numbers=Numbers(title, ["of", "level", "share"], numbers),
    )


def _shares(codes: Array, names: Sequence[str]) -> list[tuple[str, float]]:
    """Return a list of (name, share of `codes`), codes an array that counts `names` from 0; without empty ends."""
    counts = np.bincount(codes, minlength=len(names)).astype(float)
    kept = np.flatnonzero(counts)
    low, top = (kept[0], kept[-1]) if len(kept) else (0, -1)
    total = max(counts.sum(), 1.0)
    return [(names[i], float(counts[i] / total)) for i in range(low, top + 1)]


def _sizes(rows: DrawnRows) -> Figure:
    parent, child = rows.linked.names
    most = int(rows.size.max())
    names = [several(number, f"{child} row") for number in range(most + 1)]
    note = f"{several(int(rows.size.sum()), f'{child} row')} in all, {short(float(rows.size.mean()))} a {parent}"
    return _side_by_side(f"How large a {parent} is", "", [(f"Rows of a {parent}", note, _shares(rows.size, names))])


def _by_size(rows: DrawnRows) -> Iterator[tuple[str, Array]]:
    """Yield (caption, mask of the parents) for each number of child rows that some parent of `DrawnRows` has.

    The last, "N+", has those with that many or more.
    """
    for size in range(int(rows.size.min()), SIZES + 1):
        met = rows.size >= SIZES if size == SIZES else rows.size == size
        if met.any():
            yield f"{size}+" if size == SIZES else str(size), met


def _heat(title: str, note: str, first: str, names: Sequence[str], rows: Sequence[tuple[str, Array]]) -> Figure:
    """Return a `Figure`, a heat map, called `title`, with a `note`: a row for each of `rows`, (caption, shares).

    `first` heads the captions, `names` the arrays of shares.
    """
    scale = Axis(0.0, max((float(shares.max()) for _, shares in rows), default=0.0))
    shown: list[Row] = [[caption, *map(float, shares)] for caption, shares in rows]
    columns = [Column(first, "text"), *(Column(name, "shade", scale) for name in names)]
    return Figure(
        title,
        table=Table(note, columns, shown, most=len(shown)),
        numbers=Numbers(title, [first, *names], shown),
    )


def _counts(rows: DrawnRows) -> Iterator[Figure]:
    """Yield a `Figure`, a heat map, of each count of `DrawnRows` with a condition, such as of children, by size."""
    parent, child = rows.linked.names
    for name, count in rows.linked.counts.items():
        if count.everyone:
            continue
        found = np.minimum(rows.counted(count), count.top)
        levels = count.levels
        made = [
            (caption, np.bincount(found[met], minlength=len(levels)) / met.sum()) for caption, met in _by_size(rows)
        ]
        besides = f", the first {child} left out" if count.besides_reference else ""
        where = " and ".join(f"{column} {_spelt(condition)}" for column, condition in count.where.items())
        note = (
            f"Share of the {parent}s of a size with so many {child} rows{f' with {where}' if where else ''}{besides}."
        )
        yield _heat(f"{name} by size", note, f"{child} rows", levels, made)


def _spelt(condition: object) -> str:
    return condition if isinstance(condition, str) else " or ".join(map(str, condition))  # type: ignore[call-overload]


def _pairs(rows: DrawnRows) -> Iterator[Figure]:
    """Yield a `Figure` of the first two child rows' numbers in `DrawnRows`, and one of differences in a parent."""
    linked, (parent, child) = rows.linked, rows.linked.names
    name, before, apart = linked.difference, number_bands(linked), difference_bands(linked)
    if name is None or before is None or apart is None:
        return
    numbers = rows.numbers(child, name)
    earlier = np.roll(numbers, 1)
    second, later = rows.place == 1, rows.place > 1
    if not second.any():
        return
    codes, others = (_band(before, each[second]) for each in (earlier, numbers))
    size = len(before.levels)
    table = np.bincount(codes * size + others, minlength=size * size).reshape(size, size) / second.sum()
    kept = np.flatnonzero(table.sum(axis=0) + table.sum(axis=1) > 0)
    levels = _numbers_named(before, linked)
    note = f"Share of the {parent}s of two and more: {name} of the first {child} (rows) and of the second (columns)."
    cells = [(levels[i], table[i, kept]) for i in kept]
    yield _heat(f"{name} of the first two", note, f"first {child}", [levels[i] for i in kept], cells)
    pictures = []
    bands = _numbers_named(apart, linked)
    for caption, met in ((f"second less first {child}", second), (f"further {child}s less the one before", later)):
        differences = (numbers - earlier)[met]
        differences = differences[~np.isnan(differences)]
        if len(differences):
            note = f"of {several(len(differences), f'{child} row')}"
            pictures.append((caption.capitalize(), note, _shares(_band(apart, differences), bands)))
    if pictures:
        yield _side_by_side(f"How far apart they are in {name}", "", pictures)


def _band(bands: Bands, numbers: Array) -> Array:
    """Return an int array, for each of the array `numbers` the code of its band in `bands`; the last one for NaN."""
    found: Array = np.where(
        np.isnan(numbers), len(bands.ends) + 1, np.searchsorted(bands.ends, numbers, side="right")
    ).astype(np.intp)
    return found


def _numbers_named(bands: Bands, linked: LinkedSchema) -> list[str]:
    """Return a list of names of `bands` for readers: "10 to 19" for whole numbers of a `LinkedSchema`."""
    column = linked.child.column(linked.difference or "")
    if not isinstance(column, Numeric) or not column.integer or isinstance(column, Temporal):
        return list(bands.levels)
    ends = [int(end) for end in bands.ends]
    inner = [f"{low}" if low == high - 1 else f"{low} to {high - 1}" for low, high in itertools.pairwise(ends)]
    return [text.replace("-", "−") for text in (f"up to {ends[0] - 1}", *inner, f"{ends[-1]} and more", "none")]


def _generations(rows: DrawnRows) -> Iterator[Figure]:
    """Yield a `Figure` of the generations in `DrawnRows`, where a count of the young says how old an adult is.

    They are the most rows of which each has a number larger than that before by at least that much.
    """
    linked, (parent, child) = rows.linked, rows.linked.names
    name, gap = linked.difference, _adult(linked)
    if name is None or gap is None:
        return
    number = generations(rows.home, rows.numbers(child, name), gap, len(rows.size))
    levels = [*(several(i, "generation") for i in range(STEPS)), f"{STEPS} and more"]
    several_ = rows.size > 2
    pictures = [
        (caption, f"of {several(int(met.sum()), parent)}", _shares(np.minimum(number[met], STEPS), levels))
        for caption, met in ((f"All {parent}s", rows.size > 0), (f"{parent.capitalize()}s of three and more", several_))
        if met.any()
    ]
    note = f"The most {child} rows of a {parent} of which each is {gap:g} or more above the one before in {name}."
    yield _side_by_side("Generations", note, pictures)


def _adult(linked: LinkedSchema) -> float | None:
    """Return the least number above a range "..N" of a `LinkedSchema`'s difference in a count; None without one."""
    column = linked.child.columns.get(linked.difference or "")
    if not isinstance(column, Numeric) or not column.integer or isinstance(column, Temporal):
        return None
    for count in linked.counts.values():
        codes = linked.codes_where(count).get(linked.difference or "", frozenset())
        young = sorted(code for code in codes if code < len(column.extents))
        if set(count.where) == {linked.difference} and young and young == list(range(len(young))):
            return float(column.extents[young[-1]][1]) + 1
    return None


def generations(home: Array, numbers: Array, gap: float, parents: int) -> Array:
    """Return an array, for each parent the most of its rows of which each is `gap` or more above the one before.

    `parents` is their number. `home` is an array, the number of each row's parent, and `numbers` one of the rows'
    numbers, NaN for none.
    """
    real = ~np.isnan(numbers)
    home, numbers = home[real], numbers[real]
    order = np.lexsort((numbers, home))
    home, numbers = home[order], numbers[order]
    found, reached = np.zeros(parents, np.intp), np.full(parents, -np.inf)
    start = np.cumsum(np.bincount(home, minlength=parents)) - np.bincount(home, minlength=parents)
    place = np.arange(len(home)) - start[home]
    for step in range(int(place.max(initial=-1)) + 1):  # the lowest of each parent, then the next
        at = np.flatnonzero(place == step)
        more = at[numbers[at] >= reached[home[at]]]
        found[home[more]] += 1
        reached[home[more]] = numbers[more] + gap
    return found


def _sums(rows: DrawnRows) -> Iterator[Figure]:
    """Yield a `Figure` of the summed column of `DrawnRows` by number of child rows: median, and the middle half."""
    linked = rows.linked
    if linked.sum is None:
        return
    parent, child = linked.names
    name, numbers = linked.sum[0], rows.numbers(parent, linked.sum[0])
    made: list[tuple[str, int, float, float, float]] = []
    for caption, met in _by_size(rows):
        own = numbers[met & ~np.isnan(numbers)]
        if len(own):
            low, middle, top = (float(end) for end in np.quantile(own, (0.25, 0.5, 0.75)))
            made.append((caption, len(own), low, middle, top))
    scale = Axis.over([end for each in made for end in each[2:]])
    shown: list[Row] = [
        [
            caption,
            Points(caption, [Mark("median", middle, low, top, 1)], middle),
            middle,
            f"{short(low)} to {short(top)}",
            number,
        ]
        for caption, number, low, middle, top in made
    ]
    columns = [
        Column(f"{child} rows", "text"),
        Column("median and middle half", "picture", scale),
        Column("median"),
        Column("middle half", "text"),
        Column(f"{parent}s", "count"),
    ]
    note = f"{name} of a {parent}, which is the sum of {linked.sum[1].column} over its {child} rows."
    heads = [f"{child} rows", f"{parent}s", "lower quartile", "median", "upper quartile"]
    yield Figure(f"{name} by size", table=Table(note, columns, shown), numbers=Numbers(f"{name} by size", heads, made))
