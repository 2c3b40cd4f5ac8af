"""Figures for papers: matplotlib's, without windows or global state, as PDF, SVG or PNG."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stratsynth.errors import UsageError
from stratsynth.inputs import output_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = (".pdf", ".svg", ".png")
COLOURS = ("tab:blue", "tab:orange", "tab:green", "tab:purple", "tab:brown", "tab:pink", "tab:olive", "tab:cyan")
"""Colours by series; red and grey are for what the series are compared with."""


def new_figure(width: float = 7.2, height: float = 4.6) -> Figure:
    """Return an empty matplotlib figure of this width and height in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def check_path(path: str | Path) -> Path:
    """Return the path of a picture to write.

    UsageError if it is no .pdf, .svg or .png, exists, or its folder does not.
    """
    path = Path(path)
    if path.suffix not in KINDS:
        raise UsageError(f"{path}: a figure is written as .pdf, .svg or .png.")
    output_path(path, "name another file")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path} cannot be written: its folder does not exist.")
    return path


def save(figure: Figure, path: Path) -> None:
    """Write a matplotlib figure to the file `path`, without a date, so that equal figures give equal bytes."""
    import matplotlib as mpl

    dated = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(path.suffix, {})
    with mpl.rc_context({"svg.hashsalt": "stratsynth", "pdf.fonttype": 42}):
        figure.savefig(path, dpi=200, metadata=dated)


def stamp(figure: Figure, text: str) -> None:
    """Write `text`, in red, at the foot of a matplotlib figure, which is changed."""
    foot = 0.2 / figure.get_figheight()
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.set(rect=(0, foot, 1, 1 - foot))  # type: ignore[call-arg]
    figure.text(0.01, foot / 5, text, fontsize=7, color="tab:red", va="bottom", ha="left")
