"""Ledgers that attackers broke: deltas far apart, names that a reader splits, pipes in the place of files."""

import json
import os
from dataclasses import dataclass
from itertools import pairwise

import pytest

from helpers import small
from helpers.command import complaint, stratsynth
from stratsynth import Budget, fit, open_table
from stratsynth.accounting.budget import Allotment, Currency
from stratsynth.accounting.standing import readable
from stratsynth.accounting.totals import total
from stratsynth.adapters import Independent
from stratsynth.cli.work import plan_recipe
from stratsynth.digest import digest
from stratsynth.errors import LedgerError, StratsynthError, UsageError
from stratsynth.weights.private import PlannedShares

DELTAS = [1e-13, 1e-6, 1e-26, 1e-3, 1e-20]


def table(folder, **settings):
    path = folder / "people.csv"
    if not path.exists():
        small.people().to_csv(path, index=False)
    return open_table(path, schema=small.SCHEMA, declared_size=small.SIZE, ledger=folder / "people.ledger", **settings)


def written(folder, *lines):
    """A recipe with these lines at the end of [budget]."""
    recipe = small.write_recipe(folder)
    small.edit(recipe, "delta = 1e-9\n", "\n".join(["delta = 1e-9", *lines, ""]))
    return recipe


def test_fits_whose_deltas_differ_by_any_factor_have_a_finite_total(tmp_path):
    spent = []
    for delta in DELTAS:
        stated = fit(Independent(), table(tmp_path), Budget(epsilon=0.5, delta=delta)).certificate["ledger"]
        json.dumps(stated, allow_nan=False)
        spent.append(stated["spent_epsilon"])
    assert all(0 < one < other for one, other in pairwise(spent))


@pytest.mark.parametrize("order", [1, -1])
def test_without_a_ledger_too(order):
    frame = small.people()
    for delta in DELTAS[::order]:
        release = fit(Independent(), small.table(frame), Budget(epsilon=0.5, delta=delta))
        json.dumps(release.certificate, allow_nan=False)


def test_a_total_is_finite_at_the_delta_that_it_is_read_at():
    """Rho, pure epsilon and claims, deltas from 1e-100 to 0.1."""
    found = []
    for delta in (1e-100, 1e-16, 1e-9, 0.1):
        promise = Budget(1.0, delta)
        found += [promise.zcdp(), promise.pure(), Allotment(Currency.CLAIMED, 1.0, promise)]
    for delta in (1e-100, 1e-12, 1e-3):
        for cut in range(1, len(found) + 1):
            for some in (found[:cut], found[-cut:]):
                assert total(some, readable(some, delta)) < float("inf")
                assert readable(some, delta) >= delta or all(a.currency != Currency.ZCDP for a in some)


@pytest.mark.parametrize("name", ["by\u2028line", "next\u0085line", "caf\u00e9"])
def test_a_ledger_of_any_name_can_be_read_again(name, tmp_path):
    folder = tmp_path / name
    folder.mkdir()
    small.people().to_csv(tmp_path / "people.csv", index=False)

    def opened():
        return open_table(
            tmp_path / "people.csv", schema=small.SCHEMA, declared_size=small.SIZE, ledger=folder / "people.ledger"
        )

    for releases in (1, 2):
        assert fit(Independent(), opened(), small.BUDGET).certificate["ledger"]["releases"] == releases
    assert (tmp_path / "people.csv.accounts").read_bytes().isascii()


def test_a_list_of_accounts_as_0_3_0_wrote_it_is_read(tmp_path):
    small.people().to_csv(tmp_path / "people.csv", index=False)
    line = json.dumps({"ledger": "by\u2028line/people.ledger"}, ensure_ascii=False)
    (tmp_path / "people.csv.accounts").write_text(line + "\n", encoding="utf-8")
    with pytest.raises(UsageError, match="has an account already"):
        fit(Independent(), table(tmp_path), small.BUDGET)


@pytest.mark.parametrize("argument", ["account", "new_account"])
@pytest.mark.parametrize("text", ["x" * 201, "two\nlines", " ", 7])
def test_names_and_reasons_are_lines_of_text(argument, text, tmp_path):
    with pytest.raises(UsageError, match=f"{argument} must be a line of text, of at most 200 characters"):
        table(tmp_path, **{argument: text})
    assert not (tmp_path / "people.ledger").exists()


def test_a_list_of_accounts_that_could_not_be_read_again_is_not_written_and_nothing_is_reserved(tmp_path, monkeypatch):
    from stratsynth.accounting import registry

    monkeypatch.setattr(registry, "MOST_BYTES", 10)
    with pytest.raises(LedgerError, match="would be larger"):
        fit(Independent(), table(tmp_path), small.BUDGET)
    monkeypatch.undo()
    assert fit(Independent(), table(tmp_path), small.BUDGET).certificate["ledger"]["releases"] == 1


def test_a_damaged_list_of_accounts_is_seen_before_anything_is_reserved(tmp_path):
    fit(Independent(), table(tmp_path), small.BUDGET)
    (tmp_path / "people.csv.accounts").write_text("damaged\n", encoding="utf-8")
    before = (tmp_path / "people.ledger").read_bytes()
    with pytest.raises(LedgerError, match="damaged; restore it"):
        fit(Independent(), table(tmp_path), small.BUDGET)
    assert (tmp_path / "people.ledger").read_bytes() == before


@pytest.mark.parametrize("name", ["people.ledger", "people.csv.accounts"])
def test_a_pipe_in_the_place_of_a_file_is_refused_at_once(name, tmp_path):
    recipe = written(tmp_path, 'ledger = "people.ledger"')
    os.mkfifo(tmp_path / name)
    for command in (("plan", recipe), ("fit", recipe, "-o", "release")):
        done = stratsynth(*command, cwd=tmp_path)
        assert done.returncode in (1, 2)
        assert "not a file" in done.stderr or "not a regular file" in done.stderr


def test_a_ledger_whose_name_is_too_long_is_refused_by_plan_and_fit(tmp_path):
    recipe = written(tmp_path, f'ledger = "{"x" * 260}.ledger"')
    for command in (("plan", recipe), ("fit", recipe, "-o", "release")):
        assert "cannot be opened" in stratsynth(*command, cwd=tmp_path).stderr


@pytest.mark.parametrize("cap", ["0", "-1", "nan", "inf"])
def test_plan_refuses_a_cap_that_fit_refuses(cap, tmp_path):
    recipe = written(tmp_path, f'ledger = "people.ledger"\nledger_epsilon = {cap}')
    for command in (("plan", recipe), ("fit", recipe, "-o", "release")):
        assert "ledger_epsilon must be" in complaint(stratsynth(*command, cwd=tmp_path), 2)
    with pytest.raises(StratsynthError, match="ledger_epsilon must be"):
        plan_recipe(recipe, None)


@pytest.mark.parametrize("public", ["no", "False", 1.5, [0], 1, None])
def test_only_true_declares_data_public(public, tmp_path):
    with pytest.raises(UsageError, match="public must be true or false"):
        open_table(small.people(), schema=small.SCHEMA, declared_size=small.SIZE, public=public)


def test_a_class_that_has_another_name_now_has_the_digest_of_before():
    """Fits with private weights that 0.3.0 began are known by the name that it gave this class."""

    @dataclass(frozen=True)
    class Asked:
        share: float
        prior: object

    Asked.__qualname__ = "Asked"
    assert digest(PlannedShares(0.1, None)) == digest(Asked(0.1, None))
