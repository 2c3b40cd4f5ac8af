"""Strata's models fitted in a pool: the same bit for bit, nothing but problems handed out, failures named."""

import dataclasses
import os

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import stratsynth as ss
from helpers import small
from helpers.command import complaint, stratsynth
from helpers.fits import OnStep
from helpers.ledgers import without_account
from helpers.solvers import Task, greedy, picky, refusing, squares, threads
from stratsynth.adapters import AIM, GEM, MST
from stratsynth.adapters.engine import Problem
from stratsynth.driver import process_pool, solving
from stratsynth.driver.solving import in_process, together
from stratsynth.errors import MechanismError, Unsupported, UsageError
from stratsynth.mechanisms import installed, make, prepare
from stratsynth.noise import SeededEntropy
from stratsynth.planning.rehearsal import rehearse
from stratsynth.questions import Solver, Work
from stratsynth.strata import Stratum
from stratsynth.testing.record import identical

PATHS = [(Stratum.of({"GROUP": str(i)}),) for i in range(6)]
TASKS = [Task(i, size=10 * i % 7) for i in range(6)]
TINY = {"components": 4, "hidden": [3], "latent": 2, "iterations": 1, "rounds": 2, "least": 20}
SQUARES = Solver(squares, size=lambda task: task.size)


def test_solutions_come_by_stratum_and_from_other_processes():
    ticks = []
    with solving.solving(2, lambda: ticks.append(1)) as solve:
        for _ in range(2):  # the processes are kept
            found = solve(SQUARES, TASKS, PATHS)
            assert [square for square, _ in found] == [i**2 for i in range(6)]
            assert os.getpid() not in {process for _, process in found}
            assert len({process for _, process in found}) <= 2
    assert len(ticks) == 12


def test_one_worker_is_this_process_and_so_is_a_single_problem():
    for workers, tasks in ((1, TASKS), (2, TASKS[:1])):
        ticks = []
        with solving.solving(workers, lambda ticks=ticks: ticks.append(1)) as solve:
            assert {process for _, process in solve(SQUARES, tasks, PATHS[: len(tasks)])} == {os.getpid()}
        assert len(ticks) == len(tasks)


def test_the_largest_are_begun_first(monkeypatch):
    begun, real = [], process_pool._numbered
    monkeypatch.setattr(
        process_pool, "_numbered", lambda s, i, task, all_: begun.append(task) or real(s, i, task, all_)
    )
    with solving.solving(2) as solve:
        solve(SQUARES, TASKS, PATHS)
    sizes = [task.size for task in begun]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_stratum_that_fails_is_named_and_its_data_are_not(workers):
    with solving.solving(workers) as solve:
        with pytest.raises(MechanismError, match=r"stratum 3: the fit of the model failed \(Awkward\)") as caught:
            solve(Solver(picky), TASKS, PATHS)
        assert "3333" not in str(caught.value)
        with pytest.raises(Unsupported, match="stratum 3: use a smaller number"):
            solve(Solver(refusing), TASKS, PATHS)


def test_what_fails_only_together_is_done_one_by_one():
    assert together(Solver(greedy), TASKS, PATHS) == list(range(6))


@pytest.mark.parametrize("workers", [0, -1, 1.5, "2", True, "proceses", "processes:2", "dask:", "", None])
def test_a_number_of_processes_that_is_none_is_refused_before_anything_is_spent(workers):
    table = small.table()
    with pytest.raises(UsageError, match="workers"):
        ss.fit(small.stratified(), table, small.BUDGET, workers=workers)
    assert table.ledger.reserved == ()


def fitted(how, workers):
    """A fit with the same answers every time."""
    return ss.fit(
        how, small.table(small.people(2_000)), ss.Budget(3, 1e-9), entropy=SeededEntropy(5), seed=1, workers=workers
    )


def by_group(**settings):
    return ss.Stratified(MST(**settings), ["SEX", "GROUP"], small.stratified().weights)


def test_a_fit_is_the_same_bit_for_bit(monkeypatch):
    handed, real = [], process_pool._numbered
    monkeypatch.setattr(process_pool, "_numbered", lambda s, i, one, all_: handed.append(one) or real(s, i, one, all_))
    pooled = fitted(by_group(), 2)
    assert len(handed) == 4
    assert {type(problem) for problem in handed} == {Problem}  # noisy tables and public facts, no row
    alone = fitted(by_group(), 1)
    assert identical(pooled.model.state(), alone.model.state())
    assert without_account(pooled) == without_account(alone)
    assert pooled.sample(200, seed=2).equals(alone.sample(200, seed=2))


def test_however_problems_are_put_together_the_engine_solves_them_the_same():
    """A model's solution does not depend on which others are solved beside it: the pool rests on it."""
    kept = []

    def keep(solver, problems, paths):
        kept.append((solver, list(problems)))
        return solver.solve(problems)

    fitted(by_group(), keep)
    ((solver, problems),) = kept
    whole = solver.solve(problems)
    for parts in ([[0], [1], [2], [3]], [[3, 0], [2, 1]], [[1, 2, 3], [0]]):
        found = {i: s for part in parts for i, s in zip(part, solver.solve([problems[i] for i in part]), strict=True)}
        for i, solution in enumerate(whole):
            assert found[i].iterations == solution.iterations
            assert all(np.array_equal(a, b) for a, b in zip(found[i].potentials, solution.potentials, strict=True))


