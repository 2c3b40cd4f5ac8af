"""Pseudo-random numbers that are functions of the seed, the row and the variable alone.

They are computed in unsigned integers of 64 bits, which are exact on every machine, and not by numpy's own generators,
whose streams may change with numpy. So row i is the same person whatever else is made.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

BITS = 31
"""Bits of a draw, an integer below 2**31: thresholds from 0 to 2**31, both included, then fit in 32 bits."""

_STEP = 0x9E3779B97F4A7C15
_WORD = 2**64 - 1


def keys(seed: int, start: int, rows: int) -> NDArray[np.uint64]:
    """Return an array, a key for each of so many rows from number `start` on: distinct for distinct rows of a seed."""
    origin = _mix_one(seed + _STEP)
    numbers = np.arange(rows, dtype=np.uint64) * np.uint64(_STEP)  # wraps modulo 2**64, as intended
    numbers += np.uint64((origin + start * _STEP) & _WORD)
    return _mix(numbers)


def draws(keys: NDArray[np.uint64], name: str) -> NDArray[np.uint32]:
    """Return an array of uniform integers below 2**31, one for each entry of the array `keys`.

    Those of different names are independent.
    """
    salt = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    return (_mix(keys + np.uint64(salt)) >> np.uint64(64 - BITS)).astype(np.uint32)


def keys_of(keys: NDArray[np.uint64], name: str) -> NDArray[np.uint64]:
    """Return an array of new keys, one for each of `keys`: of something of that row that `name` tells apart."""
    salt = int.from_bytes(hashlib.sha256(f"key of {name}".encode()).digest()[:8], "little")
    return _mix(keys + np.uint64(salt))


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the array `z`, overwritten by SplitMix64's finalizer, one to one on 64 bits (Steele, Lea, Flood 2014)."""
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def _mix_one(z: int) -> int:
    return int(_mix(np.array([z & _WORD], np.uint64))[0])
