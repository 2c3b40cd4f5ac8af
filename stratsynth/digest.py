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


def _feed(state: HASH, value: Any) -> None:
    """Every value is written with its kind and its length, so that no two contents run into each other."""
    kind = type(value)  # plain values first, by exact class: nearly all are, and a fit of many steps feeds millions
    if kind is str or kind is int or kind is bool or value is None:
        _write(state, kind.__name__, str(value).encode())
    elif kind is float:
        _write(state, "float", value.hex().encode())
    elif kind is tuple or kind is list:
        _write(state, "sequence", str(len(value)).encode())
        for item in value:
            _feed(state, item)
    elif kind is dict:
        _feed_mapping(state, value)
    else:
        _feed_other(state, value)


def _feed_other(state: HASH, value: Any) -> None:
    """What is not of Python's own plain classes."""
    if isinstance(value, Enum):
        _feed(state, str(value.value))
    elif isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        _feed_named(state, cast("Callable[..., Any]", value))
    elif isinstance(value, int | str):
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
        _feed_mapping(state, value)
    elif isinstance(value, AbstractSet):
        _feed(state, sorted(digest(item) for item in value))
    elif hasattr(value, "tobytes") and hasattr(value, "dtype"):
        _write(state, f"array {value.dtype.str} {value.shape}", value.tobytes())
    elif isinstance(value, Sequence):
        _feed(state, list(value))
    else:
        raise TypeError(f"a {type(value).__name__} has no canonical form")


def _feed_mapping(state: HASH, value: Mapping[Any, Any]) -> None:
    _write(state, "mapping", str(len(value)).encode())
    for key, item in value.items():
        _feed(state, key)
        _feed(state, item)


def _feed_named(state: HASH, named: Callable[..., Any]) -> None:
    """A class, or a function with what it does and what it holds: two lambdas have one name."""
    _write(state, "name", f"{named.__module__}.{named.__qualname__}".encode())
    code = getattr(named, "__code__", None)
    if code is None:
        return
    _feed_code(state, code)
    held = [cell.cell_contents for cell in getattr(named, "__closure__", None) or ()]
    for item in (getattr(named, "__defaults__", None), getattr(named, "__kwdefaults__", None), *held):
        try:
            _write(state, "held", digest(item).encode())
        except TypeError:  # what has no canonical form is known by its kind only
            _write(state, "held", type(item).__qualname__.encode())


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
