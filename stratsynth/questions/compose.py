"""`Split` and `Work`, which cost nothing: parallel composition, and post-processing without a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

from stratsynth.accounting.budget import Currency, Neighbours
from stratsynth.accounting.charges import Charge
from stratsynth.errors import MechanismError
from stratsynth.questions.admission import OPAQUE, known
from stratsynth.questions.base import Answer, Program, Setting, Unkept, check_clique
from stratsynth.questions.reading import Exact
from stratsynth.schema.counted_tables import CountedTables
from stratsynth.strata import Stratum, StratumPath, disjoint

if TYPE_CHECKING:
    from stratsynth.noise import Entropy
    from stratsynth.schema import Schema

R = TypeVar("R")
P = TypeVar("P")


class WithoutRows(Unkept):
    """Base of kinds that the driver answers by itself, without a row and without a charge."""

    dearest: ClassVar[Mapping[Currency, int]] = dict.fromkeys(Currency, 1)

    def exactly(self) -> WithoutRows:
        """Return itself: nothing is priced."""
        return self

    def charges(self, schema: Schema, path: StratumPath, neighbours: Neighbours) -> tuple[Charge, ...]:
        """Return no `Charge`, (), whatever schema, path and neighbours: the question costs nothing."""
        return ()

    def answer(self, at: Setting, exact: Exact, entropy: Entropy, memory: dict[Any, Any]) -> Answer:
        """Raise MechanismError at any Setting: the driver answers, without `exact` reads, `entropy` or `memory`."""
        raise MechanismError(f"{type(self).__name__} is no kind of question that rows can answer.")


@known
@dataclass(frozen=True)
class Split(WithoutRows):
    """Parallel composition as an operation: one program for each stratum, all run in lock-step.

    A record lies in at most one stratum, so the charges of different strata do not add up: the split costs
    what its dearest stratum costs.
    """

    programs: Mapping[Stratum, Program[Any]] = field(metadata={OPAQUE: True})
    alike: Mapping[Stratum, Sequence[Stratum]] | None = None
    """Strata that each program stands for in a rehearsal, its own included. None in every fit: each program runs for
    its own stratum alone."""

    @property
    def strata(self) -> list[Stratum]:
        """List of all strata, one entry each, including those that another stratum's program stands for."""
        return list(self.programs) if self.alike is None else [s for kind in self.alike.values() for s in kind]

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: programs no plain dict by stratum, columns not in `schema`, overlapping strata."""
        plain = type(self.programs) is dict and (self.alike is None or type(self.alike) is dict)
        if not plain or not all(type(stratum) is Stratum for stratum in self.programs):
            raise MechanismError("split: programs are a plain dict by Stratum; another class could turn.")
        if self.alike is not None and not (
            [*self.alike] == [*self.programs]
            and all(type(kind) is list and stratum in kind for stratum, kind in self.alike.items())
        ):
            raise MechanismError("split: strata that are alike have one program, which is that of one of them.")
        strata = self.strata
        if not all(type(stratum) is Stratum for stratum in strata):
            raise MechanismError("split: what is alike are lists of Stratum; another class could turn.")
        if not strata:
            raise MechanismError("split: no stratum was given.")
        for stratum in strata:
            if stratum.columns != strata[0].columns:
                raise MechanismError("split: all strata of a split must be of the same columns.")
            if not isinstance(schema, CountedTables):  # which names them in each table
                check_clique("split", stratum.columns, schema)
            for column, levels in stratum.items:
                codes = [schema.index(column, level) for level in levels]
                if not codes or codes != sorted(set(codes)):
                    raise MechanismError(f"split: the levels of {column} are in the schema's order, each once.")
                if any("|" in level for level in levels):
                    raise MechanismError(f"split: a level of {column} holds a |, which joins levels in ledgers.")
        if sum(stratum.size for stratum in strata) > schema.cells(strata[0].columns) or not disjoint(strata):
            raise MechanismError("split: two strata have records in common, so their charges would add up.")


@dataclass(frozen=True)
class Solver(Generic[P, R]):
    """A solver of problems of one kind. Other processes import its functions by name."""

    solve: Callable[[Sequence[P]], Sequence[R]]
    """Function of a batch of problems: returns their solutions in order, each depending on its problem alone."""
    apart: bool = False
    """True if it gains nothing from batches: problems are then solved side by side, each in one thread."""
    size: Callable[[P], float] | None = None
    """Approximate work of a problem: with several processes, the largest are begun first."""
    hasty: Callable[[P], P] | None = None
    """Version of a problem that is solved quickly and badly: for plans, whose answers are made up. None for itself."""


@known
@dataclass(frozen=True)
class Work(WithoutRows):
    """Post-processing handed to the driver, which solves problems of one solver together."""

    solver: Solver[Any, Any] = field(metadata={OPAQUE: True})
    problem: Any = field(metadata={OPAQUE: True})

    def check(self, schema: Schema) -> None:
        """Accept every work, in any schema, without a check: no row is involved."""


def split(
    programs: Mapping[Stratum, Program[R]], alike: Mapping[Stratum, Sequence[Stratum]] | None = None
) -> Program[dict[Stratum, R]]:
    """Run a program in each stratum: `results = yield from split({...})`, a dict by stratum; `alike` as in `Split`."""
    answer = yield Split(programs, alike)
    return cast("dict[Stratum, R]", answer)


def work(solver: Solver[P, R], problem: P) -> Program[R]:
    """Have the driver compute solver(problem), with those of other strata: `solution = yield from work(...)`."""
    answer = yield Work(solver, problem)
    return cast("R", answer)
