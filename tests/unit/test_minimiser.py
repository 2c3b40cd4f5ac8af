"""The minimiser of a sum of losses: where it is found, how far one row moves it, what its noise is, what is refused."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import chi2

from stratsynth import Categorical, Numeric, Schema
from stratsynth.accounting.budget import PRICED, Neighbours
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.driver.answering import Reader
from stratsynth.errors import MechanismError, Unsupported
from stratsynth.noise import SystemEntropy
from stratsynth.questions import Coded, minimiser
from stratsynth.questions.base import Setting
from stratsynth.questions.minimiser import CURVATURE, FINE, SLOPE, TOLERANCE, Minimiser, minimised
from stratsynth.schema.rows import CodedRows
from stratsynth.schema.weight import RowWeight

SCHEMA = Schema(
    {
        "X": Numeric(lower=-1, upper=1, bins=2),
        "G": Categorical(levels=("a", "b")),
        "D": Categorical(levels=("no", "yes")),
        "C": Categorical(levels=("p", "q", "r")),
        "Y": Numeric(lower=-1, upper=1, bins=2, missing=True),
    }
)
TARGETS = {"logistic": "D", "softmax": "C", "linear": "Y"}
LINKS = list(TARGETS)


def asked(link, clip=1.0, strength=1.0, rho=0.5, **more):
    return Minimiser(Coded(("X", "G")), TARGETS[link], link, clip, strength, rho, **more)


def coded(frame, schema=SCHEMA):
    """The rows of a frame, as the driver reads them."""
    rows = load_rows(schema, open_source(frame))
    found = rows.columns((), schema.names)
    return CodedRows(schema, found.codes, found.numbers, found.size, found.weights)


def exact(question, frame, neighbours=Neighbours.ADD_REMOVE, schema=SCHEMA):
    """The coefficients without noise, in units of the grid, read as the driver reads them."""
    rows = load_rows(schema, open_source(frame))
    (read,) = Reader(rows, SystemEntropy()).each([((), question.wanted())])
    return question.exact(Setting(schema, neighbours), read)


def people(rows):
    return pd.DataFrame(rows, columns=["X", "G", "D", "C", "Y"]).astype({"X": "float64", "Y": "float64"})


ROW = st.tuples(
    st.sampled_from([-1.0, -0.3, 0.0, 0.7, 1.0]),
    st.sampled_from("ab"),
    st.sampled_from(["no", "yes"]),
    st.sampled_from("pqr"),
    st.sampled_from([-1.0, -0.5, 0.0, 1.0, math.nan]),
)
TABLE = st.lists(ROW, max_size=12)
STRENGTH = st.sampled_from([0.01, 0.5, 3.0, 1e4])
CLIP = st.sampled_from([0.2, 1.0, 1.8])


def distance(question, one, other):
    return float(np.linalg.norm((exact(question, one) - exact(question, other)).astype(float))) * question.grid


FAR = [1.0, "b", "yes", "r", 1.0]
NEAR = [-1.0, "b", "no", "p", -1.0]


@example([], FAR, NEAR, "linear", 1e4, 1.0)
@given(TABLE, ROW, ROW, st.sampled_from(LINKS), STRENGTH, CLIP)
def test_a_row_moves_the_answer_by_no_more_than_is_charged(table, row, other, link, strength, clip):
    question, one, two = asked(link, clip, strength), people([*table, row]), people([*table, other])
    bound = {n: question.sensitivity(SCHEMA, n) for n in PRICED}
    assert distance(question, people(table), one) <= bound[Neighbours.ADD_REMOVE]
    assert distance(question, one, two) <= bound[Neighbours.REPLACE]


def test_the_bounds_are_reached():
    """A row far off moves the minimiser of no rows by nearly all of the bound; one exchanged for its opposite twice."""
    question, opposite = asked("linear", strength=1e4), [*FAR[:4], -1.0]
    one = distance(question, people([]), people([FAR]))
    two = distance(question, people([opposite]), people([FAR]))
    assert 0.98 * question.sensitivity(SCHEMA, Neighbours.ADD_REMOVE) < one
    assert 0.98 * question.sensitivity(SCHEMA, Neighbours.REPLACE) < two


@pytest.mark.parametrize("link", LINKS)
def test_the_bound_has_room_for_both_certified_distances_and_both_roundings(link, monkeypatch):
    """Solvers that stop as far from the minimiser as they may, on opposite sides."""
    question, size = asked(link), 3 if link != "softmax" else 9
    step, off = SLOPE[link] * 1.0 / 1.0, np.zeros((3, size // 3))
    off[0, 0] = TOLERANCE * step
    for moved, notion in ((step, Neighbours.ADD_REMOVE), (2 * step, Neighbours.REPLACE)):
        monkeypatch.setattr(minimiser, "minimised", lambda _, rows: off * (1 if rows.size else -1))
        apart = distance(question, people([]), people([FAR])) + moved + math.sqrt(size) * question.grid
        assert apart <= question.sensitivity(SCHEMA, notion) <= (1 + 1e-6) * apart
    assert question.grid == pytest.approx(step / FINE)


def objective(question, rows):
    """The objective and its gradient, written down a second time, plainly."""
    plain = np.column_stack([np.ones(rows.size), rows.numbers["X"], rows.codes["G"]])
    x = np.rint(plain * 4096) / 4096
    x *= np.minimum(1, question.clip / np.linalg.norm(x, axis=1))[:, None]
    part = np.ones(rows.size) if question.parts is None else question.parts[rows.codes["G"].astype(int)]
    code = rows.codes[question.target].astype(int)

    def value(w):
        penalty = question.strength * float(w @ w) / 2
        z = x @ w.reshape(3, -1)
        if question.link == "linear":
            r = np.nan_to_num(z[:, 0] - rows.numbers["Y"])
            loss = np.where(np.abs(r) < 1, r * r / 2, np.abs(r) - 0.5)
        else:
            z = z if question.link == "softmax" else np.column_stack([np.zeros(len(z)), z])
            loss = np.logaddexp.reduce(z, axis=1) - z[np.arange(len(z)), code]
        return float(part @ loss) + penalty

    return value


@example([FAR] * 12, "logistic", 0.01, 1.8, None)
@example([FAR, NEAR] * 6, "softmax", 0.01, 1.8, (0.25, 1.0))
@given(TABLE, st.sampled_from(LINKS), STRENGTH, CLIP, st.sampled_from([None, (0.25, 1.0)]))
def test_what_is_found_is_near_the_minimiser(table, link, strength, clip, parts):
    """Nothing is lower at any distance beyond the certified one, in random directions and in those of the axes."""
    more = {} if parts is None else {"by": ("G",), "parts": np.array(parts)}
    question, rows = asked(link, clip, strength, **more), coded(people(table))
    found, value = minimised(question, rows).ravel(), objective(question, rows)
    rng = np.random.default_rng(len(table))
    for direction in [*np.eye(found.size), *-np.eye(found.size), *rng.normal(size=(20, found.size))]:
        beyond = found + 2.01 * TOLERANCE * question.step * direction / np.linalg.norm(direction)
        assert value(beyond) > value(found)  # as is beyond twice the distance of a point from a convex function's least


def test_hard_tables_are_solved_too():
    """Rows that a line separates, all alike, and of a curvature that differs by 10^8: never the public default."""
    rng = np.random.default_rng(0)
    x, side = rng.uniform(-1, 1, 200), rng.random(200) < 0.5
    for frame in (
        people([FAR] * 200),
        pd.DataFrame(
            {"X": np.where(side, 1, -1) * np.abs(x), "G": "a", "D": np.where(side, "yes", "no"), "C": "p", "Y": x}
        ),
        pd.DataFrame(
            {"X": 0.001 * x, "G": "b", "D": np.where(x > 0, "yes", "no"), "C": np.where(side, "q", "r"), "Y": -1.0}
        ),
    ):
        rows = coded(frame)
        for link in LINKS:
            question = asked(link, 1.8, 1e-4)
            found = minimised(question, rows)
            gradient, off = minimiser._gradient(question, rows, found)
            assert np.linalg.norm(gradient) + off <= TOLERANCE * SLOPE[link] * 1.8
            assert np.any(found)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("columns", [1, 30, 400])
def test_rounding_keeps_no_table_of_ten_million_rows_from_being_certified(link, columns):
    """Of any strength that is accepted: a table that is not certified may have a neighbour that is."""
    levels = SCHEMA.size(TARGETS[link]) if link != "linear" else 2
    names = [f"N{i}" for i in range(columns)]
    schema = Schema({**{n: Numeric(lower=0, upper=1, bins=2) for n in names}, **SCHEMA.columns})
    accepted = 0
    for clip in (1.0, 20.0):
        for strength in 2.0 ** np.append(np.arange(-9, 21), 90) * clip**2:
            question = Minimiser(Coded(tuple(names)), TARGETS[link], link, clip, strength, 0.5)
            try:
                question.check(schema)
            except MechanismError:
                continue
            farthest = min(math.sqrt(2 * 1e7 * math.log(levels) / strength), 1e7 * question.step)
            terms = 2**13 + 1e7 / 2**13 + 64 + 8 * (levels if link == "softmax" else 1)
            nearest = 1e7 * clip * ((columns + 1) * clip * farthest + terms) + strength * terms * farthest
            assert 2 * 2.0**-53 * nearest <= TOLERANCE * SLOPE[link] * clip / 2
            accepted += 1
    question.check(schema)  # of the largest strength
    assert accepted > 10


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("clip", [1e-170, 1e-161, 1e-155, 1e150, 1e153])
def test_a_clip_whose_square_is_no_float_is_refused(link, clip):
    """With some, tables of many rows were not certified, or failed in the midst of a fit, and smaller ones did not."""
    with pytest.raises(MechanismError, match="a clip from 1e-9 to 1e9"):
        asked(link, clip, max(clip * clip, 5e-324)).check(SCHEMA)


def test_where_nothing_is_certified_the_answer_is_the_public_default(monkeypatch):
    monkeypatch.setattr(minimiser, "_gradient", lambda asked, rows, w: (np.ones_like(w), math.inf))
    assert not minimised(asked("softmax"), coded(people([FAR] * 20))).any()


def exact_gradient(question, rows, w):
    """The gradient to 40 digits; the floats of rows and coefficients are taken for exact."""
    total = [[Decimal(question.strength) * Decimal(float(a)) for a in line] for line in w]
    for x, part, which in minimiser._pieces(question, rows):
        for i in range(len(x)):
            row, code = [Decimal(float(a)) for a in x[i]], int(rows.codes[question.target][which][i])
            logits = [sum(a * Decimal(float(b)) for a, b in zip(row, w[:, k], strict=True)) for k in range(w.shape[1])]
            if question.link == "linear":
                slopes = [max(min(logits[0] - Decimal(float(rows.numbers["Y"][which][i])), Decimal(1)), Decimal(-1))]
            elif question.link == "logistic":
                slopes = [1 / (1 + (-logits[0]).exp()) - code]
            else:
                total_exp = sum(z.exp() for z in logits)
                slopes = [z.exp() / total_exp - (k == code) for k, z in enumerate(logits)]
            for j, a in enumerate(row):
                for k, slope in enumerate(slopes):
                    total[j][k] += a * slope * Decimal(float(part[i]))
    return total


@pytest.mark.parametrize("link", LINKS)
def test_the_gradient_is_as_near_the_true_one_as_it_says(link):
    rng = np.random.default_rng(1)
    frame = people(
        [(rng.uniform(-1, 1), "ab"[i % 2], ["no", "yes"][i % 2], "pqr"[i % 3], rng.uniform(-1, 1)) for i in range(60)]
    )
    question, rows = asked(link, 1.3, 0.7, by=("G",), parts=np.array([0.3, 1.0])), coded(frame)
    for size in (0.0, 1.0, 300.0):
        w = rng.normal(size=(3, 3 if link == "softmax" else 1)) * size
        gradient, off = minimiser._gradient(question, rows, w)
        with localcontext() as context:
            context.prec = 40
            true = exact_gradient(question, rows, w)
            errors = [
                Decimal(float(g)) - t
                for line, true_line in zip(gradient, true, strict=True)
                for g, t in zip(line, true_line, strict=True)
            ]
            assert sum(e * e for e in errors).sqrt() <= Decimal(off)


def test_exponentials_are_as_exact_as_the_bound_takes_them_for():
    with localcontext() as context:
        context.prec = 40
        for x in np.linspace(-700, 0, 5000):
            true = Decimal(float(x)).exp()
            assert abs(Decimal(float(np.exp(x))) / true - 1) < Decimal(2) ** -49


@pytest.mark.parametrize("link", LINKS)
def test_no_slope_and_no_curvature_is_larger_than_stated(link):
    """And some are nearly as large."""
    rng, steepest, bent = np.random.default_rng(2), 0.0, 0.0
    for z in np.concatenate([rng.normal(size=(2000, 3)) * 20, np.zeros((1, 3))]):
        if link == "linear":
            steepest, bent = max(steepest, min(abs(z[0]), 1)), 1.0
            continue
        logits = np.array([0, z[0]]) if link == "logistic" else z
        p = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
        curved, slope = np.diag(p) - np.outer(p, p), p - np.eye(len(p))[0]
        if link == "logistic":
            curved, slope = curved[1:, 1:], slope[1:]
        steepest = max(steepest, np.linalg.norm(slope))
        bent = max(bent, np.linalg.eigvalsh(curved).max())
    if link == "softmax":  # two levels alike, the others far off
        p = np.array([0.5, 0.5, 0.0])
        bent = max(bent, np.linalg.eigvalsh(np.diag(p) - np.outer(p, p)).max())
    assert 0.99 * SLOPE[link] <= steepest <= SLOPE[link] * (1 + 1e-12)
    assert 0.99 * CURVATURE[link] <= bent <= CURVATURE[link] * (1 + 1e-12)


def test_long_rows_are_cut_and_missing_numbers_add_nothing():
    question = asked("linear", clip=0.5, strength=1e6)
    one = exact(question, people([FAR]))
    assert np.linalg.norm(one) * question.grid == pytest.approx(0.5 / 1e6, rel=1e-3)
    assert not exact(question, people([[*FAR[:4], math.nan]])).any()


def test_a_row_counts_its_weight_in_parts_of_the_largest():
    schema = Schema(dict(SCHEMA.columns), row_weight=RowWeight(4, "W"))
    question = asked("logistic")
    thrice = people([FAR]).assign(W=3)
    lighter = Minimiser(Coded(("X", "G")), "D", "logistic", 1.0, 1.0, 0.5, ("G",), np.array([1.0, 0.75]))
    assert np.array_equal(exact(question, thrice, schema=schema), exact(lighter, people([FAR])))
    assert question.sensitivity(schema, Neighbours.REPLACE) == question.sensitivity(SCHEMA, Neighbours.REPLACE)


def judged(question, frame, runs, scale=1.0):
    """Probability of squared noise as far from its mean as was drawn, if it had `scale` times its deviation."""
    at = Setting(SCHEMA, Neighbours.ADD_REMOVE)
    (read,) = Reader(load_rows(SCHEMA, open_source(frame)), SystemEntropy()).each([((), question.wanted())])
    answers = [question.answer(at, read, SystemEntropy(), {}) for _ in range(runs)]
    noise = np.concatenate([question.standard_noise(at, read, answer)[0] for answer in answers]) / scale
    law, total = chi2(noise.size), float(noise @ noise)
    return 2 * min(law.cdf(total), law.sf(total))


def test_noise_has_the_deviation_that_is_charged():
    question, frame = asked("softmax", rho=0.3), people([FAR])
    assert judged(question, frame, 400) > 1e-10
    assert judged(question, frame, 400, 0.7) < 1e-10
    assert judged(question, frame, 400, 1.3) < 1e-10
    (charge,) = question.charges(SCHEMA, (), Neighbours.ADD_REMOVE)
    moved = question.sensitivity(SCHEMA, Neighbours.ADD_REMOVE)
    assert charge.amount == 0.3 >= moved**2 / (2 * charge.details["sigma"] ** 2) > 0.3 * (1 - 1e-9)


@pytest.mark.parametrize("link", LINKS)
def test_an_answer_is_kept_and_given_again(link):
    question, at = asked(link), Setting(SCHEMA, Neighbours.REPLACE)
    rows = load_rows(SCHEMA, open_source(people([FAR])))
    (read,) = Reader(rows, SystemEntropy()).each([((), question.wanted())])
    (answer,) = question.answer(at, read, SystemEntropy(), {})
    (again,) = question.recall(question.keep((answer,)))
    assert np.array_equal(again.units, answer.units)
    assert (again.grid, again.sigma) == (answer.grid, answer.sigma)
    made, seen = question.simulate(at, (), 100.0, np.random.default_rng(0))
    assert made[0].sigma == answer.sigma
    assert seen.cells == answer.units.size == question.size(SCHEMA)
    assert question.shape(made) == question.shape((answer,))


@pytest.mark.parametrize(
    ("question", "error", "words"),
    [
        (asked("logistic", strength=0.0), MechanismError, "strength"),
        (asked("logistic", clip=math.inf), MechanismError, "clip"),
        (asked("logistic", rho=-1.0), MechanismError, "rho"),
        (asked("logistic", strength=1e-9), MechanismError, "Take a larger strength"),
        (asked("logistic", rho=1e-25), MechanismError, "rho is too small"),
        (asked("logistic", by=("C",), parts=np.array([0.5, 1.1, 1])), MechanismError, "numbers from 0 to 1"),
        (asked("logistic", by=("C",)), MechanismError, "go together"),
        (Minimiser(Coded(("X",)), "C", "logistic", 1.0, 1.0, 1.0), MechanismError, "two levels"),
        (Minimiser(Coded(("X",)), "Y", "softmax", 1.0, 1.0, 1.0), MechanismError, "not a categorical column"),
        (Minimiser(Coded(("X",)), "D", "hinge", 1.0, 1.0, 1.0), MechanismError, "link"),
        (Minimiser(Coded(("X", "D")), "D", "logistic", 1.0, 1.0, 1.0), MechanismError, "among the features"),
    ],
)
def test_refused_before_anything_is_charged(question, error, words):
    with pytest.raises(error, match=words):
        question.check(SCHEMA)


def test_too_many_features_are_refused():
    wide = Schema({"A": Categorical(levels=tuple(map(str, range(2100)))), "D": SCHEMA.column("D")})
    with pytest.raises(Unsupported, match="more than 2,048 features"):
        Minimiser(Coded(("A",)), "D", "logistic", 1.0, 1.0, 1.0).check(wide)
