"""`linked`: two linked tables, such as households and persons, by a model of each step in which a household is drawn.

    parent   a household with its reference person, and what is counted and added up over all its persons
    second   its second person, given these
    others   the third person, and each further one, given some of these and the state of the household

Each step is a fit of the base mechanism to a counted table (`stratsynth.schema.linked`), in which a household weighs at
most what one row does, so that no step pays for the number of its persons. The three divide the budget, one after the
other; how many households have a second and a third person is taken from the parent's fitted model.

Where households are few, two models of persons learn too little: `rest`, one model of all persons but the reference,
each drawn by itself given the household, then takes their place. Declared size and budget decide that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import hypot
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from stratsynth.adapters.aim import AIM
from stratsynth.adapters.linked.model import LinkedModel
from stratsynth.adapters.linked.workload import importance, own_columns, usual_conditions, usual_workload
from stratsynth.adapters.mst import MST
from stratsynth.adapters.shared.rounds import down, usual_rounds
from stratsynth.checks import is_list, is_texts
from stratsynth.errors import Unsupported, UsageError, nearest
from stratsynth.mechanisms import Mechanism, Public, make
from stratsynth.mechanisms.known import Known
from stratsynth.models import Returns, TableModel
from stratsynth.priors.linked import sampling_error
from stratsynth.questions import Clique, Program, Question, counts
from stratsynth.schema.counted_tables import (
    OTHERS,
    PARENT,
    REFERENCE,
    REST,
    SECOND,
    SHARE,
    SLOTS,
    CountedTables,
    named,
    slot_levels,
    slot_of,
)
from stratsynth.settings import at

if TYPE_CHECKING:
    from numpy.random import Generator

    from stratsynth.accounting.budget import Allotment, Budget
    from stratsynth.schema.linked import LinkedSchema

CHAIN = 1_250
"""Least number of households times sqrt(rho) for which persons are drawn one after another: 10,000 at epsilon 1 and
2,800 at epsilon 4, at delta 1e-9. From here on pairs of a person's columns are within a tenth of those of persons drawn
by themselves; errors within households are a third smaller well below it, and half as large above."""
UNKNOWN = 10_000
"""Number of parents that is planned with where none is declared."""
USUAL = {SECOND: 0.7, OTHERS: 0.4, REST: 0.7}
"""Part of the parents that is planned with a second child row, and a third."""
MODEL_CELLS = 2**19
"""Largest number of cells of AIM's models, where it is named without settings: columns of two rows are in them."""
REQUIRED = 0.2
"""Part of a step's budget that measures its required tables, where there are any."""
SPLIT = {PARENT: 0.40, SECOND: 0.35, OTHERS: 0.25}


