"""Short forms in Python and notebooks: escaped, and never with a row."""

import json
from html.parser import HTMLParser

import pandas as pd
import pytest

import stratsynth as ss
from helpers import small
from stratsynth import progress
from stratsynth.adapters import MST, Independent
from stratsynth.evaluation import evaluate
from stratsynth.evaluation.tables import Pair
from stratsynth.noise import SeededEntropy

BUDGET = ss.Budget(1, 1e-9)
SECRET = 31.37512


def people(n=80):
    """One number that no other column holds, and that only a row can show."""
    frame = small.people(n)
    frame["AGE"] = frame["AGE"].astype(float)
    frame.loc[0, "AGE"] = SECRET
    return frame


@pytest.fixture(scope="module")
def release():
    table = ss.open_table(people(), schema=small.SCHEMA, declared_size=100)
    weights = ss.Weights.public(small.shares_frame(), citation="<made> & up")
    return ss.fit(ss.Stratified(MST(), by=["SEX", "GROUP"], weights=weights), table, BUDGET, progress=False)


@pytest.fixture(scope="module")
def evaluation(release):
    return evaluate(people(), release.sample(80, seed=1), small.SCHEMA, ["SEX", "GROUP"], k=2, apart=False)


class Balanced(HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def shown(thing):
    """The line and the HTML, of which the line is short and the HTML well-formed."""
    html = thing._repr_html_()
    checker = Balanced()
    checker.feed(html)
    assert checker.open == []
    assert len(repr(thing)) < 200
    assert "\n" not in repr(thing)
    return html


def test_a_schema_names_its_columns_and_what_they_hold():
    html = shown(small.SCHEMA)
    for name in small.SCHEMA.names:
        assert name in html
        assert name in repr(small.SCHEMA)
    wide = ss.Schema({f"C{i}": ss.Categorical(levels=("<b>", "&")) for i in range(60)})
    assert "&lt;b&gt;, &amp;" in shown(wide)
    assert "20 more rows are not shown" in shown(wide)
    assert "60 columns" in repr(wide)


def test_a_plan_is_a_line_a_table_and_as_text_what_the_command_prints():
    weights = ss.Weights.public(small.shares_frame(), citation="<made> & up")
    how = ss.Stratified(Independent(), by=["SEX", "GROUP"], weights=weights)
    plan = ss.plan(how, small.SCHEMA, BUDGET, declared_size=100)
    assert "4 strata" in repr(plan)
    html = shown(plan)
    assert "&lt;made&gt; &amp; up" in html
    assert all(stratum.stratum in html for stratum in plan.strata)
    assert "Time" in str(plan)


def test_a_release_and_its_certificate_say_what_was_guaranteed(release, tmp_path):
    for thing in (release, release.certificate):
        assert "epsilon 1, delta 1e-09" in repr(thing)
        assert "epsilon 1, delta 1e-09" in shown(thing)
        assert "SEX and GROUP" in shown(thing)
        assert "mst by SEX x GROUP" in repr(thing)
    assert json.loads(json.dumps(release.certificate)) == release.certificate
    release.save(tmp_path / "release")
    again = ss.Release.load(tmp_path / "release")
    assert repr(again) == repr(release)
    assert again.certificate == release.certificate


def test_what_is_not_private_says_so():
    table = ss.open_table(people(), schema=small.SCHEMA, declared_size=100)
    release = ss.fit(Independent(), table, BUDGET, entropy=SeededEntropy(1), progress=False)
    assert "NOT PRIVATE" in repr(release)
    assert "NOT PRIVATE" in shown(release)


def test_an_evaluation_shows_scores_of_every_group_its_stamp_and_no_row(evaluation):
    html = shown(evaluation)
    assert "INTERNAL" in html
    assert "INTERNAL" in repr(evaluation)
    assert html.count("<tr>") == 1 + 4 + 1  # heads, groups, everybody
    pair = Pair.of(people(), people(), small.SCHEMA, "SEX")
    for text in (html, repr(evaluation), repr(pair), repr(pair.real)):
        assert str(SECRET)[:5] not in text
    assert "array" not in repr(pair)


def test_progress_is_shown_as_asked_and_otherwise_where_somebody_looks(monkeypatch, capsys):
    table = ss.open_table(pd.DataFrame(people()), schema=small.SCHEMA, declared_size=100)
    ss.fit(Independent(), table, BUDGET)
    assert capsys.readouterr().err == ""
    seen = []

    class Bar:
        def __enter__(self):
            return lambda done, total: seen.append((done, total))

        def __exit__(self, *_):
            return None

    monkeypatch.setattr("stratsynth.fitting.observer.bar", lambda _: Bar())
    ss.fit(MST(), ss.open_table(people(), schema=small.SCHEMA, declared_size=100), BUDGET, progress=True)
    done, total = seen[0]
    assert done == 0
    assert total >= len(seen) - 1 > 0
    assert set(seen[1:]) == {(None, None)}
    monkeypatch.undo()
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    assert progress.wanted(None)
    assert not progress.wanted(False)


def test_a_bar_counts_and_shows_what_is_left(capsys):
    with progress.bar("fits", slow=True) as tick:
        for done in range(3):
            tick(done, 3)
        tick(None, None)
    with progress.bar("fitting") as tick:
        tick(0, 2)
        tick(None, None)
    assert "Traceback" not in capsys.readouterr().err


def test_an_evaluation_counts_its_parts_to_the_end(release, monkeypatch):
    seen = []

    class Bar:
        def __enter__(self):
            return lambda done, total: seen.append((done, total))

        def __exit__(self, *_):
            return None

    monkeypatch.setattr(progress, "bar", lambda *_, **__: Bar())
    made = release.sample(80, seed=1)
    for more in ({}, {"apart": False}, {"area": "SEX", "holdout": people(60), "target": "WORK", "positive": "yes"}):
        seen.clear()
        evaluate(people(), made, small.SCHEMA, ["SEX"], k=2, progress=True, **more)
        total = seen[0][1]
        assert [done for done, _ in seen] == list(range(total + 1))


def test_a_schema_shows_dates_as_dates():
    schema = ss.Schema(
        {
            "BORN": ss.Temporal(lower="1930-01-01", upper="2024-12-31"),
            "RANK": ss.Categorical(levels=("low", "high"), ordered=True, dtype="category"),
            "PAY": ss.Numeric(lower=0, upper=1e5, bins=4),
        }
    )
    html = schema._repr_html_()
    for words in ("dates, by the day", "1930-01-01 to 2024-12-31", "ordered categories", "0 to 100000"):
        assert words in html
