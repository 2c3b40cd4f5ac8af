"""Feasibility of structural rules: the schema alone decides, before any charge, if some row keeps them all.

Every forbidden box is a clause, "some column's code lies outside", and a row is a code for each column. This is a
constraint problem over finite domains: unit propagation, then branching on the shortest clause (Davis, Logemann and
Loveland 1962). Sets of codes are bits of an integer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from stratsynth.errors import SchemaError

if TYPE_CHECKING:
    from stratsynth.schema.rules import Rule
    from stratsynth.schema.schema import Schema

STEPS = 2000
"""Largest number of branches of one search; rules not decided by then count as feasible."""

KNOWN = 1 << 12
"""Largest number of cached results."""

Codes = Mapping[str, Iterable[int]]
"""Codes that a row may have, by column; every code for columns not named."""
Clause = dict[str, int]
"""A forbidden box: by column the codes inside it, as bits of an integer."""


class Feasible:
    """The rules of a schema as clauses, to be tested under many conditions."""

    def __init__(self, schema: Schema, rules: Sequence[Rule] | None = None) -> None:
        """Compile the rules of a schema, or `rules` instead, if not None."""
        boxes = [box for rule in (schema.rules if rules is None else rules) for box in rule.cells(schema)]
        self._clauses: list[Clause] = [{c: _bits(codes) for c, codes in box.items()} for box in boxes]
        columns = dict.fromkeys(column for clause in self._clauses for column in clause)
        self._whole = {column: (1 << schema.size(column)) - 1 for column in columns}
        self._known: dict[tuple[int, ...], bool] = {}
        """Results, by the codes left free in each column in the order of `_whole`."""

    def keeps(self, where: Codes | None = None) -> bool:
        """True if the rules allow a row with codes in `where`, sets by column, any if absent; or if STEPS run out."""
        free = dict(self._whole)
        for column, codes in (where or {}).items():
            allowed = _bits(codes)
            if not allowed:
                return False
            if column in free:
                free[column] &= allowed
        key = tuple(free.values())  # strata that differ only in columns without rules have one key
        if key not in self._known:
            self._left = STEPS
            if len(self._known) >= KNOWN:
                self._known.clear()
            self._known[key] = self._search(free, self._clauses)
        return self._known[key]

    def _search(self, free: dict[str, int], clauses: Sequence[Clause]) -> bool:
        """True if `free`, a bit mask of codes by column, allows a row that breaks none of `clauses`; changes `free`."""
        self._left -= 1
        if self._left < 0:
            return True
        while True:
            # Unit propagation: a clause with one way out forces it.
            rest, forced = list[Clause](), False
            for clause in clauses:
                if any(not free[c] & bits for c, bits in clause.items()):
                    continue
                ways = [c for c, bits in clause.items() if free[c] & ~bits]
                if not ways:
                    return False
                if len(ways) == 1:
                    free[ways[0]] &= ~clause[ways[0]]
                    forced = True
                else:
                    rest.append(clause)
            clauses = rest
            if not forced:
                break
        if not clauses:
            return True
        # Branch on the shortest clause.
        clause = min(clauses, key=len)
        for column, bits in clause.items():
            outside = free[column] & ~bits
            if outside and self._search({**free, column: outside}, clauses):
                return True
            free[column] &= bits  # a row outside by this column has just been ruled out
            if not free[column]:
                return False
        return False


@lru_cache(maxsize=64)
def feasible(schema: Schema) -> Feasible:
    """Return a `Feasible`, the rules of this schema compiled to tell which rows they allow; cached."""
    return Feasible(schema)


def check_rules(schema: Schema) -> None:
    """Refuse a schema's rules that no row can keep, and name a minimal set of them that contradict each other.

    Raises:
        SchemaError: Rules that contradict each other.
    """
    if not schema.rules or feasible(schema).keeps():
        return
    core = list(enumerate(schema.rules, start=1))
    for item in list(core):
        fewer = [each for each in core if each is not item]
        if not Feasible(schema, [rule for _, rule in fewer]).keeps():
            core = fewer
    named = ", ".join(str(number) for number, _ in core)
    which = f"rules {named} of the schema contradict each other" if len(core) > 1 else f"rule {named} forbids every row"
    raise SchemaError(f"{which}: no row could ever be drawn. Correct or remove one of them.")


def _bits(codes: Iterable[int]) -> int:
    found = 0
    for code in codes:
        found |= 1 << code
    return found
