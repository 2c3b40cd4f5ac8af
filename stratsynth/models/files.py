"""Models on disk: one file of facts and arrays, and the schema beside it."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import cast

from stratsynth.errors import ReleaseError, UsageError
from stratsynth.files import npz
from stratsynth.models.base import Model, State
from stratsynth.schema import Schema

FORMAT = "stratsynth-model/1"


@cache
def installed() -> dict[str, EntryPoint]:
    """The registered kinds of models by name, not yet imported."""
    return {point.name: point for point in entry_points(group="stratsynth.models")}


def restore(kind: str, schema: Schema, state: State) -> Model:
    """The model of a registered kind that has this state."""
    if kind not in installed():
        raise ReleaseError(f"model: no installed package provides the kind {kind!r}.")
    try:
        return cast("Model", installed()[kind].load().from_state(schema, state))
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, UsageError) as error:
        raise ReleaseError(f"model: the stored {kind} is damaged ({type(error).__name__}).") from None


def save(model: Model, folder: Path) -> None:
    """Write `model.npz` and `schema.toml` into a new folder."""
    folder.mkdir()
    state = model.state()
    facts = {"format": FORMAT, "kind": model.kind, "facts": state.facts}
    npz.write(folder / "model.npz", State(facts, state.arrays))
    model.schema.write_toml(folder / "schema.toml")


def load(folder: Path) -> Model:
    """Read a model back; anything but a sound one is a ReleaseError."""
    stored = npz.read(folder / "model.npz", outside=True)
    facts = stored.facts
    if not isinstance(facts, dict) or facts.get("format") != FORMAT or not isinstance(facts.get("kind"), str):
        raise ReleaseError(f"model: {folder} does not hold the format {FORMAT}.")
    try:
        schema = Schema.from_toml(folder / "schema.toml")
    except UsageError as error:
        raise ReleaseError(f"model: {error}") from None
    return restore(facts["kind"], schema, State(facts.get("facts"), stored.arrays))
