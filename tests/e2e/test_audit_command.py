"""`stratsynth audit`, as a user starts it."""

import json
from functools import partial

import pytest

from helpers.audits import judged_twice
from helpers.command import complaint, python, started, stratsynth
from stratsynth import cli
from stratsynth.evaluation import audit
from stratsynth.evaluation.audit import mechanism


def test_a_mechanism_is_audited_alone_and_stratified(tmp_path, monkeypatch):
    """With fewer runs than a user's, of which half the noise still shows."""
    monkeypatch.setattr(mechanism, "audit_mechanism", partial(shorter, mechanism.audit_mechanism))
    done = stratsynth("audit", "independent", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert [a["what"] for a in found["audits"]] == ["independent", "independent by GROUP"]
    assert all(a["verdict"] == "within" for a in found["audits"])
    assert all(a["controls"][0]["state"] == "caught" for a in found["audits"])
    assert found["replay"] == []
    assert found["passed"]
    assert list(tmp_path.iterdir()) == []


def shorter(whole, *arguments, runs, seconds, tables, **settings):
    return judged_twice(lambda: whole(*arguments, runs=runs // 3, seconds=1e9, tables=2, **settings))


def test_an_unknown_mechanism_is_refused(tmp_path):
    assert "independent" in complaint(started("audit", "independant", cwd=tmp_path), 2)


def report(*, alarm=False, must=True, caught=True):
    control = audit.Control("noise x 0.5", 1.0, 1.9, 10, 1.0, must, caught, 0.1)
    return audit.Report((audit.Audit("counts", "mu", 1.0, 0.9, 0.8, 10, 1.0, alarm, 0.1, (control,)),))


@pytest.mark.parametrize(
    ("made", "code", "says"),
    [
        (report(), 0, "within"),
        (report(alarm=True), 1, "VIOLATION"),
        (report(caught=False), 1, "MISSED"),
        (report(caught=False, must=False), 0, "no power"),
    ],
)
def test_the_exit_code_says_whether_all_is_well(monkeypatch, capsys, made, code, says):
    monkeypatch.setattr(audit, "audit_primitives", lambda *, long: made)
    assert cli.run(["audit"]) == code
    assert says in capsys.readouterr().out


def test_long_is_passed_on(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(audit, "audit_primitives", lambda *, long: asked.append(long) or report())
    assert cli.run(["audit", "--long"]) == cli.run(["audit"]) == 0
    assert asked == [True, False]


def test_commands_are_listed_without_loading_the_evaluation(tmp_path):
    code = """
import sys
from stratsynth import cli
assert cli.run(["--help"]) == 0
loaded = {"numpy", "scipy", "pandas", "stratsynth.evaluation.audit"} & set(sys.modules)
assert not loaded, loaded
"""
    done = python(code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "audit" in done.stdout


def test_commands_that_cannot_be_imported_do_not_harm_the_others(tmp_path):
    """A package with a broken `stratsynth.commands` entry point is installed; everything else still works."""
    folder = tmp_path / "broken-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n", encoding="utf-8")
    points = "[stratsynth.commands]\nbroken = no_such_module:register\n"
    (folder / "entry_points.txt").write_text(points, encoding="utf-8")
    code = f"""
import sys
sys.path.append({str(tmp_path)!r})
from stratsynth import cli
sys.exit(cli.run(["mechanisms"]))
"""
    done = python(code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("stratsynth: the commands of no_such_module:register are missing")
    assert "independent" in done.stdout
