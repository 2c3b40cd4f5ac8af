"""The stages of a fit one by one: what each may have done to ledger and rows when it is over."""

import pytest

from helpers import small
from helpers.fits import OnStep
from helpers.ledgers import BUDGET, kinds, ladder, table
from stratsynth.driver.private import PrivateAnswers
from stratsynth.errors import MechanismError, UsageError
from stratsynth.fitting import Fit, FitOptions, Observer, fitted
from stratsynth.recipes.recipe import Recipe, RecipeOptions

RUNGS = 6
DONE = ["ledger", "reserve", *["charge"] * RUNGS, "done"]


@pytest.fixture
def closed(monkeypatch):
    """State of the ledger whenever answers are closed."""
    found, close = [], PrivateAnswers.close
    monkeypatch.setattr(PrivateAnswers, "close", lambda self: found.append(self) or close(self))
    return found


def test_each_stage_does_its_part_and_no_other_one_s(data, ledger, reads, closed, tmp_path):
    heard = []

    class Told(Observer):
        def rehearsed(self, rehearsal):
            heard.append(rehearsal.moments)
            assert rehearsal.seconds > 0
            assert not ledger.exists()

        def step(self):
            heard.append("step")

    told = Told()
    fit = Fit.prepare(ladder(), table(data), BUDGET, FitOptions(seed=3))
    fit.rehearse(told)
    assert heard == [RUNGS]
    assert not ledger.exists()
    with fit.reserve(told, tmp_path / "release") as reserved:
        assert kinds(ledger) == ["ledger", "reserve"]
        assert reads == []
        model = fit.run(reserved)
        assert kinds(ledger) == DONE[:-1]
        assert heard == [RUNGS, *["step"] * RUNGS]
        assert closed == [reserved.answers], "closed when the program has ended"
        release = fit.certify(model, reserved)
        assert len(release.certificate["charges"]) == RUNGS
        assert kinds(ledger) == DONE[:-1], "done when the block has ended well, and no sooner"
    assert kinds(ledger) == DONE


def test_a_fit_whose_release_could_not_be_saved_goes_on_without_a_charge(data, ledger):
    with pytest.raises(OSError, match="no room"), fitted(ladder(), table(data), BUDGET):
        raise OSError("no room")
    assert kinds(ledger) == DONE[:-1]
    with fitted(ladder(), table(data), BUDGET) as release:
        assert release.certificate["ledger"]["releases"] == 1
    assert kinds(ledger) == DONE


def test_a_program_that_fails_leaves_no_answers_open_and_its_charges_stand(data, ledger, closed):
    class Lost(Exception):
        """Raised by a watcher."""

    steps = iter(range(2))

    def lose():
        if next(steps, None) is None:
            raise Lost

    with pytest.raises(Lost), fitted(ladder(), table(data), BUDGET, observer=OnStep(lose)):
        pytest.fail("there is no release")
    assert kinds(ledger) == ["ledger", "reserve", *["charge"] * 3]
    assert len(set(map(id, closed))) == 1


def test_a_folder_that_exists_is_refused_before_a_new_reservation_and_not_for_a_resumed_fit(data, ledger, tmp_path):
    (tmp_path / "taken").mkdir()
    fit = Fit.prepare(ladder(), table(data), BUDGET)
    with pytest.raises(UsageError, match="exists already"), fit.reserve(folder=tmp_path / "taken"):
        pytest.fail("nothing is reserved")
    assert "reserve" not in kinds(ledger)
    with pytest.raises(KeyError), fit.reserve(folder=tmp_path / "free"):
        raise KeyError
    with fit.reserve(folder=tmp_path / "taken") as reserved:
        fit.run(reserved)
    assert kinds(ledger) == DONE


def test_seeded_answers_are_never_those_of_a_private_fit(data):
    from stratsynth.noise import SeededEntropy, SystemEntropy

    class Watched(SystemEntropy):
        """Whatever inherits the system's entropy is another source."""

    fits = [
        Fit.prepare(ladder(), table(data), BUDGET, FitOptions(entropy=source))
        for source in (None, SystemEntropy(), SeededEntropy(1), Watched())
    ]
    private, system, seeded, other = (fit.request.identity for fit in fits)
    assert private == system
    assert seeded == other != private


def test_what_a_program_returns_must_be_a_model(data, ledger):
    class Silent(type(ladder())):
        def steps(self, public, allot, rng):
            yield from super().steps(public, allot, rng)

    silent = Silent(RUNGS)
    object.__setattr__(silent, "stop", None)
    with pytest.raises(MechanismError, match="returned NoneType"), fitted(silent, table(data), BUDGET):
        pytest.fail("there is no release")
    assert kinds(ledger) == DONE[:-1]


def test_what_a_command_says_holds_in_place_of_what_the_recipe_says(tmp_path):
    options = RecipeOptions(seed=1, workers=2)
    assert options.over(workers=None, new_account=None) == options
    assert options.over(workers="dask", new_account="why") == RecipeOptions(seed=1, workers="dask", new_account="why")
    recipe = small.write_recipe(tmp_path)
    small.edit(recipe, "seed = 7\n", "seed = 7\nworkers = 2\n")
    assert Recipe.read(recipe).options == RecipeOptions(seed=7, workers=2)
