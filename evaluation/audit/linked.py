"""Neighbouring pairs of two linked tables for audits: a household more, with all its persons, in a small made-up world.

The canary is a household of full size whose persons are all alike: as many rows as are drawn count in one cell, and
weigh what one row does. NOT PRIVATE, on purpose, is `UnsharedRows`, in which each of them weighs as much as all
together: the fault that an audit of linked tables must catch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.accounting.ledger import Request
from stratsynth.accounting.process import ProcessLedger
from stratsynth.accounting.units import per_unit
from stratsynth.data.linked_rows import LinkedRows, slots_of
from stratsynth.data.sources import open_source
from stratsynth.driver.lockstep import AnswerSource, Asked, run
from stratsynth.driver.private import PrivateAnswers
from stratsynth.driver.rows import StoredRows
from stratsynth.evaluation.audit.pair import NeighbouringTables
from stratsynth.mechanisms import Mechanism, prepare
from stratsynth.noise import SystemEntropy
from stratsynth.schema import Categorical, Numeric, Schema
from stratsynth.schema.counted_tables import CountedTables, named
from stratsynth.schema.encoding import smallest
from stratsynth.schema.linked import ChildCount, LinkedSchema
from stratsynth.schema.rows import CodedRows
from stratsynth.testing.record import Run

if TYPE_CHECKING:
    import pandas as pd
    from numpy.random import Generator

    from stratsynth.accounting.budget import Budget
    from stratsynth.data.linked_slots import Slot
    from stratsynth.questions import Answer, Question

    Tables = tuple[pd.DataFrame, pd.DataFrame]

UNSHARED = "weights not shared"
"""Name of the control."""
HOUSEHOLDS, DECLARED, MOST = 40, 10_000, 12
"""Number of households in the made-up world; number that is declared, so that a fit asks as one of many does, choices
among it; and the largest number of persons that is drawn of one."""
SIZES = (MOST, MOST + 1, 2, 3, 4, 7, 1)
"""Numbers of persons of the households that are added: the canary's first."""
HOMES = LinkedSchema(
    parent=Schema({"TEN": Categorical(levels=("1", "2"))}),
    child=Schema({"SEX": Categorical(levels=("1", "2")), "AGE": Numeric(0, 99, integer=True, edges=(0, 18, 65, 100))}),
    key="HOME",
    order="PLACE",
    most=MOST,
    derived={"CHILDREN": ChildCount(where={"AGE": "..17"}, besides_reference=True, top=2)},
)


class UnsharedRows(LinkedRows):
    """NOT PRIVATE: rows of which each weighs as much as all rows of its household may together."""

    def __init__(self, counted: CountedTables, slots: Mapping[str, Slot]) -> None:
        """Take the rows of each counted table in `slots`, at full weight."""
        super().__init__(counted, slots)
        for slot, rows in slots.items():
            schema = counted.of(slot)
            codes = {named(slot, name): column for name, column in rows.codes.items()}
            codes = {name: column.astype(smallest(schema.size(name))) for name, column in codes.items()}
            weights = np.full(len(rows.weight), counted.row_weight.most, np.int64)
            self._slots[slot] = StoredRows([CodedRows(schema, codes, {}, len(weights), weights)])


class _Recorder(AnswerSource):
    """Answers of the driver, with the questions that they answer."""

    def __init__(self, answers: AnswerSource) -> None:
        self._answers = answers
        self.asked: list[list[Asked]] = []
        self.given: list[list[Answer]] = []

    def __call__(self, asked: Sequence[Asked]) -> Sequence[Answer]:
        """Return the driver's answers to the questions `asked`, and keep both."""
        found = self._answers(asked)
        self.asked.append(list(asked))
        self.given.append(list(found))
        return found


def unshared(question: Question) -> Question:
    """Return the question itself: this fault is in the rows, which are `UnsharedRows`."""
    return question


def linked_pair(
    mechanism: Mechanism[Any], budget: Budget, neighbours: int, declared: int = DECLARED
) -> tuple[NeighbouringTables, NeighbouringTables]:
    """Return a pair of `NeighbouringTables`, the second of faulty rows: a fit, and what is told apart best.

    The fit is of a `Mechanism` in a `Budget`; of `neighbours` households the worst is taken. The same questions are
    asked of the faulty rows; the size that is `declared` decides which.
    """
    rng = np.random.default_rng()
    base = _world(rng, HOUSEHOLDS)
    others = [_with(base, rng, SIZES[i % len(SIZES)], alike=i < 2 * len(SIZES)) for i in range(neighbours)]
    first = _recorded(mechanism, base, budget, declared)
    honest, faulty = (
        NeighbouringTables.among(kind(base), (kind(other) for other in others), first, budget)
        for kind in (_shared, _unshared)
    )
    return honest, faulty


def _recorded(mechanism: Mechanism[Any], base: Tables, budget: Budget, declared: int) -> Run:
    """Return the `Run` of a `Mechanism` on the tables `base` in a `Budget`, with `declared` households, a number.

    `base` is the pair (households, persons) of a small world.
    """
    prepared = prepare(mechanism, HOMES.counted, budget, declared)
    account = ProcessLedger().open(Request("", "", prepared.budget, per_unit(prepared.allot), 0))
    rows = _shared(base)
    recorder = _Recorder(PrivateAnswers(lambda: rows, account, SystemEntropy(), prepared.admit))
    steps = mechanism.steps(prepared.public, prepared.allot, np.random.default_rng(0))
    run(steps, prepared.public.schema, recorder)
    charges = list(account.spending.charges)
    return Run(schema=prepared.public.schema, batches=recorder.asked, answers=recorder.given, charges=charges)


def _world(rng: Generator, number: int) -> Tables:
    """Return `Tables`, (households, persons), drawn by `rng`: a `number` of households of one to eight persons."""
    import pandas as pd

    size = rng.choice([1, 2, 3, 4, 5, 8], number, p=[0.3, 0.3, 0.15, 0.1, 0.1, 0.05])
    homes = pd.DataFrame({"HOME": np.arange(number), "TEN": rng.choice(["1", "2"], number)})
    owner = np.repeat(np.arange(number), size)
    persons = {
        "HOME": owner,
        "PLACE": np.concatenate([np.arange(each) for each in size]),
        "SEX": rng.choice(["1", "2"], len(owner)),
        "AGE": rng.integers(0, 100, len(owner)),
    }
    return homes, pd.DataFrame(persons)


def _with(base: Tables, rng: Generator, size: int, *, alike: bool) -> Tables:
    """Return the tables `base` and one household of `size` persons, drawn by `rng`: all `alike`, or one by one."""
    import pandas as pd

    homes, persons = base
    key, number = len(homes), 1 if alike else size
    more = {
        "HOME": key,
        "PLACE": np.arange(size),
        "SEX": np.resize(rng.choice(["1", "2"], number), size),
        "AGE": np.resize(rng.integers(0, 100, number), size),
    }
    own = pd.DataFrame({"HOME": [key], "TEN": [rng.choice(["1", "2"])]})
    return pd.concat([homes, own], ignore_index=True), pd.concat([persons, pd.DataFrame(more)], ignore_index=True)


def _slots(tables: Tables) -> dict[str, Slot]:
    above, below = (open_source(frame).all_columns() for frame in tables)
    return slots_of(HOMES, above, below, HOMES.counted.row_weight.most)


def _shared(tables: Tables) -> LinkedRows:
    return LinkedRows(HOMES.counted, _slots(tables))


def _unshared(tables: Tables) -> LinkedRows:
    return UnsharedRows(HOMES.counted, _slots(tables))
