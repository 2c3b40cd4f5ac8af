"""The lens on tables: parts of known causes, twins without noise, and parts that add up to other fits' errors."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from helpers.regressing import SCHEMA as PREDICTED
from helpers.regressing import people
from stratsynth import Budget, Categorical, Numeric, Schema, Stratified, Weights, census, open_table
from stratsynth.errors import Unsupported, UsageError
from stratsynth.evaluation.lens import predictors, tables
from stratsynth.evaluation.lens.outside import as_written
from stratsynth.evaluation.lens.scores import lens
from stratsynth.evaluation.lens.twins import fit_internal
from stratsynth.evaluation.tables import EncodedRows
from stratsynth.mechanisms import make, prepare
from stratsynth.models.rules import broken
from stratsynth.schema.rules import Rule
from stratsynth.strata import crossing

SCHEMA = Schema({"G": Categorical(levels=("a", "b")), "X": Categorical(levels=("p", "q", "r"))})


def rows(a, b):
    """So many rows of each level of X, in either group."""
    counts = np.array([a, b]).ravel()
    group, x = np.repeat(np.arange(2), [sum(a), sum(b)]), np.repeat(np.tile(np.arange(3), 2), counts)
    return EncodedRows(SCHEMA, {"G": group, "X": x}, {}, len(x))


REAL = rows([60, 30, 10], [10, 20, 70])


def chain(*given):
    """Written, real, noiseless, model, ruled, release; the last one stands for all that are not given."""
    return tables.TableChain(*given, *[given[-1]] * (6 - len(given)))


def parts(*given, by=("G",)):
    found = tables.split(chain(*given), by, 1)
    assert list(found.parts) == list(tables.PARTS)
    assert np.allclose(sum(found.parts.values()), found.error, equal_nan=True)
    return found


def test_groups_of_another_size_are_weights():
    other = rows([180, 90, 30], [10, 20, 70])  # group a three times as large
    found = parts(REAL, REAL, other)
    assert found.parts["weights"] == pytest.approx([0.25, 0.25, found.error[2]])  # shares .75 and .25 for .5
    assert found.parts["misfit"] == pytest.approx(np.zeros(3), abs=1e-12)
    assert found.error[2] == pytest.approx(0.5 * (abs(0.475 - 0.35) + abs(0.275 - 0.25) + abs(0.25 - 0.4)))


STEPS = [(1, "schema"), (2, "misfit"), (3, "noise"), (4, "rules"), (5, "sampling")]


@pytest.mark.parametrize(("at", "part"), STEPS)
def test_a_step_that_changes_a_groups_shape_is_its_part(at, part):
    other = rows([40, 30, 30], [10, 20, 70])
    found = parts(*[REAL] * at, other)
    assert found.parts[part] == pytest.approx([0.2, 0.0, 0.1])
    assert found.error == pytest.approx([0.2, 0.0, 0.1])


def test_parts_that_make_up_for_others_are_negative():
    there, back = rows([30, 30, 40], [10, 20, 70]), rows([50, 30, 20], [10, 20, 70])
    found = parts(REAL, REAL, there, back)
    assert found.parts["misfit"][0] == pytest.approx(0.3)
    assert found.parts["noise"][0] == pytest.approx(-0.2)
    assert found.error[0] == pytest.approx(0.1)


def test_a_group_without_real_rows_is_not_estimable():
    real = rows([60, 30, 10], [0, 0, 0])
    found = tables.split(chain(real, real, REAL), ("G",), 1)
    assert np.isnan(found.error[1])
    assert found.error[2] > 0


def test_without_groups_there_is_everybody_alone():
    found = parts(REAL, REAL, rows([40, 30, 30], [10, 20, 70]), by=())
    assert found.error == pytest.approx([0.05])


def test_values_outside_the_schema_are_a_part_of_their_own():
    """Ten rows of group a were clipped to the last level, and twenty of group b left out."""
    written = rows([60, 30, 10], [10, 20, 70])
    written.codes["X"][90:100] = 3
    written.codes["X"][-20:] = 3
    real = rows([60, 30, 10], [10, 20, 50])
    found = parts(written, real)
    shares = np.array([[60, 30, 0, 10], [10, 20, 50, 20]]) / 200, np.array([[60, 30, 10, 0], [10, 20, 50, 0]]) / 180
    by_hand = np.abs(shares[1] - shares[0]).sum(axis=1) / 2 / shares[0].sum(axis=1)
    assert found.error[:2] == pytest.approx(by_hand)
    assert found.parts["schema"] == pytest.approx(found.error)


def test_a_group_outside_the_schema_counts_for_everybody_alone():
    written = rows([60, 30, 10], [10, 20, 70])
    written.codes["G"][:10] = 2
    found = parts(written, REAL)
    assert found.error[1] == 0
    assert found.parts["schema"][0] > 0
    assert found.error[2] == 0  # every value of X is there


def test_whole_rows_for_a_group_are_rounding():
    """Group a is due half of the rows and has three quarters of them, which are drawn as well as can be."""
    found = parts(REAL, REAL, REAL, REAL, REAL, rows([18, 9, 3], [1, 2, 7]))
    assert found.parts["rounding"] == pytest.approx([0.25, 0.25, found.error[2]])
    assert found.parts["sampling"] == pytest.approx(np.zeros(3), abs=1e-12)
    gone = parts(REAL, REAL, REAL, REAL, REAL, rows([18, 9, 3], [0, 0, 0]))
    assert gone.parts["rounding"][1] == pytest.approx(0.5) == gone.error[1]  # half of what is there


def test_rows_as_written_tell_what_a_schema_does_to_them(tmp_path):
    schema = Schema(
        {
            "A": Categorical(levels=("x", "y"), outside="y"),
            "B": Categorical(levels=("x", "y"), outside="missing"),
            "C": Categorical(levels=("1", "2")),
            "N": Numeric(lower=0, upper=10, bins=2),
            "M": Numeric(lower=0, upper=10, bins=2, outside="missing"),
        }
    )
    path = tmp_path / "people.csv"
    path.write_text("A,B,C,N,M\nx,x,1,5,5\nz,,2,11,-1\ny,z,3,0,\ny,y,2.0,,10\n", encoding="utf-8")
    found = as_written(path, schema)
    assert found.rows == 4
    out = {name: [int(code) == schema.size(name) for code in codes] for name, codes in found.codes.items()}
    assert out == {
        "A": [False, True, False, False],
        "B": [False, False, True, False],
        "C": [False, False, True, False],
        "N": [False, True, False, True],
        "M": [False, True, False, False],
    }
    real = EncodedRows.read(path, schema)  # the last two rows are left out
    assert real.rows == 2
    for name in schema.names:
        own = found.codes[name][:2]
        inside = own < schema.size(name)
        assert (own[inside] == real.codes[name][inside]).all()


@pytest.mark.parametrize("strata", [False, True])
def test_what_is_drawn_without_rules_breaks_them(strata):
    rule = Rule(when={"MAR": "1"}, never={"DIS": "1"})
    plain = census.schema().restrict(("SEX", "MAR", "DIS"))
    schema = Schema(plain.columns, rules=(rule,))
    frame = census.make(500)[list(schema.names)]
    how = make("independent", {})
    if strata:
        how = Stratified(how, ["SEX"], Weights.public(census.shares(("SEX",)), citation="the built-in census"))
    table = open_table(frame, schema=schema, declared_size=500)
    model = fit_internal(prepare(how, schema, Budget(1, 1e-6), 500), table, noise=False, seed=0).model
    free, ruled = (tables.drawn(model, 2000, 0, rules=rules) for rules in (False, True))
    assert broken(schema, free.codes).mean() > 0.01
    assert not broken(schema, ruled.codes).any()


TINY = {"aim": {"rounds": 2}, "gem": {"components": 4, "hidden": [3], "latent": 2, "iterations": 1, "rounds": 2}}


@pytest.mark.parametrize("name", ["independent", "mst", "aim", "gem"])
def test_a_twin_without_noise_is_told_the_truth_and_believes_it_noisy(name):
    schema = census.schema().restrict(("SEX", "MAR", "DIS"))
    frame = census.make(400)[list(schema.names)]
    table = open_table(frame, schema=schema, declared_size=400)
    prepared = prepare(make(name, TINY.get(name, {})), schema, Budget(1, 1e-6), 400)
    quiet, loud = (fit_internal(prepared, table, noise=noise, seed=0) for noise in (False, True))
    for measured in quiet.measurements:
        exact = frame.value_counts(list(measured.table.clique)).to_dict()
        levels = [schema.levels(c) for c in measured.table.clique]
        for cell in np.ndindex(*measured.table.values.shape):
            truth = exact.get(tuple(level[i] for level, i in zip(levels, cell, strict=True)), 0)
            assert measured.table.values[cell] == truth
    assert quiet.measurements[0].table.sigma == loud.measurements[0].table.sigma > 1


def test_noise_by_the_sigmas_is_about_what_fits_have():
    """Of tables that are measured as they are released: half the mean of |N(0, sigma^2)| a cell."""
    schema = census.schema().restrict(("SEX", "MAR"))
    table = open_table(census.make(3000)[list(schema.names)], schema=schema, declared_size=3000)
    prepared = prepare(make("independent", {}), schema, Budget(0.5, 1e-6), 3000)
    real = EncodedRows.read(census.make(3000)[list(schema.names)], schema)
    quiet = fit_internal(prepared, table, noise=False, seed=0)
    (said,) = tables.by_sigma(quiet, real, (), ())
    noiseless, found = tables.drawn(quiet.model, 400_000, 0), []
    for seed in range(60):
        model = tables.drawn(fit_internal(prepared, table, noise=True, seed=seed).model, 400_000, seed)
        found.append(tables.split(chain(real, real, noiseless, model), (), 1).parts["noise"][0])
    assert 0.5 < np.mean(found) / said < 1.2  # the total is known to less, and so shares to more


def test_noise_by_the_sigmas_is_for_groups_that_are_asked_by_themselves():
    schema = census.schema().restrict(("SEX", "MAR"))
    frame = census.make(500)[list(schema.names)]
    weights = Weights.public(census.shares(("SEX",)), citation="the built-in census")
    how = Stratified(make("independent", {}), ["SEX"], weights)
    prepared = prepare(how, schema, Budget(1, 1e-6), 500)
    fitted = fit_internal(prepared, open_table(frame, schema=schema, declared_size=500), noise=False, seed=0)
    found = tables.by_sigma(fitted, EncodedRows.read(frame, schema), ("SEX",), crossing(schema, ("SEX",)))
    assert np.isfinite(found).tolist() == [True, True, False]


def test_noise_of_clipped_sums_is_not_that_of_a_table():
    """A sum of dollars stands beside the tables of a fit whose schema declares a clip."""
    plain = Schema({"SEX": Categorical(("1", "2")), "PAY": Numeric(0, 90_000, bins=3)})
    clipped = Schema({**plain.columns, "PAY": replace(plain.columns["PAY"], clip=50_000, sums=0.01)})
    rng, found = np.random.default_rng(0), []
    frame = pd.DataFrame({"SEX": rng.choice(["1", "2"], 900), "PAY": rng.integers(0, 90_000, 900)})
    for schema in (plain, clipped):
        prepared = prepare(make("independent", {}), schema, Budget(1, 1e-6), 900)
        quiet = fit_internal(prepared, open_table(frame, schema=schema, declared_size=900), noise=False, seed=0)
        found += tables.by_sigma(quiet, EncodedRows.read(frame, schema), (), ()).tolist()
    assert found[1] == pytest.approx(found[0] / 0.99**0.5)


RECIPE = """\
[data]
path = "people.csv"
schema = "schema.toml"
declared_size = {size}
{strata}
[mechanism]
{mechanism}

