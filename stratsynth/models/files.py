"""Models on disk: one file of facts and arrays, and the schema beside it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, cast

from stratsynth.errors import ReleaseError, UsageError
from stratsynth.files import npz
from stratsynth.files.outside import parse_json
from stratsynth.models.base import Model, State
from stratsynth.models.calibrated import Calibrated
from stratsynth.models.mixture import Mixture
from stratsynth.schema import Schema
from stratsynth.schema.inside import Inside, from_arrays, to_arrays
from stratsynth.strata import Stratum

FORMAT = "stratsynth-model/1"
LAWS, LAWS_FORMAT = "inside.npz", "stratsynth-inside/1"
"""File beside a model with the laws of numbers within bins, where there are any, and its format."""
MANY = 10_000
"""Number of arrays of one type from which they are written as one."""


@cache
def installed() -> dict[str, EntryPoint]:
    """Return the entry points of registered kinds of models, by name; none is imported."""
    return {point.name: point for point in entry_points(group="stratsynth.models")}


def restore(kind: str, schema: Schema, state: State) -> Model:
    """Return the model, in a schema, of a registered kind with this state.

    ReleaseError for a damaged state or an unknown kind.
    """
    if kind not in installed():
        raise ReleaseError(f"model: no installed package provides the kind {kind!r}.")
    try:
        return cast("Model", installed()[kind].load().from_state(schema, state))
    except ReleaseError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, UsageError) as error:
        raise ReleaseError(f"model: the stored {kind} is damaged ({type(error).__name__}).") from None


def save(model: Model, folder: Path) -> None:
    """Write a model's `model.npz` and `schema.toml` into a new folder; OSError if the folder exists."""
    folder.mkdir()
    state = model.state()
    facts = {"format": FORMAT, "kind": model.kind, "facts": state.facts}
    npz.write(folder / "model.npz", State(facts, state.arrays), joined=len(state.arrays) > MANY)
    model.schema.write_toml(folder / "schema.toml")


def save_laws(laws: Mapping[str, Inside], folder: Path) -> None:
    """Write `laws`, a mapping from column to `Inside`, into a model's folder; no file if there are none."""
    if laws:
        facts, arrays = to_arrays(laws)
        npz.write(folder / LAWS, State({"format": LAWS_FORMAT, **facts}, arrays))


def load_laws(folder: Path, schema: Schema) -> dict[str, Inside]:
    """Return a dict from column of a schema to `Inside`, stored in a model's `folder`; {} for no file.

    ReleaseError for a damaged one.
    """
    if not os.path.lexists(folder / LAWS):
        return {}
    stored = npz.read(folder / LAWS, parse_json)
    if not isinstance(stored.facts, dict) or stored.facts.get("format") != LAWS_FORMAT:
        raise ReleaseError(f"model: {folder / LAWS} does not hold the format {LAWS_FORMAT}.")
    return from_arrays(stored.facts, stored.arrays, schema.columns)


def made_of_prior(folder: Path) -> bool:
    """True if a stored model, or a stratum's model inside it, is made of a prior's rows.

    Raises:
        ReleaseError: A folder without a stored model.
    """
    left, kinds = [_stored(folder).facts], set[str]()
    while left:
        one = left.pop()
        if isinstance(one, dict):
            kinds.add(str(one.get("kind")))
            parts = one.get("parts")
            left += [one.get("facts"), *(parts if isinstance(parts, list) else ())]
    return any(installed()[kind].load().of_prior for kind in kinds if kind in installed())


def mixed_by(folder: Path) -> tuple[str, ...] | None:
    """Return a tuple of names of columns by which a stored mixture in `folder` splits groups; None for other models.

    Raises:
        ReleaseError: A folder without a stored model, or a damaged mixture.
    """
    stored = _before_controls(folder)
    if stored["kind"] != Mixture.kind:
        return None
    try:
        (columns,) = {tuple(part["stratum"]) for part in stored["facts"]["parts"]}
    except (LookupError, TypeError, ValueError):
        raise ReleaseError(f"model: {folder} holds a damaged mixture.") from None
    return columns


def mixed_shares(folder: Path) -> dict[Stratum, float] | None:
    """Return {stratum: weight} of the mixture stored in `folder`; None for another kind of model.

    Raises:
        ReleaseError: A folder without a stored model, or a damaged mixture.
    """
    stored = _before_controls(folder)
    if stored["kind"] != Mixture.kind:
        return None
    try:
        return {Stratum.from_dict(part["stratum"]): float(part["weight"]) for part in stored["facts"]["parts"]}
    except (LookupError, TypeError, ValueError):
        raise ReleaseError(f"model: {folder} holds a damaged mixture.") from None


def _before_controls(folder: Path) -> Any:
    """Return a dict with "kind" and "facts" of the model stored in `folder`; of the one before, if calibrated."""
    stored = _stored(folder).facts
    inner = stored.get("facts")
    return inner if stored["kind"] == Calibrated.kind and isinstance(inner, dict) and "kind" in inner else stored


def _stored(folder: Path) -> State:
    """Return the `State` in a folder's model.npz; ReleaseError if its format is not `FORMAT`."""
    stored = npz.read(folder / "model.npz", parse_json)
    facts = stored.facts
    if not isinstance(facts, dict) or facts.get("format") != FORMAT or not isinstance(facts.get("kind"), str):
        raise ReleaseError(f"model: {folder} does not hold the format {FORMAT}.")
    return stored


def load(folder: Path) -> Model:
    """Return the model stored in a folder; ReleaseError if it is missing or damaged."""
    stored = _stored(folder)
    facts = stored.facts
    try:
        schema = Schema.from_toml(folder / "schema.toml")
    except UsageError as error:
        raise ReleaseError(f"model: {error}") from None
    return restore(facts["kind"], schema, State(facts.get("facts"), stored.arrays))
