"""The sums that networks ask for: right by finite differences, clipped as whole vectors, and of each row alone."""

import numpy as np
import pytest

from helpers.regressing import SCHEMA, people
from stratsynth.accounting.budget import PRICED
from stratsynth.data.load import load_rows
from stratsynth.data.sources import open_source
from stratsynth.errors import MechanismError
from stratsynth.questions import Coded, Design, NetworkGradients, NetworkLosses
from stratsynth.questions.sums.base import GRID, check_query

CODED = Coded(("G", "X", "Z"), interactions=(("X", "G"),))
FEATURES, UNITS = 5, 3


def weights(target, seed=0, scale=1.0):
    """Some hidden and output weights for a target of SCHEMA."""
    rng, levels = np.random.default_rng(seed), SCHEMA.size(target)
    shapes = (UNITS, FEATURES), (UNITS + 1, 1 if levels == 2 else levels)
    return [rng.normal(scale=scale, size=shape) for shape in shapes]


def exact(query, frame):
    check_query("total", query, SCHEMA)
    return [np.asarray(x) for x in load_rows(SCHEMA, open_source(frame)).sums([((), query, 1.0)], None)[0]]


def by_hand(frame):
    """The features of CODED, worked out in plain numpy."""
    g, x = (frame.G == "b").to_numpy(float), frame.X.to_numpy()
    return np.column_stack([np.ones(len(frame)), g, x, frame.Z / 5 - 1, x * g])


def chances(frame, hidden, output):
    """The probability of each level."""
    logits = np.tanh(by_hand(frame) @ hidden.T) @ output[:-1] + output[-1]
    logits = logits if logits.shape[1] > 1 else np.column_stack([0 * logits, logits])
    power = np.exp(logits)
    return power / power.sum(axis=1, keepdims=True)


def log_losses(frame, target, hidden, output):
    codes = frame[target].map(SCHEMA.levels(target).index).to_numpy()
    return -np.log(chances(frame, hidden, output)[np.arange(len(frame)), codes])


def differences(frame, target, hidden, output, step=1e-5):
    """Each row's gradient by central differences, one row a row of the frame."""
    flat = np.concatenate([hidden.ravel(), output.ravel()])
    columns = []
    for i in range(flat.size):
        ends = []
        for sign in (1, -1):
            moved = flat + sign * step * (np.arange(flat.size) == i)
            layers = moved[: hidden.size].reshape(hidden.shape), moved[hidden.size :].reshape(output.shape)
            ends.append(log_losses(frame, target, *layers))
        columns.append((ends[0] - ends[1]) / (2 * step))
    return np.column_stack(columns)


@pytest.mark.parametrize("target", ["D", "C"])
@pytest.mark.parametrize("clip", [0.3, 4.0])
def test_each_rows_gradient_is_that_of_finite_differences_clipped_as_one_vector(target, clip):
    frame, (hidden, output) = people(60), weights(target)
    each = differences(frame, target, hidden, output)
    length = np.linalg.norm(each, axis=1, keepdims=True)
    assert (length > 0.3).sum() > 10
    assert (length <= 4.0).all()
    each *= np.minimum(1, clip / length)
    for i in range(len(frame)):
        (found,) = exact(NetworkGradients(CODED, target, hidden, output, clip), frame.iloc[[i]])
        assert np.abs(found * clip / GRID - each[i]).max() < 1.5e-3
    (whole,) = exact(NetworkGradients(CODED, target, hidden, output, clip), frame)
    assert np.abs(whole * clip / GRID - each.sum(axis=0)).max() < 1e-3 * len(frame)


@pytest.mark.parametrize("target", ["D", "C"])
@pytest.mark.parametrize("measure", ["log", "squared"])
def test_losses_are_cut_at_the_clip(target, measure):
    frame, (hidden, output), clip = people(300), weights(target), 0.35
    p, codes = chances(frame, hidden, output), frame[target].map(SCHEMA.levels(target).index).to_numpy()
    each = log_losses(frame, target, hidden, output)
    if measure == "squared":
        each = ((p - np.eye(p.shape[1])[codes]) ** 2).sum(axis=1) / 2
    assert (each > clip).any()
    (found,) = exact(NetworkLosses(CODED, target, hidden, output, clip, measure), frame)
    assert found[0] * clip / GRID == pytest.approx(np.minimum(each, clip).sum(), rel=1e-3)


def test_one_row_moves_nothing_by_more_than_its_clip():
    """Whatever the weights are, in whole numbers of any size: the norm of one row's whole vector."""
    frame = people(8).assign(X=lambda f: f.X.where(f.index % 3 > 0, 1.0), Z=lambda f: f.Z.where(f.index % 4 > 0, 10.0))
    rng, longest = np.random.default_rng(1), 0
    for scale in (0.0, 1.0, 30.0, 1e300):
        for target in ("D", "C"):
            hidden, output = weights(target, 2, scale)
            for clip in (1e-90, 0.05, 1e3):
                parts = rng.uniform(size=2)
                for i in range(len(frame)):
                    (found,) = exact(NetworkGradients(CODED, target, hidden, output, clip), frame.iloc[[i]])
                    square = int((found.astype(object) ** 2).sum())
                    longest = max(longest, square)
                    assert square <= GRID**2
                    query = NetworkGradients(CODED, target, hidden, output, clip, ("G",), parts)
                    (scaled,) = exact(query, frame.iloc[[i]])
                    assert (np.abs(scaled) <= np.abs(found)).all()
                    for measure in ("log", "squared"):
                        loss = exact(NetworkLosses(CODED, target, hidden, output, clip, measure), frame.iloc[[i]])
                        assert 0 <= int(loss[0][0]) <= GRID
    assert longest > 0.999 * GRID**2


