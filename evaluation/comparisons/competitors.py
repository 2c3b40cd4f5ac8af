"""Mechanisms that a grid compares: named in a recipe with their settings, or objects of the caller's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from stratsynth.checks import flag
from stratsynth.errors import RecipeError, UsageError, nearest
from stratsynth.mechanisms import Mechanism, describe, make
from stratsynth.models.base import Returns
from stratsynth.strata.groups import Groups
from stratsynth.stratified import Groupwise, Stratified, makes_strata, stratify
from stratsynth.weights import Weights

Competitor: TypeAlias = "Mapping[str, Any] | Mechanism[Any]"
"""Name with settings, from a recipe; or a mechanism itself."""
MECHANISMS = "a list of names, or of tables with a name and settings, and `from_prior = true` to start from [prior]"
FROM_PRIOR = "from_prior"
"""Key of a mechanism in [compare] that starts from the recipe's prior."""
WITH_PRIOR = " with prior"
"""Ending of the label of such a mechanism."""


def labelled(mechanisms: Sequence[Any]) -> dict[str, Competitor]:
    """Mapping from label to one mapping of a mechanism's name and settings, from the list `mechanisms` in a recipe.

    An entry of the list is a name, or a mapping with "name". RecipeError for an entry without a name, a mechanism that
    is not installed, a label that is bad or there twice.
    """
    found: dict[str, Competitor] = {}
    for one in mechanisms:
        section = {"name": one} if isinstance(one, str) else dict(one) if isinstance(one, Mapping) else {}
        if not isinstance(section.get("name"), str):
            raise RecipeError(f"[compare] mechanisms is {MECHANISMS}.")
        started = section.pop(FROM_PRIOR, False)
        flag(f"[compare] mechanisms: {FROM_PRIOR}", started, error=RecipeError)
        label = section.pop("label", None) or (mechanism_label(section) + (WITH_PRIOR if started else ""))
        _check_label(label)
        if label in found:
            raise RecipeError(f"[compare] mechanisms: {label} is there twice; give one of them another label.")
        makes_strata(section["name"])  # refuses a mechanism that is not installed
        found[label] = {**section, FROM_PRIOR: True} if started else section
    return found


def from_prior(named: Mapping[str, Competitor]) -> tuple[dict[str, Competitor], frozenset[str]]:
    """Return (copy of the mapping `named` without the key `from_prior`, frozenset of labels of those that had it).

    `named` has Mechanisms, or their settings in a recipe, by label.
    """
    started = frozenset(label for label, one in named.items() if isinstance(one, Mapping) and FROM_PRIOR in one)
    plain: dict[str, Competitor] = {
        label: {key: value for key, value in one.items() if key != FROM_PRIOR} if isinstance(one, Mapping) else one
        for label, one in named.items()
    }
    return plain, started


def with_own(named: Mapping[str, Competitor], own: Mapping[str, Any]) -> dict[str, Competitor]:
    """Mapping from label to competitor: those `named` in a recipe, mostly mappings of settings, and the caller's `own`.

    `own` is a mapping from label to Mechanism object. UsageError for what is no mechanism; an error too for labels that
    are bad or taken.
    """
    found = dict(named)
    for label, mechanism in own.items():
        _check_label(label)
        if isinstance(mechanism, type) or not isinstance(mechanism, Mechanism):
            what = "a class" if isinstance(mechanism, type) else f"a {type(mechanism).__name__}"
            raise UsageError(
                f"compare: mechanisms[{label!r}] is {what}; give a mechanism such as MST(), or wrap a function from "
                "frame to frame: External.plain(function)."
            )
        if label in found:
            raise UsageError(f"compare: the recipe has a mechanism {label} too; give yours another label.")
        found[label] = mechanism
    return found


def _check_label(label: Any) -> None:
    if not isinstance(label, str) or not label or label.startswith("("):
        raise RecipeError("[compare] the label of a mechanism is a text that does not begin with a bracket.")


def mechanism_label(section: Mapping[str, Any]) -> str:
    """Text of `section`, a recipe's mapping of a mechanism's name and settings, such as `pooled (base mst)`."""
    settings = [f"{k} {mechanism_label(v) if isinstance(v, Mapping) else v}" for k, v in section.items() if k != "name"]
    name = str(section.get("name", ""))
    return f"{name} ({', '.join(settings)})".strip() if settings else name


def predicts(competitor: Competitor) -> bool:
    """True if a `competitor` of the grid releases predictions, not rows: it is audited on the hold-out.

    It is a Mechanism, or its settings in a recipe, a mapping with "name".
    """
    if isinstance(competitor, Mechanism):
        return competitor.returns == Returns.PREDICTIONS
    settings = dict(competitor)
    name = settings.pop("name")
    return not makes_strata(name) and make(name, settings).returns == Returns.PREDICTIONS


