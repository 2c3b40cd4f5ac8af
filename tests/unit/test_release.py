"""Release folders: whole or not at all, never overwritten, the same again when they are read back."""

import errno
import json
import os
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers import recompute, small
from helpers.accounts import scaled
from stratsynth import Release, Stratified, fit
from stratsynth.adapters import Independent
from stratsynth.errors import ReleaseError, StratsynthError, UsageError
from stratsynth.noise import SeededEntropy
from stratsynth.recipes.recipe import Recipe
from stratsynth.release import folder

LEVELS = {c: set(small.SCHEMA.levels(c)) for c in ("SEX", "GROUP", "WORK")}


@pytest.fixture(scope="module")
def release():
    return small.small_release(seed=3)


@pytest.fixture(scope="module")
def saved(release, tmp_path_factory):
    return release.save(tmp_path_factory.mktemp("release") / "release", rows=40, seed=5, csv=True)


@pytest.fixture
def copy(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "release")


@pytest.mark.parametrize("n", [0, 1, 7, 1000, np.int64(3)])
def test_sample_gives_exactly_n_rows_of_the_schema(release, n):
    rows = release.sample(n)
    assert len(rows) == n
    assert list(rows.columns) == list(small.SCHEMA.names)
    assert rows.dtypes.equals(release.sample(5).dtypes)
    for column, levels in LEVELS.items():
        assert set(rows[column]) <= levels
    assert rows["AGE"].between(0, 9).all()


@pytest.mark.parametrize("n", [-1, 1.5, "3", None, True, float("nan")])
def test_a_number_of_rows_that_is_none_is_refused(release, n):
    with pytest.raises(UsageError, match="rows"):
        release.sample(n)


@pytest.mark.parametrize("n", [100, 10])
def test_groups_come_by_their_public_shares(release, n):
    counts = release.sample(n).groupby(["SEX", "GROUP"]).size().to_dict()
    assert counts == {key: n * share for key, share in small.SHARES.items() if share}


def test_rows_are_in_no_order(release):
    """Not one stratum after the other: the first half would otherwise be one group."""
    assert set(release.sample(200, seed=1)["SEX"][:40]) == {"1", "2"}


def test_the_same_seed_gives_the_same_rows_and_another_others(release):
    pd.testing.assert_frame_equal(release.sample(50, seed=1), release.sample(50, seed=1))
    assert not release.sample(50, seed=1).equals(release.sample(50, seed=2))
    assert not release.sample(50).equals(release.sample(50))


def test_where_gives_only_such_rows_and_exactly_n(release):
    assert set(release.sample(30, where={"SEX": "2"})["SEX"]) == {"2"}
    rows = release.sample(30, where={"WORK": ["yes", "N"], "GROUP": ["a"]})
    assert len(rows) == 30
    assert set(rows["WORK"]) <= {"yes", "N"}
    assert set(rows["GROUP"]) == {"a"}


@pytest.mark.parametrize(
    "where",
    [{"SEXX": "1"}, {"SEX": "9"}, {"SEX": []}, {"SEX": 3}, {"SEX": [None]}, {"SEX": "2", "GROUP": "b"}],
    ids=str,
)
def test_a_condition_that_no_row_can_meet_is_refused(release, where):
    with pytest.raises(UsageError):
        release.sample(5, where=where)


@pytest.mark.parametrize("seed", [-1, 1.5, "1"])
def test_a_seed_that_is_none_is_refused(release, seed):
    with pytest.raises(UsageError, match="seed"):
        release.sample(5, seed=seed)


def test_a_saved_release_samples_the_same_rows(release, saved):
    again = Release.load(saved)
    assert again.certificate == release.certificate
    assert again.measurements.equals(release.measurements)
    pd.testing.assert_frame_equal(again.sample(200, seed=1), release.sample(200, seed=1))
    condition = {"WORK": ["yes"]}
    pd.testing.assert_frame_equal(
        again.sample(20, seed=1, where=condition), release.sample(20, seed=1, where=condition)
    )


def test_the_folder_holds_what_the_contract_says_and_nothing_else(saved):
    assert {p.name for p in saved.iterdir()} == {
        "certificate.json",
        "measurements.parquet",
        "model",
        "report.html",
        "synthetic.parquet",
        "synthetic.csv",
    }
    assert not [p for p in saved.parent.iterdir() if p != saved]


