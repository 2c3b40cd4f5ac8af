"""One harness for all studies: arguments, refusals, a folder for tables and pictures, and the words that are printed.

A package of studies declares itself in its `__init__`, as a `Study` with its arguments; its module `reproduce` has a
function `run`, which takes them by name and returns what was found. Before arguments are read nothing but Python's own
library is imported, so that `--help` needs no environment.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Found:
    """The results of a study."""

    text: str
    """The words and tables that are printed."""
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """Tables by name; each becomes a CSV file where a folder is named."""
    pictures: Mapping[str, Callable[[Path], None]] = field(default_factory=dict)
    """Functions, by name, that draw into a file; each becomes a PNG file beside the tables."""

    def write(self, folder: Path) -> None:
        """All tables and pictures, in a new folder."""
        folder.mkdir(parents=True)
        for name, table in self.tables.items():
            table.to_csv(folder / f"{name}.csv", index=False)
        for name, draw in self.pictures.items():
            draw(folder / f"{name}.png")


@dataclass(frozen=True)
class Argument:
    """One argument of a study."""

    flag: str
    settings: Mapping[str, Any]
    """Keywords of `argparse`."""
    least: int | None = None
    """The smallest value of a number."""
    exclusive: bool = False
    """Arguments that exclude each other: at most one of them is given."""

    @property
    def name(self) -> str:
        """The keyword by which `run` takes it."""
        return self.flag.removeprefix("--")


def file(flag: str, text: str) -> Argument:
    """A file that a reader brings; it must be there."""
    return Argument(flag, {"metavar": "FILE", "type": Path, "help": text})


def count(flag: str, usual: int | None, text: str, *, least: int = 1) -> Argument:
    """A whole number, whose text names the usual one."""
    return Argument(flag, {"metavar": "N", "type": int, "default": usual, "help": text}, least)


def switch(flag: str, text: str, *, exclusive: bool = False) -> Argument:
    """On where it is given."""
    return Argument(flag, {"action": "store_true", "help": text}, exclusive=exclusive)


@dataclass(frozen=True)
class Study:
    """Experiments of one paper, done again by `scripts/reproduce_NAME`."""

    name: str
    """Name of the package `studies.NAME`, whose module `reproduce` runs the study."""
    description: str
    arguments: tuple[Argument, ...]
    """Arguments other than `--out`."""
    out: str
    """Help of `--out`."""
    resumes: bool = False
    """True if `--out` is a folder that `run` writes and another run goes on with; else it is a new folder."""

    def main(self, arguments: list[str] | None = None) -> int:
        """Run all experiments, print the results, and write them into a folder if one is named.

        Returns:
            The exit code: that of the error where something was refused, which is told in a line.
        """
        given = vars(self.parser().parse_args(arguments))
        from stratsynth.errors import StratsynthError

        try:
            self._check(given)
            text = self._run(given)
        except StratsynthError as error:
            sys.stderr.write(f"reproduce_{self.name}: {error}\n")
            return error.exit_code
        sys.stdout.write(text + "\n")
        return 0

    def parser(self) -> argparse.ArgumentParser:
        """The parser of all arguments."""
        parser = argparse.ArgumentParser(prog=f"scripts/reproduce_{self.name}", description=self.description)
        exclusive: Any = None  # argparse has no help of an empty group
        for argument in self.arguments:
            if argument.exclusive:
                exclusive = exclusive or parser.add_mutually_exclusive_group()
            (exclusive if argument.exclusive else parser).add_argument(argument.flag, **argument.settings)
        parser.add_argument("--out", metavar="DIR", type=Path, help=self.out)
        return parser

    def _check(self, given: Mapping[str, Any]) -> None:
        from stratsynth.errors import UsageError

        for argument in self.arguments:
            value = given[argument.name]
            if argument.least is not None and value is not None and value < argument.least:
                raise UsageError(f"{argument.flag} is a whole number of at least {argument.least}.")
            if isinstance(value, Path) and not value.is_file():
                raise UsageError(f"there is no file {value}.")
        if given["out"] is not None and not self.resumes and given["out"].exists():
            raise UsageError(f"{given['out']} exists already; name a new folder with --out.")

    def _run(self, given: dict[str, Any]) -> str:
        """The text to print, once tables and pictures are written."""
        wanted = given if self.resumes else {key: value for key, value in given.items() if key != "out"}
        found: Found = import_module(f"studies.{self.name}.reproduce").run(**wanted)
        if given["out"] is not None and not self.resumes:
            found.write(given["out"])
        return found.text
