"""Check that each charge pays for its stated noise, and that the measurements are the tables and sums charged for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.accounting.budget import IN_RHO, Currency, Neighbours
from stratsynth.accounting.charges import FIRST, Charge
from stratsynth.accounting.exact import narrowed
from stratsynth.checks import is_number, is_whole
from stratsynth.errors import ReleaseError
from stratsynth.questions.usable import WIDER as BESIDE
from stratsynth.release.consistency import TOLERANCE, Stated
from stratsynth.release.measurements import opened_measurements
from stratsynth.release.page.measured import named_path
from stratsynth.strata import StratumPath, label
from stratsynth.verifying.verdict import Notes

if TYPE_CHECKING:
    from stratsynth.certificate import Certificate

KNOWN = {"counts", "choose", "total", "minimiser", "raw", FIRST}
"""Kinds of questions whose price follows from the charge."""
Kind = tuple[str, float]
"""Stratum's label, and standard deviation of the noise of a table or sum in it."""
CLIPS = "were clipped as their charges say: the certificate does not hold the clips"
"""Words on sums whose clips nothing in a release states."""
MOST = 10
"""Largest number of wrong charges that are named."""
WIDER = (
    " Of tables in `exact`, sigma counts as s alone, where sigma^2 = s^2 + 1 + s / 100, and s^2 + 25 for a first "
    "question: noise is discrete."
)
_SILENT = "it does not state its noise"


def check_noise(certificate: Certificate, stated: Stated, folder: Path, notes: Notes) -> None:
    """Add a finding to `notes` for each charge `stated` in a certificate that does not pay for its noise, else a check.

    Likewise if the folder's measurements hold what was not charged.
    """
    charges = stated.spending.charges
    paths = {path: label(named_path(path, certificate)) for path in dict.fromkeys(charge.path for charge in charges)}
    wrong = [(i, charge, why) for i, charge in enumerate(charges) if (why := _unpaid(charge, stated))]
    for i, charge, why in wrong[:MOST]:
        where = f"stratum {paths[charge.path]}" if charge.path else "the whole table"
        notes.findings.append(f"Charge {i}, a {charge.kind} in {where}: {why}.")
    if len(wrong) > MOST:
        notes.findings.append(f"{len(wrong) - MOST:,} more charges are wrong.")
    strange = sorted({charge.kind for charge in charges} - KNOWN)
    if strange:
        notes.unchecked.append(f"the price of questions of kinds that other packages bring: {', '.join(strange)}")
    sections = certificate.sums, certificate.bin_sums  # with their clips: see `verifying.sums`
    listed = any(section is not None and section.asked for section in sections)
    if not listed and any(charge.kind == "total" and charge.currency != Currency.SAMPLED for charge in charges):
        notes.unchecked.append(f"that sums {CLIPS}")
    if not wrong and any(charge.kind in KNOWN - {"raw"} for charge in charges):
        notes.checked.append(
            "Each charge pays for its noise: Gaussian noise at rho = D^2 / (2 sigma^2), Laplace noise at epsilon = D / "
            "scale, a choice at rho = epsilon^2 / 8, or in pure epsilon at that; D is the sensitivity."
            f"{WIDER if stated.allot.currency == Currency.EXACT else ''}"
        )
    if not any(charge.kind in {"counts", "total"} for _, charge, _ in wrong):
        _measurements(charges, paths, folder, notes, strict=not strange)


def _unpaid(charge: Charge, stated: Stated) -> str:
    """Return words on a charge's wrong price or sensitivity, by budget and row weight in `stated`; "" if it is right.

    "" for an unknown kind.
    """
    moved, rows = charge.sensitivity[stated.budget.neighbours.priced], stated.budget.rows
    if charge.kind == "counts":
        # a record changes one cell of each of k tables by its weight: L2 sensitivity weight sqrt(k)
        tables = charge.details.get("cliques")
        wide = (
            is_whole(tables)
            and tables >= 1
            and _at_least(charge, rows * stated.weight * math.sqrt(tables), math.sqrt(2))
        )
        words = _gaussian(charge, moved) if wide else "its sensitivity is smaller than that of its tables"
        return words if charge.currency in IN_RHO else "tables have Gaussian noise, which costs rho and nothing else"
    if charge.kind == "choose":
        wide = _at_least(charge, rows, 1)
        return _choice(charge) if wide else "its sensitivity is smaller than that of a choice"
    if charge.kind == FIRST:
        return _usable(charge, moved, rows * stated.weight)
    if charge.currency == Currency.SAMPLED:
        return "" if charge.amount == 1 else "a step on samples counts as one"
    if charge.kind in {"total", "minimiser"}:
        return _gaussian(charge, moved) if charge.currency in IN_RHO else _laplace(charge, moved)
    return ""


