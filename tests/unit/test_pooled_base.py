"""Pooled on a mechanism and a model that the package does not know."""

from dataclasses import dataclass

import pytest

import stratsynth as ss
import stratsynth.adapters.mst as mst_module
import stratsynth.adapters.shared.graphical as graphical_module
from helpers import recompute
from stratsynth import Budget, Weights, census
from stratsynth.adapters import MST, Pooled
from stratsynth.adapters.engine import MeasuredTable, solve
from stratsynth.adapters.independent import Product
from stratsynth.adapters.shared.learner import Learner, Poolable
from stratsynth.errors import Unsupported
from stratsynth.models import Returns
from stratsynth.noise import SeededEntropy
from stratsynth.questions import Counts, Solver, counts

BY = ["SEX", "RAC1P"]
COLUMNS = (*BY, "MAR", "DIS")
ROWS = 3_000


@dataclass
class LastTables(Learner[Product]):
    """A third party's: the newest table of each column, and nothing of how columns go together."""

    @property
    def model(self):
        newest = {table.clique: table for table in self.tables}
        return Product.of(self.schema, list(newest.values()))

    def fit(self, *, last=False):
        yield from ()

    def marginals(self, cliques):
        return [self.model.probabilities[column] for (column,) in cliques]

    def stratum(self, public, prior):
        yield from ()
        return LastTables(schema=public.schema, size=public.size, tables=list(self.tables))

    def conditioned(self, schema, levels):
        kept = {name: self.model.probabilities[name] for name in schema.names}
        return Product(schema, {name: p[list(levels.get(name, range(len(p))))] for name, p in kept.items()})


@dataclass(frozen=True)
class Columns(Poolable[Product]):
    name = "columns"
    needs = frozenset({Counts})
    returns = Returns.ROWS
    merges = False

    def price(self, public, budget):
        return budget.zcdp()

    def learned(self, public, allot, rng):
        tables = yield from counts(public.schema.oneways, rho=allot.rho)
        return LastTables(schema=public.schema, size=public.size, tables=list(map(MeasuredTable.of, tables)))

    def candidates(self, public, rho):
        return dict.fromkeys(public.schema.oneways, 1.0)


class Pure(Columns):
    """One that spends epsilon, which strata do not."""

    def price(self, public, budget):
        return budget.pure()


@pytest.mark.parametrize("share", [0, "auto", 1])
def test_what_spends_otherwise_than_strata_is_refused_before_any_charge(share):
    schema, weights = census.schema().restrict(COLUMNS), Weights.public(census.shares(BY), citation=census.CITATION)
    table = ss.open_table(census.make(ROWS)[list(COLUMNS)], schema=schema, declared_size=ROWS)
    with pytest.raises(Unsupported, match="zCDP"):
        ss.fit(Pooled(base=Pure(), by=BY, weights=weights, share=share), table, Budget(3, 1e-9))


@pytest.mark.parametrize("share", [0, "auto", 1])
def test_a_third_party_s_mechanism_and_model_are_pooled(share):
    schema, weights = census.schema().restrict(COLUMNS), Weights.public(census.shares(BY), citation=census.CITATION)
    how = Pooled(base=Columns(), by=BY, weights=weights, share=share)
    table = ss.open_table(census.make(ROWS)[list(COLUMNS)], schema=schema, declared_size=ROWS)
    release = ss.fit(how, table, Budget(3, 1e-9, first=0), seed=1, entropy=SeededEntropy(1))
    recompute.check(release.certificate)
    assert "undeclared" in release.certificate["unprotected"]  # as a mechanism that says nothing of it
    paid = {bool(charge["path"]) for charge in release.certificate["charges"]}  # by strata, or by everybody
    assert paid == {0: {True}, "auto": {False, True}, 1: {False}}[share]
    assert set(release.sample(500, seed=1).columns) == set(COLUMNS)
    assert how.title == "pooled columns by SEX x RAC1P"


def test_everybody_and_the_strata_are_fitted_by_the_base_s_engine(monkeypatch):
    asked = []
    for module in (mst_module, graphical_module):
        monkeypatch.setattr(module, "engine", lambda name: asked.append(name) or Solver(solve))
    schema, weights = census.schema().restrict(COLUMNS), Weights.public(census.shares(BY), citation=census.CITATION)
    table = ss.open_table(census.make(ROWS)[list(COLUMNS)], schema=schema, declared_size=ROWS)
    how = Pooled(base=MST(engine="mbi"), by=BY, weights=weights, share=0.5)
    ss.fit(how, table, Budget(3, 1e-9, first=0), entropy=SeededEntropy(1))
    assert len(asked) > 1
    assert set(asked) == {"mbi"}
