"""The exact samplers, decided bit by bit: exponentials, coins, choices, the wide Gaussian's rejection."""

import math
import random
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

from stratsynth.errors import Unsupported
from stratsynth.noise import WeightCache, exponential_choice, gaussian, laplace, poisson_coins
from stratsynth.noise.bernoulli import Bounds, decay, exp_bounds, flips, settle
from stratsynth.noise.choice import _borders_passed, _weights
from stratsynth.noise.entropy import Entropy, SeededEntropy
from stratsynth.noise.gaussian import _blocks, _propose, _split
from stratsynth.noise.laplace import _odds

mpmath = pytest.importorskip("mpmath")


class Script(Entropy):
    """Feeds given bytes, and then zeros, ones or seeded bytes for ever."""

    private = False

    def __init__(self, words: Iterable[bytes], then: Entropy | int = 0) -> None:
        self.words = b"".join(words)
        self.then = then

    def read(self, count: int) -> bytes:
        out, self.words = self.words[:count], self.words[count:]
        missing = count - len(out)
        return out + (bytes([self.then]) * missing if isinstance(self.then, int) else self.then.read(missing))


def real(value: Fraction):
    return mpmath.mpf(value.numerator) / value.denominator


def test_exp_bounds_enclose_the_exponential_within_two_units():
    rng = random.Random(3)
    cases = [(0, 1), (1, 10**30), (1, 3), (710, 1), (10**6, 7), (10**40, 1), (1, 1 << 1100)]
    cases += [(rng.getrandbits(rng.randrange(1, 300)), rng.getrandbits(200) + 1) for _ in range(100)]
    for p, q in cases:
        for bits in (1, 16, 80, 192, 320, 3000):
            lo, hi = exp_bounds(p, q, bits)
            with mpmath.workdps(1100):
                true = mpmath.exp(-mpmath.mpf(p) / q) * mpmath.mpf(2) ** bits
                assert lo <= true <= hi, (p, q, bits)
            assert 0 <= lo <= hi <= min(lo + 2, 1 << bits)


