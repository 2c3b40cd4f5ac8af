"""A backend of one's own: what it cannot read is refused before it is charged, and the rest is as in memory."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import stratsynth as ss
from helpers import small
from helpers.ledgers import kinds, without_account
from helpers.small import BUDGET, SCHEMA, SIZE
from stratsynth.adapters import AIM, MST, ClippedMean, CoinPress, External, Independent
from stratsynth.data.backends import Backend, Memory
from stratsynth.errors import Unsupported, UsageError
from stratsynth.mechanisms.prepared import check_served
from stratsynth.noise import SeededEntropy
from stratsynth.questions import Choose, Counts, PublicRows, Raw, Split, Total, Usable, Work
from stratsynth.questions.admission import kinds as all_kinds
from stratsynth.questions.minimiser import Minimiser
from stratsynth.strata import within
from stratsynth.testing.record import identical


@dataclasses.dataclass(frozen=True)
class Tables:
    """Counts with pandas, from the codes of another backend, and can do nothing else."""

    inner: Backend
    opened: list[int] = dataclasses.field(default_factory=list)
    reads = frozenset({"tables"})

    def fingerprint(self, key):
        return self.inner.fingerprint(key)

    def rows(self, *, numbers=True):
        self.opened.append(1)
        return Counted(self.inner.rows().frame(()))


@dataclasses.dataclass
class Counted:
    """Tables by `groupby`."""

    codes: Any

    def counts(self, asked: Sequence[Any]):
        return [[self.table(path, clique) for clique in cliques] for path, cliques in asked]

    def table(self, path, clique):
        rows, schema = self.codes, SCHEMA
        for stratum in path:
            inner = within(dataclasses.replace(schema, rules=()), (stratum,))
            for column, levels in stratum.items:
                codes = [schema.index(column, level) for level in levels]
                rows = rows[rows[column].isin(codes)]
                rows = rows.assign(**{column: rows[column].map(codes.index)})  # inside a merge, counted from 0
            schema = inner
        counted = np.zeros(schema.shape(clique), dtype=np.int64)
        for key, number in rows.groupby(list(clique)).size().items():
            counted[key] = number
        return counted


def tables_only(table):
    return dataclasses.replace(table, backend=Tables(table.backend))


GROUPS = ss.Groups(merge={"GROUP": {"both": ["a", "b"]}})
PUBLIC = ss.Weights.public(small.shares_frame(), citation="made up for testing")
ABLE = {
    "independent": Independent,
    "mst": MST,
    "aim": lambda: AIM(rounds=2),
    "mst in strata": lambda: ss.Stratified(MST(), ["SEX", "GROUP"], PUBLIC),
    "a merge": lambda: ss.Stratified(MST(), ["SEX", "GROUP"], PUBLIC, GROUPS),
    "private weights": lambda: ss.Stratified(Independent(), ["SEX"], ss.Weights.private(share=0.2)),
}


@pytest.mark.parametrize("how", ABLE)
def test_tables_are_enough_for_mechanisms_of_tables(how):
    """The release is that from rows in memory, bit for bit."""
    one, other = (
        ss.fit(ABLE[how](), table, BUDGET, seed=1, entropy=SeededEntropy(1))
        for table in (small.table(), tables_only(small.table()))
    )
    assert one.measurements.equals(other.measurements)
    assert identical(one.model.state(), other.model.state())
    assert without_account(one) == without_account(other)


UNABLE = {
    "coinpress": (CoinPress, "coinpress needs Total, which these rows cannot answer"),
    "clipped_mean": (ClippedMean, "clipped_mean needs Total, which these rows cannot answer"),
    "in strata": (lambda: ss.Stratified(CoinPress(), ["SEX"], small.even(SCHEMA, "SEX")), "needs Total"),
    "external": (lambda: External(print, "nobody 1.0"), "external needs Raw, which these rows cannot answer"),
}


@pytest.mark.parametrize("how", UNABLE)
def test_what_needs_more_is_refused_before_anything_is_reserved(how, tmp_path):
    make, match = UNABLE[how]
    small.people().to_csv(tmp_path / "people.csv", index=False)
    ledger = tmp_path / "people.ledger"
    table = tables_only(ss.open_table(tmp_path / "people.csv", schema=SCHEMA, declared_size=SIZE, ledger=ledger))
    with pytest.raises(Unsupported, match=match):
        ss.fit(make(), table, dataclasses.replace(BUDGET, neighbours="replace"))
    assert table.backend.opened == []
    assert not ledger.exists()
    ss.fit(Independent(), table, BUDGET)
    assert table.backend.opened == [1]
    assert kinds(ledger) == ["ledger", "reserve", "charge", "done"]


def served(reads):
    """The kinds of questions that a backend with these reads is not refused for."""

    def refused(kind):
        try:
            check_served("a mechanism", [kind], reads)
        except Unsupported:
            return True
        return False

    return {kind for kind in all_kinds() if not refused(kind)}


def test_kinds_of_questions_by_what_a_backend_reads():
    free = {Split, Work}
    assert served(()) == free
    assert served({"tables"}) == {Counts, Choose, Usable, *free}
    assert served({"tables", "sums"}) == {Counts, Choose, Total, Usable, *free}
    assert served(Memory.reads) == {Counts, Choose, Minimiser, Total, Usable, PublicRows, Raw, *free}


def test_an_engine_that_there_is_not_is_refused():
    with pytest.raises(UsageError, match=r"engine: there is no 'memroy'.*memory"):
        ss.open_table(small.people(), schema=SCHEMA, engine="memroy")
    assert ss.open_table(small.people(), schema=SCHEMA, engine="memory").backend.reads == Memory.reads