# A solver of the caller's own


class Cluster:
    """Solves somewhere else: here one by one and backwards, which must make no difference."""

    def __init__(self):
        self.handed = []

    def __call__(self, solver, problems, paths):
        self.handed.append((list(problems), list(paths)))
        return [solver.solve([problem])[0] for problem in reversed(problems)][::-1]

    def close(self):
        """Only whoever started a cluster may end it."""
        raise AssertionError


def test_a_solver_of_ones_own_gives_the_same_fit_bit_for_bit():
    cluster = Cluster()
    own, usual = fitted(by_group(), cluster), fitted(by_group(), 1)
    assert identical(own.model.state(), usual.model.state())
    assert without_account(own) == without_account(usual)
    assert own.sample(200, seed=2).equals(usual.sample(200, seed=2))
    ((_, paths),) = cluster.handed
    assert paths == [(stratum,) for stratum in own.model.parts]


def leaves(value):
    """Everything that a problem is made of."""
    if dataclasses.is_dataclass(value):
        for f in dataclasses.fields(value):
            yield from leaves(getattr(value, f.name))
    elif isinstance(value, dict):
        yield from leaves([*value.items()])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)
    else:
        yield value


@pytest.mark.parametrize("how", [by_group, lambda: AIM(rounds=2), lambda: GEM(**TINY)], ids=["mst", "aim", "gem"])
def test_a_solver_of_ones_own_sees_problems_and_no_rows(how):
    """Numbers, names, and arrays that are smaller than any column of the rows."""
    cluster = Cluster()
    fitted(how(), cluster)
    assert cluster.handed
    for problems, _ in cluster.handed:
        for leaf in leaves(problems):
            assert isinstance(leaf, np.ndarray | np.generic | int | float | str | None), type(leaf)
            assert np.size(leaf) < 2_000


def test_work_goes_on_ticking_with_a_solver_of_ones_own():
    ticks = []
    with solving.solving(Cluster(), lambda: ticks.append(1)) as solve:
        assert [square for square, _ in solve(SQUARES, TASKS, PATHS)] == [i**2 for i in range(6)]
    assert len(ticks) == 6


# One thread for linear algebra


class Watching:
    """Solves as a fit does that was told nothing, and notes how many threads there were inside."""

    def __init__(self):
        self.here, self.seen = in_process, []

    def __call__(self, solver, problems, paths):
        def watched(some):
            self.seen.append(threads([0])[0][0])
            return solver.solve(some)

        return self.here(dataclasses.replace(solver, solve=watched), problems, paths)


HAND_OUT = {
    "aim": {"rounds": 2},
    "fixed": {},
    "gem": TINY,
    "mst": {},
    "pooled": {"base": "mst", "share": 0.5, "by": ["SEX"], "weights": small.even(small.SCHEMA, "SEX")},
}
"""Mechanisms that hand out work, with settings that make them quick."""


def test_all_that_hand_out_work_are_looked_at():
    found = [name for name in installed() if Work in make(name, HAND_OUT.get(name, {})).needs]
    # independent fits something only where there is a prior; linked two tables, by a base that is here
    assert found == sorted([*HAND_OUT, "independent", "linked"])


@pytest.mark.parametrize("stratified", [False, True], ids=["alone", "in strata"])
@pytest.mark.parametrize("name", HAND_OUT)
def test_linear_algebra_has_one_thread_while_models_are_fitted(name, stratified):
    """Whatever it had before, and has again afterwards."""
    how, watching = make(name, HAND_OUT[name]), Watching()
    if stratified:
        how = ss.Stratified(how, ["GROUP"], small.even(small.SCHEMA, "GROUP"))
    with threadpool_limits(2, "blas"):
        fitted(how, watching)
        assert threads([0])[0][0] == 2
    assert watching.seen
    assert set(watching.seen) == {1}


@pytest.mark.parametrize("apart", [False, True])
def test_problems_that_are_apart_have_a_thread_each(apart):
    with threadpool_limits(2, "blas"), solving.solving() as solve:
        assert {most for most, _ in solve(Solver(threads, apart=apart), TASKS, PATHS)} == {1}
        assert threads([0])[0][0] == 2


def test_other_processes_have_one_thread_too(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")  # what they would inherit
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with solving.solving(2) as solve:
        found = solve(Solver(threads), TASKS, PATHS)
    assert {most for most, _ in found} == {1}
    assert os.getpid() not in {process for _, process in found}


def test_progress_counts_moments_and_models():
    ticks = []
    how, budget = by_group(), ss.Budget(3, 1e-9)
    from stratsynth.fitting import fitted as run

    with run(how, small.table(), budget, observer=OnStep(lambda: ticks.append(1))):
        pass
    # counts, a choice for the only pair of the two columns left, counts; and four models
    assert len(ticks) == 3 + 4
    assert rehearse(prepare(how, small.SCHEMA, budget, small.SIZE)).moments == len(ticks)


def test_the_command_takes_workers(tmp_path):
    recipe = small.write_recipe(tmp_path / "here")
    small.edit(recipe, 'name = "independent"', 'name = "mst"')
    done = stratsynth("fit", recipe, "--workers", 2, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "workers" in complaint(stratsynth("fit", recipe, "-o", "again", "--workers", 0, cwd=tmp_path), 2)
    assert not (tmp_path / "again").exists()
