"""One canonical digest for settings, questions and requests, equal exactly when their contents are equal."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from enum import Enum
from types import CodeType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from _hashlib import HASH


class Digested(ABC):
    """What works out its digest once, and hands it out instead of its contents."""

    @abstractmethod
    def digested(self) -> str:
        """The digest of its contents."""


def digest(*contents: Any) -> str:
    """The SHA-256 of some contents: frozen settings, arrays, numbers, texts and collections of these."""
    state = hashlib.sha256()
    _feed(state, contents)
    return state.hexdigest()


def _feed(state: HASH, value: Any) -> None:  # noqa: PLR0912 - a table of kinds
    """Every value is written with its kind and its length, so that no two contents run into each other."""
    if isinstance(value, Enum):
        _feed(state, str(value.value))
    elif isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        named = cast("Callable[..., Any]", value)
        _write(state, "name", f"{named.__module__}.{named.__qualname__}".encode())
        code = getattr(value, "__code__", None)
        if code is not None:  # two lambdas have one name
            _feed_code(state, code)
            held = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
            for item in (getattr(value, "__defaults__", None), getattr(value, "__kwdefaults__", None), *held):
                try:
                    _write(state, "held", digest(item).encode())
                except TypeError:  # what has no canonical form is known by its kind only
                    _write(state, "held", type(item).__qualname__.encode())
    elif value is None or isinstance(value, bool | int | str):
        _write(state, type(value).__name__, str(value).encode())
    elif isinstance(value, float):
        _write(state, "float", value.hex().encode())
    elif isinstance(value, Digested):
        _write(state, "digest", value.digested().encode())
    elif is_dataclass(value):
        _write(state, "object", type(value).__qualname__.encode())
        said = (f.name for f in fields(value) if f.metadata.get("digest", True))
        _feed(state, {name: getattr(value, name) for name in said})
    elif isinstance(value, Mapping):
        _write(state, "mapping", str(len(value)).encode())
        for key, item in value.items():
            _feed(state, key)
            _feed(state, item)
    elif isinstance(value, AbstractSet):
        _feed(state, sorted(digest(item) for item in value))
    elif hasattr(value, "tobytes") and hasattr(value, "dtype"):
        _write(state, f"array {value.dtype.str} {value.shape}", value.tobytes())
    elif isinstance(value, Sequence):
        _write(state, "sequence", str(len(value)).encode())
        for item in value:
            _feed(state, item)
    else:
        raise TypeError(f"a {type(value).__name__} has no canonical form")


def _feed_code(state: HASH, code: CodeType) -> None:
    """What a function does: its instructions, the names and constants they speak of, functions inside it."""
    _write(state, "code", code.co_code)
    _feed(state, list(code.co_names))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _feed_code(state, constant)
        else:
            _write(state, "constant", repr(constant).encode())


def _write(state: HASH, kind: str, content: bytes) -> None:
    state.update(f"{kind}:{len(content)}:".encode())
    state.update(content)
