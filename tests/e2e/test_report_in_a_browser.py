"""Reports as a reader sees them, in a real Chromium: whole, silent, usable by keyboard, on a phone and on paper."""

import math

import pandas as pd
import pytest

import stratsynth as ss
from helpers import browser, homes, small
from stratsynth import Categorical, Schema, Stratified, census, fit
from stratsynth.adapters import CoinPress, Linked
from stratsynth.evaluation import evaluate
from stratsynth.evaluation.comparisons.page import comparison_page
from stratsynth.evaluation.evaluations.page import evaluation_page
from stratsynth.release.page.frame import release_page
from stratsynth.report.html import render

pytestmark = browser.needed
COLUMNS = ("AGEP", "SEX", "RAC1P", "ESR", "DIS")
KINDS = ("estimates", "release", "evaluation", "comparison", "long", "linked")
LONG = "A_COLUMN_WITH_A_LONG_NAME_AND_NO_SPACE_IN_IT_ANYWHERE"


def comparison():
    rows = [
        {
            "mechanism": m,
            "stratification": s,
            "epsilon": e,
            "seed": seed,
            "metric": "workload_error",
            "clique": None,
            "scope": "group" if group else "everybody",
            "PLACE": group,
            "value": (1 + seed) / (e * (1 + len(s))),
            "n": n,
            "low": math.nan,
            "high": math.nan,
            "status": "ok",
        }
        for m in ("aim", "mst")
        for s in ("vanilla", "stratified", "pooled")
        for e in (0.1, 1.0, 10.0)
        for seed in range(3)
        for group, n in (("Aveyronnaise-sans-espace-et-longue" * 2, 9), ("b", 90), (None, 99))
    ]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A report of each kind."""
    place = tmp_path_factory.mktemp("pages")
    release = small.small_release(seed=2)
    (place / "release.html").write_text(
        render(release_page(release.certificate, release.measurements, release.model.schema)), encoding="utf-8"
    )
    how = Stratified(CoinPress(columns=["AGE"]), ["SEX", "GROUP"], small.even(small.SCHEMA, "SEX", "GROUP"))
    means = fit(how, small.table(), small.BUDGET).save(place / "means")
    (means / "report.html").rename(place / "estimates.html")
    schema: Schema = census.schema().restrict(COLUMNS)
    real, made, other = (census.make(600, offset=o)[list(COLUMNS)] for o in (0, 5000, 9000))
    found = evaluate(real, made, schema, ["SEX", "RAC1P"], k=2, beside={"vanilla": other}, area="RAC1P")
    page = render(evaluation_page(found, certificate=release.certificate))
    (place / "evaluation.html").write_text(page, encoding="utf-8")
    levels = tuple(f"Llanfairpwllgwyngyllgogerychwyrndrobwll-{i}" for i in range(40))
    schema = Schema({LONG: Categorical(levels=levels), "B": Categorical(levels=("1", "2"))})
    frame = pd.DataFrame({LONG: levels[:30] * 9, "B": ["1", "2"] * 135})
    page = render(evaluation_page(evaluate(frame, frame[:200], schema, [LONG], k=2, area=LONG)))
    (place / "long.html").write_text(page, encoding="utf-8")
    table = ss.open_tables(*homes.tables(300), schema=homes.SCHEMA, declared_size=300)
    linked = ss.fit(Linked(base="mst", children="chain"), table, ss.Budget(4, 1e-9)).save(place / "two", seed=0)
    (linked / "report.html").rename(place / "linked.html")
    (place / "comparison.html").write_text(render(comparison_page(comparison())), encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def tab():
    with browser.Browser() as opened:
        yield opened


@pytest.mark.parametrize("kind", KINDS)
def test_it_opens_without_a_complaint_or_a_request(tab, pages, kind):
    tab.open(pages / f"{kind}.html")
    assert tab.complaints() == []
    assert tab.requests() == [(pages / f"{kind}.html").as_uri()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [320, 360, 768, 1200])
def test_no_page_is_wider_than_the_screen(tab, pages, kind, width):
    tab.open(pages / f"{kind}.html", width, 780, phone=width < 500)
    assert tab.run("document.documentElement.scrollWidth") <= width
    beyond = "[...document.querySelectorAll('body *')].filter(e => !e.closest('svg') && !e.matches('.skip') &&"
    assert (
        tab.run(f"{beyond} e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))") == []
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [360, 1200])
def test_pictures_can_be_seen_and_are_described(tab, pages, kind, width):
    tab.open(pages / f"{kind}.html", width, 780)
    shown = "[...document.querySelectorAll('svg[role=img]')].filter(s => !s.closest('[hidden]'))"
    assert tab.run(f"{shown}.length") >= 4
    assert tab.run(f"{shown}.every(s => s.getBoundingClientRect().width > 60 && s.querySelector('title').textContent)")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [390, 1280])
def test_no_word_and_no_number_is_broken_inside(tab, pages, kind, width):
    """Names longer than any word may be; upright heads of heat maps are cut off instead."""
    tab.open(pages / f"{kind}.html", width, 1000, phone=width < 500)
    broken = tab.run("""(() => {
      const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      for (let node; (node = walker.nextNode());) {
        if (!node.parentElement.closest('main') || node.parentElement.closest('svg, script, style, pre')) continue;
        if (!node.parentElement.offsetWidth || getComputedStyle(node.parentElement).writingMode !== 'horizontal-tb')
          continue;
        for (const word of node.textContent.matchAll(/\\S+/g)) {
          if (word[0].length > 20 || word[0].includes('-')) continue;
          const range = document.createRange();
          range.setStart(node, word.index);
          range.setEnd(node, word.index + word[0].length);
          const tops = new Set([...range.getClientRects()].filter(r => r.width > 0).map(r => Math.round(r.top)));
          if (tops.size > 1) found.push(word[0] + ' in ' + node.textContent.trim().slice(0, 60));
        }
      }
      return found;
    })()""")
    assert broken == []


def test_long_lists_of_codes_are_folded_and_no_box_is_half_empty(tab, pages):
    tab.open(pages / "evaluation.html", 1280, 1000)
    assert tab.run("document.querySelectorAll('#where details.fold dt').length") == 18
    assert not tab.run("document.querySelector('#where details').open")
    lead = "document.querySelector('.lead')"
    assert tab.run(f"{lead}.querySelector('p').getBoundingClientRect().width / {lead}.clientWidth") > 0.9
    tab.run("dispatchEvent(new Event('beforeprint'))")
    assert tab.run("document.querySelector('#where details').open")


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_its_ground(tab, pages, dark):
    """At least 4.5 to 1 everywhere, as WCAG asks: in the heat map's shades too."""
    tab.open(pages / "evaluation.html", dark=dark)
    weak = tab.run("""(() => {
      const parts = (c) => c.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
        .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
      const light = (c) => { const [r, g, b] = parts(c); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
      const ground = (e) => { for (; e; e = e.parentElement) {
        const c = getComputedStyle(e).backgroundColor; if (c !== 'rgba(0, 0, 0, 0)') return c; }
        return 'rgb(255,255,255)'; };
      return [...document.querySelectorAll('p,td,th,button,dt,dd,a,h1,h2,h3,caption,li,span')]
        .filter((e) => e.offsetWidth && [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()))
        .map((e) => { const [a, b] = [light(getComputedStyle(e).color), light(ground(e))];
          return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.className, e.textContent.slice(0, 30)]; })
        .filter(([ratio]) => ratio < 4.5);
    })()""")
    assert weak == []


