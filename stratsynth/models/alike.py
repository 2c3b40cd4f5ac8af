"""What the models of strata have in common, such as the structure of a graph, is written once.

A stratum's facts are kept beside a number, `like`, of the structure that it shares: the lists among its facts. In
these, lists of lists, such as a graph's cliques, are written as numbers of the distinct inner lists, `items`: the trees
of all strata are made of the same pairs of columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from stratsynth.errors import ReleaseError

MOST_ALIKE = 2**28
"""The most characters of what strata have in common, counted with each of them: lists are cheap to write once."""

MANY = 1_000
"""Of more parts the lists in their structures are written once even where no two structures are the same."""


def written_once(parts: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What is kept of all parts together, and of each; nothing together where no two of a few have the same lists.

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
    """What each part has in common with others, refused where together that would be more than a file may say."""
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
    if sum(sizes[number] for number in numbers if number is not None) > MOST_ALIKE:
        raise ReleaseError(f"model: what its strata have in common is more than {MOST_ALIKE:,} characters.")
    whole = [
        {key: [items[number] for number in value] if key in names else value for key, value in one.items()}
        for one in known
    ]
    return [{} if number is None else whole[number] for number in numbers]


def _lists(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What parts may have in common; parts of a part are looked through where models are read, and stay with it."""
    return {key: value for key, value in facts.items() if isinstance(value, list) and key != "parts"}


def _itemised(structures: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Structures, with what is a list of lists in all of them as numbers of the distinct inner lists."""
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
