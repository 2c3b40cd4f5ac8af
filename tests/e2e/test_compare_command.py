"""`stratsynth compare`, as a user starts it: whole, resumed, charged and refused."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pandas as pd
import pytest

from helpers import small
from helpers.command import STRATSYNTH, complaint, stratsynth
from stratsynth import cli, evaluation
from stratsynth.accounting.history import read_ledger
from stratsynth.evaluation.comparisons import cells

COMPARE = """
[compare]
stratifications = [[], ["SEX", "GROUP"]]
epsilons = [1, 4]
seeds = 2
k = 2
metrics = ["workload_error"]
"""
COLUMNS = [
    "mechanism",
    "stratification",
    "epsilon",
    "seed",
    "metric",
    "scope",
    "SEX",
    "GROUP",
    "group",
    "clique",
    "value",
    "low",
    "high",
    "n",
    "status",
    "stamp",
    "seconds",
]


def written(folder):
    path = small.write_recipe(folder)
    small.edit(path, "declared_size = 100", "declared_size = 100\npublic = true")
    path.write_text(path.read_text(encoding="utf-8") + COMPARE, encoding="utf-8")
    return path


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return written(tmp_path)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder where the comparison has been made, in `out`; no test changes it."""
    folder = tmp_path_factory.mktemp("place")
    assert stratsynth("compare", written(folder).name, "-o", "out", cwd=folder).returncode == 0
    return folder


@pytest.fixture
def finished(place, tmp_path, monkeypatch):
    """The recipe of a copy of it."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(place, tmp_path, dirs_exist_ok=True)) / "recipe.toml"


def of_every_metric(recipe):
    """All scores, which take most of a comparison's time, not the one that tells whether a grid is whole."""
    small.edit(recipe, 'metrics = ["workload_error"]\n', "")


def charged(recipe, cap=20.0):
    small.edit(recipe, "public = true", "public = false")
    small.edit(recipe, "delta = 1e-9", f'delta = 1e-9\nledger = "people.ledger"\nledger_epsilon = {cap}')
    return recipe


def kept(folder):
    """Every cell that is done, and when it was written."""
    return {path.name: path.stat().st_mtime_ns for path in (folder / "cells").glob("*.parquet")}


def compare(*more, out="out"):
    return cli.run(["compare", "recipe.toml", "-o", out, *more])


def test_a_single_setting_has_its_scores_and_nothing_to_compare_with(recipe):
    small.edit(recipe, COMPARE, '[compare]\nstratifications = [[]]\nseeds = 1\nmetrics = ["workload_error"]\n')
    done = stratsynth("compare", recipe.name, "-o", "out", cwd=recipe.parent)
    assert done.returncode == 0, done.stderr
    assert "1 fits" in done.stdout
    assert "Differences" not in done.stdout
    assert len(pd.read_parquet(recipe.parent / "out" / "paired.parquet")) == 0


def test_rows_follow_the_measured_sizes_where_the_recipe_says_so(recipe):
    """A tenth of the people are of SEX 2 by the shares, and half of them by the noisy counts."""
    small.edit(recipe, COMPARE, '[compare]\nstratifications = [["SEX"]]\nseeds = 1\nepsilons = [20]\nk = 1\n')
    (recipe.parent / "shares.csv").write_text("SEX,GROUP,share\n1,a,0.9\n1,b,0\n2,a,0.1\n2,b,0\n", encoding="utf-8")
    found = {}
    for groups in ("declared", "measured"):
        small.edit(recipe, "rows = 50", f'rows = 2000\ngroups = "{groups}"') if not found else small.edit(
            recipe, '"declared"', '"measured"'
        )
        frame = evaluation.compare(recipe, recipe.parent / groups)
        errors = frame[(frame["metric"] == "clique_error") & (frame["clique"] == "SEX")]
        found[groups] = float(errors[errors["mechanism"] == "independent"]["value"].iloc[0])
        assert json.loads((recipe.parent / groups / "comparison.json").read_text())["groups"] == groups
        said = f"by its {groups} {'share' if groups == 'declared' else 'size'}"
        assert said in (recipe.parent / groups / "report.html").read_text(encoding="utf-8")
    assert found["declared"] > 0.35
    assert found["measured"] < 0.1


