"""Pictures of a release's columns; beside real rows, if a user has them, and INTERNAL then."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.checks import is_texts, quoted_value
from stratsynth.errors import UsageError
from stratsynth.report.drawing import check_path, new_figure, save, stamp
from stratsynth.schema import Numeric
from stratsynth.schema.bins import EVEN, LINEAR, scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from stratsynth.release.release import Release
    from stratsynth.schema import Schema
    from stratsynth.schema.columns import Column

ACROSS, LEVELS, ROWS = 4, 16, 20_000
"""Columns of pictures; levels that are drawn, the commonest; rows that are drawn without a declared size."""
NARROW, SKEWED = 0.01, 20
"""Least width of a bin in a picture of width 1; ratio of the widest bin to the median from which a scale is
logarithmic."""
INTERNAL = "INTERNAL: real rows without a charge; not differentially private, not for publication"


def columns_plot(
    release: Release, path: str | Path | None, real: Any, columns: Sequence[str] | None, seed: int
) -> Figure:
    """Return a matplotlib figure: shares of levels of `columns`, None for all, in rows drawn by `seed`, and in `real`.

    `real` are private rows or None; `path` is a file to save it to, None for none. UsageError if it exists or is of
    another kind; with `real`, also if it lies in a release.
    """
    from stratsynth.data.draft import refuse_release_folder

    target = None if path is None else check_path(path)
    if target is not None and real is not None:
        refuse_release_folder(target)
    schema = release.model.schema
    if columns is not None and (not is_texts(columns) or not columns):
        raise UsageError(f'columns is a list of columns, such as ["{schema.names[0]}"], not {quoted_value(columns)}.')
    names = schema.names if columns is None else tuple(columns)
    for name in names:
        schema.column(name)
    drawn = shares(schema, release.sample_arrow(release.declared_size or ROWS, seed=seed))
    truth = None if real is None else shares(schema, real)
    across = min(ACROSS, len(names))
    down = math.ceil(len(names) / across)
    figure = new_figure(2.6 * across + 0.6, 1.9 * down + 0.5)
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for name, one in zip(names, axes, strict=False):
        _draw(one, name, schema.column(name), drawn[name], None if truth is None else truth[name])
    for one in axes[len(names) :]:
        one.set_axis_off()
    said = [] if release.statement.private else [release.statement.warning or "NOT PRIVATE"]
    if truth is not None:
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=2, fontsize=8)
        said.append(INTERNAL)
    if said:
        stamp(figure, "\n".join(said))
    if target is not None:
        save(figure, target)
    return figure


def shares(schema: Schema, data: Any) -> Mapping[str, NDArray[np.float64]]:
    """Return a dict from column to array: each level's share, sum 1, of rows of `data`, any source, by the schema."""
    from stratsynth.data.sources import open_source
    from stratsynth.schema.encoding import encode

    coded = encode(schema, open_source(data).read(schema.names))
    counts = {name: np.bincount(coded.codes[name], minlength=schema.size(name)) for name in schema.names}
    return {name: count / max(count.sum(), 1) for name, count in counts.items()}


def _draw(axes: Axes, name: str, column: Column, drawn: NDArray[Any], real: NDArray[Any] | None) -> None:
    """Draw shares by level of a column, arrays `drawn` and `real` (None: none), into `axes`: steps of numbers, or bars.

    The title is `name`. Numbers stand at their place, on a logarithmic scale where bins are much wider in the tail
    (`_places`). A height is a share per width, 1 where rows lie evenly.
    """
    axes.set_title(name, fontsize=9)
    axes.tick_params(labelsize=7)
    series = [("synthetic", drawn, "tab:blue"), *([("real", real, "0.25")] if real is not None else [])]
    if isinstance(column, Numeric) and len(column.extents) > 1:
        from matplotlib.ticker import EngFormatter

        bins = len(column.extents)
        edges = [column.lower, *(float(low) for low in np.asarray(column.breaks, float)[1:bins]), column.upper]
        places = _places(column, edges)
        for label, values, colour in series:
            axes.stairs(values[:bins] / np.diff(places), places, label=label, color=colour, linewidth=1.2)
        ticks = np.unique(np.abs(places[:, None] - np.linspace(0, 1, 5)).argmin(axis=0))
        said = EngFormatter(sep="")
        axes.set_xticks(places[ticks], [said(float(f"{edges[tick]:.2g}")) for tick in ticks])
        axes.set_ylim(bottom=0)
        return
    most = drawn if real is None else np.maximum(drawn, real)
    kept = np.sort(np.argsort(-most, kind="stable")[:LEVELS])
    width = 0.8 / len(series)
    for i, (label, values, colour) in enumerate(series):
        axes.bar(np.arange(len(kept)) + i * width, values[kept], width, label=label, color=colour)
    labels = [column.all_levels[code][:10] for code in kept]
    turned = 90 if max(map(len, labels)) > 2 else 0
    axes.set_xticks(np.arange(len(kept)) + (len(series) - 1) * width / 2, labels, rotation=turned)


def _places(column: Numeric, edges: Sequence[float]) -> NDArray[np.float64]:
    """Return an array of places, 0 to 1, of the `edges` of a numeric column's bins: to scale, or logarithmic.

    A bin of a single number is at least NARROW wide, so that it is seen.
    """
    ends = np.asarray(edges, np.float64)
    widths = np.diff(ends / 2)  # halves, as the distance of the largest numbers overflows
    wide = widths[widths > widths.max() * 1e-9]
    if not (column.shape in LINEAR and column.spacing == EVEN) or wide.max() > SKEWED * np.median(wide):
        unit = column.transform_unit if column.transform_unit != 1 else max(float(np.median(wide)), 1e-300)
        widths = np.diff([scale(float(end), unit) for end in ends])
    found = np.maximum(widths / widths.sum(), NARROW)
    places: NDArray[np.float64] = np.concatenate([[0.0], np.cumsum(found / found.sum())])
    return places
