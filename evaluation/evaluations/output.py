"""INTERNAL. Evaluation as files: CSV and Parquet for each frame, all in one JSON, and a page for readers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from stratsynth.data.draft import refuse_release_folder
from stratsynth.errors import UsageError
from stratsynth.evaluation.tables import STAMP
from stratsynth.files.atomic import new_folder, write_text
from stratsynth.report.html import render

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.report.page import Page

NOTICE = "INTERNAL.txt"


def refuse_output(folder: str | Path) -> None:
    """Raise UsageError for a path `folder` of scores that lies in a release, is a file, or is a folder not empty."""
    refuse_release_folder(folder)
    folder = Path(folder)
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UsageError(f"{folder} exists already; name a new folder.")


class Scores(Protocol):
    """Scores to write: of a release, or of predictions."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """Mapping of names to sizes and settings, as plain values."""

    def frames(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield (name, frame) for every score of this evaluation."""

    def page(self, name: str, certificate: Mapping[str, Any] | None) -> Page:
        """Return the Page for readers, on which the release is called `name`.

        `certificate` is its certificate, None for none.
        """


def write(
    evaluation: Scores,
    folder: str | Path,
    *,
    called: str = "this release",
    certificate: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Write the frames, JSON and page of an evaluation, `Scores`, into the new `folder`, all or nothing, stamped.

    Return the list of paths. `called` is the release's name in report.html; `certificate` is that of the release, a
    mapping, or None.
    """
    refuse_output(folder)
    folder = Path(folder).absolute()  # what refuse_output said of it holds whatever the caller does next
    with new_folder(folder) as part:
        write_text(part / NOTICE, f"{STAMP}.\nNothing here may lie in a release.\n")
        for name, frame in evaluation.frames():
            marked = _marked(frame)
            marked.to_csv(part / f"{name}.csv", index=False, lineterminator="\n")
            marked.to_parquet(part / f"{name}.parquet", index=False)
        write_text(part / "evaluation.json", json.dumps(document(evaluation), allow_nan=False))
        write_text(part / "report.html", render(evaluation.page(called, certificate)))
    return sorted(folder.iterdir())


def document(evaluation: Scores) -> dict[str, Any]:
    """Return a dict for JSON of an evaluation, `Scores`: "INTERNAL", True; "facts"; "frames", a mapping by name.

    A frame is a mapping of its "columns", a list of names, its "rows", a list of lists, and its "attrs". Null for NaN,
    infinity and None.
    """
    frames = {
        name: {"columns": list(frame.columns), "rows": _rows(frame), "attrs": dict(frame.attrs)}
        for name, frame in evaluation.frames()
    }
    return {"INTERNAL": True, "facts": dict(evaluation.facts), "frames": frames}


def _marked(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a copy of the frame with a column `stamp`, "INTERNAL" in each row, where no copying loses it."""
    return frame.assign(stamp="INTERNAL")


def _rows(frame: pd.DataFrame) -> list[list[Any]]:
    """Return a list of the frame's rows, each a list of plain values for JSON."""
    columns = [[_plain(value) for value in frame[name].astype(object)] for name in frame.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    import pandas as pd

    if value is None or value is pd.NA or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value.item() if hasattr(value, "item") else value
