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


Answering = Callable[[Sequence[Asked]], Sequence[Answer]]
"""Answers all questions that are pending at one moment, in order. Splits and work never reach it."""


class _Frame:
    """One running program: where it runs, and what it waits for."""

    def __init__(self, program: Program[Any], path: StratumPath, schema: Schema) -> None:
        self.program = program
        self.path = path
        self.schema = schema
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
        self.question.check(self.schema)
        if type(self.question) is Split:
            for stratum, program in self.question.programs.items():
                child = _Frame(program, (*self.path, stratum), within(self.schema, (stratum,)))
                self.children[stratum] = child
                child.send(None)

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


def run(program: Program[R], schema: Schema, answer: Answering, solve: Solving = together) -> R:
    """Run a program, and the programs it splits into, to the end; return its result. `solve` does their work."""
    root = _Frame(program, (), schema)
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
