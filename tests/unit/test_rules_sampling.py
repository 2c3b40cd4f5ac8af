"""No sample breaks a structural rule, whatever the model knows of rules, and shares stay as they are."""

import numpy as np
import pandas as pd
import pytest

import stratsynth as ss
from stratsynth.errors import MechanismError
from stratsynth.mechanisms import make
from stratsynth.models.rules import broken, draw_allowed
from stratsynth.noise import SeededEntropy
from stratsynth.schema import Categorical, Rule, Schema

LEVELS = {"GROUP": ("1", "2"), "AGE": ("child", "adult", "old"), "MAR": ("never", "married"), "JOB": ("N", "yes", "no")}
RULES = (
    Rule(when={"AGE": "child"}, never={"MAR": ("married",), "JOB": ("yes", "no")}),
    Rule(when={"AGE": ("adult", "old")}, never={"JOB": "N"}),
    Rule(when={"GROUP": "2"}, never={"MAR": "married"}),
)
SCHEMA = Schema({name: Categorical(levels=levels) for name, levels in LEVELS.items()}, rules=RULES)
SHARES = pd.DataFrame({"GROUP": ["1", "2"], "share": [0.9, 0.1]})


def people(n):
    rng = np.random.default_rng(0)
    age = rng.choice(LEVELS["AGE"], n)
    group = rng.choice(["1", "2"], n, p=[0.9, 0.1])
    child = age == "child"
    married = (rng.random(n) < 0.6) & ~child & (group == "1")
    job = np.where(child, "N", np.where(rng.random(n) < 0.7, "yes", "no"))
    return pd.DataFrame({"GROUP": group, "AGE": age, "MAR": np.where(married, "married", "never"), "JOB": job})


def is_broken(table):
    child, second = table["AGE"] == "child", table["GROUP"] == "2"
    return (
        (child & (table["MAR"] == "married"))
        | (child != (table["JOB"] == "N"))
        | (second & (table["MAR"] == "married"))
    )


@pytest.mark.parametrize("name", ["independent", "mst"])
@pytest.mark.parametrize("stratified", [False, True], ids=["vanilla", "stratified"])
@pytest.mark.parametrize("n", [0, 3_000], ids=["nobody", "people"])
def test_no_row_breaks_a_rule(name, stratified, n):
    how = make(name, {})
    if stratified:
        how = ss.Stratified(how, ["GROUP"], ss.Weights.public(SHARES, citation="made up"))
    table = ss.open_table(people(n), schema=SCHEMA, declared_size=3_000)
    release = ss.fit(how, table, ss.Budget(1, 1e-9, first=0), seed=0, entropy=SeededEntropy(3))
    rows = release.sample(5_000, seed=1)
    assert len(rows) == 5_000
    assert not is_broken(rows).any()
    if stratified:
        assert (rows["GROUP"] == "1").sum() == 4_500
    if n:  # where nobody was, noise may leave no weight for children
        children = release.sample(200, seed=1, where={"AGE": "child"})
        assert (children["AGE"] == "child").sum() == 200
        assert not is_broken(children).any()


def test_drawing_again_is_conditioning():
    """The frequencies are those of the model given that no rule is broken."""
    rng = np.random.default_rng(0)

    def draw(n, _):
        return {name: rng.integers(0, len(levels), n) for name, levels in LEVELS.items()}

    rows = draw_allowed(SCHEMA, 30_000, rng, draw)
    assert not broken(SCHEMA, rows).any()
    cells = np.ravel_multi_index([rows[name] for name in LEVELS], [len(v) for v in LEVELS.values()])
    seen = np.bincount(cells, minlength=2 * 3 * 2 * 3)
    allowed = seen[seen > 0]
    # two groups of children; two ages of the first group, married or not, with or without work; the second unmarried
    assert len(allowed) == 2 + 2 * 2 * 2 + 2 * 2
    expected = 30_000 / len(allowed)
    assert ((allowed - expected) ** 2 / expected).sum() < 60


def test_what_no_drawing_finds_is_mended():
    rng = np.random.default_rng(0)

    def stubborn(n, _):  # a model that only knows married children
        zero = np.zeros(n, dtype=np.int64)
        return {"GROUP": zero.copy(), "AGE": zero.copy(), "MAR": zero + 1, "JOB": zero + 1}

    rows = draw_allowed(SCHEMA, 500, rng, stubborn, fixed={"GROUP"})
    assert not broken(SCHEMA, rows).any()
    assert not rows["GROUP"].any()


def test_rules_that_no_row_can_keep_are_refused():
    rng = np.random.default_rng(0)

    def children(n, _):
        zero = np.zeros(n, dtype=np.int64)
        return {"GROUP": zero.copy(), "AGE": zero.copy(), "MAR": zero + 1, "JOB": zero.copy()}

    with pytest.raises(MechanismError, match="no row"):
        draw_allowed(SCHEMA, 5, rng, children, fixed={"AGE", "MAR"})
