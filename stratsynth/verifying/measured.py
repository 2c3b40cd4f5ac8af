"""Check that the columns which a certificate says were measured are those of the noisy tables in its folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from stratsynth.answers.tables import strata_paths
from stratsynth.errors import ReleaseError, UsageError
from stratsynth.release.coverage import Table, coverage
from stratsynth.release.measurements import opened_measurements
from stratsynth.release.page.measured import named_path
from stratsynth.schema import Schema
from stratsynth.strata import label
from stratsynth.version import VERSION

if TYPE_CHECKING:
    from stratsynth.certificate import Certificate
    from stratsynth.models import Model
    from stratsynth.release.consistency import Stated
    from stratsynth.verifying.verdict import Notes

KIND = "unmeasured"
"""Kind of the notice that names columns without tables."""


def check_measured(certificate: Certificate, stated: Stated, folder: Path, notes: Notes) -> None:
    """Add a finding to `notes` if a certificate's section `measured` does not follow from the folder's measurements.

    And from the charges `stated`; else a check passed.
    """
    rows = any(name.startswith("synthetic.") for name in certificate.files or ())
    if certificate.measured is None and not (rows and certificate.software.stratsynth == VERSION):
        return
    paths = [charge.path for charge in stated.spending.charges]
    by_label = {label(named_path(path, certificate)): path for path in paths}
    try:
        schema = Schema.from_toml(folder / "model" / "schema.toml")
        if certificate.strata.by and not certificate.strata.families and all(len(path) < 2 for path in paths):
            paths += strata_paths(schema, certificate, _no_model)
        tables: list[Table] = [(by_label[name], columns) for name, columns in _tables(folder)]
    except (UsageError, ReleaseError, KeyError):
        return  # damaged, or of strata that were not charged: other checks find it
    found = coverage(tables, schema.names, certificate.strata.by or certificate.weights.by, paths)
    if certificate.measured != (None if found is None else found.stated()):
        notes.findings.append(
            "certificate.json states other columns or pairs of columns as measured than measurements.parquet has."
        )
    elif found is not None:
        notices = [notice.text for notice in certificate.notices if notice.kind == KIND]
        if len(notices) != bool(found.unmeasured) or not all(
            name in text for text in notices for name in found.unmeasured[:1]
        ):
            notes.findings.append("certificate.json has no notice of the columns that no noisy table has.")
        else:
            notes.checked.append("Columns and pairs are stated as measured if measurements.parquet has them.")


def _no_model() -> Model:
    """Raise an AssertionError: strata that are not split again need no model."""
    raise AssertionError("the strata of a certificate need no model")


def _tables(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield (stratum's label, list of columns' names) for each noisy table in a release folder's measurements."""
    import pyarrow.compute as pc

    with opened_measurements(folder) as file:
        more = ["sum"] if "sum" in file.schema_arrow.names else []
        for batch in file.iter_batches(columns=["stratum", "clique", "cell", *more], use_threads=False):
            first = batch.filter(pc.equal(batch.column("cell"), 0))
            sums = first.column("sum").to_pylist() if more else [""] * first.num_rows
            texts = (first.column(name).to_pylist() for name in ("stratum", "clique"))
            yield from (
                (name, clique.split(",") if clique else [])
                for name, clique, sum_ in zip(*texts, sums, strict=True)
                if not sum_
            )
