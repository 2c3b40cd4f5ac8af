"""Models of two linked tables in strata of the parents, drawn together by public weights."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stratsynth.errors import ReleaseError
from stratsynth.models import Mixture, Model, Returns, State
from stratsynth.models.mixture import allot, opened, stored
from stratsynth.models.rules import draw_allowed
from stratsynth.schema.codec import decode
from stratsynth.schema.counted_tables import REFERENCE, slot_of
from stratsynth.strata import Stratum

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.adapters.linked.model import LinkedModel
    from stratsynth.models import TableModel, Where
    from stratsynth.schema import Schema
    from stratsynth.schema.counted_tables import CountedTables
    from stratsynth.schema.linked import LinkedSchema
    from stratsynth.weights import Resolved

STRATA = "strata"
"""Fact of a stored model that says that it has strata."""


@dataclass(frozen=True, eq=False)
class LinkedStrata(Model):
    """A `LinkedModel` for each stratum of the parents: of one kind, of a region, of a race of the reference person."""

    kind: ClassVar[str] = "linked"
    returns: ClassVar[Returns] = Returns.TABLES
    schema: CountedTables
    """Columns of all counted tables, those that define the strata among them."""
    parts: Mapping[Stratum, LinkedModel]
    weights: Mapping[Stratum, float]
    """Public shares of the strata among all parents, adding up to 1."""

    @property
    def parents(self) -> float:
        """Number of parents: the sum over the strata."""
        return float(sum(part.parents for part in self.parts.values()))

    def state(self) -> State:
        """Return a `State`: the strata's states side by side, each with its weight."""
        found = stored(self.parts, lambda stratum: {"weight": self.weights[stratum]})
        return State({**found.facts, STRATA: True}, found.arrays)

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> LinkedStrata:
        """Return the `LinkedStrata`, in a `Schema`, of a stored `State`; ReleaseError unless weights add up to 1."""
        from stratsynth.adapters.linked.model import LinkedModel
        from stratsynth.schema.counted_tables import CountedTables

        if not isinstance(schema, CountedTables):
            raise ReleaseError("model: linked tables have a schema of format stratsynth-schema/2.")
        parts, weights = dict[Stratum, LinkedModel](), dict[Stratum, float]()
        for stratum, (facts, inside, own) in opened(schema, state).items():
            part, weights[stratum] = LinkedModel.from_state(inside, own), float(facts["weight"])
            if not isinstance(part, LinkedModel) or not 0 <= weights[stratum] <= 1:
                raise ReleaseError("model: a stratum of linked tables is damaged.")
            parts[stratum] = part
        if abs(sum(weights.values()) - 1) > 1e-9:
            raise ReleaseError("model: the strata's weights do not add up to 1.")
        return cls(schema, parts, weights)

    @classmethod
    def combined(cls, schema: Schema, parts: Mapping[Stratum, Any], weights: Resolved) -> Model:
        """Return the `LinkedStrata`, in a `Schema`, of the models `parts` by `weights`, `Resolved` shares."""
        from stratsynth.adapters.linked.model import LinkedModel

        return LinkedModel.combined(schema, parts, weights)

    def rows_to_draw(self, asked: int | None, declared: int | None) -> int | None:
        """Return the number of parents: that asked for, else the declared one, else the measured one."""
        return asked if asked is not None else declared if declared is not None else round(max(self.parents, 0.0))

    def linked_tables(
        self,
        n: int,
        rng: Generator,
        counted: MutableMapping[str, Any] | None = None,
        where: Where | None = None,  # none is served: who asks draws until parents meet it
    ) -> Mapping[str, pa.Table]:
        """Return a mapping from name to Arrow table of `n` parents by `rng`, as for `LinkedModel`, strata in order.

        Numbers of parents are by the weights, fairly rounded. A column that a kind of parents lacks is null there.
        """
        linked, drawn, start = self.schema.linked, list[tuple[pa.Table, ...]](), 0
        shares = np.array([self.weights[stratum] for stratum in self.parts])
        numbers = allot(n, shares, rng) if n else np.zeros(len(shares), np.int64)
        for stratum, number in zip(self.parts, numbers, strict=True):
            given: dict[str, Any] = {}
            tables = self.inside(stratum).linked_tables(int(number), rng, given)
            drawn.append(tuple(_renumbered(table, linked.key, start) for table in tables.values()))
            start += int(number)
            if counted is not None:
                _add(counted, given)
        return dict(zip(linked.names, (_joined(linked, tables) for tables in zip(*drawn, strict=True)), strict=True))

    def inside(self, stratum: Stratum) -> LinkedModel:
        """Return the `LinkedModel` of the parents of a stratum, in all columns: with those that define it."""
        from stratsynth.adapters.linked.model import LinkedModel

        part = self.parts[stratum]
        slot, inside = next(iter(part.parts.items()))
        own = Stratum(tuple(item for item in self.schema.at(stratum.items)[1] if slot_of(item[0]) == slot))
        whole = Mixture(self.schema.of(slot), {own: inside}, {own: 1.0})
        return LinkedModel(self.schema, {**part.parts, slot: whole}, part.parents)


