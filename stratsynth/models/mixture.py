"""Mixture of strata's models by public weights: the row-drawing model of a stratified release.

In stored state, structures that strata share, such as a graph, are written once. Beside a stratum's own facts, `like`
is the number of its shared structure: the lists among its facts. In a structure, lists of lists, such as a graph's
cliques, are written as numbers of the distinct inner lists, `items`, since the trees of all strata are made of the same
pairs of columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stratsynth.errors import MechanismError, ReleaseError
from stratsynth.models.base import Codes, Model, Returns, State, TableModel, Where
from stratsynth.models.rules import Moved, draw_allowed
from stratsynth.progress import phase
from stratsynth.strata import Stratum, disjoint, within

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from stratsynth.schema import Schema


MOST_ALIKE = 2**28
"""Largest size in characters of shared structures, counted once per stratum: a small file could name one very often."""

MANY = 1_000
"""Number of parts above which inner lists are written once even if no two structures are equal."""


def stored(parts: Mapping[Stratum, Model], own: Callable[[Stratum], Mapping[str, Any]]) -> State:
    """Return one `State` of `parts`, models by stratum, array names prefixed by the part's number.

    A part's facts are its stratum, further facts that the function `own` returns for this, and the model's; lists that
    several parts share are written once, by `written_once`.
    """
    states = {stratum: part.state() for stratum, part in parts.items()}
    common, mine = written_once([state.facts for state in states.values()])
    facts, arrays = [], {}
    for i, ((stratum, state), kept) in enumerate(zip(states.items(), mine, strict=True)):
        facts.append({"stratum": stratum.to_dict(), **own(stratum), **kept})
        arrays.update({f"{i}/{name}": array for name, array in state.arrays.items()})
    return State({"parts": facts, **common}, arrays)


def opened(schema: Schema, state: State) -> dict[Stratum, tuple[Mapping[str, Any], Schema, State]]:
    """Return a dict from stratum to (stored facts, schema inside it, `State` of its model), as `stored` wrote them.

    Args:
        schema: The schema of the whole model.
        state: The `State` of the whole model.

    Raises:
        ReleaseError: Strata that do not belong to one split.
    """
    found = {}
    arrays: dict[str, dict[str, NDArray[Any]]] = {}
    for name, array in state.arrays.items():
        number, _, own = name.partition("/")
        arrays.setdefault(number, {})[own] = array
    alike = read_again(state.facts)
    for i, facts in enumerate(state.facts["parts"]):
        stratum = _stratum(facts["stratum"], facts.get("names"))
        if any(codes != sorted(set(codes)) for codes in stratum.codes(schema).values()):
            raise ReleaseError("model: the levels of a merged stratum are out of order.")
        found[stratum] = (
            facts,
            within(schema, (stratum,)),
            State({**alike[i], **facts["facts"]}, arrays.get(str(i), {})),
        )
    one_split = len({stratum.columns for stratum in found}) <= 1 and disjoint(found)
    if len(found) < len(state.facts["parts"]) or not one_split:
        raise ReleaseError("model: its strata are not those of one split.")
    return found


def _stratum(levels: Mapping[str, str], names: Sequence[object] | None) -> Stratum:
    """Return the stratum of stored levels by column and their stored names, None for none; ReleaseError if damaged."""
    stratum = Stratum.from_dict(levels)
    if names is None:
        return stratum
    texts = tuple(name for name in names if isinstance(name, str) and name.isprintable() and "|" not in name)
    if len(texts) != len(names) or len(texts) != len(stratum.items):
        raise ReleaseError("model: a stratum's names are damaged.")
    return Stratum(stratum.items, texts)


def written_once(parts: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return (dict of facts that parts share, list of each part's own); the dict is {} if up to `MANY` all differ.

    Shared are `alike`, structures with numbers for inner lists; `items`, these lists; and `itemised`, the keys of them.

    Args:
        parts: The facts of each part.
    """
    lists = [_lists(facts) for facts in parts]
    texts = [json.dumps(some, sort_keys=True) for some in lists]
    numbers = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    if (len(numbers) == len(parts) <= MANY) or not any(lists):
        return {}, [{"facts": dict(facts)} for facts in parts]
    own = [
        {"like": numbers[text], "facts": {key: value for key, value in facts.items() if key not in some}}
        for facts, some, text in zip(parts, lists, texts, strict=True)
    ]
    structures: list[dict[str, Any]] = [json.loads(text) for text in numbers]
    every = dict.fromkeys(key for one in structures for key in one)
    # a list is replaced where its key holds nothing but lists in all structures; equal lists have one number
    names = [key for key in every if all(type(item) is list for one in structures for item in one.get(key, ()))]
    items: dict[str, int] = {}
    alike = [
        {
            key: [items.setdefault(json.dumps(item), len(items)) for item in value] if key in names else value
            for key, value in one.items()
        }
        for one in structures
    ]
    return {"alike": alike, "items": list(map(json.loads, items)), "itemised": names}, own


