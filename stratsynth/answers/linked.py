"""Answers of two linked tables: each question is of one counted table, whose counts are of parents.

A counted table has a total of its own: parents, those with a second child row, those with a third. Its noisy tables are
brought to one unit, the parent, and answered by least squares as one table's are. Numbers of the parent, and of child
rows in their bins, have means and quantiles.

Every child row from the third on counts as a part of its parent, so that all of these together count 1 at most. With a
whole parent in one cell, a count has the variance of a simple random sample of parents; with parts in several it has
less, so that the wider interval, for a population, holds at least as often there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.answers.query import Query
from stratsynth.answers.release_answers import Answers
from stratsynth.answers.squares import Squares
from stratsynth.answers.tables import Noisy, Tables, read_tables
from stratsynth.errors import SchemaError, StratsynthError, Unsupported, UsageError, nearest
from stratsynth.report.numbers import listed
from stratsynth.schema import Schema
from stratsynth.schema.counted_tables import (
    OTHERS,
    PARENT,
    REFERENCE,
    REST,
    SECOND,
    SLOTS,
    CountedTables,
    named,
    slot_levels,
    slot_of,
)
from stratsynth.schema.where import level_of, levels_of

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from stratsynth.answers.intervals import Answer
    from stratsynth.certificate import Certificate
    from stratsynth.models import Model
    from stratsynth.schema.columns import Column
    from stratsynth.schema.inside import Inside
    from stratsynth.schema.linked import LinkedSchema


def answers_of(
    schema: Schema,
    certificate: Certificate,
    measurements: Callable[[], pa.Table],
    model: Callable[[], Model],
    laws: Callable[[], Mapping[str, Inside]] = dict,
) -> Answers:
    """Return the `Answers` of a release by its `Schema`, of linked tables or of one, and its `Certificate`.

    The functions `measurements`, `model` and `laws` are those of `Answers`.
    """
    kind = LinkedAnswers if isinstance(schema, CountedTables) else Answers
    return kind(schema, certificate, measurements, model, laws)


def slot_schema(counted: CountedTables, slot: str) -> Schema:
    """Return a `Schema` of the columns of `CountedTables` that are of `slot`: numbers, in the bins that are counted."""
    linked = counted.linked
    columns: dict[str, Column] = {}
    for name, levels in slot_levels(linked, slot).items():
        found = _declared(linked, name)
        full = named(slot, name)
        if full in counted.columns:
            columns[full] = found if found is not None and found.all_levels == levels else counted.column(full)
    return Schema(columns)


def _declared(linked: LinkedSchema, name: str) -> Column | None:
    """Return the `Column` of a `LinkedSchema`, parent's, child's or reference's, that `name` is; None otherwise."""
    if name in linked.parent.columns:
        return linked.parent.column(name)
    return linked.child.columns.get(name.removeprefix(REFERENCE))


def slot_tables(counted: CountedTables, slot: str, certificate: Certificate, measurements: pa.Table) -> Tables:
    """Return the `Tables` of the counted table `slot`, in units of parents, by a `Certificate` and all measurements.

    Unsupported for child rows in strata, whose columns name the parent's.
    """
    import pyarrow.compute as pc

    texts = measurements.column("clique").cast("string")
    own = measurements.filter(pc.starts_with(texts, f"{slot}."))
    if slot != PARENT and pc.any(pc.not_equal(own.column("stratum").cast("string"), "")).as_py():
        raise Unsupported(
            f"query: tables of child rows were measured in strata, and are not added up; ask columns of "
            f"{counted.linked.names[0]}s, or count in what sample_tables draws."
        )
    found = read_tables(slot_schema(counted, slot), certificate, own, _no_model)
    weight = counted.row_weight.most
    leaves = tuple(replace(leaf, tables=[_scaled(t, weight) for t in leaf.tables]) for leaf in found.leaves)
    return replace(found, leaves=leaves, everybody=tuple(_scaled(table, weight) for table in found.everybody))