def test_the_grid_is_one_tidy_frame_with_differences_and_a_summary(recipe):
    small.people(60).to_csv("others.csv", index=False)
    of_every_metric(recipe)
    small.edit(recipe, "k = 2", 'k = 2\nholdout = "others.csv"\ntarget = "WORK"\npositive = ["yes"]')
    small.edit(recipe, "epsilons = [1, 4]", "epsilons = [4]")
    done = stratsynth("compare", "recipe.toml", "-o", "out", cwd=recipe.parent)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.startswith("research on data declared public: nothing was charged")
    assert "independent by SEX x GROUP" in done.stdout
    frame = pd.read_parquet("out/comparison.parquet")
    assert list(frame.columns) == COLUMNS
    assert set(frame["stamp"]) == {"PUBLIC DATA"}
    own = frame[frame["stratification"] != "(baseline)"]
    keys = ["mechanism", "stratification", "epsilon", "seed"]
    assert len(own[keys].drop_duplicates()) == 2 * 2
    assert not own.duplicated([*keys, "metric", "scope", "group", "clique"]).any()
    error = own[own["metric"] == "workload_error"]
    assert set(error["scope"]) == {"group", "everybody"}
    assert len(error) == 4 * 5
    assert set(error["group"].dropna()) == {"1|a", "1|b", "2|a", "2|b"}
    assert (own["seconds"] > 0).all()
    mean = own[own["metric"] == "mean_error:AGE"]
    assert len(mean) == 4 * 5
    assert "Means: error in per cent of the real mean" in done.stdout
    assert "accuracy:forest" in set(own["metric"])
    base = frame[frame["stratification"] == "(baseline)"]
    assert set(base["mechanism"]) == {"(subsample)", "(resampled)", "(independent)", "(real rows)"}
    assert (base["epsilon"] == float("inf")).all()
    pairs = pd.read_parquet("out/paired.parquet")
    assert len(pairs[(pairs["metric"] == "workload_error") & (pairs["scope"] == "everybody")]) == 1
    assert len(pd.read_csv("out/comparison.csv")) == len(frame)
    assert len(pd.read_csv("out/paired.csv")) == len(pairs)
    facts = json.loads((recipe.parent / "out" / "comparison.json").read_text(encoding="utf-8"))
    assert facts["repetitions"] == 2
    assert facts["charged"] is None
    assert not (recipe.parent / "out" / "INTERNAL.txt").exists()


