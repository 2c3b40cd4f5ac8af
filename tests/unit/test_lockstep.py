"""Questions of one moment are answered together."""

import pytest

from helpers.replies import Replies
from helpers.small import SCHEMA
from stratsynth.driver.lockstep import AnswerSource, run
from stratsynth.errors import MechanismError
from stratsynth.questions import Counts, Solver, counts, split, work
from stratsynth.strata import crossing, label

STRATA = crossing(SCHEMA, ["SEX", "GROUP"])


class Teller(AnswerSource):
    """Answers every question with its name, and remembers what was asked together."""

    def __init__(self):
        self.batches = []

    def __call__(self, asked):
        self.batches.append([(label(a.path), a.question.cliques[0][0]) for a in asked])
        return [f"{label(a.path)}:{a.question.cliques[0][0]}" for a in asked]


def ask(*columns):
    answers = {}
    for i, column in enumerate(columns):
        answers[i] = yield from counts([(column,)], rho=1)
    return list(answers.values())


def over(strata, program):
    return (yield from split({stratum: program(stratum) for stratum in strata}))


def test_a_program_is_sent_its_answers_and_its_result_returned():
    assert run(ask("AGE", "SEX"), SCHEMA, Teller()) == [":AGE", ":SEX"]


def test_a_program_may_ask_nothing():
    assert run(ask(), SCHEMA, Teller()) == []


def test_four_strata_need_two_passes_for_eight_answers():
    teller = Teller()
    run(over(STRATA, lambda _: ask("AGE", "WORK")), SCHEMA, teller)
    names = ["1|a", "1|b", "2|a", "2|b"]
    assert teller.batches == [[(n, "AGE") for n in names], [(n, "WORK") for n in names]]


def test_each_program_gets_its_own_answers():
    results = run(over(STRATA, lambda _: ask("AGE", "WORK")), SCHEMA, Teller())
    assert results == {s: [f"{s.label}:AGE", f"{s.label}:WORK"] for s in STRATA}


def test_results_come_in_declared_order_whoever_finishes_first():
    teller = Teller()
    backwards = STRATA[::-1]
    results = run(over(backwards, lambda s: ask(*["AGE"] * (1 + STRATA.index(s)))), SCHEMA, teller)
    assert list(results) == list(backwards)
    assert [len(batch) for batch in teller.batches] == [4, 3, 2, 1]


def test_strata_that_ask_nothing_do_not_hold_up_the_others():
    teller = Teller()
    results = run(over(STRATA, lambda s: ask(*["AGE"] * (s == STRATA[2]))), SCHEMA, teller)
    assert teller.batches == [[("2|a", "AGE")]]
    assert [len(r) for r in results.values()] == [0, 0, 1, 0]


def test_nested_splits_ask_together_too():
    teller = Teller()
    inner = crossing(SCHEMA, ["GROUP"])
    outer = crossing(SCHEMA, ["SEX"])
    results = run(over(outer, lambda _: over(inner, lambda _: ask("AGE"))), SCHEMA, teller)
    assert teller.batches == [[(n, "AGE") for n in ["1|a", "1|b", "2|a", "2|b"]]]
    assert results[outer[1]][inner[0]] == ["2|a:AGE"]


def test_a_split_is_followed_by_more_questions_and_other_splits():
    teller = Teller()

    def program():
        first = yield from over(crossing(SCHEMA, ["SEX"]), lambda _: ask("AGE"))
        middle = yield from ask("AGE")
        second = yield from over(crossing(SCHEMA, ["GROUP"]), lambda _: ask("AGE"))
        return [*first.values(), middle, *second.values()]

    assert run(program(), SCHEMA, teller) == [["1:AGE"], ["2:AGE"], [":AGE"], ["a:AGE"], ["b:AGE"]]
    assert [len(batch) for batch in teller.batches] == [2, 1, 2]


def test_a_question_is_checked_against_what_varies_at_its_path():
    with pytest.raises(MechanismError, match="SEX"):
        run(over(STRATA, lambda _: ask("SEX")), SCHEMA, Teller())


def test_a_malformed_question_of_one_stratum_stops_all_before_any_answer():
    teller = Teller()
    with pytest.raises(MechanismError):
        run(over(STRATA, lambda s: ask("NOBODY" if s == STRATA[3] else "AGE")), SCHEMA, teller)
    assert teller.batches == []


def with_their_number(problems):
    return [(problem, len(problems)) for problem in problems]


together = Solver(with_their_number)
alone = Solver(with_their_number, apart=True)


def test_work_of_the_same_solver_is_pooled_and_reaches_no_rows():
    teller = Teller()
    solvers = [together, together, alone, together]
    results = run(over(STRATA, lambda s: work(solvers[STRATA.index(s)], s.label)), SCHEMA, teller)
    assert [*results.values()] == [("1|a", 3), ("1|b", 3), ("2|a", 1), ("2|b", 3)]
    assert teller.batches == []


def test_work_and_questions_of_the_same_moment_go_on_together():
    teller = Teller()

    def program(stratum):
        if stratum == STRATA[0]:
            return (yield from work(together, "x"))
        return (yield from ask("AGE"))

    results = run(over(STRATA, program), SCHEMA, teller)
    assert results[STRATA[0]] == ("x", 1)
    assert len(teller.batches[0]) == 3


@pytest.mark.parametrize(
    "mistake", [None, "AGE", 7, Counts, object()], ids=["nothing", "text", "number", "class", "object"]
)
def test_what_is_no_question_is_refused(mistake):
    def program():
        yield mistake

    with pytest.raises(MechanismError):
        run(program(), SCHEMA, Teller())


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_every_program_is_closed_after_an_error(error):
    closed = []

    def program(stratum):
        try:
            yield from ask("AGE", "AGE")
        finally:
            closed.append(stratum)

    def answer(asked):
        raise error

    with pytest.raises(error) as caught:  # the traceback keeps the programs alive: nothing else closes them
        run(over(STRATA, program), SCHEMA, Replies(answer))
    assert closed == list(STRATA), caught


def test_every_program_is_closed_when_another_one_fails():
    closed = []

    def program(stratum):
        try:
            yield from ask("AGE")
            if stratum == STRATA[1]:
                raise ZeroDivisionError("of what was answered")
            yield from ask("AGE")
        finally:
            closed.append(stratum)

    # the stratum is named, and what went wrong by its kind alone
    with pytest.raises(MechanismError, match=rf"stratum {STRATA[1].label}: .*\(ZeroDivisionError\)") as caught:
        run(over(STRATA, program), SCHEMA, Teller())
    assert sorted(closed) == sorted(STRATA), caught
    assert "answered" not in str(caught.value)


def test_an_answer_too_few_is_an_error():
    with pytest.raises(ValueError, match="argument"):
        run(over(STRATA, lambda _: ask("AGE")), SCHEMA, Replies(lambda asked: ["one"]))
