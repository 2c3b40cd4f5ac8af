"""Pages and their parts: well-formed, escaped, shut, and the numbers beside pictures are the pictures' numbers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from helpers.pages import Page as Parsed
from stratsynth.report import notebook, text
from stratsynth.report.html import render
from stratsynth.report.numbers import Numbers, listed, several, short
from stratsynth.report.page import Column, Figure, Page, Points, Section, Table
from stratsynth.report.strip import Axis, Mark, axis, legend, strip

HOSTILE = "<script>alert(1)</script>\"'&]]>--><img src=x onerror=alert(1)>"


def page(text="text", **settings):
    columns = [
        Column(text, "text"),
        Column(text),
        Column(text, "picture", Axis(0, 1)),
        Column(text, "shade", Axis(0, 2)),
        Column(text, aside=True),
    ]
    points = Points(text, [Mark(text, 0.5)], 0.5)
    table = Table(text, columns, [[text, 1.5, points, 1, 7.5]], [[text, math.nan, "", math.nan, None]])
    chart = Figure(
        text, text, table, legend=legend([(text, 0)], note=text), group=text, numbers=Numbers(text, [text], [[text]])
    )
    section = Section("one", text, [text], [(text, text)], [chart], [text], text)
    return Page(text, text, [text], [section], made_with=text, **settings)


def test_a_page_is_well_formed_and_fetches_nothing():
    Parsed(render(page())).check()
    Parsed(render(page(internal="stamp", warnings=["warning"]))).check()


def test_whatever_a_text_holds_is_text():
    parsed = Parsed(render(page(HOSTILE, internal=HOSTILE, warnings=[HOSTILE]))).check()
    assert parsed.text.count(HOSTILE) > 10
    assert len(parsed.all("script")) == 1


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_no_text_breaks_a_page(text):
    Parsed(render(page(text, internal=text))).check()


def test_the_same_page_is_the_same_file():
    assert render(page(HOSTILE)) == render(page(HOSTILE))


def test_an_internal_page_says_so_also_on_paper_and_another_does_not():
    internal, other = render(page(internal="a stamp")), render(page())
    assert "<title>INTERNAL: text</title>" in internal
    assert "@top-center" in internal
    assert "INTERNAL" not in other


def test_numbers_are_the_same_in_csv_and_json_and_carry_their_stamp():
    rows = [['a,b\n"c"', 1, 0.25, None], ["=1+1", 2, math.nan, math.inf]]
    html = render(
        Page(
            "t",
            "s",
            [],
            [Section("x", "x", figures=[Figure("f", numbers=Numbers("My Numbers!", ["name", "n", "x", "y"], rows))])],
            "stamp",
        )
    )
    table, document = Parsed(html).check().numbers("INTERNAL-my-numbers")
    assert document == {
        "stamp": "INTERNAL: stamp",
        "columns": ["name", "n", "x", "y"],
        "rows": [['a,b\n"c"', 1, 0.25, None], ["=1+1", 2, None, None]],
    }
    assert [row["name"] for row in table] == ['a,b\n"c"', "'=1+1"], "no spreadsheet takes a label for a formula"
    assert [(row["n"], row["x"], row["y"], row["stamp"]) for row in table] == [
        ("1", "0.25", "", "INTERNAL"),
        ("2", "", "", "INTERNAL"),
    ]


@given(
    st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=8),
    st.booleans(),
)
def test_a_scale_keeps_order_and_its_ticks_lie_on_it(values, log):
    scale = Axis.over(values, log=log)
    places = [scale.at(v) for v in sorted(values)]
    assert places == sorted(places)
    assert all(0 <= place <= 100 for place in places)
    ticks = scale.ticks()
    assert len(ticks) <= 12
    assert all(scale.low * (1 - 1e-6) - 1e-9 * abs(scale.high) <= t <= scale.high * (1 + 1e-6) for t in ticks if t > 0)
    axis(scale)


@pytest.mark.parametrize("values", [[], [math.nan], [0.0], [None], [5.0, 5.0], [5e-324], [-5e-324, 0.0]])
@pytest.mark.parametrize("log", [True, False])
def test_a_scale_of_nothing_much_is_a_scale_all_the_same(values, log):
    scale = Axis.over(values, log=log)
    assert 0 <= scale.at(1.0) <= 100
    assert len(scale.ticks()) <= 12


def test_a_picture_says_in_words_what_it_shows():
    picture = strip(Axis(0, 2), [Mark("vanilla", 0.5, 0.4, 0.6), Mark("other", None)], what="group <1>")
    assert isinstance(picture, Markup)
    assert 'aria-label="group &lt;1&gt;: vanilla 0.500 (0.400 to 0.600); other not estimable"' in picture


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.0, "0"),
        (math.nan, "–"),
        (None, "–"),
        (1234.5, "1,234"),
        (0.12345, "0.123"),
        (12.3456, "12.3"),
        (-3.0, "−3.00"),
    ],
)
def test_numbers_are_said_with_the_digits_that_matter(value, said):
    assert short(value) == said


def test_lists_and_counts_in_words():
    assert listed([]) == ""
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert several(1, "group") == "1 group"
    assert several(1200, "person", "people") == "1,200 people"


TABLE = Table(
    "Caption.",
    [
        Column("name", "text"),
        Column("picture", "picture", Axis(0, 1)),
        Column("people", "count"),
        Column("part", "share"),
        Column("error", aside=True),
    ],
    [[f"row {i}", Points("a point", [Mark("x", 0.5)], 0.5), 1000 * i, i / 100, i / 7] for i in range(50)],
    [["all", None, math.nan, 1.0, None]],
    most=10,
    ends=(2, 1),
    rest="rows between, in the files",
)
WHOLE = Page(
    "Title",
    "Subtitle",
    ["Lead."],
    [
        Section(
            "one",
            "One",
            ["A text."],
            [("Name", "value"), ("A name that is longer than a column", "is a line")],
            [Figure("Figure", "Note.", TABLE), Figure("Left out", table=TABLE, detail=True)],
            notes=["At the end."],
        ),
        Section("two", "Two", ["Only on the page."], detail=True),
    ],
    internal="Computed from private rows.",
    warnings=["NOT <PRIVATE>"],
)


def test_a_terminal_gets_every_fact_and_the_ends_of_a_long_table():
    assert (
        text.render(WHOLE)
        == """\
