"""The table sampler: which bits lead to which value, for every prefix and at every tie."""

import random
from bisect import bisect_right
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from stratsynth.noise import gaussian
from stratsynth.noise.entropy import Entropy
from stratsynth.noise.gaussian import _blocks
from stratsynth.noise.table import SamplerTable

WORD = (1 << 64) - 1


class Scripted(Entropy):
    """Feeds one draw the 128 bits of a given u, in the order in which the table asks for them."""

    private = False

    def __init__(self, u: int) -> None:
        self.parts = [(u >> 112, 2), ((u >> 64 << 16) & WORD, 8), (u & WORD, 8)]
        self.reads = 0

    def read(self, count: int) -> bytes:
        word, size = self.parts[self.reads]
        assert size == count
        self.reads += 1
        return word.to_bytes(size, "little")


def thresholds(table: SamplerTable) -> list[int]:
    return [(int(h) << 64) | int(c) for h, c in zip(table.high, table.low, strict=True)]


TABLES = {
    "sigma 0.001": gaussian._table(0.001),
    "sigma 0.3": gaussian._table(0.3),
    "sigma 5.8": gaussian._table(5.8),
    "sigma 300": gaussian._table(300.0),
    "blocks": _blocks(777.7).table,
    "zero weights": SamplerTable.of(-3, [0, 0, 5, 0, 3, 0, 0], Fraction(0)),
    "dyadic": SamplerTable.of(0, [1] * 64, Fraction(0)),  # every threshold ends in 122 zero bits
    "one value": SamplerTable.of(7, [1], Fraction(0)),
    "all within one prefix": SamplerTable.of(0, [1 << 200, 1, 1, 1 << 80, 1 << 100], Fraction(0)),
    "one high word": SamplerTable.of(0, [1 << 70, *([1] * 30), 1 << 70], Fraction(0)),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_draw_counts_the_thresholds_at_or_below_its_128_bits(name: str):
    table = TABLES[name]
    borders = thresholds(table)
    assert borders == sorted(borders)
    top = (1 << 128) - 1
    rng = random.Random(5)
    near = [c + d for c in rng.sample(borders, min(400, len(borders))) for d in (-1, 0, 1)]
    spread = [rng.getrandbits(128) >> rng.choice((0, 0, 0, 20, 60)) for _ in range(300)]
    for u in (0, top, *(u for u in near if 0 <= u <= top), *spread):
        assert table.sample(1, Scripted(u))[0] == table.first + bisect_right(borders, u), hex(u)


def test_the_last_word_is_read_only_for_a_tie():
    table = TABLES["sigma 5.8"]
    border = thresholds(table)[len(table.high) // 2]
    reads = {}
    for name, u in {"tie": border, "near": border ^ (1 << 64), "far": border ^ (1 << 120)}.items():
        entropy = Scripted(u)
        table.sample(1, entropy)
        reads[name] = entropy.reads
    assert reads == {"tie": 3, "near": 2, "far": 1}


class EveryPrefix(Entropy):
    """Feeds each of the 65,536 prefixes once, and the same bits after each of them."""

    private = False

    def __init__(self, rest: bytes) -> None:
        self.rest = rest

    def read(self, count: int) -> bytes:
        if count == 2 << 16:
            return np.arange(1 << 16, dtype=np.uint16).tobytes()
        return self.rest * (count // 8)


@pytest.mark.parametrize(("rest", "low"), [(b"\0" * 8, 0), (b"\xff" * 8, (1 << 112) - 1)])
@pytest.mark.parametrize("name", TABLES)
def test_every_prefix(name: str, rest: bytes, low: int):
    table = TABLES[name]
    borders = thresholds(table)
    drawn = table.sample(1 << 16, EveryPrefix(rest))
    expected: NDArray[np.int64] = np.array(
        [bisect_right(borders, (prefix << 112) | low) for prefix in range(1 << 16)], dtype=np.int64
    )
    np.testing.assert_array_equal(drawn, table.first + expected)


def test_thresholds_are_the_rounded_down_shares():
    weights = [3, 0, 1, 7]
    assert thresholds(SamplerTable.of(0, weights, Fraction(0))) == [(s << 128) // 11 for s in (3, 3, 4)]


def test_the_error_is_never_rounded_down():
    stated = Fraction(1, 3**90)
    table = SamplerTable.of(0, [1, 1, 1], stated)
    assert Fraction(table.error) >= stated + Fraction(3, 1 << 129)


@pytest.mark.parametrize("weights", [[], [0, 0], [2, -1, 2]])
def test_weights_that_are_no_distribution_are_refused(weights: list[int]):
    with pytest.raises(ValueError, match="weights"):
        SamplerTable.of(0, weights, Fraction(0))
