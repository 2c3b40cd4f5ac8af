"""docs/privacy.md names code and tests; all of them exist, and its assumptions and links hold together."""

import ast
import importlib
import re
from functools import cache, reduce
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
CODE = sorted(set(re.findall(r"`(stratsynth(?:\.\w+)+:[\w.]+)`", TEXT)))
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py::\w+)`", TEXT)))


@cache
def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_it_names_code_and_tests():
    assert len(CODE) > 40
    assert len(TESTS) > 60
    spans = re.findall(r"`((?:stratsynth\.|tests/)[^`]*)`", TEXT)
    assert set(spans) - {*CODE, *TESTS} == {"tests/unit/test_privacy_argument.py", "tests/mutants/"}, (
        "a slip of the pen"
    )


@pytest.mark.parametrize("name", CODE)
def test_the_code_is_there(name):
    module, _, attributes = name.partition(":")
    assert reduce(getattr, attributes.split("."), importlib.import_module(module)) is not None


@pytest.mark.parametrize("name", TESTS)
def test_the_test_is_there(name):
    path, _, function = name.partition("::")
    assert function in functions(path)


def test_every_assumption_is_used_and_every_one_used_is_in_the_table():
    argument, table = TEXT.split("## Assumptions")
    listed = re.findall(r"^\| \*\*(P\d+)\*\* \|", table, flags=re.MULTILINE)
    assert listed == [f"P{i}" for i in range(1, len(listed) + 1)]
    body = argument.partition("## 1.")[2]
    assert set(re.findall(r"\*\*(P\d+)\*\*", body)) | {"P16"} == set(listed)


def test_every_link_leads_somewhere():
    headings = {
        re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-")
        for line in re.findall(r"^#+ (.+)$", TEXT, flags=re.MULTILINE)
    }
    links = re.findall(r"\]\(#([\w-]+)\)", TEXT)
    assert links
    assert set(links) <= headings
    assert "docs/privacy.md" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
