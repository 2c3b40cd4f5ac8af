"""Installed mechanisms, by name, from the entry-point group `stratsynth.mechanisms`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from stratsynth.checks import quoted_value
from stratsynth.errors import RecipeError, UsageError, nearest
from stratsynth.mechanisms.contract import Mechanism

GROUP = "stratsynth.mechanisms"


@cache
def installed() -> dict[str, EntryPoint]:
    """Return the entry point of each registered mechanism by name, in alphabetical order; none is imported."""
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda p: p.name)}


def load(name: str) -> type[Mechanism[Any]]:
    """Return a registered mechanism's class; RecipeError for an unknown name, UsageError if it cannot be used."""
    if name not in installed():
        known = ", ".join(installed()) or "none"
        raise RecipeError(f"mechanism: {name!r} is not installed{nearest(name, installed())}. Installed: {known}.")
    try:
        found = installed()[name].load()
    except ImportError as error:
        raise UsageError(f"mechanism: {name} is installed but cannot be imported: {error}.") from error
    if not isinstance(found, type) or not issubclass(found, Mechanism):
        raise UsageError(
            f"mechanism: {name} is registered as {installed()[name].value}, which is no class that inherits "
            "stratsynth.mechanisms.Mechanism. Register a class; an object is given to fit() or compare() itself."
        )
    return found


def as_mechanism(given: object, where: str = "") -> Mechanism[Any]:
    """Return the mechanism that is named or handed in, `given`; `where` begins the message of a refusal.

    A text is the name of an installed mechanism, with its default settings.

    Raises:
        UsageError: Neither a mechanism nor the name of one, with the remedy.
    """
    if isinstance(given, Mechanism):
        return given
    if isinstance(given, str):
        return make(given, {})
    if isinstance(given, type):
        wanted = f"write {given.__name__}()" if issubclass(given, Mechanism) else "a mechanism is wanted"
        raise UsageError(f"{where}{given.__name__} is a class, not an object; {wanted}.")
    remedy = " To fit a function from frame to frame, pass External.plain(function)." if callable(given) else ""
    raise UsageError(
        f"{where}a mechanism is wanted: a name such as 'mst', or an object that inherits "
        f"stratsynth.mechanisms.Mechanism, such as MST(); not {quoted_value(given)}.{remedy}"
    )


def make(name: str, settings: Mapping[str, Any]) -> Mechanism[Any]:
    """Return the registered mechanism `name` with these settings; RecipeError for an unknown one or a refused value."""
    kind = load(name)
    fields = [f for f in dataclasses.fields(cast("Any", kind)) if f.init]
    known = [f.name for f in fields]
    for key in settings:
        if key not in known:
            has = f"It has: {', '.join(known)}." if known else "It has no settings."
            raise RecipeError(f"mechanism: {name} has no setting {key!r}{nearest(key, known)}. {has}")
    unset = dataclasses.MISSING
    needed = [f.name for f in fields if f.default is unset and f.default_factory is unset and f.name not in settings]
    if needed:
        in_python = f"{kind.__name__}({', '.join(f'{key}=...' for key in needed)})"
        raise RecipeError(f"mechanism: {name} needs {' and '.join(needed)}; in Python {in_python}.")
    try:
        return kind(**settings)
    except (TypeError, ValueError) as error:
        raise RecipeError(f"mechanism: {name} refused its settings: {error}.") from error
