"""The adapter interface: what a mechanism may know, what it must provide, and how it is found by name.

A mechanism is a frozen settings object. It gets no rows, only `Public`; it yields questions (see
`stratsynth.questions`) and returns a model. Third parties register theirs under the entry-point group
`stratsynth.mechanisms`; the command line then knows it by that name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from stratsynth.accounting.budget import Allotment, Budget, Neighbours
from stratsynth.errors import Unsupported
from stratsynth.questions import Program, Question
from stratsynth.schema import Schema
from stratsynth.strata import Stratum, within

if TYPE_CHECKING:
    from numpy.random import Generator

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True)
class Public:
    """All that a mechanism may know before it asks. None of it is computed from rows, unless by a paid answer."""

    schema: Schema
    """The columns that vary here: inside a stratum the columns that define it are gone."""
    size: int | None = None
    """About how many rows there are: declared size times share, public or a noisy answer. None when unknown."""
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    """What the guarantee compares; questions price themselves by it."""
    constant: frozenset[str] = frozenset()
    """The columns that the strata above define: a setting may name them, though they may not vary here."""
    exact: bool = True
    """Whether `size` is the declared size times exact shares: those of a sample or of noisy counts are not."""

    def within(self, stratum: Stratum, share: float, *, exact: bool = True) -> Public:
        """What is known of one stratum that has this share of all records."""
        size = None if self.size is None else round(self.size * share)
        constant = self.constant.union(stratum.columns)
        return Public(within(self.schema, (stratum,)), size, self.neighbours, constant, self.exact and exact)


class Mechanism(Protocol[R_co]):
    """One way to learn something private. Implementations are frozen dataclasses: the settings are the plug-in.

    A mechanism whose answers decide how much it pays for which kind of question says so by a class variable,
    `adaptive: ClassVar[bool] = True`; see `adaptive`. `stratsynth.testing.check_contract` finds those that do not.
    """

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
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def title(mechanism: Mechanism[Any]) -> str:
    """What a reader calls it: `mst`, `mst by SEX x RAC1P`, or `pooled mst by SEX x RAC1P`."""
    inner, by = getattr(mechanism, "inner", None), getattr(mechanism, "by", ())
    if inner is None:
        return mechanism.name
    own = "" if mechanism.name == "stratified" else f"{mechanism.name} "
    return f"{own}{title(inner)} by {' x '.join(by)}"


def typical(mechanism: Mechanism[Any], public: Public, allot: Allotment, rng: Generator) -> Program[Any]:
    """A program that asks what a fit will ask, as far as it can be foreseen: what a plan goes by.

    A mechanism whose questions depend on answers, and whose fits take time, has one of its own, `typical`; it
    returns nothing of use. All others are simply run.
    """
    program: Program[Any] = getattr(mechanism, "typical", mechanism.steps)(public, allot, rng)
    return program


def adaptive(mechanism: Mechanism[Any]) -> bool:
    """Whether what it pays for each kind of question depends on answers: it says so, or what it is made of does.

    The certificate states what a release would cost if a record moved or were exchanged. Those prices differ from
    kind to kind: an exchanged record moves a table by sqrt(2), a clipped sum or a score by up to 2. Where kinds and
    prices of all questions are fixed in advance, as MST's are, the charges that were made are all there can be,
    and their sum is the price. Where answers decide, as in AIM, another course of the same fit could have been
    dearer, and neighbouring tables may take different courses. The sum that one course came to is then no bound: a
    filter stops a fully adaptive mechanism at a bound that was fixed in advance, and ours is fixed for the declared
    neighbours only. So the whole allotment is priced at the dearest kind that the mechanism can ask.
    """
    inner = getattr(mechanism, "inner", None)
    return bool(getattr(mechanism, "adaptive", False)) or (inner is not None and adaptive(inner))


def draws_rows(mechanism: Mechanism[Any]) -> bool:
    """Whether what it returns draws rows; a mechanism that returns estimates has a class variable `draws_rows`."""
    inner = getattr(mechanism, "inner", None)
    return bool(getattr(mechanism, "draws_rows", True)) if inner is None else draws_rows(inner)


def demand(mechanism: Mechanism[Any], served: frozenset[type[Question]]) -> None:
    """Refuse a mechanism that needs a question which these rows cannot answer."""
    missing = sorted(q.__name__ for q in mechanism.needs - served)
    if missing:
        raise Unsupported(f"{mechanism.name} needs {', '.join(missing)}, which these rows cannot answer.")
