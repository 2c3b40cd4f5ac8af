"""INTERNAL. Rows of a release that look like real people: a reason to look, and no measure of privacy.

A good release matches many people in common values, and a leak need not show as a match. Only the guarantee on the
certificate protects people. With a hold-out, compare the figures of people in the data with those of people who were
not: only the excess of the first can come from their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.evaluation.tables import FEW, Array, By, EncodedRows, Pair, chosen, share, statuses, tidy
from stratsynth.models.intervals import wilson
from stratsynth.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

WARNING = "matches are a reason to look, not a measure of privacy: what protects people is the certificate's guarantee"
KNOWN = ("AGEP", "SEX", "RAC1P", "HISP", "MAR", "MSP", "AREA", "PUMA", "HOUSING_TYPE")
"""Default quasi-identifiers: columns of a census that neighbours know of each other."""


def matches(
    real: Any,
    synthetic: Any,
    schema: Schema | str | Path,
    by: By = None,
    *,
    quasi: Sequence[str] | None = None,
    few: int = FEW,
) -> pd.DataFrame:
    """Count real people that a release seems to show, by NIST's two measures; return a frame.

    - "unique_exact_match": of the real rows that nobody else equals in all columns (`base`), the share that some
      synthetic row equals. Numbers are compared by their bins.
    - "apparent_match": of the real rows that nobody else equals in the quasi-identifiers, the share that exactly one
      synthetic row equals in them. `similarity` is the mean share of the other columns in which the two agree.

    Args:
        real: The private table, or people who were not in it, to compare with.
        synthetic: The release.
        schema: The schema of both, or its path.
        by: Columns whose crossing makes the groups; people are unique among all, not within their group.
        quasi: The quasi-identifiers; by default those of `KNOWN` that exist, and `by`.
        few: A share of fewer people is `small`.

    Returns:
        For each measure a row for each declared group and one for everybody: `value`, the share, `base`, the people
        it is a share of, and `matches`. `attrs` has a `warning` and the quasi-identifiers, `quasi`.

    Raises:
        UsageError: A table cannot be read, or a column is not in the schema.
    """
    pair = Pair.of(real, synthetic, schema, by, few)
    return match_frame(pair, quasi)


def match_frame(pair: Pair, quasi: Sequence[str] | None = None) -> pd.DataFrame:
    """Frame of `matches` for a pair of tables and quasi-identifiers (None: the known ones); `attrs` has a warning."""
    names = pair.schema.names
    if quasi is None:
        quasi = [name for name in names if name in KNOWN or name in pair.by]
    quasi = chosen(pair.schema, quasi)  # without quasi-identifiers all rows are equal, and none is unique
    exact, once, _ = _met(pair, names, only_one=False)
    apparent, once_quasi, partner = _met(pair, quasi, only_one=True)
    people, met = (
        np.array([pair.totals(0, rows) for rows in both]).astype(int)
        for both in ((once, once_quasi), (exact, apparent))
    )
    value = np.where(pair.counts[1] > 0, share(met, people), np.nan)  # an empty release shows nobody, and is no release
    low, high = wilson(met, people)
    alike = _similarity(pair, apparent, partner, [name for name in names if name not in quasi])
    rows = [np.broadcast_to(n, value.shape) for n in pair.counts]
    frame = tidy(
        pair.by,
        pair.groups,
        value,
        low,
        high,
        counts={"n": rows[0], "n_synthetic": rows[1]},
        status=statuses(value, people, pair.few),
        items={"measure": ["unique_exact_match", "apparent_match"]},
        more={
            "base": people,
            "matches": met,
            "similarity": np.stack([np.where(met[0] > 0, 1.0, np.nan), alike]),
        },
    )
    frame.attrs |= {"warning": WARNING, "quasi": list(quasi)}
    return frame


def _met(pair: Pair, names: Sequence[str], *, only_one: bool) -> tuple[Array, Array, Array]:
    """Three arrays over a pair's real rows: if unique and matched, if unique, and the index of an equal synthetic row.

    Unique: no other real row equals it in the columns `names`. Matched: some synthetic row does, or with `only_one`
    exactly one. The index is 0 where no synthetic row is equal.
    """
    keys = row_keys(pair.tables, names)
    count = max((int(key.max(initial=-1)) for key in keys), default=-1) + 1
    real, synthetic = (np.bincount(key, minlength=count) for key in keys)
    alone = real[keys[0]] == 1
    there = synthetic[keys[0]] == 1 if only_one else synthetic[keys[0]] > 0
    place = np.zeros(count, np.int64)
    place[keys[1]] = np.arange(len(keys[1]))
    return alone & there, alone, place[keys[0]]


def row_keys(tables: Sequence[EncodedRows], names: Sequence[str]) -> list[Array]:
    """List of arrays, one for each of `tables`, which are `EncodedRows`: each row's number.

    Rows of all tables equal in the columns `names` have one number.
    """
    ends = np.cumsum([table.rows for table in tables])[:-1]
    keys, size = np.zeros(sum(table.rows for table in tables), np.int64), 1
    for name in names:
        levels = tables[0].schema.size(name)
        if size * levels >= 1 << 62:
            _, keys = np.unique(keys, return_inverse=True)
            size = len(keys) + 1
        keys = keys * levels + np.concatenate([table.codes[name] for table in tables])
        size *= levels
    _, keys = np.unique(keys, return_inverse=True)
    return list(np.split(keys, ends))


def _similarity(pair: Pair, met: Array, partner: Array, names: Sequence[str]) -> Array:
    """Array by a pair's groups, then everybody: mean share of the columns `names` in which partners agree.

    `met` is a mask of the real rows that match, `partner` an array of the number of a synthetic row for each real one.
    """
    alike = np.zeros(len(met))
    for name in names:
        alike[met] += pair.real.codes[name][met] == pair.synthetic.codes[name][partner[met]]
    return share(pair.totals(0, alike), pair.totals(0, met) * max(len(names), 1))