COINS: dict[str, tuple[Bounds, Fraction | None]] = {
    "dyadic": (lambda b: ((5 << b) >> 4, (5 << b) >> 4), Fraction(5, 16)),
    "third": (lambda b: ((1 << b) // 3, (1 << b) // 3 + 1), Fraction(1, 3)),
    "exp(-0.7)": (decay(Fraction(7, 10)), None),
    "exp(-300)": (decay(Fraction(300)), None),
    "odds exp(-2)": (_odds(Fraction(2)), None),
}


def check_coins(toss: Callable[[int, Entropy], Any], p: Any) -> None:
    """Heads for all first bytes, then for all words after the byte that p begins with, are the reals below p.

    Each is followed by the smallest and by the largest reals that continue it.
    """
    first = int(p * 2**8)
    after = int(p * 2**24) - (first << 16)
    every = np.arange(256, dtype=np.uint8).tobytes(), np.arange(1 << 16, dtype=np.uint16).tobytes()
    assert toss(256, Script([every[0]], then=0xFF)).sum() == first
    assert toss(256, Script([every[0]], then=0)).sum() == first + (p * 2**8 != first)
    if p * 2**8 == first:  # decided by the byte alone
        return
    same = bytes([first]) * (1 << 16)
    assert toss(1 << 16, Script([same, every[1]], then=0xFF)).sum() == after
    assert toss(1 << 16, Script([same, every[1]], then=0)).sum() == after + (p * 2**24 != (first << 16) + after)


@pytest.mark.parametrize("name", COINS)
def test_a_coin_is_heads_exactly_for_the_reals_below_its_probability(name: str):
    bounds, known = COINS[name]
    with mpmath.workdps(80):
        e = {"exp(-0.7)": mpmath.exp(-mpmath.mpf(7) / 10), "exp(-300)": mpmath.exp(-300)}
        e["odds exp(-2)"] = 1 / (1 + mpmath.exp(2))
        p = real(known) if known is not None else e[name]
        check_coins(lambda count, entropy: flips(bounds, count, entropy), p)
        # The real number p itself, cut after 80 bits, and its two neighbours.
        near = int(mpmath.floor(p * 2**80))
        for u in (near - 1, near, near + 1):
            if not 0 <= u < 1 << 80:
                continue
            for then in (0, 0xFF):
                tail = 0 if then == 0 else mpmath.mpf(1) - mpmath.mpf(2) ** -64
                heads = settle(bounds, u >> 64, 16, Script([(u & (1 << 64) - 1).to_bytes(8, "little")], then))
                assert heads == ((u + tail) / mpmath.mpf(2) ** 80 < p), (name, u - near, then)


def test_poisson_rates_zero_and_one_are_certain():
    assert not poisson_coins(100_000, 0).any()
    assert poisson_coins(100_000, 1.0).all()


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan"), float("inf")])
def test_rates_outside_the_unit_interval_are_refused(rate: float):
    with pytest.raises(ValueError, match="rate"):
        poisson_coins(3, rate)


@pytest.mark.parametrize("rate", [0.1, 0.5, 2.0**-8, 2.0**-16, 2.0**-24, 2.0**-30, 1 - 2.0**-53, 5e-324])
def test_a_float_rate_is_the_dyadic_number_it_stores(rate: float):
    check_coins(lambda count, entropy: poisson_coins(count, rate, entropy), Fraction(rate))


def shares(scores: list[int], epsilon: float):
    weights = [mpmath.exp(mpmath.mpf(epsilon) * (s - max(scores)) / 2) for s in scores]
    total = mpmath.fsum(weights)
    borders, running = [], mpmath.mpf(0)
    for w in weights[:-1]:
        running += w
        borders.append(running / total)
    return borders


def test_a_choice_counts_the_true_borders_at_or_below_its_uniform_number():
    rng = random.Random(11)
    with mpmath.workdps(250):
        for _ in range(60):
            scores = [rng.randrange(-40, 41) for _ in range(rng.randrange(1, 30))]
            epsilon = rng.choice([0.01, 0.3, 1.0, 4.0])
            borders = shares(scores, epsilon)
            trials = [rng.getrandbits(192) for _ in range(20)]
            trials += [min(max(int(mpmath.floor(b * 2**192)) + d, 0), 2**192 - 1) for b in borders for d in (-1, 0, 1)]
            for u in trials:
                later = rng.getrandbits(64)
                entropy = Script([u.to_bytes(24, "little"), later.to_bytes(8, "little")], SeededEntropy(1))
                at = (mpmath.mpf(u) + mpmath.mpf(later) / 2**64) / mpmath.mpf(2) ** 192
                assert exponential_choice(scores, epsilon, entropy) == sum(b <= at for b in borders)


@pytest.mark.parametrize("rate", [Fraction(1, 7), Fraction(3, 10**6), Fraction(1, 10**14), Fraction(2)], ids=str)
def test_weights_are_as_near_as_is_said(rate: Fraction):
    rng = random.Random(5)
    gaps = [0, 1, 63, 64, 65, 4095, 4096] + [rng.getrandbits(rng.randrange(1, 60)) for _ in range(40)]
    sums, off = _weights(gaps, rate, 192)
    with mpmath.workdps(120):
        true = mpmath.mpf(0)
        for gap, found in zip(gaps, sums, strict=True):
            true += mpmath.exp(-mpmath.mpf(rate.numerator) * gap / rate.denominator) * mpmath.mpf(2) ** 192
            assert abs(true - found) <= off
    assert off == 4 * max(gaps).bit_length() * len(gaps)


def test_borders_are_left_open_only_next_to_them():
    sums, off = _weights([0, 3, 9, 4], Fraction(1, 7), 192)
    border = (sums[0] << 192) // sums[-1]
    assert _borders_passed(sums, off, border - 1000 * off, 192) == (0, 0)
    assert _borders_passed(sums, off, border + 1000 * off, 192) == (1, 1)
    assert _borders_passed(sums, off, border, 192) == (0, 1)


def test_borders_are_judged_by_all_the_values_their_errors_allow():
    rng, bits = random.Random(4), 10
    for _ in range(2000):
        off = rng.randrange(1, 4)
        sums = list(accumulate(rng.randrange(30) for _ in range(4)))
        sums[-1] += 5 * off
        u = rng.randrange(1 << bits)
        low, high = Fraction(u, 1 << bits), Fraction(u + 1, 1 << bits)
        ranges = [(Fraction(s - off, sums[-1] + off), Fraction(s + off, sums[-1] - off)) for s in sums[:-1]]
        expected = sum(most <= low for _, most in ranges), sum(least < high for least, _ in ranges)
        assert _borders_passed(sums, off, u, bits) == expected


def test_hopeless_candidates_keep_a_positive_probability():
    # exp(-200) is below 2^-192: 192 zeros cannot exclude candidate 0, and 320 zeros choose it.
    scores, epsilon = [-400, 0, 1], 1.0
    chosen = exponential_choice(scores, epsilon, Script([bytes(24), bytes(16)], then=0xFF))
    assert chosen == 0
    assert exponential_choice(scores, epsilon, Script([bytes(24)], then=0xFF)) == 1
    assert exponential_choice(scores[::-1], epsilon, Script([b"\xff" * 48], then=0)) == 2


@pytest.mark.parametrize("gap", [10**9, 10**18, 10**40])
def test_extreme_scores_are_no_trouble(gap: int):
    assert exponential_choice([0, gap, -gap], 1.0) == 1
    assert exponential_choice([-gap] * 300 + [0], 1e-3) == 300
    assert exponential_choice([gap, gap - 1], Fraction(1, 10**50)) in (0, 1)
    assert exponential_choice([5], 1e6) == 0


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf")])
def test_a_choice_refuses_a_meaningless_epsilon(epsilon: float):
    with pytest.raises(ValueError, match="epsilon"):
        exponential_choice([1, 2], epsilon)


def test_a_choice_refuses_rounded_scores_and_empty_lists():
    with pytest.raises(TypeError):
        exponential_choice([1, 2.5], 1.0)  # type: ignore[list-item]
    with pytest.raises(ValueError, match="nothing"):
        exponential_choice([], 1.0)


@pytest.mark.parametrize("sigma", [1024.0, 1500.25, 1e6, 1e12, 2.0**50])
def test_a_wide_proposal_is_accepted_exactly_below_its_probability(sigma: float):
    shift, s = _split(sigma)
    table = _blocks(s).table
    assert (s * 2.0**shift, 512 <= s < 1024) == (sigma, True)
    rng = random.Random(2)
    inner = [*range(1, len(table.high), 1237), len(table.high)]
    with mpmath.workdps(60):
        for y in inner:
            u = (int(table.high[y - 1]) << 64) | int(table.low[y - 1])  # the first u that gives block y
            block = [
                (u >> 112).to_bytes(2, "little"),
                ((u >> 64 << 16) & (1 << 64) - 1).to_bytes(8, "little"),
            ]
            block += [(u & (1 << 64) - 1).to_bytes(8, "little")]
            for r in (0, (1 << shift) - 1, rng.getrandbits(shift)):
                x = (y << shift) + r
                p = mpmath.exp((mpmath.mpf(y << shift) ** 2 - mpmath.mpf(x) ** 2) / (2 * mpmath.mpf(sigma) ** 2))
                for coin in {0, 65535, *(min(max(0, int(p * 65536) + d), 65535) for d in (-2, -1, 0))}:
                    for sign, then in ((0, 0), (1, 0xFF)):
                        word = ((sign << 63) | (coin << 47) | r).to_bytes(8, "little")
                        value, accepted = _propose(sigma, 1, Script([*block, word], then))
                        top = mpmath.mpf(coin) + (0 if then == 0 else 1 - mpmath.mpf(2) ** -64)
                        assert value[0] == (-x if sign else x)
                        assert accepted[0] == (top / 65536 < p), (y, r, coin, then)


def test_minus_zero_is_drawn_again():
    sign = (1 << 63).to_bytes(8, "little")
    value, accepted = _propose(1500.25, 1, Script([bytes(2), sign]))
    assert (value[0], accepted[0]) == (0, False)


@pytest.mark.parametrize("bad", [0, -1.0, float("nan"), float("inf")])
def test_scales_must_be_positive_and_finite(bad: float):
    for sample in (gaussian.sample, laplace.sample):
        with pytest.raises(ValueError, match="positive and finite"):
            sample(bad, 3)
    with pytest.raises(ValueError, match="positive and finite"):
        gaussian.tv_error(bad)


def test_too_wide_is_refused_with_the_remedy():
    for sample in (gaussian.sample, laplace.sample):
        with pytest.raises(Unsupported, match="coarser"):
            sample(2.0**51, 3)


@pytest.mark.parametrize("shape", [0, 5, (2, 3), (), (0, 4)])
def test_the_shape_is_what_was_asked(shape: int | tuple[int, ...]):
    for drawn in (gaussian.sample(2.0, shape), gaussian.sample(3e5, shape), laplace.sample(2, shape)):
        assert drawn.dtype == np.int64
        assert drawn.shape == (shape if isinstance(shape, tuple) else (shape,))


def test_tiny_sigma_gives_zeros():
    assert not gaussian.sample(1e-3, 100_000).any()
    assert not gaussian.sample(5e-324, 1000).any()


def test_what_is_known_of_scores_changes_no_choice():
    """Some of the same scores, again and again, by two prices: as if nothing were known."""
    rng, known = random.Random(1), WeightCache()
    scores = [rng.randrange(3_000) for _ in range(40)]
    ours, theirs = SeededEntropy(3), SeededEntropy(3)
    for turn in range(60):
        some = rng.sample(scores, rng.randrange(1, 40))
        epsilon = (Fraction(1, 300), Fraction(1, 20))[turn % 7 == 0]
        assert exponential_choice(some, epsilon, ours, known) == exponential_choice(some, epsilon, theirs)


def test_weights_that_became_light_are_worked_out_anew():
    """The best of what is left has 2^-180 of the weight of the best before: 12 bits of 192 would be left."""
    known, rate = WeightCache(), Fraction(1)
    known.sums([0, 125, 124, 0], rate)
    sums, _ = known.sums([0, 0], rate)
    assert sums == [1 << 192, 2 << 192]
    known.sums([0, 125], rate)
    sums, off = known.sums([124, 125], rate)
    assert sums[1] - sums[0] == 1 << 192
    assert abs(sums[0] - (1 << 192) * math.exp(-1)) < off + 2.0**192 * 1e-15