def _at_least(charge: Charge, added: float, times: float) -> bool:
    """True if the charge's sensitivity is `added` or more for one record more, and `times` that one for an exchange."""
    one, two = (charge.sensitivity[notion] * (1 + TOLERANCE) for notion in (Neighbours.ADD_REMOVE, Neighbours.REPLACE))
    return one >= added and two >= times * charge.sensitivity[Neighbours.ADD_REMOVE]


def _gaussian(charge: Charge, moved: float) -> str:
    """Return words if a charge is below (`moved` / sigma)^2 / 2, the rho of its noise, or names no sigma; else "".

    In `exact` the noise of a table counts narrowed by what discrete noise takes, which a sum's fine grid makes nothing;
    that of a first question by the variance that it has beside the priced one.
    """
    sigma: Any = charge.details.get("sigma")
    if charge.currency == Currency.EXACT and charge.kind in {"counts", FIRST} and _positive(sigma):
        sigma = narrowed(sigma) if charge.kind == "counts" else max(0.0, sigma**2 - BESIDE) ** 0.5
    return _below(charge, (moved / sigma) ** 2 / 2) if _positive(sigma) else _SILENT


def _usable(charge: Charge, moved: float, weight: int) -> str:
    """Return words on a wrong charge for a first question, whose 1 + columns numbers each move by up to `weight`.

    "" if it is right; `moved` is the charge's sensitivity.
    """
    numbers, gaussian = charge.details.get("columns"), charge.details.get("sigma")
    if not is_whole(numbers) or numbers < 0:
        return "it does not state its columns"
    if not _at_least(charge, weight * ((1 + numbers) ** 0.5 if gaussian else 1 + numbers), 1):
        return "its sensitivity is smaller than that of its numbers"
    if charge.currency == Currency.SAMPLED:
        charge = replace(charge, amount=charge.details.get("rho", 0.0))
    return _gaussian(charge, moved) if gaussian else _laplace(charge, moved)


def _laplace(charge: Charge, moved: float) -> str:
    """Return words if a charge is below `moved` / scale, the epsilon of its noise, or names no scale; else ""."""
    scale: Any = charge.details.get("scale")
    return _below(charge, moved / scale) if _positive(scale) else _SILENT


def _choice(charge: Charge) -> str:
    """Return words if a choice's charge in zCDP is below epsilon^2 / 8, or names no epsilon; else "", also if pure."""
    if charge.currency == Currency.PURE:
        return ""  # its epsilon is its price
    epsilon: Any = charge.details.get("epsilon")
    return _below(charge, epsilon**2 / 8) if _positive(epsilon) else _SILENT


def _below(charge: Charge, cost: float) -> str:
    """Return words if the amount of a charge is below `cost`, in its currency; "" if it is not."""
    paid = charge.amount >= cost * (1 - TOLERANCE)
    return "" if paid else f"{charge.currency.unit} {charge.amount:.6g} was charged, and its noise costs {cost:.6g}"


def _positive(value: object) -> bool:
    return is_number(value) and value > 0


