"""Models fitted in other processes and on clusters: the same bit for bit, tried again where a worker ends, no rows."""

import contextlib
import os
import pickle
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import stratsynth as ss
from helpers import network, small
from helpers.command import complaint, stratsynth
from helpers.ledgers import kinds, without_account
from helpers.small import SCHEMA, SIZE
from helpers.solvers import Task, dying, dying_once, picky, squares, threads
from stratsynth.adapters import MST
from stratsynth.driver import clusters, solving
from stratsynth.driver.process_pool import Elsewhere
from stratsynth.errors import MechanismError, StratsynthError, UsageError
from stratsynth.noise import SeededEntropy
from stratsynth.questions import Solver
from stratsynth.strata import Stratum
from stratsynth.testing.record import identical

PATHS = [(Stratum.of({"GROUP": str(i)}),) for i in range(6)]
TASKS = [Task(i, size=10 * i % 7) for i in range(6)]
WORKERS = [
    pytest.param("processes"),
    pytest.param(3),
    pytest.param("dask", marks=pytest.mark.dask),
    pytest.param("ray", marks=pytest.mark.ray),
]
PACKAGES = {"dask": "distributed", "ray": "ray"}


@pytest.fixture(autouse=True)
def local(request, monkeypatch):
    """Clusters on this machine talk to themselves through the network's loop; their workers find the tests' helpers."""
    name = request.node.callspec.params.get("workers") if hasattr(request.node, "callspec") else None
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name], reason=f"{name} is not installed; scripts/test --with {name} installs it")
        monkeypatch.setattr(network, "allowed", True)
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    monkeypatch.setenv("PYTHONPATH", path)


def mortal(folder):
    """Problems of which one ends its process the first time."""
    return [Task(i, mark=str(folder / "died")) for i in range(6)]


def by_group():
    return ss.Stratified(MST(), ["SEX", "GROUP"], small.stratified().weights)


def fitted(workers, **settings):
    """A fit with the same answers every time."""
    table = ss.open_table(small.people(2_000), schema=SCHEMA, declared_size=SIZE, **settings)
    return ss.fit(by_group(), table, ss.Budget(3, 1e-9), entropy=SeededEntropy(5), seed=1, workers=workers)


@pytest.mark.parametrize("workers", WORKERS)
def test_a_fit_is_the_same_bit_for_bit(workers):
    one, other = fitted(workers), fitted(1)
    assert identical(one.model.state(), other.model.state())
    assert without_account(one) == without_account(other)
    assert one.sample(200, seed=2).equals(other.sample(200, seed=2))


@pytest.mark.parametrize("workers", WORKERS)
def test_problems_are_solved_elsewhere_with_one_thread_each(workers):
    ticks = []
    with solving.solving(workers, lambda: ticks.append(1)) as solve:
        for _ in range(2):
            found = solve(Solver(squares, size=lambda task: task.size), TASKS, PATHS)
            assert [square for square, _ in found] == [i**2 for i in range(6)]
            assert os.getpid() not in {process for _, process in found}
        assert {most for most, _ in solve(Solver(threads), TASKS, PATHS)} == {1}
        with pytest.raises(MechanismError, match=r"stratum 3: the fit of the model failed \(Awkward\)"):
            solve(Solver(picky), TASKS, PATHS)
    assert len(ticks) == 24


@pytest.mark.parametrize("workers", WORKERS)
def test_a_worker_that_ends_is_tried_again_and_one_that_ends_twice_is_named(workers, tmp_path):
    ticks = []
    with solving.solving(workers, lambda: ticks.append(1)) as solve:
        assert solve(Solver(dying_once), mortal(tmp_path), PATHS) == list(range(6))
        assert (tmp_path / "died").exists()
        assert len(ticks) == 6
        with pytest.raises(MechanismError, match=r"stratum \d: the process .* was ended twice.*fewer workers"):
            solve(Solver(dying), TASKS, PATHS)


