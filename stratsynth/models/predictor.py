"""Models that predict: an array with one entry for each row that they are shown."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stratsynth.errors import ReleaseError, UsageError
from stratsynth.models.base import Codes, Model, Returns, State
from stratsynth.models.mixture import opened, stored
from stratsynth.strata import Stratum, StratumPath

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from stratsynth.data.sources import Data
    from stratsynth.report.page import Section
    from stratsynth.schema import Schema
    from stratsynth.weights import Resolved


class Shown(dict[str, "NDArray[np.integer[Any]]"]):
    """Rows to predict: level numbers by column, and the numbers of numeric columns, which levels only give as bins.

    A mapping and not `CodedRows`, since `Predictor.predict` takes plain mappings of level numbers as well.
    """

    def __init__(self, codes: Codes, numbers: Mapping[str, NDArray[np.float64]]) -> None:
        """Keep level numbers by column, and `numbers` by numeric column: values within bounds, NaN for none."""
        super().__init__(codes)
        self.numbers = dict(numbers)


def numbers_of(rows: Codes) -> Mapping[str, NDArray[np.float64]]:
    """Return {numeric column: float array by row} of `rows`, if they are `Shown`; {} for level numbers alone."""
    return rows.numbers if isinstance(rows, Shown) else {}


class Predictor(Model):
    """Model that predicts something of each row from some of its columns.

    Subclasses declare `inputs` and `predict` too. A release of such a model holds no tables.
    """

    returns: ClassVar[Returns] = Returns.PREDICTIONS

    @property
    @abstractmethod
    def inputs(self) -> tuple[str, ...]:
        """Tuple of names of the columns that the model reads, among its schema's."""

    @abstractmethod
    def predict(self, rows: Codes) -> NDArray[Any]:
        """Return an array of predictions, one entry per row along the first axis, in the order of the rows.

        Args:
            rows: At least one row, {column of `inputs`: array of codes} by this model's schema; with the numbers of
                numeric columns (`numbers_of`) if a release is shown data.
        """

    def seeded(self, seed: int) -> Predictor:
        """Return a copy with this seed for random predictions; a deterministic model returns itself."""
        return self

    def table(self, rows: Codes) -> Mapping[str, NDArray[Any]]:
        """Return {column: array by row} that `stratsynth predict` writes for coded `rows`: `prediction` and others."""
        return {"prediction": self.predict(rows)}

    @classmethod
    def combined(cls, schema: Schema, parts: Mapping[Stratum, Any], weights: Resolved) -> Model:
        """Return a predictor by group of a schema's `parts`, a stratum's model each; no `Resolved` weight enters."""
        return ByGroup(schema, dict(parts))

    def predictor(self) -> Predictor:
        """Return this model itself, as it predicts a target."""
        return self

    def shown(self, data: Data) -> Codes:
        """Return the rows of `data`, a file, frame or Arrow table: {input column: array of codes}, for `predict`.

        Other columns are not read.
        """
        from stratsynth.data.sources import open_source

        return self.encoded(open_source(data).read(self.inputs))

    def encoded(self, data: pa.Table) -> Codes:
        """Return {input: array of codes} of the rows of an Arrow table, `data`, with the numbers of the numeric inputs.

        Raises:
            UsageError: Rows with a value that the schema does not admit, or no rows.
        """
        from stratsynth.schema import Numeric
        from stratsynth.schema.encoding import encode

        numeric = [name for name in self.inputs if isinstance(self.schema.column(name), Numeric)]
        coded = encode(self.schema.restrict(self.inputs), data, numeric)
        if coded.size < data.num_rows:
            raise UsageError(
                f"predict: {data.num_rows - coded.size:,} of {data.num_rows:,} rows hold a value that the schema does "
                f"not admit in {', '.join(self.inputs)}. Leave these rows out, or mend them first."
            )
        if not coded.size:
            raise UsageError("predict: there are no rows; give at least one.")
        return Shown(dict(coded.codes), coded.numbers)


