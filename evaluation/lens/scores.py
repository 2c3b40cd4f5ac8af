"""INTERNAL. The lens on a recipe: each group's loss, by cause, with intervals over fresh fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.accounting.budget import Currency
from stratsynth.checks import check_integer
from stratsynth.errors import Unsupported, UsageError
from stratsynth.evaluation.lens import predictors, tables
from stratsynth.evaluation.lens.outside import as_written
from stratsynth.evaluation.lens.twins import fit_internal
from stratsynth.evaluation.tables import FEW, STAMP, EncodedRows, group_numbers, groups_of, joined, statuses, tidy
from stratsynth.mechanisms import describe
from stratsynth.models import Returns, TableModel
from stratsynth.recipes.recipe import Recipe
from stratsynth.release import Release

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from stratsynth.report.page import Page
    from stratsynth.schema import Schema
    from stratsynth.strata import Stratum

    Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LensScores:
    """INTERNAL. Loss of each group, and its parts."""

    schema: Schema
    by: tuple[str, ...]
    facts: Mapping[str, Any]
    """Sizes and settings; among them `stamp`, and `parts`, the names of the parts."""
    lens: pd.DataFrame
    """Losses of each group and of everybody, for tables by width of marginals: `value` with its interval `low` to
    `high`; each part with its own, as `noise`, `noise_low`, `noise_high`; `cause` is the largest part."""

    def frames(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield "lens" and its frame, the only one."""
        yield "lens", self.lens

    def page(self, name: str, certificate: Mapping[str, Any] | None) -> Page:
        """Return the Page for readers; the arguments `name` and `certificate` are not used."""
        from stratsynth.evaluation.lens.page import lens_page

        return lens_page(self)


def lens(
    recipe: Recipe | str | Path,
    by: Sequence[str] | str | None = None,
    *,
    repeats: int = 5,
    on: Any = None,
    target: str | None = None,
    seed: int = 0,
    tick: Callable[[], object] = lambda: None,
) -> LensScores:
    """INTERNAL. Fit a recipe several times without a charge; return LensScores, each group's loss split into its parts.

    The loss of a table of rows is total variation, split into the effects of the schema's limits, weights, misfit,
    noise, rules, rounding and sampling (see `stratsynth.evaluation.lens.tables`). The loss of a predictor is excessive
    risk, its loss above that of its twin without clipping and noise, split into clipping and noise.

    Args:
        recipe: A Recipe, or its path.
        by: Columns whose crossing makes the groups; by default those of the recipe's strata or of the mechanism.
        repeats: Number of fits with fresh noise, whose spread makes the intervals; at least 2.
        on: Rows that predictions are judged on; by default those of the recipe.
        target: Column that is predicted, if the recipe does not name it.
        seed: Seed of post-processing and of the rows drawn.
        tick: Called, without arguments, after each fit.

    Raises:
        Unsupported: A recipe of estimates or of third-party code.
    """
    recipe = _read(recipe)
    check_integer("lens: repeats", repeats, 2, 1000)
    if recipe.data.parent is not None:
        raise Unsupported(
            "lens: the loss of two linked tables is not split into its causes; `evaluate` has their errors."
        )
    if recipe.schema().row_weight.column is not None:
        raise Unsupported(
            "lens: rows with weights of their own are not split; `evaluate` compares with weighted totals."
        )
    kind = recipe.how().returns
    if kind not in (Returns.ROWS, Returns.PREDICTIONS):
        raise Unsupported(
            "lens: a recipe of estimates has its errors in its own report; take one of rows or predictions."
        )
    if on is not None and kind == Returns.ROWS:
        raise UsageError("lens: `on` is for predictors; a synthetic table is compared with the rows it was fitted to.")
    if target is not None and kind == Returns.ROWS:
        raise UsageError("lens: `target` is for predictors; this recipe makes synthetic rows.")
    names, groups = groups_of(recipe.schema(), by if by is not None else _usual(recipe))
    table = recipe.table()  # with its ledger, from which nothing is reserved
    real = EncodedRows.read(recipe.data.rows if on is None else on, recipe.schema())
    if not real.rows:
        raise UsageError("lens: the table has no rows that the schema lets in, so nobody loses anything.")
    if kind == Returns.ROWS:
        written = as_written(recipe.data.rows, recipe.schema())
        return _of_rows(recipe, table, (written, real), names, groups, repeats, seed, tick)
    return _of_predictions(recipe, table, real, names, groups, repeats, seed, tick, target)


