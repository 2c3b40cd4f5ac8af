"""The adapter interface: what a mechanism may know, what it must provide, and how it is found by name.

A mechanism is a frozen settings object. It gets no rows, only `Public`; it yields questions (see
`stratsynth.questions`) and returns a model. Third parties register theirs under the entry-point group
`stratsynth.mechanisms`; the command line then knows it by that name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from stratsynth.accounting.budget import Allotment, Budget, Neighbours
from stratsynth.errors import RecipeError, Unsupported, UsageError, nearest
from stratsynth.questions import Program, Question
from stratsynth.schema import Schema
from stratsynth.strata import Stratum, within

if TYPE_CHECKING:
    from numpy.random import Generator

R_co = TypeVar("R_co", covariant=True)
GROUP = "stratsynth.mechanisms"


@dataclass(frozen=True)
class Public:
    """All that a mechanism may know before it asks. None of it is computed from rows."""

    schema: Schema
    """The columns that vary here: inside a stratum the columns that define it are gone."""
    size: int | None = None
    """About how many rows there are: declared size times public share. None when nobody declared it."""
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    """What the guarantee compares; questions price themselves by it."""

    def within(self, stratum: Stratum, share: float) -> Public:
        """What is known of one stratum that has this public share of all records."""
        size = None if self.size is None else round(self.size * share)
        return Public(within(self.schema, (stratum,)), size, self.neighbours)


class Mechanism(Protocol[R_co]):
    """One way to learn something private. Implementations are frozen dataclasses: the settings are the plug-in."""

    @property
    def name(self) -> str:
        """The name in recipes and certificates; usually a class variable."""

    @property
    def needs(self) -> frozenset[type[Question]]:
        """The questions it asks; a backend that lacks one refuses before any charge."""

    def price(self, public: Public, budget: Budget) -> Allotment:
        """What it will spend of a budget, from public facts; raises `Unsupported` with the remedy."""

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[R_co]:
        """The program: yields questions worth at most `allot`, returns a model. `rng` is for post-processing."""


@cache
def installed() -> dict[str, EntryPoint]:
    """The registered mechanisms by name, not yet imported."""
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda p: p.name)}


def load(name: str) -> type[Mechanism[Any]]:
    """The class of a registered mechanism."""
    if name not in installed():
        known = ", ".join(installed()) or "none"
        raise RecipeError(f"mechanism: {name!r} is not installed{nearest(name, installed())}. Installed: {known}.")
    try:
        return cast("type[Mechanism[Any]]", installed()[name].load())
    except ImportError as error:
        raise UsageError(f"mechanism: {name} is installed but cannot be imported: {error}.") from error


def make(name: str, settings: Mapping[str, Any]) -> Mechanism[Any]:
    """A registered mechanism with these settings; its own `__post_init__` judges their values."""
    kind = load(name)
    known = [f.name for f in dataclasses.fields(cast("Any", kind)) if f.init]
    for key in settings:
        if key not in known:
            has = f"It has: {', '.join(known)}." if known else "It has no settings."
            raise RecipeError(f"mechanism: {name} has no setting {key!r}{nearest(key, known)}. {has}")
    try:
        return kind(**settings)
    except (TypeError, ValueError) as error:
        raise RecipeError(f"mechanism: {name} refused its settings: {error}.") from error


def describe(mechanism: Mechanism[Any]) -> dict[str, Any]:
    """Name and settings, as the certificate and the journal state them."""
    settings = {
        f.name: _plain(getattr(mechanism, f.name))
        for f in dataclasses.fields(cast("Any", mechanism))
        if f.init and f.metadata.get("describe", True)
    }
    return {"name": mechanism.name, "settings": settings}


def _plain(value: Any) -> Any:
    """A setting as JSON has it: inner mechanisms are described, weights cited, functions named."""
    if hasattr(value, "steps"):
        return describe(value)
    if hasattr(value, "citation"):
        return {"source": value.source, "citation": value.citation}
    if callable(value):
        return getattr(value, "__qualname__", type(value).__name__)
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def title(mechanism: Mechanism[Any]) -> str:
    """What a reader calls it: `mst`, or `mst by SEX x RAC1P`."""
    inner, by = getattr(mechanism, "mechanism", None), getattr(mechanism, "by", ())
    if inner is None:
        return mechanism.name
    return f"{title(inner)} by {' x '.join(by)}"


def draws_rows(mechanism: Mechanism[Any]) -> bool:
    """Whether what it returns draws rows; a mechanism that returns estimates has a class variable `draws_rows`."""
    inner = getattr(mechanism, "mechanism", None)
    return bool(getattr(mechanism, "draws_rows", True)) if inner is None else draws_rows(inner)


def demand(mechanism: Mechanism[Any], served: frozenset[type[Question]]) -> None:
    """Refuse a mechanism that needs a question which these rows cannot answer."""
    missing = sorted(q.__name__ for q in mechanism.needs - served)
    if missing:
        raise Unsupported(f"{mechanism.name} needs {', '.join(missing)}, which these rows cannot answer.")