@pytest.mark.parametrize("workers", WORKERS)
def test_a_fit_whose_worker_dies_is_charged_once(workers, tmp_path, monkeypatch):
    path, ledger = tmp_path / "people.parquet", tmp_path / "people.ledger"
    small.people(2_000).to_parquet(path)
    proper = Elsewhere.__call__

    def unlucky(self, solver, problems, paths):
        proper(self, Solver(dying_once), mortal(tmp_path)[: len(problems)], paths)
        return proper(self, solver, problems, paths)

    monkeypatch.setattr(Elsewhere, "__call__", unlucky)
    table = ss.open_table(path, schema=SCHEMA, declared_size=SIZE, ledger=ledger)
    ss.fit(by_group(), table, ss.Budget(3, 1e-9), workers=workers)
    assert (tmp_path / "died").exists()
    assert kinds(ledger) == ["ledger", "reserve", "charge", "charge", "charge", "done"]


def test_nothing_of_a_row_can_travel(monkeypatch):
    """Whatever is handed out is small, and holds no column of codes."""
    carried, proper = [], Elsewhere.__call__

    def looked_at(self, solver, problems, paths):
        carried.extend(pickle.dumps((solver, problem)) for problem in problems)
        return proper(self, solver, problems, paths)

    monkeypatch.setattr(Elsewhere, "__call__", looked_at)
    table = ss.open_table(small.people(5_000), schema=SCHEMA, declared_size=SIZE)
    ss.fit(by_group(), table, ss.Budget(3, 1e-9), workers=2)
    rows = table.backend.rows()
    assert len(carried) == 4
    for column in SCHEMA.names:
        codes = rows._parts[0].codes[column].tobytes()
        assert not any(codes[:64] in one for one in carried)
    assert max(map(len, carried)) < 5_000  # fewer bytes than there are rows


# Refusals, before anything is reserved


@pytest.mark.parametrize("workers", [pytest.param("dask:tcp://127.0.0.1:9", marks=pytest.mark.dask)])
def test_a_cluster_out_of_reach_is_refused_before_anything_is_reserved(workers, tmp_path, monkeypatch):
    pytest.importorskip("distributed", reason="dask is not installed; scripts/test --with dask installs it")
    monkeypatch.setattr(network, "allowed", True)
    monkeypatch.setattr(clusters, "PATIENCE", 1)
    path, ledger = tmp_path / "people.parquet", tmp_path / "people.ledger"
    small.people().to_parquet(path)
    with pytest.raises(UsageError, match="cluster cannot be reached"):
        ss.fit(
            by_group(),
            ss.open_table(path, schema=SCHEMA, declared_size=SIZE, ledger=ledger),
            small.BUDGET,
            workers=workers,
        )
    assert not ledger.exists()


@pytest.mark.parametrize("workers", [p for p in WORKERS if p.values[0] in PACKAGES])
def test_a_cluster_of_another_version_is_refused(workers, monkeypatch):
    monkeypatch.setattr(clusters, "_versions_here", lambda: ("0.0.0", "0"))
    with pytest.raises(UsageError, match=r"here are 0\.0\.0"), solving.solving(workers):
        pass


@pytest.mark.dask
def test_a_cluster_with_an_address_is_used_and_left(monkeypatch):
    distributed = pytest.importorskip(
        "distributed", reason="dask is not installed; scripts/test --with dask installs it"
    )
    monkeypatch.setattr(network, "allowed", True)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:
        for _ in range(2):
            with solving.solving(f"dask:{cluster.scheduler_address}") as solve:
                assert [square for square, _ in solve(Solver(squares), TASKS, PATHS)] == [i**2 for i in range(6)]


@pytest.mark.ray
def test_a_ray_cluster_of_another_address_than_the_one_at_work_is_refused(monkeypatch):
    ray = pytest.importorskip("ray", reason="ray is not installed; scripts/test --with ray installs it")
    monkeypatch.setattr(network, "allowed", True)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        here = ray.get_runtime_context().gcs_address
        refused = pytest.raises(UsageError, match=rf"at work with the Ray cluster at {here} already")
        with refused, solving.solving("ray:127.0.0.1:9"):
            pass
        for name in ("ray", f"ray:{here}"):
            with solving.solving(name) as solve:
                assert [square for square, _ in solve(Solver(squares), TASKS, PATHS)] == [i**2 for i in range(6)]
            assert ray.is_initialized()  # it was there before
    finally:
        ray.shutdown()


