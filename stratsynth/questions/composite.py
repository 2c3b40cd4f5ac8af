"""Scores made of several functions of confusion counts: an objective, and penalties for violated constraints.

    score_i = - sum over terms of  weight x H(constant + sign x F(A N_i + b)),    H(x) = x, or max(0, x)

where N_i are the counts of classifier i, A and b are public, and F is one of the functions below. Small sums are good.
A table of counts is moved by one record in exactly one coordinate c, by the weight w of a row. With z = A N + b, the
most that this moves F, for any N, is the step of c times w:

    largest           max_j z_j                           max_j |A_jc|: a maximum moves no more than one of its parts
    smooth_largest    log(sum_j exp(s z_j)) / s           max_j |A_jc|: the gradient by z is a probability vector
    spread            sum_{i<j} |z_i - z_j| - s sum z_i   sum_{i<j} |A_ic - A_jc| + |s| sum_i |A_ic|
    harmonic_mean     J / sum_j (1 / z_j), z cut to       J max_j |A_jc|: dF/dz_j = J u_j^2 with u_j = (1/z_j) / sum_i
                      [0, 1]                              (1/z_i), and the u_j add up to 1, so the squares to at most 1
    geometric_mean    (prod_j (z_j + s))^(1/J), z cut     sum_j |A_jc| ((1+s)/s)^((J-1)/J) / J: dF/dz_j is 1/J times
                      to [0, 1], s > 0                    prod_{i != j} ((z_i + s) / (z_j + s))^(1/J)

(s is the term's parameter.) Cutting to an interval and H move no more than their argument, so the score moves by at
most the sum over terms of |weight| x step_c x w; an exchanged record moves two coordinates, by at most twice that.

Rounding keeps the bound. A is rounded to integers times a power of 2 first, and steps are those of the rounded A.
Piecewise linear functions are then exact. The others are computed with 60 digits, correctly rounded, with errors
below 1e-30. The sum is a fraction; it is rounded down to whole units of 2^-30 of the largest step of any
candidate. Two values that are x units apart are at most ceil(x) whole units apart after that, and errors below 1e-30
are far less than one unit: the integers move by at most 2^30 + 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from stratsynth.accounting.budget import Neighbours
from stratsynth.checks import check_integer, number, one_of
from stratsynth.digest import digest
from stratsynth.errors import MechanismError
from stratsynth.questions.admission import known
from stratsynth.questions.base import Setting, fixed, is_plain, is_plain_tuple
from stratsynth.questions.reading import Exact, Wanted
from stratsynth.questions.scores import Score
from stratsynth.questions.sums.base import GRID, check_query
from stratsynth.questions.sums.losses import Confusions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

Kind = Literal["largest", "smooth_largest", "spread", "harmonic_mean", "geometric_mean"]
KINDS: tuple[Kind, ...] = ("largest", "smooth_largest", "spread", "harmonic_mean", "geometric_mean")
MOST = 1e12
"""Largest absolute value of a number in a term."""
LEAST = 1e-15
"""Smallest step of a score: its unit is then far above the errors of 60 digits."""
_UNITS = 2**30
_SLACK = 2
_DIGITS = Context(prec=60)


@known
@dataclass(frozen=True, eq=False)
class Term:
    """One function of the counts of a classifier; the head of this file has formulas and steps."""

    kind: Kind
    slopes: NDArray[np.float64]
    """A: one row for each z_j, one column for each coordinate of the counts."""
    offsets: NDArray[np.float64]
    """b: one number for each z_j."""
    weight: float = 1.0
    """Factor of the term in the sum; negative for a function that should be large."""
    hinge: bool = False
    """True for max(0, x): only a positive value counts, as of a constraint."""
    sign: Literal[1, -1] = 1
    constant: float = 0.0
    parameter: float = 0.0
    """s: a sharpness, a shift or a floor."""

    def __post_init__(self) -> None:
        """Keep read-only copies of the arrays."""
        object.__setattr__(self, "slopes", fixed(self.slopes))
        object.__setattr__(self, "offsets", fixed(self.offsets))

    def check(self, size: int) -> None:
        """Raise MechanismError: numbers not finite or too large, shapes but `size` columns of slopes."""
        one_of("choose: a term's kind", self.kind, KINDS, error=MechanismError)
        if not (is_plain(self.slopes) and is_plain(self.offsets)):
            raise MechanismError("choose: a term's slopes and offsets must be numpy arrays of float64.")
        if self.slopes.ndim != 2 or self.slopes.shape[1] != size or not len(self.slopes):
            raise MechanismError(f"choose: a term's slopes must be a table of {size} columns.")
        if self.offsets.shape != self.slopes.shape[:1]:
            raise MechanismError("choose: a term has one offset for each row of slopes.")
        if not (np.abs(self.slopes).max() <= MOST and np.abs(self.offsets).max(initial=0) <= MOST):
            raise MechanismError("choose: a term's slopes and offsets must be finite, and not too large.")
        if not np.abs(self.slopes).max() > 1 / MOST:
            raise MechanismError("choose: a term's slopes are all 0, or too small.")
        number("choose: a term's weight", self.weight, least=-MOST, most=MOST, error=MechanismError)
        number("choose: a term's constant", self.constant, least=-MOST, most=MOST, error=MechanismError)
        positive = {"smooth_largest", "geometric_mean"}
        least = 1e-6 if self.kind in positive else -1e6
        number("choose: a term's parameter", self.parameter, least=least, most=1e6, error=MechanismError)
        if type(self.sign) is not int or self.sign not in (1, -1) or not isinstance(self.hinge, bool):
            raise MechanismError("choose: a term's sign is 1 or -1, and its hinge true or false.")

    @property
    def replayed(self) -> Any:
        """Tuple for the journal key: kind, shape of `slopes`, hinge and sign; no number from an earlier answer."""
        return self.kind, self.slopes.shape, self.hinge, self.sign

    @property
    def steps(self) -> tuple[Fraction, ...]:
        """Tuple, one a count that a record may enter: largest movement of the term by one (weight 1), rounded up."""
        return self._worked.steps

    @cached_property
    def _worked(self) -> _Worked:
        """Integer form of the term, computed once: its arrays are read-only."""
        return _worked_out(self)

    def value(self, counts: Sequence[int]) -> Fraction:
        """Return the term's value at a classifier's integer counts: exact, or to 60 digits where it has logarithms."""
        slopes, offsets = self._worked.slopes, self._worked.offsets
        unit = Fraction(2) ** -self._worked.scale
        z = [sum(a * n for a, n in zip(row, counts, strict=True)) + b for row, b in zip(slopes, offsets, strict=True)]
        inner = Fraction(self.constant) + self.sign * self._function(z, unit)
        return Fraction(self.weight) * (max(Fraction(0), inner) if self.hinge else inner)

    def _function(self, z: list[int], unit: Fraction) -> Fraction:
        """Return the term's function of z, integers in `unit`, as a fraction: exact, or to 60 digits."""
        s, size = Fraction(self.parameter), len(z)
        if self.kind == "largest":
            return max(z) * unit
        if self.kind == "spread":
            # sum_{i<j} |z_i - z_j| from the sorted z.
            apart = sum((2 * i - size + 1) * x for i, x in enumerate(sorted(z)))
            return (apart - s * sum(z)) * unit
        if self.kind == "smooth_largest":
            # log(sum exp(s z)) / s relative to the largest z; exponents are cut at -300.
            top = max(z)
            parts = [_decimal(max(s * (x - top) * unit, Fraction(-300))).exp(_DIGITS) for x in z]
            return top * unit + Fraction(_DIGITS.divide(_sum(parts).ln(_DIGITS), _decimal(s)))
        # The means are of z cut to [0, 1].
        cut = [min(max(x * unit, Fraction(0)), Fraction(1)) for x in z]
        if self.kind == "harmonic_mean":
            return Fraction(0) if 0 in cut else size / sum((1 / x for x in cut), Fraction(0))
        logs = _sum([_decimal(x + s).ln(_DIGITS) for x in cut])
        return Fraction(_DIGITS.divide(logs, Decimal(size)).exp(_DIGITS))