def parent_squares(counted: CountedTables, certificate: Certificate, measurements: pa.Table) -> Squares | None:
    """Return the `Squares` of the parents' counted table by a `Certificate` and `measurements`; None without."""
    if not measurements.num_rows:
        return None
    try:
        return Squares(slot_tables(counted, PARENT, certificate, measurements))
    except StratsynthError:  # a parent is in several strata, which cannot be added up
        return None


def _scaled(table: Noisy, weight: int) -> Noisy:
    return Noisy(table.columns, table.values / weight, table.variance / weight**2)


def _no_model() -> Model:
    raise UsageError("query: strata of linked tables that are divided again are not supported; draw rows.")


class LinkedAnswers(Answers):
    """Answers of two linked tables; a question has columns of one counted table, `parent` unless it says another.

    A column is named as in the certificate, `second.AGEP`, or without the table where it is the parent's.
    """

    def one(self, query: Query) -> dict[str, list[Any]]:
        """Return a dict, column -> list by cell of a `Query`, as `Answers.one`; columns are named with their table."""
        return super().one(self._resolved(query))

    def many(self, queries: Sequence[Query]) -> dict[str, list[Any]]:
        """Return a dict, column -> list, of `queries` as `Answers.many`; columns are named with their counted table."""
        return super().many([self._resolved(query) for query in queries])

    @property
    def squares(self) -> Squares:
        """`Squares` of the parents' counted table."""
        return self._slots[PARENT].squares

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        """Tuple of sentences on what is counted, and on assumptions of the intervals beside the noise's law."""
        return (what_counts(self._counted, self._measured_slots), *super().conditions)

    @property
    def _counted(self) -> CountedTables:
        assert isinstance(self._schema, CountedTables)  # noqa: S101 - see `answers_of`
        return self._schema

    @cached_property
    def _measured_slots(self) -> tuple[str, ...]:
        """Tuple of the names of counted tables that were measured."""
        found = {slot_of(text) for text in self._measurements().column("clique").cast("string").unique().to_pylist()}
        return tuple(slot for slot in SLOTS if slot in found)

    @cached_property
    def _slots(self) -> dict[str, SlotAnswers]:
        return {
            slot: SlotAnswers(slot, self._counted, self._certificate, self._measurements, self._get_model)
            for slot in self._measured_slots
        }

    def _figures_of(self, queries: Sequence[Query]) -> list[dict[str, list[Any]]]:
        """Return a list, one a query, of {figure: list by cell}, by the counted table that each of `queries` is of."""
        found: dict[int, dict[str, list[Any]]] = {}
        for slot, answers in self._slots.items():
            mine = [number for number, query in enumerate(queries) if _slot(query) == slot]
            if mine:
                found |= zip(mine, answers.figures_of([queries[number] for number in mine]), strict=True)
        return [found[number] for number in range(len(queries))]

    def _resolved(self, query: Query) -> Query:
        """Return `query` with columns named by their counted table.

        UsageError for columns of several, of one that was not measured, and for a column of all child rows; SchemaError
        for one that there is not.
        """
        if self._certificate.strata.by:
            raise Unsupported(
                "query: tables of strata of two linked tables have no answer for all of them together: count in what "
                "sample_tables draws."
            )
        names = (*query.columns, *query.by, *query.where, *query.versus)
        slots = dict.fromkeys(slot_of(name) for name in names if "." in name and slot_of(name) in SLOTS)
        if len(slots) > 1:
            raise UsageError(
                f"query: columns of {listed(list(slots))} are in one question, and a table is of one of these. "
                f"{self._ways}"
            )
        slot = next(iter(slots), PARENT)
        if slot not in self._measured_slots:
            raise UsageError(f"query: the table {slot} was not counted in this fit. {self._ways}")
        full = {name: self._full(name, slot) for name in names}
        return replace(
            query,
            columns=[full[name] for name in query.columns],
            by=[full[name] for name in query.by],
            where={full[name]: value for name, value in query.where.items()},
            versus={full[name]: value for name, value in query.versus.items()},
        )

    def _full(self, name: str, slot: str) -> str:
        """Return the name, with its counted table, of the column that a question of the table `slot` calls `name`."""
        schema, linked = slot_schema(self._counted, slot), self._counted.linked
        for full in (name, named(slot, name)):
            if full in schema.columns:
                return full
        own = name.rpartition(".")[2]
        if own in linked.child.columns:
            ways = [f"{REFERENCE}{own}", *(named(each, own) for each in self._measured_slots if each != PARENT)]
            raise UsageError(
                f"query: {own} is a column of {linked.names[1]} rows, and no table counts all of them: ask for "
                f"{listed(ways, 'or')}, or count in what sample_tables draws. {self._ways}"
            )
        names = [column.partition(".")[2] for column in schema.columns]
        raise SchemaError(f"query: the table {slot} has no column {own!r}{nearest(own, names)}.")

    @property
    def _ways(self) -> str:
        return what_counts(self._counted, self._measured_slots)


