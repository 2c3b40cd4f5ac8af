"""Third-party synthesizers: their claim stands in the certificate, unverified; what they return is checked."""

import json

import numpy as np
import pandas as pd
import pytest

from helpers import small
from helpers.ledgers import kinds, refused
from helpers.ledgers import table as on_a_ledger
from stratsynth import Budget, Release, Stratified, Weights, fit
from stratsynth.accounting.prices import STEPS
from stratsynth.adapters import External, third_party
from stratsynth.adapters.external import Drawn
from stratsynth.data.sources import open_source
from stratsynth.errors import MechanismError, ReleaseError, Unsupported, UsageError
from stratsynth.models import State
from stratsynth.release.page.summary import summary
from stratsynth.schema.encoding import encode

BY = "their package 1.0"
NAMES = list(small.SCHEMA.names)
EXCHANGED = Budget(1, 1e-9, "replace")


def resample(frame, sizes, epsilon, delta, rows):
    """Not private at all: their word is all there is."""
    return frame.iloc[np.arange(rows) % max(len(frame), 1)].reset_index(drop=True)


def uniform(frame, sizes, epsilon, delta, rows):
    rng = np.random.default_rng(0)
    return pd.DataFrame({name: rng.integers(0, size, rows) for name, size in sizes.items()})


def weights():
    return Weights.public(small.shares_frame(), citation="made up for testing")


def release(synthesizer=resample, budget=EXCHANGED, **settings):
    return fit(External(synthesizer, BY, **settings), small.table(), budget)


# What is said of it


def test_the_claim_is_recorded_and_stamped_unverified():
    said = release().certificate
    assert said["guarantee"]["currency"] == "claimed"
    assert (said["guarantee"]["epsilon"], said["guarantee"]["delta"]) == (1, 1e-9)
    assert [u for u in said["unverified"] if BY in u] == said["unverified"] != []
    (charge,) = said["charges"]
    assert (charge["kind"], charge["claimed_by"], charge["delta"]) == ("raw", BY, 1e-9)
    assert said["mechanism"]["settings"]["by"] == BY


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_no_price_is_made_up_for_what_was_not_claimed(neighbours):
    certificate = json.loads(
        json.dumps(release(uniform, Budget(1, 1e-9, neighbours), counts_rows=False).certificate, allow_nan=False)
    )
    assert certificate["prices"] == {**dict.fromkeys(STEPS), neighbours: 1}


@pytest.mark.parametrize("rows", [None, 7])
def test_a_release_is_saved_loaded_and_sampled(rows, tmp_path):
    made = release(rows=rows)
    assert made.measurements.num_rows == 0
    again = Release.load(made.save(tmp_path / "release", rows=40, seed=3))
    assert again.certificate == made.certificate
    pd.testing.assert_frame_equal(again.sample(200, seed=1), made.sample(200, seed=1))
    assert set(again.sample(10, where={"SEX": "2"})["SEX"]) == {"2"}


def test_the_summary_says_whose_claim_it_is_and_which_prices_nobody_knows():
    said = summary(release().certificate)
    assert f"{BY}: its own claim of epsilon 1" in said
    assert [line.split()[-1] for line in said.splitlines() if "change" in line] == ["unknown", "unknown", "1"]


# What it may be used for


def test_inside_strata_it_is_refused_when_it_counts_the_rows():
    with pytest.raises(Unsupported, match="size of every group"):
        Stratified(External(resample, BY), ["SEX"], weights())


def test_a_claim_inside_strata_is_refused_before_the_rows_are_read(monkeypatch):
    """The question itself refuses if no Stratified stands in between."""
    how = External(uniform, BY, counts_rows=False)
    inside = Stratified(how, ["SEX", "GROUP"], weights())
    object.__setattr__(how, "counts_rows", True)
    monkeypatch.setattr("stratsynth.data.backends.load_rows", lambda *given, **settings: pytest.fail("read"))
    with pytest.raises(Unsupported, match="size of every group"):
        fit(inside, small.table(), EXCHANGED)


def test_it_promises_nothing_for_a_record_more_when_it_counts_the_rows():
    with pytest.raises(Unsupported, match='neighbours = "replace"'):
        release(budget=small.BUDGET)
    assert release(uniform, small.BUDGET, counts_rows=False).certificate["neighbours"] == "add-remove"


