"""A prior of two linked tables: what a fit takes from it, what the certificate says, and what is refused."""

import pandas as pd
import pytest

import stratsynth as ss
from helpers import homes, small
from stratsynth.adapters import Linked
from stratsynth.errors import StratsynthError, Unsupported, UsageError, WeightsError
from stratsynth.noise import SeededEntropy
from stratsynth.priors.linked import linked_tables
from stratsynth.priors.prior import read_prior
from stratsynth.recipes.check import check

BUDGET = ss.Budget(1, 1e-9)
MST = Linked(base="mst", children="independent")
CITED = "the file of last year"


@pytest.fixture(scope="module")
def before():
    """Last year's households: others, drawn as this year's are."""
    return homes.tables(800, seed=7)


@pytest.fixture(scope="module")
def prior(before):
    return ss.Prior.linked(*before, citation="last year's file")


def opened(n=200, seed=0):
    return ss.open_tables(*homes.tables(n, seed), schema=homes.SCHEMA, declared_size=n)


def shares(persons):
    """Ages of persons, by place among their household's, as shares."""
    ages = pd.cut(persons["AGEP"], homes.PERSON.column("AGEP").edges, right=False)
    return pd.crosstab(persons["SPORDER"].clip(upper=3), ages, normalize=True)


def distance(one, other):
    return float(shares(one).sub(shares(other), fill_value=0).abs().to_numpy().sum() / 2)


@pytest.mark.parametrize("base", ["mst", {"name": "aim", "rounds": 4}])
def test_a_fit_starts_from_the_prior_and_is_nearer_to_the_rows(base, prior):
    how, truth = Linked(base=base, children="chain"), homes.tables(4_000, seed=3)[1]
    fits = [ss.fit(how, opened(), BUDGET, seed=0, entropy=SeededEntropy(1), prior=each) for each in (None, prior)]
    without, with_prior = (distance(fit.sample_tables(1_000, seed=1)[1], truth) for fit in fits)
    assert with_prior < 0.7 * without


def test_paid_answers_correct_a_wrong_prior():
    parents, persons = homes.tables(800, seed=7)
    persons = persons.assign(AGEP=99 - persons["AGEP"])
    wrong = ss.Prior.linked(parents, persons, citation="another world's file")
    table = ss.open_tables(*homes.tables(3_000), schema=homes.SCHEMA, declared_size=3_000)
    drawn, without = (
        ss.fit(MST, table, ss.Budget(8, 1e-9), seed=0, entropy=SeededEntropy(1), prior=prior).sample_tables(
            2_000, seed=1
        )[1]
        for prior in (wrong, None)
    )
    truth = homes.tables(3_000)[1]
    assert distance(drawn, truth) < 1.25 * distance(without, truth) + 0.02


def test_tables_are_trees_of_the_columns_of_each_counted_table(before):
    from stratsynth.data.sources import open_source

    known, said = linked_tables(*map(open_source, before), homes.SCHEMA.counted, "last year's file")
    found = {}
    for one in known:
        (slot,) = {name.partition(".")[0] for name in one.clique}
        found.setdefault(slot, []).append(one)
        assert one.shares.shape == homes.SCHEMA.counted.shape(one.clique)
        assert one.shares.sum() == pytest.approx(1)
        assert 0 < one.error < 0.1
    assert {slot: len(tables) for slot, tables in found.items()} == {
        slot: len(homes.SCHEMA.counted.of(slot).names) - 1 for slot in ("parent", "second", "others", "rest")
    }
    assert [each["people"] for each in said] == [800, 800]


def test_the_certificate_names_it_and_verify_compares_both_files(tmp_path, before):
    paths = [tmp_path / name for name in ("households.csv", "persons.csv")]
    for frame, path in zip(before, paths, strict=True):
        frame.to_csv(path, index=False)
    release = ss.fit(MST, opened(), BUDGET, seed=0, prior=ss.Prior.linked(*paths, citation="last year's file"))
    stated = release.statement.prior
    assert (stated.origin, stated.citation, stated.linked) == ("public", "last year's file", len(set(_cliques(before))))
    assert any("last year's file" in line for line in release.statement.not_protected)
    folder = release.save(tmp_path / "release", rows=20)
    found = ss.verify(folder, prior=paths)
    assert found.ok
    assert sum("what the prior was read from" in line for line in found.checked) == 2
    paths[1].write_bytes(paths[1].read_bytes() + b"\n")
    assert not ss.verify(folder, prior=paths).ok
    plan = ss.plan(MST, homes.SCHEMA, BUDGET, declared_size=200, prior=ss.Prior.linked(*before, citation="last year"))
    assert "tables of the counted columns, of two linked tables, 800 rows in the first" in " ".join(str(plan).split())


