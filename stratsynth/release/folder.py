"""A release's folder: written whole or not at all, and read back with all checks that its certificate allows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.checks import path as given_path
from stratsynth.errors import ReleaseError, StratsynthError, UsageError
from stratsynth.files.atomic import new_folder, write_json, write_text
from stratsynth.models import Model, Returns, files
from stratsynth.models.rules import Moved
from stratsynth.release.certificate import read_certificate
from stratsynth.release.hashes import CERTIFICATE, check_files, listed_files, schema_of
from stratsynth.release.linked_draw import linked_draw
from stratsynth.release.measurements import FILE as MEASUREMENTS
from stratsynth.release.measurements import opened_measurements
from stratsynth.release.shown import CertificateRecord

if TYPE_CHECKING:
    from stratsynth.release.release import Release
    from stratsynth.schema.inside import Inside

REPORT = "report.html"
"""File for readers; everything in it is in the other files."""
RULES = "rules.json"
"""File with the numbers of rows that the schema's rules moved in the synthetic table beside it."""


def write(release: Release, folder: str | os.PathLike[str], rows: int | None, seed: int | None, *, csv: bool) -> Path:
    """Write a release's `folder`: certificate, model, measurements, page, `rows` synthetic rows; return its path.

    Rows are drawn by `seed`; `rows` None is the declared number; with `csv` they are written as CSV too.
    StratsynthError where the disk cannot be written.
    """
    from stratsynth.data.writing import write_table
    from stratsynth.release.page.frame import release_page
    from stratsynth.report.html import render

    model, target, moved = release.model, check_new(folder), Moved()
    number, linked = model.rows_to_draw(rows, release.declared_size), model.returns == Returns.TABLES
    drawn = None if number is None or linked else release.sample_arrow(number, seed=seed, moved=moved)
    rules = moved.to_dict() if drawn is not None and model.schema.rules else None
    counted: dict[str, Any] = {}
    tables = linked_draw(release, number, seed, counted) if linked else model.product(drawn)
    certificate: dict[str, Any] = dict(release.certificate)
    if drawn is not None and "benchmark" in certificate:
        from stratsynth.release.benchmark import with_rows

        certificate = with_rows(certificate, drawn, model)
    certificate |= {"drawn": counted} if linked else {}
    try:
        # on the disk, too, before the ledger says that the fit is done
        with new_folder(target) as parts:
            write_table(release.measurements, parts / MEASUREMENTS)
            for name, table in tables.items():
                write_table(table, parts / f"{name}.parquet")
                if csv:
                    write_table(table, parts / f"{name}.csv")
            if rules is not None:
                write_json(parts / RULES, {"format": "stratsynth-rules/1", **rules})
            page = release_page(
                certificate,
                release.measurements,
                model.schema,
                rules,
                returns=model.returns,
                chapters=model.sections,
                laws=release.inside,
                tables=tables if linked else None,
            )
            write_text(parts / REPORT, render(page))
            files.save(model, parts / "model")
            files.save_laws(release.inside, parts / "model")
            record, own = certificate, model.schema.sha256
            if own != schema_of(release.statement):  # the model knows fewer columns than the table had
                record = {**record, "schema": {**record["schema"], "model_sha256": own}}
            # last, as it lists the hashes of all the others
            write_json(parts / CERTIFICATE, {**record, "files": listed_files(parts)})
    except OSError as error:
        raise StratsynthError(
            f"{target} cannot be written ({error.strerror or type(error).__name__}); nothing of it was kept. "
            "What was charged stays charged; with a ledger, the same fit with another folder (-o ELSEWHERE) goes on "
            "with the answers that it has, and is charged nothing."
        ) from None
    return target


def read(folder: str | os.PathLike[str]) -> tuple[Model, CertificateRecord, Path, Mapping[str, Inside]]:
    """Return (Model, CertificateRecord without `files`, path, {column: `Inside`}) of a release folder.

    ReleaseError if it is damaged.
    """
    path = given_path("the release", folder, error=ReleaseError)
    record = read_certificate(path)
    laws = f"model/{files.LAWS}"
    there = laws in (record.statement.files or ()) or os.path.lexists(path / laws)
    check_files(
        path, record.statement, ("model/model.npz", "model/schema.toml", MEASUREMENTS, *([laws] if there else []))
    )
    with opened_measurements(path):  # its footer is sound; sampling needs no more of it
        pass
    try:
        model = files.load(path / "model")
        inside = files.load_laws(path / "model", model.schema)
    except ReleaseError as error:
        raise ReleaseError(
            f"{str(error).removesuffix('.')}; it was written by stratsynth {record.statement.software.stratsynth}."
        ) from None
    if model.schema.sha256 != schema_of(record.statement):  # levels in another order would swap groups
        raise ReleaseError(
            f"{path}: model/schema.toml is not the schema that {CERTIFICATE} states: one of them was exchanged. "
            "Get the release again from whoever made it."
        )
    return model, CertificateRecord({key: value for key, value in record.items() if key != "files"}), path, inside


def check_new(folder: str | os.PathLike[str], remedy: str = "Name another folder", *, probe: bool = False) -> Path:
    """Return `folder` as a path for a new release; UsageError, with the sentence `remedy`, if it is there or fails.

    With `probe`, a folder is made there and removed, as nothing else shows whether one can be.
    """
    target = given_path("the release's folder", folder)
    try:
        os.lstat(target)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:  # a name too long, a null character, a file where a folder should be
        raise UsageError(f"{target} cannot be made ({getattr(error, 'strerror', error)}).") from None
    else:
        raise UsageError(f"{target} exists already; a release never overwrites one. {remedy}.")
    above = next(parent for parent in target.absolute().parents if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise UsageError(f"{target} cannot be made: {above} is no folder that can be written in.")
    if probe:
        try:
            Path(tempfile.mkdtemp(prefix=".stratsynth-", dir=above)).rmdir()
        except OSError as error:
            raise UsageError(f"{target} cannot be made: {above} cannot be written in ({error.strerror}).") from None
    return target
