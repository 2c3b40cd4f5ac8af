"""INTERNAL. Results of a comparison, beyond one error: models trained on releases, fairness, parity, paired tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.evaluation.comparisons.paired import BASELINE, ENOUGH, mean_interval, setting_name
from stratsynth.evaluation.report.figures import listing
from stratsynth.evaluation.scores.declared import with_mean
from stratsynth.evaluation.scores.parity import PARITY
from stratsynth.evaluation.tables import EVERYBODY
from stratsynth.report.numbers import several, short
from stratsynth.report.page import Cell, Figure, Section, Value

if TYPE_CHECKING:
    import pandas as pd

LEARNED = {
    "accuracy": "Accuracy",
    "auc": "Area under the ROC curve",
    "f1": "F1 of the positives",
    "mean_absolute_error": "Mean absolute error",
    "r2": "Share of the variance that is explained (r2)",
}
"""Scores of trained models, for everybody."""
PARITIES = {"parity_means": "Parity error of the means", "parity_marginals": "Parity error of the marginals"}
ERRORS = {"workload_error": "Workload error"}
"""Metrics whose tests are shown; the k-marginal score is left out, being the same distance on another scale."""
MOST = 60
"""Largest number of tests shown of each metric, smallest p first; paired.csv has all."""


def findings(frame: pd.DataFrame, tests: pd.DataFrame) -> list[Section]:
    """Return a list of the page's Sections on further results, without those that have no figures.

    They are from the tidy `frame` and `tests`, the frame of paired tests.
    """
    sections = [
        ("use", "What the releases are good for", _used(frame), _USE),
        ("fair", "How equal the predictions are", _between(frame), _FAIR),
        ("parity", "Parity error", _parity(frame), _PARITY),
        ("scores", "Further scores", _declared(frame), _SCORES),
        ("tests", "Which differences are beyond chance", _tests(tests), TESTS),
    ]
    made = [(name, title, list(figures), words) for name, title, figures, words in sections]
    return [Section(name, title, text=[words], figures=figures) for name, title, figures, words in made if figures]


_USE = (
    "Models trained on each release, and tested on real people that nothing was fitted to. “Real rows” are models "
    "trained on the real rows themselves, which are not private."
)
_FAIR = (
    "Differences of the models' rates between the groups that they serve best and worst, by fairlearn's definitions: "
    "0 is equal; of ratios, 1. Groups too small for a rate are left out."
)
_PARITY = (
    "Sum of the errors of all groups and, weighted by 1 / number of groups, the error of everybody (Definition 10). "
    "Lower is better."
)
_SCORES = "Scores for everybody that compare the rows of each release with the real ones."
TESTS = (
    "Differences of two settings, paired by repetition: first minus second, with a 95 % interval by Student's t. “p” "
    "is of the paired t test, and “p (Holm)” allows for all tests of the same metric and scope. There is a verdict "
    f"where it is below .05, over {ENOUGH} repetitions or more. Tests and intervals are about noise and drawing, not "
    "about other rows."
)


def _used(frame: pd.DataFrame) -> Iterator[Figure]:
    """Yield a Figure for each metric of trained models in the tidy frame: everybody's mean by epsilon."""
    here = frame[frame["scope"] == EVERYBODY]
    for metric, words in LEARNED.items():
        part = here[here["metric"].str.startswith(f"{metric}:")]
        part = part[~part["metric"].str.endswith(":constant")]
        if len(part):
            yield by_epsilon(part, words, "model")


def _between(frame: pd.DataFrame) -> Iterator[Figure]:
    """Yield a Figure for each difference between groups in the tidy frame: its mean by epsilon."""
    part = frame[(frame["scope"] == "between") & ~frame["metric"].str.endswith(":constant")]
    names = part["metric"].str.split(":").str[0]
    for metric in dict.fromkeys(names):
        yield by_epsilon(part[names == metric], str(metric).replace("_", " ").capitalize(), "model")


def _parity(frame: pd.DataFrame) -> Iterator[Figure]:
    """Yield a Figure for each parity error in the tidy frame: its mean by epsilon."""
    for metric, words in PARITIES.items():
        part = frame[(frame["metric"] == metric) & (frame["scope"] == PARITY)]
        if len(part):
            yield by_epsilon(part, words, None)


def _declared(frame: pd.DataFrame) -> Iterator[Figure]:
    """Yield a Figure for each declared score in the tidy frame: everybody's mean by epsilon."""
    for metric, score in with_mean().items():
        part = frame[(frame["metric"] == metric) & (frame["scope"] == EVERYBODY)]
        if len(part):
            yield by_epsilon(part, score.summary, None)


