"""Privacy units of several rows: the cost of all rows of one unit together.

A unit (a person, a household) has at most k rows in the fit, the first k of its own. Adding or removing it is k steps
of one row, and group privacy adds them up, wherever its rows lie: k times epsilon for pure, k squared times rho for
zCDP (docs/privacy.md, section 7). So a mechanism is given 1/k of a pure budget and 1/k^2 of a rho, and every charge is
made for the whole unit: an answer that one row moves by D, k rows move by kD.

Not covered, and refused: steps on Poisson samples, whose price for k rows is not k times anything; `exact`; claims of
third-party code; and neighbours that replace a unit of several rows. One of linked tables weighs as a row does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from stratsynth.accounting.budget import UNIT_SLACK, Allotment, Budget, Currency, Neighbours
from stratsynth.accounting.charges import POWER, Charge
from stratsynth.errors import Unsupported
from stratsynth.schema.counted_tables import SharedWeight

if TYPE_CHECKING:
    from stratsynth.schema import Schema


def protecting(budget: Budget, schema: Schema) -> Budget:
    """Return the `Budget` with the schema's unit, rows a unit, public columns; Unsupported: pairs without a promise."""
    unit, rows = (schema.unit, 1) if isinstance(schema.unit, str) else (schema.unit.column, schema.unit.max_rows)
    if budget.neighbours == Neighbours.ATTRIBUTE:
        _check_attribute(schema)
        return replace(budget, unit=unit, rows=rows, public=schema.public)  # which refuses units of several rows
    if budget.neighbours == Neighbours.REPLACE and not isinstance(schema.unit, str | SharedWeight):
        raise Unsupported(
            f"budget: exchanging one {unit} for another, with another number of rows, is no defined step; use "
            'neighbours = "add-remove". The certificate prints what an exchange would cost.'
        )
    return replace(budget, unit=unit, rows=rows)


def _check_attribute(schema: Schema) -> None:
    """Raise Unsupported on a schema with no column public, or every one, or with row weights of their own."""
    if not schema.public:
        raise Unsupported(
            'budget: neighbours = "attribute" needs to know which columns need no protection: declare them in the '
            'schema with public = true, or take neighbours = "add-remove", which protects all.'
        )
    if len(schema.public) == len(schema.columns):
        raise Unsupported('budget: neighbours = "attribute" protects nothing where every column is declared public.')
    if schema.row_weight.column is not None:
        raise Unsupported(
            f'budget: neighbours = "attribute" does not say whether the weights in {schema.row_weight.column} are '
            'protected. Take the weight out of the schema, or neighbours = "add-remove".'
        )


def per_unit(allot: Allotment) -> Allotment:
    """Return the allotment of a unit of k rows, amount x k^power, from `allot`, a single row's: cap of the account."""
    rows = allot.promise.rows
    if rows == 1:
        return allot
    return replace(allot, amount=allot.amount * rows ** POWER[allot.currency] * (1 + UNIT_SLACK / 2))


def for_units(charges: Sequence[Charge], budget: Budget) -> list[Charge]:
    """Return a list of `Charge`: those of single rows for a budget's units of k rows: sensitivity k, amount k^power."""
    return [_times(charge, budget.rows) for charge in charges] if budget.rows > 1 else list(charges)


def _times(charge: Charge, rows: int) -> Charge:
    if charge.currency not in (Currency.ZCDP, Currency.PURE):
        raise Unsupported(f"a {charge.kind} in {charge.currency} has no price for units of several rows.")
    details = dict(charge.details)
    if "epsilon" in details:  # of a choice
        details["epsilon"] *= rows
    # Group privacy: k rows move an answer by k sensitivities, which costs k^2 times rho, or k times epsilon.
    return replace(
        charge,
        amount=charge.amount * rows ** POWER[charge.currency],
        sensitivity={step: rows * moved for step, moved in charge.sensitivity.items()},
        details=details,
    )
