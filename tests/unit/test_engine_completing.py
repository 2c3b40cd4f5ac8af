"""Drawing columns given others, row by row: equal to enumeration, unbiased, and never against a rule."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from stratsynth import Categorical, Schema
from stratsynth.adapters.engine import Graphical, MeasuredTable, Problem, completing, junction_tree, solve
from stratsynth.adapters.engine.completing import UNIFORM, Allowed, Completion
from stratsynth.adapters.engine.forest import NEVER
from stratsynth.adapters.engine.structure import forbidden
from stratsynth.errors import MechanismError, UsageError
from stratsynth.schema import Rule

SIZES = {"a": 3, "b": 2, "c": 4, "d": 3, "e": 2, "f": 3}
CLIQUES = (("a", "b"), ("b", "c"), ("c", "d", "e"), ("e", "f"))
NAMES = tuple(SIZES)
KNOWN = ("a", "d", "f")
NO_RULES: tuple[Rule, ...] = ()
RULES = (Rule(when={"a": "0"}, never={"c": ("1", "2")}), Rule(when={"d": "1", "b": "1"}, never={"e": "0"}))


def graphical(rules=NO_RULES, never=None, cliques=CLIQUES):
    rng = np.random.default_rng(1)
    schema = Schema({n: Categorical(levels=tuple(map(str, range(s)))) for n, s in SIZES.items()}, rules=rules)
    tree = junction_tree(tuple(SIZES.items()), cliques)
    tables = [rng.normal(0, 1.5, tree.shape(clique)) for clique in tree.cliques]
    for clique, table in zip(tree.cliques, tables, strict=True):
        for column, code in (never or {}).items():
            if column in clique:
                table[tuple(code if c == column else slice(None) for c in clique)] = NEVER
    return Graphical(schema, tree, tuple(tables), 100.0)


def joint(model):
    """Every cell's weight by enumeration, an axis a column; rules are cells of weight 0."""
    found = np.zeros(tuple(SIZES.values()))
    for cell in itertools.product(*(range(s) for s in SIZES.values())):
        at = dict(zip(NAMES, cell, strict=True))
        log = sum(
            t[tuple(at[c] for c in clique)] for clique, t in zip(model.tree.cliques, model.potentials, strict=True)
        )
        found[cell] = np.exp(log)
    for rule in model.schema.rules:
        for box in rule.cells(model.schema):
            found[np.ix_(*(sorted(box.get(name, range(SIZES[name]))) for name in NAMES))] = 0
    return found


def drawn(completed):
    return np.stack([completed.codes[name] for name in NAMES], axis=1)


def evidence(n, known=KNOWN):
    """All combinations of the known columns, each n times."""
    cells = np.array(list(itertools.product(*(range(SIZES[name]) for name in known))))
    return {name: np.tile(cells[:, i], n) for i, name in enumerate(known)}


def expected(weights, given):
    """Expected count of every cell, for rows with these known codes."""
    rest = tuple(i for i, name in enumerate(NAMES) if name not in given)
    share = weights / np.maximum(weights.sum(axis=rest, keepdims=True), 1e-300)
    counts = np.zeros([SIZES[name] for name in given])
    np.add.at(counts, tuple(given.values()), 1)
    return share * counts.reshape([SIZES[n] if n in given else 1 for n in NAMES])


def counted(rows):
    found = np.zeros(tuple(SIZES.values()))
    np.add.at(found, tuple(rows.T), 1)
    return found


@pytest.mark.parametrize("rules", [(), RULES], ids=["no rules", "rules"])
@pytest.mark.parametrize("cliques", [CLIQUES, (NAMES,), (("a", "c"), ("b",), ("d", "f"), ("e", "b"))], ids=str)
def test_counts_are_those_of_enumeration(rules, cliques, monkeypatch):
    monkeypatch.setattr(completing, "ROWS", 700)
    model = graphical(rules, cliques=cliques)
    given = evidence(1000)
    rows = Completion(model, KNOWN).draw(given, np.random.default_rng(0))
    assert rows.backed_off == {}
    for i, name in enumerate(NAMES):
        if name in KNOWN:
            assert (drawn(rows)[:, i] == given[name]).all()
    exact, found = expected(joint(model), given), counted(drawn(rows))
    assert found[exact == 0].sum() == 0
    # each cell within six standard deviations of independent draws
    assert (np.abs(found - exact) <= 6 * np.sqrt(exact) + 1).all()
    assert ((found - exact) ** 2 / np.maximum(exact, 1e-9))[exact > 5].mean() < 1.3


def test_each_row_alone_follows_the_conditional():
    """A single row, drawn many times: its cells have the enumerated shares."""
    model, rng = graphical(RULES), np.random.default_rng(0)
    completion, given = Completion(model, KNOWN), {"a": [0], "d": [1], "f": [2]}
    rows = np.concatenate([drawn(completion.draw(given, rng)) for _ in range(800)])
    many = {name: np.repeat(values, 800) for name, values in given.items()}
    exact, found = expected(joint(model), many), counted(rows)
    assert (np.abs(found - exact) <= 6 * np.sqrt(exact) + 1).all()


