"""Largest and mean weight of persons, from a public-use file of an earlier year: no private record decides them."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

import numpy as np

from stratsynth.census.acs.evidence import evidence
from stratsynth.checks import number
from stratsynth.checks import path as given_path
from stratsynth.errors import UsageError
from stratsynth.schema import Numeric
from stratsynth.schema.weight import RowWeight
from stratsynth.weights.cap import WeightCap

WEIGHT = "PWGTP"
"""Column of weights: the number of people a record stands for."""


@dataclass(frozen=True)
class WeightFacts:
    """Facts of the weights in a public-use file."""

    name: str
    """Name of the file, with its year and state."""
    cap: WeightCap

    @property
    def note(self) -> str:
        """Sentence with the source of the largest weight and the mean, for the schema."""
        return self.cap.words(self.name)


def weight_facts(source: str | PathLike[str], year: int) -> WeightFacts:
    """Return `WeightFacts` of the public-use file `source`, which is not of the schema's `year`.

    They are its name, the largest weight and the mean.

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
    name = f"the public-use file of {known.span or own}{f', {state}' if state else ''}"
    return WeightFacts(name, WeightCap.of(weights))


def row_weight(most: int | None, mean: str | float | None, facts: WeightFacts | None) -> RowWeight:
    """Return a schema's RowWeight, the weight of a record as its PWGTP, by declared figures or those of a public file.

    Args:
        most: The largest weight; that of `facts` by default.
        mean: The mean weight as a number, or as text PEOPLE/RECORDS; that of `facts` by default.
        facts: `WeightFacts` of a public-use file; None if there is none.

    Raises:
        UsageError: No mean, or no largest weight.
    """
    chosen = most if most is not None or facts is None else facts.cap.chosen
    if chosen is None:
        raise UsageError("census: a mean weight goes with the largest one, --weight MAX.")
    if mean is None and facts is None:
        raise UsageError(
            "census: weights need their mean, by which plans tell people from records: give it with --weight-mean, as "
            "a number or as PEOPLE/RECORDS of published totals; or give a public-use file of an earlier year with "
            "--weight-from."
        )
    return RowWeight(chosen, WEIGHT, mean=_mean(mean) if mean is not None or facts is None else facts.cap.up_to(chosen))


def _mean(text: str | float | None) -> float:
    """Return a mean weight, a float, from a number, its text, or a text PEOPLE/RECORDS; UsageError for others."""
    people, _, records = str(text).replace("_", "").partition("/")
    try:
        found = float(people) / (float(records) if records else 1.0)
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"census: the mean weight {text!r} is no number, and no PEOPLE/RECORDS.") from None
    number("census: the mean weight", found, above=0)
    return found