def _read(recipe: Recipe | str | Path) -> Recipe:
    """Return `recipe` itself, or read from its file if it is a path; UsageError for a folder."""
    if isinstance(recipe, Recipe):
        return recipe
    if Path(recipe).is_dir():
        raise UsageError(
            f"lens: {Path(recipe).name} is a folder, and the lens fits a recipe; what a release lost is told by "
            "stratsynth evaluate --recipe."
        )
    return Recipe.read(Path(recipe))


def _usual(recipe: Recipe) -> Sequence[str] | None:
    """Tuple of the columns that a recipe makes groups of, by its strata or the setting `groups`; None without."""
    if recipe.strata is not None:
        return tuple(recipe.strata.by)
    groups = recipe.mechanism.settings.get("groups", ())
    flat = [name for one in groups for name in ([one] if isinstance(one, str) else one)]
    return tuple(dict.fromkeys(flat)) or None


def _of_rows(
    recipe: Recipe,
    table: Any,
    rows: tuple[EncodedRows, EncodedRows],
    by: tuple[str, ...],
    groups: tuple[Stratum, ...],
    repeats: int,
    seed: int,
    tick: Callable[[], object],
) -> LensScores:
    written, real = rows
    many = max(tables.DRAWN, recipe.rows)
    quiet = fit_internal(recipe.prepared, table, noise=False, seed=seed)
    tick()
    noiseless = tables.drawn(_rows_of(quiet.model), many, seed, rules=False)
    splits: dict[int, list[tables.ErrorParts]] = {1: [], 2: []}
    for repeat in range(repeats):
        fitted = fit_internal(recipe.prepared, table, noise=True, seed=seed + repeat)
        tick()
        model = _rows_of(fitted.model)
        release = tables.drawn(model, recipe.rows, seed + 2 * repeat + 1)
        chain = tables.TableChain(written, real, noiseless, *_drawn(model, many, seed + 2 * repeat), release)
        for width, found in splits.items():
            found.append(tables.split(chain, by, width))
    sigmas = tables.by_sigma(quiet, real, by, groups)
    frames = [
        _frame(
            real,
            by,
            groups,
            np.array([one.error for one in found]),
            {part: np.array([one.parts[part] for one in found]) for part in tables.PARTS},
            {"columns": width},
            {"noise_by_sigma": sigmas if width == 1 else np.full(len(sigmas), np.nan)},
        )
        for width, found in splits.items()
    ]
    facts = _facts(recipe, real, by, groups, repeats, tables.PARTS, "total variation")
    return LensScores(recipe.schema(), by, {**facts, "release_rows": recipe.rows}, joined(frames))


