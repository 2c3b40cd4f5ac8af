"""Reports of audits: verdicts, controls, exit status."""

import numpy as np
import pytest

from stratsynth.accounting.budget import Currency
from stratsynth.evaluation.audit.broken import Quieter, everybody, twice_the_clip, whole_rho_for_each_table
from stratsynth.evaluation.audit.harness import HALF, THREE_QUARTERS, Experiment, Fault, Point, normal, quieter
from stratsynth.evaluation.audit.report import Report
from stratsynth.questions import Choose, Columns, Counts, Peak, Total, Work

MU = 0.5


def experiment(true=MU, works=True, **settings):
    """N(0, 1) against N(true, 1), or against N(true / share, 1) by a broken driver, if breaking it works."""
    rng = np.random.default_rng(3)  # its own: what is drawn does not depend on which tests ran before

    def draw(breakage, runs):
        mu = true / breakage.factor if breakage is not None and works else true
        one, two = rng.normal(size=runs), mu + rng.normal(size=runs)
        return MU * one - MU**2 / 2, MU * two - MU**2 / 2

    return Experiment("normal", (Point(MU, 0.0),), draw, quieter(lambda share: normal(MU / share)), **settings)


def test_a_sound_driver_is_within_and_broken_ones_are_caught():
    found = experiment().run(20_000)
    assert found.verdict == "within"
    assert [control.state for control in found.controls] == ["caught", "caught"]
    assert found.passed
    assert found.power > 0.999


def test_a_violation_is_one_and_fails_the_report():
    found = experiment(true=2 * MU).run(5_000)
    assert found.verdict == "VIOLATION"
    assert not found.passed
    assert not Report((found,)).passed
    assert "VIOLATION" in Report((found,)).to_text()


def test_a_harness_that_catches_nothing_does_not_excuse_itself():
    """The broken driver behaves like the sound one: its controls must be seen as missed."""
    found = experiment(works=False).run(20_000)
    assert [control.state for control in found.controls] == ["MISSED", "MISSED"]
    assert found.verdict == "within"
    assert not Report((found,)).passed


def test_half_the_noise_must_be_caught_however_few_the_runs():
    """Three quarters of it may be missed where the power does not suffice."""
    states = {c.name: c.state for c in experiment(works=False).run(300).controls}
    assert states == {HALF: "MISSED", THREE_QUARTERS: "no power"}


def test_power_is_the_share_that_is_caught():
    runs, sound = 600, experiment()
    fault = Fault(HALF, Quieter(0.5), normal(2 * MU))
    caught = np.mean([sound.control(fault, runs).alarm for _ in range(400)])
    assert sound.power(fault, runs) == pytest.approx(caught, abs=0.12)
    assert sound.power(fault, 10) == 0
    assert sound.power(fault, 10_000) > 0.9999


def test_fewer_errors_than_the_law_allows_are_an_alarm():
    rate = normal(MU)[0][0]
    assert experiment(law=(rate, rate)).run(20_000).verdict == "within"
    assert experiment(law=(rate * 1.2, rate)).run(20_000).verdict == "VIOLATION"


def test_replay_findings_fail_the_report():
    found = experiment().run(20_000)
    assert Report((found,)).passed
    assert not Report((found,), ("result: it differs",)).passed


def test_a_report_says_what_it_cannot_show():
    report = Report((experiment().run(20_000),))
    assert "is no proof that" in report.to_text()
    assert report.to_dict()["audits"][0]["controls"][0]["state"] == "caught"
    assert report.to_dict()["passed"] is True


def test_faults_change_what_is_asked_and_nothing_else():
    query = Columns(("X",), (0.0,), (1.0,), 3.0)
    half = Quieter(0.5)
    assert half(Counts((("A",),), 0.1)) == Counts((("A",),), 0.4)
    assert half(Choose((Peak(query, np.ones((1, 1)), np.zeros(1)),), 0.1)).rho == pytest.approx(0.4)
    assert half(Total(query, 0.1)).price == pytest.approx(0.4)
    assert half(Total(query, 0.1, Currency.PURE)).price == pytest.approx(0.2)
    assert half(Total(query, 2.0, Currency.SAMPLED)).price == 1
    assert whole_rho_for_each_table(Counts((("A",), ("B",)), 0.1)).rho == 0.2
    assert everybody(Total(query, 2.0, Currency.SAMPLED, None, 0.1)).rate == 1
    wide = twice_the_clip(Total(query, 0.1))
    assert (wide.query.clip, wide.price) == (6, pytest.approx(0.4))


@pytest.mark.parametrize("fault", [Quieter(0.5), whole_rho_for_each_table, twice_the_clip, everybody])
def test_faults_leave_other_questions_alone(fault):
    question = Work(list, None)
    assert fault(question) is question
