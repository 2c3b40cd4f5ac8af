"""The words of the code: no class name twice, no name that says nothing, no docstring that has to be decoded.

A docstring names the classes that go in and come out, and every parameter.
"""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from helpers.docstrings import Classes, documented, plain, says

ROOT = Path(__file__).parents[2]
FILES = sorted(path for folder in ("stratsynth", "adapters", "evaluation") for path in (ROOT / folder).rglob("*.py"))
OTHERS = [path for folder in ("scripts", "tests") for path in (ROOT / folder).rglob("*.py")]
"""Files of the laboratory, of scripts and of tests."""
NAMES = {
    "alike",
    "around",
    "bent",
    "elsewhere",
    "found",
    "given",
    "held",
    "likened",
    "moved",
    "said",
    "same",
    "seen",
    "told",
    "whole",
}
"""Words that name neither what a function returns nor what it does."""
OPENINGS = re.compile(
    r"(INTERNAL\. )?(What|Whether|How|Why|That of|That|Those|These|The same|As|So|Who|Which|Whoever|Whatever|Where|"
    r"They|Their|Its|It|Of|By|From|With|For|At|In|Between|Some|Everything|Nothing)\b"
)
"""Beginnings of a docstring that leave its noun to be guessed."""
SKIPPED = 40
"""The most `fmt: skip` in product, laboratory and tests together."""
UNNAMED, UNSPOKEN = 30, 30
"""The most functions whose docstrings leave out a class of what goes in or comes out, and a parameter."""
EXAMPLE = '''
class Answer: ...
class NoisyAnswer(Answer): ...
class Schema:
    def again(self, other: "Schema") -> "Schema":
        """Return a copy."""
def one(answers: list[NoisyAnswer], schema: Schema | None = None, *, declared_size: int) -> dict[str, Answer]:
    """{text}"""
'''


def definitions(tree):
    return [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)]


def docstrings(tree):
    """Every text that stands as a statement: docstrings of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        for item in node.body if isinstance(getattr(node, "body", None), list) else ():
            if (
                isinstance(item, ast.Expr)
                and isinstance(item.value, ast.Constant)
                and isinstance(item.value.value, str)
            ):
                yield item.value.value


def opening(text):
    return " ".join(text.split()[:5])


@pytest.fixture(scope="module")
def trees():
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in FILES}


def test_no_two_public_classes_have_one_name(trees):
    places = defaultdict(set)
    for file, tree in trees.items():
        for node in definitions(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(file)
    assert {name: sorted(files) for name, files in places.items() if len(files) > 1} == {}


def test_names_say_something(trees):
    found = [(file, n.name) for file, tree in trees.items() for n in definitions(tree) if n.name.strip("_") in NAMES]
    assert found == []


def test_docstrings_open_with_their_noun_or_verb(trees):
    found = {
        file: left
        for file, tree in trees.items()
        if (left := {opening(text) for text in docstrings(tree) if OPENINGS.match(text)})
    }
    assert found == {}


def test_heads_of_tests_and_scripts_do_too():
    heads = {path.name: path.read_text(encoding="utf-8").partition('"""')[2] for path in OTHERS}
    assert [name for name, head in heads.items() if OPENINGS.match(head)] == []


def test_lines_kept_from_the_formatter_do_not_become_more():
    assert sum(path.read_text(encoding="utf-8").count("# fmt: " + "skip") for path in [*FILES, *OTHERS]) <= SKIPPED


@pytest.mark.parametrize("text", ["What it is.", "Whether it holds.", "INTERNAL. How it was made.", "Of a table."])
def test_an_opening_that_leaves_its_noun_to_be_guessed_is_found(text):
    assert OPENINGS.match(text)


def left(trees, wanted):
    return [
        f"{file}: {function.name}: {', '.join(found)}"
        for file, tree in sorted(trees.items())
        for function in documented(tree)
        if (found := wanted(function))
    ]


def test_docstrings_name_the_classes_of_arguments_and_results(trees):
    found = left(trees, Classes(trees).missing)
    assert len(found) <= UNNAMED, "\n".join(found)


def test_docstrings_name_every_parameter(trees):
    found = left(trees, Classes(trees).unspoken)
    assert len(found) <= UNSPOKEN, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "missing", "unspoken"),
    [
        ("Return each `Answer` by each `NoisyAnswer` and the `Schema` for the declared size.", [], []),
        ("Return the noisy answers of a schema's columns, by text, for that size.", [], []),
        ("Return answers, by a schema, for `declared_size` records.", [], []),
        ("Return the noisy answer of a column.", ["Schema"], ["schema", "declared_size"]),
        ("Return noise.", ["NoisyAnswer", "Schema", "Answer"], ["answers", "schema", "declared_size"]),
    ],
)
def test_a_class_or_parameter_that_is_left_out_is_found(text, missing, unspoken):
    tree = ast.parse(EXAMPLE.replace("{text}", text))
    own = Classes({"example.py": tree})
    again, one = documented(tree)
    assert (own.missing(again), own.unspoken(again)) == ([], [])
    assert (own.missing(one), own.unspoken(one)) == (missing, unspoken)


def test_words_of_a_name_are_found_side_by_side():
    assert plain("DPFermiProblem") == ["dp", "fermi", "problem"]
    assert says("two measured\n    tables", plain("MeasuredTable"))
    assert says("the strata of a table", plain("Stratum"))
    assert not says("a table that was measured", plain("MeasuredTable"))
