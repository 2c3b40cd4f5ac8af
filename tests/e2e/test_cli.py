"""The command line, as a user meets it."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

import stratsynth as ss
from helpers import recompute, small
from helpers.accounts import scaled
from helpers.command import complaint, python, started, stratsynth
from helpers.pages import Page
from stratsynth import cli
from stratsynth.adapters import Independent

CHECKER = Path(__file__).parents[3] / "shared" / "tools" / "check_release.py"
HEAVY = {"numpy", "pandas", "pyarrow", "scipy", "sklearn", "matplotlib", "mbi", "jax", "networkx", "jinja2"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder in which a recipe was fitted from the command line."""
    folder = tmp_path_factory.mktemp("place")
    small.write_recipe(folder)
    done = started("fit", "recipe.toml", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "epsilon 1, delta 1e-09" in done.stdout
    assert done.stderr == ""
    return folder


# What works


def test_demo_shows_the_whole_job(tmp_path):
    done = started("demo", "--rows", 2_000, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    folder = tmp_path / "stratsynth-demo"
    shown = {"people.csv", "schema.toml", "shares.csv", "vanilla.toml", "stratified.toml", "people.ledger"}
    assert shown | {"vanilla", "stratified"} <= {p.name for p in folder.iterdir()}
    for name in ("vanilla", "stratified"):
        recompute.check(json.loads((folder / name / "certificate.json").read_text(encoding="utf-8")))
        people = pd.read_parquet(folder / name / "synthetic.parquet")
        assert len(people) == 2_000
        assert not ((people["AGEP"] < 15) & (people["MAR"] != "5")).any(), "married children"
    assert len([line for line in done.stdout.splitlines() if line[:6].strip() in {*"123456789", "all"}]) == 9 + 9 + 1
    said = " ".join(done.stdout.split())
    figures = pd.read_csv(folder / "evaluation" / "workload.csv", dtype={"RAC1P": str})
    real = figures[(figures["table"] == "release") & (figures["scope"] == "group") & (figures["n"] > 0)]
    for n in real.nsmallest(3, "n")["n"]:
        assert f"; {n} pe" in said, "the paragraph about the smallest groups"
    assert str(Path("stratsynth-demo", "evaluation", "report.html")) in done.stdout.splitlines()[-1]
    page = Page((folder / "evaluation" / "report.html").read_text(encoding="utf-8")).check()
    assert "vanilla" in page.text
    Page((folder / "stratified" / "report.html").read_text(encoding="utf-8")).check()


def test_fit_writes_the_rows_and_the_guarantee_of_the_recipe(place):
    certificate = json.loads((place / "release" / "certificate.json").read_text(encoding="utf-8"))
    recompute.check(certificate)
    assert (certificate["guarantee"]["epsilon"], certificate["guarantee"]["delta"]) == (1, 1e-9)
    assert certificate["unprotected"] == ["declared_size"]
    assert pq.read_metadata(place / "release" / "synthetic.parquet").num_rows == 50


def test_sample_draws_what_is_asked_for_the_same_again(place, tmp_path):
    drawn = ("sample", place / "release", "-n", 30, "--where", "SEX=2", "--seed", 4, "-o")
    for run, name in ((started, "one.csv"), (stratsynth, "two.csv")):
        done = run(*drawn, name, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    one = pd.read_csv(tmp_path / "one.csv", dtype=str, keep_default_na=False)
    assert len(one) == 30
    assert set(one["SEX"]) == {"2"}
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    expected = ss.Release.load(place / "release").sample(30, seed=4, where={"SEX": "2"})
    assert list(one["AGE"]) == list(expected["AGE"].astype(str))


def in_process(*arguments):
    return cli.run([str(a) for a in arguments])


def test_sample_writes_parquet_and_takes_several_levels(place, tmp_path, capsys):
    where = ["--where", "WORK=yes", "--where", "WORK=no", "--where", "GROUP=a"]
    assert in_process("sample", place / "release", "-n", 25, *where, "-o", tmp_path / "a.parquet") == 0
    assert "25 rows" in capsys.readouterr().out
    rows = pq.read_table(tmp_path / "a.parquet").to_pandas()
    assert len(rows) == 25
    assert set(rows["WORK"]) <= {"yes", "no"}
    assert set(rows["GROUP"]) == {"a"}


def test_certificate_as_json_and_in_words(place, capsys):
    assert in_process("certificate", place / "release", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == json.loads((place / "release" / "certificate.json").read_text(encoding="utf-8"))
    assert in_process("certificate", place / "release") == 0
    words = capsys.readouterr().out
    for text in (
        "epsilon 1,",
        "add-remove",
        "4 groups by SEX and GROUP",
        "made up for testing",
        "Declared size: ",
        "1.437",
    ):
        assert text in words


def test_mechanisms_are_listed(capsys):
    assert in_process("mechanisms", "--json") == 0
    found = {m["name"]: m for m in json.loads(capsys.readouterr().out)}
    assert found["independent"]["package"] == "stratsynth"
    assert "one-way marginals" in found["independent"]["summary"]
    assert found["independent"]["paper"] == ""
    assert "arxiv.org/abs/2201.12677" in found["aim"]["paper"]
    summaries = [m["summary"] for m in found.values()]
    assert len(set(summaries)) == len(summaries)  # of two in one package, too
    assert in_process("mechanisms") == 0
    listed = capsys.readouterr().out
    assert "independent" in listed
    assert found["aim"]["paper"] in listed


def test_version(capsys):
    assert in_process("--version") == 0
    assert capsys.readouterr().out.strip() == ss.__version__


def test_the_release_passes_the_check_from_outside(place):
    if not CHECKER.is_file():
        pytest.skip(f"there is no {CHECKER}")
    done = python(
        "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')",
        CHECKER,
        place / "release",
        "--rows",
        50,
        "--private",
        place / "people.csv",
        cwd=place,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("code", ["import stratsynth", "from stratsynth import cli; cli.run(['--help'])"])
def test_nothing_heavy_is_imported_before_it_is_needed(code, tmp_path):
    done = python(f"{code}\nimport sys\nprint('LOADED', *sys.modules)", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.rpartition("LOADED")[2].split())
    assert "stratsynth" in loaded
    assert loaded & HEAVY == set()


# What is wrong: an exit code, one or two lines, nothing written, nothing spent


@pytest.fixture
def untouched(place, tmp_path, monkeypatch):
    """Runs a command in a copy of the inputs; nothing may be reserved, read or written."""
    small.write_recipe(tmp_path)
    (tmp_path / "done").symlink_to(place / "release")
    monkeypatch.chdir(tmp_path)

    def forbidden(*arguments, **settings):
        pytest.fail("rows were read")

    monkeypatch.setattr("stratsynth.data.backends.load_rows", forbidden)

    def run(*arguments):
        before = small.tree(tmp_path)
        code = in_process(*arguments)
        assert small.tree(tmp_path) == before
        return code

    return run


def the_complaint(capsys):
    said = capsys.readouterr()
    assert said.out == ""
    assert 1 <= len(said.err.splitlines()) <= 2, said.err
    assert "Traceback" not in said.err
    return said.err


RECIPES = {
    "missing data": ('"people.csv"', '"nobody.csv"', "nobody.csv"),
    "missing schema": ('"schema.toml"', '"nobody.toml"', "nobody.toml"),
    "missing shares": ('"shares.csv"', '"nobody.csv"', "nobody.csv"),
    "unknown mechanism": ('"independent"', '"indepedent"', "did you mean 'independent'"),
    "unknown column": ('"GROUP"]', '"GRUOP"]', "did you mean 'GROUP'"),
    "a column that is a number": ('["SEX", "GROUP"]', "[1, 2]", "stratsynth: "),
    "a column that is a list": ('["SEX", "GROUP"]', '[["SEX"], ["GROUP"]]', "stratsynth: "),
    "shares by other columns": ('["SEX", "GROUP"]', '["SEX"]', "shares are by"),
    "recipe that does not parse": ("[budget]", "[budget", "TOML"),
    "no epsilon": ("epsilon = 1.0\n", "", "epsilon"),
    "epsilon 0": ("epsilon = 1.0", "epsilon = 0.0", "epsilon"),
    "epsilon below 0": ("epsilon = 1.0", "epsilon = -1.0", "epsilon"),
    "epsilon NaN": ("epsilon = 1.0", "epsilon = nan", "epsilon"),
    "epsilon too large": ("epsilon = 1.0", "epsilon = 1e40", "epsilon"),
    "no delta": ("delta = 1e-9\n", "", "delta"),
    "delta 0": ("delta = 1e-9", "delta = 0.0", "delta"),
    "delta below 0": ("delta = 1e-9", "delta = -1e-9", "delta"),
    "delta NaN": ("delta = 1e-9", "delta = nan", "delta"),
    "delta of one over the size": ("delta = 1e-9", "delta = 0.01", "declared size"),
    "rows below 0": ("rows = 50", "rows = -50", "rows"),
    "a seed below 0": ("seed = 7", "seed = -7", "seed"),
    "a release in a file's place": ('directory = "release"', 'directory = "people.csv/release"', "people.csv"),
    "an existing release": ('directory = "release"', 'directory = "done"', "exists already"),
}


@pytest.mark.parametrize("case", RECIPES)
def test_a_recipe_that_is_wrong(case, untouched, capsys):
    old, new, says = RECIPES[case]
    small.edit(Path("recipe.toml"), old, new)
    assert untouched("fit", "recipe.toml") == 2
    assert says in the_complaint(capsys)


FILES = {
    "a column that is not in the data": ("people.csv", "AGE", "AGES", "AGE"),
    "a column that is twice in the data": ("people.csv", "AGE", "AGE,AGE", "AGE"),
    "a schema that does not parse": ("schema.toml", "[columns.AGE]", "[columns.AGE", "schema.toml"),
    "a schema that makes no sense": ("schema.toml", "upper = 9", "upper = -9", "AGE"),
    "shares that miss a stratum": ("shares.csv", "2,b,0.0", "", "SEX=2 GROUP=b"),
    "shares that do not add up": ("shares.csv", "0.5", "0.502", "add up"),
    "an unreviewed draft": ("schema.toml", 'origin = "public"', 'origin = "private data"', "reviewed_by"),
}


@pytest.mark.parametrize("case", FILES)
def test_files_that_are_wrong(case, untouched, capsys):
    name, old, new, says = FILES[case]
    small.edit(Path(name), old, new)
    assert untouched("fit", "recipe.toml") == 2
    assert says in the_complaint(capsys)


COMMANDS = {
    "no such command": (["sampel"], "sample"),
    "no such option": (["fit", "recipe.toml", "--epsilon", "3"], "--epsilon"),
    "no recipe named": (["fit"], "RECIPE"),
    "no recipe there": (["fit", "nothing.toml"], "nothing.toml"),
    "an existing output": (["fit", "recipe.toml", "-o", "done"], "exists already"),
    "sampling what is no release": (["sample", ".", "-n", "5", "-o", "a.csv"], "no release"),
    "rows below 0": (["sample", "done", "-n", "-5", "-o", "a.csv"], "rows"),
    "rows that are a word": (["sample", "done", "-n", "many", "-o", "a.csv"], "-n"),
    "a seed below 0": (["sample", "done", "-n", "5", "--seed", "-1", "-o", "a.csv"], "seed"),
    "an output of no known kind": (["sample", "done", "-n", "5", "-o", "a.sav"], "a.sav"),
    "an output in a folder that is not there": (["sample", "done", "-n", "5", "-o", "no/a.csv"], "no"),
    "an output that exists": (["sample", "done", "-n", "5", "-o", "people.csv"], "exists"),
    "a condition without a level": (["sample", "done", "-n", "5", "--where", "SEX", "-o", "a.csv"], "COLUMN=LEVEL"),
    "an unknown column": (["sample", "done", "-n", "5", "--where", "SEXX=2", "-o", "a.csv"], "did you mean 'SEX'"),
    "an unknown level": (["sample", "done", "-n", "5", "--where", "SEX=9", "-o", "a.csv"], "9"),
    "the certificate of what is no release": (["certificate", "."], "no release"),
    "a demo that exists": (["demo", "--out", "."], "exists already"),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_a_command_that_is_wrong(case, untouched, capsys):
    arguments, says = COMMANDS[case]
    assert untouched(*arguments) == 2
    assert says in the_complaint(capsys)


def test_no_command_at_all_shows_the_help(capsys):
    in_process()
    said = capsys.readouterr()
    assert "certificate" in said.out + said.err
    assert not said.err.startswith("stratsynth: Usage")


def test_in_a_process_of_its_own_too(tmp_path):
    small.edit(small.write_recipe(tmp_path), "epsilon = 1.0", "epsilon = -1.0")
    before = small.tree(tmp_path)
    assert "epsilon" in complaint(started("fit", "recipe.toml", cwd=tmp_path), 2)
    assert small.tree(tmp_path) == before


def fail_with(monkeypatch, error):
    def load(*arguments, **settings):
        raise error

    monkeypatch.setattr("stratsynth.data.backends.load_rows", load)


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return small.write_recipe(tmp_path)


def test_a_refused_budget_is_3(recipe, monkeypatch, capsys):

    steps = Independent.steps
    monkeypatch.setattr(
        Independent, "steps", lambda self, public, allot, rng: steps(self, public, scaled(allot, 2), rng)
    )
    assert in_process("fit", recipe) == 3
    assert "remaining" in the_complaint(capsys)
    assert not (recipe.parent / "release").exists()


def test_an_unforeseen_error_is_1_and_names_only_its_kind(recipe, monkeypatch, capsys):
    fail_with(monkeypatch, ValueError("secret"))
    assert in_process("fit", recipe) == 1
    said = the_complaint(capsys)
    assert "ValueError" in said
    assert "secret" not in said


def test_data_that_turn_out_unreadable_are_1_since_the_charge_stands(recipe, capsys):
    (recipe.parent / "people.csv.gz").write_bytes(gzip.compress(small.people(5000).to_csv(index=False).encode())[:-20])
    small.edit(recipe, '"people.csv"', '"people.csv.gz"')
    assert in_process("fit", recipe) == 1
    assert "charge stands" in the_complaint(capsys)


DEBUG = """
import sys
from stratsynth import cli
sys.argv = ["stratsynth", *sys.argv[1:]]
cli.main()
"""


def test_debug_shows_a_traceback_and_keeps_the_exit_code(recipe):
    small.edit(recipe, "epsilon = 1.0", "epsilon = -1.0")
    done = python(DEBUG, "fit", recipe, "--debug", cwd=recipe.parent)
    assert "Traceback" in done.stderr
    assert "UsageError" in done.stderr
    assert done.returncode == 2


INTERRUPTED = """
import os, signal, sys, time
import stratsynth.data.backends as loading
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs start with it ignored
def load(*arguments, **settings):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(20)
loading.load_rows = load
from stratsynth import cli
cli.main()
"""


def test_an_interrupt_is_130_and_says_that_the_charge_stands(recipe):
    done = python(INTERRUPTED, "fit", recipe, cwd=recipe.parent)
    assert "charged stays charged" in complaint(done, 130)
    assert not (recipe.parent / "release").exists()
    assert [p.name for p in recipe.parent.iterdir() if p.name.startswith(".")] == []


def test_an_error_of_a_file_that_an_interrupt_closed_is_an_interrupt(recipe):
    """A half-written archive fails when it is closed on the way up; any other such error is one."""
    broken = INTERRUPTED.replace(
        "os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(20)",
        "try:\n        raise KeyboardInterrupt\n    finally:\n        raise ValueError('seek of closed file')",
    )
    assert broken != INTERRUPTED
    assert "charged stays charged" in complaint(python(broken, "fit", recipe, cwd=recipe.parent), 130)
    plain = broken.replace("raise KeyboardInterrupt", "pass")
    assert "ValueError" in complaint(python(plain, "fit", recipe, cwd=recipe.parent), 1)


def test_an_error_after_output_is_no_traceback_either(place):
    """The reader of a pipe goes away."""
    code = (
        "import subprocess, sys; p = subprocess.Popen([sys.argv[1], 'certificate', 'release', '--json'], "
        "stdout=subprocess.PIPE, stderr=subprocess.PIPE); p.stdout.close(); print(p.stderr.read().decode())"
    )
    done = python(code, Path(sys.executable).with_name("stratsynth"), cwd=place)
    assert "Traceback" not in done.stdout


def test_python_started_in_the_source_folder_finds_everything():
    """The folder hides the installed package, and has the adapters beside it, not in it."""
    root = Path(__file__).parents[2]
    code = "import stratsynth.evaluation, stratsynth.adapters.aim; print(stratsynth.adapters.__file__)"
    found = python(code, cwd=root)
    assert found.returncode == 0, found.stderr
    assert Path(found.stdout.strip()).parent == root / "adapters"


def test_the_package_is_the_command(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "stratsynth", "mechanisms"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, stratsynth("mechanisms", cwd=tmp_path).stdout)