[budget]
epsilon = {epsilon}
delta = 1e-6
"""
STRATA = """
[strata]
by = ["SEX"]

[weights]
source = "public"
path = "shares.csv"
citation = "the built-in census"
"""


def written(folder, mechanism, strata="", epsilon=2.0, frame=None, schema=None):
    schema = schema or census.schema().restrict(("SEX", "MAR", "DIS", "CIT"))
    frame = census.make(1500)[list(schema.names)] if frame is None else frame
    frame.to_csv(folder / "people.csv", index=False)
    schema.write_toml(folder / "schema.toml")
    census.shares(("SEX",)).to_csv(folder / "shares.csv", index=False)
    text = RECIPE.format(size=len(frame), strata=strata, mechanism=mechanism, epsilon=epsilon)
    (folder / "recipe.toml").write_text(text, encoding="utf-8")
    return folder / "recipe.toml"


WAYS = {
    "vanilla": ('name = "mst"', ""),
    "stratified": ('name = "mst"', STRATA),
    "pooled": ('name = "pooled"\nbase = "mst"', STRATA),
}


@pytest.mark.parametrize("way", WAYS)
def test_parts_add_up_to_the_errors_of_other_fits_on_the_census(tmp_path, monkeypatch, way):
    """Within their intervals: parts of some fits, errors of others."""
    monkeypatch.setattr(tables, "DRAWN", 20_000)
    recipe = written(tmp_path, *WAYS[way])
    some, others = (lens(recipe, "SEX", repeats=6, seed=seed).lens for seed in (0, 100))
    total = some[list(tables.PARTS)].sum(axis=1)
    assert total.to_numpy() == pytest.approx(some["value"].to_numpy())
    width = (some["high"] - some["low"] + others["high"] - others["low"]) / 2
    assert (np.abs(total - others["value"]) < 3 * width + 0.002).all()
    everybody = some[(some["scope"] == "everybody") & (some["columns"] == 1)].iloc[0]
    assert everybody["noise"] > 0
    assert np.isfinite(everybody["noise_by_sigma"]) == (way != "stratified")


def predicting(folder, settings, epsilon=3.0, size=1500):
    text = 'target = "D"\nfeatures = ["X", "C"]\ngroups = ["G"]\n' + settings
    return written(folder, text, epsilon=epsilon, frame=people(size, share=0.3, slopes=(0.5, 0.1)), schema=PREDICTED)


def test_a_predictors_excess_is_what_clipping_and_noise_cost(tmp_path):
    settings = 'name = "group_regression"\nmodel = "logistic"\niterations = 30\nrate = 1.0\nclip = '
    found = lens(predicting(tmp_path, settings + "0.05"), repeats=4).lens.set_index("G")
    assert np.allclose(found["value"], found["clipping"] + found["noise"])
    assert found["clipping"]["a"] > 0.02  # whose gradients are long; group b gains by it
    assert found["clipping"].iloc[-1] > 0
    assert found["cause"]["a"] == "clipping"
    others = lens(tmp_path / "recipe.toml", repeats=2, on=people(300, seed=5)).lens
    assert others["n"].iloc[-1] == 300
    noisy = lens(predicting(tmp_path, settings + "3.0", epsilon=0.05), repeats=4).lens
    assert (noisy["noise"] > noisy["clipping"]).all()
    assert noisy["clipping"].abs().max() < 1e-3  # a clip that cuts nothing


@pytest.mark.slow
def test_long_a_sampled_predictor_and_other_rows(tmp_path):
    recipe = predicting(tmp_path, 'name = "fair_sgd"\niterations = 3\nsampling = 0.5\n')
    found = lens(recipe, repeats=2, on=people(300, seed=5)).lens
    assert found["n"].iloc[-1] == 300
    assert np.allclose(found["value"], found["clipping"] + found["noise"])


def test_a_predictor_by_chance_is_given_a_seed(tmp_path):
    recipe = predicting(tmp_path, 'name = "reductions"\niterations = 5\n')
    found = lens(recipe, repeats=2).lens
    assert np.isfinite(found["value"]).all()


def test_the_twin_without_clipping_is_the_same_mechanism_in_strata_too():
    weights = Weights.public(census.shares(("SEX",)), citation="the built-in census")
    inner = {"target": "AGEP", "features": ["MAR"], "groups": ["MAR"], "clip": 0.5}
    schema = census.schema().restrict(("SEX", "MAR", "AGEP"))
    how = Stratified(make("group_regression", inner), ["SEX"], weights)
    twin = predictors.unclipped(prepare(how, schema, Budget(1, 1e-6), 500)).mechanism
    assert twin.mechanism.clip == predictors.WIDE
    assert twin.by == how.by
    fair = make("fair_sgd", {"target": "MAR", "groups": ["SEX"], "iterations": 3, "sampling": 1.0})
    twin = predictors.unclipped(prepare(fair, schema, Budget(1, 1e-6), 500)).mechanism
    assert (twin.clip, twin.mitigation) == (predictors.WIDE, "none")
    assert predictors.unclipped(prepare(make("mst", {}), schema, Budget(1, 1e-6), 500)) is None


def test_what_the_lens_cannot_look_at_is_refused(tmp_path):
    recipe = written(tmp_path, 'name = "mst"')
    with pytest.raises(UsageError, match="repeats"):
        lens(recipe, repeats=1)
    with pytest.raises(UsageError, match="`on` is for predictors"):
        lens(recipe, on=tmp_path / "people.csv")
    estimates = written(tmp_path, 'name = "coinpress"', frame=census.make(200), schema=census.schema())
    with pytest.raises(Unsupported, match="estimates"):
        lens(estimates)


def test_a_table_without_rows_is_refused(tmp_path):
    schema = census.schema().restrict(("SEX", "MAR"))
    recipe = written(tmp_path, 'name = "independent"', frame=census.make(5)[["SEX", "MAR"]], schema=schema)
    (tmp_path / "people.csv").write_text("SEX,MAR\n", encoding="utf-8")
    with pytest.raises(UsageError, match="no rows"):
        lens(recipe)


def test_third_party_code_is_refused():
    schema = census.schema().restrict(("SEX", "MAR"))
    prepared = prepare(make("independent", {}), schema, Budget(1, 1e-6), 10)
    from stratsynth.questions import Raw

    class Theirs:
        needs = frozenset({Raw})
        name = "theirs"

        def drawn(self, public, budget):
            return None

    with pytest.raises(Unsupported, match="adds its own noise"):
        fit_internal(replace(prepared, mechanism=Theirs()), None, noise=False, seed=0)


def mean_parts(folder, mechanism, strata="", *, by="SEX", epsilon=1.0, rows=20_000, upper=95, rules=True, shares=None):
    """The mean size of the parts over groups, in tables of two columns, under one recipe."""
    plain = census.schema().restrict(("SEX", "MAR", "DIS", "AGEP"))
    edges = (*(edge for edge in (0, 15, 25, 40, 65) if edge < upper), upper + 1)
    age = Numeric(lower=0, upper=upper, edges=edges, integer=True)
    rule = Rule(when={"AGEP": "< 15"}, never={"MAR": ("1", "2", "3", "4")})
    schema = Schema({**plain.columns, "AGEP": age}, rules=(rule,) if rules else ())
    recipe = written(folder, mechanism, strata, epsilon, census.make(3000)[list(schema.names)], schema)
    if shares is not None:
        table = census.shares(("SEX",))
        pd.DataFrame({"SEX": table["SEX"], "share": shares}).to_csv(folder / "shares.csv", index=False)
    with recipe.open("a", encoding="utf-8") as file:
        file.write(f"\n[release]\nrows = {rows}\n")
    frame = lens(recipe, by, repeats=3).lens
    return frame[frame["columns"] == 2][list(tables.PARTS)].abs().mean()


INDEPENDENT, MST = 'name = "independent"', 'name = "mst"'
EXACT = {"rules": False, "epsilon": 20.0}
REMEDIES = {
    "schema": ((INDEPENDENT, {"upper": 60}), (INDEPENDENT, {})),
    "weights": ((INDEPENDENT, {"strata": STRATA, "shares": [0.9, 0.1]}), (INDEPENDENT, {"strata": STRATA})),
    "misfit": ((INDEPENDENT, {"rules": False}), (MST, EXACT)),
    "noise": ((INDEPENDENT, {"epsilon": 0.02, "rules": False}), (INDEPENDENT, {"epsilon": 2.0, "rules": False})),
    "rules": ((INDEPENDENT, {}), (MST, {"epsilon": 20.0})),
    "rounding": ((MST, {"rows": 20, "by": "MAR", **EXACT}), (MST, {"by": "MAR", **EXACT})),
    "sampling": ((INDEPENDENT, {"rows": 200}), (INDEPENDENT, {})),
}
"""Each part large, and after its remedy: wider bounds, right shares, a mechanism that holds columns together, budget,
and more rows."""


@pytest.mark.parametrize("part", tables.PARTS)
def test_a_remedy_moves_its_part(tmp_path, monkeypatch, part):
    monkeypatch.setattr(tables, "DRAWN", 30_000)
    (how, settings), (better, mended) = REMEDIES[part]
    before, after = mean_parts(tmp_path, how, **settings), mean_parts(tmp_path, better, **mended)
    assert before[part] > 0.01
    assert after[part] < 0.5 * before[part]