def _cliques(before):
    from stratsynth.data.sources import open_source

    return [one.clique for one in linked_tables(*map(open_source, before), homes.SCHEMA.counted, "")[0]]


# Refusals: nothing is charged


def refused(how, table, prior, why, kind=UsageError):
    with pytest.raises(kind, match=why):
        ss.fit(how, table, BUDGET, prior=prior)
    assert table.ledger.reserved == ()


def test_one_table_is_no_prior_of_two_and_two_none_of_one(prior, before):
    refused(MST, opened(), ss.Prior.public(before[0], citation=CITED), r"start from two: Prior\.linked")
    refused("independent", small.table(), prior, "the fit is of one")


def test_strata_have_no_prior_of_two_tables(prior):
    weights = ss.Weights.public(pd.DataFrame({"TEN": ["1", "2"], "share": 0.5}), citation="made up")
    refused(ss.Stratified(MST, ["TEN"], weights), opened(), prior, "without the prior", Unsupported)


@pytest.mark.parametrize("which", [0, 1])
def test_neither_private_file_is_a_prior(which):
    """The frame itself, a copy, and where its rows tell, these in another order."""
    private, before = homes.tables(200), homes.tables(200, seed=7)
    table = ss.open_tables(*private, schema=homes.SCHEMA, declared_size=200)
    for one in (private[which], private[which].copy(), private[1].sample(frac=1, random_state=0))[: 2 + which]:
        both = [one if i == which else before[i] for i in (0, 1)]
        refused(MST, table, ss.Prior.linked(*both, citation=CITED), "private table itself", WeightsError)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (lambda parents, persons: (parents.drop(columns="TEN"), persons), "no column TEN"),
        (lambda parents, persons: (parents, persons.drop(columns="SPORDER")), "no column SPORDER"),
        (lambda parents, persons: (parents.assign(TEN="rent"), persons), "counts 0 of its 800 household rows"),
        (lambda parents, persons: (parents, persons[:0]), "counts 0 of its 800 household rows"),
    ],
)
def test_a_prior_that_the_schema_does_not_count_is_refused(changed, why, before):
    refused(MST, opened(), ss.Prior.linked(*changed(*before), citation=CITED), why)


@pytest.mark.parametrize(
    ("section", "why"),
    [
        ({"parent": "a.csv", "citation": "x"}, "parent, child and citation"),
        ({"parent": "a.csv", "child": "b.csv", "citation": "x", "unknown": "drop"}, "no other key"),
        ({"parent": "a.csv", "child": "b.csv", "citation": "x", "origin": "release"}, "public files"),
    ],
)
def test_a_section_that_cannot_be_meant_is_refused(section, why, tmp_path):
    with pytest.raises(UsageError, match=why):
        read_prior(section, tmp_path)


def test_a_recipe_names_both_files(tmp_path, before):
    private = homes.tables(300)
    for name, frame in zip(("h", "p", "h0", "p0"), (*private, *before), strict=True):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "homes.toml").write_text(homes.SCHEMA.to_toml(), encoding="utf-8")
    text = (
        '[data]\nparent = "h.csv"\nchild = "p.csv"\nschema = "homes.toml"\ndeclared_size = 300\n[prior]\nparent = '
        '"h0.csv"\nchild = "p0.csv"\ncitation = "last year\'s file"\n[mechanism]\nname = "linked"\nbase = "mst"\n'
        "[budget]\nepsilon = 1\ndelta = 1e-9\n[release]\nrows = 20\nseed = 1\n"
    )
    (tmp_path / "recipe.toml").write_text(text, encoding="utf-8")
    recipe = ss.Recipe.read(tmp_path / "recipe.toml")
    assert check(recipe).ok
    assert recipe.run(tmp_path / "release").statement.prior.linked
    (tmp_path / "recipe.toml").write_text(text.replace('"p0.csv"', '"p.csv"'), encoding="utf-8")
    with pytest.raises(StratsynthError, match="private table itself"):
        ss.Recipe.read(tmp_path / "recipe.toml").run(tmp_path / "other")
