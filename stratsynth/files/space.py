"""Storage for arrays of rows: the memory of the process, or a file that is mapped."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from stratsynth.errors import StratsynthError


class NoRoomError(StratsynthError):
    """The disk has no room for a working copy of the rows."""


class Space(Protocol):
    """An allocator of arrays."""

    @property
    def lasting(self) -> bool:
        """True if arrays are in memory, so that results computed from them may be cached beside them."""

    def empty(self, dtype: DTypeLike, size: int) -> NDArray[Any]:
        """Return a one-dimensional array of `size` entries of type `dtype`, to be filled."""

    def touched(self, size: int) -> None:
        """Note that `size` bytes of the arrays were read or written: an opportunity to free memory."""


class Heap:
    """An allocator of arrays in the memory of the process."""

    lasting = True

    def empty(self, dtype: DTypeLike, size: int) -> NDArray[Any]:
        """Return a one-dimensional array of `size` entries of type `dtype` in memory, not initialised."""
        return np.empty(size, dtype)

    def touched(self, size: int) -> None:
        """Do nothing for `size` bytes read or written: memory that holds rows cannot be freed."""
