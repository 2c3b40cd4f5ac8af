"""The list of what has to be right for the guarantee: it is sound, and fits run through the path that is stated."""

import re
import subprocess
from pathlib import Path

import pytest

from helpers import homes, small, trusted
from helpers.walks import Walk, installed
from stratsynth import Budget, Nested, Schema, Stratified, Temporal, Weights, fit, open_table, open_tables
from stratsynth.adapters import AIM, CoinPress, Independent
from stratsynth.mechanisms import Prepared, make
from stratsynth.mechanisms.terms import Terms

ROOT = Path(__file__).parents[2]
LISTED = trusted.modules()
MOST_COUNTS, MOST_LINES = 9_000, 16_000
"""The most lines that an auditor of counts from files has to read, and of all paths together."""
GEM = {"components": 4, "hidden": [3], "latent": 2, "iterations": 1, "rounds": 2, "least": 20}
STRATA = {"by": ["SEX"]}
BORN = Temporal(kind="date", lower="1950-01-01", upper="2009-12-31", bins=6)
JOB = Nested(levels=("a1", "a2", "b1"), groupings=({"a": ("a1", "a2"), "b": ("b1",)},))


def stratified(weights):
    return Stratified(make("mst", {}), weights=weights, **STRATA)


def pooled(weights):
    return make("pooled", {"base": "mst", "share": 0.5, "weights": weights, **STRATA})


COUNTING = {
    "independent": lambda _: Independent(),
    "mst in strata": stratified,
    "aim": lambda _: AIM(rounds=2),
    "gem": lambda _: make("gem", GEM),
    "pooled": pooled,
}


def walked(how, folder, form="csv", schema=small.SCHEMA, **columns):
    """The files whose functions a fit enters; shares come from a file too."""
    path, shares = folder / f"people.{form}", folder / "shares.csv"
    people = small.people().assign(**columns)
    write = people.to_csv if form == "csv" else people.to_parquet
    write(path, index=False)
    shares.write_text("SEX,share\n1,0.4\n2,0.6\n", encoding="utf-8")
    with Walk(installed()).on() as walk:
        table = open_table(path, schema=schema, declared_size=100, ledger=folder / "people.ledger")
        fit(how(Weights.public(shares, citation="made up for testing")), table, Budget(1, 1e-9))
    return {file for file, _ in walk.functions}


@pytest.fixture(scope="module", autouse=True)
def _imported(tmp_path_factory):
    """Modules that are imported by the way run a few functions; here they are."""
    for number, how in enumerate((*COUNTING.values(), lambda _: CoinPress())):
        walked(how, tmp_path_factory.mktemp(f"imported{number}"))


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("name", COUNTING)
def test_counts_from_files_run_through_their_path_alone(name, form, tmp_path):
    files = walked(COUNTING[name], tmp_path, form)
    assert "driver/private.py" in files
    assert "noise/table.py" in files
    assert [m.file for m in LISTED if m.file in files and m.path not in ("counts", "loaded")] == []


def paths(files):
    return {m.path for m in LISTED if m.file in files}


@pytest.mark.parametrize("path", ["types", "sums", "engines"])
def test_other_paths_come_on_top_of_counts(path, tmp_path):
    if path == "engines":
        with Walk(installed()).on() as walk:
            table = open_table(small.people(), schema=small.SCHEMA, declared_size=100)
            fit(Independent(), table, Budget(1, 1e-9))
        files = {file for file, _ in walk.functions}
        assert "accounting/process.py" in files
    elif path == "types":
        columns = {**small.SCHEMA.columns, "BORN": BORN, "JOB": JOB}
        files = walked(COUNTING["mst in strata"], tmp_path, schema=Schema(columns), BORN="1990-05-04", JOB="a2")
        assert {"schema/temporal.py", "schema/nested.py"} <= files
    else:
        files = walked(lambda _: CoinPress(), tmp_path)
    assert paths(files) == {"counts", path, "loaded"}


def test_linked_tables_come_on_top_of_counts(tmp_path):
    files = [tmp_path / "households.csv", tmp_path / "persons.csv"]
    for frame, file in zip(homes.tables(60), files, strict=True):
        frame.to_csv(file, index=False)
    with Walk(installed()).on() as walk:
        ledger = tmp_path / "homes.ledger"
        table = open_tables(*files, schema=homes.SCHEMA, declared_size=60, ledger=ledger)
        fit(make("linked", {"base": "mst"}), table, Budget(1, 1e-9))
    entered = {file for file, _ in walk.functions}
    assert {"data/linked_rows.py", "data/linked_slots.py", "data/linked_tables.py"} <= entered
    assert paths(entered) == {"counts", "linked", "loaded"}


def test_what_is_prepared_restates_none_of_its_terms():
    """The driver admits by `Terms`, which is listed; `Prepared`, which is not, adds to them."""
    restated = vars(Terms).keys() & vars(Prepared).keys()
    assert {name for name in restated if not name.startswith("__")} == set()
    assert {"admit", "caps", "strata", "_check_attribute"} <= vars(Terms).keys()


def test_the_list_refuses_what_is_no_file_and_what_is_named_twice():
    text = "## The trusted base\n\n| counts | noise | `noise/*.py` | a |\n| sums | noise | {} | b |\n\n## Next\n"
    found = trusted.script.listed(text.format("`noise/laplace.py`"), ROOT / "stratsynth")
    assert {m.file for m in found if m.path == "sums"} == {"noise/laplace.py"}
    assert len([m for m in found if m.path == "counts"]) == len(list((ROOT / "stratsynth" / "noise").glob("*.py"))) - 1
    for wrong, why in (
        ("`noise/gone.py`", "no such file"),
        ("`no/*.py`", "no such file"),
        ("`noise/table.py`, `noise/table.py`", "named twice"),
    ):
        with pytest.raises(ValueError, match=why):
            trusted.script.listed(text.format(wrong), ROOT / "stratsynth")
    with pytest.raises(ValueError, match="no path"):
        trusted.script.listed(text.replace("| sums |", "| other |").format("`noise/table.py`"), ROOT / "stratsynth")


def test_the_script_prints_lines_of_each_path():
    """With any Python, and no packages."""
    script = ROOT / "scripts" / "trusted"
    done = subprocess.run(
        [script], capture_output=True, text=True, check=True, env={"PATH": "/usr/local/bin:/usr/bin:/bin"}
    )
    found = re.findall(r"^(\w+) +([\d,]+) lines in +(\d+) files", done.stdout, flags=re.MULTILINE)
    assert [path for path, _, _ in found] == ["counts", "types", "sums", "samples", "engines", "linked", "loaded"]
    numbers = {path: int(lines.replace(",", "")) for path, lines, _ in found}
    assert numbers["counts"] <= MOST_COUNTS
    assert sum(numbers.values()) - numbers["loaded"] <= MOST_LINES
    for path, lines, files in found:
        texts = [(ROOT / "stratsynth" / m.file).read_text(encoding="utf-8") for m in LISTED if m.path == path]
        assert (int(lines.replace(",", "")), int(files)) == (sum(len(t.splitlines()) for t in texts), len(texts))
