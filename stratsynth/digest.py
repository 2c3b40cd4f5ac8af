"""One canonical digest for settings, questions and requests, equal exactly if their contents are equal."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from types import CodeType
from typing import Any, cast

LONG = 4096
"""Pieces of more bytes are hashed directly, without being copied."""


class Digested(ABC):
    """An object that computes its digest once, and is hashed by it instead of its contents."""

    @abstractmethod
    def digested(self) -> str:
        """Return the digest of its contents."""


def digest(*contents: Any) -> str:
    """Return the SHA-256 of some contents: frozen settings, arrays, numbers, texts and collections of these."""
    said = _Said()
    _feed(said, contents)
    return said.hexdigest()


class _Said:
    """Input of a hash, gathered in pieces: most contents are many short ones."""

    def __init__(self) -> None:
        self._state = hashlib.sha256()
        self.short = list[bytes]()
        self.add = self.short.append

    def long(self, content: bytes) -> None:
        """Add a piece that is not copied."""
        self._state.update(b"".join(self.short))
        self.short.clear()
        self._state.update(content)

    def hexdigest(self) -> str:
        """Return the digest of everything added."""
        self.long(b"")
        return self._state.hexdigest()


class _Gathered(_Said):
    """Pieces that are hashed later."""

    def long(self, content: bytes) -> None:
        """Add a piece, like any other."""
        self.add(content)


class Said:
    """Content in the form in which it is hashed, computed beforehand: among other contents it stands for itself."""

    def __init__(self, value: Any) -> None:
        """Compute the form of `value`."""
        said = _Gathered()
        _feed(said, value)
        self.content = b"".join(said.short)


def _feed(said: _Said, value: Any) -> None:
    """Add every value with its kind and its length, so that no two contents run into each other."""
    kind = type(value)
    if kind is str:
        text = value.encode()
        said.add(b"str:%d:%b" % (len(text), text))
    elif kind is int or kind is bool or value is None:
        _write(said, kind.__name__, str(value).encode())
    elif kind is float:
        _write(said, "float", value.hex().encode())
    elif kind is tuple or kind is list:
        _write(said, "sequence", b"%d" % len(value))
        for item in value:
            _feed(said, item)
    elif kind is dict:
        _feed_mapping(said, value)
    else:
        _feed_other(said, value)


def _feed_mapping(said: _Said, value: Mapping[Any, Any]) -> None:
    _write(said, "mapping", b"%d" % len(value))
    for key, item in value.items():
        _feed(said, key)
        _feed(said, item)


def _feed_other(said: _Said, value: Any) -> None:  # noqa: PLR0912 - a table of kinds
    """Add a value of no plain kind."""
    if type(value) is Said:
        said.add(value.content)
    elif isinstance(value, Enum):
        _feed(said, str(value.value))
    elif isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        named = cast("Callable[..., Any]", value)
        _write(said, "name", f"{named.__module__}.{named.__qualname__}".encode())
        code = getattr(value, "__code__", None)
        if code is not None:  # two lambdas have one name
            _feed_code(said, code)
            held = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
            for item in (getattr(value, "__defaults__", None), getattr(value, "__kwdefaults__", None), *held):
                try:
                    _write(said, "held", digest(item).encode())
                except TypeError:  # what has no canonical form is known by its kind only
                    _write(said, "held", type(item).__qualname__.encode())
    elif isinstance(value, int | str):  # a subclass
        _write(said, type(value).__name__, str(value).encode())
    elif isinstance(value, float):
        _write(said, "float", value.hex().encode())
    elif isinstance(value, Digested):
        _write(said, "digest", value.digested().encode())
    elif is_dataclass(value):
        _write(said, "object", type(value).__qualname__.encode())
        kind: Any = type(value)  # typed as if it could not be hashed
        _feed_mapping(said, {name: getattr(value, name) for name in _names(kind)})
    elif isinstance(value, Mapping):
        _feed_mapping(said, value)
    elif isinstance(value, AbstractSet):
        _feed(said, sorted(digest(item) for item in value))
    elif hasattr(value, "tobytes") and hasattr(value, "dtype"):
        _write(said, f"array {value.dtype.str} {value.shape}", value.tobytes())
    elif isinstance(value, Sequence):
        _feed(said, tuple(value))
    else:
        raise TypeError(f"a {type(value).__name__} has no canonical form")


@lru_cache(maxsize=1024)
def _names(kind: Any) -> tuple[str, ...]:
    """Return the fields of a dataclass that belong to its digest."""
    return tuple(f.name for f in fields(kind) if f.metadata.get("digest", True))


def _feed_code(said: _Said, code: CodeType) -> None:
    """Add a function's instructions, names, constants and inner functions."""
    _write(said, "code", code.co_code)
    _feed(said, list(code.co_names))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _feed_code(said, constant)
        else:
            _write(said, "constant", repr(constant).encode())


def _write(said: _Said, kind: str, content: bytes) -> None:
    said.add(b"%b:%d:" % (kind.encode(), len(content)))
    if len(content) > LONG:
        said.long(content)
    else:
        said.add(content)