def test_python_returns_the_frame_that_is_written_and_a_program_can_read_the_summary(recipe, capsys):
    of_every_metric(recipe)
    seen = []
    frame = evaluation.compare("recipe.toml", "out", tick=lambda done, cells: seen.append((done, cells)))
    assert seen == [(i, 9) for i in range(10)]
    pd.testing.assert_frame_equal(frame, pd.read_parquet("out/comparison.parquet"))
    assert "declared public" in frame.attrs["stamp"]
    assert compare("--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["facts"]["epsilons"] == [1.0, 4.0]
    assert {row["metric"] for row in said["numbers"]} >= {"mean_error:AGE", "median_error:AGE", "decile_error:AGE"}
    assert {"mean", "deviation", "rms", "repetitions", "epsilon", "mechanism"} <= set(said["numbers"][0])
    assert {"metric", "difference", "low", "high", "verdict", "repetitions"} <= set(said["paired"][0])
    assert {"comparison.csv", "comparison.parquet", "paired.csv", "paired.parquet"} <= {
        Path(file).name for file in said["files"]
    }


def test_what_was_computed_is_not_computed_again_and_a_grid_may_grow(finished):
    first = kept(finished.parent / "out")
    assert compare() == 0
    assert kept(finished.parent / "out") == first
    small.edit(finished, "epsilons = [1, 4]", "epsilons = [1, 2, 4]")
    small.edit(finished, "seeds = 2", "seeds = 3")
    assert compare() == 0
    grown = kept(finished.parent / "out")
    assert first.items() <= grown.items()
    assert len(grown) == 1 + 2 * 3 * 3


CHANGES = {
    "delta": ("delta = 1e-9", "delta = 1e-8"),
    "fewer epsilons": ("epsilons = [1, 4]", "epsilons = [4]"),
    "k": ("k = 2", "k = 1"),
    "rows": ("rows = 50", "rows = 49"),
    "the declared size": ("declared_size = 100", "declared_size = 101"),
    "metrics": ('metrics = ["workload_error"]\n', ""),
}


@pytest.mark.parametrize("case", [*CHANGES, "shares", "data", "schema"])
def test_what_was_computed_otherwise_is_not_mixed_in(finished, capsys, case):
    before = kept(finished.parent / "out")
    if case in CHANGES:
        small.edit(finished, *CHANGES[case])
    elif case == "shares":
        small.edit(finished.parent / "shares.csv", "1,a,0.4", "1,a,0.3")
        small.edit(finished.parent / "shares.csv", "1,b,0.1", "1,b,0.2")
    elif case == "data":
        small.people(99).to_csv("people.csv", index=False)
    else:
        small.SCHEMA.restrict(["SEX", "GROUP", "AGE"]).write_toml("schema.toml")
    capsys.readouterr()
    assert compare() == 2
    assert "holds another comparison" in capsys.readouterr().err
    assert kept(finished.parent / "out") == before


def _heeding():
    """Heed interrupts, which what a shell starts in the background ignores, and hands on to all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def interrupted(recipe, workers, how):
    """Start a comparison of 12 charged fits in a session of its own, and interrupt it when some are done."""
    charged(recipe)
    of_every_metric(recipe)  # cells that take their time: the last is far when the third is seen
    small.edit(recipe, "seeds = 2", "seeds = 3")
    command = [STRATSYNTH, "compare", "recipe.toml", "-o", "out", "--workers", workers]
    with subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=_heeding,  # noqa: PLW1509 - it calls nothing that could wait for another thread
    ) as process:
        until = time.monotonic() + 300
        while len(kept(Path("out"))) < 3 and process.poll() is None and time.monotonic() < until:
            time.sleep(0.002)
        how(process.pid)
        _, said = process.communicate(timeout=300)
    return process.returncode, said


def go_on(recipe, workers):
    """Run it again: nothing that was kept is computed again, and nothing charged twice."""
    before = kept(Path("out"))
    assert 3 <= len(before) < 13
    done = stratsynth("compare", "recipe.toml", "-o", "out", "--workers", workers, cwd=recipe.parent)
    assert done.returncode == 0, done.stderr
    assert before.items() <= kept(Path("out")).items()
    assert not list(Path("out/cells").glob(".*.part"))
    fits = read_ledger(recipe.parent / "people.ledger")["fits"]
    assert len(fits) == 12
    frame = pd.read_parquet("out/comparison.parquet")
    assert len(frame[["mechanism", "stratification", "epsilon", "seed"]].drop_duplicates()) == 12 + 3


@pytest.mark.parametrize("workers", ["1", "2"])
def test_after_kill_9_the_same_command_goes_on_and_charges_nothing_twice(recipe, workers):
    sessions = []

    def kill(pid):
        sessions.append(pid)
        os.kill(pid, signal.SIGKILL)

    code, _ = interrupted(recipe, workers, kill)
    assert code == -signal.SIGKILL
    until = time.monotonic() + 60
    while (left := members(sessions[0])) and time.monotonic() < until:
        time.sleep(0.02)
    assert left == []  # workers end with their parent
    go_on(recipe, workers)


def members(session):
    """The processes of a session that have not ended."""
    stats = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            stats.append(path.read_text(encoding="utf-8").rpartition(")")[2].split())
    return [fields for fields in stats if int(fields[3]) == session and fields[0] != "Z"]


def test_after_ctrl_c_the_same_command_goes_on(recipe):
    code, said = interrupted(recipe, "2", lambda pid: os.killpg(pid, signal.SIGINT))
    assert code == 130, said
    assert said.splitlines()[-1] == "stratsynth: interrupted. What was charged stays charged."
    assert len(said.splitlines()) == 2  # what is charged, and this
    go_on(recipe, "1")


def test_a_fit_that_was_charged_but_not_kept_is_resumed_for_nothing(recipe, capsys, monkeypatch):
    charged(recipe)
    proper, calls = cells.save_frame, []

    def save_frame(frame, file):
        calls.append(file)
        if len(calls) == 3:  # the baselines, a cell, and this one
            raise KeyboardInterrupt
        proper(frame, file)

    monkeypatch.setattr(cells, "save_frame", save_frame)
    assert compare() == 130
    capsys.readouterr()
    states = [fit["state"] for fit in read_ledger(recipe.parent / "people.ledger")["fits"]]
    assert states == ["done", "open"]
    monkeypatch.setattr(cells, "save_frame", proper)
    assert compare() == 0
    assert "6 fits ask" in capsys.readouterr().err
    fits = read_ledger(recipe.parent / "people.ledger")["fits"]
    assert len(fits) == 8
    assert {fit["state"] for fit in fits} == {"done"}


def test_private_data_are_charged_and_everything_is_internal(recipe, capsys):
    charged(recipe)
    assert compare() == 0
    said = capsys.readouterr()
    assert said.out.startswith("INTERNAL")
    assert "8 fits ask epsilon" in said.err
    assert "left of 20" in said.err
    found = read_ledger(recipe.parent / "people.ledger")
    assert sorted(fit["epsilon"] for fit in found["fits"]) == [1.0] * 4 + [4.0] * 4
    facts = json.loads((recipe.parent / "out" / "comparison.json").read_text(encoding="utf-8"))
    assert facts["charged"]["grid_epsilon"] == pytest.approx(found["spent_epsilon"])
    assert facts["charged"]["fits"] == 8
    assert "INTERNAL" in (recipe.parent / "out" / "INTERNAL.txt").read_text(encoding="utf-8")
    for name in ("comparison", "paired"):
        assert set(pd.read_parquet(f"out/{name}.parquet")["stamp"]) == {"INTERNAL"}
        assert set(pd.read_csv(f"out/{name}.csv")["stamp"]) == {"INTERNAL"}
    assert compare() == 0  # nothing is left to fit
    assert "no new fit is charged" in capsys.readouterr().err
    assert len(read_ledger(recipe.parent / "people.ledger")["fits"]) == 8
    facts = json.loads((recipe.parent / "out" / "comparison.json").read_text(encoding="utf-8"))
    assert facts["charged"]["fits"] == 0
    assert facts["charged"]["grid_epsilon"] == pytest.approx(found["spent_epsilon"])


def test_a_grid_that_passes_the_cap_is_refused_before_the_first_fit(recipe):
    charged(recipe, 5.0)
    error = complaint(stratsynth("compare", "recipe.toml", "-o", "out", cwd=recipe.parent), 3)
    assert "8 fits ask epsilon" in error
    assert "remaining 5 of 5" in error
    assert "too much" in error
    assert not (recipe.parent / "out").exists()
    assert not (recipe.parent / "people.ledger").exists()


def test_what_other_fits_have_spent_is_counted(recipe, capsys):
    charged(recipe, 10.0)
    small.edit(recipe, "epsilons = [1, 4]", "epsilons = [1]")
    assert compare() == 0
    spent = read_ledger(recipe.parent / "people.ledger")["spent_epsilon"]
    small.edit(recipe, "seeds = 2", "seeds = 90")
    capsys.readouterr()
    assert compare() == 3
    error = capsys.readouterr().err
    assert "176 fits ask" in error
    assert f"remaining {10 - spent:.6g} of 10" in error
    assert read_ledger(recipe.parent / "people.ledger")["spent_epsilon"] == spent


def test_private_data_without_a_ledger_file_are_refused(recipe, capsys):
    small.edit(recipe, "public = true", "public = false")
    assert compare() == 2
    assert "need a ledger file" in capsys.readouterr().err
    assert not (recipe.parent / "out").exists()


def test_nothing_is_written_into_a_release_or_over_something_else(recipe, capsys):
    for name in ("release", "mine"):
        (recipe.parent / name).mkdir()
        (recipe.parent / name / ("certificate.json" if name == "release" else "notes.txt")).write_text("{}")
    for out in ("release", "release/out", "mine", "people.csv"):
        before = small.tree(recipe.parent)
        assert compare(out=out) == 2
        assert small.tree(recipe.parent) == before
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('[], ["SEX", "GROUP"]', '[], ["AGE"]', "no column AGE"),
        ("epsilons = [1, 4]", "epsilons = [1, 0]", "epsilon"),
        ("k = 2", 'k = 2\nholdout = "nobody.csv"\ntarget = "WORK"\npositive = ["yes"]', "nobody.csv"),
        ("k = 2", "k = 2\nsede = 3", "did you mean"),
    ],
)
def test_wrong_requests_are_refused_in_a_line_and_can_be_mended(recipe, capsys, old, new, says):
    if "holdout" in new:
        of_every_metric(recipe)
    small.edit(recipe, "seeds = 2", "seeds = 1")
    small.edit(recipe, old, new)
    assert compare() == 2
    error = capsys.readouterr().err
    assert says in error
    assert len(error.splitlines()) <= 2
    small.edit(recipe, new, old)
    assert compare() == 0


def test_a_hold_out_that_is_the_fitted_table_is_refused_before_any_fit(recipe, capsys):
    charged(recipe)
    of_every_metric(recipe)
    small.edit(recipe, "k = 2", 'k = 2\nholdout = "people.csv"\ntarget = "WORK"\npositive = ["yes"]')
    assert compare() == 2
    assert "hold-out" in capsys.readouterr().err
    assert not (recipe.parent / "people.ledger").exists()


def test_a_damaged_cell_is_named_and_never_taken_for_one(finished, capsys):
    file = next((finished.parent / "out" / "cells").glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:100])
    assert compare() == 1
    error = capsys.readouterr().err
    assert file.name in error
    assert "remove it" in error
    file.unlink()
    assert compare() == 0


def test_two_processes_do_not_work_in_one_folder(recipe, capsys):
    from stratsynth.evaluation.comparisons.compare import opened

    with opened(recipe.parent / "out"):
        assert compare() == 2
    assert "another process" in capsys.readouterr().err
    assert compare() == 0


def test_data_that_change_meanwhile_are_noticed(recipe, capsys, monkeypatch):
    proper = cells.CellRunner.fit

    def fit(runner, cell, file):
        proper(runner, cell, file)
        small.people(99).to_csv("people.csv", index=False)

    monkeypatch.setattr(cells.CellRunner, "fit", fit)
    assert compare() == 2
    assert "changed while" in capsys.readouterr().err
    assert not (recipe.parent / "out" / "comparison.parquet").exists()
