"""Common parts of models that predict one column from a design of others."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import UsageError
from stratsynth.models import Codes, Predictor
from stratsynth.models.predictor import numbers_of
from stratsynth.questions import Coded
from stratsynth.questions.sums.design import features
from stratsynth.schema import Numeric
from stratsynth.schema.rows import CodedRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema
    from stratsynth.strata import StratumPath

    Floats = NDArray[np.float64]


class Designed(Predictor):
    """A model that predicts a column from the features of a design."""

    schema: Schema
    design: Coded
    target: str
    facts: Mapping[str, Any]
    """Public figures of the fit, for readers."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Tuple of the names of the design's columns; without any, one other column, which tells the number of rows."""
        return tuple(n for n in self.schema.names if n in self.design.columns) or (self._other,)

    @property
    def _other(self) -> str:
        """Name of the first column that is not the target; the target's own in a schema of one column."""
        return next(name for name in self.schema.names if name != self.target or len(self.schema.names) == 1)

    def featured(self, rows: Codes) -> Floats:
        """Return an array, rows x features, scaled, of `rows`, {column: array of level numbers}.

        UsageError for a numeric column whose numbers are absent.
        """
        numbers = numbers_of(rows)
        lacking = [n for n in self.design.columns if isinstance(self.schema.column(n), Numeric) and n not in numbers]
        if lacking:
            raise UsageError(f"predict: {lacking[0]} is numeric, and its level numbers alone do not say what it is.")
        size = len(next(iter(rows.values())))
        return features(self.design, CodedRows(self.schema, rows, numbers, size)).T

    def written(self, rows: Codes, chances: Floats) -> Mapping[str, NDArray[Any]]:
        """Return {output column: array, an entry a row}: `prediction`, and `probability=LEVEL` for each level.

        `rows` maps columns to arrays of level numbers; `chances` is the array of probabilities, rows x levels.
        """
        named = zip(self.schema.levels(self.target), chances.T, strict=True)
        return {"prediction": self.predict(rows), **{f"probability={level}": chance for level, chance in named}}

    def gaps(self) -> Sequence[Mapping[str, Any]]:
        """Return a list of one mapping, the measured gap in the facts of a fit that wanted one; else an empty list."""
        return [self.facts["gap"]] if "gap" in self.facts else []

    def foretell(self, path: StratumPath) -> str:
        """Return a plan's line on a descent's steps, or on a penalty, and noise, or that in the facts; else "".

        `path` is not used.
        """
        f = self.facts
        if not f or "foretold" in f:
            return str(f.get("foretold", ""))
        if "strength" in f:
            return (
                f"penalty of strength {f['strength']:.3g}, clip {f['clip']:.3g}; noise {f['noise']:.2g} a coefficient"
            )
        return (
            f"{f['steps']} steps, rate {f['rate']:.3g}, clip {f['clip']:.3g}; noise in a step's mean gradient "
            f"{f['step_noise']:.2g} a coordinate{'; ' + f['caution'] if 'caution' in f else ''}"
        )


class Scored(Designed):
    """A model that predicts the likeliest level of a target, by one logit for each."""

    @abstractmethod
    def logits(self, rows: Codes) -> Floats:
        """Return an array, rows x levels of the target: the logits of `rows`, {column: array of level numbers}."""

    def probabilities(self, rows: Codes) -> Floats:
        """Return an array, rows x levels of the target: probabilities for `rows`, {column: array of level numbers}."""
        return softmax(self.logits(rows))

    def predict(self, rows: Codes) -> NDArray[Any]:
        """Return an array of texts, one a row: the likeliest level of the target for `rows`.

        They map columns to arrays of level numbers.
        """
        found: NDArray[Any] = np.array(self.schema.levels(self.target))[self.logits(rows).argmax(axis=1)]
        return found

    def table(self, rows: Codes) -> Mapping[str, NDArray[Any]]:
        """Return {output column: array, an entry a row}: `prediction`, and `probability=LEVEL` for each level.

        `rows` maps columns to arrays of level numbers.
        """
        return self.written(rows, self.probabilities(rows))


def design_facts(design: Coded) -> dict[str, Any]:
    """Return a design as a dict of JSON values for a stored model: its columns, reference levels and interactions.

    Each is a list, the last two of pairs.
    """
    return {
        "columns": list(design.columns),
        "reference": [list(pair) for pair in design.reference],
        "interactions": [list(pair) for pair in design.interactions],
    }


def design_of(facts: Mapping[str, Any], schema: Schema) -> Coded:
    """Return the `Coded` design stored as `facts`, a dict of `design_facts`.

    MechanismError if its check finds that it does not fit the schema.
    """
    design = Coded(
        tuple(facts["columns"]),
        reference=tuple((str(c), str(level)) for c, level in facts["reference"]),
        interactions=tuple((str(a), str(b)) for a, b in facts["interactions"]),
    )
    design.check("model", schema)
    return design


def softmax(logits: Floats) -> Floats:
    """Return an array of probabilities from logits, rows x levels: the softmax along each row, which adds up to 1."""
    power = np.exp(logits - logits.max(axis=1, keepdims=True))
    found: Floats = power / power.sum(axis=1, keepdims=True)
    return found
