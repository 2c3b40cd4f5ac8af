"""INTERNAL. Verdicts on paper 003's claims on synthesizers, in words that follow from the figures of a run.

A difference counts as one where its 95 % interval over repetitions, Student's t, leaves 0 out: each by itself, so that
of twenty true equalities one counts by chance. What is neither more nor less is open, which is no equality.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.evaluation.comparisons.paired import mean_interval
from stratsynth.evaluation.comparisons.roads import roads
from stratsynth.evaluation.scores.parity import PARITY
from stratsynth.evaluation.tables import EVERYBODY
from studies.stratification.authors import BOTH, parity_metric

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

VANILLA = "vanilla"
POOLED = " pooled"
"""The end of the labels of pooled mechanisms."""
LARGE = 100
"""People of a group that is not tiny: its means are known to some tenths of a standard deviation."""
OVER = f" over groups of at least {LARGE} people"
"""The end of the names of parity errors over larger groups only."""
POINTS, RATIO, LOW, HIGH = 0.02, 3.0, 0.1, 1.0
"""The paper's numbers: accuracy lost at epsilon 1 or more; how many times a reduction of 200 % is; small epsilons."""


@dataclass(frozen=True, eq=False)
class Figures:
    """A comparison's values, looked up by metric, setting and epsilon."""

    frame: pd.DataFrame

    @cached_property
    def _places(self) -> Mapping[Any, Any]:
        """Rows of each metric, mechanism, stratification and epsilon."""
        kept = self.frame[["metric", "mechanism", "stratification", "epsilon"]]
        return kept.astype({"metric": str, "mechanism": str, "stratification": str}).groupby(list(kept.columns)).indices

    def _rows(self, metric: str, mechanism: str, stratification: str, epsilon: float) -> pd.DataFrame:
        found: pd.DataFrame = self.frame.iloc[self._places.get((metric, mechanism, stratification, epsilon), [])]
        return found

    def of(self, metric: str, mechanism: str, stratification: str, epsilon: float) -> NDArray[np.float64]:
        """Return one value a repetition, in order; of parity the sum, of a gap the gap, of all others everybody's."""
        if metric.endswith(OVER):
            return self._over_large(self._rows(metric.removesuffix(OVER), mechanism, stratification, epsilon))
        scope = PARITY if metric.startswith("parity") else "between" if metric.partition(":")[0] in GAPS else EVERYBODY
        here = self._rows(metric, mechanism, stratification, epsilon)
        return here[here["scope"] == scope].sort_values("seed")["value"].to_numpy(float)

    def _over_large(self, here: pd.DataFrame) -> NDArray[np.float64]:
        """Definition 10 over the larger groups alone, one value a repetition; a group that a release lacks counts 1."""
        groups = here[(here["scope"] == "group") & (here["n"] >= LARGE)].assign(value=lambda f: f["value"].fillna(1.0))
        everybody = here[here["scope"] == EVERYBODY].set_index("seed")["value"]
        by_seed = groups.groupby("seed")["value"]
        return (by_seed.sum() + everybody / by_seed.size()).dropna().sort_index().to_numpy(float)

    @property
    def epsilons(self) -> list[float]:
        """Epsilons of the releases, ascending."""
        return sorted(e for e in set(self.frame["epsilon"]) if np.isfinite(e))

    @property
    def settings(self) -> list[tuple[str, str]]:
        """Mechanism and stratification of the releases."""
        own = self.frame[self.frame["stratification"] != "(baseline)"]
        pairs = zip(own["mechanism"].astype(str), own["stratification"].astype(str), strict=True)
        return list(dict.fromkeys(pairs))

    def stratified(self, mechanism: str | None = None) -> list[tuple[str, str]]:
        """Settings in strata, of one mechanism or of all; none that is pooled."""
        return [(m, s) for m, s in self.settings if s != VANILLA and not m.endswith(POOLED) and mechanism in (None, m)]


GAPS = (
    "mean_disparity",
    "demographic_parity_ratio",
    "demographic_parity_difference",
    "false_negative_rate_difference",
    "accuracy_difference",
    "equalized_odds_difference",
)
SAID = {
    "accuracy": "accuracy",
    "parity_means": "parity error",
    f"parity_means{OVER}": f"parity error{OVER}",
    "workload_error": "three-way workload error",
    "parity_marginals": "parity error of three-way marginals",
}