class Cluster:
    """A Dask cluster that has workers and does nothing: it notes what it is handed."""

    loop = cluster = None
    closed = False

    def __init__(self, *_, **__):
        self.handed = []

    def wait_for_workers(self, *_, **__):
        pass

    def run(self, function):
        return {"worker": function()}

    def submit(self, _, __, ___, problem, *, pure, priority):
        self.handed.append((problem, pure, priority))
        return len(self.handed)

    def close(self):
        type(self).closed = True


def with_dask(monkeypatch, client):
    dask = SimpleNamespace(
        config=SimpleNamespace(set=lambda _: contextlib.nullcontext()), Client=client, as_completed=lambda *_, **__: []
    )
    monkeypatch.setattr(clusters, "import_module", lambda _: dask)
    return clusters.Dask("tcp://127.0.0.1:9", list)


def test_dask_is_told_to_begin_with_the_largest_problems(monkeypatch):
    reached = with_dask(monkeypatch, Cluster)
    assert list(reached.each(Solver(squares), TASKS, [4, 0, 5], begun := [])) == []
    assert begun == [4, 0, 5]
    assert [problem for problem, _, _ in reached._client.handed] == [TASKS[4], TASKS[0], TASKS[5]]
    priorities = [priority for _, _, priority in reached._client.handed]
    assert priorities == sorted(priorities, reverse=True)
    assert len(set(priorities)) == 3


def test_a_cluster_that_is_lost_while_it_is_asked_for_its_versions_is_out_of_reach(monkeypatch):
    class Lost(Cluster):
        closed = False

        def run(self, _):
            raise RuntimeError("10.0.0.1 is gone")

    with pytest.raises(UsageError, match=r"cluster cannot be reached, .*\(RuntimeError\)\. Nothing was charged"):
        with_dask(monkeypatch, Lost)
    assert Lost.closed


def test_a_worker_of_another_version_that_joins_late_solves_nothing_and_the_charge_stands():
    for versions in (("0.0.0", clusters._versions()[1]), (clusters._versions()[0], "0")):
        failed = clusters._solved(versions, Solver(squares), TASKS[0])
        with pytest.raises(
            StratsynthError, match=r"stratum 0: a worker that joined .* What was charged stays"
        ) as found:
            solving.raised(failed, PATHS[0])
        assert not isinstance(found.value, UsageError)  # which would say that nothing was charged
    assert clusters._solved(clusters._versions(), Solver(squares), TASKS[3])[0] == 9


@pytest.mark.parametrize("name", PACKAGES)
def test_a_cluster_without_its_package_is_refused_before_anything_is_reserved(name, monkeypatch):
    monkeypatch.setitem(sys.modules, PACKAGES[name], None)
    table = small.table()
    with pytest.raises(UsageError, match=rf'pip install "stratsynth\[{name}\]"'):
        ss.fit(by_group(), table, small.BUDGET, workers=name)
    assert table.ledger.reserved == ()


def test_recipe_and_command_take_workers_by_name(tmp_path):
    recipe = small.write_recipe(tmp_path)
    small.edit(recipe, 'name = "independent"', 'name = "mst"')
    small.edit(recipe, "seed = 7", 'seed = 7\nworkers = "processes"')
    done = stratsynth("fit", recipe, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "there is no 'proceses'" in complaint(
        stratsynth("fit", recipe, "-o", "b", "--workers", "proceses", cwd=tmp_path), 2
    )
    small.edit(recipe, 'workers = "processes"', "workers = 0")
    assert "workers" in complaint(stratsynth("fit", recipe, "-o", "b", cwd=tmp_path), 2)
    small.edit(recipe, "workers = 0", "workers = [1]")
    assert "workers must be a whole number or a text" in complaint(
        stratsynth("fit", recipe, "-o", "b", cwd=tmp_path), 2
    )
