"""Every name of the package and every method of a release has an example on one page, which the suite runs."""

import re
from pathlib import Path

import pytest

import stratsynth as ss

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "examples.md"
"""The page: a heading for each name, with the Python of its example below it; tests/e2e/test_readme.py runs it."""
EXAMPLES = dict(
    re.findall(r"^### (\S+)\n\n```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
)
NAMES = [f"ss.{name}" for name in ss.__all__]
METHODS = [
    f"Release.{name}"
    for name in vars(ss.Release)
    if not name.startswith("_") and name not in ss.Release.__annotations__
]


def test_every_public_name_has_one_and_no_other_has():
    assert sorted(EXAMPLES) == sorted([*NAMES, *METHODS])


@pytest.mark.parametrize("name", [*NAMES, *METHODS])
def test_an_example_uses_its_name(name):
    written = name if name.startswith("ss.") else name.removeprefix("Release")
    assert re.search(rf"{re.escape(written)}\b", EXAMPLES[name])
