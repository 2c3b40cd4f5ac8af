"""Running programs in lock-step: everything that is asked at the same moment is answered together.

Nothing here knows rows, noise or budgets. `answer` is the one function that does; it is given all pending
questions at once, in a fixed order that depends on the declared strata only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from stratsynth.driver.solving import Solving, together
from stratsynth.errors import MechanismError, StratsynthError
from stratsynth.questions import Answer, Program, Question, Solver, Split, Work
from stratsynth.questions.base import check_unwritten
from stratsynth.schema import Schema
from stratsynth.strata import Stratum, StratumPath, label, within

R = TypeVar("R")


@dataclass(frozen=True)
class Asked:
    """A question and where it was asked."""

    path: StratumPath
    schema: Schema
    """The columns that vary at this path."""
    question: Question


Alike = dict[StratumPath, tuple[StratumPath, ...]]
"""In a rehearsal, for each path at which a program runs, all paths that it stands for, its own among them."""
Answering = Callable[[Sequence[Asked]], Sequence[Answer]]
"""Answers all questions that are pending at one moment, in order. Splits and work never reach it."""


class _Frame:
    """One running program: where it runs, and what it waits for."""

    def __init__(self, program: Program[Any], path: StratumPath, schema: Schema, alike: Alike | None) -> None:
        self.program = program
        self.path = path
        self.schema = schema
        self.alike = alike
        self.children: dict[Stratum, _Frame] = {}
        """The programs of the split it waits for, in declared order."""
        self.question: Question | None = None
        """What it asks now; None once it is done."""
        self.result: Any = None

    def send(self, answer: Answer) -> None:
        """Give it an answer and run it to its next question or its end."""
        self.children = {}
        try:
            self.question = self.program.send(answer)
        except StopIteration as stop:
            self.question, self.result = None, stop.value
            return
        except StratsynthError:
            raise
        except Exception as error:
            if not self.path:
                raise
            # by name alone: what the error says may be of the answers
            raise MechanismError(f"stratum {label(self.path)}: its program failed ({type(error).__name__}).") from error
        if not isinstance(self.question, Question):
            raise MechanismError(f"a program asked {type(self.question).__name__}, which is no question.")
        check_unwritten(self.question)
        self.question.check(self.schema)
        if type(self.question) is Split:
            self._stand(self.question)
            for stratum, program in self.question.programs.items():
                child = _Frame(program, (*self.path, stratum), within(self.schema, (stratum,)), self.alike)
                self.children[stratum] = child
                child.send(None)

    def _stand(self, split: Split) -> None:
        """Note which paths each program of a split stands for."""
        if self.alike is None:
            if split.alike is not None:
                raise MechanismError("a fit runs a program in every stratum: one for several is for rehearsals alone.")
            return
        for stratum in split.programs:
            kind = (stratum,) if split.alike is None else split.alike[stratum]
            self.alike[*self.path, stratum] = tuple((*above, one) for above in self.alike[self.path] for one in kind)

    def waiting(self) -> list[_Frame]:
        """The frames at and below this one that wait for an answer from outside, in declared order."""
        if self.question is None:
            return []
        if not self.children:
            return [self]
        return [frame for child in self.children.values() for frame in child.waiting()]

    def settle(self) -> None:
        """Where all programs of a split are done, go on with their results; deepest first."""
        while self.children:
            for child in self.children.values():
                child.settle()
            if any(child.question is not None for child in self.children.values()):
                return
            self.send({stratum: child.result for stratum, child in self.children.items()})

    def close(self) -> None:
        """Leave no program hanging after an error or an interrupt."""
        for child in self.children.values():
            child.close()
        self.program.close()


def run(
    program: Program[R], schema: Schema, answer: Answering, solve: Solving = together, alike: Alike | None = None
) -> R:
    """Run a program, and the programs it splits into, to the end.

    Args:
        program: What is run.
        schema: The columns that everybody's rows vary in.
        answer: Answers its questions.
        solve: Does its work.
        alike: For a rehearsal: filled with the paths that each program stands for. None refuses one for several.

    Returns:
        What the program returns.
    """
    if alike is not None:
        alike[()] = ((),)
    root = _Frame(program, (), schema, alike)
    try:
        root.send(None)
        root.settle()
        while frames := root.waiting():
            for frame, reply in zip(frames, _replies(frames, answer, solve), strict=True):
                frame.send(reply)
            root.settle()
        return root.result  # type: ignore[no-any-return]
    finally:
        root.close()


def _replies(frames: Sequence[_Frame], answer: Answering, solve: Solving) -> list[Answer]:
    """Work is solved together with all work of the same solver; everything else is answered in one batch."""
    replies: dict[int, Answer] = {}
    works: dict[Solver[Any, Any], dict[int, Work]] = {}
    asked: dict[int, Asked] = {}
    for i, frame in enumerate(frames):
        question = frame.question
        if type(question) is Work:
            works.setdefault(question.solver, {})[i] = question
        elif question is not None:
            asked[i] = Asked(frame.path, frame.schema, question)
    if asked:
        replies.update(zip(asked, answer(list(asked.values())), strict=True))
    for solver, mine in works.items():
        solved = solve(solver, [question.problem for question in mine.values()], [frames[i].path for i in mine])
        replies.update(zip(mine, solved, strict=True))
    return [replies[i] for i in range(len(frames))]
