"""The contract of mechanisms: the facts that a mechanism may know, and everything that it declares.

A mechanism is a frozen settings object that inherits `Mechanism`. It gets no rows, only `Public`; it yields questions
(see `stratsynth.questions`) and returns a model (see `stratsynth.models`). Nothing is probed: what a mechanism does
not declare has the dearest, least protected, most adaptive meaning, so that a wrapper which forwards too little gets
prices that are too high, or a refusal before anything is charged.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Generic, ParamSpec, TypeVar, cast

from stratsynth.accounting.budget import Allotment, Budget, Neighbours
from stratsynth.mechanisms.known import Known
from stratsynth.mechanisms.prior_rows import PriorRows
from stratsynth.models.base import Returns
from stratsynth.questions import Program, Question, Raw
from stratsynth.schema import Schema
from stratsynth.settings import check_fields
from stratsynth.strata import Stratum, within
from stratsynth.weights import Weights

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.layout.layout import Layout
    from stratsynth.references import Reference

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)
UNDECLARED = "undeclared"
"""Entry of `unprotected` for a mechanism that does not declare what it discloses without noise."""


@dataclass(frozen=True)
class Public:
    """All facts that a mechanism may know before it asks. None is computed from rows, except from paid answers."""

    schema: Schema
    """Columns that vary here: inside a stratum, without the columns that define it."""
    size: int | None = None
    """Approximate number of rows: declared size times share, public or a noisy answer. None if unknown."""
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    """Notion of neighbour by which questions are priced."""
    constant: frozenset[str] = frozenset()
    """Columns that define the strata above: a setting may name them, though they do not vary here."""
    exact: bool = True
    """True if `size` is the declared size times exact shares, not those of a sample or of noisy counts."""
    prior: PriorRows | None = None
    """Public rows that the fit starts from, such as last year's. None without a prior."""
    known: tuple[Known, ...] = ()
    """Public tables, such as shares of groups: nothing is to be spent on them."""
    _kept: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Results computed from these facts; see `once`."""

    def __getstate__(self) -> dict[str, Any]:
        """Copy without results: their keys have identities of settings, which a copy does not share."""
        return {**vars(self), "_kept": {}}

    def without(self, names: Iterable[str]) -> Public:
        """Return the facts without the columns `names`, which strata define; these are added to `constant`."""
        names = tuple(names)
        known = tuple(one for each in self.known if (one := each.without(names)) is not None)
        schema, constant = self.schema.without(names), self.constant.union(names)
        return dataclasses.replace(self, schema=schema, constant=constant, known=known)

    def already_known(self, clique: Iterable[str]) -> bool:
        """True if a certain known table has all columns of `clique`, so that a table of them would add nothing."""
        return any(known.certain and known.tells(clique) for known in self.known)

    @property
    def asked(self) -> tuple[tuple[str], ...]:
        """Tuple of cliques (name,) of all columns without a certain known table: those that are left to be counted."""
        cliques = self.schema.oneways
        return tuple(clique for clique in cliques if not self.already_known(clique)) if self.known else cliques

    def within(self, stratum: Stratum, share: float, *, exact: bool = True) -> Public:
        """Return `Public` facts about one stratum that has this share, `exact` or not, of all records.

        The result is one object for equal calls, and for all strata with equal facts: what follows from it is computed
        once for all of them.
        """
        key = "within", stratum, share, exact
        if key not in self._kept:
            size = None if self.size is None else round(self.size * share)
            constant, codes = self.constant.union(stratum.columns), stratum.codes(self.schema)
            schema = within(self.schema, (stratum,))
            prior = None if self.prior is None else self.prior.within(stratum, schema)
            known = tuple(one for each in self.known if (one := each.within(stratum, codes)) is not None)
            inside = Public(schema, size, self.neighbours, constant, self.exact and exact, prior, known)
            self._kept[key] = self._kept.setdefault(("same", inside), inside)
        return cast("Public", self._kept[key])

    def keep(self, key: Any, make: Callable[[], T]) -> T:
        """Return the value kept here under `key`; when first asked for, the function `make` computes it."""
        if key not in self._kept:
            self._kept[key] = make()
        return cast("T", self._kept[key])


def once(method: Callable[Concatenate[S, Public, P], T]) -> Callable[Concatenate[S, Public, P], T]:
    """Cache a method of public facts for each `Public`: price, program, rehearsal and certificate share its result.

    The result is returned again and again, so nobody may change it. Further arguments must be hashable.
    """

    @wraps(method)
    def remembered(self: S, public: Public, *args: P.args, **kwargs: P.kwargs) -> T:
        key = (method, id(self), args, tuple(kwargs.items()))
        # the settings object is kept too, so that its id is not given to another one
        return public.keep(key, lambda: (method(self, public, *args, **kwargs), self))[0]

    return cast("Callable[Concatenate[S, Public, P], T]", remembered)


class Mechanism(ABC, Generic[R_co]):
    """A private algorithm with its settings. Implementations are frozen dataclasses: the settings are the plug-in.

    To be declared by every mechanism: `name`, `needs`, `returns`, `price`, `steps`. Class variables will do for the
    first three. Everything else has a default, and the default is the pessimistic one. A setting that is declared with
    its range, as `rate: float = at(0.1, above=0)` by `stratsynth.settings.at`, is checked when the object is made.
    """

    label: ClassVar[str] = ""
    """Name that a page gives it, before its own name and its settings; empty for none."""
    paper: ClassVar[Reference | str] = ""
    """Publication that pages and `stratsynth cite` name for it; empty for none."""
    samples_hold: ClassVar[bool] = False
    """True if intervals from `Release.samples` were found to hold: its measured tables are known in advance, and
    coverage was checked. Each class declares it for itself; it is not inherited."""

    def __post_init__(self) -> None:
        """Check the settings that are declared by `at`; an override calls this first."""
        check_fields(self)

    @property
    @abstractmethod
    def name(self) -> str:
        """Name under which recipes and certificates refer to the mechanism, such as `mst`."""

    @property
    @abstractmethod
    def needs(self) -> frozenset[type[Question]]:
        """Set of question classes it may ask, `Split` and `Work` included; others that concern rows are refused."""

    @property
    @abstractmethod
    def returns(self) -> Returns:
        """Kind of model that a fit returns: `Returns.ROWS`, estimates or predictions."""

    @abstractmethod
    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return the `Allotment`, rho, epsilon or steps per row, that it will spend of a budget on public facts.

        Raises:
            Unsupported: A schema or budget that it cannot serve, with the remedy. Nothing is charged.
        """

    @abstractmethod
    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[R_co]:
        """Return the program for public facts: questions that cost at most the allotment, then the model.

        `rng` is for post-processing alone.
        """

    def rehearsal(self, public: Public, allot: Allotment, rng: Generator) -> Program[Any]:
        """Return a program that asks what a fit with the allotment asks, on made-up answers: the basis of a plan.

        Every fit runs it too, on the same public facts, before it reserves, so a fit that cannot be paid is refused
        while nothing is charged. The default is the fit itself, random by `rng`; a mechanism whose models take time
        leaves them out, and returns nothing of use.
        """
        return self.steps(public, allot, rng)

    @property
    def adaptive(self) -> bool:
        """True if answers decide how much it pays for each kind of question.

        The certificate states what a release would cost if a record moved or were exchanged. Those prices differ from
        kind to kind: an exchanged record moves a table by sqrt(2), a clipped sum or a score by up to 2. Where kinds
        and prices of all questions are fixed in advance, as MST's are, the charges that were made are all there can
        be, and their sum is the price. Where answers decide, as in AIM, another course of the same fit could have been
        dearer, and neighbouring tables may take different courses; the whole allotment is then priced at the dearest
        kind in `needs`.
        """
        return True

    @property
    def unprotected(self) -> tuple[str, ...]:
        """Tuple of names of things disclosed without noise, for the certificate; () for none; UNDECLARED by default."""
        return (UNDECLARED,)

    @property
    def takes_row_count(self) -> bool:
        """True if it takes the exact number of rows for public, which would publish every stratum's size."""
        return Raw in self.needs

    @property
    def takes_prior(self) -> bool:
        """True if it starts from `Public.prior`; where False, a fit with a prior is refused. False by default."""
        return False

    @property
    def takes_linked(self) -> bool:
        """True if it fits two linked tables, and nothing else; False by default."""
        return False

    def planned_tables(self, public: Public, allot: Allotment) -> Mapping[str, float]:
        """Return {counted table of two linked ones: number of parents that a plan takes for it}; by default {}.

        The numbers are by public facts and the allotment.
        """
        return {}

    @property
    def takes_known(self) -> bool:
        """True if it takes `Public.known` for exact and asks nothing of it; if False, `weights` are refused."""
        return False

    @property
    def borrows(self) -> bool:
        """True if its strata start from a model of everybody, so that they may measure no table of a single column."""
        return False

    @property
    def public_rows_only(self) -> bool:
        """True if it claims no privacy at all, so that a fit of rows not declared public is refused."""
        return False

    def strata(self, public: Public, budget: Budget) -> Layout | None:
        """Return the layout of the strata asked, by public facts and budget; None, the default, if all records are."""
        return None

    def drawn(self, public: Public, budget: Budget) -> Layout | None:
        """Return the layout, by public facts and budget, of groups whose shares draw rows, by default its strata.

        None for a mechanism without such groups; wrappers forward it.
        """
        return self.strata(public, budget)

    def relative(self, epsilon: float) -> Mechanism[R_co]:
        """Return a copy in which epsilons of single strata become fractions of `epsilon`; itself by default."""
        return self

    @property
    def title(self) -> str:
        """Name for readers: `mst`, `mst by SEX x RAC1P`, or `pooled mst by SEX x RAC1P`."""
        return self.name

    @property
    def fitted(self) -> Mechanism[Any]:
        """Mechanism that the certificate describes: the inner one of strata, which are described in another section."""
        return self


def describe(mechanism: Mechanism[Any]) -> dict[str, Any]:
    """Return {"name": ..., "settings": {...}} of a mechanism, with plain values, as certificate and journal have it."""
    settings = {
        f.name: plain(getattr(mechanism, f.name))
        for f in dataclasses.fields(cast("Any", mechanism))
        if f.init and f.metadata.get("describe", True)
    }
    return {"name": mechanism.name, "settings": settings}


def plain(value: Any) -> Any:
    """Return a setting's value as JSON has it: mechanisms described, weights cited, functions named, lists copied."""
    if isinstance(value, Mechanism):
        return describe(value)
    if isinstance(value, Weights):
        return {"source": value.source, "citation": value.citation}
    if callable(value):
        return getattr(value, "__qualname__", type(value).__name__)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple | list) else value
