"""Stored state of the models of several strata; structures that strata share, such as a graph, are written once.

Beside a stratum's own facts, `like` is the number of its shared structure: the lists among its facts. In a structure,
lists of lists, such as a graph's cliques, are written as numbers of the distinct inner lists, `items`, since the trees
of all strata are made of the same pairs of columns.
"""

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
    return _itemised([json.loads(text) for text in numbers]), own


def read_again(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a list, one a part of stored `facts`: what it shares, {} if nothing; ReleaseError if damaged.

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


def _itemised(structures: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a dict: `alike`, the structures with numbers for inner lists; `items`, these lists; `itemised`, the keys.

    A list is replaced where its key holds nothing but lists in all structures; equal lists have one number.
    """
    every = dict.fromkeys(key for one in structures for key in one)
    names = [key for key in every if all(type(item) is list for one in structures for item in one.get(key, ()))]
    items: dict[str, int] = {}
    alike = [
        {
            key: [items.setdefault(json.dumps(item), len(items)) for item in value] if key in names else value
            for key, value in one.items()
        }
        for one in structures
    ]
    return {"alike": alike, "items": list(map(json.loads, items)), "itemised": names}


def _is_number(value: object) -> bool:
    return type(value) is int and value >= 0
