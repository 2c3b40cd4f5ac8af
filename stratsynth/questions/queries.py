"""What can be summed over rows: descriptions of one vector a row, with the clip that bounds it.

A query is data: which columns, which public numbers. How a row's vector is computed, clipped and put on an
integer grid is in `stratsynth.driver.sums`; each row is worked on alone, and a row that cannot be read (a
missing value, say) contributes zero. A block is a part of the vector with a clip and a price of its own.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from stratsynth.accounting.budget import Neighbours
from stratsynth.checks import whole
from stratsynth.errors import MechanismError, Unsupported
from stratsynth.questions.admission import known
from stratsynth.questions.base import check_positive, fixed, is_plain_tuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stratsynth.schema import Numeric, Schema

Norm = Literal["l1", "l2"]


@dataclass(frozen=True)
class Block:
    """A part of the summed vector."""

    size: int
    clip: float
    """The most that one row can contribute, in the norm that the noise is for; larger rows are scaled down."""
    exchange: float = 2.0
    """The most that a sum can move when one row is exchanged for another, in clips."""

    def reach(self, neighbours: Neighbours) -> float:
        """How far one neighbouring step can move this block's sum, in clips."""
        return 1.0 if neighbours == Neighbours.ADD_REMOVE else self.exchange

    def sensitivity(self, neighbours: Neighbours) -> float:
        """The same in the sum's own unit."""
        return self.clip * self.reach(neighbours)


class Query(ABC):
    """A description of one vector a row."""

    norm: Norm = "l2"
    """The norm in which the whole vector is clipped; pure epsilon needs `l1`."""
    unverified: ClassVar[str] = ""
    """Empty where row-locality holds by construction; otherwise a reader is told."""

    @abstractmethod
    def check(self, schema: Schema) -> None:
        """Refuse what cannot be computed, from the schema alone."""

    @abstractmethod
    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """The parts of the vector, in order."""

    def each_row_adds_clip(self, schema: Schema) -> bool:
        """Whether each row that has a value contributes exactly the clip, as in a count written as a sum."""
        return False

    def replayed(self) -> Any:
        """What has to be the same for a kept sum to be given again: see `Handler.replayed`."""
        return self

    def counts_records(self, schema: Schema) -> bool:
        """Whether it is one number, to which every row adds exactly the clip."""
        return False


@known
@dataclass(frozen=True)
class Design:
    """A public way to turn a row into numbers between -1 and 1, for models.

    An intercept of 1; each numeric column scaled from its bounds to [-1, 1], with a 0/1 for each of its
    further levels (not applicable, missing), where the number itself is 0; a 0/1 for each level of a
    categorical column.
    """

    columns: tuple[str, ...]
    intercept: bool = True

    def names(self, schema: Schema) -> tuple[str, ...]:
        """The features in order: `1`, a numeric column's name, or `column=level`; a product's are joined by `*`."""
        return _names(self, schema)

    def products(self, schema: Schema) -> tuple[tuple[int, ...], ...] | None:
        """Each feature as the numbers of the plain features it is the product of; None where all are as they are."""
        return None

    @property
    def most_features(self) -> int:
        """The most features of one row that are not 0. None is beyond 1, so its square root bounds a row's norm."""
        return len(self.columns) + 1

    def plain(self, schema: Schema) -> tuple[str, ...]:
        """The features that rows are first turned into."""
        from stratsynth.schema import Numeric

        found = ["1"] if self.intercept else []
        for name in self.columns:
            column = schema.column(name)
            numeric = isinstance(column, Numeric)
            levels = column.all_levels[len(column.extents) :] if isinstance(column, Numeric) else column.all_levels
            found.extend([name] * numeric + [f"{name}={level}" for level in levels])
        return tuple(found)

    def check(self, what: str, schema: Schema) -> None:
        """Known columns, each once."""
        if not is_plain_tuple(self.columns, str):
            raise MechanismError(f"{what}: a design's columns are a tuple of names.")
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise MechanismError(f"{what}: a design needs columns, each once.")
        for name in self.columns:
            if name not in schema.columns:
                raise MechanismError(f"{what}: column {name!r} is not in the schema, or is constant in this stratum.")


@lru_cache(maxsize=64, typed=True)  # every step of a fit asks for them several times
def _names(design: Design, schema: Schema) -> tuple[str, ...]:
    """The names of a design's features, by their values: both arguments are frozen."""
    plain, products = design.plain(schema), design.products(schema)
    return plain if products is None else tuple("*".join(plain[factor] for factor in factors) for factors in products)


