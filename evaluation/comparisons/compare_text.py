"""A comparison in a page of text: every setting at every epsilon, and the differences between pairs of settings."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.evaluation.comparisons.findings import word
from stratsynth.evaluation.comparisons.paired import BASELINE, ENOUGH, mean_interval, setting_name
from stratsynth.evaluation.comparisons.roads import words as roads_in_words
from stratsynth.evaluation.report.text import aligned, shown
from stratsynth.evaluation.scores.declared import with_mean
from stratsynth.evaluation.scores.parity import PARITY
from stratsynth.evaluation.tables import EVERYBODY, GROUP
from stratsynth.files.whole import read_json
from stratsynth.progress import bar, wanted

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
"""The metrics that a page shows, beside those that declare themselves."""
PAIRS = 20
"""The largest number of pairs of settings shown for each metric; the files have all."""


def titles(k: int) -> dict[str, str]:
    """The title of each metric that a page shows; `k` is the number of columns of a marginal."""
    own = {metric: words.format(k=k) for metric, words in WORDS.items()}
    return own | {metric: score.summary for metric, score in with_mean().items()}


@contextlib.contextmanager
def progress(shown: bool | None = None) -> Iterator[Callable[[int, int], None] | None]:
    """A bar with the time that is left, as asked, and by default on a terminal and in a notebook."""
    if not wanted(shown):
        yield None
        return
    with bar("fits", slow=True) as tick:
        yield tick


def text(frame: pd.DataFrame, folder: Path) -> str:
    """The page."""
    facts, differences = read_json(folder / "comparison.json"), _paired(folder)
    cells, times = facts["cells"], facts["repetitions"]
    parts = [f"{frame.attrs['stamp']}.\n{cells:,} fits: every setting {_times(times)}, each with noise of its own."]
    if facts["charged"] is not None:
        parts[0] += (
            "\nA setting that is chosen by these scores has learned from private rows, for which no budget paid."
        )
    for metric, title in titles(facts["scores"]["k"]).items():
        here = _overall(frame[frame["metric"] == metric])
        if len(here):
            parts.append("\n".join([f"{title}; mean over repetitions, and 95 % interval:", *_settings(here)]))
    parts += [_said(differences, facts), _roads(folder)]
    parts.append(f"To read: {folder / 'report.html'}. Every figure is in comparison.parquet, paired.parquet and CSV.")
    return "\n\n".join(part for part in parts if part)


def document(frame: pd.DataFrame, folder: Path) -> str:
    """The same as JSON: facts, all differences that are not of single groups, the files."""
    facts, differences = read_json(folder / "comparison.json"), _paired(folder)
    overall = differences[differences["scope"] != GROUP]
    files = sorted(str(path) for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    found = {
        "stamp": frame.attrs["stamp"], "facts": facts,
        "paired": json.loads(overall.drop(columns="stamp").to_json(orient="records")), "files": files,
    }  # fmt: skip
    return json.dumps(found, indent=1, ensure_ascii=False)


def _paired(folder: Path) -> pd.DataFrame:
    import pandas as pd

    return pd.read_parquet(folder / "paired.parquet")


def _overall(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that are about everybody: those of parity error add up all groups."""
    wanted = PARITY if frame["metric"].str.startswith("parity").all() else EVERYBODY
    return frame[frame["scope"] == wanted]


def _settings(frame: pd.DataFrame) -> list[str]:
    """A line for each setting, a column for each epsilon; then the baselines."""
    own, base = frame[frame["stratification"] != BASELINE], frame[frame["stratification"] == BASELINE]
    epsilons = sorted(set(own["epsilon"]))
    rows = [["", *[f"epsilon {epsilon:g}" for epsilon in epsilons]]]
    for (mechanism, stratification), part in own.groupby(["mechanism", "stratification"], sort=False):
        cells = [part[part["epsilon"] == epsilon]["value"].to_numpy(float) for epsilon in epsilons]
        name = setting_name(str(mechanism), str(stratification))
        rows.append([f"  {name}", *[_ends(*mean_interval(values)) for values in cells]])
    lines = aligned(rows)
    known = [
        f"{row['mechanism']} {shown(row['value'])}" for row in base.to_dict("records") if row["value"] == row["value"]
    ]
    return [*lines, f"  without privacy: {', '.join(known)}"] if known else lines


