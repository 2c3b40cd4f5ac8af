"""Documentation of a dataclass's fields from its source: the docstring under each, with type and range."""

from __future__ import annotations

import ast
import inspect
import itertools
import math
import sys
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, get_args, get_origin

from stratsynth.mechanisms.contract import plain
from stratsynth.settings import KEY, Range, resolved


def documented(cls: type, name: str) -> tuple[str, str]:
    """Return (annotation, docstring), texts, of a dataclass's field `name`, of the nearest class with both.

    Two empty texts if no class has both.
    """
    return next((found[name] for each in cls.__mro__ if name in (found := _under_fields(each))), ("", ""))


@cache
def _under_fields(cls: type) -> dict[str, tuple[str, str]]:
    """Return {field: (annotation, docstring)}, texts from the class's own source; {} if it has no source file."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[cls.__module__]))
    except (KeyError, OSError, TypeError):  # a class that was made without a file
        return {}
    body = next((n.body for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == cls.__name__), [])
    return {
        node.target.id: (ast.unparse(node.annotation), " ".join(after.value.value.split()))
        for node, after in itertools.pairwise(body)
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
        and isinstance(after.value.value, str)
    }


def listed(cls: type) -> list[dict[str, Any]]:
    """Return a list, one dict per setting of a mechanism's class: name, type, default, range and description.

    A required setting has no default. `range` has the ends of the numbers, included (`least`, `most`) or excluded
    (`above`, `below`). `choices` are the allowed words, `length` the ends of a list's length.
    """
    return [_setting(cls, each) for each in (fields(cls) if is_dataclass(cls) else ()) if each.init]


def _setting(cls: type, each: Any) -> dict[str, Any]:
    """Return the dict of a dataclass field, `each`, of `cls`: name, type, choices, default, range, description."""
    found: dict[str, Any] = {"name": each.name}
    try:
        kind = resolved(cls, each.name)
    except NameError:  # a name that only a type checker imports
        found["type"] = str(each.type)
    else:
        found["type"] = Range().words(kind)
        choices = [word for part in (kind, *get_args(kind)) if get_origin(part) is Literal for word in get_args(part)]
        found |= {"choices": choices} if choices else {}
    if each.default is not MISSING or each.default_factory is not MISSING:
        default = plain(each.default if each.default is not MISSING else each.default_factory())
        found["default"] = default if isinstance(default, str | int | float | list | dict | None) else repr(default)
    allowed = each.metadata.get(KEY, Range())
    found |= {"range": allowed.ends} if allowed.ends else {}
    found |= {"length": list(allowed.length)} if allowed.length[1] < math.inf else {}
    return {**found, "description": documented(cls, each.name)[1]}
