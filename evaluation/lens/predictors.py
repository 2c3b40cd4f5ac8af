"""INTERNAL. Losses of private predictors in each group, compared with twins without noise and without clipping."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import UsageError
from stratsynth.mechanisms import Mechanism, Prepared, prepare
from stratsynth.models.predictor import Shown
from stratsynth.schema import Numeric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.evaluation.tables import EncodedRows
    from stratsynth.models import Model

    Floats = NDArray[np.float64]

PARTS = ("clipping", "noise")
CAUSES = {
    "clipping": (
        "clipping of gradients, and the mitigation between groups",
        "a larger clip, or other features",
    ),
    "noise": ("privacy noise", "more budget, a smaller clip, or fewer features"),
}
"""Part of the loss -> (cause, remedy)."""
WIDE = 64.0
"""Clip above every gradient of scaled features, for up to 4,000 columns of a target with levels. Sums lie on a grid
that widens with the clip: here a residual is rounded to a multiple of 1/4,096."""
LEAST = 1e-6
"""Smallest probability used in the log loss."""
UNCLIPPED: dict[str, Any] = {"clip": WIDE, "mitigation": "none"}
"""Settings of a mechanism without clipping or mitigation, as far as it has these."""


def unclipped(prepared: Prepared) -> Prepared | None:
    """Return a Prepared fit like `prepared`, but of its mechanism without mitigation, whose clip cuts nothing.

    None if the mechanism has no clip.
    """
    plain = _unclipped(prepared.mechanism)
    if plain is None:
        return None
    public = prepared.public
    return prepare(plain, public.schema, prepared.budget, public.size)


def _unclipped(how: Mechanism[Any]) -> Mechanism[Any] | None:
    """Return a copy of a mechanism, `how`, whose clip cuts nothing, inner ones too; None if it has no clip."""
    fields = {f.name: getattr(how, f.name) for f in dataclasses.fields(how) if f.init}  # type: ignore[arg-type]
    inner = {name: _unclipped(value) for name, value in fields.items() if isinstance(value, Mechanism)}
    changed = {name: value for name, value in UNCLIPPED.items() if name in fields}
    changed |= {name: value for name, value in inner.items() if value is not None}
    if "clip" not in changed and not any(inner.values()):
        return None
    return dataclasses.replace(how, **changed)  # type: ignore[type-var]


def losses(model: Model, rows: EncodedRows, target: str, seed: int = 0) -> Floats:
    """Array of a Model's loss for each of the EncodedRows: squared error of a number, log loss of a level.

    `target` is the column predicted. 0-1 loss if the model has no probabilities; NaN if a row has no number. `seed` is
    for models that predict by chance.
    """
    predictor, column = model.predictor().seeded(seed), rows.schema.column(target)
    said = predictor.table(Shown(dict(rows.codes), rows.numbers))
    if isinstance(column, Numeric):
        found: Floats = (np.asarray(said["prediction"], np.float64) - rows.numbers[target]) ** 2
        return found
    levels, own = rows.schema.levels(target), rows.codes[target]
    if all(f"probability={level}" in said for level in levels):
        chances = np.column_stack([np.asarray(said[f"probability={level}"], np.float64) for level in levels])
        logs: Floats = -np.log(np.maximum(chances[np.arange(len(own)), own], LEAST))
        return logs
    wrong: Floats = (np.asarray(said["prediction"]).astype(str) != np.array(levels)[own]).astype(np.float64)
    return wrong


def target_of(prepared: Prepared, model: Model, named: str | None) -> str:
    """Name of the column that a model predicts: `named`, else the model's own, else that of the prepared mechanism.

    UsageError if none of them names one.
    """
    found = named or getattr(model, "target", None) or _setting(prepared.mechanism)
    if not isinstance(found, str) or not found:
        raise UsageError("lens: which column is predicted? Name it in the recipe, or with --target.")
    prepared.public.schema.column(found)
    return found


def _setting(how: Mechanism[Any]) -> str | None:
    """Name of the column `target` of a mechanism `how`, or of the one that it fits in strata; None if it has none."""
    return getattr(how, "target", None) or getattr(getattr(how, "mechanism", None), "target", None)