@dataclass(frozen=True)
class _Worked:
    """A term in integers."""

    scale: int
    """Power of 2 that slopes and offsets are multiplied by before rounding."""
    slopes: list[list[int]]
    """Slopes A 2^scale, at most 2^50 in size."""
    offsets: list[int]
    steps: tuple[Fraction, ...]


def _worked_out(term: Term) -> _Worked:
    # A as integers of at most 50 bits; the steps below are those of the rounded A (table in the head).
    scale = 50 - math.frexp(float(np.abs(term.slopes).max()))[1]
    slopes = [[int(x) for x in row] for row in np.rint(np.ldexp(term.slopes, scale))]
    offsets = [round(Fraction(float(b)) * Fraction(2) ** scale) for b in term.offsets]
    columns, number = list(zip(*slopes, strict=True)), len(slopes)
    if term.kind == "spread":
        # spread: sum_{i<j} |A_ic - A_jc| + |s| sum_i |A_ic|
        apart = [sum(abs(a - b) for i, a in enumerate(c) for b in c[:i]) for c in columns]
        lengths = [
            Fraction(x) + abs(Fraction(term.parameter)) * sum(map(abs, c)) for x, c in zip(apart, columns, strict=True)
        ]
    elif term.kind == "geometric_mean":
        # geometric_mean: sum_j |A_jc| ((1+s)/s)^((J-1)/J) / J, rounded up
        floor, part = Fraction(term.parameter), _decimal(Fraction(number - 1, number))
        power = _DIGITS.multiply(_decimal((1 + floor) / floor).ln(_DIGITS), part)
        most = Fraction(power.exp(_DIGITS)) / number * (1 + Fraction(1, 10**20))
        lengths = [most * sum(map(abs, c)) for c in columns]
    else:
        # largest and smooth_largest: max_j |A_jc|; harmonic_mean: J times that
        factor = number if term.kind == "harmonic_mean" else 1
        lengths = [Fraction(factor * max(map(abs, c))) for c in columns]
    steps = tuple(abs(Fraction(term.weight)) * x / Fraction(2) ** scale for x in lengths)
    return _Worked(scale, slopes, offsets, steps)


