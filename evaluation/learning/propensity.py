"""INTERNAL. Telling real from synthetic rows: propensity scores, and principal components for a picture."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import UsageError
from stratsynth.evaluation.learning.learners import inputs, single_threaded
from stratsynth.evaluation.scores.intervals import interval
from stratsynth.evaluation.tables import FEW, Array, By, EncodedRows, Pair, joined

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.schema import Schema

FOLDS = 5
MODELS = ("linear", "tree")


def propensity(
    real: Any,
    synthetic: Any,
    schema: Schema | str | Path,
    by: By = None,
    *,
    models: Sequence[str] = MODELS,
    most: int = 10_000,
    few: int = FEW,
    seed: int = 0,
) -> pd.DataFrame:
    """Ability of a model to tell synthetic rows from real ones: pMSE, the mean of (p - c)^2, in a frame.

    p is a row's predicted probability of being synthetic, by a model trained on other rows (five folds), and c the
    share of synthetic rows among all. It is 0 if rows cannot be told apart, and c (1 - c) if they always can. `null` is
    its value for shuffled labels, due to chance alone. `auc` is the probability that of a real and a synthetic row the
    synthetic one has the larger p: one half if they cannot be told apart.

    Args:
        real: The private table: a frame, an Arrow table or a path.
        synthetic: The release.
        schema: The schema of both, or its path.
        by: Columns whose crossing makes the groups.
        models: List with one or both of "linear", a logistic regression on each level by itself, and "tree", a
            decision tree, as NIST draws it, which sees combinations.
        most: The largest number of rows of each table, drawn at random.
        few: Groups with fewer rows in either table are `small`.
        seed: Seed for rows, folds and trees.

    Returns:
        For each model, a row for each declared group and one for everybody: pMSE in `value`, with `null` and `auc`.

    Raises:
        UsageError: There is no such model, a table cannot be read, or `by` names no column of the schema.
    """
    pair = Pair.of(real, synthetic, schema, by, few)
    return propensity_frame(pair, models, most, seed)


def propensity_frame(pair: Pair, models: Sequence[str], most: int, seed: int) -> pd.DataFrame:
    """Frame of the scores of `propensity`, by `seed`, for a pair of tables and `models`; unknown: UsageError.

    At most `most` rows of each table are used.
    """
    if unknown := set(models) - set(MODELS):
        raise UsageError(f"evaluation: there is no model {min(unknown)!r}; there are {' and '.join(MODELS)}.")
    rng = np.random.default_rng(seed)
    pair = _thinned(pair, most, rng)
    names, sizes = pair.schema.names, [table.rows for table in pair.tables]
    label = np.repeat([False, True], sizes)
    c, shuffled = float(label.mean()) if len(label) else 0.0, rng.permutation(label)
    value, error, auc, null = [], [], [], []
    for model in models:
        wide = model == "linear"
        rows = np.concatenate([inputs(table, names, wide=wide) for table in pair.tables])
        # shuffled labels have no signal: their pMSE is due to overfitting alone
        chance, by_chance = (_crossed(model, rows, labels, seed) for labels in (label, shuffled))
        mean, spread = _means(pair, (chance - c) ** 2)
        value.append(mean)
        error.append(spread)
        null.append(_means(pair, (by_chance - c) ** 2)[0])
        auc.append(_auc(pair, chance))
    found = np.array(value).reshape(len(models), -1)
    low, high = interval(found, np.array(error).reshape(found.shape))
    more = {"null": np.array(null).reshape(found.shape), "auc": np.array(auc).reshape(found.shape)}
    return pair.frame(found, low, high, items={"model": models}, more=more)


def _crossed(model: str, rows: Array, label: Array, seed: int) -> Array:
    """Array of probabilities of being synthetic, one for each of `rows`, a matrix, by models trained on other folds.

    `model` is "linear" or "tree"; `label` is a mask of the synthetic rows, `seed` splits. NaN for all if one of the two
    tables has fewer than `FOLDS` rows.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold
    from sklearn.tree import DecisionTreeClassifier

    chance = np.full(len(label), np.nan)
    if min(label.sum(), (~label).sum()) < FOLDS:
        return chance
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(rows, label):
        made = (
            LogisticRegression(solver="newton-cholesky")
            if model == "linear"
            else DecisionTreeClassifier(min_samples_leaf=50, random_state=seed)
        )
        with single_threaded():
            chance[test] = made.fit(rows[train], label[train]).predict_proba(rows[test])[:, 1]
    return chance


def _means(pair: Pair, values: Array) -> tuple[Array, Array]:
    """Two arrays by a Pair's group, then everybody: mean of `values`, and its standard error.

    `values` is an array of one a real row, then one a synthetic row; all rows of a group count alike. The mean is NaN
    if a group has no row in one of the tables.
    """
    group, count = np.concatenate(pair.members), len(pair.groups)
    sums = [np.append(np.bincount(group, v, count), v.sum()) for v in (np.ones(len(group)), values, values**2)]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums[1] / sums[0]
        error = np.sqrt(np.maximum(sums[2] / sums[0] - mean**2, 0) / np.where(sums[0] > 1, sums[0] - 1, np.nan))
    scoped = [pair.spread(figures[:-1], figures[-1]) for figures in (mean, error)]
    known = pair.counts.min(axis=0) > 0
    return np.where(known, scoped[0], np.nan), scoped[1]


