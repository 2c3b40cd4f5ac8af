"""Fits that protect one attribute alone: on disk, interrupted, verified, tampered with; and from the command line."""

import json
import subprocess

import numpy as np
import pandas as pd
import pytest

from helpers.attribute import BUDGET, SCHEMA
from helpers.command import complaint, run, stratsynth
from helpers.fits import OnStep
from helpers.ledgers import lines_of
from helpers.regressing import people
from helpers.small import edit
from stratsynth import Stratified, Weights, fit, open_table, verify
from stratsynth.accounting.budget import PRICED, Neighbours
from stratsynth.accounting.sampled import epsilon_sampled
from stratsynth.adapters import DPFermi
from stratsynth.adapters.sklearn import FermiClassifier
from stratsynth.fitting import fitted
from stratsynth.release.page.summary import summary
from stratsynth.testing.content import content

RATE, STEPS = 1.0, 3
"""Settings that are priced soonest: everybody takes part in every step."""
HOW = DPFermi(
    target="D",
    features=["X", "C"],
    groups=["G"],
    iterations=STEPS,
    sampling=RATE,
    warm_up=0.4,
    protect="sensitive",
    penalty=1,
)


class Stop(Exception):
    pass


@pytest.mark.parametrize("moment", [1, 2, 3])
def test_it_resumes_without_a_second_charge(tmp_path, moment):
    """After the public rows, and after noisy steps; the public rows are no step, and cost nothing."""
    ledger, frame, seen = tmp_path / "people.ledger", people(300), []

    def tick():
        seen.append(1)
        if len(seen) == moment:
            raise Stop

    def opened():
        return open_table(frame, schema=SCHEMA, ledger=ledger, ledger_epsilon=5.0, declared_size=300)

    with pytest.raises(Stop), fitted(HOW, opened(), BUDGET, observer=OnStep(tick)):
        pass
    release = fit(HOW, opened(), BUDGET)
    assert release.certificate["ledger"]["releases"] == 1
    charges = [line for line in lines_of(ledger) if line["kind"] == "charge"]
    assert [line["moment"] for line in charges] == list(range(STEPS + 1))
    assert [len(line["charges"]) for line in charges] == [0] + [1] * STEPS
    release.save(tmp_path / "release")
    assert verify(tmp_path / "release", ledger).ok


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attribute")
    frame = people(300)
    table = open_table(frame, schema=SCHEMA, ledger=folder / "l.ledger", ledger_epsilon=5.0, declared_size=300)
    fit(HOW, table, BUDGET).save(folder / "release")
    return folder


def test_the_release_verifies_and_its_report_warns_first(saved):
    found = verify(saved / "release", saved / "l.ledger")
    assert found.ok, found.findings
    page = (saved / "release" / "report.html").read_text(encoding="utf-8")
    assert page.index("NOT PROTECTED: the columns C, D, X, Y, Z") < page.index("The promise has two numbers")
    assert "if that record had any other values in the protected columns, which are all but C, D, X, Y, Z" in page


def _as_if_all_were_protected(record):
    """Neighbours, columns, notices and prices of a fit that protects whole records."""
    record.update(neighbours="replace", notices=[])
    del record["public_columns"]
    noise, rate, steps = (record["guarantee"][key] for key in ("noise", "rate", "steps"))
    slack = record["guarantee"]["delta"] - record["guarantee"]["truncation_delta"]
    one, other = (epsilon_sampled(noise, rate, int(steps), slack, notion) for notion in PRICED)
    record["prices"] = {"add-remove": one, "move": other, "replace-within-group": other, "replace": other}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c.update(neighbours="replace"), "public columns do not go with its neighbours"),
        (lambda c: c.pop("public_columns"), "public columns do not go with its neighbours"),
        (lambda c: c["public_columns"].remove("Y"), "public columns are not those of its schema"),
        (lambda c: c["prices"].update(replace=3.0), "states the price of replace"),
        (lambda c: c["guarantee"].update(noise=c["guarantee"]["noise"] / 2), "another noise or rate"),
        (lambda c: c["notices"].clear(), "does not say first"),
        (lambda c: c["unprotected"].remove("public_columns"), "do not go with what it lists as unprotected"),
        (lambda c: c["not_protected"].pop(0), "does not name the public columns"),
        (_as_if_all_were_protected, "do not go with what it lists as unprotected"),
    ],
)
def test_a_certificate_that_was_changed_is_found_out(saved, tmp_path, change, words):
    folder = tmp_path / "release"
    subprocess.run(["cp", "-r", saved / "release", folder], check=True)
    path = folder / "certificate.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    change(record)
    path.write_text(json.dumps(record), encoding="utf-8")
    found = verify(folder)
    assert not found.ok
    assert any(words in finding for finding in found.findings), found.findings


def test_an_add_remove_price_for_it_is_refused(saved):
    """The noise that would do for a record more or fewer is not within this budget."""
    from stratsynth.accounting.budget import Allotment, Budget
    from stratsynth.accounting.prices import check_allotment
    from stratsynth.errors import MechanismError

    cheap = Budget(3, 1e-6).sampled(rate=0.5, steps=40)
    with pytest.raises(MechanismError, match="not within the budget"):
        check_allotment(Allotment(cheap.currency, cheap.amount, BUDGET, cheap.noise, cheap.rate), BUDGET)


