"""Marginal workload error against tables counted by hand, and against counting one group at a time."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratsynth import Categorical, Schema, StratsynthError, census
from stratsynth.evaluation import clique_errors, k_marginal_score, workload_error
from stratsynth.evaluation.scores import marginals as engine
from stratsynth.evaluation.scores.marginals import mean_l1, workload
from stratsynth.evaluation.tables import EncodedRows, Pair

SCHEMA = Schema(
    {
        "G": Categorical(levels=("a", "b", "c")),
        "X": Categorical(levels=("0", "1")),
        "Y": Categorical(levels=("0", "1", "2")),
    }
)
REAL = pd.DataFrame({"G": list("aaaabb"), "X": list("001101"), "Y": list("012000")})
MADE = pd.DataFrame({"G": list("aabbbb"), "X": list("000011"), "Y": list("000011")})


def one(frame, **where):
    for column, level in where.items():
        frame = frame[frame[column].isna()] if level is None else frame[frame[column] == level]
    assert len(frame) == 1
    return frame.iloc[0]


def test_the_distance_of_a_small_table_is_the_one_by_hand():
    found = workload_error(REAL, MADE, SCHEMA, 1, "G", columns=["X"])
    # in a: shares of 0 and 1 are 1/2, 1/2 and 1, 0; in b 1/2, 1/2 in both; in c there is nobody
    assert found["scope"].tolist() == ["group"] * 3 + ["everybody"]
    assert one(found, G="a")["value"] == pytest.approx(1.0)
    assert one(found, G="b")["value"] == 0
    assert np.isnan(one(found, G="c")["value"])
    assert one(found, scope="everybody")["value"] == pytest.approx(2 * (4 / 6 - 3 / 6))
    assert found["n"].tolist() == [4, 2, 0, 6]
    assert found["n_synthetic"].tolist() == [2, 4, 0, 6]
    assert found["status"].tolist() == ["small", "small", "not_estimable", "small"]


def test_total_variation_is_half_of_l1_and_the_score_is_nists():
    l1, tv = (workload_error(REAL, MADE, SCHEMA, 2, "G", distance=d) for d in ("l1", "tv"))
    score = k_marginal_score(REAL, MADE, SCHEMA, 2, "G")
    np.testing.assert_allclose(l1["value"], 2 * tv["value"])
    np.testing.assert_allclose(score["value"], 1000 * (1 - tv["value"]))
    np.testing.assert_allclose(score["low"], 1000 * (1 - tv["high"]))


def test_cliques_come_worst_first_and_those_without_a_score_last():
    found = clique_errors(REAL, MADE, SCHEMA, 1, "G")
    assert len(found) == 3 * 4
    values = found["value"].dropna()
    assert values.is_monotonic_decreasing
    assert found["value"].isna().tolist() == [False] * 9 + [True] * 3
    assert set(found["clique"]) == {"G", "X", "Y"}
    means = workload_error(REAL, MADE, SCHEMA, 1, "G")
    assert found[found["G"] == "a"]["value"].mean() == pytest.approx(one(means, G="a")["value"])


def test_a_table_is_at_no_distance_from_itself_in_another_order():
    shuffled = REAL.sample(frac=1, random_state=1)
    found = workload_error(REAL, shuffled, SCHEMA, 3, "G")
    assert found["value"].dropna().tolist() == [0, 0, 0]


def test_every_declared_group_is_there_when_a_table_is_empty():
    found = workload_error(REAL, MADE[:0], SCHEMA, 2, ["G", "X"])
    assert len(found) == 7
    assert found["value"].isna().all()
    assert set(found["status"]) == {"not_estimable"}


def test_who_reads_private_rows_is_told_so():
    assert "INTERNAL" in workload_error(REAL, MADE, SCHEMA, 2).attrs["stamp"]


def test_fewer_cliques_are_the_same_every_time_and_everybody_alone_is_one_row():
    sizes = [workload_error(REAL, MADE, SCHEMA, 2, most=most)["cliques"].tolist() for most in (1, 2, 3, None)]
    assert sizes == [[1], [2], [3], [3]]
    values = {workload_error(REAL, MADE, SCHEMA, 2, most=2)["value"].item() for _ in range(3)}
    assert len(values) == 1


@st.composite
def pairs(draw):
    def frame():
        n = draw(st.integers(0, 12))
        columns = {c: draw(st.lists(st.sampled_from(SCHEMA.levels(c)), min_size=n, max_size=n)) for c in SCHEMA.names}
        return pd.DataFrame(columns, dtype=object)

    return frame(), frame()


@given(pairs(), st.integers(1, 3), st.booleans())
def test_all_groups_at_once_are_each_group_alone(tables, k, sparse):
    real, made = tables
    with pytest.MonkeyPatch.context() as patch:
        if sparse:  # every table of counts as a sorted list
            patch.setattr(engine, "DENSE", -(10**9))
            patch.setattr(engine, "max", min, raising=False)
        found = workload_error(real, made, SCHEMA, k, "G")
    for level in (*SCHEMA.levels("G"), None):
        parts = [t if level is None else t[t["G"] == level] for t in tables]
        row = one(found, G=level)
        if not all(len(part) for part in parts):
            assert row["status"] == "not_estimable"
            assert np.isnan(row["value"])
            continue
        apart = [plain_l1(*parts, clique) for clique in combinations(SCHEMA.names, k)]
        assert row["value"] == pytest.approx(np.mean(apart))
        assert row["n"] == len(parts[0])


def plain_l1(real, made, clique):
    shares = [part.groupby(list(clique)).size() / len(part) for part in (real, made)]
    return float(shares[0].sub(shares[1], fill_value=0).abs().sum())


def test_mean_l1_takes_an_empty_table_for_zeros():
    codes = [EncodedRows.read(frame, SCHEMA).codes for frame in (REAL, MADE, MADE[:0])]
    cliques = [("X",), ("X", "Y")]
    assert mean_l1(codes[0], codes[2], SCHEMA, cliques) == 1
    apart = [plain_l1(REAL, MADE, clique) for clique in cliques]
    assert mean_l1(codes[0], codes[1], SCHEMA, cliques) == pytest.approx(np.mean(apart))


def test_the_standard_error_is_that_of_tables_drawn_anew():
    """Among many pairs drawn from two populations, scores spread as their standard errors say."""
    rng = np.random.default_rng(3)
    schema = Schema({name: Categorical(levels=("0", "1", "2")) for name in ("G", "X", "Y")})

    def drawn(n, tilt):
        codes = {"G": rng.choice(3, n, p=(0.6, 0.3, 0.1))}
        codes["X"] = np.where(rng.random(n) < tilt, codes["G"], rng.choice(3, n, p=(0.5, 0.3, 0.2)))
        codes["Y"] = np.where(rng.random(n) < tilt, codes["X"], rng.choice(3, n, p=(0.2, 0.3, 0.5)))
        return EncodedRows(schema, {k: v.astype(np.uint8) for k, v in codes.items()}, {}, n)

    values, errors, single, single_errors = [], [], [], []
    for _ in range(400):
        pair = Pair.of(drawn(900, 0.5), drawn(600, 0.1), schema, "G")
        found = workload(pair, [("X", "Y"), ("G", "X"), ("Y",)])
        values.append(found.mean())
        errors.append(found.mean_errors(pair))
        single.append(found.values[0])
        single_errors.append(found.errors[0])
    for scores, said in ((values, errors), (single, single_errors)):
        ratio = np.mean(said, axis=0) / np.std(scores, axis=0)
        assert ((ratio > 0.8) & (ratio < 1.25)).all(), ratio  # 400 draws: 3.5 % of chance


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"k": 0}, "k must be"),
        ({"k": 4}, "k must be"),
        ({"distance": "l2"}, "distance"),
        ({"by": "H"}, "'H'"),
        ({"by": ["G", "G"]}, "twice"),
        ({"columns": ["Z"]}, "'Z'"),
    ],
)
def test_what_cannot_be_asked_is_refused(asked, says):
    with pytest.raises(StratsynthError, match=says):
        workload_error(REAL, MADE, SCHEMA, **{"k": 2, **asked})


def test_a_column_called_value_cannot_make_groups():
    schema = Schema({"value": Categorical(levels=("a", "b"))})
    frame = pd.DataFrame({"value": ["a", "b"]})
    with pytest.raises(StratsynthError, match="rename"):
        workload_error(frame, frame, schema, 1, "value")
    assert workload_error(frame, frame, schema, 1)["value"].item() == 0


def test_more_cells_than_can_be_numbered_are_refused():
    schema = Schema({f"c{i}": Categorical(levels=tuple(map(str, range(1000)))) for i in range(7)})
    frame = pd.DataFrame({name: ["1"] for name in schema.names})
    with pytest.raises(StratsynthError, match="smaller k"):
        workload_error(frame, frame, schema, 7)
    assert workload_error(frame, frame, schema, 6)["value"].item() == 0


def test_without_errors_of_means_the_distances_are_the_same():
    schema = census.schema().restrict(["SEX", "RAC1P", "AGEP", "ESR"])
    pair = Pair.of(census.make(300), census.holdout(300), schema, ["SEX"])
    full, quick = (workload(pair, engine.all_cliques(schema.names, 2, None), errors_of_means=e) for e in (True, False))
    np.testing.assert_array_equal(full.values, quick.values)
    assert (full.mean_errors(pair) > 0).all()
    assert (quick.mean_errors(pair) == 0).all()
