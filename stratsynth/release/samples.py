"""Several synthetic tables whose differences carry the noise's uncertainty: models of redrawn measurements.

Offered for mechanisms whose measured tables are known in advance and that were checked for coverage, as their class
declares (`samples_hold`), alone or in strata: `fixed` by `scripts/bench answers --only samples`; `independent` by
shares of one column, which hold where noise is small against a share, and less often where it is as large.
Where public shares conditioned one model of all records, that model is fitted again; the spread is tested against that
of other fits, and coverage was not measured. Where tables were chosen by noisy answers, other noise would have chosen
others, which tables drawn from one choice do not show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.answers.tables import Columns, measured
from stratsynth.checks import check_integer, check_seed
from stratsynth.errors import Unsupported, UsageError
from stratsynth.mechanisms.registry import with_samples, words_of
from stratsynth.models import TableModel
from stratsynth.models.mixture import Mixture
from stratsynth.release.declared import MEASURED
from stratsynth.weights.sources import source_of

if TYPE_CHECKING:
    import pandas as pd
    from numpy.random import Generator

    from stratsynth.certificate import Certificate
    from stratsynth.release.release import Release

MOST = 1_000


def samples(release: Release, m: int, n: int | None, seed: int | None) -> list[pd.DataFrame]:
    """Return a list of m pandas frames of n rows (None: declared size), each of a model fitted again, by `seed`.

    The release's model is fitted to its answers with fresh noise. Unsupported where that is not sound.
    """
    check_integer("samples: m", m, 2, MOST)
    check_seed(seed)
    name, weights = release.statement.mechanism.name, release.statement.weights.source
    sound, source = words_of(release.statement).samples, source_of(weights)
    if not sound or (source is not None and not source.samples):
        why = f"with {weights} weights" if sound else f"of {name}"
        raise Unsupported(
            f"samples: intervals from samples {why} were not found to hold; samples are for "
            f"{' and '.join(with_samples())} with other weights. Intervals of `query` hold for what was measured."
        )
    if release.statement.weights.groups == MEASURED:  # whose noise would be that of the release in every sample
        raise Unsupported(
            "samples: rows by measured sizes carry the noise of these sizes, which samples do not draw again. Ask "
            "`query`, or take the release by declared shares."
        )
    if release.statement.benchmark is not None:
        raise Unsupported(
            "samples: rows by published totals are raked from one model, which samples do not rake again. Take the "
            "release as it was before its benchmark."
        )
    number = n if n is not None else release.declared_size
    if number is None:
        raise UsageError("samples: how many rows each? Give n.")
    rng = np.random.default_rng(seed)
    seeds = [int(one) for one in rng.integers(2**62, size=m)]
    models = redrawn(release.table_model, release, m, rng)
    return [replace(release, model=model).sample(number, seed=one) for model, one in zip(models, seeds, strict=True)]


def redrawn(model: TableModel, release: Release, times: int, rng: Generator) -> Sequence[TableModel]:
    """Return a list of `times` models like `model`, fitted to a release's measurements with fresh noise by `rng`."""
    found: dict[str, list[tuple[Columns, np.ndarray[Any, Any], float]]] = {}
    for label, columns, values, sigma in measured(release.measurements):
        found.setdefault(label, []).append((columns, values, sigma))
    if not isinstance(model, Mixture):
        return _again(model, found.get("", []), times, rng)
    if not found.keys() - {""}:  # one model of everybody, taken apart: no part has tables of its own
        return _together(model, found.get("", []), times, rng)
    parts = {
        stratum: _again(part, found.get(label, []), times, rng)
        for (stratum, part), label in zip(model.parts.items(), _labels(model, release.statement), strict=True)
    }
    return [replace(model, parts={stratum: again[i] for stratum, again in parts.items()}) for i in range(times)]


def _labels(model: Mixture, certificate: Certificate) -> Iterator[str]:
    """Return an iterator of labels of a mixture's strata, as in measurements, by the certificate's names of merges.

    Unsupported for nested strata.
    """
    from stratsynth.answers.tables import label_of

    if any(len(charge.path) > 1 for charge in certificate.charges):
        raise Unsupported("samples: strata that are divided again are not supported.")
    return (label_of(stratum, certificate) for stratum in model.parts)


def _again(
    model: TableModel, tables: Sequence[tuple[Columns, np.ndarray[Any, Any], float]], times: int, rng: Generator
) -> Sequence[TableModel]:
    """Return a list of `times` models like `model`, each fitted again to `tables` with fresh noise by `rng`.

    Tables are (columns, array of counts, sigma); without any, the model itself each time.
    """
    if not tables:
        return [model] * times
    return model.redrawn(tables, _rows(tables), times, rng)


def _together(
    model: Mixture, tables: Sequence[tuple[Columns, np.ndarray[Any, Any], float]], times: int, rng: Generator
) -> Sequence[TableModel]:
    """Return a list of `times` mixtures with the shares of `model`, each of everybody's model, fitted again.

    They are fitted to `tables`, (columns, array of counts, sigma), with fresh noise by `rng`; Unsupported without
    tables or for parts of several kinds.
    """
    kinds = {type(part) for part in model.parts.values()}
    if len(kinds) != 1 or not tables:
        raise Unsupported("samples: groups of one model of everybody, which cannot be fitted again to other noise.")
    return kinds.pop().redrawn_mixed(model, tables, _rows(tables), times, rng)


def _rows(tables: Sequence[tuple[Columns, np.ndarray[Any, Any], float]]) -> float:
    """Return the estimated number of records, at least 1: the sums of `tables`, weighted by 1 / variance.

    Tables are (columns, array of counts, sigma).
    """
    worth = np.array([1 / (values.size * sigma**2) for _, values, sigma in tables])
    sums = np.array([values.sum() for _, values, _ in tables])
    return max(float(worth @ sums / worth.sum()), 1.0)
