"""The seams: scores, sources of weights and mechanisms are told by what they declare, nowhere else by their names."""

import ast
import math
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import ClassVar

import pytest

from helpers import small
from helpers.certificates import record, statement
from stratsynth import Release, evaluation, fit, open_table
from stratsynth.adapters.independent import Independent, Product
from stratsynth.errors import Unsupported
from stratsynth.evaluation import scores
from stratsynth.evaluation.comparisons.compare_text import comparison_summary
from stratsynth.evaluation.comparisons.keys import OWN as METRICS
from stratsynth.evaluation.comparisons.paired import better
from stratsynth.evaluation.evaluations.output import write
from stratsynth.evaluation.scores.declared import declared, names, with_mean
from stratsynth.mechanisms import Mechanism, installed, load
from stratsynth.mechanisms.registry import KEY, Words, with_samples, words_of
from stratsynth.models import Returns
from stratsynth.questions import Counts, counts
from stratsynth.release.limits import OF_THIS
from stratsynth.release.page import words
from stratsynth.release.shown import CertificateRecord
from stratsynth.report.text import render as text
from stratsynth.weights.sources import SHARE_SOURCES, SOURCES, Place, Weights, source_of

ROOT = Path(__file__).parents[2]
PRODUCT = ("stratsynth", "adapters", "evaluation")


def files(*left: str) -> Iterator[Path]:
    """The product's files, but for those in some folders."""
    for part in PRODUCT:
        for path in sorted((ROOT / part).rglob("*.py")):
            if not any(path.is_relative_to(ROOT / folder) for folder in left):
                yield path


def named(source: str, names: Collection[str]) -> list[str]:
    """The lines where code, not a docstring, has one of the names as a text of its own."""
    if not any(name in source for name in names):
        return []
    tree = ast.parse(source)
    spoken = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in spoken]
    return [f"{node.lineno}: {node.value!r}" for node in texts if isinstance(node.value, str) and node.value in names]


def compared(source: str, what: str, names: Collection[str]) -> list[str]:
    """The lines where `x.what` or `x["what"]` is compared with one of the names."""
    found = []
    there = what in source and any(f'"{name}"' in source for name in names)
    for node in ast.walk(ast.parse(source)) if there else ():
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            texts = {n.value for side in sides for n in ast.walk(side) if isinstance(n, ast.Constant)}
            if any(_is(side, what) for side in sides) and texts & set(names):
                found.append(f"{node.lineno}: {ast.unparse(node)}")
    return found


def _is(node: ast.expr, what: str) -> bool:
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == what
    if isinstance(node, ast.Call):  # record.get("source")
        return any(isinstance(a, ast.Constant) and a.value == what for a in node.args[:1])
    return isinstance(node, ast.Attribute) and node.attr == what


# Sources of weights

OWN = {"raked", "invariant"}
"""Names that mean nothing else; `public`, `private` and, of evaluations, `holdout` do."""


def test_no_code_knows_a_source_of_weights_by_its_name():
    found = {}
    for path in files("stratsynth/weights"):
        source = path.read_text(encoding="utf-8")
        names = OWN if path.is_relative_to(ROOT / "evaluation") else OWN | {"holdout"}
        found[path.name] = named(source, names) + compared(source, "source", SOURCES)
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_the_check_finds_sources_by_name():
    assert named('"""raked"""\nif x.kind == "raked": pass', OWN) == ["2: 'raked'"]
    assert compared('weights.source in {"holdout", "private"}', "source", SOURCES) != []
    assert compared('certificate["weights"]["source"] == "private"', "source", SOURCES) != []
    assert compared('section.get("source") != "public"', "source", SOURCES) != []
    assert compared('weights.source == other.source or "public" in known', "source", SOURCES) == []


def test_every_source_says_all_that_is_asked_of_it():
    guide = (ROOT / "docs/guide/groups.md").read_text(encoding="utf-8")
    for source in SHARE_SOURCES:
        assert source_of(source.name) is source
        assert callable(getattr(Weights, source.name))
        assert f"| `{source.name}` |" in guide
        assert all(f"`{name}" in guide for name, key in source.keys.items() if key.needed)
        for name, (about, sentence) in source.discloses.items():
            assert OF_THIS[name] == (about, sentence)
            assert sentence.endswith(".")
        stated = {"source": source.name, "citation": "somewhere"}
        assert words.weights(statement(weights=stated)).lower() == f"{source.words}: somewhere".lower()
    assert source_of("none") is None
    assert words.weights(statement(weights={"source": "later", "citation": "it"})) == "Later: it"


def test_a_source_that_declares_nothing_is_taken_for_the_worst(tmp_path):
    from stratsynth.weights.source import ShareSource

    class Silent(ShareSource):
        name, words, keys = "silent", "from nowhere", {}

        def read(self, section, place):
            return self.made("nobody", None)

    silent = Silent()
    assert silent.rank == max(source.rank for source in SHARE_SOURCES)
    flags = (silent.exact, silent.known, silent.raked, silent.countable, silent.samples)
    assert flags == (False,) * 5
    assert silent.read({}, Place(tmp_path, "[weights]")).source == "silent"


