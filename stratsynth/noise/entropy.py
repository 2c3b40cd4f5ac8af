"""Sources of random bits: the only module that reads randomness for noise, choices and samples.

Every sampler of this package takes an `Entropy` and does exact integer work on its uniform bits. There is no
global switch: noise can be seeded only by passing `SeededEntropy`, whose `private` flag is False, and whose
releases are stamped NOT PRIVATE.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

_CHUNK = 1 << 16


class Entropy(ABC):
    """A source of independent uniform bits: subclasses define how to read bytes, and all draws derive from those."""

    private: ClassVar[bool]
    """True if the bits are unpredictable. A release made with False must be stamped NOT PRIVATE."""

    @abstractmethod
    def read(self, count: int) -> bytes:
        """Return `count` uniform random bytes, never returned before and never kept."""

    @final
    def uniform8(self, count: int) -> NDArray[np.uint8]:
        """Return an array of `count` independent uniform 8-bit integers."""
        return np.frombuffer(self.read(count), dtype=np.uint8)

    @final
    def uniform16(self, count: int) -> NDArray[np.uint16]:
        """Return an array of `count` independent uniform 16-bit integers."""
        return np.frombuffer(self.read(2 * count), dtype=np.uint16)

    @final
    def uniform64(self, count: int) -> NDArray[np.uint64]:
        """Return an array of `count` independent uniform 64-bit integers."""
        return np.frombuffer(self.read(8 * count), dtype=np.uint64)

    @final
    def bits(self, count: int) -> int:
        """Return a uniform integer of `count` bits, that is in [0, 2^count)."""
        size = (count + 7) // 8
        return int.from_bytes(self.read(size), "little") >> (8 * size - count)


@final
class SystemEntropy(Entropy):
    """The operating system's cryptographic generator.

    Each call goes to the kernel and nothing is buffered, so a forked child never repeats its parent's noise.
    """

    private = True

    def read(self, count: int) -> bytes:
        """Return `count` random bytes of the operating system (os.urandom)."""
        return os.urandom(count)


@final
class SeededEntropy(Entropy):
    """NOT PRIVATE: noise that anyone who knows the seed can subtract. For tests and demonstrations only."""

    private = False

    def __init__(self, seed: int) -> None:
        """Start the stream of pseudo-random bytes that belongs to `seed`."""
        self._generator = np.random.Generator(np.random.PCG64(seed))

    def read(self, count: int) -> bytes:
        """Return the next `count` bytes of the seeded stream: not private."""
        return self._generator.bytes(count)


SYSTEM = SystemEntropy()
"""Source of bits of every sampler that is given no other."""


def chunks(count: int) -> Iterator[slice]:
    """Cut range(count) into slices of at most 2^16, small enough for the cache: samplers work on one at a time."""
    for start in range(0, count, _CHUNK):
        yield slice(start, min(start + _CHUNK, count))
