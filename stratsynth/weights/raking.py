"""Several margins fitted together by iterative proportional fitting (Deming and Stephan 1940).

The result has every margin, and beyond that the associations of the table it starts from: without one,
the margins' columns are independent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

from stratsynth.errors import WeightsError
from stratsynth.schema import Schema
from stratsynth.strata import Stratum
from stratsynth.weights.design import BY_REPLICATES, REPLICATES
from stratsynth.weights.source import Basis, Key, Resolved, ShareSource, even, is_weights
from stratsynth.weights.table import TOLERANCE, ShareTable, called

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stratsynth.weights.sources import Place, Weights

ROUNDS = 10_000
"""Largest number of rounds over all margins."""
UNFIT = "weights: raked weights are made of public, holdout or invariant weights."
STILL = 1e-12
"""Largest change of a share in one round at which raking has converged."""


@dataclass(frozen=True)
class Margins(Basis):
    """Several margins, and the joint table whose associations the raked shares keep."""

    margins: tuple[Weights, ...]
    start: Weights | None
    """Shares of the full crossing, as of another year; even ones if None."""

    @property
    def origins(self) -> tuple[Any, ...]:
        """Tuple of files, frames and tables that the margins and the start were read from."""
        return tuple(origin for weights in self.parts for origin in weights.given.origins)

    @property
    def parts(self) -> tuple[Weights, ...]:
        """Tuple of the margins' `Weights`, then those of the start if there is one."""
        return (*self.margins, *(() if self.start is None else (self.start,)))

    @property
    def design(self) -> str:
        """Method by which the shares' design error is known, for certificates; empty if it is not known of any part."""
        found = {w.given.design for w in self.parts if isinstance(w.given, ShareTable)} - {""}
        return BY_REPLICATES if found == {BY_REPLICATES} else ""

    def columns(self, by: Sequence[str]) -> tuple[str, ...]:
        """Return a tuple of those names in `by` that are columns of some margin here, in the order of `by`."""
        have = {column for margin in self.margins for column in margin.given.columns(by)}
        return tuple(column for column in by if column in have)

    def resolve(self, strata: Sequence[Stratum], schema: Schema | None) -> Resolved:
        """Return the `Resolved` raked shares of `strata`, a full crossing; the schema says what its rules forbid.

        WeightsError if a column is in no margin, or margins contradict.
        """
        import numpy as np

        by = strata[0].columns
        lacking = [column for column in by if column not in self.columns(by)]
        if lacking:
            raise WeightsError(f"weights: no margin knows {lacking[0]}; add one, or leave it out of the strata.")
        sides = [_side(margin, strata, schema) for margin in self.margins]
        for one, other in combinations(sides, 2):
            _agree(one, other)
        first = self.start.resolve(strata, schema) if self.start else even(strata, schema)
        places = [side.places(strata) for side in sides]
        fitted = rake(np.array([first.shares[s] for s in strata]), places, [side.targets for side in sides])
        replicates = _replicates([first, *(side.resolved for side in sides)], places)
        return Resolved(dict(zip(strata, fitted.tolist(), strict=True)), replicates=replicates)


@dataclass(frozen=True)
class _Side:
    """One margin, matched to the strata of its columns."""

    resolved: Resolved

    @property
    def shares(self) -> Mapping[Stratum, float]:
        """Mapping from stratum of the margin's columns to share."""
        return self.resolved.shares

    @property
    def columns(self) -> tuple[str, ...]:
        """Tuple of the columns that the margin's groups are of."""
        return next(iter(self.shares)).columns

    @property
    def targets(self) -> NDArray[np.float64]:
        """Array of the share of each of the margin's groups, in order."""
        import numpy as np

        return np.array(list(self.shares.values()))

    def places(self, strata: Sequence[Stratum]) -> NDArray[np.intp]:
        """Return an integer array: for each of `strata`, the index of this margin's group that it lies in."""
        import numpy as np

        number = {group: i for i, group in enumerate(self.shares)}
        return np.array([number[_part(stratum, self.columns)] for stratum in strata], dtype=np.intp)


def _side(margin: Weights, strata: Sequence[Stratum], schema: Schema | None) -> _Side:
    """Return the `_Side` of `margin`, a `Weights`, for its columns in `strata`, by the schema; WeightsError if none."""
    columns = margin.given.columns(strata[0].columns)
    if not columns:
        raise WeightsError("weights: a margin has none of the strata's columns.")
    return _Side(margin.resolve(tuple(dict.fromkeys(_part(s, columns) for s in strata)), schema))


def _part(stratum: Stratum, columns: Sequence[str]) -> Stratum:
    """Return the stratum of only `columns` that `stratum` lies in, with the same levels and names."""
    names = dict(zip(stratum.columns, stratum.names, strict=True))
    return Stratum(tuple((c, stratum.levels[c]) for c in columns), tuple(names[c] for c in columns))


