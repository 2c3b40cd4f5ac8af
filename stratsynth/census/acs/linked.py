"""Schemas of both files of the survey: households, and the persons that SERIALNO links to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stratsynth.census.acs.catalogue import entry, in_year
from stratsynth.census.acs.make import make
from stratsynth.census.two_tables import across, derived
from stratsynth.errors import UsageError
from stratsynth.schema.linked import LinkedSchema

HOUSEHOLD = ("TEN", "BLD", "HHT", "HINCP")
PERSON = ("AGEP", "SEX", "RAC1P", "HISP", "SCHL", "MAR", "ESR", "PINCP")
NEEDED = {"households": ("HINCP",), "persons": ("AGEP", "PINCP")}
"""Columns without which sizes and incomes could not be kept right."""
MOST = 12
"""Largest number of persons of a household that are drawn."""


@dataclass(frozen=True)
class MadeLinked:
    """Schema of both files with notes for its reader."""

    schema: LinkedSchema
    notes: tuple[str, ...]
    """Origin of both tables, and the sources of their code lists."""

    def to_toml(self) -> str:
        """Return the text of a schema file, with the notes as comments before it."""
        return "".join(f"# {note}\n" for note in self.notes) + self.schema.to_toml()


def linked_schema(
    columns: Sequence[str] = PERSON,
    households: Sequence[str] = HOUSEHOLD,
    *,
    year: int,
    state: str | None = None,
) -> LinkedSchema:
    """Return the public `LinkedSchema` of households and their persons.

    Occupied housing units alone are counted: vacant ones and group quarters are records of other kinds. The number of
    persons, of children, and the household's income are those of its persons.

    Args:
        columns: Columns of persons, by their names in that year; AGEP and PINCP among them.
        households: Columns of households; HINCP among them. NP and N18, persons and members under 18 besides the
            reference person, and the kind of record are added.
        year: The survey year, 2014 to 2024.
        state: The two letters of the state, for files of one state.

    Raises:
        UsageError: A column that is unknown, of other years, or of the other file; with the remedy.
    """
    return make_linked(columns, households, year=year, state=state).schema


def make_linked(
    columns: Sequence[str] = PERSON,
    households: Sequence[str] = HOUSEHOLD,
    *,
    year: int,
    state: str | None = None,
) -> MadeLinked:
    """Return `MadeLinked`: schema and notes on its sources, as `linked_schema` makes it.

    `columns` and `households` are those of the two tables, `year` is the survey's, `state` that of codes or None.
    """
    kind = in_year("TYPEHUGQ", year)
    own = {"persons": tuple(columns), "households": tuple(households)}
    for records, names in own.items():
        if missing := [name for name in NEEDED[records] if name not in names]:
            raise UsageError(f"census: {records} need the column {missing[0]}, which holds the two tables together.")
        other = [name for name in names if entry(name, year).records != records and name not in {"STATE", "ST", "PUMA"}]
        if other:
            raise UsageError(f"census: {other[0]} is no column of the file of {records}.")
    wanted = [kind, *(name for name in own["households"] if name not in {kind, "NP", "N18"})]
    above, below = (make(names, year=year, state=state) for names in (wanted, own["persons"]))
    made = LinkedSchema(
        parent=above.schema,
        child=below.schema,
        key="SERIALNO",
        order="SPORDER",
        most=MOST,
        derived=derived(),
        difference="AGEP",
        occupied={kind: ("1",)},
        rules=across(above.schema, below.schema),
    )
    return MadeLinked(made, tuple(dict.fromkeys((*above.notes, *below.notes))))
