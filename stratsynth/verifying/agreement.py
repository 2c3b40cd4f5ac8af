"""Check of the comparison of declared with measured numbers: recomputed from measurements and model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stratsynth.answers.tables import label_of
from stratsynth.errors import StratsynthError
from stratsynth.models import files
from stratsynth.models.files import mixed_shares
from stratsynth.release.declared import (
    DECLARED_SIZE,
    MEASURED,
    SHARE,
    Comparison,
    DeclaredFigures,
    rows_by_size,
    sizes_of,
)
from stratsynth.release.equivalence import LEVEL, EquivalenceTest
from stratsynth.release.grouping import KINDS, renewed
from stratsynth.release.measurements import read_measurements

if TYPE_CHECKING:
    from stratsynth.answers.sizes import SizeEstimates
    from stratsynth.certificate import Certificate
    from stratsynth.verifying.verdict import Notes

TOLERANCE = 1e-6
"""Relative difference of a stated from a recomputed figure that rounding may make, and the order of sums."""
OLDER = "the words on declared and measured numbers: an older version wrote them, by a tolerance that it did not state"


def check_agreement(certificate: Certificate, folder: Path, notes: Notes) -> None:
    """Add a finding to `notes` for each error in a certificate's declared and measured numbers, or a check passed.

    They are compared with the measurements and the model in the folder.
    """
    stated, test = Comparison.stated_in(certificate), certificate.agreement
    if test is None:
        if any(c.share is not None or c.rows is not None for c in stated) or certificate.weights.groups == MEASURED:
            notes.findings.append("certificate.json does not say how it compares declared with measured numbers.")
        elif stated:
            notes.unchecked.append(OLDER)
        return
    try:
        sizes = sizes_of(certificate, read_measurements(folder), lambda: files.load(folder / "model"))
        weights = mixed_shares(folder / "model")
    except (StratsynthError, OSError):
        return  # its hash says so, and loading it
    declared = DeclaredFigures.stated_in(certificate, test)
    found = list(_figures(certificate, declared, sizes)) if sizes is not None else list(_alone(declared, stated))
    if weights is not None:
        by_label = {label_of(stratum, certificate): weight for stratum, weight in weights.items()}
        found += _rows(certificate, declared, sizes, by_label)
    if [n for n in renewed(certificate, stated) if n["kind"] in KINDS] != [
        {"kind": each.kind, "text": each.text} for each in certificate.notices if each.kind in KINDS
    ]:
        found.append("Its notices on declared and measured numbers are not those that its own comparison gives.")
    notes.findings += [f"certificate.json: {sentence}" for sentence in found]
    if found:
        return
    if sizes is None:
        notes.unchecked.append("the measured numbers of records: no table of the release counts them")
    else:
        notes.checked.append("Declared and measured numbers are compared as measurements.parquet gives them.")


def _figures(certificate: Certificate, declared: DeclaredFigures, sizes: SizeEstimates) -> Iterator[str]:
    """Yield a sentence for each comparison of a certificate that `DeclaredFigures` and `SizeEstimates` do not give."""
    test = declared.test(sizes)
    stated = certificate.agreement
    if stated is None or (stated.statements, stated.level) != (test.statements, LEVEL):
        yield f"Declared and measured numbers are {test.statements} figures, to be compared at one level of {LEVEL:g}."
        return
    if declared.shares and (missing := [label for label in sizes.groups if label not in declared.shares]):
        yield f"The group {missing[0]} was measured, and is not compared with its share."
    every = len(declared.shares) == (certificate.strata.groups or certificate.strata.cells)
    if every and not _near(math.fsum(declared.shares.values()), 1):
        yield "The declared shares of the groups do not add up to 1."
    known = {(c.what, c.stratum): c for c in Comparison.stated_in(certificate)}
    for c in declared.compared(sizes):
        one = known.get((c.what, c.stratum))
        if one is None or not _equal_figures(replace(one, rows=None), c):
            name = "everybody" if c.what == DECLARED_SIZE else f"the group {c.stratum}"
            yield f"The comparison of {name} is not the one that measurements.parquet gives: {c.verdict}."


def _alone(declared: DeclaredFigures, stated: list[Comparison]) -> Iterator[str]:
    """Yield a sentence for each comparison of the list `stated` whose verdict its own figures contradict.

    The margin of the verdicts is that of the `DeclaredFigures`.
    """
    test = EquivalenceTest(declared.margin, len(stated))
    for c in stated:
        if c.low is None or c.high is None or not c.declared or c.difference is None:
            continue
        if not _near(c.measured / c.declared - 1, c.difference) or test.verdict(c.low, c.high) != c.verdict:
            yield f"The verdict on {c.stratum or 'everybody'} is not the one of its own figures."


def _rows(
    certificate: Certificate, declared: DeclaredFigures, sizes: SizeEstimates | None, weights: Mapping[str, float]
) -> Iterator[str]:
    """Yield a sentence if `weights` are not those that the certificate states: {group's label: a model's part of rows}.

    Those follow from the `DeclaredFigures`' shares or, if it says so, from `SizeEstimates`, None if nothing measured
    any.
    """
    wanted: Mapping[str, float] = {label: declared.shares.get(label, weight) for label, weight in weights.items()}
    if certificate.weights.groups == MEASURED:
        if sizes is None:
            yield "Rows are said to follow measured sizes, and nothing measured any."
            return
        wanted = rows_by_size(wanted, sizes)
    raked = certificate.benchmark is not None  # rows follow its totals, and no comparison states them
    for c in () if raked else Comparison.stated_in(certificate):
        if c.what == SHARE and c.stratum in weights and not (c.rows is not None and _near(c.rows, wanted[c.stratum])):
            yield f"The part of the rows that is said to be of {c.stratum} does not follow what it says they follow."
            return
    if declared.shares and not all(_near(weight, wanted[label]) for label, weight in weights.items()):
        yield "The model's groups have other parts of the rows than the certificate states."


def _equal_figures(one: Comparison, other: Comparison) -> bool:
    """True if comparisons `one` and `other` state the same, up to rounding."""
    for field in fields(Comparison):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if a != b and not (isinstance(a, float | int) and isinstance(b, float | int) and _near(a, b)):
            return False
    return True


def _near(one: float, other: float) -> bool:
    """True if the numbers `one` and `other` are equal up to TOLERANCE, relative or absolute."""
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
