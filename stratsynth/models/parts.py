"""Models of strata side by side in one state: what all models that are made of strata have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stratsynth.errors import ReleaseError
from stratsynth.models.alike import read_again, written_once
from stratsynth.models.base import Model, State
from stratsynth.strata import Stratum, disjoint, within

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema


def level_numbers(schema: Schema, stratum: Stratum) -> dict[str, list[int]]:
    """The level numbers of each of a stratum's columns; a model inside a merge counts these from 0, in this order."""
    return {column: [schema.index(column, level) for level in levels] for column, levels in stratum.items}


def stored(parts: Mapping[Stratum, Model], own: Callable[[Stratum], Mapping[str, Any]]) -> State:
    """The parts' states side by side, arrays named by the part's number; `own` is what else is kept of each.

    Lists that several parts have in common are written once, as `written_once` says.
    """
    states = {stratum: part.state() for stratum, part in parts.items()}
    common, mine = written_once([state.facts for state in states.values()])
    facts, arrays = [], {}
    for i, ((stratum, state), kept) in enumerate(zip(states.items(), mine, strict=True)):
        facts.append({"stratum": stratum.to_dict(), **own(stratum), **kept})
        arrays.update({f"{i}/{name}": array for name, array in state.arrays.items()})
    return State({"parts": facts, **common}, arrays)


def opened(schema: Schema, state: State) -> dict[Stratum, tuple[Mapping[str, Any], Schema, State]]:
    """What `stored` wrote, for each stratum: all that was kept, the schema inside it, and the part's state.

    Raises:
        ReleaseError: Strata that are not those of one split.
    """
    found = {}
    arrays: dict[str, dict[str, NDArray[Any]]] = {}
    for name, array in state.arrays.items():
        number, _, own = name.partition("/")
        arrays.setdefault(number, {})[own] = array
    alike = read_again(state.facts)
    for i, facts in enumerate(state.facts["parts"]):
        stratum = _stratum(facts["stratum"], facts.get("names"))
        if any(codes != sorted(set(codes)) for codes in level_numbers(schema, stratum).values()):
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
    """A stratum, with the names by which tables and reports call it where these were kept."""
    stratum = Stratum.from_dict(levels)
    if names is None:
        return stratum
    texts = tuple(name for name in names if isinstance(name, str) and name.isprintable() and "|" not in name)
    if len(texts) != len(names) or len(texts) != len(stratum.items):
        raise ReleaseError("model: a stratum's names are damaged.")
    return Stratum(stratum.items, texts)