@known
@dataclass(frozen=True)
class Columns(Query):
    """The vector of some numeric columns, (x - centre) / scale, clipped to a ball around zero.

    With one column and `norm` l1 or l2 alike this is a clipped sum; its mean is what COINPRESS needs. A column
    that declares a transform is summed on that scale: centre and scale are then in its unit.
    """

    columns: tuple[str, ...]
    centre: tuple[float, ...]
    """A public guess of the middle of each column."""
    scale: tuple[float, ...]
    """A public unit of each column."""
    clip: float
    """The radius of the ball, in units of scale."""
    norm: Norm = "l2"
    """`l2` for Gaussian noise, `l1` for Laplace noise."""
    square: bool = False
    """Whether each coordinate is squared, before the vector is clipped: what a variance is made of."""

    def check(self, schema: Schema) -> None:
        """Numeric columns, finite centres, positive scales and clip."""
        from stratsynth.schema import Numeric

        check_clip("columns", self.clip)
        check_norm("columns", self.norm)
        if not self.columns or not len(self.columns) == len(self.centre) == len(self.scale):
            raise MechanismError("columns: give a centre and a scale for each column.")
        for name, centre, scale in zip(self.columns, self.centre, self.scale, strict=True):
            if not isinstance(schema.columns.get(name), Numeric):
                raise MechanismError(f"columns: {name!r} is not a numeric column here.")
            if not math.isfinite(centre):
                raise MechanismError(f"columns: the centre of {name} must be finite.")
            check_positive(f"columns: the scale of {name}", scale)

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """One block."""
        return (Block(len(self.columns), self.clip),)

    def replayed(self) -> Any:
        """All but the guessed centres and units, which may come from earlier answers."""
        return "columns", self.columns, f"{self.clip:.9g}", self.norm, self.square

    def each_row_adds_clip(self, schema: Schema) -> bool:
        """Whether the bounds of the first column are all further from its centre than the clip."""
        from stratsynth.schema.transforms import bounds

        low, _ = bounds(cast("Numeric", schema.column(self.columns[0])))
        return not self.square and (low - self.centre[0]) / self.scale[0] >= self.clip

    def counts_records(self, schema: Schema) -> bool:
        """Whether it is the sum of one column beyond the clip, which every row has."""
        column = cast("Numeric", schema.column(self.columns[0]))
        every = not column.missing and column.not_applicable is None
        return len(self.columns) == 1 and every and self.each_row_adds_clip(schema)