def test_the_saved_rows_are_those_of_sample(release, saved):
    expected = release.sample_arrow(40, seed=5)
    assert pq.read_table(saved / "synthetic.parquet").equals(expected)
    csv = pd.read_csv(saved / "synthetic.csv", dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(csv, expected.to_pandas().astype(str), check_dtype=False)


def test_rows_default_to_the_declared_size(release, tmp_path):
    assert pq.read_metadata(release.save(tmp_path / "r") / "synthetic.parquet").num_rows == small.SIZE


def test_a_release_of_no_rows_can_be_saved(release, tmp_path):
    folder = release.save(tmp_path / "r", rows=0)
    table = pq.read_table(folder / "synthetic.parquet")
    assert (table.num_rows, table.column_names) == (0, list(small.SCHEMA.names))


def test_an_existing_folder_file_or_link_is_never_overwritten(release, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    before = small.tree(tmp_path)
    for name in ("folder", "file", "link"):
        with pytest.raises(UsageError, match="exists"):
            release.save(tmp_path / name)
    assert small.tree(tmp_path) == before


STEPS = ["stratsynth.release.folder.write_json", "stratsynth.data.writing.write_table", "stratsynth.models.files.save"]


@pytest.mark.parametrize(
    ("error", "seen"),
    [(OSError(28, "No space left on device"), StratsynthError), (KeyboardInterrupt(), KeyboardInterrupt)],
    ids=["full disk", "interrupt"],
)
@pytest.mark.parametrize("step", STEPS)
def test_an_error_in_the_middle_leaves_nothing_behind(step, error, seen, release, tmp_path, monkeypatch):
    def fail(*arguments, **settings):
        raise error

    monkeypatch.setattr(step, fail)
    with pytest.raises(seen):
        release.save(tmp_path / "release", rows=3)
    assert list(tmp_path.iterdir()) == []


def test_measurements_have_the_columns_and_types_of_the_contract(saved):
    schema = pq.read_schema(saved / "measurements.parquet")
    assert schema.names == ["stratum", "question", "clique", "cell", "value", "sigma"]

    def is_text(kind):
        return pa.types.is_string(kind.value_type if pa.types.is_dictionary(kind) else kind)

    assert is_text(schema.field("stratum").type)
    assert is_text(schema.field("clique").type)
    assert all(pa.types.is_integer(schema.field(c).type) for c in ("question", "cell", "value"))
    assert schema.field("sigma").type == pa.float64()


def test_measurements_are_every_noisy_answer(release):
    frame = release.measurements.to_pandas()
    assert list(frame["stratum"].unique()) == ["1|a", "1|b", "2|a", "2|b"]
    cells = {c: small.SCHEMA.size(c) for c in ("AGE", "WORK")}
    for _, table in frame.groupby(["stratum", "clique"], observed=True):
        assert list(table["cell"]) == list(range(cells[table["clique"].iloc[0]]))
    (sigma,) = set(release.measurements["sigma"].to_pylist())
    (charged,) = {charge["sigma"] for charge in release.certificate["charges"]}
    assert sigma == charged


def test_cells_are_row_major():
    class Crossed(Independent):
        def steps(self, public, allot, rng):
            from stratsynth.questions import counts

            yield from counts([("WORK", "SEX")], rho=allot.rho / 2)
            return (yield from Independent.steps(self, public, scaled(allot, 0.5), rng))

    data = pd.concat([small.people().query("WORK == 'yes' and SEX == '1'")] * 400)
    frame = fit(Crossed(), small.table(data), small.BUDGET, entropy=SeededEntropy(1)).measurements.to_pandas()
    crossed = frame[frame["clique"] == "WORK,SEX"]
    assert list(crossed["stratum"].unique()) == [""]
    assert crossed["cell"][crossed["value"].idxmax()] == 2 * small.SCHEMA.index("WORK", "yes") + 0


def test_the_certificate_has_every_key_and_recomputes(release):
    certificate = json.loads(json.dumps(release.certificate))
    optional = {"declared_and_measured", "agreement", "measured", "notices", "small_groups"}
    assert set(certificate) - optional == {
        "format",
        "created",
        "software",
        "private",
        "unverified",
        "unit",
        "neighbours",
        "guarantee",
        "prices",
        "ledger",
        "strata",
        "weights",
        "unprotected",
        "schema",
        "mechanism",
        "composition",
        "charges",
        "not_protected",
        "conversion",
        "first_question",
    }
    recompute.check(certificate)
    assert certificate["private"] is True
    assert certificate["strata"] == {"by": ["SEX", "GROUP"], "cells": 4, "merged": []}
    assert certificate["mechanism"] == {"name": "independent", "settings": {}}
    assert certificate["schema"]["sha256"] == small.SCHEMA.sha256
    assert len(certificate["charges"]) == 4
    assert [charge["path"] for charge in certificate["charges"]][1] == [{"SEX": "1", "GROUP": "b"}]


def test_strata_within_strata_can_be_saved(tmp_path):
    """The budget is spent by then: a certificate that cannot be written would cost it."""
    inner = Stratified(Independent(), ["GROUP"], small.even(small.SCHEMA, "GROUP"))
    how = Stratified(inner, ["SEX"], small.even(small.SCHEMA, "SEX"))
    release = fit(how, small.table(), small.BUDGET)
    recompute.check(release.certificate)
    again = Release.load(release.save(tmp_path / "release", rows=10))
    pd.testing.assert_frame_equal(again.sample(20, seed=1), release.sample(20, seed=1))


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_either_notion_of_neighbour_recomputes(neighbours):
    budget = type(small.BUDGET)(1, 1e-9, neighbours)
    certificate = fit(Independent(), small.table(), budget).certificate
    spent = recompute.total_rho(certificate["charges"])
    assert spent <= certificate["guarantee"]["rho"]
    assert certificate["prices"][neighbours] == pytest.approx(1, rel=1e-8)
    assert certificate["prices"]["add-remove"] <= 1


DAMAGE = {
    "certificate.json": [
        b"",
        b"{}",
        b"[]",
        b"nonsense",
        b"\xff",
        b'{"format": "stratsynth-certificate/1"}',
        b"[" * 10**5,
    ],
    "measurements.parquet": [b"", b"PAR1", b"nonsense"],
}


@pytest.mark.parametrize(
    ("name", "content"), [(n, c) for n, cs in DAMAGE.items() for c in cs], ids=lambda v: repr(v)[:40]
)
def test_a_damaged_release_is_a_release_error(name, content, copy):
    (copy / name).write_bytes(content)
    with pytest.raises(ReleaseError):
        Release.load(copy)


@pytest.mark.parametrize("name", ["certificate.json", "measurements.parquet"])
def test_a_release_that_lacks_a_file_is_a_release_error(name, copy):
    (copy / name).unlink()
    with pytest.raises(ReleaseError):
        Release.load(copy)


def test_what_is_no_release_is_a_release_error(tmp_path):
    with pytest.raises(ReleaseError):
        Release.load(tmp_path)
    with pytest.raises(ReleaseError):
        Release.load(tmp_path / "nowhere")


@pytest.mark.parametrize("delta", [0.01, 0.5])
def test_a_delta_that_could_release_a_record_is_refused(delta):
    with pytest.raises(StratsynthError, match="declared size"):
        fit(Independent(), small.table(), type(small.BUDGET)(1, delta))


def test_a_release_of_another_version_that_cannot_be_read_says_which(copy):
    path = copy / "certificate.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    record["software"]["stratsynth"] = "7.0"
    path.write_text(json.dumps(record), encoding="utf-8")
    (copy / "model" / "model.npz").unlink()
    with pytest.raises(ReleaseError, match=r"is missing; it was written by stratsynth 7\.0\.$"):
        Release.load(copy)
    path.write_text(json.dumps({**record, "format": "stratsynth-certificate/2"}), encoding="utf-8")
    with pytest.raises(ReleaseError, match=r"format stratsynth-certificate/1; it was written by stratsynth 7\.0\.$"):
        Release.load(copy)


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_charged(tmp_path, monkeypatch):
    recipe = small.write_recipe(tmp_path)
    small.edit(recipe, "delta = 1e-9\n", 'delta = 1e-9\nledger = "people.ledger"\n')

    def refused(**where):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(folder.tempfile, "mkdtemp", refused)
    with pytest.raises(UsageError, match=r"release cannot be made: .* cannot be written in .Read-only file system"):
        Recipe.read(recipe).run(tmp_path / "release")
    assert b'"reserve"' not in (tmp_path / "people.ledger").read_bytes()


def test_a_release_that_could_not_be_written_says_how_to_go_on(tmp_path, monkeypatch):
    def full(path, *_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(folder, "write_json", full)
    with pytest.raises(
        StratsynthError, match=r"the same fit with another folder .-o ELSEWHERE. goes on .* charged nothing"
    ):
        small.small_release().save(tmp_path / "release", rows=5)
