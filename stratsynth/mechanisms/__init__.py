"""The adapter interface, and the mechanisms that are installed."""

from stratsynth.mechanisms.contract import (
    Mechanism,
    Public,
    adaptive,
    demand,
    describe,
    draws_rows,
    title,
    typical,
)
from stratsynth.mechanisms.registry import GROUP, installed, load, make

__all__ = [
    "GROUP",
    "Mechanism",
    "Public",
    "adaptive",
    "demand",
    "describe",
    "draws_rows",
    "installed",
    "load",
    "make",
    "title",
    "typical",
]
