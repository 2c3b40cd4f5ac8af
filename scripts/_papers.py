"""The page docs/papers.md, made from one file a paper in scripts/papers/: `scripts/docs --papers` writes it.

A file names its paper as `stratsynth.papers` does, its study, and how many algorithms, figures and tables the paper
has; and it has one [[item]] for everything in the paper that can be used or repeated:

    kind = "formula"                     # algorithm, formula, measure, data or figure
    name = "Theorem 9, error with Dirichlet shares"
    where = ["studies.means.theory:expected_log_sizes"]       # code; without it the item is left out
    run = "scripts/reproduce_means"      # a command or a test, which repeats it
    found = "..."                        # its outcome, with its setting
    but = "..."                          # deviations; of an item that is left out, the reason

tests/unit/test_papers_page.py checks that code, commands and tests are there, that each item has what it needs, and
that the page is the one that these files make.
"""

from __future__ import annotations

import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FILES = ROOT / "scripts" / "papers"
PAGE = ROOT / "docs" / "papers.md"
ORDER = ("stratification", "tailoring", "lens", "reductions", "fermi")
"""Names of the files, in the order of the page."""
KINDS = {
    "algorithm": "Algorithms",
    "formula": "Theorems and formulas",
    "measure": "Measures",
    "data": "Data",
    "figure": "Figures, tables and experiments",
}
HEAD = """---
hide: [navigation]
---

# Five papers, item by item

<!-- Made by scripts/docs --papers from scripts/papers/: change those files, not this page. -->

The project began with five papers on privacy and groups. This page has a line for every algorithm, theorem with a
usable formula, measure, data set, figure and table of each of them: where it is here, what repeats it, and what came
out where the privacy budget is the one that is stated. What is left out has a line too, with the reason. Theorems that
only serve the proof of another one, definitions of differential privacy itself, and lemmas of other authors have none.

Modules `studies.NAME` are the laboratory, `scripts/studies/`, which is not installed; all others are below
`stratsynth.`. Paths of tests are for `scripts/test`. Figures are those of one run, of simulated people unless a file is
named; noise is fresh in every run. Slips of the papers that are corrected stand in the modules' docstrings too.
"""
COLUMNS = "| in the paper | here | repeated by | what came out, and what differs |\n|---|---|---|---|"


@dataclass(frozen=True, kw_only=True)
class Item:
    """One thing in a paper, and its place here."""

    kind: str
    name: str
    where: list[str] = field(default_factory=list)
    """Code as `module:name`; none if it is left out."""
    run: str = ""
    """A command, or a test as `tests/...::name`, by which it is repeated."""
    found: str = ""
    """The outcome, with its setting."""
    but: str = ""
    """Deviations, or why it is left out."""


@dataclass(frozen=True)
class Paper:
    """A file of scripts/papers/."""

    key: str
    """Name of the paper in `stratsynth.papers`."""
    study: list[str]
    """The commands that run its experiments."""
    counts: dict[str, int]
    """Numbers of numbered algorithms, figures and tables of the paper, by the word before the number."""
    items: list[Item]

    @classmethod
    def read(cls, name: str) -> Paper:
        """The paper of one file; an unknown key is an error."""
        document: dict[str, Any] = tomllib.loads((FILES / f"{name}.toml").read_text(encoding="utf-8"))
        items = [Item(**item) for item in document.pop("item")]
        return cls(**document, items=items)


def every() -> list[Paper]:
    """All papers, in the order of the page."""
    return [Paper.read(name) for name in ORDER]


def line(item: Item) -> str:
    """One line of a table."""
    code = ", ".join(f"`{place.removeprefix('stratsynth.')}`" for place in item.where) or "–"
    run = f"`{item.run}`" if item.run else "–"
    words = " ".join(part for part in (item.found, item.but) if part)
    return f"| {item.name} | {code} | {run} | {words} |"


def page() -> str:
    """The whole page."""
    from stratsynth import papers  # imports Python's own library alone

    parts = [HEAD]
    for paper in every():
        reference = getattr(papers, paper.key)
        title = f"[{reference.title}]({reference.link})" if reference.link else reference.title
        people = ", ".join(name.partition(",")[0] for name in reference.authors) or "Anonymous, under review"
        studies = " and ".join(f"`{command}`" for command in paper.study)
        parts.append(f"## {reference.title}\n\n{people}: {title}. Its experiments: {studies}.\n")
        for kind, heading in KINDS.items():
            lines = [line(item) for item in paper.items if item.kind == kind]
            if lines:
                parts.append("\n".join([f"**{heading}**\n", COLUMNS, *lines]) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    PAGE.write_text(page(), encoding="utf-8")
