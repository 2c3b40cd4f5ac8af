"""Check that sums of numbers were asked with the bounds, prices and noise that a certificate states."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from stratsynth.accounting.budget import IN_RHO, PRICED
from stratsynth.accounting.charges import POWER
from stratsynth.mechanisms.bin_sums import HEAPS, SHARE_OF_COLUMNS
from stratsynth.mechanisms.clipped_sums import NORMAL_95, PAID, clipped_columns, share_of
from stratsynth.release.consistency import TOLERANCE, Stated
from stratsynth.release.measurements import opened_measurements
from stratsynth.release.page.measured import named_path
from stratsynth.schema import Numeric, Schema
from stratsynth.strata import label
from stratsynth.verifying.noise import CLIPS, noise_of
from stratsynth.verifying.verdict import Notes

if TYPE_CHECKING:
    from stratsynth.accounting.charges import Charge
    from stratsynth.certificate import BinSumStated, Certificate, SumsStated

WITHIN = "within bins"
"""Name of a sum within bins in its description."""
Described = tuple[Any, ...]
"""Column and settings of a sum, as its description in measurements.parquet gives them."""


@dataclass(frozen=True)
class ListedSum:
    """A sum that a certificate lists, in one group, with what follows from its bounds and price."""

    group: str
    moved: float
    """Largest movement by one row more or fewer."""
    exchange: float
    """Largest movement by one row exchanged, in these."""
    price: float
    """Price of one row."""
    described: Described

    def noise(self, stated: Stated) -> float:
        """Return the standard deviation of the noise that this sum's price pays for, in the currency of `stated`."""
        reach = self.moved * (1.0 if stated.budget.neighbours.priced == PRICED[0] else self.exchange)
        if stated.allot.currency in IN_RHO:
            return reach / math.sqrt(2 * self.price)
        return math.sqrt(2) * reach / self.price

    def pays(self, charge: Charge, stated: Stated) -> bool:
        """True if `charge` has sensitivities, price and noise of this sum, for a unit of as many rows as `stated`."""
        rows = stated.budget.rows
        moved = [rows * self.moved, rows * self.moved * self.exchange]
        wanted = [*moved, self.price * rows ** POWER[stated.allot.currency], self.noise(stated)]
        found = [*(charge.sensitivity[notion] for notion in PRICED), charge.amount, noise_of(charge)]
        return all(map(_close, wanted, found))


def check_sums(certificate: Certificate, stated: Stated, folder: Path, notes: Notes) -> None:
    """Add findings to `notes` where bounds, prices or noise of a certificate's sums are wrong; else a check passed.

    They are recomputed from charges, `stated`, and compared with the measurements and the schema in the folder.
    """
    clipped, inside = certificate.sums, certificate.bin_sums
    if clipped is None and inside is None:
        return
    schema, found = Schema.from_toml(folder / "model" / "schema.toml"), list[str]()
    listed = list[ListedSum]()
    if clipped is not None and clipped.asked:
        found += [*_bounds(clipped, schema), *_share(clipped, schema, stated), *_counted(certificate, clipped, stated)]
        listed += _clipped(clipped, schema)
    if inside is not None and inside.asked:
        found += _within(inside.questions, schema, stated)
        listed += [_inside(one, schema, stated) for one in inside.questions]
    if stated.allot.currency in PAID:
        held = _published(folder)
        own = {group: sums.pop((), 0) for group, sums in held.items()}
        found += [*_charged(certificate, listed, stated, own), *_stated_noise(certificate, listed, stated)]
        found += _released(listed, held)
        if any(own.values()):
            notes.unchecked.append(f"that sums of the mechanism's own {CLIPS}")
    notes.findings += found
    if listed and not found:
        notes.checked.append(
            "Sums of numbers have the bounds of the schema and were charged for them: half the width of [lower, clip], "
            "or 1 of a number within its bin, times the largest weight, moves a sum."
        )


def _clipped(section: SumsStated, schema: Schema) -> Iterator[ListedSum]:
    """Yield a ListedSum for each column of a certificate's `SumsStated`: of everybody, then of each stratum it lists.

    The schema has the largest weight of a row.
    """
    for group, price in {"": _price(section), **section.strata}.items():
        left = price * (1 - (section.counted or 0.0)) if group else price
        for one in section.columns:
            half, each = (one.clip - one.lower) / 2, left / len(section.columns)
            described = ("columns", one.column, one.middle, half)
            yield ListedSum(group, half * schema.row_weight.most, 2.0, each, described)