@dataclass(frozen=True)
class Tally:
    """Differences that are below 0, above 0, and open."""

    below: int
    above: int
    open: int

    @classmethod
    def of(cls, differences: Sequence[NDArray[np.float64]]) -> Tally:
        """Count the differences by their intervals: below 0, above 0, or open."""
        ends = [mean_interval(difference) for difference in differences if len(difference)]
        below, above = sum(bool(high < 0) for _, _, high in ends), sum(bool(low > 0) for _, low, _ in ends)
        return cls(below, above, len(ends) - below - above)

    @property
    def verdict(self) -> str:
        """Verdict on the claim that all differences are below 0."""
        if not self.below + self.above + self.open:
            return "not tried"
        if not self.above:
            return "holds" if self.below and not self.open else "holds in part" if self.below else "open"
        return "holds in part" if self.below else "does not hold"

    def said(self, less: str, more: str) -> str:
        """Return the numbers in words."""
        return f"{less} in {self.below}, {more} in {self.above}, open in {self.open}"


def claims(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return each claim with its verdict and findings; a claim by epsilon has a line for each."""
    found = Figures(frame)
    return [
        *_accuracy(found),
        *_parity(found),
        *_gem(found),
        *_rank(found),
        *_budget(found),
        *_workload(found),
        *_pooling(found),
    ]


def _line(claim: str, verdict: str, what: str) -> dict[str, Any]:
    return {"claim": claim, "verdict": verdict, "found": what}


def _accuracy(found: Figures) -> Iterator[dict[str, Any]]:
    """Figure 4 and the text beside it."""

    def lost(epsilon: float, allowed: float) -> list[NDArray[np.float64]]:
        return [
            found.of("accuracy:forest", m, VANILLA, epsilon) - found.of("accuracy:forest", m, s, epsilon) - allowed
            for m, s in found.stratified()
        ]

    large = [e for e in found.epsilons if e >= HIGH]
    over = Tally.of([difference for e in large for difference in lost(e, POINTS)])
    worst = max((float(np.mean(d)) + POINTS for e in large for d in lost(e, POINTS) if len(d)), default=np.nan)
    yield _line(
        "From epsilon 1 on, stratifying costs at most 2 points of accuracy",
        over.verdict,
        f"{over.said('less', 'more')}; the largest mean loss is {100 * worst:.1f} points",
    )
    harm = {e: Tally.of(lost(e, 0.0)) for e in found.epsilons if e >= LOW}
    total = Tally(
        sum(t.below for t in harm.values()), sum(t.above for t in harm.values()), sum(t.open for t in harm.values())
    )
    by = "; ".join(f"at {e:g} a loss in {t.above}, a gain in {t.below}, open in {t.open}" for e, t in harm.items())
    verdict = "not tried" if not harm else "does not hold" if total.above else "holds" if total.below else "open"
    yield _line("Stratifying harms accuracy only below epsilon 0.1", verdict, by)


def _parity(found: Figures) -> Iterator[dict[str, Any]]:
    """Figure 5: over the groups that are stratified by; and over the larger ones by sex and race."""
    for mechanism in dict.fromkeys(m for m, _ in found.stratified()):
        for epsilon in found.epsilons:
            for over, metric in _overs():
                pairs = [
                    (found.of(metric(s), m, s, epsilon), found.of(metric(s), m, VANILLA, epsilon))
                    for m, s in found.stratified(mechanism)
                ]
                tally = Tally.of([own - vanilla for own, vanilla in pairs])
                ratios = ", ".join(f"{np.mean(own) / np.mean(vanilla):.2f}" for own, vanilla in pairs if len(own))
                yield _line(
                    f"Stratifying {mechanism} reduces parity error{over}, epsilon {epsilon:g}",
                    tally.verdict,
                    f"{tally.said('less', 'more')}; times vanilla's: {ratios} ({_names(found, mechanism)})",
                )


def _overs() -> tuple[tuple[str, Callable[[str], str]], ...]:
    """Words for the groups that parity error is over, and its metric by what is stratified by: all, and larger ones."""
    return ("", parity_metric), (OVER, lambda _: f"{parity_metric(BOTH)}{OVER}")


def _names(found: Figures, mechanism: str) -> str:
    return ", ".join(s for _, s in found.stratified(mechanism))


def _gem(found: Figures) -> Iterator[dict[str, Any]]:
    """The caption of Figure 5: a reduction of 200 % or more, read as to a third."""
    for epsilon in found.epsilons if ("gem", VANILLA) in found.settings else []:
        for over, metric in _overs():
            times = {}
            for _, s in found.stratified("gem"):
                own, vanilla = (found.of(metric(s), "gem", which, epsilon) for which in (s, VANILLA))
                if len(own) and len(vanilla):
                    times[s] = vanilla.mean() / own.mean()
            all_of, some = all(t >= RATIO for t in times.values()), any(t >= RATIO for t in times.values())
            yield _line(
                f"Vanilla gem's parity error{over} is three times that of gem in strata, or more, epsilon {epsilon:g}",
                "not tried" if not times else "holds" if all_of else "holds in part" if some else "does not hold",
                ", ".join(f"{t:.2f} times by {s}" for s, t in times.items()),
            )


def _rank(found: Figures) -> Iterator[dict[str, Any]]:
    """Yield the best stratified settings, by accuracy of a forest and by parity error over both columns."""
    for epsilon in found.epsilons:
        best = {}
        for metric, sign in (("accuracy:forest", -1), (parity_metric(BOTH), 1), (parity_metric(BOTH) + OVER, 1)):
            means = {
                setting: sign * float(np.mean(values))
                for setting in found.stratified()
                if len(values := found.of(metric, *setting, epsilon))
            }
            if means:
                best[metric] = min(means, key=lambda setting: means[setting])
        said = "gem" if epsilon <= HIGH else "aim"
        firsts = [setting[0] for setting in best.values()]
        held = (
            "not tried"
            if said not in {m for m, _ in found.stratified()}
            else ("holds" if set(firsts) == {said} else "holds in part" if said in firsts else "does not hold")
        )
        yield _line(
            f"Among the stratified, {said} is best at epsilon {epsilon:g}",
            held,
            "; ".join(f"{SAID[m.partition(':')[0]]}: {a} by {s}" for m, (a, s) in best.items()),
        )


def _budget(found: Figures) -> Iterator[dict[str, Any]]:
    """Figure 7, from the smallest epsilon to the largest: gaps shrink, and the ratio of selection rates goes to 1."""
    first, last = found.epsilons[0], found.epsilons[-1]
    for metric, claim, sign in (
        ("mean_disparity", "The error of the largest disparity of means", 1),
        ("demographic_parity_ratio:forest", "The distance of demographic parity from 1", -1),
        ("false_negative_rate_difference:forest", "The largest difference of false-negative rates", 1),
    ):
        ends = []
        for setting in found.settings:
            small, large = (found.of(metric, *setting, epsilon) for epsilon in (first, last))
            if metric == "mean_disparity":  # signed: too narrow or too wide
                small, large = np.abs(small), np.abs(large)
            ends.append(sign * (large - small))
        tally = Tally.of(ends)
        yield _line(f"{claim} shrinks from epsilon {first:g} to {last:g}", tally.verdict, tally.said("less", "more"))


def _workload(found: Figures) -> Iterator[dict[str, Any]]:
    """Figure 9: parity error of the three-way marginals, over sex and race."""
    for mechanism in dict.fromkeys(m for m, _ in found.stratified()):
        for over in ("", OVER):
            tallies = {
                e: Tally.of(
                    [
                        found.of("parity_marginals" + over, m, s, e)
                        - found.of("parity_marginals" + over, m, VANILLA, e)
                        for m, s in found.stratified(mechanism)
                    ]
                )
                for e in found.epsilons
            }
            small = [t for e, t in tallies.items() if e < HIGH]
            total = Tally(sum(t.below for t in small), sum(t.above for t in small), sum(t.open for t in small))
            yield _line(
                f"Below epsilon 1, vanilla {mechanism} has the larger parity error of three-way marginals{over}",
                total.verdict,
                "in strata: " + "; ".join(f"at {e:g} {t.said('less', 'more')}" for e, t in tallies.items()),
            )


def _pooling(found: Figures) -> Iterator[dict[str, Any]]:
    """Not in the paper: strata that learn from everybody, beside strata alone, over the same groups."""
    labels = [(m, s) for m, s in found.settings if m.endswith(POOLED)]
    for epsilon in found.epsilons if labels else []:
        ours = {}
        for metric in ("workload_error", "parity_marginals", "accuracy:forest"):
            sign = -1 if metric.startswith("accuracy") else 1
            ours[metric] = Tally.of(
                [
                    sign * (found.of(metric, m, s, epsilon) - found.of(metric, m.removesuffix(POOLED), s, epsilon))
                    for m, s in labels
                ]
            )
        total = Tally(*(sum(getattr(t, side) for t in ours.values()) for side in ("below", "above", "open")))
        yield _line(
            f"(ours) Pooled strata are better than strata alone, epsilon {epsilon:g}",
            total.verdict,
            "; ".join(f"{SAID[m.partition(':')[0]]}: {t.said('better', 'worse')}" for m, t in ours.items()),
        )


def words(frame: pd.DataFrame, by: Sequence[str]) -> str:
    """The page: verdicts with what was found, and which kind of table is the road to a prediction."""
    from stratsynth.evaluation.comparisons.roads import words as roads_in_words

    labels = {m for m, _ in Figures(frame).settings if m.endswith(POOLED)}
    lines = [f"- {row['claim']}: **{row['verdict']}** ({row['found']})." for row in claims(frame)]
    return "\n".join(
        [
            *lines,
            "",
            "Which table to train on:",
            "",
            *(f"- {line}" for line in roads_in_words(roads(frame, by, labels))),
        ]
    )