# Scores

SCORE = '''
"""How far a release is from the real rows in how many levels each column has, for want of a better score."""

import numpy as np

from stratsynth.evaluation.scores.declared import RowScore


def level_frame(pair):
    names = pair.variables(None)
    seen = np.array([[(pair.tabulated(side, name) > 0).sum(axis=1) for name in names] for side in (0, 1)])
    apart = np.where(pair.counts.min(axis=0) > 0, abs(seen[1] - seen[0]), np.nan)
    return pair.frame(apart, items={"column": names}, more={"real": seen[0], "synthetic": seen[1]})


SCORE = RowScore(
    name="seen_levels",
    of=level_frame,
    title="How many levels are seen",
    note="Levels that some row has.",
    columns=(("column", "column", "text"), ("synthetic", "in the release", "number"), ("value", "apart", "number")),
    summary="Levels seen too many or too few, mean over columns",
)
'''


@pytest.fixture
def seen_levels(tmp_path, monkeypatch):
    """A folder of scores in which one more file lies."""
    (tmp_path / "scores").mkdir()
    (tmp_path / "scores" / "seen_levels_of_a_test.py").write_text(SCORE, encoding="utf-8")
    monkeypatch.setattr(scores, "__path__", [*scores.__path__, str(tmp_path / "scores")])
    yield
    sys.modules.pop("stratsynth.evaluation.scores.seen_levels_of_a_test", None)
    vars(evaluation).pop("seen_levels", None)


def fewer():
    """The people of `small` without a level of one column, and with none of a group."""
    frame = small.people()
    return frame[(frame["WORK"] != "N") & (frame["SEX"] != "2")]


def test_a_score_that_a_file_declares_is_evaluated_and_on_the_page(seen_levels, tmp_path):
    found = evaluation.evaluate(small.people(), fewer(), small.SCHEMA, "SEX", apart=False)
    frame = evaluation.seen_levels(small.people(), fewer(), small.SCHEMA, "SEX")
    assert frame.equals(found.declared["seen_levels"])
    assert "seen_levels" in dir(evaluation)
    whole = frame[frame["scope"] == "everybody"].set_index("column")["value"]
    assert whole.to_dict() == {"GROUP": 0, "AGE": 0, "WORK": 2}
    lines = text(found.page("this release", None)).splitlines()
    assert "Levels seen too many or too few, mean over columns: 0.667" in lines
    write(found, tmp_path / "out")
    assert {"seen_levels.csv", "seen_levels.parquet"} <= {path.name for path in (tmp_path / "out").iterdir()}
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "How many levels are seen" in page
    assert page.index("What cannot be") < page.index("How many levels are seen")


def test_the_mean_of_a_score_over_items_is_of_each_group(seen_levels):
    frame = evaluation.seen_levels(small.people(), fewer(), small.SCHEMA, "SEX")
    score = with_mean()["seen_levels"]
    whole = score.overall(frame, ["SEX"])
    assert whole["SEX"].fillna("all").to_list() == ["1", "2", "all"]
    assert whole["value"].to_list() == pytest.approx([1 / 3, math.nan, 2 / 3], nan_ok=True)
    assert whole["status"].to_list() == ["small", "not_estimable", "small"]
    assert whole["n_synthetic"].to_list() == [25, 0, 25]
    assert score.overall(frame, ["SEX"], few=20)["status"].to_list() == ["ok", "not_estimable", "ok"]
    one = frame[frame["column"] == "WORK"]
    assert score.overall(one, ["SEX"]) is one


def test_a_score_that_a_file_declares_is_compared(seen_levels, tmp_path):
    recipe = small.write_recipe(tmp_path)
    small.edit(recipe, "declared_size = 100", "declared_size = 100\npublic = true")
    recipe.write_text(
        recipe.read_text(encoding="utf-8") + "\n[compare]\nseeds = 2\nepsilons = [1]\ncliques = 3\n", encoding="utf-8"
    )
    frame = evaluation.compare(recipe, tmp_path / "grid", progress=False)
    here = frame[frame["metric"] == "seen_levels"]
    assert set(here["scope"]) == {"group", "everybody"}
    assert set(here["mechanism"]) >= {"independent", "(subsample)"}
    assert here["value"].notna().any()
    title = "Levels seen too many or too few, mean over columns"
    assert f"{title}; mean over repetitions" in " ".join(text(comparison_summary(frame, tmp_path / "grid")).split())
    assert title in (tmp_path / "grid" / "report.html").read_text(encoding="utf-8")
    assert better("seen_levels") == -1


def test_scores_are_read_off_their_files_as_they_are_declared():
    folder = ROOT / "evaluation/scores"
    modules = [f"stratsynth.evaluation.scores.{path.stem}" for path in sorted(folder.glob("*.py"))]
    here = [score.name for name in modules if (score := vars(import_module(name)).get("SCORE")) is not None]
    assert list(names()) == [score.name for score in declared()] == here
    others = {*METRICS, *(field.name for field in fields(evaluation.Evaluation))}
    assert len(set(here)) == len(here)
    assert not others & set(here)


