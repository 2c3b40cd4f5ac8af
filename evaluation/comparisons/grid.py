"""Section [compare] of a recipe, and the grid of fits that it describes.

    [compare]
    mechanisms = ["mst", { name = "pooled", base = "mst" }]   # by default the recipe's
    stratifications = [[], ["SEX"], ["SEX", "RAC1P"]]         # [] is vanilla; by default [] and the recipe's strata
    epsilons = [0.1, 1, 10]                                   # by default the recipe's
    seeds = 5                                                 # how often each is repeated
    holdout = "others.csv"                                    # with target: models are trained and tested on it
    target = "income"
    models = ["forest", "fairlearn"]                          # trained on tables; by default linear, forest, boosting
    pairs = [["mst, vanilla", "mst by SEX"]]                  # what is tested; by default every two settings

With a section [prior], `{ name = "aim", from_prior = true }` starts from it, and "aim" does not; by default the
recipe's mechanism is fitted both ways. A mechanism that makes strata itself, as `pooled` does, is fitted with the
recipe's strata alone. A predictor, as `{ name = "fermi", target = "income", groups = ["SEX"], penalty = 1 }`, is
fitted once, to all records, and audited on the hold-out beside the models that are trained on tables. With a section
[weights] and no [strata], the shares go to mechanisms that take them: `aim`, `mst`, `gem`, `fixed` and `independent`.
Others are fitted without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stratsynth.accounting.budget import Budget
from stratsynth.accounting.public_budget import MOST_PUBLIC_EPSILON
from stratsynth.errors import RecipeError, Unsupported, WeightsError
from stratsynth.evaluation.comparisons.competitors import (
    FROM_PRIOR,
    Competitor,
    built,
    check_pairs,
    check_predictors,
    from_prior,
    labelled,
    predicts,
    stratifications,
    with_own,
)
from stratsynth.evaluation.comparisons.keys import check_keys
from stratsynth.evaluation.comparisons.paired import DIRECT, VANILLA, Setting, setting_name
from stratsynth.evaluation.comparisons.scoring import Scoring, read_scoring
from stratsynth.fitting import FitOptions
from stratsynth.mechanisms import Mechanism
from stratsynth.priors import Prior
from stratsynth.recipes.recipe import Recipe
from stratsynth.release.declared import DECLARED
from stratsynth.strata import crossing
from stratsynth.strata.groups import Groups
from stratsynth.stratified import Groupwise, Weighted, takes_shares
from stratsynth.weights import Weights
from stratsynth.weights.sources import read_weights
from stratsynth.weights.table import ShareTable


@dataclass(frozen=True)
class GridFit:
    """One fit of the grid: a mechanism in strata, a budget and a repetition."""

    mechanism: str
    """Label of the mechanism in the grid."""
    by: tuple[str, ...]
    """Columns of the strata; empty for vanilla."""
    epsilon: float
    """Whole privacy budget of the fit."""
    seed: int
    """Number of the repetition. It reaches post-processing only: noise is fresh in every fit."""

    direct: bool = False
    """True for a predictor, which makes no table."""

    @property
    def stratification(self) -> str:
        """Stratification in words: `SEX x RAC1P`, "vanilla" without strata, "direct" for a predictor."""
        return DIRECT if self.direct else " x ".join(self.by) or VANILLA


@dataclass(frozen=True)
class Grid:
    """Grid of fits of a section [compare]: mechanisms, stratifications, epsilons, repetitions and their scores."""

    recipe: Recipe
    """Data, budget, strata and weights of every fit."""
    mechanisms: Mapping[str, Competitor]
    """Label -> name and settings of a mechanism, or the object itself."""
    stratifications: tuple[tuple[str, ...], ...]
    """Sets of columns to stratify by; the empty one is vanilla."""
    epsilons: tuple[float, ...]
    """Whole privacy budgets, one at a time."""
    seeds: int
    """Number of repetitions of each setting."""
    scoring: Scoring
    """Scores of every release."""
    workers: int = 1
    """Number of processes that fit at a time."""
    pairs: tuple[tuple[Setting, Setting], ...] | None = None
    """Pairs of settings that are tested; None for every two."""
    started: frozenset[str] = frozenset()
    """Labels of the mechanisms that start from the recipe's prior."""

    @classmethod
    def read(cls, recipe: Recipe, own: Mapping[str, Any] | None = None) -> Grid:
        """Read the Grid from a Recipe's section [compare] and the caller's `own` mechanisms by label; no data are read.

        Unsupported for data without a path; RecipeError for unknown keys and keys that contradict each other.
        """
        said = dict(recipe.compare or {})
        if recipe.data.parent is not None:
            raise Unsupported(
                "[compare] fits and scores releases of one table. Of two linked tables fit one recipe after another on "
                "public data, and `stratsynth evaluate` each."
            )
        if recipe.data.path is None:
            raise Unsupported(
                "[compare] scores releases row by row, in the memory of this process, and reads no table of Spark into "
                "it: name a file by `path`."
            )
        check_keys(said)
        if recipe.spend.strata is not None:
            raise RecipeError("[compare] gives every stratum the whole epsilon; leave [budget] strata out.")
        by = () if recipe.strata is None else tuple(recipe.strata.by)
        stratifications = said.get("stratifications", [[], by] if by else [[]])
        usual = {"name": recipe.mechanism.name, **recipe.mechanism.settings}
        named = [usual, {**usual, FROM_PRIOR: True}] if recipe.given_prior is not None else [usual]
        mechanisms, started = from_prior(labelled(said.get("mechanisms", named)))
        if not mechanisms and not own:
            raise RecipeError("[compare] mechanisms is empty; name one, or give compare(..., mechanisms={...}).")
        if bool(started) != (recipe.given_prior is not None):
            raise RecipeError(
                "[compare] a mechanism with from_prior = true starts from the section [prior]: have both, or neither."
            )
        grid = cls(
            recipe,
            with_own(mechanisms, own or {}),
            tuple(tuple(columns) for columns in stratifications),
            tuple(min(float(epsilon), MOST_PUBLIC_EPSILON) for epsilon in said.get("epsilons", [recipe.spend.epsilon])),
            said.get("seeds", 5),
            read_scoring(recipe, said, by, stratifications),
            said.get("workers", 1),
            started=started,
        )
        goal = grid.scoring.goal(recipe.schema())
        check_predictors(grid.mechanisms, None if goal is None else goal.target)
        for what in ("stratifications", "epsilons"):
            values = getattr(grid, what)
            if not values or len(set(values)) < len(values):
                raise RecipeError(f"[compare] {what} is empty, or holds something twice.")
        return grid if "pairs" not in said else replace(grid, pairs=grid._asked(said["pairs"]))

    @property
    def by(self) -> tuple[str, ...]:
        """Tuple of the columns of the recipe's strata, which make the groups that are scored; empty without strata."""
        return self.scoring.by

    def settings(self) -> Iterator[GridFit]:
        """Yield one GridFit for each setting (mechanism and stratification): first repetition, first epsilon."""
        for label, mechanism in self.mechanisms.items():
            for by in stratifications(mechanism, self.by, self.stratifications):
                yield GridFit(label, by, self.epsilons[0], 1, predicts(mechanism))

    def cells(self) -> Iterator[GridFit]:
        """Yield all GridFits, repetitions outermost, so that an interrupted comparison has some of every setting."""
        for seed in range(1, self.seeds + 1):
            for epsilon in self.epsilons:
                for cell in self.settings():
                    yield replace(cell, epsilon=epsilon, seed=seed)

    def budget(self, cell: GridFit) -> Budget:
        """Budget of the fit of a cell, a `GridFit`: the recipe's, with the cell's epsilon instead of its own."""
        return replace(self.recipe, spend=replace(self.recipe.spend, epsilon=cell.epsilon)).budget()

    def how(self, cell: GridFit) -> Mechanism[Any]:
        """Return the mechanism of a `GridFit`, stratified by the cell's columns unless the object has its own strata.

        UsageError for one that releases neither rows nor predictions. If the recipe has [weights] and no [strata], an
        unstratified mechanism that can draw rows by public shares gets them.
        """
        weights = self.weights(cell.by) if cell.by and self.weighted(cell.mechanism) else None
        how = built(self.mechanisms[cell.mechanism], cell.by, weights, _only(self.recipe.groups(), cell.by))
        if self.recipe.strata is not None or self.recipe.weights is None or not takes_shares(how):
            return how
        return Weighted(how, read_weights(self.recipe.weights, self.recipe.folder))

    def prior(self, cell: GridFit) -> Prior | None:
        """Prior that a cell's fit, a `GridFit`, starts from; None if its mechanism does not start from the recipe's."""
        return self.recipe.prior if cell.mechanism in self.started else None

    def options(self, cell: GridFit) -> FitOptions:
        """FitOptions of a cell, a `GridFit`: its repetition number as the seed of post-processing, prior, groups."""
        return FitOptions(seed=cell.seed, prior=self.prior(cell), groups=self.groups(cell))

    def groups(self, cell: GridFit) -> str:
        """Return "declared" or "measured": the shares by which rows of the groups of a cell, a `GridFit`, are drawn.

        Always declared without strata, or for a predictor.
        """
        return self.recipe.release.groups if cell.by and not cell.direct else DECLARED

    def weighted(self, label: str) -> bool:
        """True if the mechanism of this label gets strata and shares from the grid; an object may have its own."""
        return not isinstance(self.mechanisms[label], Groupwise)

    def _asked(self, said: Any) -> tuple[tuple[Setting, Setting], ...]:
        """Tuple of pairs of settings, each (mechanism's label, tuple of columns), of `said`, pairs of settings' names.

        RecipeError for names of no setting.
        """
        known = {
            setting_name(cell.mechanism, cell.stratification): (cell.mechanism, cell.stratification)
            for cell in self.settings()
        }
        check_pairs(said, list(known))
        return tuple((known[one], known[two]) for one, two in said)

    def weights(self, by: Sequence[str]) -> Weights:
        """Weights for strata by the columns `by`: the recipe's shares, summed over its other columns.

        RecipeError without a section [weights], WeightsError if one of the columns has no shares.
        """
        if self.recipe.weights is None:
            raise RecipeError(f"[compare] stratifying by {' x '.join(by)} needs a section [weights] with its shares.")
        weights, schema = read_weights(self.recipe.weights, self.recipe.folder), self.recipe.schema()
        known = weights.given.columns(schema.names)
        for column in by:
            schema.column(column)
            if column not in known:
                raise WeightsError(
                    f"weights: the shares have no column {column}; add it to the table, or leave the stratification "
                    f"{' x '.join(by)} out."
                )
        if weights.kind.countable or set(known) == set(by):
            return weights  # counts can be asked for any columns
        groups = _only(self.recipe.groups(), known)
        resolved = weights.resolve(crossing(schema, known, groups.together(schema, known)), schema)
        shares: dict[tuple[str, ...], float] = {}
        for stratum, share in resolved.shares.items():
            names = dict(zip(stratum.columns, stratum.names, strict=True))
            part = tuple(names[column] for column in by)
            shares[part] = shares.get(part, 0.0) + share
        import pandas as pd

        table = pd.DataFrame([dict(zip(by, part, strict=True)) | {"share": share} for part, share in shares.items()])
        rest = ", ".join(column for column in known if column not in by)
        return replace(weights, given=ShareTable.read(table), citation=f"{weights.citation}; summed over {rest}")


def _only(groups: Groups, by: Sequence[str]) -> Groups:
    """Groups with just those merges, bands and hierarchies of levels that `groups` declares for the columns `by`."""
    merge, hierarchy = (
        {column: merges for column, merges in declared.items() if column in by}
        for declared in (groups.merge, groups.hierarchy)
    )
    bands = {column: cuts for column, cuts in groups.bands.items() if column in by}
    if groups.small == "merge" and not hierarchy:  # nothing to merge along
        return Groups(merge, bands)
    return replace(groups, merge=merge, bands=bands, hierarchy=hierarchy)
