"""Source of the bits: the operating system, never a seed, never twice; and integers throughout."""

import multiprocessing
import os
import subprocess
import sys

import numpy as np
import pytest

from stratsynth.noise import (
    SeededEntropy,
    SystemEntropy,
    exponential_choice,
    gaussian,
    laplace,
    poisson_coins,
)

SAMPLE_ALL = """
import random, numpy as np
np.random.seed(0); random.seed(0)
from stratsynth.noise import exponential_choice, gaussian, laplace, poisson_coins
print(gaussian.sample(5.8, 40).tolist(), gaussian.sample(1e9, 20).tolist(), laplace.sample(10, 40).tolist(),
      [exponential_choice([0] * 1000, 1.0) for _ in range(20)], poisson_coins(200, 0.5).tolist(), sep="\\n")
"""


def test_seeding_the_global_generators_changes_nothing():
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    runs = [
        subprocess.run(
            [sys.executable, "-c", SAMPLE_ALL], env=environment, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for _ in range(2)
    ]
    assert len(runs[0]) == 5
    assert all(a != b for a, b in zip(*runs, strict=True))


def test_numpy_random_is_never_used(monkeypatch: pytest.MonkeyPatch):
    def refuse(*args: object, **kwargs: object):
        raise AssertionError("noise must not come from np.random")

    for name in dir(np.random):
        if callable(getattr(np.random, name)) and not name.startswith("_"):
            monkeypatch.setattr(np.random, name, refuse)
    gaussian.sample(5.8, 1000)
    gaussian.sample(1e9, 1000)
    laplace.sample(10, 1000)
    poisson_coins(1000, 0.1)
    exponential_choice([1, 2, 3], 1.0)
    SystemEntropy().bits(10)
    with pytest.raises(AssertionError):
        SeededEntropy(1)


def in_a_child(_: int) -> tuple[bytes, list[int], list[int]]:
    return (
        SystemEntropy().read(160_000),
        gaussian.sample(1e12, 10_000).tolist(),
        laplace.sample(1e12, 100).tolist(),
    )


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_children_share_no_noise():
    gaussian.sample(1e12, 10)  # anything that could be buffered is now in the parent
    with multiprocessing.get_context("fork").Pool(8) as pool:
        children = pool.map(in_a_child, range(8), chunksize=1)
    windows = {raw[i : i + 16] for raw, _, _ in children for i in range(0, len(raw) - 15, 4)}
    assert len(windows) == 8 * (160_000 - 16 + 4) // 4
    for noise in (1, 2):
        values = [x for child in children for x in child[noise]]
        assert len(set(values)) > 0.999 * len(values)  # a few of 80,000 values of scale 1e12 may meet


def test_a_seed_repeats_and_says_that_it_is_not_private():
    assert SystemEntropy.private
    assert not SeededEntropy.private
    assert "NOT PRIVATE" in (SeededEntropy.__doc__ or "")
    for sample in (lambda e: gaussian.sample(5.8, 99, e), lambda e: laplace.sample(5, 99, e)):
        np.testing.assert_array_equal(sample(SeededEntropy(3)), sample(SeededEntropy(3)))
        assert (sample(SeededEntropy(3)) != sample(SeededEntropy(4))).any()


def precision_event(answer: np.ndarray) -> np.ndarray:
    """Happens to floats near zero only, so it tells a count of 0 from a count of 1."""
    return ((answer - 1.0) + 1.0) != answer


def test_the_precision_event_sees_floats_and_does_not_see_us():
    n = 1_000_000
    rng = np.random.default_rng(0)
    leak = [precision_event(count + rng.normal(size=n)).mean() for count in (0, 1)]
    assert leak[0] > 0.4  # negative control: floating point noise is caught
    assert leak[1] < 0.001
    for draw in (lambda: gaussian.sample(1.0, n), lambda: laplace.sample(1, n)):
        noise = draw()
        assert np.issubdtype(noise.dtype, np.integer)
        assert not any(precision_event((count + noise).astype(float)).any() for count in (0, 1))


def test_bits_fill_their_width():
    for width in (1, 7, 8, 64, 65, 192):
        drawn = [SystemEntropy().bits(width) for _ in range(400)]
        assert max(drawn).bit_length() == width
        assert len({d >> (width - 1) for d in drawn}) == 2
    assert SystemEntropy().bits(0) == 0
