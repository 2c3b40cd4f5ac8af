"""Settings that are declared with their ranges: what is accepted, refused and kept, and what is said of them."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from functools import partial
from typing import ClassVar, Literal

import numpy as np
import pytest

from helpers import small
from helpers.command import stratsynth
from stratsynth.adapters import (
    AIM,
    GEM,
    MST,
    ClippedMean,
    CoinPress,
    DPFermi,
    External,
    FairSGD,
    Fixed,
    GroupRegression,
    OutputPerturbation,
    Pooled,
    Reductions,
)
from stratsynth.checks import check_integer, flag, is_list, number, one_of
from stratsynth.errors import Unsupported, UsageError
from stratsynth.mechanisms import Mechanism, load
from stratsynth.mechanisms.documented import documented, listed
from stratsynth.models import Returns
from stratsynth.settings import KEY, at

NEEDED = {
    Pooled: {"by": ["SEX"], "weights": small.even(small.SCHEMA, "SEX")},
    External: {"synthesizer": small.people, "by": "its author"},
}
share, part = partial(number, above=0, below=1), partial(number, least=0, most=1)
positive = partial(number, above=0, most=1e6)
prior = partial(number, least=0, most=1e6)
sampling = partial(number, above=0, most=1, optional=True)
cells = partial(check_integer, least=1, most=2**24)
box = partial(one_of, known=("box", "ball"))
steady = partial(number, least=0, below=1)


def each_of(what, value, check, fewest=0, most=math.inf):
    """A list of values that pass a check."""
    if not is_list(value) or not fewest <= len(value) <= most:
        raise UsageError(what)
    for each in value:
        check(what, each)


def tabled(what, value, check):
    """A table of values that pass a check."""
    if not isinstance(value, Mapping):
        raise UsageError(what)
    for each in value.values():
        check(what, each)


def words_of(check):
    """The words that a check lets pass."""
    return check.keywords.get("known", ()) if isinstance(check, partial) else ()


def auto(what, value):
    """A part, or one word."""
    if value != "auto":
        part(what, value)


SETTINGS = {
    MST: {
        "engine": partial(one_of, known=("numpy", "mbi")),
        "iterations": partial(check_integer, least=1),
        "rare": partial(number, least=0),
        "prior": prior,
    },
    AIM: {
        "engine": partial(one_of, known=("numpy", "mbi")),
        "model_cells": cells,
        "iterations": cells,
        "rounds": partial(cells, optional=True),
        "clique_cells": partial(cells, optional=True),
        "prior": prior,
    },
    GEM: {
        "measure": partial(one_of, known=("marginals", "cells")),
        "generator": partial(one_of, known=("network", "table")),
        "hidden": partial(each_of, check=partial(check_integer, least=1, most=2**16), fewest=1),
        "components": partial(check_integer, least=1, most=2**16),
        "latent": partial(check_integer, least=1, most=2**16),
        "iterations": partial(check_integer, least=1, most=2**16),
        "rounds": partial(check_integer, least=1, most=2**16, optional=True),
        "least": partial(number, least=0),
        "rate": partial(number, above=0, most=10, optional=True),
    },
    Fixed: {
        "engine": partial(one_of, known=("numpy", "mbi")),
        "errors": partial(one_of, known=("squared", "absolute")),
        "prior": prior,
        "iterations": partial(check_integer, least=1),
        "model_cells": cells,
    },
    Pooled: {"share": auto, "prior": prior},
    External: {"rows": partial(check_integer, least=1, optional=True)},
    ClippedMean: {
        "count": partial(one_of, known=("noisy", "declared")),
        "variance": partial(one_of, known=("bought", "bounded")),
        "gamma": share,
        "tail": partial(one_of, known=("gaussian", "paper")),
    },
    CoinPress: {
        "count": partial(one_of, known=("noisy", "declared")),
        "variance": partial(one_of, known=("bought", "bounded")),
        "beta": share,
        "tail": partial(one_of, known=("coinpress", "exact")),
        "joint": flag,
        "shares": partial(each_of, check=partial(number, least=1e-6, most=1e6), fewest=1, most=20),
    },
    GroupRegression: {
        "mode": partial(one_of, known=("DPNoSE",)),
        "region": box,
        "iterations": partial(check_integer, least=1, most=10_000, optional=True),
        "hidden": partial(check_integer, least=1, most=1024),
        "sharpness": positive,
        "multiplier": positive,
        "loss_clip": positive,
        "rate": partial(positive, optional=True),
        "clip": partial(positive, optional=True),
        "radius": partial(number, above=0, most=1000),
        "momentum": steady,
        "tail": part,
        "count_share": share,
        "stage_one": partial(steady, optional=True),
        "most_weight": partial(number, least=1, most=1e9),
    },
    DPFermi: {
        "criterion": partial(one_of, known=("parity", "odds")),
        "odds_weights": partial(one_of, known=("alike", "shares")),
        "protect": partial(one_of, known=("all", "sensitive")),
        "region": box,
        "iterations": partial(check_integer, least=1, most=100_000, optional=True),
        "gap": partial(number, least=0, most=1, optional=True),
        "thresholds": flag,
        "penalty": partial(number, least=0, most=1000, optional=True),
        "batch": partial(number, least=1, most=1e12, optional=True),
        "sampling": sampling,
        "clip": partial(positive, optional=True),
        "ascent": positive,
        "rate": partial(positive, optional=True),
        "adversary_radius": partial(positive, optional=True),
        "adversary_share": partial(number, least=1e-6, most=1 - 1e-6),
        "momentum": partial(steady, optional=True),
        "radius": partial(number, above=0, most=1000),
        "warm_up": part,
        "tail": part,
        "hidden": partial(each_of, check=partial(check_integer, least=1, most=2**16)),
    },
    FairSGD: {
        "model": partial(one_of, known=("logistic", "network")),
        "hidden": partial(check_integer, least=1, most=1024),
        "mitigation": partial(one_of, known=("surrogate", "group_clip", "global_adapt", "none")),
        "scaling": partial(one_of, known=("bounds",)),
        "region": box,
        "iterations": partial(check_integer, least=1, most=100_000, optional=True),
        "gamma1": partial(number, least=0, most=1000),
        "gamma2": partial(number, least=0, most=1000),
        "batch": partial(number, least=1, most=1e12, optional=True),
        "sampling": sampling,
        "rate": partial(positive, optional=True),
        "clip": partial(positive, optional=True),
        "clip_rate": share,
        "most_clip": partial(number, least=1, most=1e6),
        "statistics_share": partial(number, least=1e-6, most=1 - 1e-6),
        "memory": steady,
        "most_weight": positive,
        "momentum": partial(steady, optional=True),
        "radius": partial(number, above=0, most=1000),
        "tail": part,
    },
    OutputPerturbation: {
        "model": partial(one_of, known=("logistic", "linear")),
        "objective": partial(one_of, known=("pooled", "balanced")),
        "count_share": share,
        "strength": partial(number, above=0, most=1e12, optional=True),
        "clip": partial(positive, optional=True),
    },
    Reductions: {
        "versus": partial(one_of, known=("pairs", "overall")),
        "method": partial(one_of, known=("frank_wolfe", "sampling")),
        "oracle": partial(one_of, known=("gradient", "exponential")),
        "candidates": partial(one_of, known=("pool", "net", "thresholds")),
        "mixing": partial(one_of, known=("corrected", "classic")),
        "smoothing": partial(one_of, known=("moreau", "softmax", "none")),
        "deterministic": flag,
        "number": partial(check_integer, least=2, most=10_000),
        "iterations": partial(check_integer, least=1, most=1000),
        "inner_steps": partial(check_integer, least=1, most=1000),
        "start_steps": partial(check_integer, least=1, most=1000),
        "start_share": share,
        "loss_share": share,
        "count_share": share,
        **dict.fromkeys(("spread", "tolerance", "smoothness", "floor"), partial(number, least=1e-4, most=100)),
        **dict.fromkeys(("rate", "clip", "multiplier"), partial(positive, optional=True)),
        "loss_clip": partial(number, least=0.1, most=20),
        "radius": partial(number, above=0, most=1000),
        "momentum": steady,
        "least": partial(number, least=1, most=1e12),
    },
}
"""Each setting with its check, written down a second time."""
ENDS = [
    *(sign * end for end in (0, 1, 2, 10, 20, 100, 1000, 1024, 10_000, 100_000, 2**16, 2**24) for sign in (1, -1)),
    *(0.0, 0.5, 0.1, 1.0, 1e-6, 1 - 1e-6, 1e-4, 10.0, 20.0, 100.0, 1000.0, 1e6, 1e9, 1e12, 1e308, 5e-324),
]
VALUES = [
    *ENDS,
    *(end + 1 for end in ENDS if isinstance(end, int)),
    *(math.nextafter(end, to) for end in ENDS if isinstance(end, float) for to in (-math.inf, math.inf)),
    *(math.nan, math.inf, -math.inf, 10**400, True, False, None, np.int64(3), np.float64(0.5), np.float32(0.5)),
    *(np.bool_(True), np.float64("nan"), Fraction(1, 2), 1j, b"1", object(), {}),
    *([], (), [1], (1, 2), [0], [0.5], ["1"]),
    *([True], [math.nan], [1.0] * 20, [1.0] * 21, [1e-7], [2**16], [2**16 + 1], range(1, 3), np.array([1, 2]), "12"),
    *("", "auto", "Numpy", "nonsense", "smooth", "dpsgd_f", "groups"),
    *sorted({word for some in SETTINGS.values() for check in some.values() for word in words_of(check)}),
]
"""Values at, just inside and just outside of all ends, and values of other types."""


def accepted(call):
    """True where a call refuses nothing."""
    try:
        call()
    except UsageError:
        return False
    return True


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, some in SETTINGS.items() for name in some])
def test_a_setting_accepts_its_range_and_nothing_else(kind, name):
    check, taken = SETTINGS[kind][name], 0
    for value in VALUES:
        if isinstance(value, np.ndarray) and check is auto:
            continue  # equals a word element by element
        given = {**NEEDED.get(kind, {}), name: value}
        sound = accepted(lambda value=value: check("x", value))
        assert accepted(lambda given=given: kind(**given)) == sound, value
        if sound:
            kept = getattr(kind(**given), name)
            plain = float(value) if type(value) is np.float64 else value  # certificates hold no numbers of numpy
            assert kept == tuple(value) if is_list(value) else kept is value or kept == plain
            assert type(kept) is not np.float64
        taken += sound
    assert taken


@pytest.mark.parametrize("kind", [GroupRegression, DPFermi, Reductions])
def test_public_sizes_are_a_table_of_numbers(kind):
    least = {"least": 0, "most": 1e15} if kind is Reductions else {"above": 0}
    tables = [{"F": value} for value in VALUES] + [[("F", 1)], None, 3, "F", {1: 1}, {"": 2, "F": -1}]
    for table in tables:
        found = accepted(lambda table=table: kind(sizes=table, sizes_citation="made up"))
        assert found == accepted(lambda table=table: tabled("x", table, partial(number, **least))), table


@pytest.mark.parametrize("kind", [DPFermi, FairSGD, OutputPerturbation, Reductions, ClippedMean, CoinPress])
def test_names_of_columns_are_different_texts_kept_as_a_tuple(kind):
    key = "columns" if kind in (ClippedMean, CoinPress) else "features"
    assert getattr(kind(**{key: ["A", "B"]}), key) == ("A", "B")
    for value in (["A", "A"], "AB", [1], None, {"A"}, [None], 3):
        with pytest.raises(UsageError, match=f"^{kind.name}: {key} must be a list of different column names, such as"):
            kind(**{key: value})


MESSAGES = [
    (lambda: MST(iterations=0), "mst: iterations must be a whole number of at least 1, not 0."),
    (lambda: Reductions(number=1), "reductions: number must be a whole number from 2 to 10,000, not 1."),
    (lambda: GEM(rate=0), "gem: rate must be a number above 0 and at most 10, not 0."),
    (lambda: GEM(hidden=[64, 0]), "gem: hidden must be a whole number from 1 to 65,536, not 0."),
    (lambda: GEM(hidden=8), "gem: hidden must be a list of whole numbers from 1 to 65,536, at least 1 of them, not 8."),
    (lambda: GEM(hidden=[]), "gem: hidden must be a list of whole numbers from 1 to 65,536, at least 1 of them."),
    (lambda: CoinPress(shares=()), "coinpress: shares must be a list of numbers from 1e-06 to 1e+06, 1 to 20 of them."),
    (lambda: DPFermi(sizes={"F": 0}), "fermi: sizes of F must be a number above 0, not 0."),
    (lambda: DPFermi(sizes=3), "fermi: sizes must be a table, not 3."),
    (
        lambda: Pooled(share=2, **NEEDED[Pooled]),
        'pooled: share must be a number from 0 to 1, or "auto", not 2.',
    ),
    (lambda: MST(engine="jax"), 'mst: engine must be "numpy" or "mbi", not \'jax\'.'),
]


@pytest.mark.parametrize(("make", "message"), MESSAGES, ids=[message for _, message in MESSAGES])
def test_a_refusal_names_the_setting_its_range_and_the_value(make, message):
    with pytest.raises(UsageError) as refused:
        make()
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: FairSGD(mitigation="paper"), 'fair_sgd: mitigation = "paper" is not private: the paper\'s penalty'),
        (lambda: FairSGD(scaling="groups"), 'fair_sgd: scaling = "groups" is not offered: it would bring each group'),
        (lambda: GroupRegression(accounting="smooth"), 'group_regression: accounting = "smooth" is not private: Algo'),
    ],
)
def test_what_is_not_private_is_refused_with_the_reason(make, reason):
    with pytest.raises(Unsupported) as refused:
        make()
    assert str(refused.value).startswith(reason)
    assert str(refused.value).endswith(".")


def test_a_mechanism_of_ones_own_declares_its_settings():
    @dataclass(frozen=True)
    class Own(Mechanism):
        name: ClassVar[str] = "own"
        needs: ClassVar = frozenset()
        returns: ClassVar = Returns.ROWS
        rate: float | None = at(None, above=0)
        words: Literal["a", "b"] = at("a")
        widths: Sequence[int] = at((1,), least=1)
        table: Mapping[str, float] = at({}, most=1)
        free: object = None

        def price(self, public, budget):
            return budget.zcdp()

        def steps(self, public, allot, rng):
            yield from ()

    assert Own().table == {}
    assert Own().table is not Own().table
    assert hash(Own(table={"x": 0.5})) == hash(Own())
    assert Own(widths=[3, 4], free=[1]).widths == (3, 4)
    for wrong in ({"rate": 0}, {"words": "c"}, {"widths": [0]}, {"widths": 3}, {"table": {"x": 2}}):
        with pytest.raises(UsageError, match=f"^own: {next(iter(wrong))} "):
            Own(**wrong)


def test_every_setting_is_listed_for_programs(tmp_path):
    done = stratsynth("mechanisms", "--json", cwd=tmp_path)
    found = {m["name"]: m["settings"] for m in json.loads(done.stdout)}
    for name, settings in found.items():
        kind = load(name)
        own = {each.name: each for each in fields(kind) if each.init}
        assert [setting["name"] for setting in settings] == list(own)
        for setting in settings:
            field = own[setting["name"]]
            assert setting["type"]
            assert setting["description"] == documented(kind, field.name)[1] != ""
            assert ("default" in setting) == (field.default is not MISSING or field.default_factory is not MISSING)
            assert setting.get("range", {}) == (field.metadata[KEY].ends if KEY in field.metadata else {})
    rate = {setting["name"]: setting for setting in found["gem"]}["rate"]
    assert {key: rate[key] for key in ("type", "default", "range")} == {
        "type": "number",
        "default": None,
        "range": {"above": 0, "most": 10},
    }
    smoothing = {setting["name"]: setting for setting in found["reductions"]}["smoothing"]
    assert smoothing["choices"] == ["moreau", "softmax", "none"]


def test_settings_of_any_class_are_listed():
    @dataclass(frozen=True)
    class Odd:
        needed: "Nowhere"  # noqa: F821
        numbers: complex = 1j
        words: Literal["a"] | None = at(None)
        widths: Sequence[int] = at((1,), least=1, length=(1, 3))

    assert listed(Odd) == [
        {"name": "needed", "type": "Nowhere", "description": ""},
        {"name": "numbers", "type": "complex", "default": "1j", "description": ""},
        {"name": "words", "type": '"a"', "choices": ["a"], "default": None, "description": ""},
        {
            "name": "widths",
            "type": "list of whole numbers",
            "default": [1],
            "range": {"least": 1},
            "length": [1, 3],
            "description": "",
        },
    ]
    assert listed(int) == []


def test_the_declared_settings_are_those_that_are_tested_here():
    free = {"sizes", "sizes_citation", "reference", "features", "groups", "columns", "group_weights", "loss_bounds"}
    free |= {"accounting", "model", "objective", "constraints", "count_share", "variance_share", "importance", "image"}
    for kind, tested in SETTINGS.items():
        declared = {each.name for each in fields(kind) if KEY in each.metadata}
        assert declared - free == set(tested) - free
