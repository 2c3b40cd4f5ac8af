"""Settings declared with their ranges: `rate: float | None = at(None, above=0, most=1e6)`.

The annotation is the type, `at` the default and the range, and the docstring under the field its meaning. Checks and
their messages, the reference and `stratsynth mechanisms --json` are made from these three.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from stratsynth.checks import (
    check_integer,
    flag,
    is_list,
    is_texts,
    number,
    number_words,
    one_of,
    quoted_value,
    whole_words,
)
from stratsynth.errors import Unsupported, UsageError

T = TypeVar("T")
KEY = "range"
"""Key of a field's metadata that has its range."""
TYPES = {bool: "true or false", int: "whole number", float: "number", str: "text", NoneType: "none"}
"""Types as recipes call them."""


@dataclass(frozen=True)
class Range:
    """Values that a setting may have: the setting itself, or each number of its list or table."""

    least: float = -math.inf
    """Smallest number allowed."""
    above: float = -math.inf
    """Excluded lower end."""
    most: float = math.inf
    """Largest number allowed."""
    below: float = math.inf
    """Excluded upper end."""
    length: tuple[int, float] = (0, math.inf)
    """Smallest and largest number of elements of a list."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Refused words that users may try, each with the end of its refusal."""

    @property
    def ends(self) -> dict[str, float]:
        """Finite ends of the range by name: `least`, `above`, `most`, `below`; {} without any."""
        every = {"least": self.least, "above": self.above, "most": self.most, "below": self.below}
        return {name: end for name, end in every.items() if abs(end) < math.inf}

    def check(self, what: str, value: Any, kind: Any, hint: str = "") -> Any:
        """Return `value`, a list as a tuple; UsageError if not of type `kind` or in range, Unsupported if `refused`.

        The message begins with `what`, the setting's name; `hint` adds other values allowed.
        """
        origin, inner = get_origin(kind), get_args(kind)
        if origin is UnionType or origin is Union:  # a number, or one word in its place
            other, words = inner
            if isinstance(value, str) and value in get_args(words):
                return value
            return self.check(what, value, other, f", or {self.words(words)}")
        if origin is Literal:
            if isinstance(value, str) and value in self.refused:
                raise Unsupported(f'{what} = "{value}" {self.refused[value]}')
            one_of(what, value, inner)
        elif kind is bool:
            flag(what, value)
        elif kind is int:
            check_integer(what, value, int(self.least), self.most)
        elif kind is float:
            number(what, value, least=self.least, above=self.above, most=self.most, below=self.below, hint=hint)
            return value if type(value) in (int, float) else float(value)  # of numpy's, which no certificate holds
        elif origin is Mapping:
            if not isinstance(value, Mapping):
                raise UsageError(f"{what} must be a table, not {quoted_value(value)}.")
            checked = {k: self.check(f"{what} of {k}", v, inner[1]) for k, v in value.items()} if self.ends else {}
            if any(checked[label] is not value[label] for label in checked):
                return checked
        else:
            return self._listed(what, value, kind)
        return value

    def _listed(self, what: str, value: Any, kind: Any) -> tuple[Any, ...]:
        """Return the list `value`, of numbers or column names, as a tuple, checked by this range; `kind`: annotation.

        UsageError, naming `what`, for any other value.
        """
        (of, *_), names = get_args(kind), get_args(kind)[0] is str
        fits = is_texts(value) and len(set(value)) == len(value) if names else is_list(value)
        if not fits or not self.length[0] <= len(value) <= self.length[1]:
            wanted = 'list of different column names, such as ["SEX"]' if names else self.words(kind)
            raise UsageError(f"{what} must be a {wanted}{'' if is_list(value) else f', not {quoted_value(value)}'}.")
        for each in () if names else value:
            self.check(what, each, of)
        return tuple(value) if names else tuple(map(of, value))

    def words(self, kind: Any) -> str:
        """Return type `kind` and range in words, such as "number above 0 and at most 10" or "list of texts"."""
        origin, inner = get_origin(kind), get_args(kind)
        if origin is Literal:
            return " or ".join(f'"{each}"' for each in inner)
        if origin is UnionType or origin is Union:
            return " or ".join(self.words(each) for each in inner if each is not NoneType)
        if origin in (Mapping, Sequence, tuple):
            fewest, most = self.length
            few = f", at least {fewest} of them" if fewest else ""
            of, length = inner[origin is Mapping], f", {fewest} to {most} of them" if most < math.inf else few
            noun = "table" if origin is Mapping else "list"
            return noun if of is Any else f"{noun} of {_plural(self.words(of))}{length}"
        if kind is int and self.ends:
            return whole_words(self.least, self.most)
        if kind is float and self.ends:
            return number_words(self.least, self.above, self.most, self.below)
        return TYPES.get(kind, getattr(kind, "__name__", str(kind)))


def _plural(words: str) -> str:
    """Return the words of `Range.words` in the plural: "numbers above 0", "lists of texts"."""
    noun = next((noun for noun in ("whole number", "number", "text", "list", "table") if words.startswith(noun)), words)
    return f"{noun}s{words.removeprefix(noun)}"


def at(
    default: T,
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    most: float = math.inf,
    below: float = math.inf,
    length: tuple[int, float] = (0, math.inf),
    refused: Mapping[str, str] | None = None,
) -> T:
    """Return a dataclass field with the value `default` and a `Range`: `least`, `above`, `most`, `below`, `length`.

    `length` is (fewest, most) entries; `refused` maps values to words of a refusal. A dict is copied for each object.
    """
    metadata = {KEY: Range(least, above, most, below, length, refused or {})}
    if isinstance(default, dict):
        return cast("T", field(default_factory=default.copy, hash=False, metadata=metadata))
    return field(default=default, metadata=metadata)


def check_fields(settings: Any) -> None:
    """Refuse settings with a field outside its `Range`, as declared by `at`; keep lists as tuples, in place.

    Raises:
        UsageError: The first value outside its range, as "mst: iterations must be ..., not 0."
    """
    for name, kind, optional, allowed in _declared(settings.__class__):
        value = getattr(settings, name)
        if optional and value is None:
            continue
        kept = allowed.check(f"{settings.name}: {name}", value, kind)
        if kept is not value:
            object.__setattr__(settings, name, kept)


@cache
def _declared(cls: Any) -> tuple[tuple[str, Any, bool, Range], ...]:
    """Return a tuple of (name, type without None, True if None is allowed, `Range`), one a field of `cls` by `at`."""
    found = []
    for each in fields(cls):
        if KEY in each.metadata:
            kind = resolved(cls, each.name)
            kinds = tuple(inner for inner in get_args(kind) if inner is not NoneType)
            optional = NoneType in get_args(kind)
            found.append((each.name, Union[kinds] if optional else kind, optional, each.metadata[KEY]))  # noqa: UP007
    return tuple(found)


def resolved(cls: type, name: str) -> Any:
    """Return the type of the field `name`, from its annotation in the nearest class that has one."""
    home = next(each for each in cls.__mro__ if name in vars(each).get("__annotations__", {}))
    one = SimpleNamespace(__annotations__={name: home.__annotations__[name]})
    return get_type_hints(one, vars(sys.modules[home.__module__]))[name]