class SlotAnswers(Answers):
    """Answers from the noisy tables of one counted table, in units of parents."""

    def __init__(
        self,
        slot: str,
        counted: CountedTables,
        certificate: Certificate,
        measurements: Callable[[], pa.Table],
        model: Callable[[], Model],
    ) -> None:
        """Take the counted table's name and schema; the others are as in `Answers`."""
        super().__init__(slot_schema(counted, slot), certificate, measurements, lambda: model().slot_model(slot))
        self._slot, self._counted = slot, counted

    @cached_property
    def squares(self) -> Squares:
        """`Squares`, least squares over all tables of this counted table."""
        return Squares(slot_tables(self._counted, self._slot, self._certificate, self._measurements()))

    def figures_of(self, queries: Sequence[Query]) -> list[dict[str, list[Any]]]:
        """Return a list, one for each of `queries` to this table: {figure of `FIGURES` or `DESIGN`: list by cell}."""
        return self._figures_of(queries)

    def _notes(self, query: Query, answer: Answer, taken: NDArray[np.bool_]) -> list[str]:
        """Return a list of texts, by cell: notes on `answer`, an `Answer` to a `query`, and on rows that are parts.

        `taken` is a mask of the cells with assumed bounds.
        """
        said, (parent, child) = super()._notes(query, answer, taken), self._counted.linked.names
        if self._slot not in {OTHERS, REST}:
            return said
        part = f"a {child} counts as its part of the {parent}"
        return [f"{part}; {note}" if note else part for note in said]

    def _guessed(self, query: Query, unknown: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return an array, by cell: the model's value of a `query` where the mask `unknown` is true, else NaN.

        It is NaN for numbers, and for columns that the model lacks.
        """
        if query.numeric or not {*query.columns, *query.by, *query.where} <= set(self._model.schema.names):
            return np.full(len(unknown), np.nan)
        levels = {name: levels_of(self._schema, name, asked) for name, asked in query.where.items()}
        other = {name: level_of(self._schema, name, asked) for name, asked in query.versus.items()}
        return super()._guessed(replace(query, where=levels, versus=other), unknown)


def what_counts(counted: CountedTables, slots: Sequence[str]) -> str:
    """Return a sentence on what the counts of each of the counted tables `slots` are of."""
    (parent, child), weight = counted.linked.names, counted.row_weight.most
    parts = (
        f"1 for one, 1/2 for each of two, rounded down to parts of {weight}, so that these are no numbers of {child}s"
    )
    said = {
        PARENT: f"Columns without a table's name are of {parent}s, R_ before a name is the first {child}'s",
        SECOND: f"second. has {parent}s with a second {child}, by what that one is",
        OTHERS: f"others. has {parent}s with a third {child}: each further {child} counts as its part of the {parent}, "
        f"{parts}",
        REST: f"rest. has {parent}s with a second {child}: each {child} but the first counts as its part of the "
        f"{parent}, {parts}",
    }
    return f"Counts are of {parent}s. {'; '.join(said[slot] for slot in slots)}."


def _slot(query: Query) -> str:
    """Return the counted table of a resolved query; that of parents for one without columns."""
    return next((slot_of(name) for name in (*query.columns, *query.by, *query.where)), PARENT)
