"""Lock-step: programs run side by side, and all questions pending at one moment, a batch, are answered together.

Nothing here knows rows, noise or budgets: `Answers` does, an argument of a run. It gets all pending
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
    """A question with its path. The question is a checked, read-only copy, whoever makes this record."""

    path: StratumPath
    schema: Schema
    """Columns that vary at this path."""
    question: Question
    copies: InitVar[Copies | None] = None
    """Copies made for the last question of the same program: see `admitted`."""
    exact: InitVar[bool] = False
    """True in a fit that the exact curve of Gaussian noise prices."""

    def __post_init__(self, copies: Copies | None, exact: bool) -> None:
        """Admit the question: from here on no other code holds the copy that is priced and read."""
        object.__setattr__(self, "question", admitted(self.question, self.schema, copies))
        if exact:
            object.__setattr__(self, "question", self.question.exactly())


class AnswerSource(ABC):
    """Source of the answers of one run: private rows, made-up answers of a plan, or an audit."""

    @property
    def exact(self) -> bool:
        """True if the fit spends in the currency `exact`."""
        return False

    def admit(self, asked: Asked) -> None:
        """Raise MechanismError if this run may not ask `asked`: a split with one program for several strata."""
        if type(asked.question) is Split and asked.question.alike is not None:
            raise MechanismError("a fit runs a program in every stratum: one for several is for rehearsals alone.")

    @abstractmethod
    def __call__(self, asked: Sequence[Asked]) -> Sequence[Answer]:
        """Return an answer per question of the batch `asked`, in order; `Split`, `Work` are never among them."""


class _Frame:
    """One running program: its path, and the question that it waits for."""

    def __init__(self, program: Program[Any], path: StratumPath, schema: Schema, answers: AnswerSource) -> None:
        self.program = program
        self.path = path
        self.schema = schema
        self.answers = answers
        self.children: dict[Stratum, _Frame] = {}
        """Programs of the split that it waits for, in declared order."""
        self.asked: Asked | None = None
        """Question to be answered from rows, or the split."""
        self.work: Work | None = None
        """Problem to be solved."""
        self.done = False
        self.result: Any = None
        self._copies: Copies = {}

    def send(self, answer: Answer) -> None:
        """Send an answer to the program, run it to its next question or end, noted; MechanismError if it fails."""
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
            # the class alone is named: its message may quote answers
            raise MechanismError(f"stratum {label(self.path)}: its program failed ({type(error).__name__}).") from error
        if not isinstance(question, Question):
            raise MechanismError(f"a program asked {type(question).__name__}, which is no question.")
        if type(question) is Work:
            self.work = question
            return
        self.asked = Asked(self.path, self.schema, question, self._copies, self.answers.exact)
        self.answers.admit(self.asked)
        if type(self.asked.question) is Split:
            for stratum, program in self.asked.question.programs.items():
                schema = within(self.schema, (stratum,))
                child = self.children[stratum] = _Frame(program, (*self.path, stratum), schema, self.answers)
                child.send(None)

    def waiting(self) -> list[_Frame]:
        """Return a list of this frame, or those below it, that wait for an answer, in the declared order of strata."""
        if self.done:
            return []
        if not self.children:
            return [self]
        return [frame for child in self.children.values() for frame in child.waiting()]

    def settle(self) -> None:
        """Send each program whose strata are all done a dict from stratum to result, deepest programs first."""
        while self.children:
            for child in self.children.values():
                child.settle()
            if not all(child.done for child in self.children.values()):
                return
            self.send({replace(stratum): child.result for stratum, child in self.children.items()})

    def close(self) -> None:
        """Close this program and all those of strata below it, after an error or an interrupt."""
        for child in self.children.values():
            child.close()
        self.program.close()


def run(program: Program[R], schema: Schema, answers: AnswerSource, solve: Solving = together) -> R:
    """Run a program, and those it splits into, to the end; return its value. `schema`: columns that vary over all rows.

    Args:
        program: The generator of questions.
        schema: The columns that vary over all rows.
        answers: The `AnswerSource` for its questions.
        solve: `Solving` function for its work.

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


def _replies(frames: Sequence[_Frame], answers: AnswerSource, solve: Solving) -> list[Answer]:
    """Return a list of `Answer`s, one for each of `frames`: by the `Solving` function or else the `AnswerSource`."""
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