def test_a_table_is_sorted_by_keyboard_and_everybody_stays_last(tab, pages):
    tab.open(pages / "evaluation.html")
    table = "document.querySelector('#card table')"
    heads = tab.run(f"[...{table}.tHead.rows[0].cells].map(c => c.textContent.trim())")
    place = heads.index("people")
    tab.run(f"{table}.tHead.rows[0].cells[{place}].querySelector('button').focus()")
    column = f"[...{table}.tBodies[0].rows].map(r => Number(r.cells[{place}].dataset.k))"
    before = tab.run(column)
    for order, reverse in (("ascending", False), ("descending", True)):
        tab.press("Enter", 13, "\r")
        assert tab.run(f"{table}.tHead.rows[0].cells[{place}].getAttribute('aria-sort')") == order
        assert tab.run(column) == sorted(before, reverse=reverse)
    assert tab.run(f"{table}.tFoot.rows[0].cells[0].textContent.trim()") == "everybody"


def test_every_heading_that_sorts_is_reached_by_the_tab_key(tab, pages):
    tab.open(pages / "comparison.html")
    wanted = tab.run("document.querySelectorAll('th button').length")
    seen = 0
    for _ in range(wanted + 200):
        tab.press("Tab", 9)
        seen += tab.run("document.activeElement.matches('th button')")
        if seen == wanted:
            break
    assert seen == wanted > 10


def test_rows_without_a_number_stay_last_in_either_order(tab, pages):
    tab.open(pages / "evaluation.html")
    script = """((down) => { const t = document.querySelector('#card table');
      const place = [...t.tHead.rows[0].cells].findIndex((c) => c.textContent.trim() === 'this release');
      t.tHead.rows[0].cells[place].querySelector('button').click();
      return [...t.tBodies[0].rows].map((r) => r.cells[place].dataset.k === undefined); })()"""
    for _ in range(2):
        missing = tab.run(script)
        assert missing == sorted(missing)
        assert any(missing)


def test_a_reader_chooses_one_group_at_a_time(tab, pages):
    tab.open(pages / "release.html")
    shown = "[...document.querySelectorAll('figure[data-group]')].filter(f => f.offsetHeight).map(f => f.dataset.group)"
    assert tab.run(shown) == ["SEX 1, GROUP a"]
    tab.run("document.querySelector('select[data-of]').focus()")
    tab.press("ArrowDown", 40)
    assert tab.run(shown) == ["SEX 1, GROUP b"]


def test_the_files_beside_a_picture_can_be_read(tab, pages):
    """A data link is a file by itself: what it holds is what the picture's table shows."""
    tab.open(pages / "release.html")
    text = tab.run("decodeURIComponent(document.querySelector('a[download=\"prices.json\"]').href.split(/,(.*)/s)[1])")
    assert '"columns":["difference","epsilon"]' in text


def test_an_internal_report_says_so_on_every_printed_page(tab, pages, tmp_path):
    tab.open(pages / "evaluation.html")
    tab.pdf(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    tab.ask("Emulation.setEmulatedMedia", media="print")
    stamp = tab.run(
        "(() => { const b = document.querySelector('.stamp').getBoundingClientRect(); return b.height; })()"
    )
    assert stamp > 40
    rules = tab.run("[...document.styleSheets].flatMap(s => [...s.cssRules]).map(r => r.cssText).join('')")
    assert "@top-center" in rules
    assert "not for publication" in rules


def test_without_scripts_everything_is_there(tab, pages):
    tab.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open(pages / "release.html", settle=False)
        assert tab.run("[...document.querySelectorAll('figure')].every(f => !f.hidden)")
        assert tab.run("document.querySelector('select').offsetHeight") == 0, "a choice without effect"
    finally:
        tab.ask("Emulation.setScriptExecutionDisabled", value=False)