def test_allowed_codes_are_per_row_and_exact():
    model, rng = graphical(RULES), np.random.default_rng(3)
    given = evidence(2000)
    n = len(given["a"])
    cells = np.ones((3, SIZES["c"], SIZES["b"]), dtype=bool)
    cells[1] = np.add.outer(np.arange(4), np.arange(2)) % 2 == 0
    cells[2, :3] = False
    cells[2, 3, 0] = False
    allowed = Allowed(rng.integers(0, 3, n), cells)
    rows = drawn(Completion(model, KNOWN, [("c", "b")]).draw(given, rng, allowed))
    for kind in range(3):
        mine = allowed.kinds == kind
        weights = joint(model) * cells[kind].T.reshape(1, 2, 4, 1, 1, 1)
        exact, found = expected(weights, {k: v[mine] for k, v in given.items()}), counted(rows[mine])
        assert found[exact == 0].sum() == 0
        assert (np.abs(found - exact)[exact > 0] <= 6 * np.sqrt(exact[exact > 0]) + 1).all()
        assert cells[kind][rows[mine, 2], rows[mine, 1]].all()


def test_weights_of_codes_multiply_the_model():
    model, rng = graphical(RULES), np.random.default_rng(3)
    given = evidence(1000)
    cells = rng.random((2, SIZES["e"]))
    allowed = Allowed(np.arange(len(given["a"])) // (len(given["a"]) // 2), cells)
    rows = drawn(Completion(model, KNOWN, [("e",)]).draw(given, rng, allowed))
    for kind in range(2):
        mine = allowed.kinds == kind
        weights = joint(model) * cells[kind].reshape(1, 1, 1, 1, 2, 1)
        exact, found = expected(weights, {k: v[mine] for k, v in given.items()}), counted(rows[mine])
        assert (np.abs(found - exact) <= 6 * np.sqrt(exact) + 1).all()


def test_sets_by_row_become_kinds():
    cells = np.array([[True, False, True], [False, True, True], [True, False, True]])
    allowed = Allowed.by_row(cells)
    assert len(allowed.cells) == 2
    assert (allowed.cells[allowed.kinds] == cells).all()


def test_rows_without_mass_back_off_in_the_declared_order_and_are_counted():
    model = graphical(RULES, never={"d": 1, "a": 2})
    given = {"a": np.array([0, 2, 2, 1, 2]), "d": np.array([0, 1, 0, 1, 1]), "f": np.zeros(5, dtype=int)}
    rows = Completion(model, KNOWN, back_off=["d", "a"]).draw(given, np.random.default_rng(0))
    # row 3 needs d unknown, rows 1, 2 and 4 need a too
    assert rows.backed_off == {"d": 1, "a": 3}
    assert (drawn(rows)[:, [0, 3]] == np.stack([given["a"], given["d"]], axis=1)).all()


def test_a_column_backed_off_is_summed_over_and_its_rules_still_hold():
    model, rng = graphical(RULES, never={"d": 1}), np.random.default_rng(0)
    given = {"a": np.repeat([0, 1, 2], 3000), "d": np.ones(9000, dtype=int), "f": np.zeros(9000, dtype=int)}
    rows = drawn(Completion(model, KNOWN, back_off=["d"]).draw(given, rng))
    free = joint(graphical((RULES[0],), never={"d": 1})).sum(axis=3)
    free[:, 1, :, 0] = 0  # the rule on d, of which the rows have level 1
    share = free[..., 0] / free[..., 0].sum(axis=(1, 2, 3), keepdims=True)
    found = counted(rows).sum(axis=(3, 5))
    assert (np.abs(found - 3000 * share) <= 6 * np.sqrt(3000 * share) + 1).all()


def test_beyond_the_last_column_rows_are_uniform_over_allowed_cells():
    model = graphical(RULES, never={"f": 0})
    given = {"a": np.zeros(4000, dtype=int), "d": np.ones(4000, dtype=int), "f": np.zeros(4000, dtype=int)}
    rows = Completion(model, KNOWN).draw(given, np.random.default_rng(0))
    assert rows.backed_off == {UNIFORM: 4000}
    found = counted(drawn(rows)).sum(axis=(0, 3, 5))
    # b, c, e: c is 0 or 3; with b = 1 only e = 1
    assert (found > 0).sum() == 6
    assert abs(found[0, 0, 0] - 4000 / 6) < 6 * np.sqrt(4000 / 6)


def test_nothing_left_is_an_error():
    cells = Allowed(np.zeros(2, dtype=int), np.zeros((1, 4), dtype=bool))
    with pytest.raises(MechanismError, match="no value at all"):
        Completion(graphical(), KNOWN, [("c",)]).draw(
            {name: np.zeros(2, dtype=int) for name in KNOWN}, np.random.default_rng(0), cells
        )


def test_a_rule_too_large_for_the_model_is_kept_by_drawing_anew(monkeypatch):
    monkeypatch.setattr(completing, "MOST_CELLS", 0)
    model = graphical((Rule(when={"b": "1"}, never={"e": "0"}),))
    given = evidence(3000, ("a", "f"))
    completion = Completion(model, ("a", "f"))
    assert completion._stage(0).outside
    rows = completion.draw(given, np.random.default_rng(0))
    exact, found = expected(joint(model), given), counted(drawn(rows))
    assert found[exact == 0].sum() == 0
    assert (np.abs(found - exact) <= 6 * np.sqrt(exact) + 1).all()


def fitted(rules=RULES):
    """A model fitted to tables that join more columns in its tree than any table has."""
    rng, schema = np.random.default_rng(5), graphical(rules).schema
    sizes = tuple(SIZES.items())
    pairs = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "e"), ("c", "f"), ("e", "f")]
    tables = [MeasuredTable(pair, rng.integers(1, 99, schema.shape(pair)), 1.0) for pair in pairs]
    solution = solve([Problem(sizes, tuple(tables), 1000.0, forbidden(schema), iterations=100)])[0]
    return Graphical.of(schema, solution)


