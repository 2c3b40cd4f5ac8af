"""Mechanisms that leak where nobody used to look. Each is caught, and for what is wrong with it."""

import functools
import itertools
import logging
import os
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

from helpers import network
from helpers.broken_kinds import planted
from helpers.contract import caught
from helpers.toys import Toy
from stratsynth.adapters.independent import Product
from stratsynth.models import Model, Predictor, Returns, State
from stratsynth.questions import Choose, Counts, Solver, counts, work
from stratsynth.testing import check_contract, worlds
from stratsynth.testing.record import CAN_FORK

NEEDS_FORK = pytest.mark.skipif(not CAN_FORK, reason="worlds are compared in both orders in processes of their own")


class Rows:
    """Private rows that no setting shows."""

    def __init__(self, rows):
        self.number = len(rows)


@dataclass(frozen=True)
class Cheat(Toy):
    """An Independent that has been slipped the number of private rows, and hides it well."""

    rows: Rows = field(metadata={"describe": False}, compare=False)
    name: ClassVar[str] = "cheat"
    needs: ClassVar = frozenset({Counts})

    @property
    def n(self):
        return self.rows.number

    def steps(self, public, allot, rng):
        self.before(public)
        tables = yield from counts(public.schema.oneways, rho=allot.rho)
        yield from self.after(tables)
        return self.made(Product.of(public.schema, tables))

    def before(self, public):
        pass

    def after(self, tables):
        yield from ()

    def made(self, model):
        return model


class Forwarding(Product):
    """A model whose state is honest."""

    @classmethod
    def of_model(cls, model, n):
        made = cls(**{f.name: getattr(model, f.name) for f in fields(model) if f.init})
        object.__setattr__(made, "n", n)
        return made


class OddDraws(Forwarding):
    def sample(self, n, rng, where=None):
        rows = super().sample(n, rng, where)
        return {c: codes[::-1] if self.n % 2 else codes for c, codes in rows.items()}


class OddMass(Forwarding):
    def mass(self, where):
        return super().mass(where) * (1 - 1e-12 * (self.n % 2))


class OddOneways(Forwarding):
    def oneway(self, column):
        return super().oneway(column) * (1 - 1e-12 * (self.n % 2))


class OddForecast(Forwarding):
    def foretell(self, path):
        return f"{self.n} rows"


class OddProduct(Forwarding):
    def product(self, rows):
        return {"synthetic": rows.replace_schema_metadata({"rows": str(self.n)}), f"rows{self.n}": rows}


def gives(model):
    """A mechanism that returns this model."""

    class Giver(Cheat):
        def made(self, honest):
            return model.of_model(honest, self.n)

    Giver.__name__ = model.__name__
    return Giver


class Foretold(Predictor):
    """Predicts the number of private rows; its state is honest."""

    kind: ClassVar[str] = "foretold"

    def __init__(self, schema, n):
        self.schema, self.n = schema, n

    @property
    def inputs(self):
        return self.schema.names[:1]

    def predict(self, rows):
        return np.full(len(next(iter(rows.values()))), self.n % 2)

    def state(self):
        return State({})

    @classmethod
    def from_state(cls, schema, state):
        return cls(schema, 0)


class Predicts(Cheat):
    returns = Returns.PREDICTIONS

    def made(self, model):
        return Foretold(model.schema, self.n)


class Estimates(Model):
    """Holds the number of private rows; its state is honest."""

    kind: ClassVar[str] = "held"
    returns = Returns.ESTIMATES

    def __init__(self, schema, n):
        self.schema, self.n = schema, n

    def estimates(self, level=0.95):
        return pd.DataFrame({"estimate": [float(self.n)]})

    def state(self):
        return State({})

    @classmethod
    def from_state(cls, schema, state):
        return cls(schema, 0)

    @classmethod
    def combined(cls, schema, parts, weights):
        raise NotImplementedError


class Holds(Cheat):
    returns = Returns.ESTIMATES

    def made(self, model):
        return Estimates(model.schema, self.n)


@dataclass(frozen=True)
class InASetting(Cheat):
    size: int = 0


@dataclass(frozen=True)
class InTheName(Cheat):
    @property
    def name(self):
        return f"cheat{self.n % 7}"


@dataclass(frozen=True)
class InNeeds(Cheat):
    @property
    def needs(self):
        return frozenset({Counts, Choose} if self.n % 2 else {Counts})


@dataclass(frozen=True)
class InTheTitle(Cheat):
    @property
    def title(self):
        return f"cheat by {self.n}"


@dataclass(frozen=True)
class InUnprotected(Cheat):
    @property
    def unprotected(self):
        return (f"{self.n} rows",)


