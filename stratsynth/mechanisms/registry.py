"""Installed mechanisms, by name, from the entry-point group `stratsynth.mechanisms`, and their words for readers.

A page and `samples` have the certificate alone, perhaps where the mechanism is not installed. So it states the words of
third-party mechanisms; for those that come with stratsynth, which every reader has, the class does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, cast

from stratsynth.checks import quoted_value
from stratsynth.errors import RecipeError, UsageError, nearest
from stratsynth.mechanisms.contract import Mechanism

if TYPE_CHECKING:
    from stratsynth.certificate import Certificate


GROUP = "stratsynth.mechanisms"


@cache
def installed() -> dict[str, EntryPoint]:
    """Return {name: entry point} of each registered mechanism, in alphabetical order; none is imported."""
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
    """Return the mechanism `name` with `settings`, values by name; RecipeError for an unknown name or refused value."""
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


KEY = "mechanism_words"
"""Key of a certificate that has these words."""


@dataclass(frozen=True)
class Words:
    """Declarations of one mechanism for readers."""

    label: str = ""
    """Name that a page gives it, before its own; empty for none."""
    paper: str = ""
    """Publication to cite; empty for none."""
    samples: bool = False
    """True if intervals from `Release.samples` were found to hold."""

    @classmethod
    def of(cls, kind: type[Mechanism[Any]]) -> Words:
        """Return the `Words`, label, paper and `samples_hold`, of a mechanism's class, `kind`.

        The last is True only if the class itself sets it.
        """
        return cls(kind.label, str(kind.paper), vars(kind).get("samples_hold") is True)


def stated(mechanism: Mechanism[Any]) -> dict[str, Any]:
    """Return {KEY: words} for the certificate of a third-party mechanism; an empty dict for others or without words."""
    if type(mechanism).__module__.partition(".")[0] == __name__.partition(".")[0]:
        return {}
    found = {name: value for name, value in asdict(Words.of(type(mechanism))).items() if value}
    return {KEY: found} if found else {}


def words_of(certificate: Certificate) -> Words:
    """Return the `Words` of a certificate's mechanism: stated there, or else of the class installed by its name."""
    entry = certificate.mechanism_words
    if not entry:
        return installed_words(certificate.mechanism.name)
    label, paper = (text if isinstance(text := entry.get(name), str) else "" for name in ("label", "paper"))
    return Words(label, paper, entry.get("samples") is True)


def with_samples() -> list[str]:
    """Return a list of names of installed mechanisms whose `Release.samples` intervals were found to hold."""
    return [name for name in installed() if installed_words(name).samples]


def installed_words(name: object) -> Words:
    """Return the `Words` of the mechanism installed by this name; empty ones if it is missing or cannot be imported."""
    if not isinstance(name, str) or name not in installed():
        return Words()
    try:
        return Words.of(load(name))
    except Exception:  # noqa: BLE001 - a plug-in raises what it likes, and a page can do without its words
        return Words()