def _ends(mean: Any, low: Any, high: Any) -> str:
    ends = "" if np.isnan(low) else f" ({shown(low)} to {shown(high)})"
    return shown(mean) + ends


def _said(differences: pd.DataFrame, facts: Mapping[str, Any]) -> str:
    """The difference of pairs of settings for everybody, and in how many groups there is a verdict.

    Of pairs that were asked for all, otherwise those that differ in one thing.
    """
    near = differences if facts["pairs"] is not None else differences[differ_in_one_thing(differences, facts["bases"])]
    parts = []
    for metric, title in titles(facts["scores"]["k"]).items():
        here = near[near["metric"] == metric]
        if not len(here):
            continue
        lines = [f"{title}, first minus second:", *_pairs(_overall(here))]
        groups = here[here["scope"] == GROUP]
        if len(groups):
            sure = (groups["verdict"] != "").sum()
            lines.append(f"  in single groups {sure:,} of {len(groups):,} have a verdict: paired.csv says which.")
        parts.append("\n".join(lines))
    if not parts:
        return ""
    which = "that were asked for" if facts["pairs"] is not None else "that differ in one thing"
    head = (
        f"Differences over repetitions, with 95 % intervals, between settings {which}. A word says what the\n"
        "first is where the difference is beyond chance (p below .05, all tests of a metric allowed for by Holm)."
    )
    if facts["repetitions"] < ENOUGH:
        head += f"\nThere are no verdicts from fewer than {ENOUGH} repetitions; [compare] seeds sets their number."
    return "\n\n".join([head, *parts])


def _roads(folder: Path) -> str:
    """Which road to a prediction is better, where several kinds were compared."""
    file = folder / "roads.parquet"
    if not file.is_file():
        return ""
    import pandas as pd

    return "\n".join(["Roads to a prediction, audited on the hold-out:", *roads_in_words(pd.read_parquet(file))])


def differ_in_one_thing(differences: pd.DataFrame, bases: Mapping[str, str]) -> NDArray[np.bool_]:
    """True for pairs of settings that differ in one thing: the strata, the mechanism, or that the one is pooled."""
    keys = ("first_mechanism", "second_mechanism", "first_stratification", "second_stratification")
    rows = zip(*(differences[key].astype(str) for key in keys), strict=True)
    return np.array([a == b or s == t or bases.get(a) == b or bases.get(b) == a for a, b, s, t in rows], bool)


def _pairs(overall: pd.DataFrame) -> list[str]:
    """A line for each pair of settings, a column for each epsilon."""
    epsilons = sorted(set(overall["epsilon"]))
    keys = ["first_mechanism", "first_stratification", "second_mechanism", "second_stratification"]
    rows = [["", *[f"epsilon {epsilon:g}" for epsilon in epsilons]]]
    for names, part in overall.groupby(keys, sort=False):
        first, second = setting_name(str(names[0]), str(names[1])), setting_name(str(names[2]), str(names[3]))
        cells = {row["epsilon"]: _difference(row, first) for row in part.to_dict("records")}
        rows.append([f"  {first} - {second}", *[cells.get(epsilon, "-") for epsilon in epsilons]])
    hidden = len(rows) - 1 - PAIRS
    return [*aligned(rows[: PAIRS + 1]), *([f"  ... and {hidden} more pairs in paired.csv."] if hidden > 0 else [])]


def _difference(row: Mapping[Hashable, Any], first: str) -> str:
    return f"{_ends(row['difference'], row['low'], row['high'])} {word(str(row['verdict']), first)}".rstrip()


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
