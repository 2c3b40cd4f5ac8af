"""Schemas of both files of the survey: households, and the persons that SERIALNO links to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stratsynth.census.acs.catalogue import entry, in_year
from stratsynth.census.acs.make import make
from stratsynth.census.two_tables import across, derived
from stratsynth.errors import UsageError
from stratsynth.schema.kinds import ParentKind
from stratsynth.schema.linked import LinkedSchema

KIND, VACANCY = "KIND", "VACS"
"""Column of the kind of record, which loading makes, and that of vacant units alone."""
PLACES = frozenset({"STATE", "ST", "PUMA"})
"""Columns of both files."""
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
    kinds: bool = False,
) -> LinkedSchema:
    """Return the public `LinkedSchema` of households and their persons.

    The number of persons, of children, and the household's income are those of its persons.

    Args:
        columns: Columns of persons, by their names in that year; AGEP and PINCP among them.
        households: Columns of households; HINCP among them. NP and N18, persons and members under 18 besides the
            reference person, and the kind of record are added.
        year: The survey year, 2014 to 2024.
        state: The two letters of the state, for files of one state.
        kinds: True for vacant units and group quarters too, by the column KIND that `census load --households` writes:
            strata by KIND count them, each kind in its own columns. Otherwise occupied housing units alone are counted.

    Raises:
        UsageError: A column that is unknown, of other years, or of the other file; with the remedy.
    """
    return make_linked(columns, households, year=year, state=state, kinds=kinds).schema


def make_linked(
    columns: Sequence[str] = PERSON,
    households: Sequence[str] = HOUSEHOLD,
    *,
    year: int,
    state: str | None = None,
    kinds: bool = False,
) -> MadeLinked:
    """Return `MadeLinked`: schema and notes on its sources, as `linked_schema` makes it.

    `columns` and `households` are those of the two tables, `year` is the survey's, `state` that of codes or None. With
    `kinds`, a flag, other kinds of records are declared.
    """
    kind = KIND if kinds else in_year("TYPEHUGQ", year)
    own = {"persons": tuple(columns), "households": (*households, *((VACANCY,) if kinds else ()))}
    for records, names in own.items():
        if missing := [name for name in NEEDED[records] if name not in names]:
            raise UsageError(f"census: {records} need the column {missing[0]}, which holds the two tables together.")
        other = [name for name in names if entry(name, year).records != records and name not in PLACES]
        if other:
            raise UsageError(f"census: {other[0]} is no column of the file of {records}.")
    wanted = [kind, *(name for name in dict.fromkeys(own["households"]) if name not in {kind, "NP", "N18"})]
    if not kinds and (vacant := [name for name in wanted if "occupied" in entry(name, year).absent]):
        raise UsageError(f"census: occupied units have no {vacant[0]}: leave it out, or count all kinds (kinds).")
    above, below = (make(names, year=year, state=state) for names in (wanted, own["persons"]))

    def of(lacking: str) -> tuple[str, ...]:
        """Return the columns of households but the kind that records of a kind do not lack, by its words."""
        return tuple(name for name in wanted[1:] if lacking not in entry(name, year).absent)

    others = {
        "vacant": ParentKind(levels=("2",), columns=of("vacant")),
        "quarters": ParentKind(levels=("3", "4"), columns=of("group quarters"), single=True),
    }
    made = LinkedSchema(
        parent=above.schema,
        child=below.schema,
        key="SERIALNO",
        order="SPORDER",
        most=MOST,
        derived=derived(),
        difference="AGEP",
        occupied={kind: ("1",)},
        kinds=others if kinds else {},
        absent=tuple(name for name in wanted[1:] if name not in of("occupied")) if kinds else (),
        rules=across(above.schema, below.schema),
    )
    return MadeLinked(made, tuple(dict.fromkeys((*above.notes, *below.notes))))
