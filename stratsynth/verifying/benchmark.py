"""Check of a certificate's benchmark: its tables are those in the model, and the synthetic rows have their totals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from stratsynth.errors import StratsynthError
from stratsynth.models import files
from stratsynth.models.calibrated import Calibrated
from stratsynth.release.benchmark import EXACT, benchmark_notices, counted_rows
from stratsynth.release.controls import control_digest
from stratsynth.report.numbers import several

if TYPE_CHECKING:
    from stratsynth.certificate import BenchmarkStated, Certificate
    from stratsynth.verifying.verdict import Notes

KINDS = (EXACT, "benchmark_missed", "controls_too_close")
"""Kinds of notices that a benchmark gives."""
SLACK = 10
"""Rows by which a control cell may differ from its share, beside a hundredth of it: whole rows are drawn."""


def check_benchmark(certificate: Certificate, folder: Path, notes: Notes) -> None:
    """Add to `notes` findings where model, rows or the certificate's own notices contradict its published totals.

    Without findings, add a check passed; nothing is added if neither model nor certificate has totals, or no model can
    be loaded from the release `folder`.
    """
    try:
        model = files.load(folder / "model")
    except (StratsynthError, OSError):
        return  # its hash says so, and loading it
    stated = certificate.benchmark
    if stated is None or not isinstance(model, Calibrated):
        if stated is not None:
            notes.findings.append("certificate.json states published totals, and the model is raked to none.")
        elif isinstance(model, Calibrated):
            notes.findings.append("The model is raked to published totals, and certificate.json names none.")
        return
    found = [*_tables(stated, model), *_words(certificate), *_rows(stated, model, folder)]
    notes.findings += [f"certificate.json: {sentence}" for sentence in found]
    if not found:
        notes.checked.append(
            f"The published totals of {several(len(stated.tables), 'table')} are those that the rows are raked to, and "
            "the synthetic rows have them."
        )
        notes.unchecked.append("that the published totals are those of the publications cited, and public")


def _tables(stated: BenchmarkStated, model: Calibrated) -> Iterator[str]:
    """Yield a sentence for each control table of a `BenchmarkStated`, a certificate's, that is not its model's."""
    if len(stated.tables) != len(model.controls) or stated.most != model.most:
        yield "Its control tables are not those that the model is raked to."
        return
    for table, control in zip(stated.tables, model.controls, strict=True):
        totals = control.totals.ravel().tolist()
        if (
            tuple(table.columns) != control.columns
            or [cell.published for cell in table.cells] != totals
            or table.sha256 != control_digest(control)
        ):
            yield f"The totals by {' x '.join(table.columns)} are not those that the model is raked to."


def _words(certificate: Certificate) -> Iterator[str]:
    """Yield a sentence if a certificate's notices and disclosures are not those that its benchmark, or none, gives."""
    stated = certificate.benchmark
    exact = stated is not None and any(table.exact for table in stated.tables)
    if exact != (EXACT in certificate.unprotected):
        yield "Exact totals of the private rows, and what is listed as unprotected, do not go together."
    own = [(each.kind, each.text) for each in certificate.notices if each.kind in KINDS]
    if own != [(each["kind"], each["text"]) for each in benchmark_notices(certificate)]:
        yield "Its notices on published totals are not those that its own tables give."
    kinds = [each.kind for each in certificate.notices if each.kind != "public_columns"]
    if exact and kinds[:1] != [EXACT]:
        yield "It does not say first that exact totals are not protected."


def _rows(stated: BenchmarkStated, model: Calibrated, folder: Path) -> Iterator[str]:
    """Yield a sentence for each control table of a `BenchmarkStated` that the rows in a folder do not fit.

    Cells have to have its numbers of synthetic rows, and the totals that the model was raked to.
    """
    import pyarrow.parquet as pq

    path = folder / "synthetic.parquet"
    if not path.is_file():
        return  # its absence is a finding of its own
    rows = pq.read_table(path)
    if stated.rows != rows.num_rows:
        yield f"It counts {stated.rows} synthetic rows; there are {rows.num_rows:,}."
        return
    for table, counts, shares in zip(
        stated.tables, counted_rows(rows, model.schema, model), model.reached, strict=True
    ):
        name = " x ".join(table.columns)
        if [cell.rows for cell in table.cells] != counts:
            yield f"The synthetic rows by {name} are others than it counts."
        elif any(
            abs(count - rows.num_rows * share) > SLACK + 0.01 * rows.num_rows * share
            for count, share in zip(counts, shares.tolist(), strict=True)
        ):
            yield f"The synthetic rows by {name} do not have the totals that they were raked to."
