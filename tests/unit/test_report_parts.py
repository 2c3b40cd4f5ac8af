"""Pages and their parts: well-formed, escaped, shut, and the numbers beside pictures are the pictures' numbers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from helpers.pages import Page as Parsed
from stratsynth.report.numbers import Numbers, listed, several, short
from stratsynth.report.page import Cell, Column, Figure, Page, Section, Table, render
from stratsynth.report.strip import Mark, Scale, axis, legend, strip

HOSTILE = "<script>alert(1)</script>\"'&]]>--><img src=x onerror=alert(1)>"


def page(text="text", **settings):
    picture = Cell.drawn(strip(Scale(0, 1), [Mark(text, 0.5)], what=text), 0.5)
    table = Table(text, [Column(text, "text"), Column(text), Column(text, "picture"), Column(text, "shade")],
                  [[Cell.words(text), Cell.figure(1.5), picture, Cell.shaded(1, 2)]],
                  [[Cell.words(text), Cell.figure(math.nan), Cell.words(""), Cell.shaded(math.nan, 2)]])  # fmt: skip
    chart = Figure(text, text, table, legend=legend([(text, 0)], note=text), group=text,
                   numbers=Numbers(text, [text], [[text]], settings.get("internal")))  # fmt: skip
    section = Section("one", text, [text], [(text, text)], [chart], [text], text)
    return Page(text, text, [text], [section], made_with=text, **settings)


def test_a_page_is_well_formed_and_fetches_nothing():
    Parsed(render(page())).check()
    Parsed(render(page(internal="stamp", warning="warning"))).check()


def test_whatever_a_text_holds_is_text():
    parsed = Parsed(render(page(HOSTILE, internal=HOSTILE, warning=HOSTILE))).check()
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
    html = render(Page("t", "s", [], [Section("x", "x", figures=[
        Figure("f", numbers=Numbers("My Numbers!", ["name", "n", "x", "y"], rows, "INTERNAL: stamp"))])]))  # fmt: skip
    table, document = Parsed(html).check().numbers("INTERNAL-my-numbers")
    assert document == {
        "stamp": "INTERNAL: stamp",
        "columns": ["name", "n", "x", "y"],
        "rows": [['a,b\n"c"', 1, 0.25, None], ["=1+1", 2, None, None]],
    }
    assert [row["name"] for row in table] == ['a,b\n"c"', "'=1+1"], "no spreadsheet takes a label for a formula"
    assert [(row["n"], row["x"], row["y"], row["stamp"]) for row in table] == [
        ("1", "0.25", "", "INTERNAL"), ("2", "", "", "INTERNAL")
    ]  # fmt: skip


@given(
    st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=8),
    st.booleans(),
)
def test_a_scale_keeps_order_and_its_ticks_lie_on_it(values, log):
    scale = Scale.over(values, log=log)
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
    scale = Scale.over(values, log=log)
    assert 0 <= scale.at(1.0) <= 100
    assert len(scale.ticks()) <= 12


def test_a_picture_says_in_words_what_it_shows():
    picture = strip(Scale(0, 2), [Mark("vanilla", 0.5, 0.4, 0.6), Mark("other", None)], what="group <1>")
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
