"""One call from a table to a release: loud where it is not private, refused where nobody has reviewed the schema."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import stratsynth as ss
from helpers import small
from stratsynth.adapters import Independent
from stratsynth.errors import DraftWarning, NotPrivateWarning, SchemaError, StratsynthError

ROWS = 6_000


def people(rows=ROWS):
    rng = np.random.default_rng(3)
    age = rng.integers(18, 90, rows)
    return pd.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], rows),
            "bill": np.where(rng.random(rows) < 0.3, 0, np.round(np.exp(rng.normal(6, 1.5, rows)))).astype(int),
            "member": rng.random(rows) < age / 100,
            "region": pd.Categorical(rng.choice(["n", "s", "w"], rows)),
            "since": pd.Timestamp("2011-01-01") + pd.to_timedelta(rng.integers(0, 3_000, rows), unit="D"),
            "note": [None, *rng.choice(["x", "y"], rows - 1)],
        }
    )


@pytest.mark.usefixtures("seeded_noise")
def test_public_data_need_one_call_and_it_is_loud():
    frame = people()
    with pytest.warns(NotPrivateWarning, match=r"NOT PRIVATE: .* the schema came from the rows") as said:
        release = ss.synthesize(frame, epsilon=3, public=True)
    assert len(said) == 1
    assert release.certificate["private"] is False
    assert release.certificate["mechanism"]["name"] == "aim"
    assert "public" in release.certificate["warning"]
    assert release.certificate["schema"]["origin"] == "private data"
    assert release.certificate["schema"]["reviewed_by"].startswith("nobody")
    synthetic = release.sample(ROWS, seed=1)
    assert synthetic.dtypes.map(lambda kind: kind.kind).tolist() == frame.dtypes.map(lambda kind: kind.kind).tolist()
    for name in ("age", "bill"):
        spread = frame[name].std()
        assert abs(synthetic[name].mean() - frame[name].mean()) < 0.15 * spread
        for part in (0.25, 0.5, 0.75):
            assert abs(synthetic[name].quantile(part) - frame[name].quantile(part)) < 0.15 * spread


@pytest.mark.parametrize(("columns", "levels"), [(31, 2), (12, 60)])
def test_without_a_name_mst_is_fitted_where_aim_is_slow_or_cannot(columns, levels):
    frame = pd.DataFrame({f"c{i}": ["0", "1"] * 50 for i in range(columns)})
    schema = ss.Schema(
        {name: ss.Categorical(levels=tuple(map(str, range(levels)))) for name in frame}, reviewed_by="me"
    )
    release = ss.synthesize(frame, epsilon=1, schema=schema, declared_size=100)
    assert release.certificate["mechanism"]["name"] == "mst"


def test_a_sample_fits_scikit_learn_without_a_cast():
    with pytest.warns(NotPrivateWarning):
        release = ss.synthesize(people(), epsilon=3, public=True, mechanism="independent")
    table = release.sample(600, seed=1)
    numbers, target = table[["age", "bill"]], table["member"]
    for model in (
        HistGradientBoostingClassifier(max_iter=5),
        RandomForestClassifier(n_estimators=5),
        LogisticRegression(),
    ):
        assert set(model.fit(numbers, target).predict(people(50)[["age", "bill"]])) <= {True, False}
    coded = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    features = ["sex", "region", "note"]
    assert len(coded.fit(table[features], table["sex"]).predict(people(50)[features])) == 50


def test_strata_of_public_data_have_their_own_shares():
    frame = people()
    with pytest.warns(NotPrivateWarning):
        release = ss.synthesize(frame, epsilon=3, public=True, by=["sex"])
    assert release.certificate["mechanism"]["name"] == "pooled"
    assert release.certificate["weights"]["citation"] == "counted in the data themselves, which were declared public"
    shares = release.sample(4_000, seed=0)["sex"].value_counts(normalize=True)
    assert shares["f"] == pytest.approx((frame["sex"] == "f").mean(), abs=0.03)
    with pytest.warns(NotPrivateWarning):
        plain = ss.synthesize(frame, epsilon=3, public=True, by=["sex"], mechanism=Independent())
    assert plain.certificate["mechanism"]["name"] == "independent"
    assert plain.certificate["strata"]["by"] == ["sex"]


def test_private_data_need_a_schema_that_a_person_has_reviewed(recwarn):
    frame = small.people()
    with pytest.raises(SchemaError, match="public=True"):
        ss.synthesize(frame, epsilon=1)
    draft = ss.Schema.draft(frame)
    with pytest.raises(SchemaError, match="reviewed_by"):
        ss.synthesize(frame, epsilon=1, schema=draft)
    release = ss.synthesize(frame, epsilon=1, schema=draft.reviewed("me"), mechanism="independent", declared_size=100)
    assert release.certificate["private"] is True
    assert release.certificate["guarantee"]["epsilon"] == 1
    assert release.certificate["schema"]["reviewed_by"] == "me"
    assert not [w for w in recwarn if not issubclass(w.category, DraftWarning)]


@pytest.mark.filterwarnings("ignore::stratsynth.errors.NotPrivateWarning")
def test_columns_that_a_draft_leaves_out_are_named():
    frame = small.people().assign(number=lambda rows: [f"ID{row:06}" for row in range(len(rows))])
    frame = frame.loc[frame.index.repeat(1 + 1_200 // len(frame))].reset_index(drop=True)
    frame["number"] = [f"ID{row:06}" for row in range(len(frame))]
    with pytest.warns(DraftWarning, match="not in the release:\n- column 'number' is left out: ") as warned:
        release = ss.synthesize(frame, epsilon=1, public=True, mechanism="independent")
    assert "number" not in release.sample(5, seed=1).columns
    assert [w.filename for w in warned if w.category is DraftWarning] == [__file__]


def test_a_path_a_schema_file_and_a_ledger_will_do(tmp_path):
    small.people().to_csv(tmp_path / "people.csv", index=False)
    small.SCHEMA.write_toml(tmp_path / "schema.toml")
    release = ss.synthesize(
        tmp_path / "people.csv",
        epsilon=1,
        schema=tmp_path / "schema.toml",
        mechanism="independent",
        ledger=tmp_path / "people.ledger",
        declared_size=100,
        by=["SEX"],
        weights=small.even(small.SCHEMA, "SEX"),
    )
    assert (tmp_path / "people.ledger").exists()
    assert release.certificate["strata"]["by"] == ["SEX"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": "1"}, "epsilon must be a number"),
        ({"epsilon": 1, "by": "SEX"}, 'write ["SEX"]'),
        ({"epsilon": 1, "by": ["SEX"]}, "need weights"),
        ({"epsilon": 1, "mechanism": "mts"}, "did you mean 'mst'"),
        ({"epsilon": 1, "schema": "nowhere.toml"}, "nowhere.toml"),
        ({"epsilon": 1, "mechanism": small.stratified(), "by": ["SEX"]}, "leave `by` out"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_read(settings, message):
    weights = small.even(small.SCHEMA, "SEX") if "mechanism" in settings else None
    with pytest.raises(StratsynthError, match=message.replace("[", "\\[")):
        ss.synthesize(small.people(), **{"schema": small.SCHEMA, "weights": weights} | settings)


def test_an_arrow_table_will_do():
    table = pa.Table.from_pandas(people(300))
    with pytest.warns(NotPrivateWarning):
        release = ss.synthesize(table, epsilon=1, public=True, mechanism="independent")
    assert release.sample_arrow(10).schema.field("since").type == table.schema.field("since").type


def test_a_unit_of_several_rows_is_named_in_the_call():
    """users3, A.3."""
    frame = small.people().assign(SUBJECT=[f"P{i % 25}" for i in range(100)])
    settings = {"epsilon": 1, "schema": small.SCHEMA, "mechanism": "independent", "declared_size": 100}
    unit = ss.Unit(column="SUBJECT", max_rows=4)
    release = ss.synthesize(frame, unit=unit, **settings)
    assert release.certificate["unit"] == {"column": "SUBJECT", "max_rows": 4}
    of_sex = ss.synthesize(small.people(98), unit=ss.Unit(column="SEX", max_rows=60), **settings)
    assert "SEX" not in of_sex.model.schema.names, "what tells people apart is not released"
    for wrong, words in (("SUBJECT", "must be Unit"), (ss.Unit(column="SUBJECT", max_rows=5), "another unit")):
        with pytest.raises(StratsynthError, match=words):
            ss.synthesize(frame, unit=wrong, **settings | {"schema": release.model.schema})


def test_rows_by_measured_sizes_are_asked_for_in_the_call():
    shares = small.shares_frame().assign(share=[0.1, 0.2, 0.3, 0.4])
    settings = {"schema": small.SCHEMA, "by": ["SEX", "GROUP"], "declared_size": 600, "mechanism": "independent"}
    weights = ss.Weights.public(shares, citation="a yearbook")
    release = ss.synthesize(small.people(600), epsilon=4, weights=weights, groups="measured", **settings)
    assert release.statement.weights.groups == "measured"
    assert (release.sample(4000, seed=1)["GROUP"] == "a").mean() == pytest.approx(2 / 3, abs=0.05)
    with pytest.raises(StratsynthError, match='groups must be "declared" or "measured"'):
        ss.synthesize(small.people(), epsilon=1, schema=small.SCHEMA, groups="counted")
