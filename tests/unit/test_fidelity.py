"""Correlations, propensity, coordinates, rules, levels and matches: against scipy and scikit-learn, and by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from stratsynth import Categorical, Numeric, Schema, StratsynthError, census
from stratsynth.evaluation import correlations, inconsistencies, levels_lost, matches, principal_components, propensity
from stratsynth.evaluation.scores.associations import cramers_v, tau_b
from stratsynth.evaluation.tables import EncodedRows
from stratsynth.models.intervals import wilson
from stratsynth.schema import Rule

SCHEMA = Schema(
    {
        "G": Categorical(levels=("a", "b", "c")),
        "X": Numeric(lower=0, upper=100, bins=10, missing=True),
        "Y": Categorical(levels=("N", "3", "1", "2"), not_applicable="N"),
        "C": Categorical(levels=("red", "green", "blue")),
    },
    rules=(Rule(when={"C": "red"}, never={"X": ">= 50", "Y": ("1", "2")}), Rule(when={"X": "< 10"}, never={"Y": "N"})),
)


def people(n, seed=0, tie=0.6):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 100, n)
    y = np.where(rng.random(n) < tie, 1 + x // 34, rng.integers(1, 4, n)).astype(int).astype(str)
    c = np.where(rng.random(n) < tie, x // 34, rng.integers(0, 3, n)).astype(int)
    return pd.DataFrame(
        {
            "G": rng.choice(list("ab"), n),
            "X": np.where(rng.random(n) < 0.1, np.nan, x),
            "Y": np.where(rng.random(n) < 0.1, "N", y),
            "C": np.array(["red", "green", "blue"])[c],
        }
    )


def test_correlations_are_scipys():
    real, made = people(2000, 1), people(1500, 2, tie=0.2)
    found = correlations(real, made, SCHEMA, "G").set_index(["measure", "one", "two", "G"])
    for level in ("a", "b"):
        for side, frame in (("real", real), ("synthetic", made)):
            here = frame[frame["G"] == level]
            both = here[here["X"].notna() & (here["Y"] != "N")]
            x, y = both["X"], both["Y"].astype(int)
            row = found.loc[("pearson", "X", "Y", level)]
            assert row[side] == pytest.approx(stats.pearsonr(x, y).statistic)
            assert row["n" if side == "real" else "n_synthetic"] == len(both)
            bins = np.minimum(x // 10, 9)
            assert found.loc[("kendall", "X", "Y", level), side] == pytest.approx(stats.kendalltau(bins, y).statistic)
            crossed = pd.crosstab(here["Y"], here["C"]).to_numpy()
            assert found.loc[("cramer", "Y", "C", level), side] == pytest.approx(
                stats.contingency.association(crossed, method="cramer")
            )
    gaps = found["real"] - found["synthetic"]
    np.testing.assert_allclose(found["value"], gaps.abs())
    lost = found.xs("c", level="G")
    assert set(lost["status"]) == {"not_estimable"}
    assert len(lost) == 9  # three pairs of columns, three measures


@given(st.lists(st.integers(0, 6), min_size=12, max_size=12))
def test_tables_of_any_counts_have_scipys_correlations(counts):
    table = np.array(counts, float).reshape(1, 3, 4)
    one, two = (np.repeat(index.ravel(), counts) for index in np.indices((3, 4)))
    tau, _, n = tau_b(table)
    assert n == len(one)
    expected = stats.kendalltau(one, two).statistic if len(one) > 1 else np.nan
    assert tau[0] == pytest.approx(expected, nan_ok=True)
    there = table[0][table[0].any(axis=1)][:, table[0].any(axis=0)]
    v, _, _ = cramers_v(table)
    if min(there.shape) < 2:
        assert np.isnan(v[0])
    else:
        assert v[0] == pytest.approx(stats.contingency.association(there.astype(int), method="cramer"))


@pytest.mark.parametrize("measure", ["pearson", "kendall", "cramer"])
def test_their_standard_errors_are_those_of_tables_drawn_anew(measure):
    from stratsynth.evaluation.scores.associations import _MEASURES
    from stratsynth.evaluation.tables import Pair

    found = []
    nobody = people(1)
    for seed in range(200):
        pair = Pair.of(people(400, seed), nobody, SCHEMA)
        found.append([float(figure[0]) for figure in _MEASURES[measure](pair, 0, "X", "Y")])
    values, errors, _ = np.array(found).T
    assert errors.mean() == pytest.approx(values.std(), rel=0.2)


def test_a_column_with_one_value_goes_together_with_nothing():
    frame = people(50).assign(C="red")
    found = correlations(frame, frame, SCHEMA, columns=["X", "C"])
    assert found["value"].isna().all()


def test_rows_of_one_kind_cannot_be_told_apart_and_rows_of_two_can():
    real, like = people(1200, 1), people(1200, 2)
    unlike = like.assign(C="red", X=5.0)
    for other, apart in ((like, False), (unlike, True)):
        found = propensity(real, other, SCHEMA, "G").set_index(["model", "G"])
        for model in ("linear", "tree"):
            row = found.loc[(model, "a")]
            assert row["status"] == "ok"
            assert (row["auc"] > 0.85) == apart
            assert (row["value"] > 0.1) == apart
            assert row["null"] < 0.05
        assert found.xs("c", level="G")["value"].isna().all()


def test_the_area_under_the_curve_is_scikit_learns():
    from sklearn.metrics import roc_auc_score

    from stratsynth.evaluation.learning.propensity import _auc
    from stratsynth.evaluation.tables import Pair

    pair = Pair.of(people(60, 1), people(50, 2), SCHEMA, "G")
    chance = np.random.default_rng(3).integers(0, 9, 110) / 9
    label = np.repeat([0, 1], [60, 50])
    group = np.concatenate(pair.members)
    found = _auc(pair, chance)
    for g in (0, 1):
        assert found[g] == pytest.approx(roc_auc_score(label[group == g], chance[group == g]))
    assert np.isnan(found[2])
    assert found[3] == pytest.approx(roc_auc_score(label, chance))


def test_propensity_of_too_few_rows_is_no_score():
    for n in (0, 3):
        found = propensity(people(n), people(100), SCHEMA, "G")
        assert set(found["status"]) == {"not_estimable"}
        assert len(found) == 8


def test_coordinates_are_those_of_scikit_learn():
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    real, made = people(300, 1), people(200, 2)
    found = principal_components(real, made, SCHEMA, "G", components=3)
    values = np.stack([EncodedRows.read(real, SCHEMA).values(name) for name in ("X", "Y", "C")], axis=1)
    scaled = np.nan_to_num(StandardScaler().fit_transform(values))
    theirs = PCA(3).fit(scaled)
    np.testing.assert_allclose(found.attrs["explained"], theirs.explained_variance_ratio_, atol=2e-3)
    assert found.groupby("table").size().to_dict() == {"real": 300, "synthetic": 200}
    expected = np.sort(np.abs(scaled @ theirs.components_[0]))
    np.testing.assert_allclose(np.sort(found[found["table"] == "real"]["pc1"].abs()), expected, atol=0.1)
    few = principal_components(real, made, SCHEMA, most=10)
    assert len(few) == 20
    with pytest.raises(StratsynthError):
        principal_components(real, made, SCHEMA, components=5)


def test_broken_rules_are_counted_by_group():
    frame = pd.DataFrame(
        {
            "G": list("aaab"),
            "X": [60.0, 5.0, None, 60.0],
            "Y": ["3", "N", "1", "3"],
            "C": ["red", "green", "red", "blue"],
        }
    )
    sound = frame.assign(C="blue", X=20.0)
    found = inconsistencies(sound, frame, SCHEMA, "G").set_index(["rule", "G"])
    first, second = "C red never X >= 50 or Y 1, 2", "X < 10 never Y N"
    assert found.loc[(first, "a"), ["value", "synthetic_rows", "real"]].tolist() == pytest.approx([2 / 3, 2, 0])
    assert found.loc[(second, "a"), "synthetic_rows"] == 1
    assert found.loc[("(any)", "a"), "value"] == 1
    assert found.loc[("(any)", "b"), "value"] == 0
    assert found.loc[("(any)", "c"), "status"] == "not_estimable"
    everybody = inconsistencies(sound, frame, SCHEMA)
    assert everybody.set_index("rule").loc["(any)", "value"] == 0.75


def test_the_census_breaks_none_of_its_rules():
    people = census.make(500)
    found = inconsistencies(people, people, census.schema())
    assert (found["value"] == 0).all()


def test_a_schema_without_rules_is_never_broken():
    frame = people(5)
    found = inconsistencies(frame, frame, Schema(SCHEMA.columns))
    assert found[["rule", "value"]].values.tolist() == [["(any)", 0]]


def test_levels_that_only_one_table_has():
    real = pd.DataFrame({"G": list("aaab"), "X": 1.0, "Y": "1", "C": ["red", "red", "green", "blue"]})
    made = pd.DataFrame({"G": list("aab"), "X": 1.0, "Y": "1", "C": ["red", "blue", "green"]})
    found = levels_lost(real, made, SCHEMA, "G").set_index(["column", "kind", "G"])
    assert found.loc[("C", "lost", "a"), ["value", "levels", "names"]].tolist() == [pytest.approx(1 / 3), 1, "green"]
    assert found.loc[("C", "invented", "a"), ["value", "levels", "names"]].tolist() == [0.5, 1, "blue"]
    assert found.loc[("C", "lost", "b"), ["value", "names"]].tolist() == [1, "blue"]
    assert np.isnan(found.loc[("C", "lost", "c"), "value"])
    everybody = levels_lost(real, made, SCHEMA).set_index(["column", "kind"])
    assert (everybody["levels"] == 0).all()


def test_matches_are_of_people_who_are_alone():
    real = pd.DataFrame({"G": list("aaabb"), "X": [1.0, 1, 20, 30, 40], "Y": "1", "C": ["red"] * 5})
    made = pd.DataFrame({"G": list("aaab"), "X": [1.0, 20, 20, 30], "Y": "1", "C": ["red", "red", "blue", "blue"]})
    found = matches(real, made, SCHEMA, "G", quasi=["G", "X"]).set_index(["measure", "G"])
    exact, apparent = "unique_exact_match", "apparent_match"
    # two of a are equal; the third is in the release. Of b, 30 is there with another colour, 40 is not
    assert found.loc[(exact, "a"), ["base", "matches", "value"]].tolist() == [1, 1, 1]
    assert found.loc[(exact, "b"), ["base", "matches", "value"]].tolist() == [2, 0, 0]
    # the third of a has two synthetic rows like it in the quasi-identifiers
    assert found.loc[(apparent, "a"), ["base", "matches"]].tolist() == [1, 0]
    assert found.loc[(apparent, "b"), ["base", "matches", "similarity"]].tolist() == [2, 1, 0.5]
    assert "not a measure of privacy" in found.attrs["warning"]
    assert set(found["status"]) == {"small", "not_estimable"}


def test_rows_of_very_many_columns_are_still_told_apart():
    names = [f"c{i}" for i in range(40)]
    schema = Schema({name: Categorical(levels=("0", "1", "2", "3")) for name in names})
    real = pd.DataFrame(np.random.default_rng(0).integers(0, 4, (200, 40)).astype(str), columns=names)
    found = matches(real, real[:50], schema, quasi=["c0"]).set_index("measure")
    assert found.loc["unique_exact_match", ["base", "matches"]].tolist() == [200, 50]


def test_wilsons_interval_is_scipys():
    for part, whole in ((0, 5), (3, 10), (10, 10), (400, 1000)):
        theirs = stats.binomtest(part, whole).proportion_ci(method="wilson")
        low, high = wilson(np.array(part), np.array(whole))
        assert (low, high) == (pytest.approx(theirs.low), pytest.approx(theirs.high))
    assert np.isnan(wilson(np.array(0), np.array(0))).all()


@pytest.mark.parametrize(
    ("ask", "settings"),
    [
        (correlations, {"measures": ["spearman"]}),
        (correlations, {"columns": ["X"]}),
        (propensity, {"models": ["forest"]}),
        (matches, {"quasi": ["Z"]}),
        (inconsistencies, {"by": "Z"}),
    ],
)
def test_what_cannot_be_asked_is_refused(ask, settings):
    with pytest.raises(StratsynthError):
        ask(people(5), people(5), SCHEMA, **settings)
