"""One canonical digest for settings, questions and requests, equal exactly when their contents are equal."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from _hashlib import HASH


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
            _write(state, "code", code.co_code + repr(code.co_consts).encode())
    elif value is None or isinstance(value, bool | int | str):
        _write(state, type(value).__name__, str(value).encode())
    elif isinstance(value, float):
        _write(state, "float", value.hex().encode())
    elif isinstance(own := getattr(value, "digest", None), str):  # what is asked often keeps its own
        _write(state, "digest", own.encode())
    elif is_dataclass(value):
        _write(state, "object", type(value).__qualname__.encode())
        _feed(state, {f.name: getattr(value, f.name) for f in fields(value)})
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


def _write(state: HASH, kind: str, content: bytes) -> None:
    state.update(f"{kind}:{len(content)}:".encode())
    state.update(content)
