"""An earlier release as a prior: its noisy tables come in with their own noise, beside its rows."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from helpers.priors import SCHEMA, people
from helpers.small import even
from stratsynth import (
    Budget,
    Categorical,
    Prior,
    PublishedTable,
    Schema,
    Stratified,
    StratsynthError,
    fit,
    open_table,
    verify,
)
from stratsynth.adapters.shared.known import believed
from stratsynth.adapters.tilted import TiltedLearner
from stratsynth.mechanisms import make, prepare
from stratsynth.mechanisms.prior_rows import PriorSource
from stratsynth.schema.rules import Rule

BUDGET = Budget(epsilon=1, delta=1e-9)
ROWS = 5_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("earlier") / "release"
    private = open_table(people(ROWS, 5), schema=SCHEMA, declared_size=ROWS)
    fit("mst", private, BUDGET).save(made, rows=1_000, seed=0)
    return made


def test_the_tables_of_everybody_come_in_with_their_own_noise(folder: Path):
    found = Prior.release(folder).in_schema(SCHEMA)
    assert len(found.tables) == found.stated["measurements"] == 9  # five columns and a tree of four pairs
    one = next(known for known in found.tables if known.clique == ("A",))
    truth = people(ROWS, 5).A.value_counts(normalize=True).sort_index().to_numpy()
    assert 0.001 < one.error < 0.02
    assert np.abs(one.shares - truth).max() < 5 * one.error
    assert one.variance(("A",), ROWS) > (ROWS * one.error) ** 2
    assert not one.certain


def test_they_join_the_mechanisms_own_model_and_not_the_rows_that_were_made_of_them(folder: Path):
    public = prepare("mst", SCHEMA, BUDGET, ROWS, Prior.release(folder)).public
    assert len(public.known) == 9
    assert believed(public.known, [], ROWS)
    assert TiltedLearner.of(public).published == ()
    inside = prepare("mst", SCHEMA, BUDGET, ROWS, Prior.release(folder)).public.without(["A"])
    assert all(known.of_rows and "A" not in known.clique for known in inside.known)


def test_levels_are_mapped_merged_and_summed_over(folder: Path):
    levels = {**{name: SCHEMA.levels(name) for name in "BCD"}, "Alpha": ("some", "2")}
    other = Schema({name: Categorical(levels=tuple(some)) for name, some in levels.items()})
    prior = Prior.release(folder, rename={"Alpha": "A"}, recode={"Alpha": {"0": "some", "1": "some"}})
    # the first of each: a pair with G becomes another table of the other column, which lacks G
    before = {known.clique: known for known in reversed(Prior.release(folder).in_schema(SCHEMA).tables)}
    after = {known.clique: known for known in reversed(prior.in_schema(other).tables)}
    assert after["Alpha",].shares == pytest.approx([before["A",].shares[:2].sum(), before["A",].shares[2]])
    assert after["Alpha",].error == pytest.approx(before["A",].error * np.sqrt(3 / 2))
    assert not any("G" in clique for clique in after)


def test_a_column_with_levels_of_its_own_brings_no_table(folder: Path):
    columns = {name: SCHEMA.column(name) for name in "BCDG"}
    other = Schema({**columns, "A": Categorical(levels=("0", "1", "2", "new"))})
    assert not any("A" in known.clique for known in Prior.release(folder).in_schema(other).tables)


def test_a_fit_states_how_many_tables_came_in(folder: Path, tmp_path: Path):
    private = open_table(people(2_000, 6), schema=SCHEMA, declared_size=2_000)
    release = fit("aim", private, BUDGET, prior=Prior.release(folder))
    assert release.certificate["prior"]["measurements"] == 9
    assert release.certificate["prior"]["release"]["guarantee"]["epsilon"] == 1


def test_other_measurements_than_those_that_are_listed_are_refused(folder: Path, tmp_path: Path):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    prior = Prior.release(copy)
    (copy / "measurements.parquet").write_bytes(b"another file")
    for use in (lambda: Prior.release(copy), lambda: prior.in_schema(SCHEMA)):
        with pytest.raises(StratsynthError, match=r"measurements\.parquet is not the file"):
            use()


def test_other_rows_than_those_that_are_listed_are_refused(folder: Path, tmp_path: Path):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    prior = Prior.release(copy)
    people(500, 9).to_parquet(copy / "synthetic.parquet")
    for use in (lambda: Prior.release(copy), lambda: prior.in_schema(SCHEMA)):
        with pytest.raises(StratsynthError, match=r"synthetic\.parquet is not the file"):
            use()


def test_a_link_into_a_release_is_no_public_file(folder: Path, tmp_path: Path):
    link, parts = tmp_path / "link.parquet", tmp_path / "parts"
    link.symlink_to(folder / "synthetic.parquet")
    parts.mkdir()
    (parts / "part.parquet").symlink_to(link)
    for given in (link, parts, str(link)):
        with pytest.raises(StratsynthError, match=r"is of a release; take Prior\.release"):
            Prior.public(given, citation="made up for testing")
    with pytest.raises(StratsynthError, match=r"is of a release; take Prior\.release"):
        PublishedTable(link, "made up for testing")


def test_a_release_whose_files_are_links_is_no_public_file(folder: Path, tmp_path: Path):
    place = tmp_path / "release"
    shutil.copytree(folder, place)
    (place / "synthetic.parquet").rename(tmp_path / "stored.parquet")
    (place / "synthetic.parquet").symlink_to(tmp_path / "stored.parquet")
    with pytest.raises(StratsynthError, match=r"is of a release; take Prior\.release"):
        Prior.public(place / "synthetic.parquet", citation="made up for testing")


@pytest.mark.usefixtures("seeded_noise")
def test_a_release_of_nobody_brings_rows_alone(tmp_path: Path):
    private = open_table(people(ROWS, 5).iloc[:0], schema=SCHEMA, declared_size=None)
    fit("mst", private, Budget(0.001, 1e-9), entropy=None).save(tmp_path / "r", rows=100, seed=0)
    found = Prior.release(tmp_path / "r").in_schema(SCHEMA)
    assert found.rows is not None
    for known in found.tables:  # what noise makes of nobody is known for what it is worth
        assert known.error > 0.05


def test_a_certificate_that_hides_its_prior_is_found(folder: Path, tmp_path: Path):
    private = open_table(people(2_000, 6), schema=SCHEMA, declared_size=2_000)
    for number, how in enumerate((make("mst", {}), Stratified("mst", ["G"], even(SCHEMA, "G")))):
        release = fit(how, private, Budget(0.1, 1e-9), prior=Prior.release(folder))
        place = tmp_path / str(number)
        release.save(place, rows=100, seed=0)
        assert verify(place).ok
        certificate = place / "certificate.json"
        stated = json.loads(certificate.read_text())
        del stated["prior"]
        certificate.write_text(json.dumps(stated))
        assert any("names none" in finding for finding in verify(place).findings)


def test_priors_of_ones_own_making_are_refused(folder: Path):
    with pytest.raises(StratsynthError, match="a kind of one's own"):
        type("Mine", (PriorSource,), {"found": lambda self, schema: None})
    with pytest.raises(StratsynthError, match="a kind of one's own"):
        type("Mine", (Prior,), {"__module__": "stratsynth.priors.prior"})


def test_rows_that_are_left_out_are_counted():
    many = Prior.public(people(20_000, 3), citation="made up for testing").in_schema(SCHEMA).stated
    assert many["thinned"] == 5_000
    assert "against_rules" not in many
    frame = people(500, 3)
    ruled = Schema(SCHEMA.columns, rules=(Rule(when={"A": ("2",)}, never={"G": ("1",)}),))
    stated = Prior.public(frame, citation="made up for testing").in_schema(ruled).stated
    assert stated["against_rules"] == int(((frame.A == "2") & (frame.G == "1")).sum()) > 0
    assert "thinned" not in stated
