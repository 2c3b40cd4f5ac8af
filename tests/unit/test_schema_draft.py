"""Drafts and checks: what they guess and count, and the stamps they carry."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from stratsynth import cli
from stratsynth.cli.schemas import check_page, check_schema
from stratsynth.data.draft import check, draft, drafted, refuse_release_folder
from stratsynth.data.sources import open_source
from stratsynth.errors import DraftWarning, SchemaError, UsageError
from stratsynth.report.text import render
from stratsynth.schema import Categorical, Numeric, Rule, Schema, Unit
from stratsynth.schema.codec import decode, to_pandas
from stratsynth.schema.encoding import encode


def _draft(table: object) -> Schema:
    return Schema.from_toml_text(draft(open_source(table)))


def test_a_draft_is_stamped_and_cannot_be_used_unreviewed():
    text = draft(open_source(pa.table({"A": ["x"]})))
    assert text.startswith("# INTERNAL:")
    assert "reviewed_by" in text.split("format")[0]
    assert text.count("# REVIEW") == 1
    schema = Schema.from_toml_text(text)
    assert schema.origin == "private data"
    with pytest.raises(SchemaError, match="review"):
        schema.ready()


def test_what_a_draft_guesses():
    n = 200
    schema = _draft(
        pa.table(
            {
                "few": [str(i % 3) for i in range(n)],
                "int": [i % 10 for i in range(n)],
                "age": [13 + i % 80 for i in range(n)],
                "money": ["N" if i % 9 == 0 else f"{i * 371}.0" for i in range(n)],
                "real": [None, *(i / 1000 for i in range(1, n))],
                "whole": [None, *(float(i % 4) for i in range(1, n))],
                "code": [f"{i % 150:05d}" for i in range(n)],
                "flag": [True, False] * (n // 2),
                "cat": pa.array(["b", "a"] * (n // 2)).dictionary_encode(),
                "a b": ["x"] * n,
            }
        )
    )
    columns = schema.columns
    assert columns["few"] == Categorical(levels=("0", "1", "2")), "declared as text"
    assert columns["int"] == Categorical(levels=tuple("0123456789"), dtype="int64")
    assert columns["age"] == Numeric(lower=10, upper=95, integer=True, shape="smooth")
    assert columns["money"].not_applicable == "N"
    assert columns["money"].integer
    assert columns["real"] == Numeric(lower=0, upper=0.2, missing=True, digits=3)
    assert columns["whole"] == Categorical(levels=("0", "1", "2", "3"), dtype="float64", outside="missing")
    assert columns["code"].size == 150
    assert columns["code"].dtype == "string"
    assert columns["flag"] == Categorical(levels=("false", "true"), dtype="bool")
    assert columns["cat"] == Categorical(levels=("a", "b"), dtype="category")
    assert schema.names[-1] == "a b"


@pytest.mark.parametrize("values", [[0.5], [-1e308, 1e308], [1e-300], [2**53, *range(40)], [1e300, 1.0000001e300]])
def test_bounds_are_rounded_outward(values):
    column = _draft(pa.table({"x": [float(v) for v in values]})).columns["x"]
    if isinstance(column, Numeric):
        assert column.lower <= min(values)
        assert column.upper >= max(values)
    else:
        assert column.size == len(values)


def test_what_cannot_be_drafted_is_named_in_a_comment():
    table = pa.table(
        {"id": [f"p{i}" for i in range(1001)], "A": ["x"] * 1001, "none": pa.nulls(1001), "l": [[1]] * 1001}
    )
    text = draft(open_source(table))
    for name in ("id", "none", "l"):
        assert f"# REVIEW: column '{name}' is left out" in text
    assert "p17" not in text
    assert Schema.from_toml_text(text).names == ("A",)
    with pytest.raises(SchemaError, match="no column"):
        draft(open_source(table.select(["id"])))


N = 400
LEFT_OUT = {
    "a text that differs in every row": ([f"p{i}" for i in range(N)], 'unit = { column = "x"'),
    "a running number": ([10_000 + i for i in range(N)], 'unit = { column = "x"'),
    "a long number": ([10**8 + 7919 * i for i in range(N)], 'unit = { column = "x"'),
    "codes with zeros in front": ([f"{i:05d}" for i in range(N)], "identifier"),
    "sentences": ([f"person {i % 300} was seen on day {i}" for i in range(N)], "leave it out"),
    "free text that is not always different": ([f"said {i % 300} things that day" for i in range(N)], "free text"),
    "dates of another form": ([f"{1 + i % 28}/{1 + i % 12}/2020" for i in range(N)], "2024-12-31"),
}


@pytest.mark.parametrize(("values", "remedy"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_identifiers_and_free_text_are_refused_with_the_remedy(values, remedy):
    found = drafted(open_source(pd.DataFrame({"x": values, "A": ["a", "b"] * (N // 2)})))
    assert found.schema.names == ("A",)
    assert remedy in found.left_out["x"]


def test_a_name_of_several_lines_breaks_no_comment():
    name = 'id"\n[columns.x]\u2028'
    text = draft(open_source(pd.DataFrame({name: [f"p{i}" for i in range(N)], "A": ["a", "b"] * (N // 2)})))
    assert Schema.from_toml_text(text).names == ("A",)


def test_names_are_known_by_their_column():
    people = pd.DataFrame({"last_name": [f"N{i % 200}" for i in range(N)], "town": [f"N{i % 200}" for i in range(N)]})
    found = drafted(open_source(people))
    assert found.schema.names == ("town",)
    assert "names or addresses" in found.left_out["last_name"]


def test_decimals_come_back_with_as_many_digits():
    rng = np.random.default_rng(0)
    grades = np.round(rng.normal(3, 0.4, N).clip(1.5, 4), 1)
    prices = np.round(rng.lognormal(3, 1, N), 2)
    schema = drafted(open_source(pd.DataFrame({"grade": grades, "price": prices}))).schema
    assert schema.columns["grade"].digits == 1
    assert schema.columns["price"].digits == 2
    coded = encode(schema, pa.table({"grade": grades, "price": prices})).codes
    back = decode(schema, coded, rng).to_pandas()
    assert back["grade"].tolist() == grades.tolist(), "a bin for each"
    assert (back["price"] == back["price"].round(2)).all()
    again = encode(schema, pa.Table.from_pandas(back)).codes
    assert {n: c.tolist() for n, c in again.items()} == {n: c.tolist() for n, c in coded.items()}, "none left its bin"


def test_codes_far_apart_are_levels_and_amounts_are_not():
    rng = np.random.default_rng(2)
    occupations = rng.choice(9_000, 120, replace=False) + 170
    frame = pd.DataFrame(
        {
            "occupation": rng.choice(occupations, 5_000),
            "limit": rng.choice(np.arange(1, 101) * 10_000, 5_000),
            "gain": np.where(rng.random(5_000) < 0.9, 0, rng.choice(occupations, 5_000)),
            "weight": np.round(rng.lognormal(4, 0.6, 5_000)).astype(int) + 1,
        }
    )
    found = drafted(open_source(frame))
    kinds = {name: type(column).__name__ for name, column in found.schema.columns.items()}
    assert kinds == {"occupation": "Categorical", "limit": "Numeric", "gain": "Numeric", "weight": "Numeric"}
    assert found.schema.columns["occupation"].dtype == "int64"
    assert "codes" in found.notes["occupation"][0]


def test_few_decimals_that_occur_often_are_levels():
    frame = pd.DataFrame({"rate": [0.5, 1.25] * (N // 2), "rarely": [i % 20 + 0.5 for i in range(N)]})
    columns = drafted(open_source(frame)).schema.columns
    assert columns["rate"] == Categorical(levels=("0.5", "1.25"), dtype="float64")
    assert isinstance(columns["rarely"], Numeric)


def test_texts_of_numbers_are_numbers_in_a_csv_file_and_texts_where_they_are_declared_so(tmp_path):
    frame = pd.DataFrame({"few": ["1", "2"] * 200, "many": [str(i % 300) for i in range(N)], "day": ["2001-02-03"] * N})
    assert {c.dtype for c in drafted(open_source(frame)).schema.columns.values()} == {"string"}
    frame.to_csv(tmp_path / "x.csv", index=False)
    from_csv = drafted(open_source(tmp_path / "x.csv")).schema.columns
    assert [c.dtype for c in from_csv.values()] == ["int64", "int64", "date"]
    objects = frame.astype(object)
    assert [c.dtype for c in drafted(open_source(objects)).schema.columns.values()] == ["int64", "int64", "date"]


def test_amounts_that_all_differ_are_no_identifiers():
    found = drafted(open_source(pd.DataFrame({"income": [1_000 + 137 * i for i in range(N)], "x": np.arange(N) / 7})))
    assert found.schema.names == ("income", "x")


def test_types_come_back_as_they_went_in(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "whole": rng.integers(0, 5_000, N),
            "few": rng.integers(0, 5, N),
            "nullable": pd.array([None, *rng.integers(0, 5_000, N - 1)], "Int64"),
            "real": rng.normal(size=N),
            "real_null": [np.nan, *rng.normal(size=N - 1)],
            "flag": rng.random(N) < 0.5,
            "text": rng.choice(["a", "b"], N),
            "text_null": [None, *rng.choice(["a", "b"], N - 1)],
            "class": pd.Categorical(rng.choice(["low", "high"], N), ["low", "middle", "high"], ordered=True),
            "plain": pd.Categorical(rng.choice(["u", "v"], N)),
            "day": pd.Timestamp("2001-03-04") + pd.to_timedelta(rng.integers(0, 4_000, N), unit="D"),
            "moment": pd.Timestamp("2001-03-04") + pd.to_timedelta(rng.integers(0, 10**8, N), unit="s"),
            "stay": pd.to_timedelta(rng.integers(0, 500, N), unit="h"),
            "born": [dt.date(1950, 1, 1) + dt.timedelta(days=int(i)) for i in rng.integers(0, 20_000, N)],
            "clock": [dt.time(int(i)) for i in rng.integers(0, 24, N)],
        }
    )
    schema = drafted(open_source(frame)).schema
    assert check(schema, open_source(frame)).left_out == 0
    back = to_pandas(decode(schema, encode(schema, open_source(frame).read(schema.names)).codes, rng))
    assert list(back.columns) == list(frame.columns)
    for name in frame:
        went, came = frame[name].dtype, back[name].dtype
        assert came == went, name
        assert back[name].isna().sum() == frame[name].isna().sum()
    assert back["class"].cat.ordered
    assert list(back["class"].cat.categories) == ["low", "middle", "high"]
    assert (back["day"].dt.year == frame["day"].dt.year).mean() > 0.95, "bins of years"
    assert isinstance(back["born"][0], dt.date)
    assert isinstance(back["clock"][0], dt.time)
    frame.to_csv(tmp_path / "x.csv", index=False)
    from_csv = drafted(open_source(tmp_path / "x.csv")).schema
    assert {n: c.dtype for n, c in from_csv.columns.items()} == {
        "whole": "int64",
        "few": "int64",
        "nullable": "int64",
        "real": "float64",
        "real_null": "float64",
        "flag": "bool",
        "text": "string",
        "text_null": "string",
        "class": "string",
        "plain": "string",
        "day": "date",
        "moment": "datetime",
        "stay": "duration",
        "born": "date",
        "clock": "time",
    }
    assert check(from_csv, open_source(tmp_path / "x.csv")).left_out == 0


def skewed(rows=5_000):
    """A column like those of bills: a third are zero, and a few are a hundred times as large as most."""
    rng = np.random.default_rng(5)
    return np.where(rng.random(rows) < 0.35, 0, np.round(np.exp(rng.normal(7.5, 1.3, rows)))).astype(int)


def test_a_skewed_column_is_noticed_and_its_bins_keep_its_mean():
    values = skewed()
    found = drafted(open_source(pd.DataFrame({"bill": values})))
    column = found.schema.columns["bill"]
    assert column.spikes == (0,)
    assert (column.edges, column.spacing, column.shape) == (None, "log", "pareto")
    assert column.transform_unit == 200
    assert any("bins of equal width would put" in note for note in found.notes["bill"])
    assert "# REVIEW: bins of equal width" in found.to_toml()
    rng = np.random.default_rng(0)
    drawn = {}
    even = Numeric(lower=column.lower, upper=column.upper, integer=True, bins=20)
    for name, kind in {"drafted": column, "even": even}.items():
        schema = Schema({"bill": kind})
        coded = encode(schema, pa.table({"bill": values})).codes
        drawn[name] = decode(schema, coded, rng)["bill"].to_pandas()
    spread = values.std()
    assert abs(drawn["drafted"].mean() - values.mean()) < 0.03 * spread
    assert abs(drawn["even"].mean() - values.mean()) > 0.3 * spread, "as it was before"
    assert (drawn["drafted"] == 0).mean() == (values == 0).mean()
    for part in (0.25, 0.5, 0.75):
        assert abs(np.quantile(drawn["drafted"], part) - np.quantile(values, part)) < 0.05 * spread


def test_bins_of_credit_are_logarithmic_and_bins_of_other_numbers_are_not():
    """Bills with zeros and negative amounts, limits in steps, rates: only bounds and one digit of a size are seen."""
    rng = np.random.default_rng(3)
    bill = np.where(rng.random(N) < 0.05, -np.exp(rng.normal(6, 1, N)), np.exp(rng.normal(9, 1.2, N))).round()
    frame = pd.DataFrame(
        {
            "bill": np.where(rng.random(N) < 0.1, 0, bill).clip(-50_000, 400_000).astype(int),
            "limit": rng.integers(1, 100, N) * 10_000,
            "rate": np.exp(rng.normal(-5, 1.5, N)).clip(0, 1).round(4),
            "shifted": 1_000 + rng.standard_t(2, N).clip(-500, 500).round(2),
        }
    )
    columns = drafted(open_source(frame)).schema.columns
    assert (columns["bill"].spacing, columns["bill"].shape, columns["bill"].spikes) == ("log", "log", (0,))
    assert columns["bill"].lower < 0
    assert (columns["limit"].spacing, columns["limit"].shape) == ("even", "even")
    assert (columns["rate"].spacing, columns["rate"].digits) == ("log", 4)
    assert columns["rate"].transform_unit < 0.01
    assert columns["shifted"].spacing == "even", "a scale around 0 has no use"
    assert columns["shifted"].edges is not None


def test_a_draft_names_round_numbers_and_the_key_that_draws_them():
    rng = np.random.default_rng(4)
    paid = np.exp(rng.normal(8, 1, N)).astype(int) + 1_000
    frame = pd.DataFrame(
        {
            "limit": rng.integers(1, 100, N) * 10_000,
            "paid": np.where(np.arange(N) < 0.1 * N, 0, np.where(rng.random(N) < 0.7, paid // 100 * 100, paid)),
            "bill": paid,
        }
    )
    notes = drafted(open_source(frame)).notes
    assert notes["limit"][-1].endswith(
        "are multiples of 10000; where that is public, `round = [[0, 10000]]` draws no others"
    )
    (said,) = (note for note in notes["paid"] if "multiples of 100;" in note)
    assert "the numbers besides 0" in said
    assert said.endswith("`heaps = [100]` draws as many")
    assert not any("multiples" in note for note in notes["bill"])


def test_a_check_names_bins_that_hold_most_of_the_money():
    values = skewed()
    wide = Numeric(lower=0, upper=1_000_000, edges=(0, 100, 2_000, 1_000_001), integer=True, spikes=(0,))
    (said,) = check(Schema({"bill": wide}), open_source(pd.DataFrame({"bill": values}))).warnings
    held = values[values >= 2_000].sum() / values.sum()
    assert f"{held:.0%} of the sum of its sizes is in the bin 2000-1000000" in said
    assert "the shape 'even'" in said
    fine = replace(wide, edges=(0, 100, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 1_000_001))
    assert check(Schema({"bill": fine}), open_source(pd.DataFrame({"bill": values}))).warnings == ()
    huge = Schema({"x": Numeric(lower=0, upper=1.7e308, bins=1)})
    assert check(huge, open_source(pd.DataFrame({"x": [1.7e308] * 5}))).warnings == ()


def test_codes_at_the_ends_are_special():
    rng = np.random.default_rng(0)
    ages = rng.integers(0, 5_000, 2_000)
    values = np.where(rng.random(2_000) < 0.05, 99_999, np.where(rng.random(2_000) < 0.05, -9, ages))
    column = drafted(open_source(pd.DataFrame({"hours": values}))).schema.columns["hours"]
    assert column.special == ("-9", "99999")
    assert (column.lower, column.upper) == (0, 5_000)
    losses = np.where(rng.random(2_000) < 0.05, -ages, ages)
    assert drafted(open_source(pd.DataFrame({"x": losses}))).schema.columns["x"].special == ()


def test_a_draft_from_python_says_what_its_reviewer_should_know():
    frame = pd.DataFrame({"id": [f"p{i}" for i in range(N)], "A": ["a", "b"] * (N // 2)})
    with pytest.warns(DraftWarning, match="INTERNAL draft:\n- column 'id' is left out"):
        schema = Schema.draft(frame)
    with pytest.raises(SchemaError, match="review"):
        schema.ready()
    done = schema.reviewed("somebody", {"B": Numeric(lower=0, upper=1)})
    done.ready()
    assert done.names == ("A", "B")
    assert (done.origin, done.reviewed_by) == ("private data", "somebody")
    for table in (pa.table({"A": ["x", "y"]}), pd.DataFrame({"A": ["x", "y"]})):
        assert Schema.draft(table).columns["A"] == Categorical(levels=("x", "y"))


def test_long_lists_fill_their_lines():
    text = draft(open_source(pa.table({"c": [f"{i % 200:04d}" for i in range(N)], "short": ["a, [b", "c"] * (N // 2)})))
    assert len(text.splitlines()) < 45
    assert max(map(len, text.splitlines())) <= 120
    assert Schema.from_toml_text(text).columns["c"].size == 200
    assert Schema.from_toml_text(text).columns["short"].levels == ("a, [b", "c")


def test_a_draft_admits_every_row_it_was_made_from():
    frame = pd.DataFrame({"A": ["x", None, "y"], "B": [1.5, 2.5, None], "C": pd.array([1, None, 3], "Int64")})
    found = check(_draft(frame), open_source(frame))
    assert (found.rows, found.left_out) == (3, 0)
    assert all(column.outside == column.clipped == 0 for column in found.columns.values())


def test_a_check_counts_what_does_not_fit():
    schema = Schema(
        {
            "A": Categorical(levels=("x", "y", "z")),
            "B": Numeric(lower=0, upper=10, bins=2, missing=True, not_applicable="N"),
            "C": Numeric(lower=0, upper=10, bins=2, outside="missing"),
        }
    )
    table = pa.table({"A": ["x", "q", None, "x"], "B": ["11", "-1", "N", "word"], "C": ["11", "5", None, "word"]})
    found = check(schema, open_source(table)).to_dict()
    assert json.loads(json.dumps(found)) == {
        "INTERNAL": True,
        "rows": 4,
        "left_out": 2,
        "columns": {
            "A": {"outside": 1, "clipped": 0, "missing": 1, "unseen": ["y", "z"], "unknown": {"q": 1}},
            "B": {"outside": 1, "clipped": 2, "missing": 0, "unseen": [], "unknown": {"word": 1}},
            "C": {"outside": 2, "clipped": 0, "missing": 1, "unseen": ["[0,5)"], "unknown": {"11": 1, "word": 1}},
        },
        "lost": 2,
        "verdict": "A fit would lose 2 of 4 records (50 %); more than 1 %: exit code 1.",
        "ok": False,
    }


PLAIN = Schema({"A": Categorical(levels=("x", "y")), "B": Numeric(lower=0, upper=9)})


def _check(tmp_path, frame, schema=PLAIN):
    frame.to_csv(tmp_path / "rows.csv", index=False)
    schema.write_toml(tmp_path / "schema.toml")
    found = check_schema(tmp_path / "rows.csv", tmp_path / "schema.toml")
    return found, " ".join(render(check_page(found)).split())


@pytest.mark.parametrize(("wrong", "code"), [(0, 0), (2, 0), (3, 1)])
def test_a_check_ends_by_the_share_of_records_that_a_fit_would_lose(tmp_path, capsys, wrong, code):
    frame = pd.DataFrame({"A": ["x"] * (200 - wrong) + ["Hx"] * wrong, "B": 1})
    _, page = _check(tmp_path, frame)
    assert f"A fit would lose {wrong} of 200 records" in page
    assert f"more than 1 %: exit code {code}." in page
    assert ("'Hx' in 3" in page) == (wrong == 3)
    arguments = ["schema", "check", str(tmp_path / "rows.csv"), "--schema", str(tmp_path / "schema.toml")]
    assert cli.run(arguments) == code
    assert capsys.readouterr().out.startswith("INTERNAL")


@pytest.mark.parametrize(("wrong", "code"), [(0, 0), (1, 0), (3, 1)])
def test_a_check_says_what_may_be_done_about_a_broken_rule(tmp_path, wrong, code):
    rule = Rule(when={"A": ("x",)}, never={"B": "> 5"})
    frame = pd.DataFrame({"A": ["x"] * 200, "B": [9] * wrong + [1] * (200 - wrong)})
    found, page = _check(tmp_path, frame, Schema(PLAIN.columns, rules=(rule,)))
    assert found["ok"] == (code == 0)
    assert found["rules"] == [{"rule": "A x: never B > 5", "rows": wrong}]
    assert f"1 structural rules, {min(wrong, 1)} of them broken" in page
    assert ("must not follow from these numbers: nobody paid for them" in page) == (wrong > 0)
    assert ("broken by more than 1 % of the records: exit code 1" in page) == (code == 1)


def test_a_column_whose_values_all_become_missing_ends_a_check_too(tmp_path):
    schema = Schema({"A": Categorical(levels=("x", "y"), outside="missing")})
    found, page = _check(tmp_path, pd.DataFrame({"A": ["X", "Y"] * 50}), schema)
    assert (found["lost"], found["ok"]) == (0, False)
    assert "100 have a value of A that the schema does not know; more than 1 %: exit code 1" in page
    assert (
        _check(tmp_path, pd.DataFrame({"A": []}, dtype=str), schema)[1].count("There are no records: exit code 1") == 1
    )


def test_long_and_many_unknown_values_are_cut(tmp_path):
    values = ["q" * 60, *(f"u{i}" for i in range(20)), "v", "v"]
    found, page = _check(tmp_path, pd.DataFrame({"A": values, "B": 1}))
    unknown = found["columns"]["A"]["unknown"]
    assert (len(unknown), unknown["v"]) == (8, 2)
    assert f"{'q' * 40}..." in unknown
    assert "and others in 14" in page


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ("A ,B", "A: did you mean 'A ', which is there? Names are compared with case and spaces."),
        ("a,B", "A: did you mean 'a', which is there?"),
        ("A;B", "The fields of the file are separated by semicolons (;), not by commas"),
        ("A\tB", "separated by tabs"),
        ("A,A,B", "A is there 2 times."),
    ],
)
def test_an_absent_column_is_told_with_what_is_there_instead(tmp_path, header, says):
    (tmp_path / "rows.csv").write_text(f"{header}\nx,1\n", encoding="utf-8")
    Schema({"A": Categorical(levels=("x",)), "B": Numeric(lower=0, upper=9)}).write_toml(tmp_path / "schema.toml")
    page = " ".join(render(check_page(check_schema(tmp_path / "rows.csv", tmp_path / "schema.toml"))).split())
    assert says in page


def test_a_file_with_semicolons_is_not_drafted_as_one_column(tmp_path):
    (tmp_path / "rows.csv").write_text("AGEP;SEX\n34;1\n", encoding="utf-8")
    with pytest.raises(SchemaError, match=r"separated by semicolons .;., not by commas"):
        drafted(open_source(tmp_path / "rows.csv"))


@pytest.mark.parametrize(
    ("spell", "reason"),
    [
        (lambda i: f"{i:,}", "its numbers have commas between their thousands; write 1234"),
        (lambda i: f"{i // 10},{i % 10}", "its numbers have decimal commas; write 1.5"),
        (lambda i: f"{1 + i % 28:02}.12.2024", "its dates are not in ISO form"),
    ],
)
def test_numbers_with_commas_are_left_out_for_that_reason(spell, reason):
    frame = pd.DataFrame({"x": [spell(900 + i) for i in range(1500)], "A": ["a", "b"] * 750})
    assert reason in drafted(open_source(frame)).left_out["x"]
    frame["x"] = frame["x"].where(frame.index % 9 > 0, "N")
    assert ("dates" in reason) or reason in drafted(open_source(frame)).left_out["x"]


def test_internal_output_stays_out_of_releases(tmp_path):
    release = tmp_path / "release"
    (release / "model").mkdir(parents=True)
    refuse_release_folder(release / "x.toml")
    (release / "certificate.json").write_text("{}")
    for path in (release, release / "x.toml", release / "model" / "deep" / "x.toml"):
        with pytest.raises(UsageError, match="INTERNAL"):
            refuse_release_folder(path)
    refuse_release_folder(tmp_path / "x.toml")


def test_a_column_of_people_with_several_rows_is_asked_about():
    """users3, A.3: the unit is a record unless somebody says so, and nobody does who was not asked."""
    rows = 140 * 42
    frame = pd.DataFrame(
        {
            "subject#": np.repeat(np.arange(42), 140),
            "patient_id": [f"P{i % 42:03d}" for i in range(rows)],
            "householdId": np.arange(rows) // 3,
            "family": np.tile(["yes", "no"], rows // 2),
            "score": np.random.default_rng(0).normal(size=rows),
        }
    )
    found = drafted(open_source(frame))
    asked = {name for name, notes in found.notes.items() for note in notes if "unit = {" in note}
    assert asked == {"subject#", "patient_id", "householdId"}
    assert 'unit = { column = "subject#", max_rows = 140 }' in found.to_toml()
    with pytest.warns(DraftWarning, match="'subject#', 'patient_id', 'householdId': its 42 values look"):
        schema = Schema.draft(frame)
    seen = check(schema.reviewed("somebody"), open_source(frame)).warnings
    assert [warning.split(":")[0] for warning in seen] == [
        f"column '{n}'" for n in ("subject#", "patient_id", "householdId")
    ]
    of_people = Schema(schema.without(["subject#"]).columns, unit=Unit(column="subject#", max_rows=140))
    assert check(of_people, open_source(frame)).warnings == ()


def test_codes_of_which_each_row_has_its_own_are_flagged():
    """users3, A.3: 17,959 different zip codes in 20,000 rows."""
    rng = np.random.default_rng(0)
    rows = 2_000
    frame = pd.DataFrame(
        {
            "zip": rng.integers(10_000, 99_999, rows),
            "income": rng.integers(0, 99_999, rows),
            "town": [f"T{i}" for i in rng.integers(0, 1_000, rows)],
            "zip_code": [str(i) for i in rng.integers(500, 99_999, rows)],
        }
    ).assign(town=lambda it: it["town"].where(it.index % 2 == 0, "T0"))
    found = drafted(open_source(frame))
    flagged = {name for name, notes in found.notes.items() for note in notes if "as codes of places have" in note}
    assert "zip" in flagged
    assert "income" not in flagged
    assert flagged <= {"zip", "zip_code"}


def test_remarks_that_differ_in_their_numbers_are_one_line():
    """users3, A.8: one sentence of 300 characters twelve times over was one line of 3,500."""
    frame = pd.DataFrame({f"BILL_{i}": np.roll(skewed(), i) * (i + 1) for i in range(6)})
    found = drafted(open_source(frame)).warnings()
    assert len(found) < 6
    assert max(map(len, found)) < 500
    assert any(line.startswith("columns 'BILL_0', 'BILL_1'") and "those of 'BILL_0'" in line for line in found)


UNREAD = {
    "a period": (pd.period_range("2020-01", periods=60, freq="M"), "its type is period"),
    "complex": (np.arange(60) * 1j, "its type is complex128"),
    "lists": ([[i] for i in range(60)], "of class list"),
    "an interval": (pd.interval_range(0, 60), "its type is interval"),
}


@pytest.mark.parametrize(("values", "reason"), UNREAD.values(), ids=UNREAD)
def test_what_cannot_be_read_is_named_and_not_called_empty(values, reason):
    """users3, A.9."""
    frame = pd.DataFrame({"x": values, "A": ["a", "b"] * 30})
    found = drafted(open_source(frame)).left_out["x"]
    assert reason in found
    assert "must hold text" in found
    with pytest.raises(SchemaError, match=reason):
        drafted(open_source(frame[["x"]]))


def test_frames_of_other_forms_are_refused_with_the_remedy():
    several = pd.DataFrame(np.zeros((3, 2)), columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")]))
    with pytest.raises(SchemaError, match=r"several levels; give each one name first: frame\.columns = "):
        Schema.draft(several)
    with pytest.raises(UsageError, match=r"not Series; use data\.to_frame\(\)"):
        Schema.draft(pd.Series([1, 2, 3]))


def test_a_misspelt_column_of_a_review_is_refused():
    """users3, A.11: it was added beside the one that was meant, whose bounds stayed those of the rows."""
    draft = Schema.draft(pd.DataFrame({"AGE": [1, 2, 3], "BILL": [4, 5, 5]}))
    bounds = Numeric(lower=0, upper=99, integer=True)
    for name, meant in (("Age", "AGE"), ("BIL", "BILL")):
        with pytest.raises(SchemaError, match=f"no column '{name}'; did you mean '{meant}'"):
            draft.reviewed("me", {name: bounds})
    with pytest.raises(SchemaError, match="a table from names to columns"):
        draft.reviewed("me", [("AGE", bounds)])
    assert draft.reviewed("me", {"AGE": bounds, "WORK": bounds}).names == ("AGE", "BILL", "WORK")
