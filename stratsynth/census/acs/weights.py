"""Largest and mean weight of persons, from a public-use file of an earlier year: no private record decides them."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.census.acs.evidence import evidence
from stratsynth.checks import number
from stratsynth.checks import path as given_path
from stratsynth.errors import UsageError
from stratsynth.schema import Numeric
from stratsynth.schema.weight import MOST, RowWeight

if TYPE_CHECKING:
    from numpy.typing import NDArray

WEIGHT = "PWGTP"
"""Column of weights: the number of people a record stands for."""
LOST = 0.01
"""Largest part of the public file's people beyond the largest weight that is chosen from it."""


@dataclass(frozen=True)
class WeightFacts:
    """Facts of the weights in a public-use file."""

    name: str
    """Name of the file, with its year and state."""
    records: int
    people: int
    """Sum of the weights."""
    largest: int
    chosen: int
    """Smallest weight beyond which are at most LOST of the people, and at most what a schema may declare."""
    lost: float
    """Part of the people beyond it."""

    @property
    def mean(self) -> float:
        """People over records."""
        return self.people / self.records

    def up_to(self, most: int) -> float:
        """Return the mean, with the digits that matter, and at most the largest weight, as a schema asks."""
        return min(float(f"{self.mean:.6g}"), float(most))

    @property
    def note(self) -> str:
        """Sentence with the source of the largest weight and the mean, for the schema."""
        return (
            f"Weights count up to {self.chosen:,}: {100 * self.lost:.2g} % of the {self.people:,} people of "
            f"{self.name} are beyond it, and its largest weight is {self.largest:,}. They are {self.records:,} records "
            f"there: mean {self.mean:.4g}."
        )


def weight_facts(source: str | PathLike[str], year: int) -> WeightFacts:
    """Return the facts of the weights in the public-use file `source`, of another year than the schema's `year`.

    Raises:
        UsageError: A file that has an account, or is of the schema's year: its weights may be those of the very records
            that are to be released. Weights that are missing or no numbers.
    """
    from stratsynth.data.overlap import check_public_inputs
    from stratsynth.data.sources import open_source
    from stratsynth.schema import values

    path = given_path("census: the public-use file of weights", source)
    check_public_inputs(declared=[path])
    file = open_source(path)
    known = evidence(file, path)
    own, state = known.year(None), known.state(None)
    if own == year:
        raise UsageError(
            f"census: {path.name} is of {own}, the year of the schema: take a file of an earlier year, so that the "
            "largest weight does not follow from the records that are to be released."
        )
    column = Numeric(lower=0, upper=99_999, bins=1)
    weights, _ = values.floats(column, file.read([WEIGHT]).column(WEIGHT))
    if not weights.size or not np.isfinite(weights).all() or not (weights >= 0).all() or not weights.sum() > 0:
        raise UsageError(f"census: some records of {path.name} have no weight in the column {WEIGHT}.")
    chosen = _smallest(weights)
    people = int(np.rint(weights).sum())
    lost = float((weights - chosen).clip(min=0).sum() / weights.sum())
    name = f"the public-use file of {known.span or own}{f', {state}' if state else ''}"
    return WeightFacts(name, weights.size, people, int(weights.max()), chosen, lost)


def _smallest(weights: NDArray[np.float64]) -> int:
    """Return the smallest whole number up to MOST beyond which `weights` have at most LOST of the people; or MOST."""
    low, high = 1, MOST
    while low < high:
        middle = (low + high) // 2
        if (weights - middle).clip(min=0).sum() <= LOST * weights.sum():
            high = middle
        else:
            low = middle + 1
    return low


def row_weight(most: int | None, mean: str | float | None, facts: WeightFacts | None) -> RowWeight:
    """Return the weight of a record as its PWGTP, by declared figures or those of a public file.

    Args:
        most: The largest weight; that of `facts` by default.
        mean: The mean weight as a number, or as text PEOPLE/RECORDS; that of `facts` by default.
        facts: Facts of a public-use file, if there is one.

    Raises:
        UsageError: No mean, or no largest weight.
    """
    chosen = most if most is not None or facts is None else facts.chosen
    if chosen is None:
        raise UsageError("census: a mean weight goes with the largest one, --weight MAX.")
    if mean is None and facts is None:
        raise UsageError(
            "census: weights need their mean, by which plans tell people from records: give it with --weight-mean, as "
            "a number or as PEOPLE/RECORDS of published totals; or give a public-use file of an earlier year with "
            "--weight-from."
        )
    return RowWeight(chosen, WEIGHT, mean=_mean(mean) if mean is not None or facts is None else facts.up_to(chosen))


def _mean(text: str | float | None) -> float:
    """Return a mean weight from a number, its text, or PEOPLE/RECORDS."""
    people, _, records = str(text).replace("_", "").partition("/")
    try:
        found = float(people) / (float(records) if records else 1.0)
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"census: the mean weight {text!r} is no number, and no PEOPLE/RECORDS.") from None
    number("census: the mean weight", found, above=0)
    return found
