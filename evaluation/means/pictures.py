"""The picture of a release's group means with their intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

STATUS = {"ok": "tab:blue", "small": "tab:orange", "not_estimable": "0.6"}
KINDS = (".png", ".svg", ".pdf")
MOST_GROUPS = 60


def means_picture(table: pd.DataFrame, path: Path, *, internal: bool) -> None:
    """Each column's group means with their intervals; with `internal`, the true ones beside them."""
    check_picture(path)
    names = list(table["column"].unique())
    groups = min(table["stratum"].nunique(), MOST_GROUPS)
    figure, axes = _panels(1, len(names), height=1.6 + 0.24 * groups)
    for axis, name in zip(axes[0], names, strict=True):
        part = table[table["column"] == name].head(MOST_GROUPS)
        places = range(len(part), 0, -1)
        for place, row in zip(places, part.to_dict("records"), strict=True):
            colour = STATUS[row["status"]]
            axis.plot([row["lower"], row["upper"]], [place, place], color=colour, linewidth=2)
            axis.plot(row["value"], place, "o", color=colour, markersize=4)
            if internal:
                axis.plot(row["true"], place, "|", color="black", markersize=11)
        axis.set_yticks(list(places), [label or "everybody" for label in part["stratum"]], fontsize=8)
        axis.set_title(name + (" (INTERNAL: with true means)" if internal else ""), fontsize=10)
    words = ("blue: ok", "orange: small, more noise than sampling error", "grey: not estimable")
    figure.supxlabel(", ".join([*words, "bar: true mean"] if internal else words), fontsize=9)
    figure.savefig(path, dpi=150)


def check_picture(path: Path) -> None:
    """A picture is a new file of a known kind, and never lies in a release."""
    if path.suffix not in KINDS:
        raise UsageError(f"{path}: a picture is written as .png, .svg or .pdf.")
    if path.exists():
        raise UsageError(f"{path} exists already; name another file.")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path} cannot be written: its folder does not exist.")


def _panels(rows: int, columns: int, height: float | None = None) -> tuple[Any, Any]:
    """A figure without a window or global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    size = (4.0 * columns + 0.6, height if height is not None else 3.2 * rows)
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)