def test_in_strata_of_a_public_column(tmp_path):
    shares = pd.DataFrame({"C": ["p", "q", "r"], "share": [0.4, 0.3, 0.3]})
    how = Stratified(
        DPFermi(
            target="D", features=["X"], groups=["G"], penalty=1, iterations=STEPS, sampling=RATE, protect="sensitive"
        ),
        ["C"],
        Weights.public(shares, citation="made up"),
    )
    release = fit(how, open_table(people(300), schema=SCHEMA, declared_size=300), BUDGET)
    assert release.certificate["prices"]["attribute"] <= 3
    release.save(tmp_path / "release")
    assert verify(tmp_path / "release").ok
    assert len(release.predict(people(20))) == 20


# the estimator


def data(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    x = np.column_stack([rng.normal(size=n) + 1.2 * (group - 0.5), rng.normal(size=n)])
    return x, (x[:, 0] + 0.5 * x[:, 1] + rng.normal(size=n) > 0).astype(int), group


def made(**settings):
    return FermiClassifier(
        **{
            "epsilon": 3.0,
            "delta": 1e-6,
            "bounds": (-4, 4),
            "classes": [0, 1],
            "groups": [0, 1],
            "penalty": 1.0,
            "iterations": 300,
            "batch": 400,
            "protect": "sensitive",
            "declared_size": 4000,
            **settings,
        }
    )


@pytest.mark.usefixtures("seeded_noise")
@pytest.mark.parametrize("criterion", ["parity", "odds"])
def test_a_penalty_narrows_the_gap(criterion):
    x, y, group = data()

    def gap(penalty, seed):
        p = made(penalty=penalty, criterion=criterion).fit(x + 1e-9 * seed, y, sensitive_features=group).predict(x)
        at = [y == c for c in (0, 1)] if criterion == "odds" else [np.ones(len(y), bool)]
        return max(abs(p[here & (group == 1)].mean() - p[here & (group == 0)].mean()) for here in at)

    assert gap(20.0, 1) < 0.7 * gap(0.01, 2)


@pytest.mark.usefixtures("seeded_noise")
def test_features_and_labels_get_no_noise():
    """With next to no penalty and next to no epsilon: the model is that of the public columns."""
    x, y, group = data()
    model = made(epsilon=0.05, penalty=0.001).fit(x, y, sensitive_features=group)
    assert model.score(x, y) > 0.75
    assert "NOT PROTECTED" in summary(model.certificate_).splitlines()[0]
    assert model.certificate_["neighbours"] == Neighbours.ATTRIBUTE


def test_a_sensitive_level_that_is_none_leaves_no_row_out():
    """Whatever it is, the row is there: as one of the first level."""
    x, y, group = data(400)
    tables = []
    for value in (0, 7):
        there = group.copy()
        there[5] = value
        table = made()._table(x, y.astype(str), SCHEMA.column("D"), there)
        tables.append(content(table.backend.rows().columns((), ("x0", "target")).codes["x0"]))
        assert table.schema.public == ("x0", "x1", "target")
    assert tables[0] == tables[1]


# the command line

RECIPE = """\
[data]
path = "people.csv"
schema = "schema.toml"
declared_size = 500

[mechanism]
name = "fermi"
target = "D"
features = ["X", "C"]
groups = ["G"]
penalty = 1.0
iterations = 40
sampling = 1.0
protect = "sensitive"

[budget]
epsilon = 3.0
delta = 1e-6
neighbours = "attribute"
ledger = "people.ledger"
ledger_epsilon = 9.0
"""


def written(folder):
    people(500).to_csv(folder / "people.csv", index=False)
    SCHEMA.write_toml(folder / "schema.toml")
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return written(tmp_path_factory.mktemp("recipe"))


def test_from_a_recipe_to_a_certificate(folder):
    assert run(folder, "plan", "recipe.toml").startswith("*** NOT PROTECTED: the columns C, D, X, Y, Z")
    run(folder, "fit", "recipe.toml", "-o", "release")
    told = run(folder, "certificate", "release")
    assert told.lstrip().startswith("*** NOT PROTECTED: the columns C, D, X, Y, Z, and the number of records.")
    assert "also where a protected value is why, as by a stray quote" in " ".join(told.split())
    person = [f"--{key}=x" for key in ("name", "slug", "curator", "use", "region", "author")]
    registry = " ".join(run(folder, "certificate", "release", "--registry", *person, "--published=2026-01-01").split())
    assert "if the values of one record in the columns other than C, D, X, Y, Z change" in registry
    assert "its values are these or any others, its group among them: not protected" in registry
    assert "Y, Z: the release may show them as they are" in registry
    assert "NOT PROTECTED: C, D, X, Y, Z." in run(folder, "ledger", "show", "people.ledger")
    # the same data under another promise
    edit(folder / "recipe.toml", 'protect = "sensitive"', 'protect = "all"')
    edit(folder / "recipe.toml", 'neighbours = "attribute"', 'neighbours = "add-remove"')
    assert "account of its own" in complaint(stratsynth("fit", "recipe.toml", "-o", "other", cwd=folder), 2)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('neighbours = "attribute"', 'neighbours = "replace"', 'neighbours = "attribute"'),
        ('features = ["X", "C"]', 'features = ["X", "G"]', "G cannot be one and be protected too"),
    ],
)
def test_a_refusal_leaves_no_ledger(tmp_path, old, new, words):
    edit(written(tmp_path) / "recipe.toml", old, new)
    assert words in complaint(stratsynth("fit", "recipe.toml", cwd=tmp_path), 2)
    assert not (tmp_path / "people.ledger").exists()
