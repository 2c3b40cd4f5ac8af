"""Check that clipped sums were asked with the bounds, prices and noise that a certificate states."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.budget import Currency, Neighbours
from stratsynth.accounting.charges import POWER
from stratsynth.mechanisms.clipped_sums import NORMAL_95, PAID, clipped_columns, share_of
from stratsynth.release.consistency import TOLERANCE, Stated
from stratsynth.release.measurements import opened_measurements
from stratsynth.release.page.measured import named_path
from stratsynth.schema import Schema
from stratsynth.strata import label
from stratsynth.verifying.verdict import Notes

if TYPE_CHECKING:
    from stratsynth.certificate import Certificate, ClippedSumStated, SumsStated


def check_sums(certificate: Certificate, stated: Stated, folder: Path, notes: Notes) -> None:
    """Recompute bounds, prices and noise of the clipped sums that a certificate lists; add the outcome to `notes`."""
    section = certificate.sums
    if section is None:
        return
    schema = Schema.from_toml(folder / "model" / "schema.toml")
    if not section.asked:
        if any(charge.kind == "total" for charge in stated.spending.charges):
            notes.findings.append("certificate.json says that no clipped sum was asked, and its charges have sums.")
        return
    found = [
        *_bounds(section, schema),
        *_share(section, schema, stated),
        *_charged(certificate, section, stated, schema.row_weight.most),
        *_released(section, folder),
    ]
    notes.findings += found
    if not found:
        notes.checked.append(
            "Clipped sums have the bounds of the schema and were charged for them: half the width of [lower, clip], "
            "times the largest weight, moves a sum."
        )


def _bounds(section: SumsStated, schema: Schema) -> list[str]:
    """Return sentences on columns whose stated bounds or middles are not those of the schema."""
    wanted = {one.column: (one.lower, one.clip, one.middle) for one in clipped_columns(schema)}
    if {one.column: (one.lower, one.clip, one.middle) for one in section.columns} == wanted:
        return []
    return ["certificate.json states clipped sums of other columns or bounds than its schema."]


def _share(section: SumsStated, schema: Schema, stated: Stated) -> list[str]:
    """Return a sentence if the sums of one record cost more than the stated share, or it is not the schema's."""
    most = max(section.strata.values(), default=0.0) + _price(section)
    cap = stated.allot.amount / stated.budget.rows ** POWER[stated.allot.currency] * (section.share or 0.0)
    if section.share == share_of(schema) and most <= cap * (1 + TOLERANCE):
        return []
    return [f"certificate.json states clipped sums for {section.share} of its amount, which is not what they cost."]


def _charged(certificate: Certificate, section: SumsStated, stated: Stated, weight: int) -> list[str]:
    """Return sentences on groups whose charges are not those of the listed sums."""
    charges: dict[str, Counter[tuple[str, str]]] = {}
    currency, rows, priced = stated.allot.currency, stated.budget.rows, stated.budget.neighbours.priced
    noise: dict[str, set[str]] = {}
    for charge in stated.spending.charges:
        if charge.kind == "total":
            group, moved = label(named_path(charge.path, certificate)), charge.sensitivity[Neighbours.ADD_REMOVE]
            charges.setdefault(group, Counter())[_digits(moved), _digits(charge.amount)] += charge.times
            if not _close(charge.sensitivity[Neighbours.REPLACE], 2 * moved):
                return [f"A clipped sum in {group or 'the whole table'} has another sensitivity than twice its clip."]
            noise.setdefault(group, set()).add(_digits(_noise(charge.details, currency)))
    wanted = {"": _price(section), **section.strata}
    if set(charges) != set(wanted) or currency not in PAID:
        return ["certificate.json lists clipped sums of other groups than its charges have."]
    exchanged, found = 2 if priced == Neighbours.REPLACE else 1, list[str]()
    for group, price in wanted.items():
        each = price / len(section.columns) * rows ** POWER[currency]
        moves = [rows * weight * _half(one) for one in section.columns]
        paid = Counter((_digits(move), _digits(each)) for move in moves)
        # a column that defines a stratum has no sum there
        if (charges[group] - paid) or (not group and charges[group] != paid):
            found.append(f"The clipped sums charged in {group or 'the whole table'} are not those that are listed.")
    for one in section.columns:
        moved = exchanged * weight * _half(one)
        each = _price(section) / len(section.columns)
        sd = moved / math.sqrt(2 * each) if currency == Currency.ZCDP else math.sqrt(2) * moved / each
        if not _close(one.noise_sd, sd) or _digits(one.noise_sd) not in noise[""]:
            found.append(f"The noise of the clipped sum of {one.column} is not the one that was paid for.")
        if one.half_width is not None and not _close(one.half_width * (section.declared or 0), NORMAL_95 * sd):
            found.append(f"The half width by the clipped sum of {one.column} does not follow from its noise.")
    return found


def _released(section: SumsStated, folder: Path) -> list[str]:
    """Return a sentence if measurements.parquet lacks a listed sum, or has others."""
    wanted = {(one.column, one.middle, _half(one)) for one in section.columns}
    found: Counter[str] = Counter()
    with opened_measurements(folder) as file:
        if "sum" not in file.schema_arrow.names:
            return ["measurements.parquet has no clipped sum."]
        for batch in file.iter_batches(columns=["stratum", "sum"], use_threads=False):
            for group, text in zip(*(batch.column(name).to_pylist() for name in ("stratum", "sum")), strict=True):
                if text:
                    found[group] += 1
                    if _described(json.loads(text)) not in wanted:
                        return ["measurements.parquet has a sum that certificate.json does not list."]
    if set(found) == {"", *section.strata} and found[""] == len(wanted):
        return []
    return ["measurements.parquet has clipped sums of other groups than certificate.json lists."]


def _described(said: Any) -> tuple[str, float, float] | None:
    """Return column, middle and clip of a published sum's description; None if it is no clipped sum of numbers."""
    plain = said.get("sum") == "columns" and said.get("raw") is True and said.get("square") is False
    if not plain or len(said["columns"]) != 1 or said["scale"] != [1.0]:
        return None
    return said["columns"][0], said["centre"][0], said["clip"]


def _price(section: SumsStated) -> float:
    return section.rho or section.epsilon or 0.0


def _half(one: ClippedSumStated) -> float:
    return (one.clip - one.lower) / 2


def _noise(details: Any, currency: Currency) -> float:
    return float(details["sigma"] if currency == Currency.ZCDP else math.sqrt(2) * details["scale"])


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=TOLERANCE)


def _digits(number: float) -> str:
    return f"{number:.8g}"
