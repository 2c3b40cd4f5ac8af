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

Add = Callable[[bytes], object]
"""Function that adds the next piece to a hash."""


class Digested(ABC):
    """An object that computes its digest once, and is hashed by it instead of its contents."""

    @abstractmethod
    def digested(self) -> str:
        """Return the digest of its contents, a text that is equal for equal contents."""


def digest(*contents: Any) -> str:
    """Return the SHA-256, as text, of contents: frozen settings, arrays, numbers, texts and collections of these."""
    state = hashlib.sha256()
    _feed(state.update, contents)
    return state.hexdigest()


class Prehashed:
    """Content in the form in which it is hashed, computed beforehand: among other contents it stands for itself."""

    def __init__(self, value: Any) -> None:
        """Compute the bytes that `value` adds to a hash."""
        pieces = list[bytes]()
        _feed(pieces.append, value)
        self.content = b"".join(pieces)


def _feed(add: Add, value: Any) -> None:
    """Add `value` to the hash, by the function `add` of bytes, with kind and length: no two run into each other."""
    kind = type(value)
    if kind is str:
        text = value.encode()
        add(b"str:%d:%b" % (len(text), text))
    elif kind is int or kind is bool or value is None:
        _write(add, kind.__name__, str(value).encode())
    elif kind is float:
        _write(add, "float", value.hex().encode())
    elif kind is tuple or kind is list:
        _write(add, "sequence", b"%d" % len(value))
        for item in value:
            _feed(add, item)
    elif kind is dict:
        _feed_mapping(add, value)
    else:
        _feed_other(add, value)


def _feed_mapping(add: Add, value: Mapping[Any, Any]) -> None:
    _write(add, "mapping", b"%d" % len(value))
    for key, item in value.items():
        _feed(add, key)
        _feed(add, item)


def _feed_other(add: Add, value: Any) -> None:  # noqa: PLR0912 - a table of kinds
    """Add to the hash, by `add`, a `value` of no plain kind: settings, arrays, functions, sets; else TypeError."""
    if type(value) is Prehashed:
        add(value.content)
    elif isinstance(value, Enum):
        _feed(add, str(value.value))
    elif isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        named = cast("Callable[..., Any]", value)
        _write(add, "name", f"{named.__module__}.{named.__qualname__}".encode())
        code = getattr(value, "__code__", None)
        if code is not None:  # two lambdas have one name
            _feed_code(add, code)
            held = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
            for item in (getattr(value, "__defaults__", None), getattr(value, "__kwdefaults__", None), *held):
                try:
                    _write(add, "held", digest(item).encode())
                except TypeError:  # what has no canonical form is known by its kind only
                    _write(add, "held", type(item).__qualname__.encode())
    elif isinstance(value, int | str):  # a subclass
        _write(add, type(value).__name__, str(value).encode())
    elif isinstance(value, float):
        _write(add, "float", value.hex().encode())
    elif isinstance(value, Digested):
        _write(add, "digest", value.digested().encode())
    elif is_dataclass(value):
        kind: Any = type(value)  # typed as if it could not be hashed
        _write(add, "object", vars(kind).get("digested_as", kind.__qualname__).encode())
        _feed_mapping(add, {name: getattr(value, name) for name in _names(kind)})
    elif isinstance(value, Mapping):
        _feed_mapping(add, value)
    elif isinstance(value, AbstractSet):
        _feed(add, sorted(digest(item) for item in value))
    elif hasattr(value, "tobytes") and hasattr(value, "dtype"):
        _write(add, f"array {value.dtype.str} {value.shape}", value.tobytes())
    elif isinstance(value, Sequence):
        _feed(add, tuple(value))
    else:
        raise TypeError(f"a {type(value).__name__} has no canonical form")


@lru_cache(maxsize=1024)
def _names(kind: Any) -> tuple[str, ...]:
    """Return the names of the fields of the dataclass `kind` that belong to its digest."""
    return tuple(f.name for f in fields(kind) if f.metadata.get("digest", True))


def _feed_code(add: Add, code: CodeType) -> None:
    """Add to the hash, by the function `add`, instructions, names, constants, inner functions of compiled `code`."""
    _write(add, "code", code.co_code)
    _feed(add, list(code.co_names))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _feed_code(add, constant)
        else:
            _write(add, "constant", repr(constant).encode())


def _write(add: Add, kind: str, content: bytes) -> None:
    add(b"%b:%d:%b" % (kind.encode(), len(content), content))
