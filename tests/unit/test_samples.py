"""Several synthetic tables whose spread carries the noise, and estimates put together from them."""

import math

import numpy as np
import pytest

from helpers import small
from stratsynth import Budget, Stratified, Weights, fit, open_table
from stratsynth.adapters import MST, Fixed, Independent
from stratsynth.adapters.engine.redrawn import SURER
from stratsynth.adapters.shared.known import LAST_SURER
from stratsynth.answers import combine
from stratsynth.errors import Unsupported, UsageError
from stratsynth.noise import SeededEntropy
from stratsynth.release.samples import redrawn

pytestmark = pytest.mark.usefixtures("seeded_noise")


def test_combine_is_rubins_rule_for_synthetic_tables():
    found = combine([1.0, 3.0], [0.5, 1.5], size=2, level=0.9)
    noise, total = 1.5 * 2.0, 1.5 * 2.0 + 2 * 1.0
    assert (found.estimate, found.noise_sd, found.sd) == pytest.approx((2, math.sqrt(noise), math.sqrt(total)))
    assert found.freedom == pytest.approx((total / noise) ** 2)
    assert found.high - 2 == pytest.approx(2 - found.low)
    assert (found.high - 2) / found.sd > 1.645  # wider than a normal law's
    assert combine([1.0, 1.0], [1.0, 1.0]).high == pytest.approx(1 + 1.96, abs=1e-3)


@pytest.mark.parametrize(
    ("estimates", "variances", "settings"),
    [
        ([1.0], [1.0], {}),
        ([1.0, 2.0], [1.0], {}),
        ([1.0, math.nan], [1.0, 1.0], {}),
        ([1.0, 2.0], [1.0, -1.0], {}),
        ([1.0, 2.0], [1.0, 1.0], {"size": 0}),
        ([1.0, 2.0], [1.0, 1.0], {"level": 1}),
    ],
)
def test_combine_refuses_what_is_no_estimate(estimates, variances, settings):
    with pytest.raises(UsageError, match="combine"):
        combine(estimates, variances, **settings)


@pytest.mark.parametrize("how", [Independent(), Fixed(tables=[["WORK", "GROUP"], ["AGE"]])], ids=["one", "fixed"])
def test_samples_spread_as_the_noise_does(how):
    """A published share's own deviation is that of its table's noise; so is that of a share among large samples."""
    table = open_table(small.people(3_000), schema=small.SCHEMA, declared_size=3_000)
    release = fit(how, table, Budget(0.5, 1e-9))
    made = release.samples(30, 30_000, seed=1)
    shares = np.array([(one.WORK == "no").mean() for one in made])  # no cell is empty: nothing is cut off
    (sd,) = release.query(["WORK"], statistic="share").set_index("WORK").loc[["no"], "noise_sd"]
    assert 0.7 * sd < shares.std(ddof=1) < 1.4 * math.hypot(sd, math.sqrt(0.25 / 30_000))


def test_samples_of_strata_keep_their_weights_and_come_again_with_their_seed():
    release = small.clear_release()
    made, again = release.samples(3, 200, seed=4), release.samples(3, 200, seed=4)
    assert all(one.equals(other) for one, other in zip(made, again, strict=True))
    assert not made[0].equals(made[1])
    for one in made:
        assert one.groupby(["SEX", "GROUP"]).size().to_dict() == {("1", "a"): 80, ("1", "b"): 20, ("2", "a"): 100}


WEIGHTED = {
    "independent": Independent(),
    "fixed": Fixed(tables=[["WORK", "GROUP"], ["AGE"]]),
    "fixed, all groups": Fixed(tables=[["WORK", "SEX", "GROUP"], ["AGE", "WORK"]]),
}


@pytest.mark.parametrize("how", WEIGHTED.values(), ids=WEIGHTED)
def test_samples_by_public_shares_spread_as_other_noise_does(how):
    """Samples vary as the fit does when it is made again; groups' shares stay unchanged."""
    weights = small.even(small.SCHEMA, "SEX", "GROUP")
    table = open_table(small.people(3_000), schema=small.SCHEMA, declared_size=3_000)
    fits = [fit(how, table, Budget(0.5, 1e-9), weights=weights, entropy=SeededEntropy(i)) for i in range(25)]
    works = {"WORK": frozenset({small.SCHEMA.index("WORK", "no")})}
    again = redrawn(fits[0].table_model, fits[0], 25, np.random.default_rng(3))
    wanted, found = (
        np.std([model.mass(works) for model in some], ddof=1) for some in ([one.table_model for one in fits], again)
    )
    assert 0.55 < found / wanted < 1.8  # both are of 25
    made = fits[0].samples(2, 400, seed=1)
    assert not made[0].equals(made[1])
    assert made[0].groupby(["SEX", "GROUP"]).size().eq(100).all()


def test_public_shares_count_as_in_the_first_fit():
    assert SURER == LAST_SURER


def test_the_noise_of_everybody_is_common_to_the_groups_that_a_model_is_taken_apart_by():
    table = open_table(small.people(3_000), schema=small.SCHEMA, declared_size=3_000)
    how = Fixed(tables=[["AGE"], ["WORK"]])  # which say nothing of SEX: its groups have the same rates
    release = fit(how, table, Budget(0.1, 1e-9), weights=small.even(small.SCHEMA, "SEX"))
    for model in redrawn(release.table_model, release, 5, np.random.default_rng(3)):
        one, other = (part.oneway("WORK") for part in model.parts.values())
        assert one == pytest.approx(other, abs=1e-6)
        assert one != pytest.approx(release.table_model.oneway("WORK"), abs=1e-6)


def test_samples_are_refused_where_their_intervals_were_not_found_to_hold():
    with pytest.raises(Unsupported, match="of mst were not found to hold"):
        fit(MST(), small.table(), small.BUDGET).samples(3)
    private = Stratified(Independent(), ["SEX"], Weights.private(share=0.1))
    with pytest.raises(Unsupported, match="private weights"):
        fit(private, small.table(), small.BUDGET).samples(3)
    with pytest.raises(UsageError, match="samples: m"):
        fit(Independent(), small.table(), small.BUDGET).samples(1)
