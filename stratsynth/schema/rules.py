"""Structural zeros, combinations of values that no record can have, and whether some row keeps them all.

The schema alone decides the latter, before any charge. Every forbidden box is a clause, "some column's code lies
outside", and a row is a code for each column. This is a constraint problem over finite domains: unit propagation, then
branching on the shortest clause (Davis, Logemann and Loveland 1962). Sets of codes are bits of an integer.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from stratsynth.errors import SchemaError
from stratsynth.schema.columns import Column, Numeric

if TYPE_CHECKING:
    from stratsynth.schema.schema import Schema


Condition: TypeAlias = str | tuple[str, ...]
"""A level, several levels, or for a numeric column a comparison with a number such as "< 15" or ">= 65"."""

_COMPARISON = re.compile(r"\s*(<=|>=|<|>)(.*)", re.DOTALL)
_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A record that meets every condition of `when` never meets any condition of `never`.

    Rules are checked against the columns and kept with the schema. No sample of a release breaks one: models may
    hold them, and rows that break one are drawn again (`stratsynth.models.rules`). Private rows are not checked:
    a record that breaks a rule is counted as it is.
    """

    when: Mapping[str, Condition] = field(hash=False)
    """Conditions by column, all of which must hold for the rule to apply."""

    never: Mapping[str, Condition] = field(hash=False)
    """Conditions by column, each of which is impossible if the rule applies."""

    def __post_init__(self) -> None:
        for key in ("when", "never"):
            object.__setattr__(self, key, _conditions(key, getattr(self, key)))
        if both := self.when.keys() & self.never.keys():
            raise SchemaError(f"when and never must not both name column {min(both)}")

    @property
    def names(self) -> frozenset[str]:
        """Set of the names of all columns that the rule mentions."""
        return frozenset(self.when.keys() | self.never.keys())

    def cells(self, schema: Schema) -> tuple[dict[str, frozenset[int]], ...]:
        """Return a tuple of forbidden boxes of a schema, {column: set of level numbers}, one for each of `never`.

        A bin meets a comparison only if all its values do, so that forbidden cells are
        certainly empty. Not applicable and missing meet no comparison.
        """
        when = {name: _codes(schema, name, condition) for name, condition in self.when.items()}
        return tuple({**when, name: _codes(schema, name, condition)} for name, condition in self.never.items())


def _conditions(key: str, conditions: object) -> dict[str, Condition]:
    if not isinstance(conditions, Mapping) or not conditions:
        raise SchemaError(f"{key} must be a table from column to levels, with at least one column")
    found: dict[str, Condition] = {}
    for name, condition in conditions.items():
        levels = isinstance(condition, (list, tuple)) and condition and all(isinstance(c, str) for c in condition)
        if not isinstance(condition, str) and not levels:
            raise SchemaError(
                f"{key}: the condition on {name} must be a level, a list of levels, or a comparison in quotes"
            )
        found[name] = condition if isinstance(condition, str) else tuple(condition)
    return found


def _codes(schema: Schema, name: str, condition: Condition) -> frozenset[int]:
    column = schema.column(name)
    if isinstance(condition, str):
        compared = None if condition in column.codes else _compared(column, condition)
        return compared if compared is not None else frozenset({schema.index(name, condition)})
    return frozenset(schema.index(name, level) for level in condition)


def _compared(column: Column, condition: str) -> frozenset[int] | None:
    """Return the set of codes of a column's bins wholly inside `condition`, such as `>= 18`; None for no comparison."""
    match = _COMPARISON.fullmatch(condition)
    if match is None or not isinstance(column, Numeric) or (bound := column.quantity(match[2])) is None:
        return None
    compare = _COMPARE[match[1]]
    return frozenset(code for code, ends in enumerate(column.extents) if all(compare(end, bound) for end in ends))


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
        """True if rules allow a row of codes in `where`, {column: set}, any if absent or None; or if STEPS run out."""
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
        """True if `free`, {column: bit mask of codes}, allows a row in no box of `clauses`, like dicts; changed."""
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
