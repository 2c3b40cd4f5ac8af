"""Fitted models of two linked tables, as a release keeps them and draws from them."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stratsynth.adapters.engine import Graphical
from stratsynth.adapters.linked.assembly import Assembly
from stratsynth.adapters.linked.roles import CountRole, LinkedModels, LinkRoles, SumRole
from stratsynth.adapters.linked.strata import STRATA, LinkedStrata, kind_tables
from stratsynth.adapters.linked.tables import to_tables
from stratsynth.errors import ReleaseError, Unsupported, UsageError
from stratsynth.models import Model, Returns, State, TableModel, Where
from stratsynth.models.files import restore
from stratsynth.schema import Schema
from stratsynth.schema.counted_tables import (
    OTHERS,
    PARENT,
    REST,
    SECOND,
    SLOTS,
    CountedTables,
    difference_bands,
    named,
    number_bands,
    sum_bands,
)
from stratsynth.schema.linked import SIZE
from stratsynth.strata import Stratum
from stratsynth.weights import Resolved

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.random import Generator

    from stratsynth.schema.linked import LinkedSchema

TAIL = 0.5
"""Part of the parents of the largest counted size, or more, that have one child row more, and so on: a public guess."""


@dataclass(frozen=True, eq=False)
class LinkedModel(Model):
    """Models of the counted tables: of parents, and of their child rows given these."""

    kind: ClassVar[str] = "linked"
    returns: ClassVar[Returns] = Returns.TABLES
    schema: CountedTables
    """Columns of all counted tables; it has the linked schema."""
    parts: Mapping[str, TableModel]
    """Model of each counted table that was fitted, by name; columns are named as in `schema`."""
    parents: float
    """Number of parents: declared, or by the noisy tables."""

    def state(self) -> State:
        """Return the model for a file, a `State`: kinds, columns, facts and terms by step, and the number of parents.

        Arrays are those of the steps' models, their names after the step's and a slash.
        """
        facts, arrays = dict[str, Any](), dict[str, Any]()
        for slot, part in self.parts.items():
            own = part.state()
            terms = part.terms if isinstance(part, Graphical) else ()
            names = list(part.schema.names)
            facts[slot] = {
                "kind": part.kind,
                "columns": names,
                "facts": own.facts,
                "terms": [list(c) for c, _ in terms],
            }
            arrays |= {f"{slot}/{name}": array for name, array in own.arrays.items()}
            arrays |= {f"{slot}/term {i}": term for i, (_, term) in enumerate(terms)}
        return State({"parts": facts, "parents": self.parents}, arrays)

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> LinkedModel | LinkedStrata:  # type: ignore[override]
        """Return the `LinkedModel` of a stored `State`, or the `LinkedStrata` where it has strata.

        ReleaseError unless each part has columns of its counted table alone, and sound terms.
        """
        if not isinstance(schema, CountedTables):
            raise ReleaseError("model: linked tables have a schema of format stratsynth-schema/2.")
        if STRATA in state.facts:
            return LinkedStrata.from_state(schema, state)
        parts = {}
        for slot, stored in state.facts["parts"].items():
            columns = stored["columns"]
            if slot not in (*SLOTS, *schema.linked.kinds) or not set(columns) <= set(schema.of(slot).names):
                raise ReleaseError("model: a counted table has columns that its schema lacks.")
            arrays = {n.removeprefix(f"{slot}/"): a for n, a in state.arrays.items() if n.startswith(f"{slot}/")}
            terms = [(tuple(clique), arrays.pop(f"term {i}")) for i, clique in enumerate(stored.get("terms", ()))]
            own = schema.restrict(columns)
            part = restore(stored["kind"], own, State(stored["facts"], arrays)).table_model()
            if isinstance(part, Graphical):
                if not all(
                    set(clique) <= set(own.names) and term.shape == (own.cells(clique),) and np.isfinite(term).all()
                    for clique, term in terms
                ):
                    raise ReleaseError("model: the terms of a counted table are damaged.")
                part = replace(part, terms=tuple(terms))
            parts[slot] = part
        if not parts.keys() & {PARENT, *schema.linked.kinds}:
            raise ReleaseError("model: it has no model of the parents.")
        return cls(schema, parts, float(state.facts["parents"]))

    def rows_to_draw(self, asked: int | None, declared: int | None) -> int | None:
        """Return the number of parents: that asked for, else the declared one, else the measured one."""
        return asked if asked is not None else declared if declared is not None else round(max(self.parents, 0.0))

    def linked_evidence(self, where: Where) -> Where:
        """Return the part of `where` on columns of the parents' model; UsageError if it gives these no weight."""
        if PARENT not in self.parts:
            return {}
        model = self.parts[PARENT]
        found = {name: codes for name, codes in where.items() if named(PARENT, name) in model.schema.columns}
        if found and not model.mass({named(PARENT, name): codes for name, codes in found.items()}) > 0:
            raise UsageError(
                f"where: the model gives no weight to a {self.linked.names[0]} with this {' and '.join(found)}; there "
                "is nothing to draw."
            )
        return found

    def linked_tables(
        self, n: int, rng: Generator, counted: MutableMapping[str, Any] | None = None, where: Where | None = None
    ) -> Mapping[str, pa.Table]:
        """Return a mapping from name to Arrow table, the parents' and the children's, of `n` parents drawn by `rng`.

        The numbers of what was given up are put into the mapping `counted`, if there is one. Parents are drawn given
        `where`, which is of `linked_evidence`.
        """
        linked = self.linked
        if PARENT not in self.parts:
            [(kind, model)] = self.parts.items()
            given = {} if counted is None else counted
            return dict(zip(linked.names, kind_tables(linked, kind, model, n, rng, given), strict=True))
        drawn, given_up = self.assembly.draw(n, rng, where)
        order = next((name for name in linked.order if name not in linked.child.columns), None)
        parents, children = to_tables(self.assembly.roles, drawn, rng, key=linked.key, order=order)
        if SIZE in parents.column_names and SIZE not in linked.parent.columns:  # which nobody declared
            parents = parents.drop_columns([SIZE])
        if counted is not None:
            counted.update(given_up.to_dict())
        return dict(zip(linked.names, (parents, children), strict=True))

    def slot_model(self, slot: str) -> Model:
        """Return the model of the step `slot`; this one, which draws no single table, without such a step."""
        return self.parts.get(slot, self)

    @property
    def linked(self) -> LinkedSchema:
        """The `LinkedSchema` of the two tables."""
        return self.schema.linked

    @cached_property
    def assembly(self) -> Assembly:
        """The `Assembly` for drawing: models with the roles of their columns."""
        second, others = (self._graphical(slot) for slot in (SECOND, OTHERS))
        rest = self._graphical(REST)
        slots = (PARENT, SECOND, OTHERS if rest is None else REST)
        prefixes = tuple(named(slot, "") for slot in slots)
        models = LinkedModels(
            parent=self.parts[PARENT],
            second=second if rest is None else None,
            others=others if rest is None else rest,
            prefixes=(prefixes[0], prefixes[1], prefixes[2]),
        )
        return Assembly(roles_of(self.linked), models)

    def _graphical(self, slot: str) -> Graphical | None:
        """Return the `Graphical` of the step `slot`, None without one; Unsupported for another kind of model."""
        part = self.parts.get(slot)
        if part is not None and not isinstance(part, Graphical):
            raise Unsupported("linked: child rows are drawn from models of aim and mst, of the engines of the package.")
        return part

    @classmethod
    def combined(cls, schema: Schema, parts: Mapping[Stratum, Any], weights: Resolved) -> Model:
        """Return the `LinkedStrata`, in a schema, of the strata's models `parts` by the shares in `weights`."""
        assert isinstance(schema, CountedTables)  # noqa: S101 - that of a linked fit
        return LinkedStrata(schema, dict(parts), dict(weights.shares))


def roles_of(linked: LinkedSchema) -> LinkRoles:
    """Return the `LinkRoles` of the columns of two linked tables, as drawing takes them."""
    left, before, apart = sum_bands(linked), number_bands(linked), difference_bands(linked)
    summed = None
    if linked.sum is not None and left is not None:
        name, total = linked.sum
        summed = SumRole(column=name, of=total.column, ends=left.ends)
    top = linked.counts[linked.size].top
    return LinkRoles(
        parent=linked.parent.restrict(linked.columns_of()) if linked.absent else linked.parent,
        child=linked.child,
        size=linked.size,
        counts={
            name: CountRole(where=linked.codes_where(count), besides_first=count.besides_reference, least=count.least)
            for name, count in linked.counts.items()
        },
        state=linked.state,
        summed=summed,
        stepped=linked.difference,
        differences=() if apart is None else apart.ends,
        previous=() if before is None else before.ends,
        most=linked.most,
        tail=tuple(TAIL**more for more in range(linked.most - top + 1)),
    )
