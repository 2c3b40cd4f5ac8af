"""Check that the laws of numbers within bins are those that measurements and schema give, and as certified."""

from __future__ import annotations

import math
from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.errors import ReleaseError, StratsynthError
from stratsynth.models import files
from stratsynth.release.laws import laws
from stratsynth.release.measurements import read_measurements
from stratsynth.schema import Schema
from stratsynth.schema.drawn import PRIOR

if TYPE_CHECKING:
    from stratsynth.certificate import Certificate, InsideStated
    from stratsynth.schema.inside import Inside
    from stratsynth.verifying.verdict import Notes

TOLERANCE = 1e-4
"""Relative difference of two slopes that the order of sums, and a model in 32 bits on another machine, may make."""


def check_laws(certificate: Certificate, folder: Path, notes: Notes) -> None:
    """Add a finding to `notes` if a folder's laws of numbers within bins do not follow from measurements and schema.

    Both those that the certificate states and those it draws by; else a check passed.
    """
    rows = any(name.startswith("synthetic.") for name in certificate.files or ())
    if not rows and not certificate.inside:
        return
    try:
        schema = Schema.from_toml(folder / "model" / "schema.toml")
        held = files.load_laws(folder / "model", schema)
        densities = {  # others were made of noisy sums of places, and are made again
            name: law.density
            for name, law in held.items()
            if law.density is not None and getattr(schema.columns.get(name), "within", "") == PRIOR
        }
        found, stated = laws(
            schema, certificate, read_measurements(folder), lambda: files.load(folder / "model"), densities
        )
    except ReleaseError as error:
        notes.findings.append(f"The laws of numbers within bins cannot be relied on: {error}")
        return
    except (StratsynthError, OSError):
        return  # its hash says so, and loading it
    if not stated and not certificate.inside and not held:
        return
    equal = (_equal_entries(one, other, densities) for one, other in zip(stated, certificate.inside, strict=False))
    if len(stated) != len(certificate.inside) or not all(equal):
        notes.findings.append(
            "certificate.json states other laws of numbers within bins than schema and measurements.parquet give."
        )
    elif held.keys() != found.keys() or not all(
        _equal_tails(held[name], law) and (name in densities or _equal_measured(held[name], law))
        for name, law in found.items()
    ):
        notes.findings.append("The model draws numbers within bins by other laws than measurements.parquet gives.")
    else:
        sums = " and clipped sums" if any(one.summed for one in stated) else ""
        notes.checked.append(
            f"Tails follow from the noisy counts{sums} in measurements.parquet, within the declared slopes."
        )
        if any(one.places or one.heaps for one in stated):
            notes.checked.append("Places and multiples within bins follow from the noisy sums in measurements.parquet.")
    if densities and certificate.prior is None:
        notes.findings.append(
            "The model draws numbers of a prior within bins, and certificate.json names none: it was taken out."
        )
    elif densities:
        notes.unchecked.append(f"that numbers within bins of {', '.join(densities)} are drawn as the prior has them")


def _equal_entries(found: InsideStated, stated: InsideStated, prior: Container[str]) -> bool:
    """True if `found` and `stated`, each an `InsideStated` on a column's law, differ at most by rounding.

    `prior` holds the names of columns with numbers of a prior, whose own places are not kept apart: of these, in how
    many bins which are may differ.
    """
    kept = {key: 0 for key in ("prior", "places") if found.column in prior and stated.places}
    one, other = {**found.to_dict(), **kept}, {**stated.to_dict(), **kept}
    return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)


def _equal(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=TOLERANCE)
    return one == other


def _equal_measured(held: Inside, found: Inside) -> bool:
    """True if `held` and `found`, each an `Inside`, have equal densities and weights of multiples, but for rounding."""
    pairs = ((held.density, found.density), (held.heaps, found.heaps))
    return all(a is b if a is None or b is None else np.allclose(a, b, rtol=1e-4, atol=1e-9) for a, b in pairs)


def _equal_tails(held: Inside, found: Inside) -> bool:
    """True if `held` and `found`, each an `Inside`, have equal tails, but for rounding; or none."""
    if held.tail is None or found.tail is None:
        return held.tail is found.tail
    same = (held.tail.first, held.tail.begin) == (found.tail.first, found.tail.begin)
    return same and math.isclose(held.tail.slope, found.tail.slope, rel_tol=TOLERANCE)
