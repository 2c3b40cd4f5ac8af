"""Noise comes from the operating system, whatever else is seeded or broken."""

import os
import random
from pathlib import Path

import numpy as np
import pytest

from helpers import small
from helpers.command import python
from stratsynth import fit
from stratsynth.noise import SeededEntropy
from stratsynth.release.page.summary import summary

FIT = """
import random
import numpy as np
random.seed(0); np.random.seed(0)
from helpers import small
release = small.small_release(seed=0)
print(release.measurements["value"].to_pylist())
"""


def test_two_runs_with_every_seed_fixed_differ_in_their_noise(tmp_path):
    folder = Path(small.__file__).parents[1]
    paths = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": paths}
    one, other = (python(FIT, cwd=tmp_path, env=env) for _ in range(2))
    assert one.returncode == other.returncode == 0, one.stderr
    assert len(one.stdout) > 20
    assert one.stdout != other.stdout


def test_two_fits_with_the_same_seed_differ_in_their_noise():
    assert not small.small_release(seed=0).measurements.equals(small.small_release(seed=0).measurements)


def test_global_generators_are_not_needed(monkeypatch):
    """Nor touched: each of their functions raises."""

    def forbidden(*arguments, **settings):
        pytest.fail("global randomness was used")

    for module in (random, np.random):
        state = getattr(module, "_inst", None) or np.random.mtrand._rand
        for name in dir(state):
            if not name.startswith("_") and callable(getattr(module, name, None)):
                monkeypatch.setattr(module, name, forbidden)
    small.small_release().sample(20)


def test_seeded_noise_is_the_same_again_and_stamped():
    one, other = (
        fit(small.stratified(), small.table(), small.BUDGET, seed=1, entropy=SeededEntropy(5)) for _ in range(2)
    )
    assert one.measurements.equals(other.measurements)
    assert one.certificate["private"] is False
    assert "NOT PRIVATE" in one.certificate["warning"]


def test_the_stamp_is_in_the_summary_too():
    release = fit(small.stratified(), small.table(), small.BUDGET, entropy=SeededEntropy(5))
    assert "NOT PRIVATE" in summary(release.certificate).splitlines()[0]
    assert "NOT PRIVATE" not in summary(small.small_release().certificate)
