"""One cell of a comparison: a fit, its scores, and the file they are kept in.

A file is written whole or not at all, before the fit counts as done: a comparison that is killed at any moment computes
no cell twice, and pays for none twice.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stratsynth.errors import MechanismError, StratsynthError
from stratsynth.evaluation.comparisons.grid import Grid, GridFit
from stratsynth.evaluation.comparisons.numbers import encoded_number_scores, number_scores, raw_numbers
from stratsynth.evaluation.comparisons.paired import BASELINE, DIRECT, setting_name
from stratsynth.evaluation.comparisons.scoring import Scoring
from stratsynth.evaluation.evaluations.evaluate import MOST
from stratsynth.evaluation.learning.direct import audited
from stratsynth.evaluation.learning.downstream import downstream
from stratsynth.evaluation.learning.rates import BETWEEN
from stratsynth.evaluation.scores.baseline import SUBSAMPLE, baselines
from stratsynth.evaluation.scores.chance import chance
from stratsynth.evaluation.scores.declared import with_mean
from stratsynth.evaluation.scores.disparity import LARGEST, mean_disparity
from stratsynth.evaluation.scores.parity import ALL, PARITY, Weighting, marginals_frame, means_frame
from stratsynth.evaluation.scores.workload import clique_frame, score_frame, workload_frame, workload_of
from stratsynth.evaluation.tables import EVERYBODY, GROUP, EncodedRows, Pair, joined
from stratsynth.evaluation.tables.numbers import RawNumbers
from stratsynth.files.atomic import new_file
from stratsynth.fitting import fitted
from stratsynth.recipes.rows_argument import rows_of

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.release import Release

PUBLIC = "research on data declared public: nothing was charged, and nothing here is a private release"
_WORKLOAD = ("workload_error", "k_marginal_score", "clique_error", "parity_marginals")


class CellRunner:
    """Computation of cells in one process: the real rows are read once, and kept."""

    def __init__(self, grid: Grid) -> None:
        """Keep the grid, whose cells are to be computed; no data are read yet."""
        self._grid = grid

    @cached_property
    def _real(self) -> EncodedRows:
        """EncodedRows of the recipe, the real ones, with weights; read once."""
        recipe = self._grid.recipe
        return EncodedRows.read(recipe.data.rows, recipe.schema(), weigh=True)

    @cached_property
    def _numbers(self) -> RawNumbers:
        """RawNumbers of the recipe's rows, which are the real ones, with weights; read once."""
        recipe = self._grid.recipe
        return raw_numbers(recipe.data.rows, recipe.schema(), self._grid.by, weigh=True)

    @cached_property
    def _holdout(self) -> EncodedRows | None:
        """EncodedRows of the hold-out, with weights, read once; None if the grid has none."""
        path = self._grid.scoring.holdout
        return None if path is None else EncodedRows.read(rows_of(path).source, self._real.schema, weigh=True)

    def fit(self, cell: GridFit, file: Path) -> None:
        """Fit a cell of the grid, a `GridFit`, or go on; write a frame of its scores to the Parquet `file`.

        A fit goes on if the data have a ledger. The scores are of the rows drawn, or of a predictor's predictions of
        the hold-out.
        """
        grid, recipe = self._grid, self._grid.recipe
        real, held = self._real, self._holdout  # what does not fit into memory is refused before anything is charged
        start = time.perf_counter()
        with (
            _called(setting_name(cell.mechanism, cell.stratification)),
            fitted(grid.how(cell), recipe.table(), grid.budget(cell), grid.options(cell)) as release,
        ):
            seconds = time.perf_counter() - start
            if cell.direct:
                parts = self._predicted(release, cell.seed)
            else:
                sample = release.sample_arrow(recipe.rows, seed=cell.seed)
                made = EncodedRows.read(sample, real.schema)
                numbers = (self._numbers, raw_numbers(sample, real.schema, grid.by))
                parts = scores(real, made, grid.scoring, held, cell.seed, numbers)
            facts = {"mechanism": cell.mechanism, "stratification": cell.stratification, "epsilon": cell.epsilon}
            save_frame(in_columns(parts, facts | {"seed": cell.seed}, grid, seconds), file)

    def _predicted(self, release: Release, seed: int) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield (`metric:direct`, frame) for each rate of a release's predictions of the hold-out, drawn by `seed`."""
        goal, held = self._grid.scoring.goal(self._real.schema), self._holdout
        assert goal is not None  # noqa: S101 - the grid refuses what predicts without a target and a hold-out
        assert held is not None  # noqa: S101
        found = audited(release.model.predictor(), held, goal, self._grid.by, seed)
        for metric, frame in found.groupby("metric", sort=False):
            yield f"{metric}:{DIRECT}", frame

    def baselines(self, file: Path) -> None:
        """Write a frame of the baselines' scores to the Parquet `file`, once for all cells.

        With a hold-out it has those of models trained on real rows too.
        """
        grid, real = self._grid, self._real
        frames = []

        def scored(table: EncodedRows) -> dict[str, pd.DataFrame]:
            return dict(scores(real, table, grid.scoring, None, 0))

        for baseline in baselines(real, real.schema, grid.recipe.rows):
            found = (
                scored(baseline.table) if baseline.name != SUBSAMPLE else chance(real, grid.recipe.rows, scored).frames
            )
            frames.append(in_columns(iter(found.items()), _baseline(baseline.name), grid, np.nan))
        if self._holdout is not None:
            parts = _learned(real, grid.scoring, self._holdout, 0)
            frames.append(in_columns(parts, _baseline("real rows"), grid, np.nan))
        save_frame(joined(frames), file)