def _decimal(x: Fraction) -> Decimal:
    """Return `x`, a Fraction, as a Decimal number of 60 digits."""
    return _DIGITS.divide(Decimal(x.numerator), Decimal(x.denominator))


def _sum(parts: Sequence[Decimal]) -> Decimal:
    total = Decimal(0)
    for part in parts:
        total = _DIGITS.add(total, part)
    return total


@known
@dataclass(frozen=True, eq=False)
class Composite(Score):
    """Minus the sum of some terms, at the counts of one classifier among many that are read together."""

    query: Confusions
    """Confusion counts of all candidates' classifiers; scores that share it are computed in one pass over the rows."""
    model: int
    """Index of the classifier in `query`."""
    terms: tuple[Term, ...]

    def check(self, schema: Schema) -> None:
        """Raise MechanismError: a query unsound in `schema`, classifier out of range, terms none or unsound."""
        self.check_all((self,), schema)

    @classmethod
    def check_all(cls, scores: Sequence[Self], schema: Schema) -> None:
        """Raise MechanismError on `scores` of queries unsound in `schema`, no such classifier, unmoved terms."""
        for query in _queries(scores):
            if type(query) is not Confusions:
                raise MechanismError("choose: composite scores are of confusion counts.")
            check_query("choose", query, schema)
        for score in scores:
            last = len(score.query.thetas) - 1
            check_integer("choose: the number of a classifier", score.model, 0, last, error=MechanismError)
        for score in {(id(score.terms), id(score.query)): score for score in scores}.values():
            if not is_plain_tuple(score.terms, Term) or not score.terms:
                raise MechanismError("choose: a composite score is made of terms.")
            for term in score.terms:
                term.check(score.query.cells(schema))
            if not score.reach(schema, Neighbours.ADD_REMOVE) > LEAST:
                raise MechanismError("choose: no record moves this score, or hardly.")

    def reach(self, schema: Schema, neighbours: Neighbours) -> Fraction:
        """Return a Fraction: largest movement of the score by a step of `neighbours`, the schema's weights included."""
        return _reach(self.terms, neighbours) * schema.row_weight.most

    def sensitivity(self, schema: Schema, neighbours: Neighbours) -> float:
        """Return `reach`, the score's largest movement by one step of `neighbours` in this schema, as a float."""
        return float(self.reach(schema, neighbours))

    @classmethod
    def most_moved(cls, scores: Sequence[Self], schema: Schema, neighbours: Neighbours) -> float:
        """Return a float: largest sensitivity in `schema` of all `scores` to a step of `neighbours`, by terms."""
        return max(
            score.sensitivity(schema, neighbours) for score in {id(score.terms): score for score in scores}.values()
        )

    @property
    def candidate(self) -> Any:
        """Tuple that identifies the candidate in a journal: query's digest, classifier's index, kinds of the terms."""
        return "composite", _known_by(self.query), self.model, _shape(self.terms)

    @classmethod
    def wanted(cls, scores: Sequence[Self]) -> Wanted:
        """Return a `Wanted`: sums over all rows of the queries (confusion counts) that the scores need, each once."""
        return Wanted(sums=[(query, 1.0) for query in _queries(scores)])

    @classmethod
    def units(cls, scores: Sequence[Self], exact: Exact, at: Setting, memory: dict[Any, Any]) -> tuple[list[int], int]:
        """Return (`scores` of `exact` at a Setting, ints in 2^-30 of the top reach; int sensitivity); no `memory`."""
        of = {id(query): sums for query, sums in zip(_queries(scores), exact.sums, strict=True)}
        groups = {id(score.terms): score for score in scores}
        unit = max(score.reach(at.schema, at.neighbours) for score in groups.values()) / _UNITS
        units = []
        for score in scores:
            # Counts of records from grid units; rows of one weight above 1 are multiplied by it.
            counts = [int(x) // GRID * at.schema.row_weight.each for x in of[id(score.query)][score.model]]
            units.append(math.floor(-sum((term.value(counts) for term in score.terms), Fraction(0)) / unit))
        return units, _UNITS + _SLACK


def _reach(terms: tuple[Term, ...], neighbours: Neighbours) -> Fraction:
    """Return the sensitivity for rows of weight 1: the worst coordinate's step, twice that under an exchange.

    The factor is 2 whatever the terms, so that the price of another notion of neighbour depends on no answer.
    """
    most = max(sum(each, Fraction(0)) for each in zip(*(t.steps for t in terms), strict=True))
    return most if neighbours == Neighbours.ADD_REMOVE else 2 * most


@lru_cache(maxsize=64)
def _known_by(query: Confusions) -> str:
    """Return the digest of `Confusions`' replayed part, as a text; cached, since many candidates share a query."""
    return digest(query.replayed())


@lru_cache(maxsize=64)
def _shape(terms: tuple[Term, ...]) -> str:
    return digest([term.replayed for term in terms])


def _queries(scores: Sequence[Composite]) -> list[Confusions]:
    """Return a list of the `Confusions` that the `Composite`s in the list `scores` ask, each once, by first use."""
    return list({id(score.query): score.query for score in scores}.values())
