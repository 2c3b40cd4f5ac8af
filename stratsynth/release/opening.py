"""Answers from a release folder without its model: a question that tables answer is answered at once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from stratsynth.answers.linked import answers_of
from stratsynth.errors import ReleaseError, UsageError
from stratsynth.models.files import LAWS, load_laws
from stratsynth.release.certificate import read_certificate
from stratsynth.release.hashes import CERTIFICATE, check_files, schema_of
from stratsynth.release.measurements import FILE, read_measurements
from stratsynth.schema import Schema

if TYPE_CHECKING:
    from stratsynth.answers import Answers
    from stratsynth.models import Model
    from stratsynth.schema.inside import Inside


def open_answers(folder: Path) -> Answers:
    """Return `Answers` for queries about the release saved in `folder`; measurements and model are read when needed.

    Raises:
        ReleaseError: A folder that is no release, or files that differ from the list in its certificate.
    """
    certificate = read_certificate(folder).statement
    check_files(folder, certificate, ("model/schema.toml", FILE))
    try:
        schema = Schema.from_toml(folder / "model" / "schema.toml")
    except UsageError as error:
        raise ReleaseError(f"model: {error}") from None
    if schema.sha256 != schema_of(certificate):
        raise ReleaseError(
            f"{folder}: model/schema.toml is not the schema that {CERTIFICATE} states: one of them was exchanged. "
            "Get the release again from whoever made it."
        )

    def model() -> Model:
        from stratsynth.release.release import Release

        return Release.load(folder).model

    def laws() -> dict[str, Inside]:
        stored = f"model/{LAWS}"
        if stored in (certificate.files or ()) or os.path.lexists(folder / stored):
            check_files(folder, certificate, (stored,))
        return load_laws(folder / "model", schema)

    return answers_of(schema, certificate, lambda: read_measurements(folder), model, laws)