def _inside(one: BinSumStated, schema: Schema, stated: Stated) -> ListedSum:
    """Return the ListedSum of a `BinSumStated`, an entry on a question about a column's numbers within bins.

    Its sensitivity follows the currency of `stated` and the schema's largest weight of a row.
    """
    exchange = math.sqrt(2) if one.multiples and stated.allot.currency in IN_RHO else 2.0
    described = (WITHIN, one.column, *one.multiples)
    return ListedSum("", float(schema.row_weight.most), exchange, _price(one), described)


def _bounds(section: SumsStated, schema: Schema) -> list[str]:
    """Return a list of one sentence if columns' bounds or middles in the `SumsStated` are not the schema's; else []."""
    wanted = {one.column: (one.lower, one.clip, one.middle) for one in clipped_columns(schema)}
    if {one.column: (one.lower, one.clip, one.middle) for one in section.columns} == wanted:
        return []
    return ["certificate.json states clipped sums of other columns or bounds than its schema."]


def _share(section: SumsStated, schema: Schema, stated: Stated) -> list[str]:
    """Return a list of one sentence if the sums in the `SumsStated` cost a record more than the stated share; else [].

    Or if that share is not the schema's; the amount is that of `stated`.
    """
    most = max(section.strata.values(), default=0.0) + _price(section)
    if section.share == share_of(schema) and most <= _row(stated) * (section.share or 0.0) * (1 + TOLERANCE):
        return []
    return [f"certificate.json states clipped sums for {section.share} of its amount, which is not what they cost."]


def _counted(certificate: Certificate, section: SumsStated, stated: Stated) -> list[str]:
    """Return a list of one sentence if a certificate's strata were charged otherwise for tables of columns with sums.

    Else []. Each stratum that the `SumsStated` lists has them for its part of the price, of the charges `stated`.
    """
    paid: dict[str, list[tuple[float, int]]] = {}
    for charge in stated.spending.charges:
        if charge.kind == "counts" and charge.path:
            here = paid.setdefault(label(named_path(charge.path, certificate)), [])
            here.append((charge.amount, int(cast("int", charge.details["cliques"]))))
    rows, number = stated.budget.rows ** POWER[stated.allot.currency], len(section.columns)
    for group, price in section.strata.items() if section.counted else ():
        each = price * (section.counted or 0.0) * rows / number
        # a column that defines the stratum has no table there
        if group in paid and not any(_close(amount, each * tables) for amount, tables in paid[group]):
            return ["Tables of the columns with clipped sums were charged otherwise than certificate.json lists."]
    return []


def _within(questions: tuple[BinSumStated, ...], schema: Schema, stated: Stated) -> list[str]:
    """Return a list of sentences on each `BinSumStated` that the schema does not declare, or that costs too much.

    Each of the `questions` has a part of the amount of `stated`.
    """
    own, found = _row(stated) * SHARE_OF_COLUMNS / len(schema.names), list[str]()
    for one in questions:
        column = schema.columns.get(one.column)
        if not isinstance(column, Numeric) or one.multiples not in ((), column.heaps):
            found.append(f"certificate.json states a sum within bins of {one.column} that its schema does not declare.")
        elif not _price(one) <= own * (HEAPS if one.multiples else column.places) * (1 + TOLERANCE):
            found.append(f"The sum within bins of {one.column} cost more than its part.")
    return found


def _charged(certificate: Certificate, listed: list[ListedSum], stated: Stated, own: Mapping[str, int]) -> list[str]:
    """Return a list of sentences, one a group of a certificate whose charged sums are not those `listed`; or [].

    `listed` has `ListedSum`s, `stated` the charges, and `own` the number of further sums, the mechanism's, by group's
    label.
    """
    charges: dict[str, list[Charge]] = {}
    for charge in stated.spending.charges:
        if charge.kind == "total":
            charges.setdefault(label(named_path(charge.path, certificate)), []).extend([charge] * charge.times)
    unpaid = set()
    for one in listed:
        here = charges.get(one.group, [])
        mine = next((place for place, charge in enumerate(here) if one.pays(charge, stated)), None)
        if mine is not None:
            here.pop(mine)
        elif not one.group or one.group not in charges:  # a column that defines a stratum has no sum there
            unpaid.add(one.group)
    wrong = sorted(unpaid.union(group for group, left in charges.items() if len(left) != own.get(group, 0)))
    return [
        f"The clipped sums, or others of numbers, in {g or 'the whole table'} were charged otherwise." for g in wrong
    ]


