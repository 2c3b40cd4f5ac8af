"""A release may have a title and a publisher: in its certificate, its report, its citation and on the terminal."""

import re

import pytest

import stratsynth as ss
from stratsynth.adapters import Independent
from stratsynth.errors import UsageError
from stratsynth.release.page.summary import summary

RECIPE = """
[data]
path = "p.csv"
schema = "s.toml"
declared_size = 200
[mechanism]
name = "independent"
[budget]
epsilon = 1.0
delta = 1e-9
[release]
title = "Ages & <b>sexes</b>, 2026"
publisher = "Office of Examples"
"""


@pytest.fixture
def folder(tmp_path):
    ss.census.make(200).to_csv(tmp_path / "p.csv", index=False)
    ss.census.schema().restrict(["AGEP", "SEX"]).write_toml(tmp_path / "s.toml")
    (tmp_path / "r.toml").write_text(RECIPE, encoding="utf-8")
    return tmp_path


def test_a_recipe_gives_a_release_its_title(folder):
    ss.Recipe.read(folder / "r.toml").run(folder / "release")
    release = ss.Release.load(folder / "release")
    called = {"title": "Ages & <b>sexes</b>, 2026", "publisher": "Office of Examples"}
    assert release.certificate["called"] == called
    page = (folder / "release" / "report.html").read_text(encoding="utf-8")
    assert "<b>sexes" not in page
    assert "<title>Ages &amp; &lt;b&gt;sexes&lt;/b&gt;, 2026</title>" in page
    assert "Office of Examples (" in page
    assert "[Title of the data]" not in page
    assert re.search("\nTitle +Ages & <b>sexes</b>, 2026\n", summary(release.certificate))
    assert ss.verify(folder / "release").ok


def test_without_one_nothing_is_said(folder):
    table = ss.open_table(folder / "p.csv", schema=folder / "s.toml", declared_size=200)
    release = ss.fit(Independent(), table, ss.Budget(epsilon=1, delta=1e-9))
    assert "called" not in release.certificate
    assert release.called() is release
    assert release.called("A title").certificate["called"] == {"title": "A title"}


@pytest.mark.parametrize("wrong", ["", " ", "two\nlines", "x" * 201, 7])
def test_what_is_no_title_is_refused(folder, wrong):
    table = ss.open_table(folder / "p.csv", schema=folder / "s.toml", declared_size=200)
    release = ss.fit(Independent(), table, ss.Budget(epsilon=1, delta=1e-9))
    with pytest.raises(UsageError, match="title must be"):
        release.called(wrong)


def test_a_recipe_with_a_title_that_is_none_is_refused_before_anything_is_read(folder):
    (folder / "r.toml").write_text(RECIPE.replace("Ages", "\\u0007Ages"), encoding="utf-8")
    with pytest.raises(UsageError, match=r"\[release\] title must be a line of text"):
        ss.Recipe.read(folder / "r.toml")