@dataclass(frozen=True)
class ByGroup(Predictor):
    """Predictor that passes each row to the model of its stratum."""

    kind: ClassVar[str] = "by_group"
    schema: Schema
    """All columns; those that define the strata are constant in each part, or vary among merged levels."""
    parts: Mapping[Stratum, Predictor]
    """Stratum -> its model, for the full crossing of the strata's columns, merges included: every row lies in one."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Tuple of names of the columns that define the strata, and of those that the parts read, in schema order."""
        read = {name for stratum, part in self.parts.items() for name in (*stratum.columns, *part.inputs)}
        return tuple(name for name in self.schema.names if name in read)

    def seeded(self, seed: int) -> Predictor:
        """Return a predictor whose parts have independent seeds, drawn from `seed`."""
        seeds = np.random.SeedSequence(seed).generate_state(len(self.parts), np.uint64)
        return replace(
            self, parts={s: p.seeded(int(own)) for (s, p), own in zip(self.parts.items(), seeds, strict=True)}
        )

    def predict(self, rows: Codes) -> NDArray[Any]:
        """Return an array of predictions of `rows`, codes by column, each by its stratum's model, in their order."""
        return self._by_part(rows, lambda part, own: {"": part.predict(own)})[""]

    def table(self, rows: Codes) -> Mapping[str, NDArray[Any]]:
        """Return {column: array by row} for coded `rows`, each by its stratum's model; all write the same columns."""
        return self._by_part(rows, lambda part, own: part.table(own))

    def _by_part(
        self, rows: Codes, told: Callable[[Predictor, Codes], Mapping[str, NDArray[Any]]]
    ) -> dict[str, NDArray[Any]]:
        """Return {name: array by row}: what `told` returns for each stratum's model and rows, in the rows' order."""
        places, found = [], []
        for stratum, part in self.parts.items():
            numbers = stratum.codes(self.schema)
            here = np.flatnonzero(np.all([np.isin(rows[c], codes) for c, codes in numbers.items()], axis=0))
            if here.size:
                # inside a merge the part counts the merged levels from 0; they are in ascending order
                own = {c: np.searchsorted(codes, rows[c][here]) for c, codes in numbers.items() if len(codes) > 1}
                rest = {c: rows[c][here] for c in part.inputs if c not in numbers}
                reals = {c: real[here] for c, real in numbers_of(rows).items() if c in part.inputs}
                places.append(here)
                inside = {**rest, **{c: codes for c, codes in own.items() if c in part.inputs}}
                found.append(told(part, Shown(inside, reals)))
        order = np.argsort(np.concatenate(places))
        return {name: np.concatenate([one[name] for one in found])[order] for name in found[0]}

    def gaps(self) -> Sequence[Mapping[str, Any]]:
        """Return a list of dicts: the gaps of all parts, each with its stratum's label under `stratum`."""
        return [{**gap, "stratum": stratum.label} for stratum, part in self.parts.items() for gap in part.gaps()]

    def sections(self, named: Callable[[str], str]) -> Sequence[Section]:
        """Return a list of the parts' Sections; `named` maps a group's label to its name for readers.

        Sections of one name become one, in which the reader chooses a group by that name.
        """
        whole: dict[str, Section] = {}
        for stratum, part in self.parts.items():
            for section in part.sections(_below(stratum, named)):
                group = named(stratum.label)
                figures = [f if f.group is not None else replace(f, group=group) for f in section.figures]
                facts = [(f"{group}: {name}", text) for name, text in section.facts]
                before = whole.get(section.name, replace(section, facts=(), figures=(), groups=()))
                whole[section.name] = replace(
                    before,
                    facts=[*before.facts, *facts],
                    figures=[*before.figures, *figures],
                    groups=[*before.groups, *(section.groups or [group])],
                )
        return list(whole.values())

    def foretell(self, path: StratumPath) -> str:
        """Return the line of a plan by the model of the path's first stratum; empty for the empty path."""
        return self.parts[path[0]].foretell(path[1:]) if path else ""

    def state(self) -> State:
        """Return a `State`: the parts' states side by side, each with its kind."""
        return stored(self.parts, lambda stratum: {"names": list(stratum.names), "kind": self.parts[stratum].kind})

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> ByGroup:
        """Return the predictor, in a schema, of a stored state.

        ReleaseError if a row may lack a part, or a part does not predict.
        """
        from stratsynth.models.files import restore  # restoring a part looks its kind up, this one included

        parts: dict[Stratum, Predictor] = {}
        for stratum, (facts, inside, own) in opened(schema, state).items():
            part = restore(facts["kind"], inside, own)
            if part.returns != Returns.PREDICTIONS:
                raise ReleaseError("model: a stratum does not predict.")
            parts[stratum] = part.predictor()
        columns = next(iter(parts), Stratum(())).columns
        if not columns or sum(stratum.size for stratum in parts) != schema.cells(columns):
            raise ReleaseError("model: its strata are not all there are.")
        return cls(schema, parts)


def _below(stratum: Stratum, named: Callable[[str], str]) -> Callable[[str], str]:
    """Return the function from a group's label inside a stratum to its name, by `named` of the full label."""
    return lambda label: named("|".join(filter(None, (stratum.label, label))))
