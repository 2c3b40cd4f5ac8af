"""The contract of mechanisms, the part of a fit that public facts decide, and the registry."""

from stratsynth.mechanisms.contract import UNDECLARED, Mechanism, Public, describe, once
from stratsynth.mechanisms.prepared import Prepared, prepare
from stratsynth.mechanisms.registry import GROUP, as_mechanism, installed, load, make

__all__ = [
    "GROUP",
    "UNDECLARED",
    "Mechanism",
    "Prepared",
    "Public",
    "as_mechanism",
    "describe",
    "installed",
    "load",
    "make",
    "once",
    "prepare",
]
