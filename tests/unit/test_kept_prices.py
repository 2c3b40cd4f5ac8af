"""Prices that the suite keeps are those that dp-accounting computes."""

import platform
from pathlib import Path

import pytest

from helpers.kept_prices import kept, made_by, ship, shipped, write
from stratsynth.accounting import sampled
from stratsynth.accounting.budget import Neighbours

STEPS = (20.0, 0.5, 2, 1e-6, Neighbours.ADD_REMOVE)


def test_a_price_is_computed_once_and_comes_back_to_the_last_bit(tmp_path):
    asked = []

    def computed(*arguments):
        asked.append(arguments)
        return len(asked) / 3

    assert kept(computed, tmp_path, "a")(*STEPS) == 1 / 3
    assert list(tmp_path.iterdir()) == []  # a fit writes no files
    write()
    assert kept(computed, tmp_path, "a")(*STEPS) == 1 / 3
    assert kept(computed, tmp_path, "a")(21.0, *STEPS[1:]) == 2 / 3
    assert kept(computed, tmp_path, "other code")(*STEPS) == 1
    write()
    assert len(asked) == 3 == len(list(tmp_path.iterdir()))


def test_what_the_suite_keeps_is_what_would_be_computed(tmp_path):
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    noise, rate, steps, delta, _ = STEPS
    accountant = PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    accountant.compose(dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise)), steps)
    # to the last bit but for another kind of processor's
    assert sampled._epsilon(*STEPS, 0.0) == pytest.approx(accountant.get_epsilon(delta), rel=1e-9)
    assert "accountant.compose" in made_by()
    assert "dp-accounting 0" in made_by()
    code = Path(sampled.__file__).read_text(encoding="utf-8")
    for other, same in (
        (f'"""Otherwise."""\n# A comment.\n{code}', True),
        (code.replace("1 - 1e-9", "1 - 1e-8"), False),
    ):
        (tmp_path / "sampled.py").write_text(other, encoding="utf-8")
        assert (made_by(str(tmp_path / "sampled.py")) == made_by()) == same


def test_prices_that_come_with_the_tests_are_taken_by_their_digest_and_computed_anew_when_told(tmp_path, monkeypatch):
    one, two, file = tmp_path / "one", tmp_path / "two", tmp_path / "prices.txt"
    for folder in (one, two):
        folder.mkdir()
        kept(lambda *_: 0.1, folder, "code")(*STEPS)
        kept(lambda *_: 0.2, folder, "code")(str(folder))
        write()
    ship([one, two], file)  # what both runs asked for
    known = shipped(file)
    assert list(known.values()) == [0.1]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert kept(lambda *_: 0.3, empty, "code", known)(*STEPS) == 0.1
    assert kept(lambda *_: 0.3, empty, "other code", known)(*STEPS) == 0.3
    assert kept(lambda *_: 0.1, empty, "code", known, anew=True)(*STEPS) == 0.1
    write()
    for path in empty.iterdir():
        path.unlink()
    with pytest.raises(AssertionError, match=r"0\.1 is not the price 0\.3"):
        kept(lambda *_: 0.3, empty, "code", known, anew=True)(*STEPS)
    write()
    monkeypatch.setattr(platform, "machine", lambda: "another")
    assert shipped(file) == {}