INTERNAL: computed from private rows.
*** NOT <PRIVATE> ***
Title
Subtitle
Lead.

One
A text.
Name: value
A name that is longer than a column: is a line

Figure. Note.
name    people   part  error
row 0        0    0 %      0
row 1    1,000    1 %  0.143
... 47 rows between, in the files ...
row 49  49,000   49 %   7.00
all          –  100 %      –
Caption.

At the end."""
    )


def test_signs_that_steer_a_terminal_are_not_folded_away():
    steered = Table("", [Column("a\rb", "text"), Column("c")], [["d\x0be", 1]])
    section = Section("", "", ["f\rg"], [("h", "i\x0cj")], [Figure("", table=steered)])
    said = text.render(Page("", sections=[section]))
    for words in ("a\\u000db", "d\\u000be", "f\\u000dg", "i\\u000cj"):
        assert words in said


def test_a_notebook_gets_the_same_facts_as_html_that_scrolls():
    html = notebook.render(WHOLE)
    for words in (
        "NOT &lt;PRIVATE&gt;",
        "INTERNAL: Computed",
        "Title",
        "A text.",
        "is a line",
        "Caption.",
        "At the end.",
    ):
        assert words in html
    assert html.count("<tr>") == 2 + 1 + 40 + 1  # facts, heads, rows, everybody
    assert "10 more rows are not shown" in html
    assert 'tabindex="0" role="region"' in html
    for words in ("Only on the page", "Left out", "<svg", "<script"):
        assert words not in html
    assert html.count("<th ") == html.count("scope=")


def test_what_stands_beside_a_picture_is_left_to_its_numbers():
    parsed = Parsed(render(WHOLE)).check()
    assert "Only on the page." in parsed.text
    assert "row 49" in parsed.text
    assert "7.00" not in parsed.text