@contextlib.contextmanager
def _called(setting: str) -> Iterator[None]:
    """Context that names the setting in errors of its fit.

    A MechanismError is raised again as `compare: SETTING: its text`.
    """
    try:
        yield
    except MechanismError as error:
        raise MechanismError(f"compare: {setting}: {error}") from error.__cause__


def _baseline(name: str) -> dict[str, Any]:
    """Return a dict of a tidy frame's entries on the baseline `name`: mechanism, stratification, epsilon, seed."""
    return {"mechanism": f"({name})", "stratification": BASELINE, "epsilon": np.inf, "seed": 0}


def scores(
    real: EncodedRows,
    made: EncodedRows,
    scoring: Scoring,
    holdout: EncodedRows | None,
    seed: int,
    numbers: tuple[RawNumbers, RawNumbers] | None = None,
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield (metric, frame) for every metric of a Scoring, of `made` rows against `real`, each `EncodedRows`.

    Frames are of everybody and groups. With a `holdout` these include models
    trained on `made` by `seed`, as `accuracy:forest`. `numbers` is the pair of RawNumbers of the real and the synthetic
    file; without them, as of a baseline, errors of numbers are those of the encoded ones.
    """
    pair = Pair.of(real, made, real.schema, scoring.by)
    work = workload_of(pair, scoring.k, scoring.cliques, None) if set(_WORKLOAD) & set(scoring.metrics) else None
    makers: dict[str, Callable[[Any], pd.DataFrame]] = {
        "workload_error": lambda work: workload_frame(pair, work),
        "k_marginal_score": lambda work: score_frame(pair, work),
        # everybody's alone: a thousand marginals for each group in every cell would be too many rows
        "clique_error": lambda work: _everybody(clique_frame(pair, work)),
        "parity_means": lambda _: _all(means_frame(pair, pair.variables(None), Weighting())),
        "parity_marginals": lambda work: _all(marginals_frame(pair, work, Weighting())),
    }
    for metric in scoring.metrics:
        if metric in makers and (metric != "parity_means" or pair.variables(None)):
            yield metric, makers[metric](work)
    for name, score in with_mean().items():
        if name in scoring.metrics:
            yield name, score.overall(score.of(pair), pair.by, pair.few)
    if "numbers" in scoring.metrics and numbers is None:
        yield from encoded_number_scores(real, made, scoring)
    elif "numbers" in scoring.metrics and numbers is not None:
        true, raw = numbers
        yield from number_scores(true, raw, real.schema, scoring)
    if "mean_disparity" in scoring.metrics:
        gaps = mean_disparity(real, made, real.schema, scoring.by)
        yield "mean_disparity", _of_no_group(gaps[gaps["variable"] == LARGEST].assign(scope=BETWEEN), scoring.by)
    for columns in scoring.parities:
        other = Pair.of(real, made, real.schema, columns)
        if other.variables(None):
            found = _all(means_frame(other, other.variables(None), Weighting()))
            yield f"parity_means:{' x '.join(columns)}", _of_no_group(found[found["scope"] == PARITY], scoring.by)
    if holdout is not None:
        yield from _learned(made, scoring, holdout, seed)


def _learned(
    train: EncodedRows, scoring: Scoring, holdout: EncodedRows, seed: int
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield (`metric:model`, frame) of `scoring`, for models trained on encoded rows, `train`, tested on `holdout`.

    Models and their samples are by `seed`.
    """
    assert scoring.target is not None  # noqa: S101 - with a hold-out there is one
    found = downstream(
        train,
        holdout,
        train.schema,
        target=scoring.target,
        by=scoring.by,
        positive=scoring.positive,
        above=scoring.above,
        models=scoring.models,
        most=MOST,
        seed=seed,
    )
    for (metric, model), frame in found.groupby(["metric", "model"], sort=False):
        yield f"{metric}:{model}", frame


def _everybody(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["scope"] == EVERYBODY]


def _all(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["variable"] == ALL]


def _of_no_group(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Copy of the frame in which the columns `by` are null: figures that compare or add up groups belong to none."""
    import pandas as pd

    found = frame.copy()
    for column in by:
        found[column] = pd.array([pd.NA] * len(found), "string")
    return found


def in_columns(
    parts: Iterator[tuple[str, pd.DataFrame]], facts: Mapping[str, Any], grid: Grid, seconds: float
) -> pd.DataFrame:
    """One frame of `parts`, pairs (metric, its frame of scores), in the columns of a grid's `comparison.parquet`.

    Each row also has `facts`, a mapping (mechanism, stratification, epsilon, seed), and the `seconds` of the fit.
    """
    return joined([_tidy(frame, {**facts, "metric": metric}, grid, seconds) for metric, frame in parts])


def _tidy(frame: pd.DataFrame, facts: Mapping[str, Any], grid: Grid, seconds: float) -> pd.DataFrame:
    """Return `frame`, of one metric, in the grid's columns, with labels of groups, `facts` and `seconds`.

    `facts` maps further columns to one value for all rows.
    """
    import pandas as pd

    found = frame.reset_index(drop=True)
    by = grid.by
    labels: Any = pd.NA
    if by:
        names = found[by[0]]
        for column in by[1:]:
            names = names + "|" + found[column]
        labels = names.where(found["scope"] == GROUP)
    stamp = "PUBLIC DATA" if grid.recipe.data.public else "INTERNAL"
    columns = {
        **facts,
        "scope": found["scope"],
        **{column: found[column] for column in by},
        "group": labels,
        "clique": found.get("clique", pd.NA),
        **{name: found[name] for name in ("value", "low", "high", "n", "status")},
        "stamp": stamp,
        "seconds": seconds,
    }
    tidy = pd.DataFrame(columns, index=found.index)
    texts = ("mechanism", "stratification", "metric", "scope", *by, "group", "clique", "status", "stamp")
    numbers = dict.fromkeys(("epsilon", "value", "low", "high", "seconds"), "float64")
    return tidy.astype({**dict.fromkeys(texts, "string"), **numbers, "seed": "int64", "n": "int64"})


def save_frame(frame: pd.DataFrame, file: Path) -> None:
    """Write a frame to the path `file`, as CSV or Parquet by its suffix, all or nothing; StratsynthError on failure."""
    frame = frame.copy(deep=False)
    frame.attrs = {}
    try:
        with new_file(file) as whole:
            if file.suffix == ".csv":
                frame.to_csv(whole, index=False, lineterminator="\n")
            else:
                frame.to_parquet(whole, index=False)
    except OSError as error:
        raise StratsynthError(
            f"{file} cannot be written ({error.strerror or type(error).__name__}). Run the same again when there is "
            "room, and it goes on from here."
        ) from None


def load_frame(file: Path) -> pd.DataFrame:
    """Return the frame of a cell computed before from its Parquet `file`; StratsynthError for a damaged one."""
    import pandas as pd

    try:
        return pd.read_parquet(file)
    except Exception as error:  # noqa: BLE001 - a damaged file raises whatever the reader likes to
        raise StratsynthError(
            f"{file} is damaged ({type(error).__name__}); restore it, or remove it to have it fitted, and charged, "
            "again."
        ) from None