@pytest.mark.parametrize("target", ["D", "C"])
@pytest.mark.parametrize("kind", ["gradients", "parts", "log", "squared"])
def test_a_rows_part_depends_on_that_row_alone_to_the_last_bit(kind, target):
    """The sum over a table is the sum of the rows' own sums, in whatever order and company."""
    frame, layers = people(150), weights(target)
    if kind in ("gradients", "parts"):
        cells = (("G",), np.array([0.3, 1.0])) if kind == "parts" else ()
        query = NetworkGradients(CODED, target, *layers, 0.3, *cells)
    else:
        query = NetworkLosses(CODED, target, *layers, 0.7, kind)
    alone = [exact(query, frame.iloc[[i]])[0] for i in range(len(frame))]
    (whole,) = exact(query, frame.sample(frac=1, random_state=1))
    assert (whole == np.sum(alone, axis=0)).all()


def test_parts_scale_a_rows_clipped_gradient():
    frame, layers = people(400), weights("D")
    (found,) = exact(NetworkGradients(CODED, "D", *layers, 0.4, ("G",), np.array([0.25, 1.0])), frame)
    (a,), (b,) = (exact(NetworkGradients(CODED, "D", *layers, 0.4), frame[g == frame.G]) for g in "ab")
    assert np.abs(found - (a / 4 + b)).max() <= 400 * 4096  # less than a unit a row, times a whole feature


def test_many_units_stay_exact():
    """With 1,024 units both layers' products are still whole numbers below 2^53: rows add up to the last bit."""
    rng, frame = np.random.default_rng(5), people(40)
    hidden, output = rng.normal(scale=1e5, size=(1024, FEATURES)), np.full((1025, 1), 1e5)
    query = NetworkGradients(CODED, "D", hidden, output, 1.0)
    (whole,) = exact(query, frame)
    assert (whole == np.sum([exact(query, frame.iloc[[i]])[0] for i in range(40)], axis=0)).all()


def test_sensitivities():
    """All weights have one clip together; a cut loss moves as far if exchanged as if added."""
    layers = weights("D")
    (gradient,) = NetworkGradients(CODED, "D", *layers, 0.4).blocks(SCHEMA)
    assert gradient.size == UNITS * FEATURES + UNITS + 1
    assert [gradient.sensitivity(n) for n in PRICED] == [0.4, 0.8]
    (loss,) = NetworkLosses(CODED, "D", *layers, 0.4).blocks(SCHEMA)
    assert {loss.sensitivity(n) for n in PRICED} == {0.4}


@pytest.mark.parametrize("kind", [NetworkGradients, NetworkLosses])
def test_a_question_is_known_by_shapes_and_not_by_weights(kind):
    """Weights come from earlier answers, whose last bits another processor may see differently."""
    hidden, output = weights("D")
    known = kind(CODED, "D", hidden, output, 2.0).replayed()
    assert kind(CODED, "D", hidden + 1e-16, output, 2.0).replayed() == known
    assert kind(CODED, "D", hidden[:2], output[:3], 2.0).replayed() != known
    assert kind(CODED, "D", hidden, output, 2.1).replayed() != known


class Fewer(Design):
    """A design that claims to be smaller than it is."""

    def names(self, schema):
        return ("1",)


HIDDEN, OUTPUT = weights("D")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (NetworkGradients(CODED, "Y", HIDDEN, OUTPUT, 1.0), "not a categorical column"),
        (NetworkGradients(CODED, "G", HIDDEN, OUTPUT, 1.0), "is among the features"),
        (NetworkGradients(CODED, "C", HIDDEN, OUTPUT, 1.0), r"shape \(4, 3\)"),
        (NetworkGradients(CODED, "D", HIDDEN[:, :2], OUTPUT, 1.0), "of 5 columns"),
        (NetworkGradients(CODED, "D", HIDDEN[:0], OUTPUT[:1], 1.0), "1 to 1024 rows"),
        (NetworkGradients(CODED, "D", np.zeros((1025, 5)), np.zeros((1026, 1)), 1.0), "1 to 1024 rows"),
        (NetworkGradients(CODED, "D", HIDDEN, OUTPUT[:-1], 1.0), r"shape \(4, 1\)"),
        (NetworkGradients(CODED, "D", HIDDEN + np.inf, OUTPUT, 1.0), "finite"),
        (NetworkGradients(CODED, "D", HIDDEN, OUTPUT * np.nan, 1.0), "finite"),
        (NetworkGradients(CODED, "D", HIDDEN, OUTPUT, 0.0), "clip"),
        (NetworkGradients(CODED, "D", HIDDEN, OUTPUT, 1.0, ("G",)), "go together"),
        (NetworkGradients(CODED, "D", HIDDEN, OUTPUT, 1.0, ("G",), np.array([0.5, 1.1])), "from 0 to 1"),
        (NetworkGradients(Fewer(("X",)), "D", np.zeros((1, 1)), np.zeros((2, 1)), 1.0), "not one of the known designs"),
        (NetworkLosses(CODED, "D", HIDDEN, OUTPUT, 1.0, "cubic"), "measure"),
        (NetworkLosses(CODED, "D", HIDDEN, OUTPUT[:2], 1.0), r"shape \(4, 1\)"),
    ],
)
def test_what_is_malformed_is_refused_by_the_schema_alone(query, words):
    with pytest.raises(MechanismError, match=words):
        check_query("total", query, SCHEMA)


def test_a_network_of_ones_own_is_refused():
    class Mine(NetworkGradients):
        """It could restate its own sensitivity."""

    with pytest.raises(MechanismError, match="not one of the known queries"):
        check_query("total", Mine(CODED, "D", HIDDEN, OUTPUT, 1.0), SCHEMA)
