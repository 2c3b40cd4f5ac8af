"""INTERNAL. Scores of rows, each declared once: declared scores appear in `evaluate`, its page and `compare`.

A file of this folder that has such a score says so at its top level:

    SCORE = RowScore(
        name="level_entropy",
        of=entropy_frame,                   # Pair -> a frame made by `Pair.frame`
        title="How even the levels are",
        note="The entropy of each column, in bits.",
        columns=(("column", "column", "text"), ("value", "apart", "number")),
        summary="Difference of the columns' entropy in bits, mean over columns, everybody",
    )

and is found by the folder being read. A score that needs more than the rows of two tables, such as a hold-out or the
marginals that others share, is requested by name where it is needed.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from stratsynth.evaluation import scores
from stratsynth.evaluation.tables import FEW, By, Pair, stamped, statuses

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.schema import Schema


@dataclass(frozen=True)
class RowScore:
    """Score of a release's rows, compared with the real ones."""

    name: str
    """Name of its frame and files in `evaluate`, of its metric in `compare`, and in `stratsynth.evaluation`."""
    of: Callable[[Pair], pd.DataFrame]
    """Function from two tables to the frame: for each item, a row for each declared group and one for everybody."""
    title: str
    """Heading of its table on the page of an evaluation."""
    note: str
    """Meaning, in a sentence or two under the heading."""
    columns: Sequence[tuple[str, str, Literal["text", "number"]]]
    """Columns of the frame that the table shows: name, heading and kind."""
    caption: str = ""
    """Remark under the table on reading its figures."""
    order: str = "value"
    """Column that the table is sorted by, largest first."""
    summary: str = ""
    """Name of the mean over items for everybody, in texts and pages of `compare`; empty if there is no such mean."""
    better: Literal[-1, 0, 1] = -1
    """Direction: 1 if larger is better, -1 if smaller is, 0 if neither."""

    def __call__(
        self, real: Any, synthetic: Any, schema: Schema | str | Path, by: By = None, *, few: int = FEW
    ) -> pd.DataFrame:
        """Frame of the score of two tables: for each item, a row for each declared group and one for everybody.

        Args:
            real: The private table: a frame, an Arrow table or a path.
            synthetic: The release.
            schema: The schema of both, or its path.
            by: Columns whose crossing makes the groups; None for everybody alone.
            few: Groups with fewer rows in either table are `small`.

        Raises:
            UsageError: A table or the schema cannot be read, or `by` names no column of it.
        """
        return self.of(Pair.of(real, synthetic, schema, by, few))

    def overall(self, frame: pd.DataFrame, by: Sequence[str], few: int = FEW) -> pd.DataFrame:
        """Frame of the mean over items in `frame`, made by this score: a row a group of `by`, then everybody.

        Groups below `few` rows are small. It has no interval, unless there is one item alone: then the frame is
        returned unchanged.
        """
        keys = ["scope", *by]
        if not frame.duplicated(keys).any():
            return frame
        parts = frame.groupby(keys, sort=False, dropna=False)
        found = parts[["n", "n_synthetic"]].min().assign(value=parts["value"].mean(), low=math.nan, high=math.nan)
        rows = found[["n", "n_synthetic"]].min(axis=1)
        found["status"] = statuses(found["value"].to_numpy(float), rows.to_numpy(), few)
        return stamped(found.astype({"status": "string"}).reset_index())


def declared() -> tuple[RowScore, ...]:
    """Tuple of all RowScores that are declared, in the order of their files' names; their modules are imported."""
    return _imported(tuple(scores.__path__))


def with_mean() -> dict[str, RowScore]:
    """Mapping from name to `RowScore`, of those that `compare` has: those with a mean over items."""
    return {score.name: score for score in declared() if score.summary}


def names() -> tuple[str, ...]:
    """Tuple of the names of all declared scores, read from the files' source; none is imported."""
    return tuple(_homes(tuple(scores.__path__)))


def by_name(name: str) -> RowScore | None:
    """Return the RowScore that is declared by this name, importing no other's module; None if there is none."""
    home = _homes(tuple(scores.__path__)).get(name)
    return None if home is None else _score(home)


@lru_cache(maxsize=8)
def _imported(folders: tuple[str, ...]) -> tuple[RowScore, ...]:
    return tuple(map(_score, _homes(folders).values()))


def _score(module: str) -> RowScore:
    found: RowScore = import_module(f"{scores.__name__}.{module}").SCORE
    return found


@lru_cache(maxsize=8)
def _homes(folders: tuple[str, ...]) -> dict[str, str]:
    """Mapping from a score's name to its module's, read from the files in `folders`, paths; none is imported."""
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.py"))]
    return {name: file.stem for file in files for name in _named(file.read_text(encoding="utf-8"))}


def _named(source: str) -> Iterator[str]:
    """Yield the name in `SCORE = RowScore(name="...")` if the source text of a module has that line; else none."""
    if "\nSCORE = " not in source:
        return
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SCORE":
            keys = node.value.keywords if isinstance(node.value, ast.Call) else []
            yield from (str(ast.literal_eval(key.value)) for key in keys if key.arg == "name")