def kind_tables(
    linked: LinkedSchema, kind: str, model: TableModel, n: int, rng: Generator, counted: MutableMapping[str, Any]
) -> tuple[pa.Table, pa.Table]:
    """Return (table of `n` parents of a `kind` by its `model`, table of their child rows: one each, or none).

    Columns are those of the kind in the `LinkedSchema`, with the numbers of child rows, and a key from 1 on; `rng`
    draws. Numbers of rows are put into `counted`.
    """
    drawn = draw_allowed(model.schema, n, rng, lambda number, _: model.sample(number, rng))
    codes, single = {name.partition(".")[2]: own for name, own in drawn.items()}, linked.kinds[kind].single
    keys = pa.array(1 + np.arange(n))
    parents = decode(linked.parent.restrict(linked.columns_of(kind)), codes, rng).add_column(0, linked.key, keys)
    first = {name: codes[REFERENCE + name] if single else np.zeros(0, np.int64) for name in linked.child.names}
    children = decode(linked.child, first, rng)
    order = next((name for name in linked.order if name not in linked.child.columns), None)
    if order is not None:
        children = children.add_column(0, order, pa.array(np.ones(children.num_rows, np.int64)))
    children = children.add_column(0, linked.key, keys if single else keys[:0])
    for name, count in linked.counts.items():
        if name in linked.parent.columns:
            continue
        met = np.full(n, single and not count.besides_reference)
        for column, allowed in linked.codes_where(count).items() if single else ():
            met &= np.isin(first[column], sorted(allowed))
        parents = parents.append_column(name, pa.array(met.astype(np.int64)))
    counted.update(parents=n, rows=children.num_rows, backed_off={}, relaxed=0, other_bands=0)
    return parents, children


def _renumbered(table: pa.Table, key: str, start: int) -> pa.Table:
    """Return the Arrow `table` with `start` added to its column `key`."""
    place = table.column_names.index(key)
    return table.set_column(place, key, pc.add(table.column(key), start))


def _joined(linked: LinkedSchema, tables: tuple[pa.Table, ...]) -> pa.Table:
    """Return one table of several, null where one lacks a column; columns as in the `LinkedSchema`."""
    shared = set.intersection(*(set(table.column_names) for table in tables))
    whole = pa.concat_tables(tables, promote_options="default")
    fields = [field if field.name in shared else field.with_nullable(True) for field in whole.schema]
    whole = whole.cast(pa.schema(fields, metadata=whole.schema.metadata))
    order = [linked.key, *linked.parent.names]
    if not set(whole.column_names) <= {*order, *linked.counts}:
        return whole
    return whole.select([name for name in (*order, *linked.counts) if name in whole.column_names])


def _add(counted: MutableMapping[str, Any], given: Mapping[str, Any]) -> None:
    """Add the numbers in `given`, and those in mappings of it, to those in `counted`."""
    for name, value in given.items():
        if isinstance(value, Mapping):
            _add(counted.setdefault(name, {}), value)
        else:
            counted[name] = counted.get(name, 0) + value
