"""The frame of all studies: what is refused, what is written, and what the words of --help need."""

import importlib
import sys
from types import ModuleType

import pandas as pd
import pytest

from studies.harness import Argument, Found, Study, count, file, switch

NAMES = ("fermi", "lens", "means", "reductions", "regression", "stratification")
FRAME = pd.DataFrame({"a": [1, 2]})


@pytest.fixture
def study(monkeypatch):
    """A study that finds a table and a picture of its own arguments; the second one goes on in its folder."""

    def made(*, resumes=False):
        module = ModuleType("studies.made_up.reproduce")
        module.seen = []

        def run(**given):
            module.seen.append(given)
            return Found(f"in {given['runs']} runs", {"a": FRAME}, {"b": lambda path: path.write_text("drawn")})

        module.run = run
        monkeypatch.setitem(sys.modules, "studies.made_up.reproduce", module)
        arguments = (
            file("--law", "a file"),
            count("--runs", 3, "runs (3)", least=2),
            count("--seeds", None, "seeds"),
            switch("--full", "all", exclusive=True),
            switch("--few", "some", exclusive=True),
            Argument("--only", {"choices": ("x",)}),
        )
        return Study("made_up", "Made up.", arguments, out="a folder", resumes=resumes), module.seen

    return made


def test_it_prints_words_and_writes_tables_and_pictures(study, tmp_path, capsys):
    own, seen = study()
    assert own.main([]) == 0
    assert capsys.readouterr().out == "in 3 runs\n"
    assert seen == [{"law": None, "runs": 3, "seeds": None, "full": False, "few": False, "only": None}]
    assert own.main(["--runs", "2", "--out", str(tmp_path / "in" / "out")]) == 0
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "in" / "out" / "a.csv"), FRAME)
    assert (tmp_path / "in" / "out" / "b.png").read_text() == "drawn"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--runs", "1"], "--runs is a whole number of at least 2."),
        (["--seeds", "0"], "--seeds is a whole number of at least 1."),
        (["--law", "none.csv"], "there is no file none.csv."),
        (["--out", "."], ". exists already; name a new folder with --out."),
    ],
)
def test_what_is_refused_is_told_in_a_line_before_anything_runs(study, arguments, words, capsys):
    own, seen = study()
    assert own.main(arguments) == 2
    assert capsys.readouterr().err == f"reproduce_made_up: {words}\n"
    assert seen == []


def test_arguments_that_exclude_each_other(study, capsys):
    with pytest.raises(SystemExit):
        study()[0].main(["--full", "--few"])
    assert "not allowed with" in capsys.readouterr().err


def test_a_study_that_goes_on_is_handed_its_folder_and_writes_it_itself(study, tmp_path):
    own, seen = study(resumes=True)
    assert own.main(["--out", str(tmp_path)]) == 0
    assert seen[0]["out"] == tmp_path
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_a_study_takes_the_arguments_that_it_declares(name):
    """The keywords of `run` are the declared ones."""
    own = importlib.import_module(f"studies.{name}").STUDY
    run = importlib.import_module(f"studies.{name}.reproduce").run.__code__
    declared = {argument.name for argument in own.arguments} | ({"out"} if own.resumes else set())
    assert own.name == name
    assert set(run.co_varnames[: run.co_kwonlyargcount]) == declared
