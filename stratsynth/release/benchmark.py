"""Benchmark of a release: its rows raked to published totals. Post-processing of paid answers; nothing is charged.

Totals of other publications about the population are public. Exact totals of the private rows are not: a fit that
declares them lists them as unprotected before anything is read, and a release that is there already takes none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.answers.ask import answers
from stratsynth.answers.query import Query
from stratsynth.errors import UsageError
from stratsynth.models.base import Returns
from stratsynth.models.calibrated import Calibrated, pool_of
from stratsynth.models.controls import CONVERGED, kinds_of, raked, summed
from stratsynth.models.rules import Moved
from stratsynth.release import limits
from stratsynth.release.controls import Benchmark, ReadTable
from stratsynth.release.declared import NORMAL_95, TOO_CLOSE, Comparison
from stratsynth.release.grouping import FIRST, renewed
from stratsynth.release.notices import NAMED
from stratsynth.release.shown import CertificateRecord

if TYPE_CHECKING:
    import pyarrow as pa

    from stratsynth.certificate import Certificate, ControlTableStated
    from stratsynth.models.base import Codes
    from stratsynth.models.controls import Floats, Places, RakedFactors
    from stratsynth.release.release import Release
    from stratsynth.schema import Schema

POOL = 2**18
"""Rows of the fitted model that are raked."""
EACH = 100
"""Rows of each control cell that are raked at least, where the model has such rows."""
FAR = 0.05
"""Part of everybody by which a cell may miss its total; controls that are missed by more are refused."""
LEAST_CELLS = 2
"""Smallest number of cells of which a fit that is too close can be told."""
LEVEL = 0.95
"""Level of the intervals of measured numbers."""
EXACT = "exact_totals"
"""Name of exact totals of the private rows among a certificate's `unprotected`, and kind of their notice."""


def benchmarked(release: Release, benchmark: Benchmark, *, declared: bool = False) -> Release:
    """Return a copy of a release whose rows are raked to the totals of control tables; its certificate says so.

    Args:
        release: A release that draws rows.
        benchmark: The control tables, and the largest ratio.
        declared: True in a fit, which has listed exact totals as unprotected before it read anything.

    Raises:
        UsageError: A release without rows or raked before; exact totals that are not `declared`; tables that cannot be
            read, that contradict each other, or that the model is too far from.
    """
    model = release.model
    if model.returns != Returns.ROWS:
        raise UsageError("benchmark: totals are those of rows, and this release draws none.")
    if isinstance(model, Calibrated):
        raise UsageError("benchmark: this release was raked before; take the one that it was made of.")
    found, most = benchmark.read(model.schema), benchmark.trim
    if benchmark.exact and not declared:
        raise UsageError(
            "benchmark: exact totals of the private rows are not protected, which a guarantee has to say before it is "
            "given: declare them in the fit, [benchmark] in its recipe. To a release that is there only published "
            "totals are raked."
        )
    controls, targets = [read.control for read in found], [read.control.shares for read in found]
    wanted = [np.where(share > 0, np.minimum(POOL * share, EACH), 0.0) for share in targets]
    pool = pool_of(model.table_model(), controls, wanted, POOL, np.random.default_rng(0), Moved())
    kinds, places = kinds_of(pool.places, [len(share) for share in targets])
    start = summed(kinds, pool.shares, len(places[0]))
    fitted = raked(start, places, targets, most)
    _refuse_far(found, fitted, start, places, most)
    shares = start * fitted.ratios / (start @ fitted.ratios)
    reached = tuple(summed(p, shares, len(share)) for p, share in zip(places, targets, strict=True))
    raked_model = Calibrated(model.schema, model.table_model(), tuple(controls), fitted.factors, reached, most)
    people, measured = _measured(release, found)
    section = {
        "tables": [_table(read, figures) for read, figures in zip(found, measured, strict=True)],
        **({} if people is None else {"people": people}),
        "level": LEVEL,
        "most": most,
        **_effort(start, fitted, most),
    }
    return replace(release, model=raked_model, certificate=_restated(release, section))


def not_benchmarked(release: Release, why: str) -> Release:
    """Return a copy of the release with one more notice in its certificate: `why`, the reason not to rake its rows."""
    record = release.certificate
    text = f"NOT BENCHMARKED: rows follow the fitted model, not published totals. {why}"
    said = [*record.get("notices", ()), {"kind": "not_benchmarked", "text": text}]
    return replace(release, certificate=CertificateRecord({**record, "notices": said}))


