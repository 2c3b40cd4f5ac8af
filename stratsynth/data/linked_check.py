"""INTERNAL. Numbers of rows of two linked files that a fit settles in silence, for whoever holds the files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.data.linked_rows import ORDER, coded, keys_of
from stratsynth.data.linked_slots import of_kind
from stratsynth.data.lost import WORTH, part
from stratsynth.schema.values import floats

if TYPE_CHECKING:
    from stratsynth.data.sources import Source
    from stratsynth.schema.linked import LinkedSchema


@dataclass(frozen=True)
class LinkedCheck:
    """INTERNAL. Numbers of rows that a fit of two linked tables settles by a rule, or leaves out."""

    names: tuple[str, str]
    """Names of the parent table and of the child table."""
    parents: int
    children: int
    counted: int
    """Parents that a fit counts."""
    unknown_parents: int
    """Parent rows with values that the schema does not admit; they and their child rows are left out."""
    unknown_children: int
    """Child rows with values that the schema does not admit; they are left out."""
    other_kinds: int
    """Parent rows of a kind that is not counted."""
    without_key: int
    """Rows of either table without a key; they are left out."""
    duplicates: int
    """Parent rows whose key another parent row has; they are left out, with all rows of the key."""
    orphans: int
    """Child rows whose key no parent row has; they are left out."""
    childless: int
    """Parent rows of a counted kind without a child row; they are left out."""
    ties: int
    """Child rows that are not ordered within their parent by the declared columns alone."""
    beyond: int
    """Parents with more child rows than are drawn; all of their rows count."""
    kinds: Mapping[str, int] = field(default_factory=dict)
    """Parents of each other kind that a fit in strata of the kinds counts."""
    wanted: str = ""
    """The kind of parents that is counted, by its column and levels; empty where all are."""

    @property
    def lost(self) -> int:
        """Number of parent rows of a counted kind that a fit leaves out."""
        return self.parents - self.other_kinds - self.counted - sum(self.kinds.values())

    @property
    def ok(self) -> bool:
        """True unless no parent is counted, or more than a small part of the parents, or child rows, would be lost."""
        children = self.unknown_children + self.orphans
        return (
            self.counted > 0 and self.lost <= WORTH * max(1, self.parents) and children <= WORTH * max(1, self.children)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON values, stamped INTERNAL."""
        plain = {key: value for key, value in asdict(self).items() if key != "wanted"}
        return {"INTERNAL": True, "ok": self.ok, **plain, "names": list(self.names), "lost": self.lost}

    @property
    def lines(self) -> list[str]:
        """List of sentences on all numbers above 0, the outcome last."""
        parent, child = self.names
        said = (
            (self.other_kinds, f"{parent} rows are of kinds that are not counted."),
            (
                self.unknown_parents,
                f"{parent} rows have a value that the schema does not admit: left out, with all rows.",
            ),
            (self.unknown_children, f"{child} rows have a value that the schema does not admit: left out."),
            (self.without_key, "rows have no key: left out."),
            (self.duplicates, f"{parent} rows have a key that another one has: left out, with all rows of these keys."),
            (self.orphans, f"{child} rows have a key that no {parent} row has: left out."),
            (self.childless, f"{parent} rows of a counted kind have no {child} row: left out."),
            (self.ties, f"{child} rows are in no order by the declared columns: all columns break the tie."),
            (self.beyond, f"{parent} rows have more {child} rows than are drawn; a fit counts all of them."),
        )
        first = (
            f"{self.parents:,} {parent} rows, of which {self.counted:,} are counted; {self.children:,} {child} rows."
        )
        kinds = [
            f"{number:,} {parent} rows are {kind}, which strata of kinds count." for kind, number in self.kinds.items()
        ]
        none = f"No {parent} row is counted" + (
            f": is {self.wanted} the kind with {child} rows?" if self.wanted else "."
        )
        lost = f"{self.lost:,} {parent} rows of counted kinds ({part(self.lost, self.parents)}) would be lost."
        found = [first, *kinds, *(f"{number:,} {text}" for number, text in said if number), lost]
        return found if self.counted else [*found, none]


def check_linked(linked: LinkedSchema, parents: Source, children: Source) -> LinkedCheck:
    """INTERNAL: return a LinkedCheck: numbers of rows of two `Source`s that a fit by the linked schema leaves out."""
    above = parents.read((*linked.parent.names, linked.key))
    below = children.read((*linked.child.names, *linked.beside))
    owners, owned = keys_of(above.column(linked.key), below.column(linked.key))
    parent, (child, admitted) = coded(linked.parent, above)[0], coded(linked.child, below)
    size = 2 + max(owners.max(initial=-1), owned.max(initial=-1))
    values = {name: of_kind(linked, parent, name) for name in ("occupied", *linked.kinds)}
    column, told = linked.kind_column, dict.fromkeys(values, np.ones(len(owners), bool))
    if column is not None:
        told = {name: np.isin(parent.codes[column], linked.codes_of(name)[column]) for name in values}
    wanted, sound = (np.any([*masks.values()], axis=0) for masks in (told, values))
    times = np.bincount(owners[owners >= 0], minlength=size)
    alone = (owners >= 0) & (times[owners] == 1)
    rows = np.bincount(owned[(owned >= 0) & admitted], minlength=size)
    there = {
        n: alone & values[n] & ((rows[owners] > 0) | (n in linked.kinds and not linked.kinds[n].single)) for n in told
    }
    counted, childless = there["occupied"], sum(int((alone & values[n] & ~there[n]).sum()) for n in told)
    known = owned >= 0
    order = [
        child.numbers.get(name, child.codes[name]) if name in child.codes else floats(ORDER, below.column(name))[0]
        for name in linked.order
    ]
    places = np.lexsort([owned, *order][::-1])
    same = np.ones(max(0, len(owned) - 1), bool)
    for each in (owned, *order):
        ahead = each[places]
        same &= (ahead[1:] == ahead[:-1]) | (np.isnan(ahead[1:].astype(float)) & np.isnan(ahead[:-1].astype(float)))
    tied = np.append(same, False) | np.insert(same, 0, False) if len(owned) else np.zeros(0, bool)
    return LinkedCheck(
        linked.names,
        parents=len(owners),
        children=len(owned),
        counted=int(counted.sum()),
        unknown_parents=int((wanted & ~sound).sum()),
        unknown_children=int((~admitted).sum()),
        other_kinds=int((~wanted).sum()),
        without_key=int((owners < 0).sum() + (~known).sum()),
        duplicates=int((wanted & (owners >= 0) & (times[owners] > 1)).sum()),
        orphans=int((known & (times[owned] == 0)).sum()),
        childless=childless,
        ties=int((tied & (owned[places] >= 0)).sum()),
        beyond=int((counted & (rows[owners] > linked.most)).sum()),
        kinds={name: int(there[name].sum()) for name in linked.kinds},
        wanted="".join(f"{name} {' or '.join(levels)}" for name, levels in linked.occupied.items()),
    )