def _auc(pair: Pair, chance: Array) -> Array:
    """Array by a pair's group, then everybody: area under the ROC curve of `chance`.

    That is an array of one number for each real row, then for each synthetic row.
    """
    from scipy.stats import rankdata

    group, synthetic = np.concatenate(pair.members), np.repeat([False, True], [t.rows for t in pair.tables])

    def one(here: Array) -> float:
        labels = synthetic[here]
        many = [int((~labels).sum()), int(labels.sum())]
        if not min(many) or np.isnan(chance[here]).any():
            return np.nan
        ranks = rankdata(chance[here])
        # Mann-Whitney U over the number of pairs; ties count half by mid-ranks
        return float((ranks[labels].sum() - many[1] * (many[1] + 1) / 2) / (many[0] * many[1]))

    groups = np.array([one(group == g) for g in range(len(pair.groups))])
    return pair.spread(groups, np.array(one(np.ones(len(group), bool))))


def _thinned(pair: Pair, most: int, rng: np.random.Generator) -> Pair:
    """Pair of tables with at most `most` rows each, drawn from a pair by `rng`; real rows in proportion to weights."""
    if pair.real.weights is not None:
        pair = Pair.of(pair.real.unweighted(), pair.synthetic, pair.schema, pair.by, pair.few)
    if max(table.rows for table in pair.tables) <= most:
        return pair
    tables = [table.take(np.sort(rng.permutation(table.rows)[:most])) for table in pair.tables]
    return Pair.of(tables[0], tables[1], pair.schema, pair.by, pair.few)


def principal_components(
    real: Any,
    synthetic: Any,
    schema: Schema | str | Path,
    by: By = None,
    *,
    components: int = 2,
    most: int = 2_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Frame of rows of both tables on the principal axes of the real rows: data for a picture.

    Columns as numbers (`EncodedRows.values`), each minus its real mean and divided by its real standard deviation;
    values that are missing or do not apply are at the mean. `attrs["explained"]` has the share of the real variance on
    each axis.

    Args:
        real: The private table: a frame, an Arrow table or a path.
        synthetic: The release.
        schema: The schema of both, or its path.
        by: Columns that are kept beside the coordinates, and take no part in them.
        components: Number of axes.
        most: Largest number of rows of each table that are returned.
        seed: Seed for the choice of rows.

    Returns:
        `table` ("real" or "synthetic"), the columns of `by`, and pc1, pc2 and so on, for at most `most` rows of
        each table. Its rows are people: more INTERNAL than anything else here.

    Raises:
        UsageError: `components` is below 1 or above the number of columns, or a table cannot be read.
    """
    import pandas as pd

    pair = _thinned(Pair.of(real, synthetic, schema, by), sys.maxsize, np.random.default_rng(seed))
    names = pair.variables(None)
    if not 1 <= components <= len(names):
        raise UsageError(f"evaluation: components must be from 1 to the {len(names)} columns.")
    values = [np.stack([table.values(name) for name in names], axis=1) for table in pair.tables]
    known = ~np.isnan(values[0])
    rows = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, values[0], 0).sum(axis=0) / rows
    scale = np.sqrt(np.where(known, (values[0] - mean) ** 2, 0).sum(axis=0) / rows)
    scale[scale == 0] = 1
    scaled = [np.nan_to_num((value - mean) / scale) for value in values]
    variance, axes = np.linalg.eigh(scaled[0].T @ scaled[0] / max(len(scaled[0]), 1))
    axes = axes[:, ::-1][:, :components]
    axes *= np.where(axes[np.abs(axes).argmax(axis=0), np.arange(components)] < 0, -1, 1)  # one sign on every machine
    rng, parts = np.random.default_rng(seed), []
    for side, name in enumerate(("real", "synthetic")):
        kept = np.sort(rng.permutation(len(scaled[side]))[:most])
        placed = scaled[side][kept] @ axes
        columns: dict[str, Any] = {"table": pd.array([name] * len(kept), "string")}
        columns |= {by: _levels(pair.tables[side], by, kept) for by in pair.by}
        parts.append(pd.DataFrame(columns | {f"pc{i + 1}": placed[:, i] for i in range(components)}))
    found = joined(parts)
    total = float(variance.sum())
    found.attrs["explained"] = [float(v / total) if total else 0.0 for v in variance[::-1][:components]]
    return found


def _levels(table: EncodedRows, name: str, rows: Array) -> Any:
    """Return a pandas array of texts: the levels of column `name` in the rows with the numbers `rows` of a table.

    The table is `EncodedRows`.
    """
    import pandas as pd

    return pd.array(np.array(table.schema.levels(name), object)[table.codes[name][rows]], "string")
