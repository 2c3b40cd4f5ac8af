"""Prices of sampled steps, kept between processes and runs of the suite: each takes a third of a second.

dp-accounting computes each anew where anything that it is computed by is another: the arguments, the code of
`stratsynth/accounting/sampled.py`, or a library's version.
"""

import hashlib
import importlib.metadata
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from stratsynth.accounting import sampled

LIBRARIES = ("dp-accounting", "numpy", "scipy")
_computed: dict[Path, float] = {}
"""Prices by the files that they will be written to: not during a fit, which may write nothing."""


def keep(folder: Path) -> None:
    """Look for prices in this folder first, in this process and those that are forked from it."""
    within = lru_cache(**sampled._epsilon.cache_parameters())
    sampled._epsilon = within(kept(sampled._epsilon.__wrapped__, folder, made_by()))


def made_by() -> str:
    """Text of the code and versions that compute prices."""
    code = Path(sampled.__file__).read_text(encoding="utf-8")
    return "\n".join([code, *(f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES)])


def kept(computed: Callable[..., float], folder: Path, maker: str) -> Callable[..., float]:
    """Function like the one given, which reads what it would compute in a file of the folder, where there is one."""

    def price(*arguments: object) -> float:
        path = folder / hashlib.sha256(repr((maker, arguments)).encode()).hexdigest()
        if path.exists():
            return float.fromhex(path.read_text(encoding="utf-8"))
        return _computed.setdefault(path, computed(*arguments))

    return price


def write() -> None:
    """Write what was computed since the last time, each price whole."""
    while _computed:
        path, price = _computed.popitem()
        new = path.with_name(f"{path.name}.{os.getpid()}")
        new.write_text(price.hex(), encoding="utf-8")
        new.replace(path)
