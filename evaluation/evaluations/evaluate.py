"""INTERNAL. Every score of a release, in every group, beside its baselines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.checks import check_integer, quoted_value
from stratsynth.errors import UsageError
from stratsynth.evaluation.evaluations.beside import area_scores, compared_scores
from stratsynth.evaluation.learning.downstream import downstream
from stratsynth.evaluation.learning.propensity import MODELS, principal_components, propensity_frame
from stratsynth.evaluation.learning.tasks import Task, task
from stratsynth.evaluation.lens.scores import lens_of_release
from stratsynth.evaluation.scores.associations import MOST_LEVELS, correlation_frame
from stratsynth.evaluation.scores.baseline import MEANINGS, RELEASE, SUBSAMPLE, baselines
from stratsynth.evaluation.scores.columns import column_frame
from stratsynth.evaluation.scores.consistency import level_frame
from stratsynth.evaluation.scores.coverage import interval_coverage
from stratsynth.evaluation.scores.declared import declared
from stratsynth.evaluation.scores.disparity import mean_disparity
from stratsynth.evaluation.scores.headline import (
    ENOUGH_NUMBERS,
    Thresholds,
    headline_facts,
    headline_frame,
    number_columns,
    thresholds_by_column,
)
from stratsynth.evaluation.scores.matching import match_frame
from stratsynth.evaluation.scores.raw import raw_frame
from stratsynth.evaluation.tables import (
    EVERYBODY,
    FEW,
    RESERVED,
    STAMP,
    By,
    EncodedRows,
    Pair,
    as_schema,
    groups_of,
    joined,
    named,
    weighed,
)
from stratsynth.evaluation.tables.numbers import RawNumbers
from stratsynth.progress import steps
from stratsynth.release import Release
from stratsynth.schema import Numeric, Schema

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from stratsynth.report.page import Page

CLIQUES = 1_000
"""Default number of sets of columns: enough that another choice of sets hardly changes a mean."""
RULE = "the last three starts of a bin of the schema, which no row decides"
STATED = "as they were stated; columns without any have the last three starts of a bin of the schema"
MOST = 20_000
"""Largest number of training rows of a model: more change little but the time."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """INTERNAL. All scores of one release, as tidy frames (`evaluation.tables.frames` defines their columns)."""

    schema: Schema
    """Schema of all tables."""
    by: tuple[str, ...]
    """Columns whose crossing makes the groups; empty for everybody alone."""
    facts: Mapping[str, Any]
    """Names and sizes of the tables, and the settings; `stamp` among them. Plain values."""
    workload: pd.DataFrame
    """Mean L1 distance of the k-way marginals, by `table`: the release and each baseline."""
    score: pd.DataFrame
    """NIST's k-marginal score of the same marginals, by `table`."""
    areas: pd.DataFrame | None
    """Score in each area, by `table`; None if no column of areas was named."""
    cliques: pd.DataFrame
    """L1 distance of each marginal of the release, largest first."""
    columns: pd.DataFrame
    """Share of each level of each column, among real and synthetic rows."""
    parity_means: pd.DataFrame | None
    """Parity error of the means, by `table`; this and the next two are None without groups."""
    parity_marginals: pd.DataFrame | None
    """Parity error of the k-way marginals, by `table`."""
    disparity: pd.DataFrame | None
    """Largest differences between group means, in both tables."""
    correlations: pd.DataFrame | None
    """Pearson, Kendall and Cramer of each pair of columns; None for a schema of one, or if left out."""
    propensity: pd.DataFrame | None
    """Ability of a model to tell the rows of the two tables apart; this and the next are None if left out."""
    components: pd.DataFrame | None
    """Coordinates of some rows of both tables on two axes, for a picture."""
    numbers: pd.DataFrame | None
    """Errors of means, medians, deciles and shares above thresholds, by `table`: the release and others beside it;
    None without columns of numbers."""
    raw: pd.DataFrame
    """Means and quartiles of the raw numbers of both tables, everybody, dates and times among them."""
    declared: Mapping[str, pd.DataFrame]
    """Scores that declare themselves (`evaluation.scores.declared`), by name."""
    levels: pd.DataFrame
    """Levels that only one of the tables has."""
    matches: pd.DataFrame
    """Real people that the release seems to show, by `people`: the real rows, and the hold-out's if there is one."""
    coverage: pd.DataFrame | None
    """Coverage of the release's intervals for counts, by group; None without groups or without `intervals`."""
    lens: pd.DataFrame | None
    """Error of each group by cause, from `lens_of_release`; None without the release's recipe."""
    downstream: pd.DataFrame | None
    """Models trained on the release and on real rows; None without a target and a hold-out."""

    def __repr__(self) -> str:
        """Return a text with the tables' sizes, the number of groups, and the error of everybody."""
        facts, frame = self.facts, self.workload
        whole = frame[(frame["table"] == RELEASE) & (frame["scope"] == EVERYBODY)]["value"].iloc[0]
        groups = f"{facts['groups']} groups by {' x '.join(self.by)}" if self.by else "no groups"
        rows = f"{facts['real_rows']:,} real and {facts['synthetic_rows']:,} synthetic rows"
        return f"Evaluation(INTERNAL; {rows}; {groups}; error {whole:.3f} of 2)"

    def _repr_html_(self) -> str:
        """Return the disparity card as HTML for a notebook."""
        from stratsynth.report.notebook import render

        page = self.page("this release", None)
        own = next(section for section in page.sections if section.name == "card")
        card = replace(own, title="", figures=own.figures[:1])
        frames = f"Frames: {', '.join(name for name, _ in self.frames())}."
        return render(replace(page, title="Evaluation", lead=page.lead[:1], sections=[replace(card, notes=[frames])]))

    @property
    def inconsistencies(self) -> pd.DataFrame:
        """Frame of the shares of rows that break each rule of the schema, as `evaluation.inconsistencies` makes it."""
        return self.declared["inconsistencies"]

    def frames(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield (name, frame) of every score that was computed, in the order of the fields."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "declared":
                yield from self.declared.items()
            elif field.name not in {"schema", "by", "facts"} and value is not None:
                yield field.name, value

    def page(self, name: str, certificate: Mapping[str, Any] | None) -> Page:
        """Return the Page for readers, on which the release is called `name`.

        `certificate` is the release's, a mapping, or None.
        """
        from stratsynth.evaluation.evaluations.page import evaluation_page

        return evaluation_page(self, name=name, certificate=certificate)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Return a matplotlib figure of each group's error beside that of chance and of other releases, worst first.

        It is stamped INTERNAL. `path` is a new .pdf, .svg or .png file outside of any release; None to save no file.
        """
        from stratsynth.evaluation.evaluations.plots import groups_plot

        return groups_plot(self, path)


def evaluate(
    real: Any,
    synthetic: Any,
    schema: Schema | str | Path,
    by: By = None,
    *,
    k: int = 3,
    cliques: int | None = CLIQUES,
    beside: Mapping[str, Any] | None = None,
    holdout: Any = None,
    target: str | Task | None = None,
    positive: str | Sequence[str] | None = None,
    above: float | None = None,
    thresholds: Thresholds | None = None,
    area: str | None = None,
    quasi: Sequence[str] | None = None,
    few: int = FEW,
    seed: int = 0,
    apart: bool = True,
    recipe: str | Path | None = None,
    release: str | Path | None = None,
    intervals: str | Path | None = None,
    progress: bool | None = None,
) -> Evaluation:
    """Compute every score of a release, in every declared group, beside its baselines.

    Args:
        real: The rows that the release was fitted to: a frame, an Arrow table or a path. If the schema names a
            column of weights, every real row counts as its weight, as in the release.
        synthetic: The release.
        schema: The schema of both, or its path.
        by: Columns whose crossing makes the groups; None for everybody alone.
        k: Number of columns of a marginal.
        cliques: The largest number of marginals, a fixed choice; None for all.
        beside: Mapping from name to another release of the same people, scored as the baselines are.
        holdout: Real rows that the release was not fitted to.
        target: The column or task that models predict, with `holdout`, as in `downstream`.
        positive: The levels of a categorical target that count as 1.
        above: The number above which a numeric target counts as 1.
        thresholds: Numbers by column, as `{"PINCP": [100_000, 200_000]}`, above which shares of both tables are
            compared; columns without any have the schema's own, as `number_errors` says.
        area: A column of areas, each of which gets a score.
        quasi: The quasi-identifiers of `matches`.
        few: Groups with fewer rows in either table are `small`.
        seed: Seed for models and their intervals. Baselines are the same for every seed.
        apart: True to compute correlations, propensity and components, which take most of the time.
        recipe: Path of the recipe of the release, to split its error by cause, which takes a fit without noise.
        release: With `recipe`, the release's folder, which holds its model.
        intervals: The release's folder, to check the intervals of its counts, if it has noisy tables.
        progress: True to show how many of the parts are done; by default on a terminal and in a notebook.

    Returns:
        An Evaluation, with the scores as frames, and facts about the tables and settings.

    Raises:
        UsageError: A table or column does not exist, a target has no hold-out, or a name in `beside` is taken. All
            but unreadable tables are refused before anything is computed.
    """
    schema = as_schema(schema)
    names, groups = groups_of(schema, by)
    check_integer("evaluation: k", k, 1)
    k = min(k, len(schema.names))
    if beside is not None and not isinstance(beside, Mapping):
        raise UsageError(f"evaluation: `beside` is a mapping from names to tables, not {quoted_value(beside)}.")
    others_by_name = {} if beside is None else dict(beside)
    _refuse(schema, holdout, target, positive, above, area, others_by_name)
    levels = thresholds_by_column(schema, thresholds)
    if recipe is not None and schema.row_weight.column is not None:
        raise UsageError("evaluation: errors of weighted releases are not split into causes; leave the recipe out.")
    if (recipe is None) != (release is None):
        raise UsageError(
            "evaluation: to split the error, give the recipe and the release's folder, which has the model."
        )
    true, made = EncodedRows.read(real, schema, weigh=True), EncodedRows.read(synthetic, schema)
    others = None if holdout is None else EncodedRows.read(holdout, schema, weigh=True)
    pair = Pair.of(true, made, schema, names, few)
    axes = min(2, len(pair.variables(None)))
    compared = {RELEASE: made} | {name: EncodedRows.read(data, schema) for name, data in others_by_name.items()}
    compared |= {b.name: b.table for b in baselines(true, schema, made.rows) if b.name != SUBSAMPLE}
    paired = apart and _pairs(pair)
    split = None if recipe is None or release is None else (recipe, release)
    parts = 2 + (area is not None) + 2 * apart + paired + (target is not None) + (split is not None)
    with steps("scoring", parts, progress) as done:
        scored, alone = done(compared_scores(true, compared, pair, k, cliques))
        found = {name: joined(parts) for name, parts in scored.items()}
        areas = None if area is None else done(joined(area_scores(true, compared, schema, area, k, cliques, few)))
        numbers, raw = numbers_of(real, {RELEASE: synthetic, **others_by_name}, schema, names, levels, few)
        people = {"real": pair} | ({} if others is None else {"holdout": Pair.of(others, made, schema, names, few)})
        return Evaluation(
            schema=schema,
            by=names,
            facts={
                "stamp": STAMP,
                "real_rows": true.rows,
                "synthetic_rows": made.rows,
                "real_rows_left_out": true.left_out,
                "synthetic_rows_left_out": made.left_out,
                "holdout_rows": None if others is None else others.rows,
                **weighed(true),
                "by": list(names),
                "groups": len(groups) if names else 0,
                "k": k,
                "seed": seed,
                "few": few,
                "area": area,
                "cliques": int(found["workload"]["cliques"].iloc[0]),
                "beside": list(others_by_name),
                "headline": headline_facts(None if numbers is None else numbers[numbers["table"] == RELEASE]),
                "few_numbers": ENOUGH_NUMBERS,
                "thresholds": {"rule": RULE if thresholds is None else STATED, "columns": levels},
                "tables": {
                    name: MEANINGS.get(name, "another release of the same people") for name in (*compared, SUBSAMPLE)
                },
                "chance": {"draws": alone.draws, "error_at_most_a_tenth": alone.reached},
                "task": None if target is None else task(schema, target, positive=positive, above=above).meaning,
                "schema_sha256": schema.sha256,
            },
            workload=found["workload"],
            score=found["score"],
            areas=areas,
            cliques=found["cliques"].drop(columns="table"),
            columns=column_frame(pair),
            parity_means=found.get("parity_means"),
            parity_marginals=found.get("parity_marginals"),
            disparity=mean_disparity(true, made, schema, names, few=few) if names else None,
            correlations=done(correlation_frame(pair, ("pearson", "kendall", "cramer"))) if paired else None,
            propensity=done(propensity_frame(pair, MODELS, MOST // 2, seed)) if apart else None,
            components=done(principal_components(true, made, schema, names, components=axes, seed=seed))
            if apart
            else None,
            numbers=numbers,
            raw=raw,
            declared={score.name: score.of(pair) for score in declared()},
            levels=level_frame(pair),
            coverage=coverage_of(intervals, real, names),
            lens=None if split is None else done(lens_of_release(true, made, *split, names, seed)),
            matches=done(joined([named(match_frame(p, quasi), who, "people") for who, p in people.items()])),
            downstream=None
            if target is None
            else done(
                downstream(
                    made,
                    others,
                    schema,
                    target=target,
                    by=names,
                    real=true,
                    positive=positive,
                    above=above,
                    most=MOST,
                    few=few,
                    seed=seed,
                )
            ),
        )


def numbers_of(
    real: Any,
    compared: Mapping[str, Any],
    schema: Schema,
    by: tuple[str, ...],
    thresholds: Mapping[str, Sequence[float]],
    few: int,
) -> tuple[pd.DataFrame | None, pd.DataFrame]:
    """(Frame of `number_errors`, a part for every table of `compared`; frame of `raw_values` of the release alone).

    Both are against the rows `real`, in groups of the columns `by`, small below `few` numbers. The former is None for a
    schema without columns of numbers. `compared` maps names to tables or paths, `thresholds` columns to numbers.
    """
    names = [name for name, column in schema.columns.items() if isinstance(column, Numeric)]
    wanted = {name: thresholds[name] for name in number_columns(schema, by)}
    groups = groups_of(schema, by)[1]
    true = RawNumbers.read(real, schema, names, by, weigh=True)
    tables = {table: RawNumbers.read(data, schema, names, by) for table, data in compared.items()}
    frames = [named(headline_frame(true, made, wanted, by, groups), table) for table, made in tables.items() if wanted]
    return joined(frames) if frames else None, raw_frame(true, tables[RELEASE], names, few)


def coverage_of(folder: str | Path | None, real: Any, names: tuple[str, ...]) -> pd.DataFrame | None:
    """Frame of `interval_coverage` of the release in `folder`, against rows `real`, by groups of the columns `names`.

    None without a folder or groups, or if the release has no noisy tables that answer such queries.
    """
    if folder is None or not names:
        return None
    try:
        return interval_coverage(real, Release.load(folder), by=names)
    except UsageError:  # it has no noisy tables, or not those columns
        return None


def _refuse(
    schema: Schema, holdout: Any, target: Any, positive: Any, above: Any, area: str | None, beside: Mapping[str, Any]
) -> None:
    """Raise UsageError, before anything is computed, for arguments of `evaluate` that cannot be met.

    These are a taken name in the mapping `beside`, `positive` or `above` without a target, a target that is no task of
    the schema or has no `holdout`, and an unknown column of areas.
    """
    if taken := beside.keys() & {*MEANINGS, *RESERVED, *schema.names, "error", "excess", "means"}:
        raise UsageError(f"evaluation: a table beside the release cannot be called {min(taken)!r}; rename it.")
    if target is None and (positive is not None or above is not None):
        raise UsageError("evaluation: `positive` and `above` are about a target; name it.")
    if target is not None and holdout is None:
        raise UsageError("evaluation: predicting a target needs a hold-out: real rows that nothing was fitted to.")
    if target is not None:
        task(schema, target, positive=positive, above=above)
    if area is not None:
        schema.restrict([area])


def _pairs(pair: Pair) -> bool:
    """True if at least two variables of a pair have few enough levels to be correlated."""
    return sum(pair.schema.size(name) <= MOST_LEVELS for name in pair.variables(None)) > 1