def _refuse_far(
    found: Sequence[ReadTable], fitted: RakedFactors, start: Floats, places: Sequence[Places], most: float
) -> None:
    """Raise UsageError if the `RakedFactors` miss a cell of one of the `ReadTable`s `found` by over FAR of everybody.

    `start` is an array of the shares of kinds of row before raking; `places` has an array for each table, the cell of
    each kind; `most` is the largest ratio.
    """
    table = int(np.argmax(fitted.missed))
    if fitted.missed[table] <= FAR:
        return
    read = found[table]
    have = summed(places[table], start * fitted.ratios, read.control.totals.size)
    cell = int(np.argmax(np.abs(have - read.control.shares)))
    before = summed(places[table], start, len(have))[cell]
    raise UsageError(
        f"benchmark: {read.table.name} cannot be reached from this release with ratios of at most {most:g}: "
        f"{read.called(cell)} has {read.control.shares[cell]:.3%} of everybody there, and {have[cell]:.3%} of the "
        f"rows at best ({before:.3%} before). Are these the same people? Where noise lost a small cell, join it to "
        "others, or raise `trim`."
    )


def _effort(start: Floats, fitted: RakedFactors, most: float) -> dict[str, Any]:
    """Return a dict for the certificate on raking `start`, an array of shares of kinds of row, by `RakedFactors`.

    Keys: `largest` ratio, Kish's `efficiency`, number `trimmed` and `trimmed_share` of kinds at the ratio `most`,
    largest share `missed`.
    """
    mean = float(start @ fitted.ratios)
    trimmed = fitted.ratios >= most * (1 - 1e-9)
    missed = float(fitted.missed.max())
    return {
        "largest": float(fitted.ratios[start > 0].max()),
        "efficiency": mean**2 / float(start @ fitted.ratios**2),
        "trimmed": int(trimmed.sum()),
        "trimmed_share": float((start * fitted.ratios)[trimmed].sum()) / mean,
        "missed": missed if missed > CONVERGED else 0.0,
    }


