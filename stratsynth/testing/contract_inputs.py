"""Outputs of a model: everything that may end in a release, drawn with a fixed seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.models import Model, Returns, TableModel
from stratsynth.schema.codec import decode

if TYPE_CHECKING:
    from stratsynth.models.predictor import Predictor

ROWS = 40
"""Number of rows drawn, and of rows predicted."""


def given_out(model: Model) -> list[Any]:
    """Return a list of values: all that a release, its report and a reader get from a model.

    A refusal counts as its text.
    """
    returns = _tried(lambda: model.returns)
    asked: list[Callable[[], Any]] = [
        lambda: [str(returns), model.kind, model.schema.sha256],
        lambda: model.rows_to_draw(None, ROWS),
        lambda: model.foretell(()),
        lambda: model.sections(str),
        lambda: model.mixture().weights,
    ]
    if returns == Returns.ROWS:
        asked.extend([lambda: _masses(model.table_model()), lambda: _drawn(model.table_model())])
    else:
        asked.append(lambda: model.product(None))
    if returns == Returns.ESTIMATES:
        asked.append(model.estimates)
    if returns == Returns.PREDICTIONS:
        asked.append(lambda: _predicted(model.predictor()))
    return [_tried(one) for one in asked]


def _tried(one: Callable[[], Any]) -> Any:
    """Return the result of the function `one`, or the text of its exception: both must be equal for equal answers."""
    try:
        return one()
    except Exception as refusal:  # noqa: BLE001 - what is refused on one table must be refused on all
        return f"{type(refusal).__name__}: {refusal}"


def _masses(model: TableModel) -> list[Any]:
    """Return a list of three: a model's mass of everything, that of the first column's first level, a list of tables.

    The tables are the one-way tables of all columns.
    """
    first = model.schema.names[0]
    ones = [model.oneway(name) for name in model.schema.names]
    return [model.mass({}), model.mass({first: frozenset({0})}), ones]


def _drawn(model: TableModel) -> list[Any]:
    """Return a list of a model's rows, of three under a condition (or None), level numbers, and a release's tables."""
    rng, last = np.random.default_rng(1), model.schema.names[-1]
    rows = model.sample(ROWS, rng)
    where = {last: frozenset({model.schema.size(last) - 1})}
    some = model.sample(3, rng, where) if model.mass(where) > 0 else None
    return [rows, some, model.product(decode(model.schema, rows, np.random.default_rng(2)))]


def _predicted(model: Predictor) -> Any:
    """Return the predictions of a model that predicts, of random rows, by a fixed seed."""
    rng = np.random.default_rng(1)
    return model.seeded(1).predict({name: rng.integers(model.schema.size(name), size=ROWS) for name in model.inputs})
