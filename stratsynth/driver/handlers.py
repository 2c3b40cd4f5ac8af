"""The kinds of questions there are: one handler each. A new kind is a file of its own and a line here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from stratsynth.errors import MechanismError, Unsupported
from stratsynth.questions import Question, Split, Work
from stratsynth.questions.base import check_unwritten
from stratsynth.questions.choose import ChooseHandler
from stratsynth.questions.counts import CountsHandler
from stratsynth.questions.handler import Handler
from stratsynth.questions.public import PublicRowsHandler
from stratsynth.questions.raw import RawHandler
from stratsynth.questions.total import TotalHandler
from stratsynth.strata import StratumPath

if TYPE_CHECKING:
    from stratsynth.driver.lockstep import Asked

HANDLERS: dict[type[Question], Handler[Any]] = {
    handler.kind: handler
    for handler in (CountsHandler(), ChooseHandler(), TotalHandler(), PublicRowsHandler(), RawHandler())
}
"""By the exact class of the question: a class derived from one could restate its sensitivity."""
WITHOUT_ROWS: frozenset[type[Question]] = frozenset({Split, Work})
"""The questions that `lockstep` answers, from no row."""


def served(reads: Iterable[str]) -> frozenset[type[Question]]:
    """The kinds of questions that a backend with these reads can answer."""
    able = frozenset(reads)
    return WITHOUT_ROWS.union(kind for kind, handler in HANDLERS.items() if handler.reads <= able)


def check_served(name: str, needs: Iterable[type[Question]], reads: Iterable[str], *, database: bool = False) -> None:
    """Refuse a mechanism whose questions a backend with these reads cannot answer, with the remedy where there is one.

    Raises:
        Unsupported: By name, what rows held like that cannot answer; rows in memory answer all kinds there are.
    """
    missing = sorted(kind.__name__ for kind in frozenset(needs) - served(reads))
    if not missing:
        return
    known = {kind.__name__ for kind in HANDLERS}
    how = 'write the rows to a Parquet file, and take engine = "memory"' if database else 'take engine = "memory"'
    remedy = f"; {how}, which needs memory for all of them" if known.issuperset(missing) else ""
    raise Unsupported(f"{name} needs {', '.join(missing)}, which these rows cannot answer{remedy}.")


def handler(question: Question) -> Handler[Any]:
    """The handler of a question's exact class, of which it is as it was made."""
    found = HANDLERS.get(type(question))
    if found is None:
        raise MechanismError(f"{type(question).__name__} is no kind of question that rows can answer.")
    check_unwritten(question)
    return found


def declared(asked: Iterable[Asked]) -> Iterator[tuple[StratumPath, frozenset[type[Question]]]]:
    """For each question its path, and the kinds of questions that a mechanism must declare to ask it."""
    for a in asked:
        found = HANDLERS.get(type(a.question))
        yield a.path, found.declared(a.question) if found is not None else frozenset({type(a.question)})
