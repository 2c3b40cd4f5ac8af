"""The largest epsilon that an account still affords: it is granted, nearly no more is, and every refusal names it."""

import json
import re

import pytest

import stratsynth as ss
from helpers import small
from helpers.ledgers import kinds, lines_of, recipe_on_a_ledger, table
from stratsynth import Budget, cli
from stratsynth.accounting.history import read_ledger
from stratsynth.accounting.standing import largest, rule
from stratsynth.accounting.totals import total
from stratsynth.accounting.units import per_unit
from stratsynth.adapters import ClippedMean, Independent
from stratsynth.errors import BudgetRefused

D = 1e-9


def zcdp(epsilon, delta=D, rows=1):
    return per_unit(Budget(epsilon, delta, unit="record" if rows == 1 else "WHO", rows=rows).zcdp())


@pytest.mark.parametrize("cap", [0.3, 1.0, 1.5, 3.0, 40.0])
@pytest.mark.parametrize("spent", [[], [1.0], [0.1] * 5, [0.29, 0.01]])
@pytest.mark.parametrize("delta", [D, 1e-12])
@pytest.mark.parametrize("rows", [1, 3])
def test_what_is_said_to_fit_fits_and_little_more_does(cap, spent, delta, rows):
    reserved = [zcdp(epsilon, rows=rows) for epsilon in spent]
    found = largest(cap, reserved, zcdp(0.01, delta, rows), D)
    slack = cap * (1 + 1e-9)
    if found:
        assert total([*reserved, zcdp(found, delta, rows)], D) <= slack
        assert len(f"{found:.12g}".replace(".", "").strip("0")) <= 4, found
    more = max(found * 1.002, 1e-3)
    assert found == 25 or total([*reserved, zcdp(more, delta, rows)], D) > slack


def test_pure_epsilon_adds_up_as_itself():
    reserved = [Budget(0.5, D).pure()]
    assert largest(1.5, reserved, Budget(0.1, D).pure(), D) == pytest.approx(1.0)
    assert largest(0.5, reserved, Budget(0.1, D).pure(), D) == 0


def test_a_refusal_names_the_largest_that_fits_and_how_epsilons_add_up(data, ledger):
    for epsilon in (1, 1):
        ss.fit(Independent(), table(data, cap=1.5), Budget(epsilon, D))
    before = lines_of(ledger)
    with pytest.raises(BudgetRefused, match=r"asked epsilon 0\.4, remaining 0\.06\d+ of 1\.5") as refused:
        ss.fit(Independent(), table(data, cap=1.5), Budget(0.4, D))
    said = str(refused.value)
    assert "Epsilon 1 and epsilon 1 make epsilon 1.44 here, because noise adds up in rho (zCDP)" in said
    assert lines_of(ledger) == before
    (most,) = re.findall(r"largest epsilon that fits now is ([0-9.]+), at delta 1e-09\.", said)
    with pytest.raises(BudgetRefused):
        ss.fit(Independent(), table(data, cap=1.5), Budget(float(most) + 0.001, D))
    ss.fit(Independent(), table(data, cap=1.5), Budget(float(most), D))
    assert kinds(ledger).count("reserve") == 3


def test_when_nothing_fits_it_says_so():
    people = ss.open_table(small.people(), schema=small.SCHEMA, declared_size=small.SIZE, ledger_epsilon=1.0)
    ss.fit(ClippedMean(columns=["AGE"]), people, Budget(1, D))
    with pytest.raises(BudgetRefused, match="Nothing more fits"):
        ss.fit(ClippedMean(columns=["AGE"]), people, Budget(0.1, D))


def test_the_rule_is_computed_at_the_delta():
    assert "make epsilon 1.44 here" in rule(1e-9)
    assert f"make epsilon {total([zcdp(1, 1e-3)] * 2, 1e-3):.3g} here" in rule(1e-3)


def test_ledger_show_says_it_in_words_and_in_json(data, ledger, capsys):
    ss.fit(Independent(), table(data, cap=1.5), Budget(1, D))
    assert cli.run(["ledger", "show", str(ledger)]) == 0
    said = capsys.readouterr().out
    found = read_ledger(ledger)
    assert f"The largest epsilon that one more fit can ask for at delta 1e-09 is {found['largest_epsilon']:g}." in said
    assert found["rule"] in " ".join(said.split())
    assert cli.run(["ledger", "show", str(ledger), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["largest_epsilon"] == found["largest_epsilon"]
    ss.fit(Independent(), table(data, cap=1.5), Budget(found["largest_epsilon"], D))


def planned(recipe, capsys):
    assert cli.run(["plan", str(recipe)]) == 0
    text = capsys.readouterr().out
    assert cli.run(["plan", str(recipe), "--json"]) == 0
    return text, json.loads(capsys.readouterr().out)["account"]


def test_a_plan_reads_the_ledger_and_not_the_data(tmp_path, capsys):
    recipe = recipe_on_a_ledger(tmp_path)
    small.edit(recipe, 'ledger = "people.ledger"\n', 'ledger = "people.ledger"\nledger_epsilon = 1.5\n')
    text, account = planned(recipe, capsys)
    assert "epsilon 0 spent, of 1.5, 1.5 left; this fit would make it 1" in text
    assert not (tmp_path / "people.ledger").exists()
    assert cli.run(["fit", str(recipe)]) == 0
    capsys.readouterr()
    (tmp_path / "people.csv").unlink()
    text, account = planned(recipe, capsys)
    assert "REFUSED" not in text
    assert account["granted"]
    assert account["after_epsilon"] == pytest.approx(1.437, abs=1e-3)
    small.edit(recipe, "epsilon = 1.0", "epsilon = 1.2")
    text, account = planned(recipe, capsys)
    assert "REFUSED: fit would refuse it before reading" in text
    assert f"the largest epsilon that fits now is {account['largest_epsilon']:g}" in text
    assert not account["granted"]
    assert "because noise adds up in rho" in " ".join(text.split())


def test_a_plan_knows_the_fit_that_it_would_go_on_with(tmp_path, capsys):
    from stratsynth.fitting import fitted
    from stratsynth.recipes.recipe import Recipe

    recipe = recipe_on_a_ledger(tmp_path)
    read = Recipe.read(recipe)
    with pytest.raises(KeyError, match="killed"), fitted(read.prepared, read.table(), read.budget(), read.options):
        raise KeyError("killed")
    assert "this run continues an interrupted fit" in planned(recipe, capsys)[0]


def test_a_plan_without_a_ledger_says_nothing_of_one(tmp_path, capsys):
    text, account = planned(small.write_recipe(tmp_path), capsys)
    assert account is None
    assert "Account" not in text