@pytest.mark.parametrize("rules", [(), RULES], ids=["no rules", "rules"])
def test_terms_of_measured_tables_take_the_place_of_wide_potentials(rules):
    model = fitted(rules)
    factors = completing.factors_of(model)
    assert {len(clique) for clique, _ in factors} == {2}
    assert max(len(clique) for clique in model.tree.cliques) > 2
    given = evidence(1000)
    rows = Completion(model, KNOWN).draw(given, np.random.default_rng(0))
    exact, found = expected(joint(model), given), counted(drawn(rows))
    assert found[exact == 0].sum() == 0
    assert (np.abs(found - exact) <= 6 * np.sqrt(exact) + 1).all()


def test_terms_that_are_not_those_of_the_potentials_are_not_used():
    model = fitted()
    terms = [(clique, term + np.arange(term.size)) for clique, term in model.terms]
    assert completing.factors_of(replace(model, terms=tuple(terms)))[0][0] == model.tree.cliques[0]
    zeros = [np.where(np.arange(t.size).reshape(t.shape) == 0, NEVER, t) for t in model.potentials]
    assert completing.factors_of(replace(model, potentials=tuple(zeros)))[0][0] == model.tree.cliques[0]


def test_products_that_underflow_are_done_with_logarithms():
    model = graphical()
    wide = replace(model, potentials=tuple(400 * table for table in model.potentials))
    given, weights = evidence(40), np.zeros(tuple(SIZES.values()))
    for cell in itertools.product(*(range(s) for s in SIZES.values())):
        at = dict(zip(NAMES, cell, strict=True))
        tables = zip(wide.tree.cliques, wide.potentials, strict=True)
        weights[cell] = sum(t[tuple(at[c] for c in clique)] for clique, t in tables)
    rest = tuple(i for i, name in enumerate(NAMES) if name not in KNOWN)
    weights = np.exp(weights - weights.max(axis=rest, keepdims=True))
    rows = Completion(wide, KNOWN).draw(given, np.random.default_rng(0))
    assert rows.backed_off == {}
    exact, found = expected(weights, given), counted(drawn(rows))
    assert (np.abs(found - exact) <= 6 * np.sqrt(exact) + 1).all()


def test_parts_of_large_tables_are_equal_in_law(monkeypatch):
    from stratsynth.adapters.engine import beliefs

    given, rng = evidence(50), np.random.default_rng
    at_once = drawn(Completion(graphical(RULES), KNOWN).draw(given, rng(0)))
    monkeypatch.setattr(beliefs, "MOST_AT_ONCE", 16)
    in_parts = drawn(Completion(graphical(RULES), KNOWN).draw(given, rng(0)))
    exact = expected(joint(graphical(RULES)), given)
    assert at_once.shape == in_parts.shape
    assert counted(in_parts)[exact == 0].sum() == 0
    assert (np.abs(counted(in_parts) - exact) <= 6 * np.sqrt(exact) + 1).all()


@pytest.mark.parametrize(
    ("known", "limited", "back_off"), [(("z",), (), ()), (("a",), (), ("b",)), (("a",), (("a",),), ()), ((), (), ())]
)
def test_columns_are_checked(known, limited, back_off):
    with pytest.raises(UsageError):
        Completion(graphical(), known, limited, back_off)


def test_codes_of_other_columns_are_refused():
    with pytest.raises(UsageError):
        Completion(graphical(), KNOWN).draw({"a": np.zeros(1, dtype=int)}, np.random.default_rng(0))


def test_no_rows():
    rows = Completion(graphical(), KNOWN).draw({n: np.zeros(0, dtype=int) for n in KNOWN}, np.random.default_rng(0))
    assert drawn(rows).shape == (0, 6)
