"""Designs as regressions want them: without a feature for each reference level, with products of columns on request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stratsynth.errors import MechanismError
from stratsynth.questions.admission import known
from stratsynth.questions.base import is_plain_tuple
from stratsynth.questions.queries import Design
from stratsynth.schema import Categorical

if TYPE_CHECKING:
    from stratsynth.schema import Schema


@known
@dataclass(frozen=True)
class Coded(Design):
    """As `Design`, but that a categorical column's reference level has no feature: the intercept stands for it.

    A separate class, so that designs of earlier versions keep their identity.
    """

    reference: tuple[tuple[str, str], ...] = ()
    """The reference level of a categorical column; the first one where none is given."""
    interactions: tuple[tuple[str, str], ...] = ()
    """Pairs of columns of which each feature of the one is multiplied with each of the other."""

    def check(self, what: str, schema: Schema) -> None:
        """As for `Design`; references are levels of their columns, and interactions are pairs of different columns."""
        if not self.intercept:
            raise MechanismError(f"{what}: without an intercept there is nothing to stand for the reference levels.")
        if type(self.columns) is not tuple or self.columns:
            Design.check(self, what, schema)
        several = self.reference, self.interactions
        if not all(is_plain_tuple(pairs, tuple) and all(is_plain_tuple(p, str) for p in pairs) for pairs in several):
            raise MechanismError(f"{what}: references and interactions are tuples of pairs.")
        for name, level in self.reference:
            column = schema.columns.get(name)
            if name not in self.columns or not isinstance(column, Categorical) or level not in column.all_levels:
                raise MechanismError(f"{what}: {level!r} is no level of a categorical column {name!r} of the design.")
        pairs = {frozenset(pair) for pair in self.interactions}
        if len(pairs) < len(self.interactions) or any(len(pair) != 2 or not pair <= {*self.columns} for pair in pairs):
            raise MechanismError(f"{what}: an interaction is of two different columns of the design, each pair once.")

    def products(self, schema: Schema) -> tuple[tuple[int, ...], ...]:
        """All but the reference levels as they are, then the products."""
        said, at, found = dict(self.reference), 1, dict[str, list[int]]()
        for name in self.columns:
            column = schema.column(name)
            size = len(Design((name,), intercept=False).plain(schema))
            numbers = list(range(at, at + size))
            if isinstance(column, Categorical):
                del numbers[column.all_levels.index(said.get(name, column.all_levels[0]))]
            found[name], at = numbers, at + size
        pairs = [(i, j) for one, other in self.interactions for i in found[one] for j in found[other]]
        return ((0,), *((i,) for numbers in found.values() for i in numbers), *pairs)

    @property
    def most_features(self) -> int:
        """An intercept, one a column and one a pair: of a column's features at most one is not 0."""
        return 1 + len(self.columns) + len(self.interactions)