def stratifications(
    competitor: Competitor, by: tuple[str, ...], wanted: Sequence[tuple[str, ...]]
) -> Sequence[tuple[str, ...]]:
    """Sequence of tuples of columns that a `competitor` is stratified by in a grid: those `wanted`.

    It is a Mechanism, or its settings in a recipe, a mapping. One that makes strata has its own alone (an object) or
    `by`, the recipe's; a predictor only (): its groups are a setting.
    """
    if predicts(competitor):
        return ((),)
    if isinstance(competitor, Mechanism):
        return (tuple(competitor.by),) if isinstance(competitor, Groupwise) else wanted
    return (by,) if makes_strata(competitor["name"]) else wanted


def built(competitor: Competitor, by: tuple[str, ...], weights: Weights | None, groups: Groups) -> Mechanism[Any]:
    """Mechanism to fit for a `competitor`: stratified by the columns `by`, in Groups, if there are Weights.

    A competitor is a Mechanism, or its settings in a recipe, a mapping; an object that makes strata itself keeps its
    own. RecipeError for one of a recipe that makes strata, without weights; UsageError for mechanisms that release
    neither rows nor predictions.
    """
    if isinstance(competitor, Mechanism):
        how, name = competitor, competitor.name
        if weights is not None and not isinstance(how, Groupwise):
            how = Stratified(how, by, weights, groups)
    else:
        settings = dict(competitor)
        name = settings.pop("name")
        if weights is not None:
            how = stratify(name, settings, by, weights, groups)
        elif makes_strata(name):
            raise RecipeError(f"mechanism: {name} makes strata; add the sections [strata] and [weights].")
        else:
            how = make(name, settings)
    if how.returns not in (Returns.ROWS, Returns.PREDICTIONS):
        raise UsageError(f"[compare] {name} releases {how.returns}, no rows to score and no predictions; leave it out.")
    return how


def check_predictors(competitors: Mapping[str, Competitor], target: str | None) -> None:
    """Raise RecipeError for predictors without a hold-out or of another column, and a grid of predictors alone.

    Args:
        competitors: Mapping from label to a Mechanism, or to its settings in a recipe, a mapping.
        target: Column that is audited; None if nothing is predicted.
    """
    direct = {label: one for label, one in competitors.items() if predicts(one)}
    for label, one in direct.items():
        if target is None:
            raise RecipeError(
                f"[compare] {label} predicts: name the column as `target`, and real rows that nothing is fitted to as "
                "`holdout`; or leave it out of mechanisms."
            )
        own = described(one).get("target")
        if own != target:
            said = f"predicts {own}" if own else "names no target"
            raise RecipeError(f'[compare] {label} {said}, and {target} is audited; set target = "{target}" in it.')
    if len(direct) == len(competitors):
        raise RecipeError(
            "[compare] every mechanism predicts; add one that draws rows, such as mst, to compare them with."
        )


def described(competitor: Competitor) -> dict[str, Any]:
    """Return one flat mapping of a competitor's name and settings: plain values of a Mechanism, a copy of a mapping."""
    if isinstance(competitor, Mechanism):
        said = describe(competitor)
        return {"name": said["name"], **said["settings"]}
    return dict(competitor)


def inner_name(competitor: Competitor) -> str | None:
    """Name of the mechanism that a pooled competitor pools, "aim" by default; None for any competitor but "pooled".

    The competitor is a Mechanism, or its settings in a recipe, a mapping with "name".
    """
    if isinstance(competitor, Mechanism):
        base = getattr(competitor, "base", None) if competitor.name == "pooled" else None
        return base.name if isinstance(base, Mechanism) else None
    if competitor.get("name") != "pooled":
        return None
    base = competitor.get("base", "aim")
    return str(base if isinstance(base, str) else base.get("name"))


def check_pairs(said: Any, known: Sequence[str]) -> None:
    """Raise RecipeError unless `said`, a recipe's `pairs`, is a list of pairs of different names, all `known`.

    `known` are the names of settings.
    """
    if not isinstance(said, list) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 and pair[0] != pair[1] for pair in said
    ):
        raise RecipeError('[compare] pairs must be a list of two settings each, as in ["mst, vanilla", "mst by SEX"].')
    for name in (name for pair in said for name in pair):
        if name not in known:
            hint = nearest(str(name), known)
            raise RecipeError(f"[compare] pairs: there is no setting {name!r}{hint}. There are: {'; '.join(known)}.")
