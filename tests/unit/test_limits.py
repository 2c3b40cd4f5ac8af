"""Limits of protection are stated in full, in the same words, wherever somebody reads what a release guarantees."""

import json
import re
from pathlib import Path

import pytest

from helpers import small
from helpers.pages import Page
from stratsynth import cli
from stratsynth.adapters import MST, Pooled
from stratsynth.certificate import Certificate
from stratsynth.fitting import fit
from stratsynth.release import Release
from stratsynth.release.limits import ALWAYS, OF_THIS, limits, sentences
from stratsynth.release.page.frame import release_page
from stratsynth.release.page.summary import summary
from stratsynth.report.html import render

ROOT = Path(__file__).parents[2]
ABOUT = (
    "several rows of one person",
    "household",
    "other releases about the same people",
    "another ledger",
    "declared",
    "time",
    "memory",
    "audited",
    "legal",
    "machine",
    "roll back the ledger",
)


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def release() -> Release:
    return small.small_release(seed=3)


@pytest.mark.parametrize("word", ABOUT)
def test_nothing_is_left_out(word):
    assert word in " ".join(f"{about}: {sentence}" for about, sentence in ALWAYS.items()).lower()


def test_the_security_policy_lists_the_same_in_the_same_words():
    security = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \*\*(.+?)\*\*: (.+)$", security, flags=re.MULTILINE)
    assert dict(listed) == ALWAYS


def test_the_certificate_lists_all_of_it_and_so_do_the_terminal_and_the_report(release, tmp_path, capsys):
    folder = release.save(tmp_path / "release", rows=10, seed=1)
    certificate = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    assert certificate["not_protected"] == sentences(Certificate.from_dict(certificate))
    assert len(certificate["not_protected"]) == len(ALWAYS) + 1
    assert cli.run(["certificate", str(folder)]) == 0
    printed = flat(capsys.readouterr().out)
    page = flat(Page((folder / "report.html").read_text(encoding="utf-8")).check().text)
    for about, sentence in {**ALWAYS, **dict([OF_THIS["declared_size"]])}.items():
        assert f"{about}: {sentence}" in certificate["not_protected"]
        assert f"{about}: {sentence}" in printed
        assert sentence in page
        assert about in page


def test_what_a_fit_prints_names_every_limit(release):
    said = flat(summary(release.certificate, brief=True)).lower()
    assert all(about.lower() in said for about in limits(release.statement))


def test_a_certificate_of_version_0_1_is_shown_with_them_too(release):
    old = {key: value for key, value in release.certificate.items() if key != "not_protected"}
    assert summary(old) == summary(release.certificate)
    assert flat(ALWAYS["Not audited"]) in flat(summary(old))


def test_this_releases_own_limits_come_first(release):
    worse = {
        **release.certificate,
        "private": False,
        "unverified": ["somebody's own claim"],
        "unprotected": [*OF_THIS, "the colour"],
    }
    found = list(limits(Certificate.from_dict(worse)))
    assert found[:2] == ["Everybody", "Unverified parts"]
    assert set(found[2:9]) == {"the colour"}.union(about for about, _ in OF_THIS.values())
    assert found[9:] == list(ALWAYS)
    page = render(release_page(worse, release.measurements, release.model.schema))
    assert "The colour" in Page(page).check().text


def test_no_setting_is_printed_as_program_text(release):
    """The base of a pooled fit is a mechanism within a mechanism."""
    how = Pooled(base=MST(), by=["SEX"], weights=small.even(small.SCHEMA, "SEX"))
    certificate = fit(how, small.table(), small.BUDGET, seed=1).certificate
    said = summary(certificate)
    assert "pooled (base mst (" in flat(said)
    assert not re.search(r"[{}\[\]]|None|True|False", said)
    assert max(map(len, said.splitlines())) <= 120
