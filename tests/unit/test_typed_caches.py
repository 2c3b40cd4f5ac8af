"""Prices and shapes that are kept do not answer for a number of another type: True is not 1 there, nor 1.0."""

import pytest

from stratsynth.accounting import charges, sampled, zcdp
from stratsynth.accounting.budget import Neighbours
from stratsynth.questions.sums import design, fairness

CALLS = {
    "epsilon_of": (zcdp.epsilon_of, lambda one: (one, 1e-9)),
    "rho_of": (zcdp.rho_of, lambda one: (one, 1e-9)),
    "a sensitivity": (charges._priced, lambda one: (2, one, 2, 1)),
    "another price": (charges._priced, lambda one: (one, 2, 2, 1)),
    "steps on samples": (sampled._epsilon, lambda one: (4.0, 0.01, one, 1e-6, Neighbours.ADD_REMOVE, 0.0)),
    "blocks": (fairness._blocks, lambda one: (2, one, 1.0, 0)),
}


@pytest.mark.parametrize("what", CALLS)
def test_each_type_of_number_is_worked_out_by_itself(what):
    function, arguments = CALLS[what]
    function.cache_clear()
    for place, one in enumerate((1, 1.0, True), start=1):
        try:
            function(*arguments(one))
        except TypeError:  # what is no number there; nothing is kept of it
            continue
        finally:
            kept = function.cache_info()
        assert (kept.hits, kept.misses) == (0, place)
    function(*arguments(1))
    assert function.cache_info().hits == 1
    function.cache_clear()


def test_names_of_features_are_kept_by_type_too():
    assert design._names.cache_parameters()["typed"]
