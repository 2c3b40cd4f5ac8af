"""Malformed words of every command: one or two lines and an exit code, and nothing charged for what is refused."""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
from functools import partial
from typing import TYPE_CHECKING

from fuzzing import world
from fuzzing.harness import Outcomes
from stratsynth import StratsynthError, cli

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = (
    "query rows --columns AGE --by SEX --statistic rate",
    "query rows --columns AGE --where SEX=1 --versus SEX=2 --level .9 --json",
    "certificate rows",
    "certificate rows --registry --name x --curator y",
    "cite rows --format apa",
    "verify rows --ledger people.ledger --json",
    "fit recipe.toml --out out2",
    "plan recipe.toml --json",
    "sample rows -n 10 --out s.csv --where SEX=1 --seed 3",
    "sample rows -n 10 --out s.parquet --balance SEX",
    "sample rows --by-group shares.csv --out s.csv",
    "predict predicts people.csv --out p.csv --keep SEX",
    "mechanisms --json",
    "compare recipe.toml --out c",
    "evaluate rows --real people.csv --out e --by SEX --marginals-only --json",
    "evaluate rows --real people.csv --out e --target WORK --positive yes",
    "means recipe.toml --json",
    "schema draft people.csv --out d.toml",
    "schema check people.csv --schema schema.toml --json",
    "ledger show people.ledger --json",
    "ledger name people.ledger persons",
    "ledger correct people.ledger people.csv --reason changed",
    "weights measured rows --out m",
    "check recipe.toml --json",
    "census tasks",
    "weights shares people.csv --schema schema.toml --by SEX --out sh.csv",
    "weights sensitivity rows --threshold .1 --column AGE --off .1",
    "census schema --year 2018 --out cs.toml --task ACSEmployment --state NY",
    "census load --state NY --year 2018 --out ny.parquet --from .",
    "census shares --from people.csv --by SEX --year 2018 --out sh.csv",
    "census check people.csv --schema schema.toml --year 2018",
    "lens recipe.toml --out l --by SEX --repeats 2",
)
WORDS = (
    *(
        "",
        "-1",
        "0",
        "1e999",
        "nan",
        "x",
        "--",
        "--help",
        "--json",
        "-n",
        "a=b",
        "SEX=",
        "=1",
        "SEX=3",
        "AGE>5",
        "SEX,SEX",
    ),
    *(
        "a\tb",
        "\ud800",
        "..",
        "/",
        ".",
        "nowhere/at/all",
        "people.csv",
        "rows",
        "recipe.toml",
        "schema.toml",
        "\n",
        "é",
    ),
    *("people.ledger", "x" * 300, "2018", "ZZ", "rows/certificate.json", "/dev/null", "/dev/full", "--out", "--seed"),
    *("99999999999999999999", "fifo"),
)


class Untyped(Exception):
    """The command met an error that is none of ours."""


def fuzz(folder: Path, cases: int, seed: int) -> Outcomes:
    """Run each command with one to three words replaced, left out or added; return the outcomes."""
    rng, outcomes = random.Random(seed), Outcomes()  # noqa: S311 - cases, no noise # nosec B311
    (folder / "made").mkdir()
    sound = world.place(folder / "made")
    before = (sound / "people.ledger").read_bytes()
    for number in range(cases):
        place = folder / "case"
        shutil.copytree(sound, place)
        os.mkfifo(place / "fifo")
        words = _changed(COMMANDS[number % len(COMMANDS)].split(), rng)
        with contextlib.chdir(place):
            outcomes.case(" ".join(words), partial(_run, words), partial(_charged, place, before))
        shutil.rmtree(place)
    return outcomes


def _changed(words: list[str], rng: random.Random) -> list[str]:
    """Return the words of a command with one to three changes behind its name."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(1, len(words) + 1)
        how = rng.randrange(3)
        words = words[:at] + ([rng.choice(WORDS)] if how else []) + words[at + (how < 2) :]
    return words


def _charged(place: Path, before: bytes) -> bool:
    """True if the ledger holds more charges than before."""
    return (place / "people.ledger").read_bytes().count(b'"kind":"charge"') > before.count(b'"kind":"charge"')


def _run(words: list[str]) -> None:
    """Run a command; raise a refusal as one of ours, and Untyped for an error that the command names by its class."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        code = cli.run(words)
    text = said.getvalue()
    if "With --debug" in text or "Traceback" in text:
        raise Untyped(text.strip()[:200])
    if code not in (0, 1, 2, 3, 4, 130):
        raise Untyped(f"exit code {code}")
    if code:
        raise StratsynthError(text)
