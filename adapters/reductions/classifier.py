"""Predictor of the reductions approach: linear classifiers with weights, one of which is drawn for each row.

Constraints on rates hold for the mixture, as means over its draws, and seldom for any one of its classifiers. A
prediction therefore needs a seed; the probabilities are exact means over all draws. The deterministic variant is the
one classifier whose noisy goal was the smallest: its own losses are stated beside those of the mixture.

Squared and log losses are of the probability 1 / (1 + exp(-x . theta)) that each classifier gives, and those of the
mixture are means over its draws. The mean of these probabilities is a prediction too. Its own squared loss is no larger
than the mixture's, since (p - y)^2 is convex in p; nor is its log loss, where no classifier's reaches the clip.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stratsynth.adapters.predictors.designed import Designed
from stratsynth.errors import ReleaseError, UsageError
from stratsynth.models import Codes, State
from stratsynth.questions import Coded
from stratsynth.schema import Numeric

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from stratsynth.report.page import Section
    from stratsynth.schema import Schema
    from stratsynth.strata import StratumPath

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RandomisedClassifier(Designed):
    """Linear classifiers of a categorical column, and the probability with which each decides."""

    kind: ClassVar[str] = "randomised_classifier"
    schema: Schema
    design: Coded
    target: str
    thetas: Floats
    """Coefficients: one row a classifier, one column a feature; the second level is predicted where x . theta > 0. For
    more than two levels a third axis, one entry a level: that of the largest x . theta is predicted."""
    weights: Floats
    """Probability of each classifier; they add up to 1."""
    best: int
    """Number of the classifier whose noisy goal was the smallest."""
    deterministic: bool = False
    """True if that classifier decides alone."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Public figures of the fit, and noisy rates of the classifier."""
    seed: int | None = None
    """Seed of the classifier drawn for each row; never stored."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Tuple of the names of the design's columns, or of the schema's first column if there are none."""
        return tuple(n for n in self.schema.names if n in self.design.columns) or (self.schema.names[0],)

    def seeded(self, seed: int) -> RandomisedClassifier:
        """Return a `RandomisedClassifier` equal to this one that draws each row's classifier by this seed."""
        return replace(self, seed=seed)

    def without_chance(self) -> RandomisedClassifier:
        """Return a `RandomisedClassifier` that always decides by one classifier, whose noisy goal was the smallest.

        Its own losses are in `facts["deterministic"]`; it need not satisfy the mixture's constraints.
        """
        return replace(self, deterministic=True)

    def _logits(self, rows: Codes) -> Floats:
        """Return an array, rows x classifiers: features of each row times each classifier's coefficients.

        `rows` maps columns to arrays of level numbers. Of more than two levels they are a third axis.
        """
        found: Floats = np.tensordot(self.featured(rows), self.thetas, axes=(1, 1))
        return found

    def mean_probability(self, rows: Codes) -> Floats:
        """Return an array, an entry a row: the classifiers' mean probability of the second level.

        `rows` maps columns to arrays of level numbers. The mean is by weights; without chance, the best classifier's.
        Squared and log losses are of these.
        """
        each = 1 / (1 + np.exp(-np.clip(self._logits(rows), -700, 700)))
        found: Floats = each[:, self.best] if self.deterministic else np.minimum(each @ self.weights, 1.0)
        return found

    def probabilities(self, rows: Codes) -> Floats:
        """Return an array, rows x levels: the probability with which each level is predicted for a row.

        `rows` maps columns to arrays of level numbers. Without chance it is 0 or 1.
        """
        logits = self._logits(rows)
        weights = np.eye(len(self.weights))[self.best] if self.deterministic else self.weights
        if logits.ndim == 2:
            second = np.minimum((logits > 0) @ weights, 1.0)
            return np.column_stack([1 - second, second])
        said, every = logits.argmax(axis=2), range(logits.shape[2])  # rows x classifiers
        return np.column_stack([np.minimum((said == level) @ weights, 1.0) for level in every])

    def predict(self, rows: Codes) -> NDArray[Any]:
        """Return an array of texts, the target's level for each row of `rows`, {column: array}, by a classifier drawn.

        Raises:
            UsageError: The predictor is randomised and has no seed.
        """
        return self._drawn(self.probabilities(rows))

    def _drawn(self, chances: Floats) -> NDArray[Any]:
        """Return an array of levels, a text a row, drawn by the seed from `chances`, rows x levels.

        A deterministic predictor draws nothing and needs no seed; else UsageError without one.
        """
        if self.seed is None and not self.deterministic:
            raise UsageError(
                "predict: this predictor draws one of its classifiers for each row, so it needs a seed (--seed N, or "
                "seed=N); for one without chance, fit with deterministic = true."
            )
        drawn = (
            np.full(len(chances), 0.5) if self.deterministic else np.random.default_rng(self.seed).random(len(chances))
        )
        # levels from the last on, so that of two the second is drawn where the number is below its probability
        borders = np.cumsum(chances[:, :0:-1], axis=1)
        passed = (drawn[:, None] >= borders).sum(axis=1)
        found: NDArray[Any] = np.array(self.schema.levels(self.target))[chances.shape[1] - 1 - passed]
        return found

    def table(self, rows: Codes) -> Mapping[str, NDArray[Any]]:
        """Return {output column: array, an entry a row}: `prediction`, and `probability=LEVEL` for each level.

        `rows` maps columns to arrays of level numbers. `mean_probability` is there for goals of losses; see
        `mean_probability`.
        """
        chances = self.probabilities(rows)
        named = zip(self.schema.levels(self.target), chances.T, strict=True)
        return {
            "prediction": self._drawn(chances),
            **{f"probability={level}": chance for level, chance in named},
            **({"mean_probability": self.mean_probability(rows)} if self.facts.get("measures") else {}),
        }

    def product(self, rows: pa.Table | None) -> Mapping[str, pa.Table]:
        """Return a mapping from name to Arrow table, of group `rates` and `goals`, if the facts have them.

        `rows` is unused.
        """
        import pyarrow as pa

        return {name: pa.Table.from_pylist(self.facts[name]) for name in ("rates", "goals") if self.facts.get(name)}

    def sections(self, named: Callable[[str], str]) -> Sequence[Section]:
        """Return the page's one section on objective and constraints; `named` maps a group's label to its name."""
        from stratsynth.adapters.reductions.page import reductions_section

        return [reductions_section(self, named)]

    def foretell(self, path: StratumPath) -> str:
        """Return a plan's line, at any path: the steps, and the noise in rates of the smallest cell.

        The text is empty without facts.
        """
        return str(self.facts.get("plan", ""))

    def state(self) -> State:
        """Return the model for a file, a `State`: arrays `thetas` (coefficients) and `weights`, and facts.

        Facts: columns, reference, target, best, deterministic, fit.
        """
        facts = {
            "columns": list(self.design.columns),
            "reference": [list(pair) for pair in self.design.reference],
            "target": self.target,
            "best": self.best,
            "deterministic": self.deterministic,
            "fit": dict(self.facts),
        }
        return State(facts, {"thetas": self.thetas, "weights": self.weights})

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> RandomisedClassifier:
        """Return the `RandomisedClassifier`, in a schema, of a stored `State`: arrays by name, and facts.

        ReleaseError for such as do not fit the schema or each other.
        """
        facts, thetas, weights = state.facts, *(np.asarray(state.arrays[name]) for name in ("thetas", "weights"))
        design = Coded(tuple(facts["columns"]), reference=tuple((str(c), str(v)) for c, v in facts["reference"]))
        target, best, alone, fit = facts["target"], facts["best"], facts["deterministic"], facts["fit"]
        if target not in schema.columns or isinstance(schema.column(target), Numeric) or schema.size(target) < 2:
            raise ReleaseError("model: the classifier's target is damaged.")
        design.check("model", schema)
        size, levels = len(design.names(schema)), schema.size(target)
        shape = (size,) if levels == 2 else (size, levels)
        sound = thetas.ndim >= 2 and thetas.shape[1:] == shape and len(thetas) >= 1
        if not sound or thetas.dtype != np.float64 or not np.isfinite(thetas).all():
            raise ReleaseError("model: the classifiers are damaged.")
        fits = (
            weights.shape == (len(thetas),) and weights.dtype == np.float64 and np.all((weights >= 0) & (weights <= 1))
        )
        if not fits or abs(float(weights.sum()) - 1) > 1e-9:
            raise ReleaseError("model: the classifiers' weights are damaged.")
        if type(best) is not int or not 0 <= best < len(thetas) or type(alone) is not bool or not isinstance(fit, dict):
            raise ReleaseError("model: the classifier's facts are damaged.")
        return cls(schema, design, target, thetas, weights, best, alone, fit)
