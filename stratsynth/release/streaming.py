"""Samples larger than memory, written a piece at a time, into one Parquet file or into a folder of them.

A folder is resumed where it was left: each file in it is whole or absent, and `_sample.json` identifies the
sample. Equal seeds give equal rows, with and without an interruption.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stratsynth.digest import digest
from stratsynth.errors import StratsynthError, UsageError
from stratsynth.files.atomic import new_file, read_json, write_json
from stratsynth.models.rules import Moved
from stratsynth.progress import steps
from stratsynth.release.release import Release
from stratsynth.release.sampling import PIECE, Drawing, SampleRequest

NOTE = "_sample.json"
"""File that describes a folder's sample; readers of folders skip names with an underscore."""
FORMAT = "stratsynth-sample/1"


def is_folder(out: Path) -> bool:
    """True if the path `out` is for a folder of parts: its name has no ending, or a folder is there."""
    return out.suffix == "" or out.is_dir()


def write_file(release: Release, wanted: SampleRequest, seed: int | None, out: Path, moved: Moved) -> int:
    """Write the sample `wanted`, a `SampleRequest`, of a release to the Parquet file `out`; return its number of rows.

    Rows are drawn piece by piece, by `seed`; numbers of rows that rules change are added to `moved`.
    """
    import pyarrow.parquet as pq

    _check_parent(out)
    drawing = Drawing.of(release.table_model, release.statement, wanted, seed, release.inside)
    with new_file(out) as file, steps("sampling", drawing.pieces, None) as done:
        writer = None
        for number in range(drawing.pieces):
            table = drawing.piece(number, moved)
            writer = writer or pq.ParquetWriter(file, table.schema)
            writer.write_table(table)
            done(None)
        if writer is not None:
            writer.close()
    return drawing.rows


def write_folder(release: Release, wanted: SampleRequest, seed: int | None, out: Path) -> int:
    """Write the sample `wanted` of a release to Parquet files in the folder `out`, or resume it; return its row count.

    `wanted` is a `SampleRequest`; `seed` is that of the sample, None for the one begun there, or a random one.

    Raises:
        UsageError: A folder with other content, or with another sample, or one that is complete.
        StratsynthError: The disk is full; the files written stay, and the same command resumes.
    """
    import pyarrow.parquet as pq

    known = _begun(out)
    chosen = known.get("seed") if seed is None else seed
    drawing = Drawing.of(release.table_model, release.statement, wanted, chosen, release.inside)
    rows = [[{column: sorted(codes) for column, codes in where.items()}, number] for where, number in drawing.parts]
    request = digest(dict(release.certificate), rows, drawing.seed, PIECE)
    if known.get("request", request) != request:
        raise UsageError(f"{out} holds a part of another sample; go on with that one, or name another folder with -o.")
    note = {"format": FORMAT, "request": request, "seed": drawing.seed, "rows": drawing.rows, "pieces": drawing.pieces}
    try:
        out.mkdir(exist_ok=True)
        if not known:
            write_json(out / NOTE, {**note, "complete": False})
        with steps("sampling", drawing.pieces, None) as done:
            for number in range(drawing.pieces):
                path = out / f"part-{number:05}.parquet"
                if not path.exists():
                    with new_file(path) as file:
                        pq.write_table(drawing.piece(number, Moved()), file)
                done(None)
        write_json(out / NOTE, {**note, "complete": True})
    except OSError as error:
        raise StratsynthError(
            f"{out} cannot be written ({error.strerror or type(error).__name__}). The files in it are whole; the same "
            "command goes on from there."
        ) from None
    return drawing.rows


def _check_parent(out: Path) -> None:
    """Raise UsageError if the folder in which the path `out` lies does not exist."""
    if not out.absolute().parent.is_dir():
        raise UsageError(f"{out}: there is no folder {out.parent}")


def _begun(out: Path) -> Mapping[str, Any]:
    """Return a dict, the description of a sample begun in the folder `out`; {} if that is empty or not there.

    UsageError for a folder of anything else, or of a complete sample.
    """
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        _check_parent(out)
        return {}
    try:
        known = read_json(out / NOTE)
    except (OSError, ValueError, UsageError):
        known = None
    if not isinstance(known, dict) or known.get("format") != FORMAT or type(known.get("seed")) is not int:
        raise UsageError(f"{out} exists already and is no sample that was begun; name another folder with -o.")
    if known.get("complete"):
        raise UsageError(f"{out} exists already, and is complete; name another folder with -o.")
    return known