def by_epsilon(part: pd.DataFrame, title: str, item: str | None, *, ends: bool = False) -> Figure:
    """Return a Figure, a table titled `title`, of one metric's rows `part` of the tidy frame: mean by epsilon.

    It has a line a setting and model, baselines last. `item` heads the models' column, None without models; `ends` adds
    intervals.
    """
    own, base = part[part["stratification"] != BASELINE], part[part["stratification"] == BASELINE]
    epsilons = sorted(set(own["epsilon"]))
    rows: list[list[Value]] = []
    for keys, some in own.groupby(["metric", "mechanism", "stratification"], sort=False):
        metric, mechanism, stratification = map(str, keys)
        means = [_mean(some[some["epsilon"] == epsilon], ends=ends) for epsilon in epsilons]
        rows.append([*_item(metric, item), setting_name(mechanism, stratification), *means])
    for keys, some in base.groupby(["metric", "mechanism"], sort=False):
        value = _mean(some)
        if value == value:  # noqa: PLR0124 - NaN
            name = f"{str(keys[1]).strip('()')}, not private"
            rows.append([*_item(str(keys[0]), item), name, *[value] * len(epsilons)])
    columns = [*([(item, "text")] if item else []), ("setting", "text")]
    return listing(
        title,
        "",
        [*columns, *((f"epsilon {epsilon:g}", "number") for epsilon in epsilons)],
        rows,
        f"Means over {several(int(own['seed'].nunique()), 'repetition')}; every single one is in comparison.csv.",
    )


def _item(metric: str, item: str | None) -> list[str]:
    return [metric.partition(":")[2]] if item else []


def _mean(part: pd.DataFrame, *, ends: bool = False) -> float | Cell:
    """Return the mean, a number, NaN if unknown, of the column `value` of the frame `part`.

    With `ends` a Cell with its 95 % interval, if it has one.
    """
    mean, low, high = (float(end) for end in mean_interval(part["value"].to_numpy(float)))
    return Cell(f"{short(mean)} ({short(low)} to {short(high)})", mean) if ends and np.isfinite(low) else mean


def _tests(tests: pd.DataFrame) -> Iterator[Figure]:
    """Yield a Figure for each metric shown, from a frame of paired tests, `tests`, without those of single groups."""
    overall = tests[tests["scope"] != "group"]
    for metric in dict.fromkeys(overall["metric"]):
        if (words := _words(str(metric))) is not None:
            part = overall[overall["metric"] == metric]
            yield pairs_figure(part, words)


def _words(metric: str) -> str | None:
    """Return the title of a metric such as `accuracy:boosting` whose tests are shown; None for any other."""
    name, _, model = metric.partition(":")
    if model:
        return f"{LEARNED[name]}: {model}" if name in LEARNED and model == "boosting" else None
    return (ERRORS | PARITIES | {metric: score.summary for metric, score in with_mean().items()}).get(name)


def pairs_figure(part: pd.DataFrame, title: str, note: str = "") -> Figure:
    """Return a Figure, with title and note, of one metric's paired tests, the frame `part`: a line a pair and epsilon.

    The smallest p is first.
    """
    rows = [_test(row) for row in part.sort_values("p_value", kind="stable").head(MOST).to_dict("records")]
    hidden = len(part) - len(rows)
    more = f"{several(hidden, 'test')} with larger p are in paired.csv." if hidden > 0 else ""
    return listing(
        title,
        f"{more} {note}".strip(),
        [
            ("first − second", "text"),
            ("epsilon", "text"),
            ("difference", "number"),
            ("low", "number"),
            ("high", "number"),
            ("times", "number"),
            ("p", "text"),
            ("p (Holm)", "text"),
            ("first is", "text"),
        ],
        rows,
        f"{several(len(part), 'test')}, smallest p first.",
        rest="tests in paired.csv",
    )


def _test(row: Mapping[Any, Any]) -> Sequence[Value]:
    """Return the list of cells of one line on `row`, a mapping of a row of the frame of paired tests.

    They are pair, epsilon, difference, ends, p-values, verdict.
    """
    first = setting_name(row["first_mechanism"], row["first_stratification"])
    second = setting_name(row["second_mechanism"], row["second_stratification"])
    return [
        f"{first} − {second}",
        f"{row['epsilon']:g}",
        *(float(row[name]) for name in ("difference", "low", "high")),
        int(row["repetitions"]),
        spelt(row["p_value"]),
        spelt(row["p_holm"]),
        word(str(row["verdict"]), first) or "–",
    ]


def word(verdict: str, first: str) -> str:
    """Return one word of a verdict such as `mst, vanilla is better`: better, worse, higher or lower.

    It is said of the setting `first`; "" for an empty verdict.
    """
    said = verdict.rpartition(" ")[2]
    if said and not verdict.startswith(f"{first} is "):
        said = {"better": "worse", "higher": "lower"}[said]
    return said


def spelt(p: float) -> str:
    """Return text: the p-value `p` with two digits, `< 0.001` below that, a dash if it is unknown."""
    if np.isnan(p):
        return "–"
    return "< 0.001" if p < 0.001 else short(p, 2)
