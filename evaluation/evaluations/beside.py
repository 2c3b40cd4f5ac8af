"""INTERNAL. Scores common to a release and everything it is compared with: other releases and baselines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from stratsynth.evaluation.scores.baseline import MEANINGS, RELEASE, SUBSAMPLE
from stratsynth.evaluation.scores.chance import Chance, chance
from stratsynth.evaluation.scores.parity import Weighting, marginals_frame, means_frame
from stratsynth.evaluation.scores.workload import clique_frame, score_frame, workload_frame, workload_of
from stratsynth.evaluation.tables import EncodedRows, Pair, named

if TYPE_CHECKING:
    import pandas as pd

    from stratsynth.schema import Schema


def compared_scores(
    real: EncodedRows, compared: Mapping[str, EncodedRows], pair: Pair, k: int, cliques: int | None
) -> tuple[dict[str, list[pd.DataFrame]], Chance]:
    """Return (mapping from score's name to a list of frames, one a table of `compared` and baseline; Chance).

    `compared` maps names to EncodedRows, the release among them, scored against `real` by the groups of `pair`. `k` is
    the width of marginals, `cliques` their largest number, None for all; the subsample's scores are means over draws.
    """

    def scores(table: EncodedRows, *, single: bool = False, draw: bool = False) -> dict[str, pd.DataFrame]:
        here = Pair.of(real, table, pair.schema, pair.by, pair.few)
        work = workload_of(here, k, cliques, None, errors_of_means=not draw)
        frames = {"workload": workload_frame(here, work), "score": score_frame(here, work)}
        if single:
            frames["cliques"] = clique_frame(here, work)
        if pair.by:
            frames["parity_marginals"] = marginals_frame(here, work, Weighting())
        if pair.by and pair.variables(None):
            frames["parity_means"] = means_frame(here, pair.variables(None), Weighting())
        return frames

    every: dict[str, Mapping[str, pd.DataFrame]] = {
        name: scores(table, single=name == RELEASE) for name, table in compared.items()
    }
    alone = chance(real, compared[RELEASE].rows, partial(scores, draw=True), every[RELEASE]["workload"])
    found: dict[str, list[pd.DataFrame]] = {}
    every = dict(_with_chance(every, alone))
    for name, frames in every.items():
        for what, frame in frames.items():
            found.setdefault(what, []).append(named(frame, name))
    return found, alone


def _with_chance(
    every: Mapping[str, Mapping[str, pd.DataFrame]], alone: Chance
) -> Iterator[tuple[str, Mapping[str, pd.DataFrame]]]:
    """Yield (table's name, its frames by score): the release and others, the subsample, then further baselines.

    `every` maps the names of all but the subsample to mappings from score to frame; `alone` is the Chance of that one.
    """
    yield from ((name, frames) for name, frames in every.items() if name == RELEASE or name not in MEANINGS)
    yield SUBSAMPLE, alone.frames
    yield from ((name, frames) for name, frames in every.items() if name != RELEASE and name in MEANINGS)


def area_scores(
    real: EncodedRows,
    compared: Mapping[str, EncodedRows],
    schema: Schema,
    area: str,
    k: int,
    cliques: int | None,
    few: int,
) -> Iterator[pd.DataFrame]:
    """Yield frames of the k-marginal score by level of the column `area`: one each for `compared`, baselines, chance.

    `compared` maps names to encoded rows, scored against `real`; at most `cliques` marginals of the schema are used,
    and an area of fewer than `few` rows is small.
    """

    def scores(table: EncodedRows) -> dict[str, pd.DataFrame]:
        pair = Pair.of(real, table, schema, area, few)
        work = workload_of(pair, k, cliques, None)
        return {"workload": workload_frame(pair, work), "score": score_frame(pair, work)}

    every = {name: scores(table) for name, table in compared.items()}
    alone = chance(real, compared[RELEASE].rows, scores, every[RELEASE]["workload"])
    for name, frames in _with_chance(every, alone):
        yield named(frames["score"], name)
