"""The section [weights] of a recipe: a source, and the keys that belong to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stratsynth.errors import RecipeError, WeightsError, nearest
from stratsynth.inputs import check_keys
from stratsynth.weights.public import Public
from stratsynth.weights.source import ShareSource
from stratsynth.weights.sources import SHARE_SOURCES, SOURCES, Weights


@dataclass(frozen=True)
class Place:
    """A section of a recipe: its folder, and its name."""

    folder: Path
    """The recipe's folder, which paths are relative to."""
    where: str
    """The section, as messages name it."""

    def nested(self, section: object, key: str, unraked: str | None = None) -> Weights:
        """The weights under a key of this section; `unraked` refuses those that cannot be raked."""
        inside = Place(self.folder, f"{self.where} {key}")
        if not isinstance(section, Mapping):
            raise RecipeError(f"{inside.where} is made of tables, each with path and citation.")
        source = _named(section.get("source"))
        if unraked is not None and source is not None and not source.raked:
            raise WeightsError(unraked)
        return inside.read(section, Public.name)

    def read(self, section: Mapping[str, Any], default: str | None = None) -> Weights:
        """The weights that this section describes."""
        name = section.get("source", default)
        source = _named(name)
        if source is None:
            hint = nearest(str(name), SOURCES)
            raise RecipeError(
                f"{self.where} source: {name!r} is not supported; it is one of {', '.join(SOURCES)}{hint}."
            )
        keys = {key: value for key, value in section.items() if key != "source"}
        kinds = {key: known.kind for key, known in source.keys.items()}
        check_keys(keys, kinds, self.where, f" with source {source.name!r}")
        for key, known in source.keys.items():
            if known.needed and key not in section:
                raise RecipeError(f"{self.where} {key} is missing with source {source.name!r}: {known.help}.")
        return source.read(section, self)


def read_weights(section: Mapping[str, Any], folder: Path) -> Weights:
    """The weights that the section [weights] describes; paths are relative to the recipe's folder."""
    return Place(folder, "[weights]").read(section)


def _named(name: object) -> ShareSource | None:
    """The source of a name; a recipe may hold anything there, lists too."""
    return next((source for source in SHARE_SOURCES if source.name == name), None)