def lens_of_release(
    real: EncodedRows,
    made: EncodedRows,
    recipe: Recipe | str | Path,
    release: str | Path,
    by: Sequence[str],
    seed: int = 0,
) -> pd.DataFrame:
    """INTERNAL. Split one release's error into its parts, for `evaluate`: a frame from one fit without noise or charge.

    Args:
        real: EncodedRows that the release was fitted to.
        made: EncodedRows of the release.
        recipe: Its Recipe, or the path of one, which names the file of the rows that it was fitted to.
        release: Its folder, which holds its model.
        by: Columns whose crossing makes the groups.
        seed: Seed of post-processing and of the rows drawn.

    Returns:
        Frame as in `LensScores.lens`. The error is that of these very rows, so it has no interval; those of the parts
        are for the rows that represent the models.

    Raises:
        UsageError: The release draws no rows, was made by another recipe, or of other rows than those compared.
    """
    recipe = _read(recipe)
    found = Release.load(release)
    settings = describe(recipe.prepared.mechanism.fitted)
    said = found.certificate["mechanism"]
    if recipe.schema() != real.schema or (said["name"], found.certificate["guarantee"]["epsilon"]) != (
        settings["name"],
        recipe.spend.epsilon,
    ):
        raise UsageError(
            f"evaluation: {Path(release).name} was made by {said['name']} with epsilon "
            f"{found.certificate['guarantee']['epsilon']:g}, and the recipe is another one; name that of the release."
        )
    if not isinstance(found.model, TableModel):
        raise UsageError("evaluation: this release draws no rows; `stratsynth lens` takes the recipe of a predictor.")
    if not _same_rows(real, EncodedRows.read(recipe.data.rows, recipe.schema())):
        raise UsageError(
            f"evaluation: the recipe's data, {recipe.data.name}, are other rows than those compared with; what "
            "caused an error can be told of the rows that the release was fitted to."
        )
    table = recipe.table()  # with its ledger, from which nothing is reserved
    quiet = fit_internal(recipe.prepared, table, noise=False, seed=seed)
    many = max(tables.DRAWN, made.rows)
    noiseless = tables.drawn(_rows_of(quiet.model), many, seed, rules=False)
    written = as_written(recipe.data.rows, recipe.schema())
    chain = tables.TableChain(written, real, noiseless, *_drawn(found.model, many, seed + 1), made)
    names, groups = groups_of(recipe.schema(), by)
    sigmas, frames = tables.by_sigma(quiet, real, names, groups), []
    for width in (1, 2):
        one = tables.split(chain, names, width)
        parts = {part: one.parts[part][None] for part in tables.PARTS}
        shown = {"noise_by_sigma": sigmas if width == 1 else np.full(len(sigmas), np.nan)}
        frames.append(_frame(real, names, groups, one.error[None], parts, {"columns": width}, shown))
        for part in ("misfit", "noise", *(("rules",) if real.schema.rules else ())):
            frames[-1][f"{part}_low"] = one.parts[part] - one.bound
            frames[-1][f"{part}_high"] = one.parts[part] + one.bound
    return joined(frames)


def _same_rows(one: EncodedRows, other: EncodedRows) -> bool:
    """True if the encoded rows `one` and `other` of a schema are equal in any order; numbers by their bins."""
    if one.rows != other.rows:
        return False
    sides = [[np.asarray(table.codes[name], np.int64) for name in table.schema.names] for table in (one, other)]
    orders = [np.lexsort(columns) for columns in sides]
    return all((a[orders[0]] == b[orders[1]]).all() for a, b in zip(*sides, strict=True))


def _drawn(model: TableModel, many: int, seed: int) -> tuple[EncodedRows, EncodedRows]:
    """Draw `many` rows of a TableModel by `seed`: a pair of EncodedRows, without structural rules and with them.

    Both are the same object if the schema has no rules.
    """
    free = tables.drawn(model, many, seed, rules=False)
    return free, tables.drawn(model, many, seed) if model.schema.rules else free


def _rows_of(model: Any) -> TableModel:
    """Return the model itself, as a TableModel."""
    assert isinstance(model, TableModel)  # noqa: S101 - what the mechanism says that it returns
    return model


def _of_predictions(
    recipe: Recipe,
    table: Any,
    real: EncodedRows,
    by: tuple[str, ...],
    groups: tuple[Stratum, ...],
    repeats: int,
    seed: int,
    tick: Callable[[], object],
    named: str | None,
) -> LensScores:
    prepared = recipe.prepared
    plain_how = predictors.unclipped(prepared)
    # Poisson samples differ between twins even without noise
    twins = repeats if prepared.allot.currency == Currency.SAMPLED else 1

    def fits(how: Any, *, noise: bool, number: int) -> list[Floats]:
        found = []
        for repeat in range(number):
            model = fit_internal(how, table, noise=noise, seed=seed + repeat).model
            target = predictors.target_of(prepared, model, named)
            found.append(_means(predictors.losses(model, real, target, seed), real, by, len(groups)))
            tick()
        return found

    private = np.array(fits(prepared, noise=True, number=repeats))
    quiet = np.array(fits(prepared, noise=False, number=twins))
    plain = quiet.mean(axis=0) if plain_how is None else np.mean(fits(plain_how, noise=False, number=twins), axis=0)
    clipping = np.full_like(private, np.nan) if plain_how is None else np.broadcast_to(quiet - plain, private.shape)
    parts = {"clipping": clipping, "noise": private - np.broadcast_to(quiet, private.shape)}
    frame = _frame(real, by, groups, private - plain, parts, {}, {"plain": plain})
    facts = _facts(recipe, real, by, groups, repeats, predictors.PARTS, "excessive risk")
    return LensScores(recipe.schema(), by, {**facts, "unclipped": plain_how is not None}, frame)


