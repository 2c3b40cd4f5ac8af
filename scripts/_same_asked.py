"""Mechanisms of a few lines that ask for one kind of sum or choice each, for `scripts/same`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from _same_rows import measured
from stratsynth import Budget, Schema
from stratsynth.adapters.independent import Product
from stratsynth.mechanisms import Mechanism
from stratsynth.models import Returns
from stratsynth.questions import (
    AttributeGradients,
    Choose,
    Coded,
    Columns,
    Composite,
    Confusions,
    Counts,
    Curvature,
    Design,
    Distance,
    FairGradients,
    Gradients,
    GroupLosses,
    Losses,
    Mitigated,
    Moments,
    NetworkGradients,
    NetworkLosses,
    Peak,
    PerRow,
    PerRowGradients,
    PublicRows,
    RowVectors,
    Term,
    Total,
    choose,
    counts,
    public_rows,
    total,
)

if TYPE_CHECKING:
    import pandas as pd

RATE, STEPS = 0.5, 3
"""Prices of sampled steps take seconds, and are remembered: all fits of sampled steps have these."""


@dataclass(frozen=True)
class Asking(Mechanism[Product]):
    """Asks for sums, choices or public rows by the name of a list below; its model is even, whatever is answered."""

    name: ClassVar[str] = "asking"
    needs: ClassVar = frozenset({Counts, Choose, Total})
    returns: ClassVar[Returns] = Returns.ROWS
    adaptive: ClassVar[bool] = False
    unprotected: ClassVar[tuple[str, ...]] = ()
    what: str
    currency: str = "zcdp"

    def price(self, public: Any, budget: Budget) -> Any:
        """The whole budget."""
        if self.currency == "sampled":
            return budget.sampled(rate=RATE, steps=STEPS)
        return budget.pure() if self.currency == "pure" else budget.zcdp()

    def steps(self, public: Any, allot: Any, rng: Any) -> Iterator[Any]:
        """Every question of the list for an equal part."""
        schema = public.schema
        asked = QUERIES[self.what]()
        for query in asked:
            if isinstance(query, list):
                yield from choose(query, rho=allot.rho / len(asked))
            elif self.currency == "sampled":
                yield from total(query, noise=allot.noise, rate=allot.rate)
            elif self.currency == "pure":
                yield from total(query, epsilon=allot.amount / len(asked))
            else:
                yield from total(query, rho=allot.rho / len(asked))
        return even_product(schema)


@dataclass(frozen=True)
class AskingPublic(Asking):
    """The questions of `Asking`, after public rows."""

    name: ClassVar[str] = "asking_public"
    needs: ClassVar = frozenset({Counts, Choose, Total, PublicRows})

    def steps(self, public: Any, allot: Any, rng: Any) -> Iterator[Any]:
        """Public rows, counts of what is protected, then the list."""
        yield from public_rows(("X", "C"))
        yield from counts((("G",), ("G", "C")), rho=allot.rho / 2)
        yield from super().steps(public, replace(allot, amount=allot.amount / 2), rng)
        return even_product(public.schema)


def even_product(schema: Schema) -> Product:
    """The model that knows nothing."""
    return Product(schema, {name: np.full(schema.size(name), 1 / schema.size(name)) for name in schema.names})


CODED, OTHER = Coded(("G", "X", "C")), Coded(("X", "D"))


def drawn(*shape: int) -> Any:
    """Numbers that are the same each time."""
    return np.random.default_rng(sum(shape)).normal(size=shape)


def row_softmax(weights: Any, x: Any, levels: Any, slopes: Any) -> tuple[Any, Any]:
    """Softmax regression of two features on three classes, one row after another."""
    z = (x[:, :, None] * weights.reshape(2, 3)).sum(axis=1)
    power = np.exp(z - z.max(axis=1, keepdims=True))
    chances = power / power.sum(axis=1, keepdims=True)
    mean = (chances * slopes).sum(axis=1, keepdims=True)
    residuals = chances - np.eye(3)[levels] + chances * (slopes - mean)
    return (x[:, :, None] * residuals[:, None]).reshape(len(x), -1), chances


def row_vectors(frame: pd.DataFrame) -> Any:
    """Two numbers a row."""
    return np.column_stack([frame["X"].to_numpy(float), (frame["D"].astype(str) == "yes").to_numpy(float)])


def peaks() -> list[Any]:
    """Candidates that are mapped from the same sums."""
    rates = np.array([[1.0], [-1.0]])
    return [
        Peak(Columns(("X",), (c,), (1.0,), clip=1.5), rates, np.zeros(2), sign=sign)
        for c in (-0.5, 0.0, 0.5)
        for sign in (1, -1)
    ]


def distances() -> list[Any]:
    """Candidates that are tables compared with counts."""
    return [
        Distance(("G", "C"), 20 * np.ones((2, 3)), weight=1.5, offset=3.0),
        Distance(("C", "D"), 30 * np.ones((3, 2)), weight=0.5),
        Distance(("D",), 100 * np.ones(2)),
    ]


def composites() -> list[Any]:
    """Candidates that are goals over a classifier's rates."""
    counted = Confusions(Design(("X",)), "D", drawn(3, 2), ("G",))
    size = sum(block.size for block in counted.blocks(measured().schema)) // 3
    terms = (Term("largest", drawn(2, size) / 100, np.zeros(2)), Term("largest", drawn(3, size) / 100, np.ones(3)))
    return [Composite(counted, model, terms) for model in range(3)]