def _measurements(
    charges: list[Charge], paths: Mapping[StratumPath, str], folder: Path, notes: Notes, *, strict: bool
) -> None:
    """Add a finding to `notes` if the folder holds tables or sums, by stratum and noise, that no charge paid for.

    `paths` maps each stratum's path, as charges have it, to its label. `strict` is False if charges of unknown kinds
    may have paid for more.
    """
    tables: Counter[Kind] = Counter()
    sums: Counter[Kind] = Counter()
    for charge in charges:
        if charge.kind == "counts":
            tables[paths[charge.path], _digits(charge.details["sigma"])] += charge.times * charge.details["cliques"]
        elif charge.kind == "total" and charge.currency != Currency.SAMPLED:
            sums[paths[charge.path], _digits(noise_of(charge))] += charge.times
    try:
        held = [(name, is_sum, _digits(sigma)) for name, is_sum, sigma in _noise_of_measurements(folder)]
    except ReleaseError as error:
        notes.findings.append(str(error))
        return
    _tables(Counter((name, sigma) for name, is_sum, sigma in held if not is_sum), tables, notes, strict=strict)
    _sums(Counter((name, sigma) for name, is_sum, sigma in held if is_sum), sums, notes)


def _tables(held: Counter[Kind], paid: Counter[Kind], notes: Notes, *, strict: bool) -> None:
    """Compare noisy tables `held`, in measurements, and `paid`, by charges.

    Add the outcome to `notes`: they must be equal. Both are Counters of (stratum's label, deviation of the noise).
    Unless `strict`, unknown questions may have released more: then a difference is only noted in `unchecked`.
    """
    if held == paid:
        if not held:
            return
        notes.checked.append(
            f"measurements.parquet holds the {held.total():,} noisy tables that were charged, in the same strata, with "
            "the same noise."
        )
    elif strict or paid - held:
        name, sigma = next(iter((held - paid) or (paid - held)))
        notes.findings.append(
            f"measurements.parquet holds {held[name, sigma]:,} tables with noise of sigma {sigma:.6g} in "
            f"{_where(name)}; {paid[name, sigma]:,} were charged."
        )
    else:
        notes.unchecked.append("the noise of tables that questions of other packages released")


def _sums(held: Counter[Kind], paid: Counter[Kind], notes: Notes) -> None:
    """Add a finding to `notes` if noisy sums `held`, in measurements, are more than those `paid`; else checks passed.

    Both are Counters of (stratum's label, deviation of the noise). Charged ones not released are noted in `unchecked`:
    older versions and long descents have such.
    """
    if held - paid:
        name, sigma = next(iter(held - paid))
        notes.findings.append(
            f"measurements.parquet holds {held[name, sigma]:,} sums with noise of deviation {sigma:.6g} in "
            f"{_where(name)}; {paid[name, sigma]:,} were charged."
        )
        return
    if held:
        notes.checked.append(
            f"measurements.parquet holds {held.total():,} noisy sums that were charged, in the same strata, with the "
            "same noise."
        )
    if lacking := (paid - held).total():
        notes.unchecked.append(f"{lacking:,} noisy sums that were charged and are not in measurements.parquet")


def _where(name: str) -> str:
    return f"stratum {name}" if name else "the whole table"


def _digits(sigma: float) -> float:
    """Return `sigma` rounded to nine significant digits: a sum's noise is stored in units of its grid."""
    return float(f"{sigma:.9g}")


def noise_of(charge: Charge) -> float:
    """Return the standard deviation of the noise of a charge for a sum; sqrt(2) b for Laplace noise of scale b."""
    details: Any = charge.details
    return float(details["sigma"] if "sigma" in details else math.sqrt(2) * details["scale"])


def _noise_of_measurements(folder: Path) -> Iterator[tuple[str, bool, float]]:
    """Yield (stratum's label, True for a sum, noise's deviation) for each table and sum in a folder's measurements."""
    import pyarrow as pa
    import pyarrow.compute as pc

    with opened_measurements(folder) as file:
        wanted = ["stratum", "cell", "sigma"]
        more = ["grid", "sum"] if "sum" in file.schema_arrow.names else []
        for batch in file.iter_batches(columns=wanted + more, use_threads=False):
            first = batch.filter(pc.equal(batch.column("cell"), 0))
            number = first.num_rows
            of = first.column("sum").to_pylist() if more else [""] * number
            grids = first.column("grid") if more else pa.array([1.0] * number)
            sigmas = pc.multiply(first.column("sigma"), grids).to_pylist()
            yield from zip(first.column("stratum").to_pylist(), map(bool, of), sigmas, strict=True)