def _means(values: Floats, rows: EncodedRows, by: Sequence[str], groups: int) -> Floats:
    """Array of the mean of `values` in each group, then of everybody; NaN of none.

    `values` is an array of one for each of the encoded `rows`; NaN ones are left out. `groups` is the number of groups,
    the crossing of the columns `by`.
    """
    known = ~np.isnan(values)
    group = group_numbers(rows, by)[known]
    sums, counts = np.bincount(group, values[known], groups), np.bincount(group, minlength=groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        means: Floats = sums / counts
    return np.append(means, values[known].mean()) if by else means


def _facts(
    recipe: Recipe,
    real: EncodedRows,
    by: Sequence[str],
    groups: Sequence[Any],
    repeats: int,
    parts: Sequence[str],
    what: str,
) -> dict[str, Any]:
    """Dict of facts of a lens on a Recipe: mechanism, epsilon, rows, columns `by`, `repeats`, `parts`.

    Rows are those of `real`, an `EncodedRows`. `groups` are counted, and `what` is the measure's name; stamp and the
    schema's sha256 are there too.
    """
    return {
        "stamp": STAMP,
        "mechanism": recipe.how().title,
        "epsilon": recipe.spend.epsilon,
        "real_rows": real.rows,
        "groups": len(groups) if by else 0,
        "by": list(by),
        "repeats": repeats,
        "parts": list(parts),
        "measure": what,
        "schema_sha256": recipe.schema().sha256,
    }


def interval(values: Floats) -> tuple[Floats, Floats]:
    """Return two arrays: mean of `values` over its first axis, that of fits, and half its 95 % interval by Student's t.

    The half is NaN for one fit alone.
    """
    from scipy.special import stdtrit

    count = len(values)
    half = np.full(values.shape[1:], np.nan)
    if count > 1:
        half = values.std(axis=0, ddof=1) / math.sqrt(count) * stdtrit(count - 1, 0.975)
    return values.mean(axis=0), half


def _frame(
    real: EncodedRows,
    by: Sequence[str],
    groups: Sequence[Stratum],
    value: Floats,
    parts: Mapping[str, Floats],
    items: Mapping[str, Any],
    further: Mapping[str, Floats],
) -> pd.DataFrame:
    """Frame of one row a Stratum of `groups`, then everybody: size, loss `value`, `parts`, intervals, `cause`.

    `groups` are those of the columns `by` in the EncodedRows `real`, in the order of the scopes. `value` is an array
    (fits, scopes); `parts` maps names to such arrays, the largest of which is the cause. Further columns are `items`, a
    mapping from name to one value for all rows, and `further`, one from name to an array over the scopes.
    """
    sizes = np.bincount(group_numbers(real, by), minlength=len(groups))
    counts = np.append(sizes, real.rows)[None] if by else sizes[None]
    mean, half = interval(value)
    more: dict[str, Any] = {}
    for name, values in parts.items():
        middle, width = interval(values)
        more |= {name: middle, f"{name}_low": middle - width, f"{name}_high": middle + width}
    known = np.nan_to_num(np.array([more[name] for name in parts]), nan=-np.inf)
    status = statuses(mean[None], counts, FEW)
    causes = np.where(np.isfinite(known.max(axis=0)), np.array([*parts])[known.argmax(axis=0)], "")
    frame = tidy(
        by,
        groups,
        mean[None],
        (mean - half)[None],
        (mean + half)[None],
        counts={"n": counts},
        status=status,
        items={name: [one] for name, one in items.items()},
        more={**more, **further},
    )
    return frame.assign(cause=causes.astype(str))
