"""Trusted base listed in docs/privacy.md, by modules."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("_trusted", ROOT / "scripts" / "_trusted.py")
script = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(script)


class Module(NamedTuple):
    """A listed module."""

    name: str
    """Dotted, with `.__init__` of packages."""
    path: str
    part: str
    file: str


def modules() -> list[Module]:
    """Return all listed modules."""
    text = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
    return [
        Module("stratsynth." + each.file.removesuffix(".py").replace("/", "."), *each)
        for each in script.listed(text, ROOT / "stratsynth")
    ]


def home(name: str, known: Mapping[str, Module]) -> Module | None:
    """The listed module that a dotted name is of, or is in."""
    parts = name.split(".")
    for end in range(len(parts), 1, -1):
        dotted = ".".join(parts[:end])
        for module in (dotted, f"{dotted}.__init__"):
            if module in known:
                return known[module]
    return None
