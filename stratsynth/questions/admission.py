"""Admission: a program's question becomes a deep, read-only copy that no other code holds, and only the copy is used.

A mechanism's author holds the object that the program asked with, and Python lets the author write into it: a method
of its own, other contents of an array, other parts after the check. So the driver copies the fields that the exact
class declares, and checks, prices, reads and answers the copy. A class derived from a known one, an array that could be
written to, and a method written into an object do not come through.

The kinds are a closed set: `known` marks classes of this package's own folder, and once the folder has been imported
nothing can join them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cached_property
from inspect import getattr_static
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from stratsynth.accounting.budget import Currency
from stratsynth.errors import MechanismError, StratsynthError
from stratsynth.questions.base import Question, fixed
from stratsynth.strata import Stratum

if TYPE_CHECKING:
    from stratsynth.schema import Schema

C = TypeVar("C", bound=type[Any])
Copies = dict[int, tuple[Any, Any]]
"""Copies by the identity of their originals; the original is held too, so that its identity is not used again."""

PACKAGE = "stratsynth.questions."
_PARTS: Mapping[type[Any], tuple[str, ...]] = {Stratum: ("items", "names")}
"""Fields of a copy, by exact class."""
_DERIVED: dict[type[Any], frozenset[str]] = {Stratum: frozenset({"levels"})}
"""Names of the cached properties of each exact class; a copy computes them again."""
_ATOMS: frozenset[type[Any]] = frozenset(
    {str, int, float, bool, type(None), np.str_, Currency, *(np.dtype(c).type for c in "?bBhHiIlLqQefdg")}
)
"""Classes whose objects cannot change, and run no code of a program."""
OPAQUE = "opaque"
"""Metadata key of a field with code of the program itself, which the field's class defines how to call."""
LASTING = "lasting"
"""Class attribute of parts that programs use in many questions, and that take long to check: they are copied once."""
_OPAQUE: dict[type[Any], frozenset[str]] = {}
"""Names of the opaque fields, by exact class."""


def known(cls: C) -> C:
    """Add a dataclass of this package to the kinds that questions are made of: a class decorator.

    Raises:
        StratsynthError: A class of another package, which could restate a sensitivity, or one added after `close`.
    """
    if not isinstance(_PARTS, dict) or not cls.__module__.startswith(PACKAGE):
        raise StratsynthError(
            f"{cls.__name__}: the kinds of questions are those of stratsynth.questions, and no others."
        )
    _PARTS[cls] = tuple(part.name for part in fields(cls))
    _OPAQUE[cls] = frozenset(part.name for part in fields(cls) if part.metadata.get(OPAQUE))
    _DERIVED[cls] = frozenset(n for n in dir(cls) if isinstance(getattr_static(cls, n, None), cached_property))
    return cls


def close() -> None:
    """End additions to the kinds of questions: from here on `known` raises StratsynthError for every class."""
    global _PARTS  # noqa: PLW0603 - written here alone, once
    _PARTS = MappingProxyType(dict(_PARTS))


def is_known(thing: object) -> bool:
    """True if the exact class of an object `thing` is one that `known` has marked, or `Stratum`; else False."""
    return type(thing) in _PARTS


def kinds() -> list[type[Question]]:
    """Return the classes of all kinds of questions, such as `Counts` and `Choose`, in the order of their import."""
    return [kind for kind in _PARTS if issubclass(kind, Question)]


def admitted(question: object, schema: Schema, copies: Copies | None = None) -> Question:
    """Return a read-only copy of a question, checked against a schema.

    Args:
        question: The object that a program asked with.
        schema: The columns that vary at the question's path.
        copies: The copies of `LASTING` parts made for the program's last question, by original: a part that is
            used again is neither copied nor checked again. Replaced by those of this question.

    Raises:
        MechanismError: An object of no known kind, or a malformed question.
        Unsupported: A sound question that is too large.
    """
    if not (is_known(question) and isinstance(question, Question)):
        raise MechanismError(f"{type(question).__name__} is no kind of question that rows can answer.")
    before: Copies = {} if copies is None else dict(copies)
    now: Copies = {}
    copy: Question = _copy(question, before, now)
    copy.check(schema)
    if copies is not None:
        copies.clear()
        copies.update((key, pair) for key, pair in now.items() if getattr(type(pair[1]), LASTING, False))
    return copy


def _copy(value: Any, before: Mapping[int, tuple[Any, Any]], now: Copies) -> Any:
    """Return a copy of `value`: known objects, arrays, collections; those in `before` or `now` not anew.

    Objects that several parts share are shared by the copies too.

    Raises:
        MechanismError: Anything else: code of the program could run while it is priced, read or answered.
    """
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is tuple:
        return value if _is_constant(value) else _shared_copy(value, before, now)
    if kind is np.ndarray and value.dtype.kind in "fiub":
        return fixed(value, "fiub")
    if kind in _PARTS:
        return _shared_copy(value, before, now)
    if kind is list:
        return [_copy(item, before, now) for item in value]
    if kind is dict:
        return _checked_size({_copy(key, before, now): _copy(item, before, now) for key, item in value.items()}, value)
    raise MechanismError(
        f"a question holds a {kind.__name__}: questions are made of known classes, arrays, numbers, texts and tuples."
    )


def _shared_copy(value: Any, before: Mapping[int, tuple[Any, Any]], now: Copies) -> Any:
    key = id(value)
    found = now.get(key) or before.get(key)
    if found is None:
        made = (
            tuple(_copy(item, before, now) for item in value) if type(value) is tuple else _parts_of(value, before, now)
        )
        found = value, made
    now[key] = found
    return found[1]


def _parts_of(value: Any, before: Mapping[int, tuple[Any, Any]], now: Copies) -> Any:
    """Return a new `value`, fields by `_copy` with `before` and `now`; MechanismError if it has other attributes."""
    kind, held = type(value), vars(value)
    names = _PARTS[kind]
    if len(held) > len(names) and not held.keys() <= {*names, *_DERIVED[kind]}:
        raise MechanismError(f"{kind.__name__}: something was written into it that is none of its fields.")
    made = object.__new__(kind)
    inside = vars(made)
    for name in names:
        if name not in held:
            raise MechanismError(f"{kind.__name__}: its field {name} was taken out of it.")
        inside[name] = (_outside if name in _OPAQUE.get(kind, ()) else _copy)(held[name], before, now)
    return made


def _outside(value: Any, before: Mapping[int, tuple[Any, Any]], now: Copies) -> Any:
    """Return the function `value` unchanged; of a dict of programs by stratum, a copy (`before`, `now`: copies)."""
    if type(value) is not dict:
        return value
    return _checked_size({_copy(key, before, now): item for key, item in value.items()}, value)


def _checked_size(copy: dict[Any, Any], original: dict[Any, Any]) -> dict[Any, Any]:
    """Return the dict `copy`; MechanismError if keys of `original` became equal, so that it has fewer."""
    if len(copy) != len(original):
        raise MechanismError("a question holds two keys that are equal.")
    return copy


def _is_constant(values: Iterable[Any]) -> bool:
    """True for a tuple `values` of texts and numbers, or of tuples of these: it is its own copy."""
    types = set(map(type, values))
    return types <= _ATOMS or (types == {tuple} and _is_constant(tuple(chain.from_iterable(values))))
