"""Tables of totals are public, or declared: the private table is none, and exact totals are named first."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

from helpers import small
from helpers.releases import copied, edited
from stratsynth import Benchmark, Budget, Categorical, ControlTable, check, fit, open_table, verify
from stratsynth.adapters import Fixed
from stratsynth.errors import NoticeWarning, UsageError
from stratsynth.noise import SeededEntropy
from stratsynth.recipes.recipe import Recipe
from stratsynth.release.limits import limits
from stratsynth.release.page.frame import release_page
from stratsynth.release.page.summary import summary
from stratsynth.report import html

CITED = "Statistics Office, Population 2024"
ROWS = 600
SEX = pd.DataFrame({"SEX": ["1", "2"], "count": [400, 600]})


def private_rows():
    """Different records, each with a number that could pass for a total."""
    rng = np.random.default_rng(0)
    n = len(small.people(ROWS))
    return small.people(ROWS).assign(
        AGE=rng.integers(0, 10, n), WORK=rng.choice(["N", "yes", "no"], n), count=rng.integers(1, 99, n)
    )


def ledger_of(folder):
    return folder / "people.ledger"


def table_in(folder, name="people.csv"):
    rows = private_rows()
    (rows.to_csv if name.endswith("csv") else rows.to_parquet)(folder / name, index=False)
    return open_table(folder / name, schema=small.SCHEMA, declared_size=ROWS, ledger=ledger_of(folder))


def refused(table, data, ledger):
    tables = [ControlTable(data, CITED, columns=["SEX", "GROUP"])]
    with pytest.raises(UsageError, match="a table of totals is the private table itself"):
        fit(small.stratified(), table, small.BUDGET, benchmark=tables)
    assert not ledger.exists(), "nothing was reserved"


def test_the_private_file_is_no_table_of_totals_under_any_name(tmp_path):
    table = table_in(tmp_path)
    (tmp_path / "link.csv").symlink_to(tmp_path / "people.csv")
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "people.csv")
    for name in ("people.csv", "link.csv", "hard.csv"):
        refused(table, tmp_path / name, ledger_of(tmp_path))


def test_the_private_frame_is_no_table_of_totals():
    rows = private_rows()
    table = open_table(rows, schema=small.SCHEMA, declared_size=ROWS)
    with pytest.raises(UsageError, match="a table of totals is the private table itself"):
        fit(small.stratified(), table, small.BUDGET, benchmark=[ControlTable(rows, CITED, columns=["SEX"])])


def test_a_copy_in_another_kind_of_file_and_order_is_found_before_the_reservation(tmp_path):
    """A table with one record of each kind looks like one of totals, and its copy has every cell."""
    schema = replace(small.SCHEMA, columns={name: Categorical(levels=tuple("123")) for name in "ABCD"}, rules=())
    every = pd.DataFrame(product("123", repeat=4), columns=list("ABCD")).assign(count=range(81))
    every.to_csv(tmp_path / "people.csv", index=False)
    copy = every.sample(frac=1, random_state=1)
    copy.to_parquet(tmp_path / "copy.parquet")
    for given in (tmp_path / "copy.parquet", copy):
        table = open_table(tmp_path / "people.csv", schema=schema, declared_size=81, ledger=ledger_of(tmp_path))
        with pytest.raises(UsageError, match="a table of totals is the private table itself"):
            fit("independent", table, small.BUDGET, benchmark=[ControlTable(given, CITED)])
        assert '"reserve"' not in ledger_of(tmp_path).read_text(encoding="utf-8")
        ledger_of(tmp_path).unlink()


def test_a_file_with_an_account_is_no_table_of_totals(tmp_path):
    table = table_in(tmp_path)
    fit(small.stratified(), table, small.BUDGET)
    with pytest.raises(UsageError, match="has an account"):
        ControlTable(tmp_path / "people.csv", CITED, columns=["SEX"])


def exact_fit(**options):
    table = open_table(private_rows(), schema=small.SCHEMA, declared_size=ROWS)
    benchmark = Benchmark([ControlTable(SEX, CITED, exact=True)])
    return fit(small.stratified(), table, small.BUDGET, seed=1, benchmark=benchmark, **options)


def test_exact_totals_of_the_private_rows_are_named_first_everywhere(tmp_path):
    with pytest.warns(NoticeWarning, match="NOT PROTECTED: exact totals of the private rows"):
        release = exact_fit()
    stated = release.statement
    assert stated.unprotected[0] == "exact_totals"
    assert stated.notices[0].kind == "exact_totals"
    assert next(iter(limits(stated))) == "Exact totals"
    assert stated.not_protected[0].startswith("Exact totals: ")
    page = html.render(release_page(release.certificate, release.measurements, release.model.schema))
    terminal = summary(release.certificate, brief=True)
    for text, next_words in ((page, "What is promised"), (terminal, "Guarantee")):
        assert text.index("NOT PROTECTED: exact totals") < text.index(next_words)
    folder = release.save(tmp_path / "release", rows=100)
    assert verify(folder).ok


@pytest.mark.filterwarnings("ignore::stratsynth.errors.NoticeWarning")
def test_a_certificate_that_hides_exact_totals_is_found(tmp_path):
    folder = exact_fit().save(tmp_path / "release", rows=100)
    changes = (
        lambda r: r.update(unprotected=["declared_size"], not_protected=r["not_protected"][1:]),
        lambda r: r.update(notices=r["notices"][1:]),
        lambda r: r.update(notices=[{"kind": "other", "text": "something else"}, *r["notices"]]),
        lambda r: r["benchmark"]["tables"][0].pop("exact"),
    )
    for number, change in enumerate(changes):
        copy = copied(folder, tmp_path / str(number))
        edited(copy, change)
        found = verify(copy).findings
        assert any("xact totals" in finding or "notices on published" in finding for finding in found), found


def test_a_ledger_holds_that_exact_totals_were_declared_before_anything_was_read(tmp_path):
    table = table_in(tmp_path)
    benchmark = Benchmark([ControlTable(SEX, CITED, exact=True)])
    with pytest.warns(NoticeWarning):
        release = fit(small.stratified(), table, small.BUDGET, seed=1, benchmark=benchmark)
    folder = release.save(tmp_path / "release", rows=100)
    assert verify(folder, ledger=ledger_of(tmp_path)).ok

    def hidden(record):
        record["unprotected"].remove("exact_totals")

    edited(folder, hidden)
    said = " ".join(verify(folder, ledger=ledger_of(tmp_path)).findings)
    assert "otherwise than they were when the ledger's reservation was made" in said


def test_exact_totals_are_refused_for_a_release_that_is_there():
    release = fit(small.stratified(), open_table(private_rows(), schema=small.SCHEMA), small.BUDGET)
    with pytest.raises(UsageError, match="declare them in the fit"):
        release.benchmarked([ControlTable(SEX, CITED, exact=True)])


def counted(rows):
    ages = pd.cut(rows["AGE"].clip(upper=9), [-1, 2, 5, 9], labels=["0-2", "3-5", "6-9"]).astype(str)
    found = pd.DataFrame({"GROUP": rows["GROUP"], "AGE": ages}).value_counts().reset_index()
    assert len(found) == 6
    return found


def test_totals_counted_in_these_very_rows_are_noticed():
    """The noisy numbers fit them better than those of other people could."""
    rng = np.random.default_rng(3)
    n = 40_000
    some = pd.DataFrame({"SEX": rng.choice(["1", "2"], n), "GROUP": rng.choice(["a", "b"], n), "WORK": "yes"})
    some["AGE"] = rng.integers(0, 10, n)
    other = some.assign(AGE=rng.integers(0, 10, n), GROUP=rng.choice(["a", "b"], n))
    table = open_table(some, schema=small.SCHEMA, declared_size=n)
    how = Fixed(tables=[["GROUP", "AGE"]])
    release = fit(how, table, Budget(10, 1e-9, first=0), seed=1, entropy=SeededEntropy(2))
    kinds = [
        [n.kind for n in release.benchmarked([ControlTable(counted(rows), CITED)]).statement.notices]
        for rows in (some, other)
    ]
    assert "controls_too_close" in kinds[0]
    assert "controls_too_close" not in kinds[1]


def test_a_recipe_is_checked_alike(tmp_path):
    path = small.write_recipe(tmp_path)
    small.edit(
        path,
        "[mechanism]\n",
        f'[benchmark]\ntables = [{{ path = "people.csv", citation = "{CITED}", columns = ["SEX"], count = "AGE" }}]\n'
        "[mechanism]\n",
    )
    with pytest.raises(UsageError, match="a table of totals is the private table itself"):
        Recipe.read(path).run(tmp_path / "release")
    failed = {o.name: o.text for o in check(path).outcomes if o.verdict == "FAILS"}
    assert "a table of totals is the private table itself" in failed["same rows"]
