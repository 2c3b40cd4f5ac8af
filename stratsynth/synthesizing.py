"""One call from a table to a release: `synthesize`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.budget import Budget
from stratsynth.accounting.public_budget import budget_of
from stratsynth.checks import check_integer, flag, is_texts, quoted_value
from stratsynth.data.table import open_table
from stratsynth.errors import DraftWarning, NotPrivateWarning, SchemaError, Unsupported, UsageError
from stratsynth.fitting import fit
from stratsynth.mechanisms import Mechanism, as_mechanism, prepare
from stratsynth.schema import Schema, Unit
from stratsynth.schema.schema import NOBODY
from stratsynth.strata.groups import Groups
from stratsynth.stratified import Groupwise, Stratified, stratify
from stratsynth.weights import Weights

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.data.sources import Data, Source
    from stratsynth.release import Release

LOUD = "NOT PRIVATE: the data were declared public, {0}nothing is charged, and what is made may show single records."
MOST_FOR_AIM = 30
"""Largest number of columns for which AIM is the default: its candidates grow with the cube of the columns."""
DRAFTED = "the schema came from the rows, "


def synthesize(
    data: Data,
    *,
    epsilon: float,
    delta: float = 1e-9,
    schema: Schema | str | PathLike[str] | None = None,
    public: bool = False,
    mechanism: Mechanism[Any] | str | None = None,
    by: Sequence[str] = (),
    weights: Weights | None = None,
    declared_size: int | None = None,
    ledger: str | PathLike[str] | None = None,
    unit: Unit | None = None,
    seed: int | None = None,
    groups: str = "declared",
) -> Release:
    """Return the release of a table in one call: draft or schema, plan, fit, release.

    Data that are public, or a sandbox, need no schema: `synthesize(frame, epsilon=1, public=True)` drafts one from the
    rows and warns that the result is not private. Private data need a schema that a person has reviewed:
    `synthesize(frame, epsilon=1, schema=reviewed)`.

    Args:
        data: A pandas or polars frame, an Arrow table, or the path of a data file.
        epsilon: The epsilon that the fit may spend.
        delta: The delta of the guarantee, the probability with which epsilon may fail.
        schema: The public description of the table: a `Schema` or the path of its file.
        public: True if the data are public: nothing is charged, and the release states that it is not private.
        mechanism: The mechanism to be fitted, or its name. The default is `pooled` with MST if there are strata; else
            `aim`, up to 30 columns whose tables AIM can hold, and `mst` for larger schemas, where AIM is slow.
        by: Columns whose crossing makes the strata.
        weights: The strata's public shares. Those of public data are counted when none are given.
        declared_size: The publicly known approximate number of records; of public data they are counted.
        ledger: The file that keeps the account of private data; without one the account lasts for the process.
        unit: `Unit(column=..., max_rows=...)` where one person has several rows: all rows with one value of that
            column, which is not released. By default that of the schema, else each row is a unit.
        seed: The seed of post-processing; noise is never seeded.
        groups: "declared" for as many rows of each stratum as its share says, "measured" for rows by the strata's noisy
            sizes, which costs nothing more.

    Returns:
        The release: `.sample(n)` gives rows, `.save(folder)` writes it.

    Raises:
        UsageError: A request refused before anything is charged: private data without a reviewed schema, for one.
        BudgetRefused: More epsilon than the ledger has left.

    Warns:
        NotPrivateWarning: The data are declared public.
        DraftWarning: A schema is drafted, and columns are left out of it.
    """
    from stratsynth.data.overlap import check_public_inputs
    from stratsynth.data.sources import open_source

    flag("public", public)
    check_integer("declared_size", declared_size, 1, 2**53, optional=True)
    if isinstance(by, str) or not is_texts(by):
        raise UsageError(f'`by` is a list of columns; write ["{by}"].')
    budget = budget_of(epsilon, delta, public=public)
    if schema is None and not public:
        raise SchemaError(
            "private data need a schema that a person has reviewed: draft = Schema.draft(data), then "
            'schema=draft.reviewed("your name", {corrected columns}). If the data are public, say public=True.'
        )
    if schema is not None and not isinstance(schema, Schema):
        schema = Schema.load(schema)
    how = None if mechanism is None else as_mechanism(mechanism)
    source = open_source(data)
    if public:
        check_public_inputs(declared=[source])
        warnings.warn(LOUD.format(DRAFTED if schema is None else ""), NotPrivateWarning, stacklevel=2)
        schema, declared_size = _looked_at(data, source, schema, declared_size)
    assert schema is not None  # noqa: S101 - private data without one were refused
    if unit is not None:
        schema = _of_units(schema, unit)
    shares = weights if weights is not None else _counted(source, schema, by) if public and by else None
    table = open_table(source, schema=schema, ledger=ledger, declared_size=declared_size, public=public)
    chosen = _strata(how, by, shares) if by else how or _usual(schema, budget, declared_size)
    return fit(chosen, table, budget, seed=seed, groups=groups)


def _looked_at(data: Data, source: Source, schema: Schema | None, size: int | None) -> tuple[Schema, int]:
    """Return (the schema of public data, drafted of `source` if it is None; `size`, else number or weight of rows)."""
    from stratsynth.data.draft import drafted
    from stratsynth.schema.encoding import row_weights

    if schema is None:
        found = drafted(source, data)
        if found.left_out:
            listed = "".join(f"\n- {one}" for one in found.lacking)
            warnings.warn(f"not in the release:{listed}", DraftWarning, stacklevel=3)
        return replace(found.schema, reviewed_by=NOBODY), size or found.rows
    if size is None and (told := schema.row_weight.column) is not None:
        weights = row_weights(schema.row_weight, source.read((told,)))
        return schema, max(1, 0 if weights is None else int(weights.sum()))
    return schema, size or source.read(schema.names[:1]).num_rows


def _of_units(schema: Schema, unit: Unit) -> Schema:
    """Return the schema with this unit, its column no longer among the columns; UsageError if it has another."""
    if not isinstance(unit, Unit):
        raise UsageError(f'unit must be Unit(column="...", max_rows=...), not {quoted_value(unit)}.')
    if schema.unit not in ("record", unit):
        raise UsageError("the schema has another unit; leave `unit` out, or change the schema.")
    return replace(schema.without({unit.column} & set(schema.names)), unit=unit)


def _counted(source: Source, schema: Schema, by: Sequence[str]) -> Weights:
    """Return the shares of a schema's groups by `by`, counted in the public `source`, as public weights."""
    import numpy as np
    import pandas as pd

    from stratsynth.schema.encoding import encode
    from stratsynth.strata import crossing

    known = schema.restrict(by)
    told = () if known.row_weight.column is None else (known.row_weight.column,)
    coded = encode(known, source.read((*known.names, *told)), weigh=True)
    codes: Mapping[str, Any] = coded.codes
    cells = np.ravel_multi_index([codes[name].astype(np.intp) for name in by], known.shape(by))
    counts = np.bincount(cells, coded.weights, minlength=known.cells(by))
    rows = [
        {**stratum.to_dict(), "count": int(count)} for stratum, count in zip(crossing(known, by), counts, strict=True)
    ]
    frame: pd.DataFrame = pd.DataFrame(rows)
    return Weights.public(frame, citation="counted in the data themselves, which were declared public")


def _usual(schema: Schema, budget: Budget, size: int | None) -> Mechanism[Any]:
    """Return the default mechanism, by schema, budget and size alone: AIM if it can hold the tables, else MST."""
    if len(schema.names) <= MOST_FOR_AIM:
        aim = as_mechanism("aim")
        try:
            prepare(aim, schema, budget, size)
        except Unsupported:  # what MST cannot do either, its own fit refuses
            return as_mechanism("mst")
        return aim
    return as_mechanism("mst")


def _strata(how: Mechanism[Any] | None, by: Sequence[str], weights: Weights | None) -> Mechanism[Any]:
    """Return the mechanism `how` in strata by `by`; `pooled` with MST if it is None.

    Refused (UsageError) are no weights, and a mechanism that has strata of its own.
    """
    if weights is None:
        raise UsageError(f"the strata {' x '.join(by)} need weights: Weights.public(shares, citation=...).")
    if how is None:
        return stratify("pooled", {"base": "mst"}, by, weights, Groups())
    if isinstance(how, Groupwise):
        raise UsageError(f"{how.name} has strata of its own; leave `by` out.")
    return Stratified(how, by, weights)
