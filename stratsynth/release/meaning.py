"""Form of a certificate's optional keys about the meaning of a release, checked when it is read.

Code that prints or samples may then rely on their form. Their content is post-processing and public facts, which
`stratsynth.release.declared`, `.notices` and `.few` write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from stratsynth.checks import is_number
from stratsynth.release.declared import Comparison

DECLARED, NOTICES, SMALL, LISTS = "declared_and_measured", "notices", "small_groups", "code_lists"


def malformed(record: Mapping[str, Any]) -> str | None:
    """Return the first key whose value has another form; None if all are sound or absent."""
    checks = {DECLARED: _is_comparison, NOTICES: _is_notice, SMALL: _is_group, LISTS: _is_list}
    for key, is_sound in checks.items():
        found = record.get(key, [])
        if not isinstance(found, list) or not all(isinstance(item, dict) and is_sound(item) for item in found):
            return key
    return None


def _is_comparison(item: Mapping[str, Any]) -> bool:
    figures = ("declared", "measured", "noise_sd", "z")
    return (
        item.keys() == {field.name for field in fields(Comparison)}
        and all(is_number(item[key]) or (item[key] is None and key in ("declared", "z")) for key in figures)
        and all(isinstance(item[key], str) for key in item.keys() - set(figures))
    )


def _is_list(item: Mapping[str, Any]) -> bool:
    numbers, texts = ("codes", "levels", "records", "noise"), ("column", "drawn", "source", "why")
    return (
        item.keys() == {*numbers, *texts}
        and all(is_number(item[key]) or (item[key] is None and key in ("records", "noise")) for key in numbers)
        and all(isinstance(item[key], str) or (item[key] is None and key == "source") for key in texts)
    )


def _is_notice(item: Mapping[str, Any]) -> bool:
    return item.keys() == {"kind", "text"} and all(isinstance(text, str) for text in item.values())


def _is_group(item: Mapping[str, Any]) -> bool:
    levels = item.get("levels")
    return (
        item.keys() == {"levels", "people", "fitted_in", "few"}
        and isinstance(levels, dict)
        and all(isinstance(names, list) and all(isinstance(n, str) for n in names) for names in levels.values())
        and (item["people"] is None or is_number(item["people"]))
        and isinstance(item["fitted_in"], str | None)
        and isinstance(item["few"], bool)
    )
