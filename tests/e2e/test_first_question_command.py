"""The first question by the commands: exit code 4, `--yes`, plans and ledgers."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from helpers import small
from helpers.command import stratsynth
from stratsynth.release.declared import MeasuredCount
from stratsynth.release.first import is_nearly_empty

SIZE = 20_000


def recipe(folder, sex=("1", "2"), **more):
    """The recipe of the small world, with a ledger and many more people, whose SEX is spelt like this."""
    path = small.write_recipe(folder)
    small.people(SIZE).assign(SEX=np.tile(sex, SIZE // 2)).to_csv(folder / "people.csv", index=False)
    small.edit(path, "declared_size = 100", f"declared_size = {SIZE}")
    lines = "".join(f"{key} = {value}\n" for key, value in {"ledger": '"people.ledger"', **more}.items())
    small.edit(path, "delta = 1e-9\n", f"delta = 1e-9\n{lines}")
    return path


def test_a_fit_of_unknown_spellings_ends_with_4_and_goes_on_by_yes(tmp_path):
    recipe(tmp_path, ("one", "two"))
    stopped = stratsynth("fit", "recipe.toml", cwd=tmp_path)
    assert stopped.returncode == 4
    assert stopped.stdout == ""
    assert "the fit stopped after its first question for 1 % of the budget" in stopped.stderr
    assert "are in SEX (" in stopped.stderr
    assert "--yes" in stopped.stderr
    assert not (tmp_path / "release").exists()
    again = stratsynth("fit", "recipe.toml", cwd=tmp_path)
    assert (again.returncode, again.stderr) == (4, stopped.stderr)
    shown = " ".join(stratsynth("ledger", "show", "people.ledger", cwd=tmp_path).stdout.split())
    assert "its first question alone: 0.00015 rho" in shown
    assert "epsilon 0.0916606 spent" in shown

    went_on = stratsynth("fit", "recipe.toml", "--yes", cwd=tmp_path)
    assert went_on.returncode == 4  # there is nearly nothing in it
    assert "A release with NOTHING IN IT was written" in went_on.stdout
    said = json.loads((tmp_path / "release" / "certificate.json").read_text(encoding="utf-8"))
    first = said["first_question"]
    assert str(MeasuredCount(first["usable"], first["noise_sd"])) in stopped.stderr
    assert said["ledger"]["spent_epsilon"] == pytest.approx(1)
    assert said["ledger"]["releases"] == 1
    assert stratsynth("verify", "release", "--ledger", "people.ledger", cwd=tmp_path).returncode == 0


def test_a_fit_of_the_right_file_asks_and_ends_with_0(tmp_path):
    recipe(tmp_path)
    plan = " ".join(stratsynth("plan", "recipe.toml", cwd=tmp_path).stdout.split())
    assert "for 1 % of the budget (rho 0.00015)" in plan
    assert "fewer than 10,000 are usable, by the upper 99.9% bound" in plan
    found = json.loads(stratsynth("plan", "recipe.toml", "--json", cwd=tmp_path).stdout)
    assert found["first"]["asked"]
    done = stratsynth("fit", "recipe.toml", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)["certificate"]
    assert abs(said["first_question"]["usable"] - SIZE) < 2000
    assert found["first"]["noise_sd"] == said["first_question"]["noise_sd"]
    assert found["spent"] == pytest.approx(sum(said["charges"][i]["rho"] for i in (0, 1)), rel=1e-6)


def test_0_switches_it_off_and_plan_and_certificate_say_so(tmp_path):
    recipe(tmp_path, ("one", "two"), first=0)
    assert "no first question is asked: switched off" in stratsynth("plan", "recipe.toml", cwd=tmp_path).stdout
    done = stratsynth("fit", "recipe.toml", cwd=tmp_path)
    assert done.returncode == 4  # the release is empty, and its budget is spent
    said = json.loads((tmp_path / "release" / "certificate.json").read_text(encoding="utf-8"))
    assert said["first_question"] == {"asked": False, "why": "switched off: [budget] first = 0"}
    assert {charge["kind"] for charge in said["charges"]} == {"counts"}


@pytest.mark.parametrize("share", [-0.1, 0.6, "true"])
def test_a_share_that_is_none_is_refused(share, tmp_path):
    recipe(tmp_path, first=share)
    refused = stratsynth("fit", "recipe.toml", cwd=tmp_path)
    assert refused.returncode == 2
    assert "first" in refused.stderr
    assert not (tmp_path / "people.ledger").exists()


def test_so_few_people_that_noise_may_hide_them_are_no_empty_release():
    """A small recipe ends with 0, whatever the noise makes of its people."""

    def stated(measured, sd, declared=100.0):
        entry = SimpleNamespace(stratum="", declared=declared, measured=measured, noise_sd=sd)
        return SimpleNamespace(first_question=None, declared_and_measured=(entry,))

    assert not is_nearly_empty(stated(-60.0, 30.0))
    assert not is_nearly_empty(stated(0.0, 1.0, None))
    assert is_nearly_empty(stated(5.0, 1.0))
    assert not is_nearly_empty(stated(8.0, 1.0))
