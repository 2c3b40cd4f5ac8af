"""The bench of the exact curve: pairs of fits of one seed, and changes against zCDP."""

from benches import exact


def test_there_is_less_noise_and_changes_are_against_zcdp(monkeypatch):
    every = exact._cases
    monkeypatch.setattr(exact, "BUDGETS", exact.BUDGETS[:1])
    monkeypatch.setattr(exact, "_cases", lambda people: [next(every(people))])
    noise, error = exact.run(300, 1)
    assert noise.name == "independent, epsilon 1, delta 1e-09: noise"
    assert -5.2 < noise.value < -4
    assert error.name == "independent, epsilon 1, delta 1e-09: error"
    assert "in zCDP" in error.against