def test_no_code_knows_a_declared_score_by_its_name():
    """But for the names that `stratsynth.evaluation` has always had, and a property of evaluations."""
    known = {"evaluation/__init__.py", "evaluation/evaluations/evaluate.py"}
    found = {}
    for path in files("evaluation/scores"):
        if str(path.relative_to(ROOT)) not in known:
            found[path.name] = named(path.read_text(encoding="utf-8"), names())
    assert {name: lines for name, lines in found.items() if lines} == {}


# Mechanisms


def test_no_page_knows_a_mechanism_by_its_name():
    """Words shown of a mechanism, and its samples' soundness, go by the declarations of its class."""
    found = {}
    for folder in ("release", "verifying", "report", "models", "answers", "mechanisms"):
        for path in sorted((ROOT / "stratsynth" / folder).rglob("*.py")):
            found[path.name] = named(path.read_text(encoding="utf-8"), installed())
    assert {name: lines for name, lines in found.items() if lines} == {}
    assert named('SOUND = {"independent", "fixed"}', installed()) != []


@dataclass(frozen=True)
class Elsewhere(Mechanism[Product]):
    """One-way marginals of somebody else."""

    name: ClassVar[str] = "elsewhere"
    label: ClassVar[str] = "One-way marginals of <Somebody>"
    paper: ClassVar[str] = "Somebody, E. (2031). One way, & no other. Journal of Elsewhere 1."
    samples_hold: ClassVar[bool] = True
    needs: ClassVar = frozenset({Counts})
    returns: ClassVar = Returns.ROWS
    adaptive: ClassVar = False
    unprotected: ClassVar = ()
    depth: int = 3

    def price(self, public, budget):
        return budget.zcdp()

    def steps(self, public, allot, rng):
        return Product.of(public.schema, (yield from counts(public.schema.oneways, rho=allot.rho)))


@dataclass(frozen=True)
class Plain(Elsewhere):
    """A mechanism that declares nothing for readers."""

    name: ClassVar[str] = "plain"
    label: ClassVar[str] = ""
    paper: ClassVar[str] = ""


def released(how, tmp_path):
    table = open_table(small.people(), schema=small.SCHEMA, declared_size=small.SIZE)
    fit(how, table, small.BUDGET).save(tmp_path / how.name, rows=20)
    return Release.load(tmp_path / how.name)


def test_a_mechanism_from_elsewhere_shows_its_own_paper_and_label(tmp_path):
    release = released(Elsewhere(), tmp_path)
    assert release.certificate[KEY] == {"label": Elsewhere.label, "paper": Elsewhere.paper, "samples": True}
    assert words.mechanism(release.statement) == f"{Elsewhere.label}: elsewhere (depth 3)"
    assert Elsewhere.paper in words.citation(release.statement)
    page = (tmp_path / "elsewhere" / "report.html").read_text(encoding="utf-8")
    assert "One-way marginals of &lt;Somebody&gt;: elsewhere (depth 3)" in page
    assert "One way, &amp; no other." in page
    assert len(release.samples(2, 30, seed=1)) == 2


def test_a_mechanism_that_declares_nothing_has_nothing_said_of_it(tmp_path):
    release = released(Plain(), tmp_path)
    assert KEY not in release.certificate
    assert words.mechanism(release.statement) == "plain (depth 3)"
    with pytest.raises(Unsupported, match="samples of plain were not found to hold; samples are for fixed and ind"):
        release.samples(2, 30)


def test_whoever_inherits_a_mechanism_has_not_its_check_of_samples():
    assert Words.of(Elsewhere).samples
    assert not Words.of(Plain).samples
    assert with_samples() == ["fixed", "independent"]


def test_certificates_say_no_more_of_the_mechanisms_here_than_before(tmp_path):
    release = released(Independent(), tmp_path)
    assert KEY not in release.certificate
    assert words_of(release.statement) == Words(samples=True)
    for name in installed():
        paper = str(load(name).paper)
        found = words_of(statement(mechanism={"name": name}))
        assert found == Words(load(name).label, paper, samples=name in {"fixed", "independent"})
        assert bool(paper) == (name not in {"fixed", "independent", "linked", "pooled"})


@pytest.mark.parametrize("entry", [{"label": False, "paper": True, "samples": "yes"}, {}])
def test_words_that_are_none_are_passed_over(entry):
    certificate = CertificateRecord(record(mechanism={"name": "gone", "settings": {}}, **{KEY: entry}))
    assert words_of(certificate.statement) == Words()
    assert words.mechanism(certificate.statement) == "gone"


def test_a_mechanism_that_cannot_be_imported_has_no_words(monkeypatch):
    def broken(name):
        raise RuntimeError("no such card")

    monkeypatch.setattr("stratsynth.mechanisms.registry.load", broken)
    assert words_of(statement(mechanism={"name": "mst"})) == Words()
