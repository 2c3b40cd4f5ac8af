"""The population of the built-in census: its shares, its tables, and the structure they were written for."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from stratsynth import census
from stratsynth.census import model, people, population
from stratsynth.errors import UsageError
from stratsynth.schema.encoding import encode
from stratsynth.schema.rows import CodedRows
from stratsynth.strata import crossing

CROSSINGS = [
    ("SEX",),
    ("RAC1P",),
    ("HISP",),
    ("SEX", "RAC1P"),
    ("RAC1P", "HISP"),
    ("SEX", "HISP", "AREA"),
    ("AGEP", "RAC1P"),
]
EMPLOYED = ["1", "2", "4", "5"]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return census.make(300_000)


@pytest.fixture(scope="module")
def coded(table: pd.DataFrame) -> CodedRows:
    return encode(census.schema(), pa.Table.from_pandas(table, preserve_index=False))


def counts(coded: CodedRows, by: tuple[str, ...]) -> np.ndarray:
    shape = census.schema().shape(by)
    cells = np.ravel_multi_index([coded.codes[name].astype(np.int64) for name in by], shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)


def chi_square(observed: np.ndarray, shares: np.ndarray) -> float:
    """The p-value of the counts under the shares; cells of fewer than five expected people go together."""
    expected = shares * observed.sum()
    small = expected < 5
    pooled = [np.append(each[~small], each[small].sum()) for each in (observed, expected)]
    keep = pooled[1] > 0
    return float(stats.chisquare(pooled[0][keep], pooled[1][keep] / pooled[1].sum() * observed.sum()).pvalue)


class TestShares:
    @pytest.mark.parametrize("by", CROSSINGS, ids=",".join)
    def test_every_declared_group_has_its_share(self, by):
        shares = census.shares(by)
        strata = crossing(census.schema(), by)
        assert [tuple(row) for row in shares[list(by)].to_numpy()] == [tuple(s.to_dict().values()) for s in strata]
        assert shares["share"].sum() == pytest.approx(1, abs=1e-12)
        assert (shares["share"] > 0).all()
        resolved = census.weights(by).resolve(strata)
        assert resolved.total == pytest.approx(1, abs=1e-12)

    @pytest.mark.parametrize("by", [*CROSSINGS, population.COLUMNS], ids=",".join)
    def test_people_are_drawn_in_these_shares(self, by, coded):
        shares = census.shares(by)["share"].to_numpy()
        assert chi_square(counts(coded, by).ravel(), shares) > 1e-4

    def test_the_check_sees_a_share_that_is_off(self, coded):
        shares = census.shares(["RAC1P"])["share"].to_numpy(copy=True)
        shares[[1, 6]] += [-0.0005, 0.0005]
        assert chi_square(counts(coded, ("RAC1P",)), shares) < 1e-4

    def test_crossings_agree(self):
        whole = census.shares(population.COLUMNS)
        for by in CROSSINGS:
            parts = whole.groupby(list(by), sort=False)["share"].sum()
            few = census.shares(by).set_index(list(by))["share"]
            assert (parts.reindex(few.index) - few).abs().max() < 1e-14

    def test_groups_range_from_seventy_percent_to_a_tenth_of_one(self):
        shares = census.shares(["RAC1P"])["share"].sort_values()
        assert 0.65 < shares.iloc[-1] < 0.75
        assert 0.0008 < shares.iloc[0] < 0.0012
        assert (shares < 0.01).sum() >= 4

    def test_what_is_not_known_is_refused(self):
        with pytest.raises(UsageError, match=r"RAC1P.*did you mean 'RAC1P'"):
            census.shares(["RACP1"])
        with pytest.raises(UsageError, match="exact shares"):
            census.shares(["ESR"])
        for by in ([], ["SEX", "SEX"], "SEX"):
            with pytest.raises(UsageError, match="list of different columns"):
                census.shares(by)

    def test_the_citation_says_that_it_is_simulated(self):
        assert census.CITATION.startswith("Simulated")
        assert "not an estimate" in census.CITATION
        assert "American Community Survey" in census.CITATION
        assert census.weights().citation == census.CITATION


class TestTables:
    def test_no_impossible_combination_is_met(self):
        for _, codes in people.chunks(0, 0, 100_000):
            for name, each in model.tables().items():
                if name not in {"PAY", "OTHERS"}:
                    assert each.possible[each.combination(codes)].all(), name

    @given(st.lists(st.lists(st.integers(0, 2**50), min_size=4, max_size=4), min_size=1, max_size=5))
    def test_thresholds_are_exact(self, rows):
        thresholds, possible = model._thresholds(np.array(rows, np.int64))
        for row, found, any_chance in zip(rows, thresholds.T, possible, strict=True):
            assert any_chance == (sum(row) > 0)
            if any_chance:
                assert [int(t) for t in found] == [int(Fraction(sum(row[:i]), sum(row)) * 2**31) for i in (1, 2, 3)]

    def test_no_product_of_weights_overflows(self, monkeypatch):
        largest = []
        weights = model._weights
        monkeypatch.setattr(model, "_weights", lambda *given: largest.append(weights(*given)) or weights(*given))
        table = model._table

        def checked(own, keys, levels):
            largest.clear()
            found = table(own, keys, levels)
            factors = [w if "amount" in keys else w // np.gcd.reduce(w, axis=None) for w in largest]
            bound = np.prod([int(w.sum(axis=-1).max()) for w in factors], dtype=object)
            assert bound < 2 ** (63 if "amount" in keys else 55), own  # long division shifts by 8
            return found

        monkeypatch.setattr(model, "_table", checked)
        assert list(model.tables.__wrapped__()) == list(model.tables())

    def test_quantiles_are_what_their_comment_says(self):
        places = [1 / 256, *np.arange(1, 32) / 32, 255 / 256]
        for sigma, quantiles in [(0.55, people._PAY), (0.8, people._OTHERS)]:
            assert [round(q) for q in 1000 * np.exp(sigma * stats.norm.ppf(places))] == list(quantiles)

    def test_dollars_are_rounded_as_in_the_survey(self, table):
        size = table["PINCP"].dropna().abs()
        assert (size[(size >= 50_000) & (size < 999_999)] % 1000 == 0).all()
        assert (size[(size >= 1000) & (size < 50_000) & (size != 19_998)] % 100 == 0).all()
        assert (size[(size > 4) & (size < 1000)] % 10 == 0).all()
        assert table["PINCP"].min() < 0


class TestStructure:
    def test_groups_differ_enough_for_parity(self, table):
        adults = table[table["AGEP"].between(16, 64)]
        employed = adults["ESR"].isin(EMPLOYED).groupby(adults["RAC1P"]).mean()
        assert employed["6"] - employed["3"] > 0.1
        assert employed["1"] - employed["2"] > 0.03
        workers = table[(table["AGEP"] > 16) & (table["PINCP"] > 100) & (table["WKHP"] > 0)]
        high = (workers["PINCP"] > 50_000).groupby([workers["SEX"], workers["RAC1P"]]).mean()
        assert 0.3 < (workers["PINCP"] > 50_000).mean() < 0.45
        assert high["1", "6"] > 2 * high["2", "2"]
        assert high["1", "1"] - high["2", "1"] > 0.1
        poor = (table["POVPIP"] < 100).groupby(table["RAC1P"]).mean()
        assert poor["2"] > 1.8 * poor["1"]

    @pytest.mark.parametrize(
        ("triple", "least"),
        [
            (("NOC", "MAR", "PUBCOV"), 0.06),
            (("NOC", "MAR", "WKHP"), 0.1),
            (("AGEP", "DIS", "PUBCOV"), 0.01),
            (("SEX", "NOC", "ESR"), 0.01),
        ],
        ids=str,
    )
    def test_pairs_do_not_tell_the_triple(self, triple, least, coded):
        """The best a model of pairs can do is wrong by far more than where pairs do tell the triple."""
        real = counts(coded, triple)
        pairs = fitted_to_pairs(real)
        null = np.random.default_rng(1).multinomial(coded.size, (pairs / pairs.sum()).ravel()).reshape(real.shape)
        sampling = distance(null, fitted_to_pairs(null))
        found = distance(real, pairs)
        assert found > least
        assert found > 5 * sampling

    def test_children_keep_married_fathers_at_work_and_mothers_from_it(self, table):
        adults = table[table["AGEP"].between(25, 49) & (table["MAR"] == "1") & (table["NOC"] != "N")]
        employed = adults["ESR"].isin(EMPLOYED)
        rate = employed.groupby([adults["SEX"], adults["NOC"] != "0"]).mean()
        assert rate["1", True] - rate["1", False] > 0.02
        assert rate["2", True] - rate["2", False] < -0.06

    def test_dormitories_hold_students_and_shelters_do_not(self, table):
        def odds(ages: pd.Series) -> float:
            some = table[ages & (table["HOUSING_TYPE"] != "2")]
            seen = pd.crosstab(some["SCH"] != "1", some["HOUSING_TYPE"])
            return seen.loc[True, "3"] * seen.loc[False, "1"] / (seen.loc[True, "1"] * seen.loc[False, "3"])

        assert odds(table["AGEP"].between(18, 21)) > 4
        assert odds(table["AGEP"] >= 25) < 0.6

    def test_coverage_follows_disability_until_age_alone_decides(self, table):
        covered = (table["PUBCOV"] == "1").groupby([table["AGEP"] >= 65, table["DIS"]]).mean()
        assert covered[False, "1"] - covered[False, "2"] > 0.2
        assert abs(covered[True, "1"] - covered[True, "2"]) < 0.05


def fitted_to_pairs(table: np.ndarray) -> np.ndarray:
    """The table nearest to none in particular that has all three pairs of this one: iterative proportional fitting."""
    found = np.full(table.shape, table.sum() / table.size)
    for _ in range(100):
        for axis in range(3):
            wanted, have = (each.sum(axis, keepdims=True) for each in (table, found))
            found = found * np.divide(wanted, have, out=np.zeros_like(have), where=have > 0)
    return found


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """Total variation: the largest difference that any set of cells can have."""
    return float(abs(a / a.sum() - b / b.sum()).sum() / 2)
