"""The list of planted bugs keeps up with the code: every one can be planted, and every known failure has one."""

import ast
import functools
from collections import Counter
from pathlib import Path

import pytest

from mutants import run
from mutants.run import ROOT, listed, mutants, wanted

MUTANTS = mutants()


@functools.cache
def functions(path: Path) -> set[str]:
    """The names of the tests in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_names_are_unique():
    assert [name for name, times in Counter(m.name for m in MUTANTS).items() if times > 1] == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_a_mutant_can_be_planted_and_its_tests_exist(mutant):
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    planted = mutant.planted(text)
    assert planted != text
    assert not mutant.file.endswith(".py") or ast.parse(planted)
    assert mutant.what
    assert mutant.tests
    assert set(mutant.finding) <= set(listed("failures"))
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert name.split("::")[-1].partition("[")[0] in functions(ROOT / file), test


def test_what_needs_an_extra_is_marked_so_and_skipped_where_that_is_not_installed(monkeypatch):
    needy = [m for m in MUTANTS if m.needs is not None]
    assert needy
    for mutant in needy:
        for test in mutant.tests:
            text = (ROOT / test.partition("::")[0]).read_text(encoding="utf-8")
            assert f"pytest.mark.{mutant.needs}" in text or f"from helpers.{mutant.needs} import MARKS" in text, test
    assert wanted([], needy[0].needs) == [m for m in needy if m.needs == needy[0].needs]
    assert wanted([needy[0].name]) == [needy[0]]
    said = []
    monkeypatch.setattr(run, "find_spec", lambda _: None)
    monkeypatch.setattr(run, "say", said.append)
    assert run.main([needy[0].name]) == 0
    told = f"skipped, as {needy[0].needs} is not installed; scripts/mutants --with {needy[0].needs} runs it"
    assert said == [f"{needy[0].name}: {told}", "0 of 0 caught, 1 skipped"]


def test_every_known_failure_has_a_mutant_or_a_reason():
    covered = {finding for m in MUTANTS for finding in m.finding}
    exempt = listed("exempt")
    assert [f"{key}: {what}" for key, what in listed("failures").items() if key not in covered | set(exempt)] == []
    assert set(exempt) <= set(listed("failures"))
    assert set(exempt) & covered == set()
    assert all(exempt.values())