def _table(read: ReadTable, measured: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Return a dict, the certificate's entry of the control table `read`: citation, columns, year, hashes, cells.

    `measured` is a list with a dict for each cell, its noisy figures (`measured`, `low`, `high`, or none), which stand
    beside levels and the published total.
    """
    table, published = read.table, read.control.totals.ravel().tolist()
    return {
        "citation": table.citation,
        "columns": list(read.control.columns),
        **({} if table.year is None else {"year": table.year}),
        "sha256": read.sha256,
        **({} if read.file is None else {"file": read.file}),
        **({"exact": True} if table.exact else {}),
        "cells": [
            {"levels": read.levels(cell), "published": total, **figures}
            for cell, (total, figures) in enumerate(zip(published, measured, strict=True))
        ],
    }


def _measured(release: Release, found: Sequence[ReadTable]) -> tuple[float | None, list[list[dict[str, float]]]]:
    """Return (noisy number of everybody or None, list for each of the `ReadTable`s `found` of a dict for each cell).

    A dict has `measured`, `low` and `high`, by the release's measurements; {} where nothing counts the cell.
    """
    schema = release.model.schema
    queries = [Query(level=LEVEL)]
    for read in found:
        for cell in range(read.control.totals.size):
            where = {name: [schema.levels(name)[i] for i in sorted(c)] for name, c in read.control.where(cell).items()}
            queries.append(Query(where=where, level=LEVEL))
    try:
        answered = answers(release.answers.squares, queries)
    except UsageError:  # a release without noisy tables
        return None, [[{} for _ in range(read.control.totals.size)] for read in found]
    figures = [(float(a.estimate[0]), float(a.noise_low[0]), float(a.noise_high[0])) for a in answered]
    each = [
        {"measured": value, "low": low, "high": high} if all(map(math.isfinite, (value, low, high))) else {}
        for value, low, high in figures
    ]
    everybody, cells = each[0].get("measured"), iter(each[1:])
    return everybody, [[next(cells) for _ in range(read.control.totals.size)] for read in found]


def _restated(release: Release, section: Mapping[str, Any]) -> CertificateRecord:
    """Return a release's `CertificateRecord` with the mapping `section` as its `benchmark`, and notices to match."""
    before = release.certificate
    compared = [{k: v for k, v in one.items() if k != "rows"} for one in before.get("declared_and_measured", ())]
    more = {"declared_and_measured": compared} if compared else {}
    record = CertificateRecord({**before, **more, "benchmark": dict(section)})
    kept = renewed(record.statement, Comparison.stated_in(record.statement))
    own = list(benchmark_notices(record.statement))
    place = sum(each["kind"] in FIRST for each in kept)
    first = [each for each in own if each["kind"] in FIRST]
    said = [*kept[:place], *first, *kept[place:], *(each for each in own if each not in first)]
    record = CertificateRecord(
        {**record, "notices": said} if said else {k: v for k, v in record.items() if k != "notices"}
    )
    return CertificateRecord({**record, limits.KEY: limits.sentences(record.statement)})


def benchmark_notices(certificate: Certificate) -> Iterator[dict[str, str]]:
    """Yield a dict (kind, text) for each notice on a certificate's benchmark: exact, missed, suspicious totals."""
    stated = certificate.benchmark
    if stated is None:
        return
    exact = [table for table in stated.tables if table.exact]
    if exact:
        cited = "; ".join(dict.fromkeys(f"{' x '.join(t.columns)} ({t.citation})" for t in exact))
        yield {
            "kind": EXACT,
            "text": f"NOT PROTECTED: exact totals of the private rows, by {cited}. The rows show them as they are; "
            "epsilon and delta say nothing of them.",
        }
    if stated.missed:
        yield {
            "kind": "benchmark_missed",
            "text": f"not all published totals are reached: a cell misses its own by up to {stated.missed:.2g} of "
            f"everybody, as no row counts more than {stated.most:g} times what the fitted model gives it, and rows "
            "that it does not have count nothing. The table published, measured, synthetic shows which.",
        }
    close = [t for t in stated.tables if not t.exact and _too_close(t, stated.people or 0.0)]
    if close:
        yield {
            "kind": "controls_too_close",
            "text": f"the control totals ({'; '.join(t.citation for t in close[:NAMED])}) fit the measured numbers too "
            "well to be those of other people: totals that were counted in these very rows are not public, and this "
            "release then discloses them without noise. Declare them: exact = true.",
        }


def _too_close(table: ControlTableStated, people: float) -> bool:
    """True if a `ControlTableStated` has totals closer to its noisy counts than other people's could be.

    The test is that of `declared.too_close`. `people` is the noisy number of everybody. A published share p of N
    measured records would be missed by noise and by the sampling of the records; intervals are taken for normal ones.
    """
    cells = [c for c in table.cells if c.published > 0]
    total = math.fsum(c.published for c in cells)
    if len(cells) < LEAST_CELLS or any(c.measured is None for c in cells) or not people > 0:
        return False
    from scipy.special import gammainc

    away = 0.0
    for c in cells:
        expected = people * c.published / total
        noise = ((c.high or 0.0) - (c.low or 0.0)) / 2 / NORMAL_95
        away += ((c.measured or 0.0) - expected) ** 2 / (expected + noise**2)
    return bool(gammainc((len(cells) - 1) / 2, away / 2) < TOO_CLOSE)


def with_rows(record: Mapping[str, Any], rows: pa.Table, model: object) -> dict[str, Any]:
    """Return a dict, a certificate's `record` with each control cell's number of the synthetic `rows`, an Arrow table.

    Only a copy if it has no benchmark, or `model` is not a `Calibrated`, a model raked to it.
    """
    if not isinstance(model, Calibrated) or "benchmark" not in record:
        return dict(record)
    counts = counted_rows(rows, model.schema, model)
    tables = [
        {**table, "cells": [{**cell, "rows": n} for cell, n in zip(table["cells"], found, strict=True)]}
        for table, found in zip(record["benchmark"]["tables"], counts, strict=True)
    ]
    return {**record, "benchmark": {**record["benchmark"], "tables": tables, "rows": int(rows.num_rows)}}


def counted_rows(rows: pa.Table, schema: Schema, model: Calibrated) -> list[list[int]]:
    """Return a list for each control of a raked model, `Calibrated`: a list of the number of rows in each of its cells.

    `rows` is an Arrow table of the schema's columns; cells are in row-major order.
    """
    from stratsynth.schema.encoding import encode

    columns = [name for name in schema.names if any(name in control.columns for control in model.controls)]
    inner = schema.restrict(columns)
    codes: Codes = dict(encode(inner, rows.select(columns)).codes)
    return [np.bincount(control.places(codes), minlength=control.totals.size).tolist() for control in model.controls]
