"""The model of a regression: coefficients on a design that the schema defines. Linear, logistic or softmax.

Features are scaled from their public bounds to [-1, 1], and so is a numeric target; coefficients are stored for these,
and shown in the unit of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np

from stratsynth.adapters.predictors.designed import Designed, design_facts, design_of, softmax
from stratsynth.adapters.predictors.moments import Estimated
from stratsynth.errors import ReleaseError, UsageError
from stratsynth.models import Codes, State
from stratsynth.questions import Coded, Design
from stratsynth.schema import Numeric

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

    from stratsynth.report.page import Section
    from stratsynth.schema import Schema

    Floats = NDArray[np.float64]

Link = Literal["linear", "logistic", "softmax"]
LINKS: tuple[Link, ...] = ("linear", "logistic", "softmax")


@dataclass(frozen=True, eq=False)
class Regression(Designed):
    """Linear, logistic or softmax regression of one column by others, its coefficients for scaled features."""

    kind: ClassVar[str] = "regression"
    schema: Schema
    design: Coded
    target: str
    link: Link
    theta: Floats
    """Coefficient of each feature; for `softmax` one row a feature and one column a level of the target."""
    estimated: Estimated | None = None
    """Coefficients by noisy moments with their errors, where a linear or logistic fit bought these."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Public figures of the fit, for readers."""

    def logits(self, rows: Codes) -> Floats:
        """Return the linear predictor of `rows`, {column: array of level numbers}: an array of one entry a row.

        `softmax` has an axis of levels too.
        """
        found: Floats = self.featured(rows) @ self.theta
        return found

    def predict(self, rows: Codes) -> NDArray[Any]:
        """Return an array, an entry a row: the target's mean in its unit, or the text of its likeliest level.

        `rows` maps columns to arrays of level numbers. Means are within the target's bounds.
        """
        logits = self.logits(rows)
        if self.link == "linear":
            column = cast("Numeric", self.schema.column(self.target))
            means: Floats = np.clip(self._middle + logits * self._half(column), column.lower, column.upper)
            return means
        chosen = logits.argmax(axis=1) if self.link == "softmax" else (logits > 0).astype(np.intp)
        found: NDArray[Any] = np.array(self.schema.levels(self.target))[chosen]
        return found

    def probabilities(self, rows: Codes) -> Floats:
        """Return an array, rows x levels of the target: its probabilities for `rows`, {column: array of level numbers}.

        UsageError for a linear model.
        """
        logits = self.logits(rows)
        if self.link == "linear":
            raise UsageError("predict: a linear model has no probabilities.")
        if self.link == "logistic":
            logits = np.column_stack([np.zeros(len(logits)), logits])
        return softmax(logits)

    def table(self, rows: Codes) -> Mapping[str, NDArray[Any]]:
        """Return {output column: array, an entry a row}: `prediction`, and `probability=LEVEL` for each level.

        The latter not for a linear model. `rows` maps columns to arrays of level numbers.
        """
        if self.link == "linear":
            return {"prediction": self.predict(rows)}
        return self.written(rows, self.probabilities(rows))

    @staticmethod
    def _half(column: Numeric) -> float:
        """Return half the distance of a numeric column's bounds."""
        return float(column.upper) / 2 - float(column.lower) / 2

    @property
    def _middle(self) -> float:
        """Middle of the target's bounds, in its unit."""
        column = cast("Numeric", self.schema.column(self.target))
        return float(column.upper) / 2 + float(column.lower) / 2

    def _units(self) -> Floats:
        """Return an array of one factor per feature, which converts its coefficient to the data's unit.

        Coefficients are fitted to features scaled to their bounds.
        """
        whole = self._half(cast("Numeric", self.schema.column(self.target))) if self.link == "linear" else 1.0
        plain = [1.0]
        for name in self.design.columns:
            column = self.schema.column(name)
            size = len(Design((name,), intercept=False).plain(self.schema))
            plain += [self._half(column), *[1.0] * (size - 1)] if isinstance(column, Numeric) else [1.0] * size
        return np.array([whole / np.prod([plain[i] for i in factors]) for factors in self.design.products(self.schema)])

    def coefficients(self, level: float = 0.95) -> pd.DataFrame:
        """Return a pandas DataFrame, one row a feature, for `softmax` a feature and level, in the unit of the data.

        `value` is the coefficient that predictions use. `estimate` is least squares on all records by noisy moments, or
        for `logistic` largest likelihood by noisy Newton steps; a model with another objective or of clipped gradients
        need not agree with it. `std_error` is its error with its parts `noise` (privacy) and `sampling`, and the true
        value lies between `lower` and `upper` with probability `level`. Numbers count from the middle of their bounds:
        the intercept, `1`, is the mean (the log-odds) there, at all reference levels.

        `status`: `ok`; `small`, where the noise is larger than the sampling error; `not_estimable`, where there are no
        moments, or so noisy ones that the formula for their error is invalid.
        """
        import pandas as pd
        from scipy.special import ndtri

        units, names = self._units(), self.design.names(self.schema)
        if self.theta.ndim == 2:
            levels = self.schema.levels(self.target)
            rows = [
                {"feature": name, "level": level, "value": float(self.theta[i, k] * units[i])}
                for i, name in enumerate(names)
                for k, level in enumerate(levels)
            ]
        else:
            rows = [
                {"feature": name, "level": "", "value": float(theta * unit)}
                for name, theta, unit in zip(names, self.theta, units, strict=True)
            ]
        table = pd.DataFrame(rows)
        nothing = np.full(len(table), np.nan)
        width = float(ndtri(0.5 + level / 2))
        if self.estimated is None:
            estimate = noise = sampling = nothing
            status = ["not_estimable"] * len(table)
        else:
            e, known = self.estimated, np.where(self.estimated.sound, 1.0, np.nan)
            estimate, noise, sampling = (part * units * known for part in (e.value, e.noise, e.sampling))
            status = [
                "not_estimable" if not sound else "small" if noise > sampling else "ok"
                for sound, noise, sampling in zip(e.sound, e.noise, e.sampling, strict=True)
            ]
        error = np.hypot(noise, sampling)
        return table.assign(
            estimate=estimate,
            std_error=error,
            noise=noise,
            sampling=sampling,
            lower=estimate - width * error,
            upper=estimate + width * error,
            status=status,
        )

    def product(self, rows: pa.Table | None) -> Mapping[str, pa.Table]:
        """Return {"coefficients": Arrow table of `coefficients()` with 95 % intervals}; `rows` is not used."""
        import pyarrow as pa

        return {
            "coefficients": pa.Table.from_pandas(self.coefficients(), preserve_index=False).replace_schema_metadata()
        }

    def sections(self, named: Callable[[str], str]) -> Sequence[Section]:
        """Return the page's one section on the coefficients and the fit; `named` maps a group's label to its name."""
        from stratsynth.adapters.predictors.page import coefficients_section

        return [coefficients_section(self, named)]

    def state(self) -> State:
        """Return the model for a file, a `State`: facts (design, target, link, fit) and arrays.

        Arrays are `theta`, the coefficients, and, if their errors are stated, these as `estimated/` before a name.
        """
        arrays = {"theta": self.theta}
        if self.estimated is not None:
            arrays |= {f"estimated/{key}": value for key, value in vars(self.estimated).items()}
        facts = {
            **design_facts(self.design),
            "target": self.target,
            "link": self.link,
            "fit": dict(self.facts),
        }
        return State(facts, arrays)

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Regression:
        """Return the `Regression`, in a schema, of a stored `State`: arrays by name, and facts.

        ReleaseError for such as do not fit the schema or each other.
        """
        facts, arrays = state.facts, {name: np.asarray(array) for name, array in state.arrays.items()}
        design = design_of(facts, schema)
        target, link, theta = facts["target"], facts["link"], arrays["theta"]
        if link not in LINKS or target not in schema.columns or not isinstance(facts["fit"], dict):
            raise ReleaseError("model: the regression is damaged.")
        size, levels = len(design.names(schema)), schema.size(target)
        shape = (size, levels) if link == "softmax" else (size,)
        fits = isinstance(schema.column(target), Numeric) == (link == "linear") and (link != "logistic" or levels == 2)
        if not fits or theta.shape != shape or theta.dtype != np.float64 or not np.isfinite(theta).all():
            raise ReleaseError("model: the regression's coefficients are damaged.")
        estimated = None
        if "estimated/value" in arrays:
            parts = ("value", "noise", "sampling", "sound")
            estimated = Estimated(*(arrays[f"estimated/{part}"] for part in parts))
            estimated.check(size)
        return cls(schema, design, target, link, theta, estimated, facts["fit"])
