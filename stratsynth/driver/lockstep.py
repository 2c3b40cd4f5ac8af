"""Running programs in lock-step: everything that is asked at the same moment is answered together.

Nothing here knows rows, noise or budgets: the answers do, which a run takes as an argument. They are given all pending
questions at once, in a fixed order that depends on the declared strata only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, replace
from typing import Any, TypeVar

from stratsynth.driver.solving import Solving, together
from stratsynth.errors import MechanismError, StratsynthError
from stratsynth.questions import Answer, Program, Question, Solver, Split, Work
from stratsynth.questions.admission import Copies, admitted
from stratsynth.schema import Schema
from stratsynth.strata import Stratum, StratumPath, label, within

R = TypeVar("R")


@dataclass(frozen=True)
class Asked:
    """A question and where it was asked. The question is a sound, read-only copy, whoever makes this record."""

    path: StratumPath
    schema: Schema
    """The columns that vary at this path."""
    question: Question
    copies: InitVar[Copies | None] = None
    """The copies made for the last question of the same program: see `admitted`."""

    def __post_init__(self, copies: Copies | None) -> None:
        """Admit the question: from here on nobody else holds what is priced and read."""
        object.__setattr__(self, "question", admitted(self.question, self.schema, copies))


class Answers(ABC):
    """The answers of one run: from private rows, made up for a plan, or audited."""

    def admit(self, asked: Asked) -> None:
        """Refuse a question that this run may not ask; called when a program asks it, of splits too."""
        if type(asked.question) is Split and asked.question.alike is not None:
            raise MechanismError("a fit runs a program in every stratum: one for several is for rehearsals alone.")

    @abstractmethod
    def __call__(self, asked: Sequence[Asked]) -> Sequence[Answer]:
        """The answers to all questions that are pending at one moment, in order. Splits and work never come here."""


class _Frame:
    """One running program: where it runs, and the question that it waits for."""

    def __init__(self, program: Program[Any], path: StratumPath, schema: Schema, answers: Answers) -> None:
        self.program = program
        self.path = path
        self.schema = schema
        self.answers = answers
        self.children: dict[Stratum, _Frame] = {}
        """The programs of the split it waits for, in declared order."""
        self.asked: Asked | None = None
        """The question that rows have to answer, or the split."""
        self.work: Work | None = None
        """The problem that has to be solved."""
        self.done = False
        self.result: Any = None
        self._copies: Copies = {}

    def send(self, answer: Answer) -> None:
        """Give it an answer and run it to its next question or its end."""
        self.children, self.asked, self.work = {}, None, None
        try:
            question = self.program.send(answer)
        except StopIteration as stop:
            self.done, self.result = True, stop.value
            self._copies.clear()
            return
        except StratsynthError:
            raise
        except Exception as error:
            if not self.path:
                raise
            # by name alone: what the error says may be of the answers
            raise MechanismError(f"stratum {label(self.path)}: its program failed ({type(error).__name__}).") from error
        if not isinstance(question, Question):
            raise MechanismError(f"a program asked {type(question).__name__}, which is no question.")
        if type(question) is Work:
            self.work = question
            return
        self.asked = Asked(self.path, self.schema, question, self._copies)
        self.answers.admit(self.asked)
        if type(self.asked.question) is Split:
            for stratum, program in self.asked.question.programs.items():
                schema = within(self.schema, (stratum,))
                child = self.children[stratum] = _Frame(program, (*self.path, stratum), schema, self.answers)
                child.send(None)

    def waiting(self) -> list[_Frame]:
        """The frames at and below this one that wait for an answer from outside, in declared order."""
        if self.done:
            return []
        if not self.children:
            return [self]
        return [frame for child in self.children.values() for frame in child.waiting()]

    def settle(self) -> None:
        """Where all programs of a split are done, go on with their results; deepest first."""
        while self.children:
            for child in self.children.values():
                child.settle()
            if not all(child.done for child in self.children.values()):
                return
            self.send({replace(stratum): child.result for stratum, child in self.children.items()})

    def close(self) -> None:
        """Leave no program hanging after an error or an interrupt."""
        for child in self.children.values():
            child.close()
        self.program.close()


def run(program: Program[R], schema: Schema, answers: Answers, solve: Solving = together) -> R:
    """Run a program, and the programs it splits into, to the end.

    Args:
        program: The generator of questions.
        schema: The columns that everybody's rows vary in.
        answers: Answers its questions.
        solve: Does its work.

    Returns:
        The value that the program returns.
    """
    root = _Frame(program, (), schema, answers)
    try:
        root.send(None)
        root.settle()
        while frames := root.waiting():
            for frame, reply in zip(frames, _replies(frames, answers, solve), strict=True):
                frame.send(reply)
            root.settle()
        return root.result  # type: ignore[no-any-return]
    finally:
        root.close()


def _replies(frames: Sequence[_Frame], answers: Answers, solve: Solving) -> list[Answer]:
    """Work is solved together with all work of the same solver; everything else is answered in one batch."""
    replies: dict[int, Answer] = {}
    works: dict[Solver[Any, Any], dict[int, Work]] = {}
    asked: dict[int, Asked] = {}
    for i, frame in enumerate(frames):
        if frame.work is not None:
            works.setdefault(frame.work.solver, {})[i] = frame.work
        elif frame.asked is not None:
            asked[i] = frame.asked
    if asked:
        replies.update(zip(asked, answers(list(asked.values())), strict=True))
    for solver, mine in works.items():
        solved = solve(solver, [question.problem for question in mine.values()], [frames[i].path for i in mine])
        replies.update(zip(mine, solved, strict=True))
    return [replies[i] for i in range(len(frames))]
