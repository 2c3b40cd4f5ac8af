"""SIGTERM, killed fits and killed workers: nothing half stays behind, nobody hangs, and the same recipe goes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers.crash import TESTS, Fault, command
from helpers.ledgers import kinds, recipe_on_a_ledger
from helpers.solvers import Task
from stratsynth.driver import solving
from stratsynth.errors import MechanismError
from stratsynth.files.atomic import new_file, new_folder
from stratsynth.questions import Solver
from stratsynth.strata import Stratum

PATHS = [(Stratum.of({"GROUP": str(i)}),) for i in range(3)]
TASKS = [Task(i) for i in range(3)]


def parts(folder):
    return sorted(path.name for path in folder.rglob(".*.part"))


# SIGTERM and SIGKILL of a fit

WHERE = {
    "while rows are written": Fault("stratsynth.data.writing:write_table"),
    "before the release has its name": Fault("pathlib:Path.rename"),
    "while it reads": Fault("stratsynth.driver.answering:Answerer.answer"),
}


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL], ids=["TERM", "KILL"])
def test_nothing_of_a_stopped_release_is_left_once_the_recipe_has_run_again(where, by, tmp_path, nursery):
    recipe_on_a_ledger(tmp_path)
    fault = WHERE[where]
    ended = nursery.run(command, "fit", "recipe.toml", cwd=tmp_path, faults=[Fault(fault.where, signal=by)])
    if by == signal.SIGTERM:
        assert ended.code == 143, ended.said
        assert "interrupted. What was charged stays charged." in ended.said
        assert parts(tmp_path) == []
    else:
        assert ended.code == -signal.SIGKILL
    assert not (tmp_path / "release").exists()
    again = nursery.run(command, "fit", "recipe.toml", cwd=tmp_path)
    assert again.code == 0, again.said
    assert parts(tmp_path) == []
    assert kinds(tmp_path / "people.ledger") == ["ledger", "reserve", "charge", "done"]


def test_what_another_process_is_writing_is_no_leftover(tmp_path):
    target = tmp_path / "release"
    with new_folder(target) as mine:
        (mine / "file").write_text("x", encoding="utf-8")
        with new_folder(target) as other:
            (other / "file").write_text("y", encoding="utf-8")
        assert mine.exists()
        target.rename(tmp_path / "first")
    assert (target / "file").read_text(encoding="utf-8") == "x"
    file = tmp_path / "out.csv"
    with new_file(file) as first:
        first.write(b"1")
        with new_file(file) as second:
            second.write(b"2")
    assert file.read_bytes() == b"1"
    assert parts(tmp_path) == []


def test_leftovers_of_the_same_target_go_and_others_stay(tmp_path):
    for name in (".release.0f0f0f0f.part", ".other.0f0f0f0f.part"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "certificate.json").write_text("{", encoding="utf-8")
    (tmp_path / ".out.csv.00000000.part").write_text("1", encoding="utf-8")
    with new_folder(tmp_path / "release"):
        pass
    with new_file(tmp_path / "out.csv"):
        pass
    assert parts(tmp_path) == [".other.0f0f0f0f.part"]


# Workers

FIT = """
import sys, time
from helpers.solvers import Task, sleepy
from stratsynth.driver import solving
from stratsynth.questions import Solver
from stratsynth.strata import Stratum

if __name__ == "__main__":
    with solving.solving(2) as solve:
        solve(Solver(sleepy), [Task(i) for i in range(2)], [(Stratum.of({"GROUP": str(i)}),) for i in range(2)])
"""


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL], ids=["TERM", "KILL"])
def test_workers_end_when_their_fit_is_killed_and_let_go_of_its_output(by, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(FIT, encoding="utf-8")
    paths = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONPATH": paths, "NAPPING": str(tmp_path)}
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, env=env) as child:
        pids = workers_of(tmp_path, 2)
        try:
            child.send_signal(by)
            assert child.communicate(timeout=120)[0] == b""  # to its end: nobody holds it any more
            deadline = time.monotonic() + 60
            while any(map(alive, pids)) and time.monotonic() < deadline:
                time.sleep(0.05)
            assert not any(map(alive, pids))
        finally:
            for pid in filter(alive, pids):
                os.kill(pid, signal.SIGKILL)


def workers_of(folder, number):
    """Wait for the workers to have begun; each leaves its number."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = [int(path.name.removeprefix("worker-")) for path in folder.glob("worker-*")]
        if len(found) == number:
            return found
        time.sleep(0.05)
    raise AssertionError("no workers")


def alive(pid):
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"


def test_a_worker_that_is_killed_is_a_typed_error_with_a_remedy():
    from helpers.solvers import dying

    with (
        solving.solving(2) as solve,
        pytest.raises(MechanismError, match=r"was ended twice.*run it again with fewer workers"),
    ):
        solve(Solver(dying), TASKS, PATHS)


def test_there_are_no_more_workers_than_strata():
    from helpers.solvers import squares

    with solving.solving(40) as solve:
        found = solve(Solver(squares), TASKS, PATHS)
        from joblib.externals.loky import reusable_executor

        assert len(reusable_executor._executor._processes) <= 3
    assert [square for square, _ in found] == [0, 1, 4]


def test_what_a_worker_prints_reaches_nobody(tmp_path):
    """A release's JSON on standard output is for programs."""
    from helpers.solvers import chatty

    with solving.solving(2) as solve:
        assert solve(Solver(chatty), TASKS, PATHS) == [0, 1, 2]
    script = tmp_path / "script.py"
    script.write_text(FIT.replace("sleepy", "chatty"), encoding="utf-8")
    paths = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    found = subprocess.run(
        [sys.executable, str(script)], capture_output=True, env={**os.environ, "PYTHONPATH": paths}, check=True
    )
    assert found.stdout == b""