EVERY = {
    "by": ("G",),
    "statistics": ("tally", "boundary", "pulls", "excess"),
    "threshold": 0.5,
    "wide": 2.0,
    "noise_slopes": np.array([0.7, -1.5]),
    "clip_slopes": np.array([-0.8, 2.0]),
}
QUERIES: dict[str, Callable[[], list[Any]]] = {
    "columns": lambda: [
        Columns(("X",), (0.1,), (0.5,), clip=1.2),
        Columns(("X", "Z"), (0.0, 5.0), (1.0, 3.0), clip=1.5),
        Columns(("Z",), (4.0,), (2.0,), clip=2.0, square=True),
        Columns(("Z",), (-9.0,), (2.0,), clip=1.0),
    ],
    "l1 columns": lambda: [
        Columns(("X", "Z"), (0.0, 5.0), (1.0, 3.0), clip=1.5, norm="l1"),
        Columns(("Z",), (4.0,), (2.0,), clip=2.0, norm="l1", square=True),
    ],
    "moments": lambda: [
        Moments(Design(("G", "Z")), "X", clip=1.2, bound=0.7),
        Moments(Coded(("Z", "C"), reference=(("C", "q"),), interactions=(("Z", "C"),)), "Y", clip=1.5),
    ],
    "gradients": lambda: [
        Gradients(Design(("G", "Z")), "X", "linear", drawn(2, len(Design(("G", "Z")).names(measured().schema))), 0.8),
        Gradients(CODED, "D", "logistic", drawn(2, 5), 0.4, ("G",), np.array([1.0, 0.5])),
        Gradients(OTHER, "C", "softmax", drawn(2, 3, 3), 0.4),
    ],
    "losses": lambda: [
        Losses(Coded(("G", "Z")), "X", "linear", drawn(2, 3), 1.0),
        Losses(CODED, "D", "logistic", drawn(2, 5), 2.0, "log"),
        Losses(CODED, "D", "logistic", drawn(2, 5), 0.7, "squared"),
    ],
    "curvature": lambda: [Curvature(CODED, "D", drawn(5), 1.1)],
    "networks": lambda: [
        NetworkGradients(OTHER, "C", drawn(4, 3), drawn(5, 3), 0.6, ("D",), np.array([0.25, 1.0])),
        NetworkGradients(CODED, "D", drawn(4, 5), drawn(5, 1), 0.6),
        NetworkLosses(CODED, "D", drawn(4, 5), drawn(5, 1), 0.7, "log"),
        NetworkLosses(OTHER, "C", drawn(4, 3), drawn(5, 3), 0.7, "squared"),
    ],
    "fair": lambda: [
        FairGradients(CODED, "D", "logistic", drawn(2, 5), 0.4, ("G",), drawn(2, 2, 2)),
        FairGradients(OTHER, "C", "softmax", drawn(2, 3, 3), 0.4, ("G",), drawn(2, 2, 3)),
        FairGradients(OTHER, "C", "softmax", drawn(2, 3, 3), 0.4),
    ],
    "mitigated": lambda: [
        Mitigated(CODED, "D", "logistic", drawn(5), 0.6, **EVERY, direction=drawn(6)[:5]),
        Mitigated(OTHER, "C", "softmax", drawn(3, 3), 0.6, ("G", "D"), ("tally", "boundary"), 0.5),
        Mitigated(CODED, "D", "logistic", drawn(5), 0.8, ("G",), ("tally",), 0.5, cuts=np.array([1.0, 0.4])),
        Mitigated(CODED, "D", "network", drawn(19), 0.6, **EVERY, direction=drawn(19), hidden=3),
    ],
    "confusions": lambda: [
        Confusions(CODED, "D", drawn(3, 5), ("G",)),
        Confusions(Design(("X",)), "D", drawn(2, 2)),
        GroupLosses(CODED, "D", drawn(3, 5), 2.0, "log", ("G",)),
        GroupLosses(CODED, "D", drawn(3, 5), 1.0, "squared", ("G", "C")),
    ],
    "per row": lambda: [
        PerRowGradients(OTHER, "C", PerRow(row_softmax, 2, 3, 6, 0.4), drawn(6), ("G",), drawn(2, 3)),
        PerRowGradients(OTHER, "C", PerRow(row_softmax, 2, 3, 6, 0.4), drawn(6)),
    ],
    "row vectors": lambda: [RowVectors(row_vectors, 2, 1.2)],
    "attribute": lambda: [
        AttributeGradients(Coded(("X", "C")), "D", "logistic", drawn(2, 4), 0.3, ("G",), (), drawn(2, 2, 2)),
        AttributeGradients(Coded(("X", "D")), "C", "softmax", drawn(1, 3, 3), 0.3, ("G",), ("C",), drawn(1, 2, 3, 3)),
    ],
    "distances": lambda: [distances(), [replace(one, norm="largest") for one in distances()]],
    "peaks": lambda: [peaks()],
    "composites": lambda: [composites()],
    "sampled": lambda: [Columns(("X",), (0.1,), (0.5,), clip=1.2)] * STEPS,
}