def _stated_noise(certificate: Certificate, listed: list[ListedSum], stated: Stated) -> list[str]:
    """Return a list of sentences on noise and half widths of a certificate that do not follow from bounds and prices.

    Noise is that of the `ListedSum`s in `listed`, in the currency `stated`.
    """
    clipped, inside, found = certificate.sums, certificate.bin_sums, list[str]()
    noise = {
        one.described if one.described[0] == WITHIN else one.described[:2]: one.noise(stated)
        for one in listed
        if not one.group
    }
    columns, declared = ((), 0) if clipped is None else (clipped.columns, clipped.declared or 0)
    for one in columns:
        sd = noise["columns", one.column]
        if not _close(one.noise_sd, sd):
            found.append(f"The noise of the clipped sum of {one.column} is not the one that was paid for.")
        if one.half_width is not None and not _close(one.half_width * declared, NORMAL_95 * sd):
            found.append(f"The half width by the clipped sum of {one.column} does not follow from its noise.")
    for each in () if inside is None else inside.questions:
        if not _close(each.noise_sd, noise[WITHIN, each.column, *each.multiples]):
            found.append(f"The noise of the sum within bins of {each.column} is not the one that was paid for.")
    return found


def _published(folder: Path) -> dict[str, Counter[Described]]:
    """Return {group's label: Counter of published sums by description}, from a folder's measurements.parquet.

    A description is a tuple as of `_described`; the mechanism's own sums have the empty tuple.
    """
    found: dict[str, Counter[Described]] = {}
    with opened_measurements(folder) as file:
        columns = ["stratum", "cell", "sum"] if "sum" in file.schema_arrow.names else []
        for batch in file.iter_batches(columns=columns, use_threads=False) if columns else ():
            for group, cell, text in zip(*(batch.column(name).to_pylist() for name in columns), strict=True):
                if text and not cell:
                    found.setdefault(group, Counter())[_described(json.loads(text))] += 1
    return found


def _released(listed: list[ListedSum], held: Mapping[str, Counter[Described]]) -> list[str]:
    """Return a list of one sentence if the published sums `held` are not the `listed` `ListedSum`s; else [].

    `held` maps a group's label, "" for everybody, to a Counter of sums by description. Of everybody all are needed, of
    a group none is more than listed.
    """
    wanted: dict[str, Counter[Described]] = {"": Counter()}
    for one in listed:
        wanted.setdefault(one.group, Counter())[one.described] += 1
    found = {group: sums for group, sums in held.items() if sums}
    same = {"", *found} == set(wanted) and found.get("", Counter()) == wanted[""]
    if same and not any(found[group] - wanted[group] for group in found):
        return []
    return ["measurements.parquet has other clipped sums, or others of numbers, than certificate.json lists."]


def _described(said: Any) -> Described:
    """Return the tuple of column and settings by which a published sum, described by the mapping `said`, is known.

    () if it is no sum of one column's numbers.
    """
    if said.get("sum") == WITHIN:
        return WITHIN, said["target"], *said["multiples"]
    plain = said.get("sum") == "columns" and said.get("raw") is True and said.get("square") is False
    if not plain or len(said["columns"]) != 1 or said["scale"] != [1.0]:
        return ()
    return "columns", said["columns"][0], said["centre"][0], said["clip"]


def _row(stated: Stated) -> float:
    """Return the reserved amount, in its currency, that one row has by `stated`, with the first question's part."""
    return float(stated.allot.amount / stated.budget.rows ** POWER[stated.allot.currency])


def _price(section: SumsStated | BinSumStated) -> float:
    """Return the price of one row in `section`, rho or epsilon, a number; 0 if it states none."""
    price: float = section.rho or section.epsilon or 0.0
    return price


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=TOLERANCE)