class InThePrice(Cheat):
    def price(self, public, budget):
        allot = super().price(public, budget)
        return replace(allot, amount=allot.amount * (1 - 1e-9 * (self.n % 5)))

    def steps(self, public, allot, rng):
        return super().steps(public, replace(allot, amount=1e-3), rng)


class Informs(Cheat):
    def before(self, public):
        logging.getLogger("cheat.quiet").info("%d rows", self.n)


class InformsItself(Cheat):
    """A logger that passes nothing on, at a level that nobody asks for."""

    def before(self, public):
        own = logging.getLogger("cheat.own")
        own.propagate, own.level = False, logging.CRITICAL
        try:
            own.log(1, "%d rows", self.n)
        finally:
            own.propagate, own.level = True, logging.NOTSET


class Warns(Cheat):
    def before(self, public):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
        warnings.warn(f"{self.n} rows", stacklevel=1)


class WritesToTheDescriptor(Cheat):
    def before(self, public):
        os.write(2, b"." * (self.n % 50))


class WritesToTheOldStream(Cheat):
    def before(self, public):
        sys.__stderr__.write("." * (self.n % 50))


class WritesAFile(Cheat):
    def before(self, public):
        path = Path(tempfile.gettempdir()) / "cheat"
        path.write_text(str(self.n))
        path.unlink()


class WritesAFileByDescriptor(Cheat):
    def before(self, public):
        name = os.path.join(tempfile.gettempdir(), "cheat")  # noqa: PTH118
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
        os.unlink(name)  # noqa: PTH108


class MakesAFolder(Cheat):
    def before(self, public):
        os.rmdir(tempfile.mkdtemp(suffix=str(self.n)))  # noqa: PTH106


class Connects(Cheat):
    def before(self, public):
        with socket.socket() as one:
            one.settimeout(0.01)
            one.connect_ex(("127.0.0.1", 1 + self.n))


class StartsAProgram(Cheat):
    def before(self, public):
        subprocess.run(["true", str(self.n)], check=False)


class WritesInAThread(Cheat):
    def before(self, public):
        thread = threading.Thread(target=lambda: WritesAFile.before(self, public))
        thread.start()
        thread.join()


class SetsAVariable(Cheat):
    def before(self, public):
        os.environ["CHEAT"] = str(self.n)
        del os.environ["CHEAT"]


class ChangesTheFolder(Cheat):
    def before(self, public):
        os.chdir("/" if Path.cwd() != Path("/") else tempfile.gettempdir())


CACHE: dict[str, Any] = {}


class KeepsInAModule(Cheat):
    """The number of rows of the first table that it ever sees stays in every later result."""

    def made(self, model):
        return OddMass.of_model(model, CACHE.setdefault("n", self.n))


class KeepsInTheClass(Cheat):
    first: ClassVar[list[int]] = []

    def made(self, model):
        self.first.append(self.n)
        return OddMass.of_model(model, self.first[0])


def in_a_closure():
    held = []

    class KeepsInAClosure(Cheat):
        def made(self, model):
            held.append(self.n)
            return OddMass.of_model(model, held[0])

    return KeepsInAClosure


class KeepsInAFunction(Cheat):
    def made(self, model):
        return OddMass.of_model(model, first_ever(self.rows))


LARGEST: list[int] = [0]


class LeaksTheTableBefore(Cheat):
    """Cheat whose model tells the size of the largest table that it has seen before."""

    def made(self, model):
        before, LARGEST[0] = LARGEST[0], max(LARGEST[0], self.n)
        return OddMass.of_model(model, before)


class ByNothing:
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


@functools.cache
def _kept(key):
    return KEPT_ROWS[-1].number


KEPT_ROWS: list[Rows] = []


def first_ever(rows):
    KEPT_ROWS.append(rows)
    return _kept(ByNothing())


class BeginsAboveAThousand(Cheat):
    """Honest on small tables."""

    def made(self, model):
        return OddMass.of_model(model, 1) if self.n > 1000 else model


def _solved(problems):
    return list(problems)


SOLVER = Solver(_solved)


class WorksByTheRow(Cheat):
    def after(self, tables):
        for _ in range(self.n % 4):
            yield from work(SOLVER, 0)


class WorksOnTheNumber(Cheat):
    def after(self, tables):
        yield from work(SOLVER, {"rows": np.array([self.n])})


class Exits(Cheat):
    def before(self, public):
        sys.exit(self.n)


class Interrupts(Cheat):
    def before(self, public):
        if self.n % 2:
            raise KeyboardInterrupt


class Vanishes(Cheat):
    def before(self, public):
        if self.n > 1000:
            os._exit(0)


