"""The adapter interface: what a mechanism may know, and everything that it declares.

A mechanism is a frozen settings object that inherits `Mechanism`. It gets no rows, only `Public`; it yields questions
(see `stratsynth.questions`) and returns a model (see `stratsynth.models`). Nothing is probed: what a mechanism does
not declare has the dearest, least protected, most adaptive meaning, so that a wrapper which forwards too little gets a
certificate that says too much, or a refusal before anything is charged.
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
"""What a certificate lists as unprotected where a mechanism does not declare what it discloses without noise."""


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
    prior: PriorRows | None = None
    """Public rows that the fit starts from: last year's, say. None without a prior."""
    known: tuple[Known, ...] = ()
    """Tables that are public already, such as groups' shares: nothing is to be spent on them."""
    _kept: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What has been worked out from these facts; see `once`."""

    def __getstate__(self) -> dict[str, Any]:
        """A copy keeps nothing: what is kept goes by the identity of settings, which a copy has not."""
        return {**vars(self), "_kept": {}}

    def without(self, names: Iterable[str]) -> Public:
        """What is known of all columns but some, which strata define."""
        names = tuple(names)
        known = tuple(one for each in self.known if (one := each.without(names)) is not None)
        schema, constant = self.schema.without(names), self.constant.union(names)
        return dataclasses.replace(self, schema=schema, constant=constant, known=known)

    def told(self, clique: Iterable[str]) -> bool:
        """Whether a known table that is certain says already what a table of these columns would."""
        return any(known.certain and known.tells(clique) for known in self.known)

    @property
    def asked(self) -> tuple[tuple[str], ...]:
        """Every column that is not told, by itself: what a mechanism that counts columns asks for."""
        return tuple(clique for clique in self.schema.oneways if not self.told(clique))

    def within(self, stratum: Stratum, share: float, *, exact: bool = True) -> Public:
        """What is known of one stratum that has this share of all records.

        The same object each time, and for all strata of which the same is known: what follows from it is worked out
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
        """The value kept under a key, made when it is first asked for."""
        if key not in self._kept:
            self._kept[key] = make()
        return cast("T", self._kept[key])


def once(method: Callable[Concatenate[S, Public, P], T]) -> Callable[Concatenate[S, Public, P], T]:
    """Work a method of public facts out once for each `Public`: price, program, rehearsal and certificate share it.

    The result is handed out again and again, so nobody may change it. Further arguments must be hashable.
    """

    @wraps(method)
    def remembered(self: S, public: Public, *args: P.args, **kwargs: P.kwargs) -> T:
        key = (method, id(self), args, tuple(kwargs.items()))
        # the settings object is kept too, so that its id is not given to another one
        return public.keep(key, lambda: (method(self, public, *args, **kwargs), self))[0]

    return cast("Callable[Concatenate[S, Public, P], T]", remembered)


class Mechanism(ABC, Generic[R_co]):
    """One way to learn something private. Implementations are frozen dataclasses: the settings are the plug-in.

    To be declared by every mechanism: `name`, `needs`, `returns`, `price`, `steps`. Class variables will do for the
    first three. Everything else has a default, and the default is the pessimistic one. A setting that is declared with
    its range, as `rate: float = at(0.1, above=0)` by `stratsynth.settings.at`, is checked when the object is made.
    """

    label: ClassVar[str] = ""
    """The name that a page gives it, before its own name and its settings; empty for none."""
    paper: ClassVar[Reference | str] = ""
    """The publication that pages and `stratsynth cite` name for it; empty for none."""
    samples_hold: ClassVar[bool] = False
    """True where intervals from `Release.samples` were found to hold: its measured tables are known in advance, and
    coverage was checked. Each class declares it for itself; it is not inherited."""

    def __post_init__(self) -> None:
        """Check the settings that are declared by `at`; who overrides it calls it first."""
        check_fields(self)

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in recipes and certificates."""

    @property
    @abstractmethod
    def needs(self) -> frozenset[type[Question]]:
        """The kinds of questions it asks, `Split` and `Work` among them; others that concern rows are refused."""

    @property
    @abstractmethod
    def returns(self) -> Returns:
        """Whether its model draws rows, holds estimates, or predicts."""

    @abstractmethod
    def price(self, public: Public, budget: Budget) -> Allotment:
        """What it will spend of a budget, from public facts.

        Raises:
            Unsupported: What it cannot do for this schema or budget, with the remedy. Nothing is charged.
        """

    @abstractmethod
    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[R_co]:
        """The program: yields questions worth at most `allot`, returns a model. `rng` is for post-processing."""

    def rehearsal(self, public: Public, allot: Allotment, rng: Generator) -> Program[Any]:
        """A program that asks what an ordinary fit asks, on made-up answers: what a plan goes by.

        Every fit runs it too, before it reserves, so that what cannot be paid is refused while nothing is charged.
        By default the fit itself; a mechanism whose fits take time leaves them out, and returns nothing of use.
        """
        return self.steps(public, allot, rng)

    @property
    def adaptive(self) -> bool:
        """Whether answers decide how much it pays for each kind of question.

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
        """What it discloses without noise, as the certificate lists it: of weights, say; nothing is `()`."""
        return (UNDECLARED,)

    @property
    def takes_row_count(self) -> bool:
        """Whether it takes the exact number of rows for public, which inside strata would publish every group's."""
        return Raw in self.needs

    @property
    def takes_prior(self) -> bool:
        """Whether it starts from `Public.prior` where there is one: a fit with a prior is refused otherwise."""
        return False

    @property
    def takes_known(self) -> bool:
        """Whether it takes `Public.known` for granted, and asks nothing of it: `weights` are refused otherwise."""
        return False

    @property
    def public_rows_only(self) -> bool:
        """Whether it makes no claim of privacy at all, so that a fit of rows not declared public is refused."""
        return False

    def strata(self, public: Public, budget: Budget) -> Layout | None:
        """The strata it asks, from public facts; None for everybody together. Strata not among these are refused."""
        return None

    def drawn(self, public: Public, budget: Budget) -> Layout | None:
        """The groups by whose shares rows are drawn; by default its strata. One that wraps another forwards it."""
        return self.strata(public, budget)

    def relative(self, epsilon: float) -> Mechanism[R_co]:
        """The same mechanism, with the epsilons that its settings name as parts of this one, to be scaled with it."""
        return self

    @property
    def title(self) -> str:
        """What a reader calls it: `mst`, `mst by SEX x RAC1P`, or `pooled mst by SEX x RAC1P`."""
        return self.name

    @property
    def fitted(self) -> Mechanism[Any]:
        """What the certificate describes as the mechanism: strata, which it describes apart, taken off."""
        return self


def describe(mechanism: Mechanism[Any]) -> dict[str, Any]:
    """Name and settings, as the certificate and the journal state them."""
    settings = {
        f.name: plain(getattr(mechanism, f.name))
        for f in dataclasses.fields(cast("Any", mechanism))
        if f.init and f.metadata.get("describe", True)
    }
    return {"name": mechanism.name, "settings": settings}


def plain(value: Any) -> Any:
    """A setting as JSON has it: inner mechanisms are described, weights are cited, functions are named."""
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
