"""The bench of priors: its targets, its pairs of files, and rungs that end with a bias."""

import pandas as pd
import pytest

from benches import ladder


class Stub:
    name = "made up"

    def __init__(self, none, prior):
        self.errors = {False: none, True: prior}

    def fitted(self, kind, epsilon, seed, *, prior):
        return self.errors[prior] + seed


@pytest.mark.parametrize(
    ("none", "prior", "alone", "most", "reached"),
    [
        (1.0, 0.95, 1.9, 0.9, False),  # both are near, so that the prior has to bring a tenth
        (1.0, 0.89, 1.9, 0.9, True),
        (1.0, 1.02, 2.1, 1.03, True),  # a wrong prior may cost little
        (1.0, 1.04, 2.1, 1.03, False),
        (1.0, 0.42, 0.4, 0.412, False),  # and one may not do worse than the prior as it is
    ],
)
def test_a_prior_is_held_against_the_better_of_none_and_itself(none, prior, alone, most, reached):
    plain, with_it = ladder.compared(Stub(none, prior), "aim", 1.0, 1, alone)
    assert (plain.value, with_it.value, with_it.reached) == (none, prior, reached)
    assert with_it.against.startswith(f"at most {most:.3g};")


def test_differences_are_paired_by_seed():
    _, with_it = ladder.compared(Stub(1.0, 1.5), "aim", 1.0, 3, 9.0)
    assert with_it.value == 2.5
    assert "difference to none +0.5000 +- 0.0000" in with_it.against


def test_files_are_read_in_pairs_and_have_the_levels_of_both(tmp_path):
    private, public = tmp_path / "a.csv", tmp_path / "b.parquet"
    pd.DataFrame({"x": [0, 10, 2], "y": [1, 1, 0], "z": [0, 0, 0]}).to_csv(private, index=False)
    pd.DataFrame({"x": [3, 2], "y": [0, 1], "z": [0, 1]}).to_parquet(public)
    (rung,) = ladder._pairs([str(private), str(public)])
    assert rung.schema.levels("x") == ("0", "2", "3", "10")
    assert rung.error(rung.frame) == 0
    assert rung.error(rung.public) == pytest.approx(2.0)
    assert rung.by == ()
    with pytest.raises(ValueError, match="shorter"):
        ladder._pairs([str(private)])


def test_rungs_of_the_census_end_with_a_bias(monkeypatch):
    monkeypatch.setattr(ladder, "ROWS", 2_000)
    rungs = list(ladder._census())
    assert [len(rung.public) for rung in rungs] == [200] * len(ladder.BIASES)
    assert rungs[-1].error(rungs[-1].public) > 1.1 * rungs[0].error(rungs[0].public)