def _agree(one: _Side, other: _Side) -> None:
    """Raise WeightsError if two margins, each a `_Side`, differ by over TOLERANCE in a share of common columns."""
    common = [c for c in one.columns if c in other.columns]
    if not common:
        return
    sums: list[dict[Stratum, float]] = [{}, {}]
    for side, found in zip((one, other), sums, strict=True):
        for stratum, share in side.shares.items():
            part = _part(stratum, common)
            found[part] = found.get(part, 0.0) + share
    for group, share in sums[0].items():
        if abs(share - sums[1][group]) > TOLERANCE:
            name = called(list(zip(group.columns, group.names, strict=True)))
            raise WeightsError(
                f"weights: margins contradict each other: {name} has the share {share:.4g} in one and "
                f"{sums[1][group]:.4g} in another. A sample or an older table belongs in `start`."
            )


def rake(
    start: NDArray[np.float64], places: Sequence[NDArray[np.intp]], targets: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Return `start`, a flat array of cells, scaled to one margin after another until it fits all; sum 1.

    `places` has for each margin an array, each cell's number among the margin's cells; `targets` an array of the shares
    of these (iterative proportional fitting). WeightsError if it does not converge.
    """
    import numpy as np

    table = start / start.sum()
    for _ in range(ROUNDS):
        before = table
        for place, target in zip(places, targets, strict=True):
            have = np.bincount(place, table, target.size)
            # One step of iterative proportional fitting: multiply each cell by target over present share of its margin.
            table = table * np.divide(target, have, out=np.zeros_like(target), where=have > 0)[place]
        if not np.abs(table - before).max() > STILL:
            break
    off = max(float(np.abs(np.bincount(p, table, t.size) - t).max()) for p, t in zip(places, targets, strict=True))
    if not off <= TOLERANCE:
        raise WeightsError(
            f"weights: raking did not converge: the fitted shares miss a margin by {off:.3g}. The margins contradict "
            "each other, or ask for people where the starting table has none."
        )
    fitted: NDArray[np.float64] = table / table.sum()
    return fitted


def _replicates(parts: Sequence[Resolved], places: Sequence[NDArray[np.intp]]) -> NDArray[np.float64] | None:
    """Return the shares raked anew by each replicate of their sources, an array (strata, replicates); None if unknown.

    Sources of one citation are one survey, whose replicates move together. Surveys are independent: the replicates of
    each are raked with the others' own figures, and all have the same factor. Unknown are the shares of samples, those
    whose standard errors alone are known, and those of replicates that contradict a margin.

    Args:
        parts: List of the `Resolved` shares that raking starts from, then those of each margin.
        places: For each margin an array, each stratum's number among the margin's groups, as for `rake`.
    """
    import numpy as np

    surveys = dict.fromkeys(part.cited for part in parts if part.replicates is not None)
    if not surveys or any(p.sampled is not None or (p.errors and p.replicates is None) for p in parts):
        return None
    exact, found = [np.array([*part.shares.values()]) for part in parts], []
    for survey in surveys:
        for number in range(REPLICATES):
            start, *targets = (
                own if part.replicates is None or part.cited != survey else _positive(part.replicates[:, number])
                for own, part in zip(exact, parts, strict=True)
            )
            try:
                found.append(rake(start, places, targets))
            except WeightsError:
                return None
    return np.stack(found, axis=1)


def _positive(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the array `shares`, of one replicate, with parts below 0 made 0, which raking cannot keep; sum 1."""
    import numpy as np

    kept = np.maximum(shares, 0.0)
    found: NDArray[np.float64] = kept / kept.sum()
    return found


class Raked(ShareSource):
    """Shares from several margins fitted together; as public as the least public of them."""

    name: ClassVar[str] = "raked"
    words: ClassVar[str] = "computed from the totals of several sources"
    keys: ClassVar[Mapping[str, Key]] = {
        "margins": Key(
            Sequence,
            'a list of tables, each with path and citation, as { path = "sex.csv", citation = "..." }',
            needed=True,
        ),
        "start": Key(Mapping, "a table of weights, with path and citation, whose associations the raked shares keep"),
    }
    exact: ClassVar[bool] = True
    known: ClassVar[bool] = True
    samples: ClassVar[bool] = True

    def of(self, *margins: Weights, start: Weights | None = None) -> Weights:
        """Return weights raked to all `margins`, each weights of some columns, from `start`.

        WeightsError for raked or private ones.
        """
        given = Margins(margins, start)
        if not margins or not all(is_weights(w) and w.kind.raked for w in given.parts):
            raise WeightsError(UNFIT)
        cited = "; ".join(dict.fromkeys(w.citation for w in given.parts))
        unprotected = tuple(dict.fromkeys(item for w in given.parts for item in w.unprotected))
        return self.made(cited, given, unprotected)

    def read(self, section: Mapping[str, Any], place: Place) -> Weights:
        """Return weights raked to `margins` of a recipe's `section`, a mapping, from its `start`, if any.

        `place` reads both.
        """
        margins = [place.nested(margin, "margins", UNFIT) for margin in section["margins"]]
        start = section.get("start")
        return self.of(*margins, start=None if start is None else place.nested(start, "start", UNFIT))

    def stated(self, weights: Weights) -> dict[str, Any]:
        """Return a dict for the certificate: the weights' margins, start, least public source.

        {} if summed over columns.
        """
        given = weights.given
        if not isinstance(given, Margins):
            return {}
        return {
            "worst": weights.worst,
            **({"design": given.design} if given.design else {}),
            "margins": [margin.describe() for margin in given.margins],
            "start": None if given.start is None else given.start.describe(),
        }
