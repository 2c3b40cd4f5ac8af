"""INTERNAL. Households by what they are made of: shares that readers of a census look at, and rules that are broken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.evaluation.linked.rows import LinkedCodes, LinkedColumns
from stratsynth.evaluation.tables.encoded import Array
from stratsynth.models.rules import broken
from stratsynth.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

NEAR, GENERATION, ADULT, OLD = 5, 18, 18, 65
"""Years: of couples near each other in age, between generations, of adults, of the old."""


@dataclass(frozen=True, kw_only=True)
class Household:
    """Columns that tell what a household is."""

    age: str = "AGEP"
    """Age of a person, in years."""
    kind: str = "HHT"
    """Type of household, a column of the parent."""
    married: tuple[str, ...] = ("1",)
    """Levels of `kind` of married couples, whose second person is the husband or wife."""


def household_shares(
    real: tuple[Any, Any],
    synthetic: tuple[Any, Any],
    columns: LinkedColumns,
    household: Household | None = None,
    *,
    repetitions: int = 20,
    seed: int = 0,
) -> pd.DataFrame:
    """INTERNAL. Shares of households that are of some structure, in the real and in the released tables.

    Args:
        real: The private tables, a pair (households, persons): frames or Arrow tables.
        synthetic: The released ones, a pair alike.
        columns: Their LinkedColumns.
        household: Household, the columns that tell what a household is; by default those of the American Community
            Survey.
        repetitions: Number of bootstrap samples of households.
        seed: Seed of these.

    Returns:
        A frame with a row for each structure: `structure`, `of` (the households it is a share of), `real`,
        `synthetic`, and `chance`, the standard deviation of the real share over bootstrap samples.
    """
    import pandas as pd

    rng = np.random.default_rng(seed)
    one, other = (LinkedCodes.read(*each, columns) for each in (real, synthetic))
    n = len(one.size)
    weights = [np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(repetitions)] if n else []
    mine, theirs = (_structures(rows, household or Household()) for rows in (one, other))
    found = []
    for name, (of, there, among) in mine.items():
        chance = [_share(there, among, each) for each in weights]
        found.append(
            {
                "structure": name,
                "of": of,
                "real": _share(there, among),
                "synthetic": _share(*theirs[name][1:]),
                "chance": float(np.std(chance)) if chance else np.nan,
            }
        )
    return pd.DataFrame(found)


def _share(there: Array, among: Array, weights: Array | None = None) -> float:
    weight = among.astype(float) if weights is None else among * weights
    return float((there * weight).sum() / weight.sum()) if weight.sum() > 0 else np.nan


def _structures(rows: LinkedCodes, of: Household) -> dict[str, tuple[str, Array, Array]]:
    """Mapping from a structure's name to (the households it is a share of, in words; two masks over all households).

    The first mask tells which have the structure, the second which are households it is a share of. `rows` is one
    release's LinkedCodes, and `of` is the Household with the names of the columns.
    """
    schema, n = rows.columns.parent, len(rows.size)
    age, first = rows.numbers[of.age], rows.first
    second = np.minimum(first + 1, max(len(age) - 1, 0))
    kinds = [schema.index(of.kind, level) for level in of.married]
    couple = np.isin(rows.parent[of.kind], kinds) & (rows.size > 1)
    adults = np.bincount(rows.home[age >= ADULT], minlength=n)
    children = np.bincount(rows.home[(age < ADULT) & (rows.place > 0)], minlength=n)
    everyone = np.ones(n, dtype=bool)
    found = {
        "couples within 5 years": ("married couples", np.abs(age[first] - age[second]) <= NEAR, couple),
        "one adult with children": ("households", (children > 0) & (adults == 1), everyone),
        "65 and over, alone": ("households", (rows.size == 1) & (age[first] >= OLD), everyone),
        "three generations": ("households of 3 and more", _generations(rows, age), rows.size > 2),
    }
    if rows.columns.group is not None:
        group = rows.child[rows.columns.group]
        differs = np.bincount(rows.home[group != group[first][rows.home]], minlength=n) > 0
        found[f"all of one {rows.columns.group}"] = ("households of 2 and more", ~differs, rows.size > 1)
    if rows.columns.summed is not None and rows.totals is not None:
        total = np.bincount(rows.home, np.nan_to_num(rows.numbers[rows.columns.summed[1]]), minlength=n)
        exact = np.abs(total - rows.totals) < 1e-6 * np.maximum(np.abs(total), 1)
        found[f"{rows.columns.summed[0]} is the sum"] = ("households", exact, everyone)
    return found


def _generations(rows: LinkedCodes, age: Array) -> Array:
    """Return a mask over the households of LinkedCodes: three ages, each a generation above the one before.

    `age` is an array of the child rows' ages.
    """
    n = len(rows.size)
    youngest = np.full(n, np.inf)
    np.minimum.at(youngest, rows.home, age)
    middle = np.full(n, np.inf)
    above = age >= youngest[rows.home] + GENERATION
    np.minimum.at(middle, rows.home[above], age[above])
    oldest = np.full(n, -np.inf)
    np.maximum.at(oldest, rows.home, age)
    found: Array = oldest >= middle + GENERATION
    return found


def broken_rules(tables: tuple[Any, Any], columns: LinkedColumns) -> dict[str, int]:
    """INTERNAL. Mapping to numbers of rows that break rules: "parent", "child", and "across, SLOT" for rules on both.

    `tables` is a pair (parents, children) of frames or Arrow tables, `columns` their LinkedColumns.
    """
    rows = LinkedCodes.read(*tables, columns)
    above = {name: rows.parent[name] for name in columns.parent.names}
    found = {
        "parent": int(broken(columns.parent, above).sum()) if len(rows.size) else 0,
        "child": int(broken(columns.child, dict(rows.child)).sum()) if len(rows.home) else 0,
    }
    first = {f"R_{name}": codes[rows.first] for name, codes in rows.child.items()}
    wide = {**columns.parent.columns, **{f"R_{name}": column for name, column in columns.child.columns.items()}}
    slots = {"parent": None, "second": rows.place == 1, "others": rows.place > 1}
    for slot, rules in columns.rules.items():
        which = slots[slot]
        if which is None:
            schema, codes = Schema(wide, rules=rules), {**above, **first}
        else:
            home = rows.home[which]
            schema = Schema({**wide, **columns.child.columns}, rules=rules)
            codes = {name: each[home] for name, each in {**above, **first}.items()}
            codes |= {name: each[which] for name, each in rows.child.items()}
        found[f"across, {slot}"] = int(broken(schema, codes).sum()) if len(next(iter(codes.values()))) else 0
    return found
