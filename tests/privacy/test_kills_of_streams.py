"""Kill -9 in each phase of a fit whose rows are in a scratch file: it goes on, nothing is charged twice, nothing stays.

Phases: the fingerprint, reading and encoding, writing to the scratch file, sorting by strata, counting, sums, sampling;
of rows of a CSV file and, where DuckDB is installed, of a database.
"""

import importlib.util
import itertools
import signal

import pytest

from helpers import small
from helpers.crash import KILLED, Fault, Nursery, command
from helpers.ledgers import lines_of
from stratsynth import Release

STRATA = (
    '[strata]\nby = ["SEX", "GROUP"]\n\n[weights]\nsource = "public"\npath = "shares.csv"\ncitation = "made up"\n\n'
)
TABLES, SUMS = 'name = "mst"\n', 'name = "clipped_mean"\ncolumns = ["AGE"]\n'
PHASES = {
    "opening": ("stratsynth.data.duckdb_source:refuse_macros", TABLES, (0, 1, 3)),
    "the fingerprint": ("stratsynth.data.stream:fingerprint", TABLES, range(1)),
    "reading": ("stratsynth.data.{module}:{source}.batches", TABLES, range(1)),
    "encoding": ("stratsynth.schema.encoding:encode_categorical", TABLES, range(3)),
    "the scratch file": ("stratsynth.files.scratch:Scratch.empty", TABLES, (0, 1, 3)),
    "sorting": ("stratsynth.driver.rows:cell_numbers", TABLES, range(1)),
    "counting": ("stratsynth.driver.counting:add", TABLES, (0, 1, 4)),
    "sums": ("stratsynth.driver.rows:exact_sums", SUMS, (0, 1, 3)),
    "sampling": ("stratsynth.release.sampling:Drawing.piece", TABLES, range(1)),
}


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="module")
def nursery(scratch):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(scratch))
        nursery = Nursery()
    yield nursery
    nursery.close()


ENGINES = {
    "stream": ({"module": "sources", "source": "CsvSource"}, 'path = "people.csv"', []),
    "duckdb": (
        {"module": "duckdb_source", "source": "DuckDBSource"},
        'path = "people.duckdb"\ntable = "people"',
        [
            pytest.mark.duckdb,
            pytest.mark.skipif(
                importlib.util.find_spec("duckdb") is None,
                reason="DuckDB is not installed; scripts/test --with duckdb installs it",
            ),
        ],
    ),
}
"""For each engine, where its rows are read, its keys of [data], and the marks of its tests."""


def place(folder, mechanism, engine):
    """A recipe on a ledger, whose rows are streamed."""
    small.write_recipe(folder)
    if engine == "duckdb":
        import duckdb

        with duckdb.connect(str(folder / "people.duckdb")) as connection:
            connection.execute("CREATE TABLE people AS SELECT * FROM read_csv(?)", [str(folder / "people.csv")])
    release = "" if mechanism == SUMS else '[release]\nrows = 50\ndirectory = "release"\nseed = 7\n'
    (folder / "recipe.toml").write_text(
        f'[data]\n{ENGINES[engine][1]}\nschema = "schema.toml"\ndeclared_size = 100\nengine = "{engine}"\n\n{STRATA}'
        f'[mechanism]\n{mechanism}\n[budget]\nepsilon = 1.0\ndelta = 1e-9\nledger = "people.ledger"\n\n{release}',
        encoding="utf-8",
    )
    return folder


def cases(quick):
    found = []
    for engine, phase in itertools.product(ENGINES, PHASES):
        where, mechanism, times = PHASES[phase]
        if (engine, phase) == ("stream", "opening"):
            continue
        parts, _, marks = ENGINES[engine]
        for number, at in enumerate(times):
            for after in (False, True):
                slow = [] if quick(number, after) else [pytest.mark.slow]
                label = f"{engine}-{phase}-{at}-{'after' if after else 'before'}"
                values = (engine, where.format(**parts), mechanism, at, after)
                found.append(pytest.param(*values, id=label, marks=[*marks, *slow]))
    return found


@pytest.mark.parametrize(
    ("engine", "where", "mechanism", "at", "after"), cases(lambda number, after: number == 0 and after)
)
def test_a_killed_stream_goes_on(engine, where, mechanism, at, after, tmp_path, nursery, scratch):
    whole, folder = (place(tmp_path / name, mechanism, engine) for name in ("whole", "killed"))
    assert nursery.run(command, "fit", "recipe.toml", cwd=whole).code == 0
    fault = Fault(where, at=at, after=after, signal=signal.SIGKILL)
    ended = nursery.run(command, "fit", "recipe.toml", cwd=folder, faults=[fault])
    assert ended.code == KILLED, ended.said
    assert files(scratch) == []  # before anything has run again
    assert nursery.run(command, "fit", "recipe.toml", cwd=folder).code == 0
    assert charged(folder) == charged(whole)
    assert files(scratch) == []
    assert {path.name for path in folder.iterdir()} == {path.name for path in whole.iterdir()}
    Release.load(folder / "release")


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def charged(folder):
    """Amounts charged, by what they were for."""
    return [
        (line["charges"], line["moment"]) for line in lines_of(folder / "people.ledger") if line["kind"] == "charge"
    ]