def test_inside_strata_it_gets_the_rows_of_each_stratum_without_their_columns():
    seen = []

    def watch(frame, sizes, epsilon, delta, rows):
        seen.append((len(frame), list(frame), epsilon, rows))
        return uniform(frame, sizes, epsilon, delta, rows)

    made = fit(
        Stratified(External(watch, BY, counts_rows=False), ["SEX", "GROUP"], weights()), small.table(), small.BUDGET
    )
    truth = small.people().groupby(["SEX", "GROUP"]).size()
    expected = [(truth[key], ["AGE", "WORK"], 1, max(1, round(100 * share))) for key, share in small.SHARES.items()]
    assert seen == expected
    assert len(made.certificate["unverified"]) == 1
    assert len(made.certificate["charges"]) == 4
    assert made.sample(100).groupby(["SEX", "GROUP"]).size().to_dict() == {
        key: 100 * share for key, share in small.SHARES.items() if share
    }


@pytest.mark.parametrize(
    "settings",
    [{"by": ""}, {"rows": 0}, {"rows": 2.5}, {"rows": True}, {"synthesizer": None}, {"synthesizer": 3}],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(UsageError, match="external"):
        External(**{"synthesizer": uniform, "by": BY, **settings})


# What it is given, and what it gives back


def test_it_is_given_a_copy_of_the_level_numbers_in_the_order_of_the_schema():
    given = []

    def spoil(frame, sizes, epsilon, delta, rows):
        given.append((frame.copy(), dict(sizes), epsilon, delta, rows))
        frame.loc[:, :] = 0
        return frame.iloc[:rows]

    shuffled = small.people()[NAMES[::-1]]
    before = shuffled.copy()
    fit(External(spoil, BY, rows=5), small.table(shuffled), EXCHANGED)
    pd.testing.assert_frame_equal(shuffled, before)
    fit(External(spoil, BY, rows=5), small.table(shuffled), EXCHANGED)
    (frame, sizes, *rest), again = given
    pd.testing.assert_frame_equal(frame, again[0])
    assert list(sizes.items()) == [(name, small.SCHEMA.size(name)) for name in NAMES]
    assert rest == [1, 1e-9, 5]
    assert list(frame) == NAMES
    coded = encode(small.SCHEMA, open_source(shuffled).read(small.SCHEMA.names), ["AGE"])
    for name in NAMES:
        assert frame[name].dtype == np.int64
        assert frame[name].tolist() == coded.codes[name].tolist()


def broken(change):
    def synthesizer(frame, sizes, epsilon, delta, rows):
        return change(uniform(frame, sizes, epsilon, delta, rows))

    return synthesizer


@pytest.mark.parametrize(
    "change",
    [
        lambda drawn: None,
        lambda drawn: 3,
        lambda drawn: drawn.to_numpy(),
        lambda drawn: drawn.drop(columns="WORK"),
        lambda drawn: drawn.assign(WORK="yes"),
        lambda drawn: drawn.astype(float),
        lambda drawn: drawn.assign(WORK=drawn["WORK"] == 1),
        lambda drawn: drawn.assign(WORK=3),
        lambda drawn: drawn.assign(WORK=-1),
        lambda drawn: drawn.iloc[:-1],
        lambda drawn: pd.concat([drawn, drawn]),
        lambda drawn: {**drawn, "WORK": drawn["WORK"].iloc[:-1]},
        lambda drawn: {**drawn, "WORK": drawn[["WORK"]]},
        lambda drawn: {**drawn, "WORK": 1},
    ],
    ids=[
        "nothing",
        "number",
        "array",
        "column missing",
        "texts",
        "floats",
        "booleans",
        "too high",
        "negative",
        "too short",
        "too long",
        "ragged",
        "matrix",
        "scalar",
    ],
)
def test_what_it_returns_is_checked(change):
    with pytest.raises(MechanismError):
        release(broken(change))


def test_its_own_errors_are_not_quoted():
    def leak(frame, *given):
        raise ValueError(f"found unknown level {frame.iloc[0].tolist()} of zebra")

    with pytest.raises(MechanismError, match="failed; the charge stands") as caught:
        release(leak)
    assert "zebra" not in str(caught.value)
    assert "ValueError" not in str(caught.value)
    assert caught.value.__suppress_context__


# With a ledger file


def test_a_claim_that_does_not_cover_the_budget_reserves_nothing(data):
    refused(data, 'neighbours = "replace"', Unsupported, External(uniform, BY))


def test_an_interrupted_fit_is_charged_anew_and_rows_are_never_journalled(data):
    runs = []

    def slow(frame, sizes, epsilon, delta, rows):
        runs.append(len(frame))
        if len(runs) == 1:
            raise KeyboardInterrupt
        return uniform(frame, sizes, epsilon, delta, rows)

    with pytest.raises(KeyboardInterrupt):
        fit(External(slow, BY), on_a_ledger(data), EXCHANGED)
    made = fit(External(slow, BY), on_a_ledger(data), EXCHANGED)
    assert runs == [100, 100]
    assert kinds(data.with_name("people.ledger")) == ["ledger", *["reserve", "charge"] * 2, "done"]
    assert made.certificate["ledger"]["spent_epsilon"] == pytest.approx(2)
    assert not list(data.parent.rglob("*.npz"))


# The drawn table


@pytest.fixture(scope="module")
def drawn():
    return release().model


def test_a_drawn_row_comes_once_as_long_as_they_last(drawn):
    rows = pd.DataFrame(drawn.sample(100, np.random.default_rng(1)))
    pd.testing.assert_frame_equal(
        rows.sort_values(NAMES, ignore_index=True), pd.DataFrame(drawn.codes).sort_values(NAMES, ignore_index=True)
    )
    assert len(drawn.sample(1000, np.random.default_rng(1))["SEX"]) == 1000


def test_conditions_hold_and_mass_is_their_share(drawn):
    where = {"SEX": frozenset({1}), "WORK": frozenset({0, 2})}
    kept = (drawn.codes["SEX"] == 1) & np.isin(drawn.codes["WORK"], [0, 2])
    assert 0 < drawn.mass(where) == kept.mean() < 1
    assert drawn.mass({}) == 1
    rows = drawn.sample(500, np.random.default_rng(1), where)
    assert set(rows["SEX"]) == {1}
    assert set(rows["WORK"]) <= {0, 2}
    nobody = {"SEX": frozenset()}
    assert drawn.mass(nobody) == 0
    assert len(drawn.sample(0, np.random.default_rng(1), nobody)["SEX"]) == 0
    with pytest.raises(MechanismError, match="no row"):
        drawn.sample(1, np.random.default_rng(1), nobody)


def test_the_state_gives_the_same_table(drawn):
    again = Drawn.from_state(small.SCHEMA, drawn.state())
    assert {n: a.tolist() for n, a in again.codes.items()} == {n: a.tolist() for n, a in drawn.codes.items()}


@pytest.mark.parametrize(
    "damage",
    [
        lambda arrays: {**arrays, "SEX": arrays["SEX"] + 5},
        lambda arrays: {**arrays, "SEX": arrays["SEX"] - 1},
        lambda arrays: {**arrays, "SEX": arrays["SEX"][:-1]},
        lambda arrays: {**arrays, "SEX": arrays["SEX"].astype(float)},
        lambda arrays: {**arrays, "SEX": arrays["SEX"].reshape(2, -1)},
        lambda arrays: {n: a for n, a in arrays.items() if n != "WORK"},
    ],
    ids=["too high", "negative", "short", "floats", "matrix", "missing"],
)
def test_a_damaged_table_is_refused(damage, drawn):
    with pytest.raises(ReleaseError):
        Drawn.from_state(small.SCHEMA, State({}, damage(drawn.state().arrays)))


# Those that are known


def test_a_third_party_that_is_not_known_is_refused():
    with pytest.raises(UsageError, match="opendp-mst"):
        third_party.known("opendp_mst")


@pytest.mark.parametrize(("package", "has"), [("no-such-package-anywhere", "none"), ("numpy", np.__version__)])
def test_a_package_that_is_missing_or_another_version_is_refused_before_any_charge(package, has, monkeypatch):
    monkeypatch.setitem(third_party.KNOWN, "theirs", (uniform, {package: "0.0."}, True))
    with pytest.raises(UsageError, match=rf"theirs needs {package} 0.0.\*, and {has} is installed"):
        third_party.known("theirs")


def test_who_claims_is_the_package_and_its_version(monkeypatch):
    monkeypatch.setitem(third_party.KNOWN, "theirs", (uniform, {"numpy": ""}, True))
    how = third_party.known("theirs", rows=3)
    assert (how.by, how.counts_rows, how.rows) == (f"MST of numpy {np.__version__}", True, 3)


@pytest.mark.filterwarnings("default")  # theirs
@pytest.mark.reference
@pytest.mark.parametrize("name", third_party.KNOWN)
@pytest.mark.usefixtures("seeded_noise")
def test_a_known_synthesizer_makes_a_release_and_keeps_what_goes_together(name):
    try:
        how = third_party.known(name, rows=400)
    except UsageError as error:
        pytest.skip(str(error))
    people = small.people(1200).assign(SEX="1", AGE=lambda rows: 3 * (rows["GROUP"] == "a"))
    made = fit(how, small.table(people), Budget(5, 1e-9, "replace"))
    assert made.certificate["unverified"] == [f"{how.by}: its own claim of epsilon 5"]
    rows = made.sample(400)
    assert (rows["SEX"] == "1").mean() > 0.95
    assert ((rows["AGE"] >= 3) == (rows["GROUP"] == "a")).mean() > 0.9
    assert rows["WORK"].value_counts(normalize=True)["no"] == pytest.approx(0.5, abs=0.15)
