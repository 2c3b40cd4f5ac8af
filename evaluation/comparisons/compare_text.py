"""Comparison in short: every setting at every epsilon, and the differences between pairs of settings."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.evaluation.comparisons.findings import TESTS, by_epsilon, pairs_figure
from stratsynth.evaluation.comparisons.numbers import numbers_sections, numbers_summary
from stratsynth.evaluation.comparisons.roads import words as roads_in_words
from stratsynth.evaluation.report import BANNER
from stratsynth.evaluation.scores.declared import with_mean
from stratsynth.evaluation.scores.parity import PARITY
from stratsynth.evaluation.tables import EVERYBODY, GROUP, STAMP
from stratsynth.files.atomic import read_json
from stratsynth.progress import bar, wanted
from stratsynth.report.page import Page, Section

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

WORDS = {
    "workload_error": "Error: mean L1 distance (0 to 2) of the {k}-way marginals, everybody",
    "parity_means": "Parity error of the means",
    "parity_marginals": "Parity error of the {k}-way marginals",
    "accuracy:boosting": "Accuracy of boosted trees trained on the release, on the hold-out",
    "accuracy:direct": "Accuracy of predictors without a table, on the hold-out",
    "auc:boosting": "Area under the ROC curve of boosted trees trained on the release, on the hold-out",
    "f1:boosting": "F1 of boosted trees trained on the release, on the hold-out",
    "mean_absolute_error:boosting": "Mean absolute error of boosted trees trained on the release, on the hold-out",
}
"""Titles of the metrics that a page shows, beside the scores that declare their own."""


def titles(k: int) -> dict[str, str]:
    """Return a mapping from each metric that a page shows to its title, in which `k` is the width of marginals."""
    own = {metric: words.format(k=k) for metric, words in WORDS.items()}
    return own | {metric: score.summary for metric, score in with_mean().items()}


@contextlib.contextmanager
def progress(shown: bool | None = None) -> Iterator[Callable[[int, int], None] | None]:
    """Context with a bar that has the time left, if `shown` (None: on a terminal, in a notebook).

    It gives the bar's tick, a function of the numbers done and in all, or None without a bar.
    """
    if not wanted(shown):
        yield None
        return
    with bar("fits", slow=True) as tick:
        yield tick


def comparison_summary(frame: pd.DataFrame, folder: Path) -> Page:
    """Return a terminal's Page on a grid's `frame` of scores: settings by epsilon, differences, `folder`'s files."""
    facts, differences = read_json(folder / "comparison.json"), _paired(folder)
    times = "once" if facts["repetitions"] == 1 else f"{facts['repetitions']} times"
    lead = [f"{facts['cells']:,} fits: every setting {times}, each with noise of its own."]
    if facts["charged"] is not None:
        lead.append("A choice of setting by these scores uses private rows, and no budget was charged for it.")
    errors = [
        by_epsilon(here, f"{title}; mean over repetitions, and 95 % interval", None, ends=True)
        for metric, title in titles(facts["scores"]["k"]).items()
        if len(here := _overall(frame[frame["metric"] == metric]))
    ]
    where = f"To read: {folder / 'report.html'}. Every figure is in comparison.parquet, paired.parquet and CSV."
    sections = [
        *numbers_sections(frame),
        Section("errors", "Every setting", figures=errors),
        *_differences(differences, facts),
        *_roads(folder),
        Section("files", "", text=[where]),
    ]
    private = frame.attrs["stamp"] == STAMP
    title = "A comparison" if private else f"{frame.attrs['stamp']}."
    return Page(title, lead=lead, sections=sections, internal=BANNER if private else None)


def document(frame: pd.DataFrame, folder: Path) -> str:
    """Return a JSON text on a comparison's tidy `frame` and the files in its `folder`, for programs.

    It has the stamp, facts, errors of numbers, paired differences but those of single groups, and names of files.
    """
    facts, differences = read_json(folder / "comparison.json"), _paired(folder)
    overall = differences[differences["scope"] != GROUP]
    files = sorted(str(path) for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    found = {
        "stamp": frame.attrs["stamp"],
        "facts": facts,
        "numbers": numbers_summary(frame),
        "paired": json.loads(overall.drop(columns="stamp").to_json(orient="records")),
        "files": files,
    }
    return json.dumps(found, indent=1, ensure_ascii=False)


def _paired(folder: Path) -> pd.DataFrame:
    import pandas as pd

    return pd.read_parquet(folder / "paired.parquet")


def _overall(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows about everybody of a frame of one metric; of a parity error, those of scope "parity"."""
    wanted = PARITY if frame["metric"].str.startswith("parity").all() else EVERYBODY
    return frame[frame["scope"] == wanted]


def _differences(differences: pd.DataFrame, facts: Mapping[str, Any]) -> Iterator[Section]:
    """Yield a section on the frame `differences` of paired tests; none if no pair is left.

    Its pairs are those that were asked for by `facts` (comparison.json), or otherwise differ in one thing.
    """
    near = differences if facts["pairs"] is not None else differences[differ_in_one_thing(differences, facts["bases"])]
    figures = []
    for metric, title in titles(facts["scores"]["k"]).items():
        here = near[near["metric"] == metric]
        if len(here):
            groups = here[here["scope"] == GROUP]
            sure = f"In single groups {(groups['verdict'] != '').sum():,} of {len(groups):,} have a verdict"
            note = f"{sure}: paired.csv says which." if len(groups) else ""
            figures.append(pairs_figure(_overall(here), f"{title}, first minus second", note))
    which = "that were asked for" if facts["pairs"] is not None else "that differ in one thing"
    text = f"Between settings {which}. {TESTS}"
    if figures:
        yield Section("differences", "Differences over repetitions", text=[text], figures=figures)


def _roads(folder: Path) -> Iterator[Section]:
    """Yield one section on the best kind of road to a prediction; none if the folder has no roads.parquet."""
    file = folder / "roads.parquet"
    if file.is_file():
        import pandas as pd

        yield Section(
            "roads", "Roads to a prediction, audited on the hold-out", text=roads_in_words(pd.read_parquet(file))
        )


def differ_in_one_thing(differences: pd.DataFrame, bases: Mapping[str, str]) -> NDArray[np.bool_]:
    """Return a mask of the rows of the frame `differences` whose two settings differ in one thing.

    That is mechanism, strata, or pooling: `bases` maps a pooled mechanism's label to that of its base.
    """
    keys = ("first_mechanism", "second_mechanism", "first_stratification", "second_stratification")
    rows = zip(*(differences[key].astype(str) for key in keys), strict=True)
    return np.array([a == b or s == t or bases.get(a) == b or bases.get(b) == a for a, b, s, t in rows], bool)
