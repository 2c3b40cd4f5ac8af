"""Models of strata side by side in one state: what all models that are made of strata have in common."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stratsynth.errors import ReleaseError
from stratsynth.models.base import Model, State
from stratsynth.strata import Stratum, disjoint, within

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.schema import Schema

MOST_ALIKE = 2**28
"""The most characters of what strata have in common, counted with each of them: lists are cheap to write once."""


def level_numbers(schema: Schema, stratum: Stratum) -> dict[str, list[int]]:
    """The level numbers of each of a stratum's columns; a model inside a merge counts these from 0, in this order."""
    return {column: [schema.index(column, level) for level in levels] for column, levels in stratum.items}


def stored(parts: Mapping[Stratum, Model], own: Callable[[Stratum], Mapping[str, Any]]) -> State:
    """The parts' states side by side, arrays named by the part's number; `own` is what else is kept of each.

    Lists that several parts have in common, such as the structure of a graph, are written once: a part of thousands
    says which they are. Where no two parts have the same, all is written with each.
    """
    states = {stratum: part.state() for stratum, part in parts.items()}
    lists = {stratum: _lists(state.facts) for stratum, state in states.items()}
    texts = {stratum: json.dumps(some, sort_keys=True) for stratum, some in lists.items()}
    numbers = {text: i for i, text in enumerate(dict.fromkeys(texts.values()))}
    share = len(numbers) < len(parts) and any(lists.values())
    facts, arrays = [], {}
    for i, (stratum, state) in enumerate(states.items()):
        mine = {key: value for key, value in state.facts.items() if not share or key not in lists[stratum]}
        like = {"like": numbers[texts[stratum]]} if share else {}
        facts.append({"stratum": stratum.to_dict(), **own(stratum), **like, "facts": mine})
        arrays.update({f"{i}/{name}": array for name, array in state.arrays.items()})
    return State({"parts": facts, **({"alike": list(map(json.loads, numbers))} if share else {})}, arrays)


def _lists(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What parts may have in common; parts of a part are looked through where models are read, and stay with it."""
    return {key: value for key, value in facts.items() if isinstance(value, list) and key != "parts"}


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
    alike = _alike(state.facts)
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


def _alike(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What each part has in common with others, refused where together that would be more than a file may say."""
    known, numbers = facts.get("alike", []), [part.get("like") for part in facts["parts"]]
    sound = all(type(one) is dict and one == _lists(one) for one in known)
    if not sound or any(number is not None and (type(number) is not int or number < 0) for number in numbers):
        raise ReleaseError("model: what its strata have in common is damaged.")
    sizes = [len(json.dumps(one)) for one in known]
    if sum(sizes[number] for number in numbers if number is not None) > MOST_ALIKE:
        raise ReleaseError(f"model: what its strata have in common is more than {MOST_ALIKE:,} characters.")
    return [{} if number is None else known[number] for number in numbers]


def _stratum(levels: Mapping[str, str], names: Sequence[object] | None) -> Stratum:
    """A stratum, with the names by which tables and reports call it where these were kept."""
    stratum = Stratum.from_dict(levels)
    if names is None:
        return stratum
    texts = tuple(name for name in names if isinstance(name, str) and name.isprintable() and "|" not in name)
    if len(texts) != len(names) or len(texts) != len(stratum.items):
        raise ReleaseError("model: a stratum's names are damaged.")
    return Stratum(stratum.items, texts)
