"""Prices that the suite keeps are those that dp-accounting computes."""

from helpers.kept_prices import kept, made_by, write
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
    assert sampled._epsilon(*STEPS, 0.0) == accountant.get_epsilon(delta)
    assert "accountant.compose" in made_by()
    assert "dp-accounting 0" in made_by()
