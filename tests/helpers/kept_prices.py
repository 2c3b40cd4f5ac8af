"""Prices of sampled steps, kept between processes and runs of the suite: each takes a third of a second.

dp-accounting computes each anew where anything that it is computed by is another: the arguments, the code of
`stratsynth/accounting/sampled.py`, or a library's version. Those that every run asks for lie in `prices.txt` beside
this file, or a fresh copy of the repository would compute for three minutes what an earlier one has: first the kind of
processor, whose last bits they are, then a digest and a price a line. With `--slow` none of these is taken, and one
that is not what is computed is an error. After a change of that code or of a library, two fresh copies that have run
the suite make the file anew, of the prices that both asked for:

    PYTHONPATH=tests .venv/test/bin/python -m helpers.kept_prices ONE/.venv/cache/pytest/d/prices OTHER/...
"""

import ast
import hashlib
import importlib.metadata
import math
import os
import platform
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from stratsynth.accounting import sampled

SHIPPED = Path(__file__).with_name("prices.txt")
LIBRARIES = ("dp-accounting", "numpy", "scipy")
_computed: dict[Path, float] = {}
"""Prices by the files that they will be written to: not during a fit, which may write nothing."""


def keep(folder: Path, *, anew: bool = False) -> None:
    """Look for prices in this folder first, in this process and those that are forked from it.

    `anew`, those that come with the tests are computed too, and compared.
    """
    within, computed = lru_cache(**sampled._epsilon.cache_parameters()), sampled._epsilon.__wrapped__
    sampled._epsilon = within(kept(computed, folder, made_by(), shipped(), anew=anew))


def shipped(file: Path = SHIPPED) -> dict[str, float]:
    """Digests of what was asked -> prices that come with the tests; none for another kind of processor."""
    machine, *lines = file.read_text(encoding="utf-8").splitlines()
    pairs = [line.split() for line in lines if machine == platform.machine()]
    return {digest: float.fromhex(price) for digest, price in pairs}


def made_by(file: str = sampled.__file__) -> str:
    """Text of the code, without docstrings and comments, and of the versions that compute prices."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [item for item in node.body if not _is_text(item)] or [ast.Pass()]
    code = ast.unparse(tree)
    return "\n".join([code, *(f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES)])


def _is_text(item: ast.stmt) -> bool:
    return isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant) and isinstance(item.value.value, str)


def kept(
    computed: Callable[..., float],
    folder: Path,
    maker: str,
    known: Mapping[str, float] = MappingProxyType({}),
    *,
    anew: bool = False,
) -> Callable[..., float]:
    """Function like the one given, which takes what it would compute from `known` or a file of the folder, if there."""

    def price(*arguments: object) -> float:
        digest = hashlib.sha256(repr((maker, arguments)).encode()).hexdigest()
        if digest in known and not anew:
            return known[digest]
        path = folder / digest
        if path.exists():
            found = float.fromhex(path.read_text(encoding="utf-8"))
        else:
            found = _computed.setdefault(path, computed(*arguments))
        if not math.isclose(found, known.get(digest, found), rel_tol=1e-9):
            raise AssertionError(f"{SHIPPED.name}: {known[digest]} is not the price {found} of {arguments}")
        return found

    return price


def write() -> None:
    """Write what was computed since the last time, each price whole."""
    while _computed:
        path, price = _computed.popitem()
        new = path.with_name(f"{path.name}.{os.getpid()}")
        new.write_text(price.hex(), encoding="utf-8")
        new.replace(path)


def ship(folders: list[Path], file: Path = SHIPPED) -> None:
    """Write the prices that are in all of these folders to the file that comes with the tests."""
    same = set.intersection(*({path.name for path in folder.iterdir()} for folder in folders))
    lines = [f"{digest} {(folders[0] / digest).read_text(encoding='utf-8')}" for digest in sorted(same)]
    file.write_text("\n".join([platform.machine(), *lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    ship([Path(folder) for folder in sys.argv[1:]])
