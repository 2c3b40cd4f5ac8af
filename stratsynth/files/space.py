"""Room for arrays of rows: the memory of the process, or what gives out arrays as it does."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from stratsynth.errors import StratsynthError


class NoRoomError(StratsynthError):
    """The disk has no room for a working copy of the rows."""


class Space(Protocol):
    """What gives out arrays."""

    @property
    def lasting(self) -> bool:
        """Whether arrays are in memory, where what is worked out from them may be kept beside them."""

    def empty(self, dtype: DTypeLike, size: int) -> NDArray[Any]:
        """An array to be filled."""

    def touched(self, size: int) -> None:
        """So many bytes of the arrays have been gone through: a moment to give memory back."""


class Heap:
    """The memory of the process."""

    lasting = True

    def empty(self, dtype: DTypeLike, size: int) -> NDArray[Any]:
        """As numpy makes it."""
        return np.empty(size, dtype)

    def touched(self, size: int) -> None:
        """Memory that holds rows cannot be given back."""