def read_again(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a list, one a part of stored `facts`: a dict of what it shares, {} if nothing; ReleaseError if damaged.

    Or if it were above `MOST_ALIKE` characters.
    """
    known, numbers = facts.get("alike", []), [part.get("like") for part in facts["parts"]]
    items, told = facts.get("items", []), facts.get("itemised", [])
    sound = all(type(one) is dict and one == _lists(one) for one in known) and type(items) is type(told) is list
    names = frozenset(told) if sound else frozenset()  # looked up for every structure
    coded = [value for one in known if sound for key, value in one.items() if key in names]
    sound = sound and all(_is_number(number) for value in coded for number in value)
    if not sound or not all(number is None or _is_number(number) for number in numbers):
        raise ReleaseError("model: what its strata have in common is damaged.")
    lengths = [len(json.dumps(item)) for item in items]
    sizes = [
        len(json.dumps(one)) + sum(lengths[number] for key, value in one.items() if key in names for number in value)
        for one in known
    ]
    # refused before anything is expanded: small files can name a large structure thousands of times
    if sum(sizes[number] for number in numbers if number is not None) > MOST_ALIKE:
        raise ReleaseError(f"model: what its strata have in common is more than {MOST_ALIKE:,} characters.")
    whole = [
        {key: [items[number] for number in value] if key in names else value for key, value in one.items()}
        for one in known
    ]
    return [{} if number is None else whole[number] for number in numbers]


def _lists(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return {key: list} of the `facts` that parts may share: all lists but `parts`, which models of their own read."""
    return {key: value for key, value in facts.items() if isinstance(value, list) and key != "parts"}


def _is_number(value: object) -> bool:
    return type(value) is int and value >= 0


def allot(n: int, weights: np.ndarray[Any, Any], rng: Generator) -> np.ndarray[Any, Any]:
    """Return an int array, an entry for each of the array `weights`, in all n, each with expectation n * weight / sum.

    Systematic rounding: one uniform offset (by `rng`) on the cumulated weights, taken in random order, so that each
    part gets the floor or the ceiling of its expectation, without bias.
    """
    parts = np.flatnonzero(weights)  # weight 0 never gets a row
    order = parts[rng.permutation(parts.size)]
    due = np.cumsum(weights[order] / weights.sum()) * n
    due[-1] = n  # rounding in the cumulated sum must not cost or add a row
    marks = np.minimum(np.floor(due + rng.random()), n)
    marks[-1] = n
    counts = np.zeros(len(weights), dtype=np.int64)
    counts[order] = np.diff(marks, prepend=0).astype(np.int64)
    return counts


@dataclass(frozen=True)
class Mixture(TableModel):
    """Distribution of rows that draws a stratum by its weight, then a row of that stratum's model."""

    kind: ClassVar[str] = "mixture"
    schema: Schema
    """All columns; those that define the strata are constant in each part, or vary among merged levels."""
    parts: Mapping[Stratum, TableModel]
    weights: Mapping[Stratum, float]
    """Public shares of the strata, adding up to 1."""

    def _within(self, stratum: Stratum, where: Where) -> Where | None:
        """Return what is left inside a stratum of `where`, {column: set of codes}, in the stratum's own codes.

        None if no row of it can meet the condition.
        """
        rest = {column: codes for column, codes in where.items() if column not in stratum.levels}
        for column, codes in stratum.codes(self.schema).items():
            if column not in where:
                continue
            allowed = frozenset(i for i, code in enumerate(codes) if code in where[column])
            if not allowed:
                return None
            if len(codes) > 1:
                rest[column] = allowed
        return rest

    def _masses(self, where: Where) -> dict[Stratum, tuple[float, Where]]:
        """Return {stratum: (its mass on `where`, the condition left inside it)} of the strata that can meet `where`."""
        masses = {}
        for stratum, part in self.parts.items():
            rest = self._within(stratum, where)
            if rest is not None:
                masses[stratum] = (self.weights[stratum] * part.mass(rest), rest)
        return masses

    def mass(self, where: Where) -> float:
        """Return the probability, 0 to 1, that a row meets `where`, {column: set of codes}: the parts', weighted."""
        return float(sum(mass for mass, _ in self._masses(where).values()))

    def sample(self, n: int, rng: Generator, where: Where | None = None) -> Codes:
        """Return n rows by `rng`, {column: array of codes}, that meet `where`, in strata's order, fairly rounded.

        `where` maps columns to sets of codes, None: any row. Rows that break a structural rule are drawn again within
        their part, so shares stay unchanged.
        """
        return self.counted(n, rng, where or {}, Moved())

    def counted(self, n: int, rng: Generator, where: Where, moved: Moved) -> Codes:
        """Return n rows by `rng`, {column: array of codes}, that meet `where`, {column: set of codes}.

        `moved`, a `Moved`, counts changes by rules; MechanismError if no row can meet the condition.
        """
        masses = self._masses(where)
        shares = np.array([mass for mass, _ in masses.values()])
        if n and not shares.sum() > 0:
            raise MechanismError("no row can meet this condition: its mass under the model is 0.")
        numbers = allot(n, shares, rng) if n else np.zeros(len(masses), dtype=np.int64)
        drawn: dict[str, list[np.ndarray[Any, Any]]] = {column: [] for column in self.schema.names}
        with phase("drawing rows", lambda: int(np.count_nonzero(numbers))) as done:
            for (stratum, (_, rest)), number in zip(masses.items(), numbers, strict=True):
                if number == 0:  # parts need not support n = 0
                    continue
                fixed = {*stratum.columns, *rest}
                draw = partial(self._draw, stratum, rng, rest)
                rows = draw_allowed(self.schema, int(number), rng, draw, fixed, moved.inside(stratum.label))
                for column, codes in rows.items():
                    drawn[column].append(codes)
                done()
        return {c: np.concatenate(d) if d else np.zeros(0, dtype=np.int64) for c, d in drawn.items()}

    def _draw(self, stratum: Stratum, rng: Generator, rest: Where, number: int, moved: Moved) -> Codes:
        """Return `number` rows of `stratum` by `rng` under `rest`, with the columns that are constant in it.

        They are arrays of the schema's codes by column; `rest` maps columns to sets of codes inside the stratum, and
        `moved` counts rows that rules change.
        """
        rows = self.parts[stratum].counted(number, rng, rest, moved)
        own = {
            c: np.array(codes)[rows[c]] if len(codes) > 1 else np.full(number, codes[0], dtype=np.int64)
            for c, codes in stratum.codes(self.schema).items()
        }
        return {**rows, **own}

    def oneway(self, column: str) -> np.ndarray[Any, Any]:
        """Return an array of the probability of each level of a column: the parts' distributions, weighted."""
        shares = [self.weights[stratum] * self.inside(stratum, column) for stratum in self.parts]
        return np.asarray(np.sum(shares, axis=0), dtype=np.float64)

    def inside(self, stratum: Stratum, column: str) -> np.ndarray[Any, Any]:
        """Return a float array, an entry for each level of `column`: its probability within one stratum.

        The probability is 0 outside the stratum's own levels.
        """
        part = self.parts[stratum]
        if column not in stratum.levels:
            return part.oneway(column)
        found = np.zeros(self.schema.size(column))
        codes = stratum.codes(self.schema)[column]
        found[codes] = part.oneway(column) if len(codes) > 1 else 1.0
        return found

    def mixture(self) -> Mixture:
        """Return this model itself, as it is one of strata's models."""
        return self

    def state(self) -> State:
        """Return a `State`: the parts' states side by side, each with its weight and kind."""
        return stored(self.parts, lambda stratum: {"weight": self.weights[stratum], "kind": self.parts[stratum].kind})

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Mixture:
        """Return the mixture, in a schema, of a stored state.

        ReleaseError unless the weights add up to 1 and all parts draw rows.
        """
        from stratsynth.models.files import restore  # restoring a part looks its kind up, mixtures included

        parts: dict[Stratum, TableModel] = {}
        weights: dict[Stratum, float] = {}
        for stratum, (facts, inside, own) in opened(schema, state).items():
            weight = float(facts["weight"])
            if not 0 <= weight <= 1:
                raise ReleaseError("model: a stratum's weight is not between 0 and 1.")
            part = restore(facts["kind"], inside, own)
            if part.returns != Returns.ROWS:
                raise ReleaseError("model: a stratum draws no rows.")
            parts[stratum], weights[stratum] = part.table_model(), weight
        if abs(sum(weights.values()) - 1) > 1e-9:
            raise ReleaseError("model: the strata's weights do not add up to 1.")
        return cls(schema, parts, weights)