HIDDEN = {
    "result": [
        *map(gives, (OddDraws, OddMass, OddOneways, OddForecast, OddProduct)),
        Predicts,
        Holds,
    ],
    "settings": [InTheName, InNeeds, InTheTitle, InUnprotected, InThePrice],
    "output": [Informs, InformsItself, Warns, WritesToTheDescriptor, WritesToTheOldStream],
    "files": [
        WritesAFile,
        WritesAFileByDescriptor,
        MakesAFolder,
        Connects,
        StartsAProgram,
        WritesInAThread,
        SetsAVariable,
    ],
    "state": [ChangesTheFolder],
    "work": [WorksByTheRow, WorksOnTheNumber],
    "failure": [Exits, Interrupts],
}
KEPT = [KeepsInAModule, KeepsInTheClass, in_a_closure(), KeepsInAFunction, LeaksTheTableBefore, BeginsAboveAThousand]
EVERY = [(kind, cheat) for kind, cheats in HIDDEN.items() for cheat in cheats]


def kinds(cheat, **further):
    return caught(lambda world, rows: cheat(rows=Rows(rows)), **further)


@pytest.mark.parametrize(("kind", "cheat"), EVERY, ids=lambda value: getattr(value, "__name__", value))
def test_what_is_hidden_is_found(kind, cheat, monkeypatch):
    monkeypatch.setattr(network, "allowed", cheat is Connects)
    before = Path.cwd()
    try:
        assert kind in kinds(cheat, tables=2, neighbours=3)
    finally:
        os.chdir(before)


@pytest.mark.parametrize(("kind", "cheat"), EVERY, ids=lambda value: getattr(value, "__name__", value))
def test_it_is_found_without_processes_of_their_own_too(kind, cheat, monkeypatch):
    """By replaying alone: `InThePrice` asks the same whatever it says."""
    monkeypatch.setattr("stratsynth.testing.contract.CAN_FORK", False)
    monkeypatch.setattr(network, "allowed", cheat is Connects)
    before = Path.cwd()
    try:
        assert kind in kinds(cheat)
    finally:
        os.chdir(before)


def test_a_setting_that_is_computed_from_rows_is_found():
    found = check_contract(lambda world, rows: InASetting(rows=Rows(rows), size=len(rows)), tables=2, neighbours=4)
    assert "settings" in {finding.kind for finding in found}


@NEEDS_FORK
@pytest.mark.parametrize("cheat", KEPT, ids=lambda cheat: cheat.__name__)
def test_what_is_kept_from_the_first_table_is_found(cheat):
    """And what begins only above a thousand rows."""
    assert "result" in kinds(cheat, among=list(worlds()))


@NEEDS_FORK
def test_a_mechanism_that_ends_the_process_is_found():
    found = check_contract(lambda world, rows: Vanishes(rows=Rows(rows)), tables=0)
    assert [finding.kind for finding in found] == ["failure"] * len(found) != []


def test_midnight_is_no_finding(monkeypatch):
    """Certificates have a date, and a day may pass between the fits that are compared."""
    days = itertools.count()

    class Clock:
        @staticmethod
        def now(tz):
            return datetime(2026, 1, 1, tzinfo=tz) + timedelta(days=next(days))

    monkeypatch.setattr("stratsynth.release.certificate.dt", SimpleNamespace(datetime=Clock, UTC=UTC))
    assert kinds(Cheat) == set()
    assert next(days) > 10


def test_the_honest_one_passes():
    assert kinds(Cheat, among=list(worlds())) == set()


def test_a_user_can_still_interrupt():
    """Ctrl-C is no finding."""

    class Pressed(Cheat):
        def before(self, public):
            os.kill(os.getpid(), 2)

    with pytest.raises(KeyboardInterrupt):
        check_contract(lambda world, rows: Pressed(rows=Rows(rows)), tables=1, neighbours=0)


def test_a_question_that_warns_of_large_tables_is_found():
    """Drivers are watched on large tables as mechanisms are."""

    class Careful:
        kind = Counts

        def answer(self, proper, at, exact, *given):
            if exact.tables[0].sum() > 1000:
                logging.getLogger("driver").info("a large table")
            return proper(self, at, exact, *given)

    with planted(Careful):
        assert "output" in kinds(Cheat)


FORK_WARNS = """
import os, warnings
warnings.simplefilter("error")
os.register_at_fork(before=lambda: warnings.warn("os.fork() was called; this process has threads", RuntimeWarning))
from stratsynth.testing.record import apart
assert apart(lambda: [{"done": "1"}]) == [{"done": "1"}]
"""


@NEEDS_FORK
def test_a_library_that_warns_of_forks_changes_no_finding():
    """JAX does so wherever it was imported; its hook's warning was an error in whichever test came next."""
    done = subprocess.run([sys.executable, "-c", FORK_WARNS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
