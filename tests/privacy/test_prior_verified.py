"""`verify` finds edits of what a certificate says of its prior, by the ledger and by the prior's own files."""

import json
import shutil
from pathlib import Path

import pytest

from helpers.priors import CITATION, SCHEMA, people
from helpers.releases import copied, edited, record_of
from stratsynth import Budget, Prior, PublishedTable, cli, fit, open_table, verify
from stratsynth.adapters.independent import Product
from stratsynth.errors import UsageError
from stratsynth.priors.mapping import mapped

BUDGET = Budget(epsilon=1, delta=1e-9)
ROWS = 500


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A release with a ledger, from a public file and a table; one of the same people, from the first release."""
    folder = tmp_path_factory.mktemp("place")
    people(ROWS, 1).to_csv(folder / "last.csv", index=False)
    people(ROWS, 2).groupby("A").size().rename("count").reset_index().to_csv(folder / "table.csv", index=False)
    published = PublishedTable(folder / "table.csv", "made up, a table")
    first = Prior.public(folder / "last.csv", citation=CITATION, tables=[published])
    made(folder, "release", first)
    made(folder, "second", Prior.release(folder / "release"))
    made(folder, "framed", Prior.public(people(ROWS, 1), citation=CITATION))
    made(folder, "plain", None)
    return folder


def made(folder: Path, name: str, prior: Prior | None) -> None:
    private = open_table(people(ROWS, 3), schema=SCHEMA, declared_size=ROWS, ledger=folder / f"{name}.ledger")
    fit("mst", private, BUDGET, prior=prior).save(folder / name, rows=100, seed=0)


@pytest.fixture
def release(place: Path, tmp_path: Path) -> Path:
    return copied(place / "release", tmp_path / "release")


def found(folder: Path, **given) -> str:
    return " ".join(verify(folder, **given).findings)


def test_a_prior_is_compared_with_the_ledger_and_with_its_files(place: Path):
    files = [place / "last.csv", place / "table.csv"]
    verdict = verify(place / "release", place / "release.ledger", files)
    assert verdict.ok
    said = " ".join(verdict.checked)
    for sentence in (
        "last.csv is what the prior was read from",
        "table.csv is",
        "is the one that the ledger's reservation was made with",
    ):
        assert sentence in said
    assert "with --prior" not in " ".join(verdict.unchecked)
    assert "with --prior" in " ".join(verify(place / "release").unchecked)
    assert verify(place / "second", place / "second.ledger", place / "release").ok
    assert verify(place / "plain", place / "plain.ledger").ok


def everywhere(record, old, new):
    """Change a text wherever the certificate has it, as a careful editor would."""
    changed = json.loads(json.dumps(record).replace(json.dumps(old)[1:-1], json.dumps(new)[1:-1]))
    record.clear()
    record.update(changed)


EDITS = {
    "another citation": lambda record: everywhere(record, CITATION, "the census"),
    "fewer people": lambda record: record["prior"].update(people=1.0),
    "more left out": lambda record: record["prior"].update(left_out=3),
    "a table taken out": lambda record: record["prior"]["tables"].clear(),
    "another error": lambda record: record["prior"]["tables"][0].update(error=0.1),
    "another file": lambda record: record["prior"].update(file="0" * 64),
    "a release made public": lambda record: record["prior"].update(origin="release"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_is_found_by_the_ledger(place: Path, release: Path, edit):
    edited(release, edit)
    assert "names another prior than the ledger" in found(release, ledger=place / "release.ledger")


def test_a_prior_that_was_put_in_or_taken_out_is_found_by_the_ledger(place: Path, tmp_path: Path):
    section = record_of(place / "release")["prior"]
    put = copied(place / "plain", tmp_path / "put")
    edited(put, lambda record: record.update(prior=section))
    assert "names another prior than the ledger" in found(put, ledger=place / "plain.ledger")
    out = copied(place / "release", tmp_path / "out")
    edited(out, lambda record: record.pop("prior"))
    assert "names another prior than the ledger" in found(out, ledger=place / "release.ledger")


def several(folder: Path, monkeypatch=None) -> dict[str, Path]:
    """Fits with the same charges on one ledger: from one year, from another, and from nothing.

    With `monkeypatch` the first is interrupted, and goes on when the others are done.
    """
    priors = {str(year): Prior.public(people(ROWS, year), citation=f"made up, year {year}") for year in (1, 2)}
    private = open_table(people(ROWS, 3), schema=SCHEMA, declared_size=ROWS, ledger=folder / "all.ledger")
    if monkeypatch is not None:
        with monkeypatch.context() as patch:
            patch.setattr(Product, "of", Once(Product.of))
            with pytest.raises(KeyboardInterrupt):
                fit("independent", private, BUDGET, prior=priors["1"])
    for name in ("1", "2", "none") if monkeypatch is None else ("2", "none", "1"):
        fit("independent", private, BUDGET, prior=priors.get(name)).save(folder / name, rows=100, seed=0)
    return {name: folder / name for name in ("1", "2", "none")}


class Once:
    """Step interrupted the second time: the rehearsal passes, and the fit has paid."""

    def __init__(self, real):
        self.real, self.calls = real, 0

    def __call__(self, *given):
        self.calls += 1
        if self.calls > 1:
            raise KeyboardInterrupt
        return self.real(*given)


def test_among_fits_with_the_same_charges_the_prior_is_of_the_release_s_own(tmp_path: Path):
    for folder in several(tmp_path).values():
        verdict = verify(folder, tmp_path / "all.ledger")
        assert verdict.ok
        assert ("is the one that the ledger's reservation was made with" in " ".join(verdict.checked)) == (
            folder.name != "none"
        )
    other = record_of(tmp_path / "2")["prior"]
    for change in (lambda record: record.update(prior=other), lambda record: record.pop("prior")):
        forged = copied(tmp_path / "1", tmp_path / "forged")
        edited(forged, change)
        assert "names another prior than the ledger" in found(forged, ledger=tmp_path / "all.ledger")
        shutil.rmtree(forged)


def test_of_a_fit_that_went_on_among_such_fits_the_prior_is_not_checked(tmp_path: Path, monkeypatch):
    folders = several(tmp_path, monkeypatch)
    assert [record_of(folders[name])["ledger"]["releases"] for name in ("1", "2", "none")] == [3, 2, 3]
    verdict = verify(folders["1"], tmp_path / "all.ledger")
    assert verdict.ok
    assert "reserved with other priors" in " ".join(verdict.unchecked)
    edited(folders["2"], lambda record: record.pop("prior"))  # "none" was reserved later, and never went on
    assert "names another prior than the ledger" in found(folders["2"], ledger=tmp_path / "all.ledger")


def test_groups_that_the_prior_is_said_to_lack_are_found_by_the_ledger(place: Path, release: Path):
    edited(release, lambda record: record["prior"].update(without_groups=["1"]))
    assert "names another prior than the ledger" in found(release, ledger=place / "release.ledger")
    assert verify(release, prior=None).ok


def test_a_citation_changed_in_one_place_is_found_without_a_ledger(release: Path):
    edited(release, lambda record: record["prior"].update(citation="the census"))
    assert "does not name its prior where it says what is not protected" in found(release)


def test_a_smaller_guarantee_of_the_earlier_release_is_found(place: Path, tmp_path: Path):
    copy = copied(place / "second", tmp_path / "second")
    edited(copy, lambda record: record["prior"]["release"]["guarantee"].update(epsilon=0.1))
    assert "on the release that was its prior are not those of release" in found(copy, prior=place / "release")
    assert "names another prior" in found(copy, ledger=place / "second.ledger")


def test_other_files_are_told_apart(place: Path, tmp_path: Path):
    other = tmp_path / "last.csv"
    other.write_text((place / "last.csv").read_text() + "0,0,0,0,0\n")
    assert "last.csv is not what the prior was read from" in found(place / "release", prior=other)
    assert "names none" in found(place / "plain", prior=other)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "cannot be compared" in found(place / "second", prior=empty)
    assert "empty is a folder, and the prior was read from a file" in found(place / "release", prior=empty)
    exchanged = tmp_path / "exchanged"
    shutil.copytree(place / "release", exchanged)
    shutil.copy(place / "last.csv", exchanged / "synthetic.parquet")
    assert "exchanged is not what the prior was read from" in found(place / "second", prior=exchanged)
    framed = verify(place / "framed", prior=place / "last.csv")
    assert framed.ok
    assert "no hash of a prior that is a frame or a folder" in " ".join(framed.unchecked)


def test_the_command_takes_files_of_the_prior(place: Path, monkeypatch, capsys):
    monkeypatch.chdir(place)
    assert cli.run(["verify", "release", "--prior", "last.csv", "--prior", "table.csv"]) == 0
    assert "table.csv is what the prior was read from" in capsys.readouterr().out
    assert cli.run(["verify", "release", "--prior", "release.ledger"]) == 1
    assert cli.run(["verify", "release", "--prior", "nothing.csv"]) == 2
    assert "there is no file or folder nothing.csv" in capsys.readouterr().err
    with pytest.raises(UsageError, match="the prior"):
        verify("release", prior=[3])  # type: ignore[list-item]


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, monkeypatch):
    path = tmp_path / "last.csv"
    people(ROWS, 1).to_csv(path, index=False)

    def swapped(*given):
        people(ROWS, 2).to_csv(path, index=False)
        return mapped(*given)

    monkeypatch.setattr("stratsynth.priors.prior.mapped", swapped)
    with pytest.raises(UsageError, match="has changed while it was read"):
        Prior.public(path, citation=CITATION).in_schema(SCHEMA)


def test_a_fit_with_another_file_of_the_same_rows_is_another_fit(place: Path, tmp_path: Path):
    copy = tmp_path / "last.csv"
    copy.write_text((place / "last.csv").read_text().replace("\n", "\r\n"))
    one, two = (Prior.public(path, citation=CITATION).in_schema(SCHEMA) for path in (place / "last.csv", copy))
    assert one.stated["sha256"] == two.stated["sha256"]
    assert one.stated["file"] != two.stated["file"]
    assert one.digest != two.digest
