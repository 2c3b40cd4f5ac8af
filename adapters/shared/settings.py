"""Checks of predictors' settings against the schema: target column, design of the features, sampling rate.

Settings that several mechanisms have are checked once and kept as tuples, whichever class declares them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stratsynth.checks import is_list, is_texts
from stratsynth.errors import Unsupported, UsageError, nearest
from stratsynth.questions import Coded
from stratsynth.schema import Numeric

if TYPE_CHECKING:
    from stratsynth.mechanisms import Public
    from stratsynth.schema import Column

BATCH = 1024.0
"""Expected number of records in a step's sample, where samples are taken by default."""
UNDECLARED = 0.05
"""Rate of Poisson samples where neither it nor a size is declared."""


def check_target(settings: Any, groups: Sequence[str]) -> None:
    """Refuse (UsageError) settings whose target is no text, or is one of the features or of the columns `groups`."""
    if not isinstance(settings.target, str) or settings.target in (*settings.features, *groups):
        raise UsageError(f"{settings.name}: the target is one column, and neither a feature nor a group.")


def check_interactions(settings: Any) -> None:
    """Raise UsageError for `interactions` that are no list of pairs of texts; make them tuples in `settings`."""
    pairs = settings.interactions
    if not is_list(pairs) or not all(is_texts(pair) and len(pair) == 2 for pair in pairs):
        raise UsageError(f'{settings.name}: interactions is a list of pairs, such as [["AGEP", "SEX"]].')
    object.__setattr__(settings, "interactions", tuple(tuple(pair) for pair in pairs))


def check_sizes(settings: Any) -> None:
    """Raise UsageError for settings with public sizes and no citation of them, or a citation without sizes."""
    if not isinstance(settings.sizes_citation, str) or bool(settings.sizes) != bool(settings.sizes_citation):
        raise UsageError(f"{settings.name}: public sizes go with sizes_citation, which says where they were published.")


def check_columns(who: str, names: Iterable[str], public: Public) -> None:
    """Refuse (Unsupported on `who`) names that are neither columns of the public schema nor ones that define strata."""
    for name in names:
        if name not in public.schema.columns and name not in public.constant:
            raise Unsupported(f"{who}: column {name!r} is not in the schema{nearest(name, public.schema.columns)}.")


def target_of(
    who: str, named: str, taken: Collection[str], public: Public, fits: Callable[[Column], bool], what: str
) -> str:
    """Return the name of the target: as set, or the last column that fits and is not taken; or Unsupported.

    Args:
        who: The mechanism, for messages.
        named: The setting; empty where none is given.
        taken: The features and groups.
        public: Public facts of the fit.
        fits: Predicate: True if a column can be predicted.
        what: Such a column in words, as "a numeric column".
    """
    schema = public.schema
    if not named:
        free = [name for name, column in schema.columns.items() if fits(column) and name not in taken]
        if not free:
            raise Unsupported(f"{who}: the target must be {what}, and there is none left.")
        return free[-1]
    if named not in schema.columns:
        why = (
            "defines the strata"
            if named in public.constant
            else f"is not in the schema{nearest(named, schema.columns)}"
        )
        raise Unsupported(f"{who}: the target {named!r} {why}.")
    if not fits(schema.column(named)):
        raise Unsupported(f"{who}: the target must be {what}; {named} is none.")
    return named


def design_of(
    who: str,
    named: Sequence[str],
    target: str,
    groups: Collection[str],
    public: Public,
    reference: Mapping[str, str],
    interactions: Sequence[Sequence[str]] = (),
) -> Coded:
    """Return the `Coded` design of the features `named`, or of all public columns but target and groups.

    Errors open with `who`. A column of one level, and one that strata define, does not vary and is left out.
    `reference` maps columns to levels; UsageError for reference levels and `interactions`, pairs, of other columns.
    """
    schema = public.schema
    wanted = named or [name for name in schema.names if name not in groups]
    varies = {n for n, c in schema.columns.items() if isinstance(c, Numeric) or c.size > 1}
    columns = tuple(n for n in schema.names if n in wanted and n != target and n in varies)
    for name, level in reference.items():
        coded = name in columns and not isinstance(schema.column(name), Numeric)
        if name not in public.constant and not (coded and level in schema.levels(name)):
            raise UsageError(f"{who}: reference names {level!r} of {name!r}, which is no level of a feature.")
    for name in (name for pair in interactions for name in pair):
        if name not in columns and name not in public.constant:
            raise UsageError(f"{who}: interactions name {name!r}, which is not a feature.")
    return Coded(
        columns,
        reference=tuple((n, level) for n, level in reference.items() if n in columns),
        interactions=tuple((a, b) for a, b in interactions if a in columns and b in columns),
    )


def sampled(settings: Any, public: Public, *, by_default: bool) -> tuple[str, float, Coded, float | None]:
    """Return (target's name, sampling rate, `Coded` design, records times a row's weight or None) of a fit.

    The last is None if no size is declared. Where neither rate nor batch is set in `settings`, samples are taken if
    `by_default`, else all records, by `public` facts.
    """
    who, of = settings.name, "a categorical column of at least two levels"
    target = target_of(who, settings.target, (*settings.features, *settings.groups), public, several_levels, of)
    batch = BATCH if settings.batch is None and by_default else settings.batch
    sampling = sampling_of(who, settings.sampling, batch, public)
    design = design_of(
        who, settings.features, target, settings.groups, public, settings.reference, settings.interactions
    )
    records = None if public.size is None else float(public.size) * public.schema.row_weight.each
    return target, sampling, design, records


def several_levels(column: Column) -> bool:
    """Return True for a categorical column of at least two levels, a target of any classifier."""
    return not isinstance(column, Numeric) and column.size > 1


def two_levels(column: Column) -> bool:
    """Return True for a categorical column of exactly two levels."""
    return not isinstance(column, Numeric) and column.size == 2


def sampling_of(who: str, sampling: float | None, batch: float | None, public: Public) -> float:
    """Return a row's probability to be in a step's sample: `sampling`, or that of `batch` rows by public size.

    With neither it is 1; without a size `UNDECLARED`. Unsupported, said by the mechanism `who`, for strata that set
    `batch` alone.
    """
    if sampling is not None or batch is None:
        return 1.0 if sampling is None else sampling
    if public.constant:
        raise Unsupported(f"{who}: all strata are sampled at one rate; give it as sampling, such as sampling = 0.05.")
    if public.size is None:
        return UNDECLARED
    rows = public.size / (public.schema.row_weight.mean or 1.0)  # of weighted rows the size is a total
    return min(1.0, batch / max(rows, 1.0))