@known
@dataclass(frozen=True)
class Moments(Query):
    """Sums for least squares: the upper triangle of x x', and x y, for rows clipped to |x| <= clip, |y| <= bound.

    Two blocks. |upper(x x')| <= clip^2; exchanging a row moves it by at most sqrt(2) clip^2, because
    <upper(x x'), upper(z z')> = ((x.z)^2 + sum x_i^2 z_i^2) / 2 is never negative.
    """

    design: Design
    target: str
    """A numeric column, scaled from its bounds to [-1, 1]."""
    clip: float
    bound: float = 1.0
    """The clip of the scaled target."""

    def check(self, schema: Schema) -> None:
        """A sound design and a numeric target outside it."""
        check_target("moments", self.design, self.target, schema)
        check_clip("moments", self.clip)
        check_clip("moments", self.bound)

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """X x', then x y."""
        size = len(self.design.names(schema))
        return (
            Block(size * (size + 1) // 2, self.clip**2, math.sqrt(2)),
            Block(size, self.clip * self.bound),
        )


@known
@dataclass(frozen=True, eq=False)
class Glm(Query):
    """The gradient of a generalised linear model's loss at given coefficients, clipped a row at a time.

    `linear`: (x.theta - y) x. `logistic`: (p - y) x for a target of two levels, y being the second.
    `softmax`: (p_k - [y = k]) x for each level k. A row whose target is not applicable or missing counts
    only where that is a level of the target.
    """

    design: Design
    target: str
    link: Literal["linear", "logistic", "softmax"]
    theta: NDArray[np.float64]
    """Coefficients: one a feature, or one row a feature and one column a level for softmax."""
    clip: float
    """The most L2 norm of a row's gradient."""

    def __post_init__(self) -> None:
        """Keep a copy of the coefficients that nobody can change."""
        object.__setattr__(self, "theta", fixed(self.theta))

    def check(self, schema: Schema) -> None:
        """A design, a target of the right kind, and coefficients of the right shape."""
        import numpy as np

        check_target("glm", self.design, self.target, schema, numeric=self.link == "linear")
        check_clip("glm", self.clip)
        if self.link not in ("linear", "logistic", "softmax"):
            raise MechanismError(f"glm: there is no link {self.link!r}.")
        if self.link == "logistic" and schema.size(self.target) != 2:
            raise MechanismError(f"glm: logistic needs a target of two levels; {self.target} has not.")
        size = len(self.design.names(schema))
        shape = (size, schema.size(self.target)) if self.link == "softmax" else (size,)
        real = type(self.theta) is np.ndarray and self.theta.dtype.kind in "fiu"
        if not real or self.theta.shape != shape or not np.isfinite(self.theta).all():
            raise MechanismError(f"glm: theta must be finite and of shape {shape}.")

    def replayed(self) -> Any:
        """All but the coefficients' values, which come from earlier answers."""
        return "glm", self.design, self.target, self.link, self.theta.shape, f"{self.clip:.9g}"

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """One block, as theta."""
        return (Block(int(self.theta.size), self.clip),)


@known
@dataclass(frozen=True)
class RowVectors(Query):
    """Any function of rows that gives one vector a row. Tested for row-locality on made-up rows, never proven.

    The function takes a pandas frame of decoded rows and returns an array with one row for each. What it
    makes is stamped `unverified` in the certificate.
    """

    function: Callable[[Any], Any]
    size: int
    clip: float
    norm: Norm = "l2"
    unverified: ClassVar[str] = "row vectors by a function that was tested for row-locality, not proven"

    def check(self, schema: Schema) -> None:
        """A function, a size and a clip; then the test, on rows made from the schema."""
        from stratsynth.questions.locality import check_row_local

        if not callable(self.function):
            raise MechanismError("row vectors: the function cannot be called.")
        whole("row vectors: size", self.size, 1, error=MechanismError)
        check_clip("row vectors", self.clip)
        check_norm("row vectors", self.norm)
        check_row_local(self.function, self.size, schema)

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """One block."""
        return (Block(self.size, self.clip),)


MOST_COORDINATES = 2**24
"""The longest vector that can be summed."""


@cache
def _known() -> frozenset[type[Query]]:
    """The queries above and beside this file, by their exact classes."""
    from stratsynth.questions.attribute import AttributeGradients
    from stratsynth.questions.confusions import Confusions
    from stratsynth.questions.fairness import FairGradients
    from stratsynth.questions.gradients import Gradients, Losses
    from stratsynth.questions.grouped import GroupLosses
    from stratsynth.questions.mitigation import Mitigated
    from stratsynth.questions.networks import NetworkGradients, NetworkLosses
    from stratsynth.questions.newton import Curvature
    from stratsynth.questions.perrow import PerRowGradients

    regressions = (Moments, Glm, Gradients, Losses, Curvature)
    classifiers = (
        NetworkGradients, NetworkLosses, FairGradients, AttributeGradients, Mitigated, Confusions, GroupLosses
    )  # fmt: skip
    return frozenset((Columns, RowVectors, PerRowGradients, *regressions, *classifiers))


def check_query(what: str, query: Query, schema: Schema) -> None:
    """One of the known queries, by its exact class: another could restate its own sensitivity."""
    if type(query) not in _known():
        raise MechanismError(f"{what}: {type(query).__name__} is not one of the known queries.")
    query.check(schema)
    size = sum(block.size for block in query.blocks(schema))
    if size > MOST_COORDINATES:
        raise Unsupported(f"{what}: a vector of {size:,} coordinates is too long; use fewer columns or bins.")


def check_clip(what: str, clip: float) -> None:
    """A positive number that can be squared, and divided by, without leaving the range of floats."""
    check_positive(f"{what}: clip", clip)
    if not 1e-100 < clip < 1e100:
        raise MechanismError(f"{what}: a clip of {clip:g} is out of all proportion; use a scale.")


def check_norm(what: str, norm: str) -> None:
    """L1 or L2."""
    if norm not in ("l1", "l2"):
        raise MechanismError(f"{what}: there is no norm {norm!r}.")


def check_target(what: str, design: Design, target: str, schema: Schema, *, numeric: bool = True) -> None:
    """A target of the right kind that is not among the features."""
    from stratsynth.questions.designs import Coded
    from stratsynth.schema import Numeric

    if type(design) not in (Design, Coded):  # another could say that its features are fewer or smaller
        raise MechanismError(f"{what}: {type(design).__name__} is not one of the known designs.")
    design.check(what, schema)
    if target in design.columns:
        raise MechanismError(f"{what}: the target {target} is among the features.")
    if target not in schema.columns or isinstance(schema.columns[target], Numeric) != numeric:
        kind = "numeric" if numeric else "categorical"
        raise MechanismError(f"{what}: the target {target!r} is not a {kind} column here.")
