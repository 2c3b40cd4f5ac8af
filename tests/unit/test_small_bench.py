"""The bench of small budgets: what it takes back is taken back for a fit alone, and every way is measured."""

import numpy as np
import pytest

from benches import small
from stratsynth.mechanisms import make


@pytest.mark.parametrize("way", small.BACK)
def test_what_is_taken_back_is_there_again_after_the_fit(way):
    make("mst", {})  # loads the modules
    back = small.BACK[way]
    before = {(name, key): getattr(small._module(name), key) for name, some in back.items() for key in some}

    def fails():
        with small.replaced(back):
            new = [(getattr(small._module(n), key), value) for n, some in back.items() for key, value in some.items()]
            assert all(one is other for one, other in new)
            raise ArithmeticError  # as a fit may

    with pytest.raises(ArithmeticError):
        fails()
    assert {at: getattr(small._module(at[0]), at[1]) for at in before} == before


def test_changes_are_against_mst_by_the_same_seeds(monkeypatch):
    def error(frame, schema, mechanism, epsilon, seed, back):
        return (2.0 if back or mechanism.name != "mst" else 1.0) * (seed + 1)

    monkeypatch.setattr(small, "_error", error)
    figures = {figure.name.split(": ")[1]: figure for figure in small._compared("made up", None, None, 0.1, 3)}
    assert set(figures) == {*small.BACK, "  no pull to independent columns", "independent", "aim"}
    assert figures["mst"].value == 2
    assert figures["mst"].against == ""
    assert figures["aim"].against == f"{100 * np.log(2):+.1f} % of mst as it is"
