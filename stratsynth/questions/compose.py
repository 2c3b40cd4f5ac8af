"""`Split` and `Work`: they cost nothing. A split is parallel composition itself, and work touches no row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from stratsynth.accounting.budget import Neighbours
from stratsynth.accounting.charges import Charge
from stratsynth.errors import MechanismError
from stratsynth.questions.base import Program, check_clique
from stratsynth.strata import Path, Stratum, disjoint

if TYPE_CHECKING:
    from stratsynth.schema import Schema

R = TypeVar("R")
P = TypeVar("P")


@dataclass(frozen=True)
class Split:
    """Parallel composition as an operation: one program for each stratum, all run in lock-step.

    A record lies in at most one stratum, so the charges of different strata do not add up: the split costs
    what its dearest stratum costs.
    """

    programs: Mapping[Stratum, Program[Any]]

    def check(self, schema: Schema) -> None:
        """Strata of the same columns, with known levels, and no cell of the crossing in two of them."""
        strata = list(self.programs)
        if not strata:
            raise MechanismError("split: no stratum was given.")
        for stratum in strata:
            if stratum.columns != strata[0].columns:
                raise MechanismError("split: all strata of a split must be of the same columns.")
            check_clique("split", stratum.columns, schema)
            for column, levels in stratum.items:
                codes = [schema.index(column, level) for level in levels]
                if not codes or codes != sorted(set(codes)):
                    raise MechanismError(f"split: the levels of {column} are in the schema's order, each once.")
                if any("|" in level for level in levels):
                    raise MechanismError(f"split: a level of {column} holds a |, which joins levels in ledgers.")
        if sum(stratum.size for stratum in strata) > schema.cells(strata[0].columns) or not disjoint(strata):
            raise MechanismError("split: two strata have records in common, so their charges would add up.")

    def charges(self, schema: Schema, path: Path, neighbours: Neighbours) -> tuple[Charge, ...]:  # noqa: ARG002
        """Nothing by itself."""
        return ()


@dataclass(frozen=True)
class Work:
    """Post-processing handed to the driver, so that the same solver's problems are solved together."""

    solver: Callable[[Sequence[Any]], Sequence[Any]]
    """Takes problems that are asked at the same moment; returns their solutions in order, each of its problem alone.

    A problem may have a `size`, by which the largest are begun first where they are solved in several processes.
    """
    problem: Any

    def check(self, schema: Schema) -> None:
        """There is nothing to check: no row is involved."""

    def charges(self, schema: Schema, path: Path, neighbours: Neighbours) -> tuple[Charge, ...]:  # noqa: ARG002
        """Nothing."""
        return ()


def split(programs: Mapping[Stratum, Program[R]]) -> Program[dict[Stratum, R]]:
    """Run one program for each stratum: `results = yield from split({...})`, by stratum."""
    answer = yield Split(programs)
    return cast("dict[Stratum, R]", answer)


def work(solver: Callable[[Sequence[P]], Sequence[R]], problem: P) -> Program[R]:
    """Have a problem solved together with those that other strata hand out now: `x = yield from work(...)`."""
    answer = yield Work(solver, problem)
    return cast("R", answer)
