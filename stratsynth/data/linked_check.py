"""INTERNAL. Numbers of rows of two linked files that a fit settles in silence, for whoever holds the files."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.data.linked_rows import ORDER, coded, keys_of
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

    @property
    def lost(self) -> int:
        """Number of parent rows of a counted kind that a fit leaves out."""
        return self.parents - self.other_kinds - self.counted

    @property
    def ok(self) -> bool:
        """True unless more than a small part of the parents, or of the child rows, would be lost."""
        children = self.unknown_children + self.orphans
        return self.lost <= WORTH * max(1, self.parents) and children <= WORTH * max(1, self.children)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON values, stamped INTERNAL."""
        return {"INTERNAL": True, "ok": self.ok, **asdict(self), "names": list(self.names), "lost": self.lost}

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
        lost = f"{self.lost:,} {parent} rows of counted kinds ({part(self.lost, self.parents)}) would be lost."
        return [first, *(f"{number:,} {text}" for number, text in said if number), lost]


def check_linked(linked: LinkedSchema, parents: Source, children: Source) -> LinkedCheck:
    """INTERNAL: return a LinkedCheck: numbers of rows of two `Source`s that a fit by the linked schema leaves out."""
    above = parents.read((*linked.parent.names, linked.key))
    below = children.read((*linked.child.names, *linked.beside))
    owners, owned = keys_of(above.column(linked.key), below.column(linked.key))
    (parent, sound), (child, admitted) = coded(linked.parent, above), coded(linked.child, below)
    size = 2 + max(owners.max(initial=-1), owned.max(initial=-1))
    wanted = np.ones(len(owners), bool)
    for name, levels in linked.occupied.items():
        wanted &= np.isin(parent.codes[name], [linked.parent.index(name, level) for level in levels])
    times = np.bincount(owners[owners >= 0], minlength=size)
    alone = (owners >= 0) & (times[owners] == 1)
    rows = np.bincount(owned[(owned >= 0) & admitted], minlength=size)
    kept = wanted & sound & alone
    counted = kept & (rows[owners] > 0)
    known = owned >= 0
    order = [
        child.numbers.get(name, child.codes[name]) if name in child.codes else floats(ORDER, below.column(name))[0]
        for name in linked.order
    ]
    places = np.lexsort([owned, *order][::-1])
    same = np.ones(max(0, len(owned) - 1), bool)
    for values in (owned, *order):
        ahead = values[places]
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
        childless=int((kept & (rows[owners] == 0)).sum()),
        ties=int((tied & (owned[places] >= 0)).sum()),
        beyond=int((counted & (rows[owners] > linked.most)).sum()),
    )