@dataclass(frozen=True)
class Linked(Mechanism[LinkedModel]):
    """Fit two linked tables: parents, their second child row given these, all others one after another."""

    name: ClassVar[str] = "linked"
    returns: ClassVar[Returns] = Returns.TABLES
    unprotected: ClassVar[tuple[str, ...]] = ()
    takes_linked: ClassVar[bool] = True
    takes_prior: ClassVar[bool] = True
    takes_known: ClassVar[bool] = True
    base: Mechanism[Any] | str | Mapping[str, Any] = "aim"
    """Mechanism of each step: `aim` or `mst`, alone or with settings. Unless AIM has a list of marginals, its workload
    is pairs of a step's own columns, and of these with given ones, and small triples; its models have 2^19 cells."""
    split: Mapping[str, float] = field(default_factory=lambda: dict(SPLIT))
    """Parts of the budget: of `parent`, `second` and `others`, which add up to 1."""
    conditions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Columns that are given when a child row is drawn, by `second`, `others` or `rest`: of the parent, or of the child
    for the reference's. By default derived ones, the reference's, and those of the parent with few levels; in `others`
    not what the state says, nor the reference's columns that a rule ties to the stepped one."""
    required: Sequence[Sequence[str]] = ()
    """Tables that are measured before the base chooses any, and are in the model, as far as it can hold them: lists of
    counted columns, such as `["R_RAC1P", "HHT", "N18"]` of parents or `["second.HHT", "second.MAR"]`."""
    children: Literal["auto", "chain", "independent"] = at("auto")
    """Order of drawing: child rows one after another with the state of their parent (`chain`), each by itself given
    the parent (`independent`), or one of these by declared size and budget (`auto`)."""

    def __post_init__(self) -> None:
        """Refuse settings out of range, and other bases; make a named one."""
        super().__post_init__()
        if isinstance(self.base, str | Mapping):
            settings: dict[str, Any] = {"name": self.base} if isinstance(self.base, str) else dict(self.base)
            name = str(settings.pop("name", ""))
            own = {"model_cells": MODEL_CELLS} if name == AIM.name else {}
            object.__setattr__(self, "base", make(name, {**own, **settings}))
        if not isinstance(self.base, AIM | MST):
            raise Unsupported("linked: the base is aim or mst, whose models child rows can be drawn from one by one.")
        if isinstance(self.base, AIM) and self.base.weights:
            raise Unsupported("linked: weights of marginals are not served; list marginals as AIM's workload.")
        if not isinstance(self.split, Mapping) or set(self.split) != set(SPLIT):
            raise UsageError(f"split: give the parts of {', '.join(SPLIT)}, such as {SPLIT}.")
        parts = list(self.split.values())
        if not all(type(part) in (int, float) and part > 0 for part in parts) or abs(sum(parts) - 1) > 1e-9:
            raise UsageError("split: the parts are numbers above 0 that add up to 1.")
        known = (SECOND, OTHERS, REST)
        if not isinstance(self.conditions, Mapping) or not all(
            step in known and is_texts(names) for step, names in self.conditions.items()
        ):
            raise UsageError(f'conditions: lists of columns by {", ".join(known)}, such as second = ["AGEP"].')
        if not is_list(self.required) or not all(is_texts(one) and one for one in self.required):
            raise UsageError(
                'required: lists of counted columns, such as [["HHT", "N18"], ["second.HHT", "second.MAR"]].'
            )

    @property
    def inner(self) -> AIM | MST:
        """The base mechanism, an `AIM` or `MST`."""
        return cast("AIM | MST", self.base)

    @property
    def needs(self) -> frozenset[type[Question]]:
        """Frozen set of the classes of questions that the base asks."""
        return self.inner.needs

    @property
    def adaptive(self) -> bool:
        """True if the base's answers decide what it pays for each kind of question."""
        return self.inner.adaptive

    def price(self, public: Public, budget: Budget) -> Allotment:
        """Return the whole budget as a zCDP allotment; refuse tables that are not linked, and what the base refuses."""
        linked = linked_of(public)
        if not public.schema.columns:
            raise Unsupported(
                "linked: the strata are by all columns that a kind of parents has: leave one to be fitted."
            )
        prefixed = [name for name in public.constant if name in linked.counted.columns]
        if prefixed:
            own = prefixed[0].partition(".")[2]
            raise Unsupported(
                f"linked: strata name a column of the {linked.names[0]} by itself: {own}, not {prefixed[0]}."
            )
        made = [name for name in public.constant if name in linked.derived or name == SHARE]
        if made:
            raise Unsupported(
                f"linked: {made[0]} is made of child rows, and strata are by columns that a {linked.names[0]} has by "
                "itself, or of its first child row."
            )
        for slot in self.conditions:  # of steps that this budget does not fit, too
            self.evidence(linked, slot)
        if kind_of(public) is None:
            self._check_required(public)
        allot = budget.zcdp()
        for slot, part in self.parts(public, allot.rho).items():
            fitted, facts = self.step(public, slot, part * allot.rho, self._planned(public, slot))
            self.required_of(slot, facts)
            fitted.price(facts, budget)
        return allot

    def parts(self, public: Public, rho: float) -> dict[str, float]:
        """Return {step: fraction of `rho`}, in order, by public facts: three, or two where parents are few.

        In a stratum of another kind of parents, one step with the name of the kind.
        """
        kind = kind_of(public)
        if kind is not None:
            return {kind: 1.0}
        chain = self.children == "chain"
        if self.children == "auto":
            chain = (public.size or UNKNOWN) * rho**0.5 >= CHAIN
        if chain:
            return {slot: float(self.split[slot]) for slot in SPLIT}
        return {PARENT: float(self.split[PARENT]), REST: float(self.split[SECOND]) + float(self.split[OTHERS])}

    def planned_tables(self, public: Public, allot: Allotment) -> Mapping[str, float]:
        """Return {step: number of parents that a plan takes for it}: declared, or a guess for child rows."""
        size = UNKNOWN if public.size is None else public.size
        return {slot: size * USUAL.get(slot, 1.0) for slot in self.parts(public, allot.rho)}

    def steps(self, public: Public, allot: Allotment, rng: Generator) -> Program[LinkedModel]:
        """Program for `allot` that fits the steps one after another and returns a `LinkedModel`.

        Later sizes come from the parent's model.
        """
        linked, shares = linked_of(public), self._divided(public, allot)
        counted = public.schema
        assert isinstance(counted, CountedTables)  # noqa: S101 - see `linked_of`
        parts: dict[str, TableModel] = {}
        parents = float(public.size or 0)
        for (slot, share), mine in zip(shares.items(), rng.spawn(len(shares)), strict=True):
            size = parents * _part_with(linked, parts[PARENT], slot) if parts else public.size
            fitted, facts = self.step(public, slot, share.rho, size)
            known, left = yield from self._measured(slot, facts, share)
            parts[slot] = yield from fitted.steps(replace(facts, known=(*facts.known, *known)), left, mine)
            if len(parts) == 1 and public.size is None:
                parents = _measured(parts[slot]) / counted.row_weight.most
        return LinkedModel(counted, parts, parents)

    def rehearsal(self, public: Public, allot: Allotment, rng: Generator) -> Program[None]:
        """Program that asks what an ordinary fit asks for `allot`, by planned sizes; no result."""
        for slot, share in self._divided(public, allot).items():
            fitted, facts = self.step(public, slot, share.rho, self._planned(public, slot))
            known, left = yield from self._measured(slot, facts, share)
            yield from fitted.rehearsal(replace(facts, known=(*facts.known, *known)), left, rng)

    def step(self, public: Public, slot: str, rho: float, size: float | None) -> tuple[AIM | MST, Public]:
        """Return (AIM or MST for step `slot`, its `Public` facts).

        `rho` is the step's; `size`, or None if unknown, is the number of parents that have a row in its counted table.
        """
        counted = public.schema
        assert isinstance(counted, CountedTables)  # noqa: S101 - see `linked_of`
        linked = linked_of(public)
        alone = slot == PARENT or slot in linked.kinds
        given = () if alone else self.evidence(linked, slot)
        given = tuple(name for name in given if name.partition(".")[2] not in public.constant)
        own = [name for name in counted.of(slot).names if alone or name in own_columns(linked, slot)]
        weight = counted.row_weight.most
        rows = None if size is None else max(1, round(size))
        schema = counted.restrict([*given, *own])
        constant = frozenset(named(slot, name) for name in public.constant)
        # their own sample's error, and that of the parents fitted: rows of weight 60 are no sixty people
        prior = [one for one in public.known if schema.columns.keys() >= set(one.clique)]
        known = tuple(
            replace(one, error=hypot(one.error, sampling_error(one.shares, rows or UNKNOWN))) for one in prior
        )
        facts = Public(schema, None if rows is None else rows * weight, public.neighbours, constant, known=known)
        base = self.inner
        if not isinstance(base, AIM):
            return replace(base, prior=min(base.prior * weight, 1e6)), facts
        people = UNKNOWN if rows is None else rows
        if isinstance(base.workload, str):
            base = replace(base, workload=usual_workload(linked, slot, schema))
            base = replace(base, weights=importance(linked, slot, schema))
        return replace(
            base,
            rounds=base.rounds or usual_rounds(len(schema.names), people, rho),
            prior=min(base.prior * weight, 1e6),
        ), facts

    def evidence(self, linked: LinkedSchema, slot: str) -> tuple[str, ...]:
        """Return a tuple of names of the counted columns given in step `slot`: set or default ones, and the states.

        UsageError for columns of the setting that there are not.
        """
        levels, own, parent = slot_levels(linked, slot), own_columns(linked, slot), slot_levels(linked, PARENT)
        state = tuple(name for name in levels if named(slot, name) not in own and name not in parent)
        asked = self.conditions.get(slot)
        if asked is None:
            chosen = usual_conditions(linked, slot)
        else:
            chosen = []
            for name in asked:
                if name not in parent and REFERENCE + name not in parent:
                    raise UsageError(f"conditions: there is no column {name!r}{nearest(name, parent)}.")
                chosen.append(name if name in parent else REFERENCE + name)
        return tuple(dict.fromkeys(named(slot, name) for name in (*chosen, *state)))

    def required_of(self, slot: str, facts: Public) -> list[Clique]:
        """Return a list of the required tables of step `slot`, each a tuple of names of counted columns.

        `facts` are the step's. Columns that define the stratum are left out. UsageError for columns that it has not.
        """
        found, schema = [], facts.schema
        for asked in self.required:
            names = [name if slot_of(name) in SLOTS else named(PARENT, name) for name in asked]
            if {slot_of(name) for name in names} != {slot}:
                continue
            names = [name for name in names if facts.constant.isdisjoint((name, name.partition(".")[2]))]
            for name in names:
                if name not in schema.columns:
                    raise UsageError(f"required: the step {slot} has no column {name!r}{nearest(name, schema.names)}.")
            found += [clique] if (clique := tuple(name for name in schema.names if name in names)) else []
        return found

    def _check_required(self, facts: Public) -> None:
        """Raise UsageError for a required table of several steps, which none could measure, or with unknown columns."""
        for asked in self.required:
            slots = {slot_of(name) if slot_of(name) in SLOTS else PARENT for name in asked}
            if len(slots) > 1:
                raise UsageError(
                    f"required: {list(asked)} has columns of {' and '.join(sorted(slots))}, and a table is measured in "
                    "one step. Within a step, columns of the parent are named after it, such as second.HHT."
                )
            self.required_of(slots.pop(), facts)

    def _measured(self, slot: str, facts: Public, share: Allotment) -> Program[tuple[tuple[Known, ...], Allotment]]:
        """Program that measures a step's required tables; returns (tuple of `Known` tables, `Allotment` left).

        The step is `slot`, `facts` are its public facts, `share` is its allotment.
        """
        cliques = self.required_of(slot, facts)
        if not cliques:
            return (), share
        first = down(Fraction(share.amount) * Fraction(REQUIRED))
        tables = yield from counts(cliques, rho=first)
        known = []
        for table in tables:
            total = max(1.0, float(facts.size or table.values.sum()))
            known.append(Known(table.clique, table.values / total, error=table.sigma / total))
        return tuple(known), replace(share, amount=down(Fraction(share.amount) - Fraction(first)))

    def _divided(self, public: Public, allot: Allotment) -> dict[str, Allotment]:
        """Return {step: its `Allotment`}, in order; together they are at most the whole."""
        left = Fraction(allot.amount)
        found: dict[str, Allotment] = {}
        parts = self.parts(public, allot.rho)
        for slot, part in parts.items():
            last = len(found) == len(parts) - 1
            amount = down(left) if last else down(Fraction(allot.amount) * Fraction(part))
            left -= Fraction(amount)
            found[slot] = replace(allot, amount=amount)
        return found

    def _planned(self, public: Public, slot: str) -> float | None:
        return None if public.size is None else public.size * USUAL.get(slot, 1.0)


def linked_of(public: Public) -> LinkedSchema:
    """Return the `LinkedSchema` of public facts; Unsupported for a table that is not linked."""
    schema = public.schema
    if not isinstance(schema, CountedTables):
        raise Unsupported(
            "linked: this mechanism fits two linked tables; open them by open_tables(parent, child, ...)."
        )
    return schema.linked


def kind_of(public: Public) -> str | None:
    """Return the name of the kind of parents that a stratum of public facts holds; None for those with child rows."""
    slots = {slot_of(name) for name in public.schema.names}
    return None if PARENT in slots else next(iter(slots), None)


def _part_with(linked: LinkedSchema, parents: TableModel, slot: str) -> float:
    """Return the fraction of the parents that have a row in the counted table `slot`, by the parents' model."""
    least = {SECOND: 2, OTHERS: 3, REST: 2}[slot]
    levels = linked.counts[linked.size].levels
    enough = frozenset(code for code in range(len(levels)) if code + 1 >= min(least, len(levels)))
    return parents.mass({named(PARENT, linked.size): enough})


def _measured(model: TableModel) -> float:
    """Return the total weight that a fitted model found."""
    return float(cast("Any", model).total)
