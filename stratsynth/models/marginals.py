"""One-way marginals of any table model, exactly: from the model's own, or level by level from its masses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stratsynth.models.mixture import Mixture

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.models.base import TableModel
    from stratsynth.strata import Stratum


def oneway(model: TableModel, column: str) -> NDArray[np.float64]:
    """The probability of each level of a column, before structural rules have rows drawn again."""
    if isinstance(model, Mixture):
        shares = [model.weights[stratum] * inside(model, stratum, column) for stratum in model.parts]
        return np.asarray(np.sum(shares, axis=0), dtype=np.float64)
    own = getattr(model, "marginal", None)  # a model may offer the marginal of any columns
    if own is not None:
        return np.asarray(own((column,)), dtype=np.float64)
    return np.array([model.mass({column: frozenset({code})}) for code in range(model.schema.size(column))])


def inside(model: Mixture, stratum: Stratum, column: str) -> NDArray[np.float64]:
    """The same within one part of a mixture; a column that defines the stratum has one level there, or a few."""
    part = model.parts[stratum]
    if column not in stratum.levels:
        return oneway(part, column)
    found = np.zeros(model.schema.size(column))
    codes = [model.schema.index(column, level) for level in stratum.levels[column]]
    found[codes] = oneway(part, column) if len(codes) > 1 else 1.0
    return found


def forbidden(model: TableModel) -> float:
    """At most how much of the model's rows break a structural rule: the sum over the rules' boxes."""
    boxes = [box for rule in model.schema.rules for box in rule.cells(model.schema)]
    return min(1.0, float(sum(model.mass(box) for box in boxes if all(box.values()))))
