"""Damaged and hostile files: whatever is read, only this package's own errors come out, soon and in little memory."""

import contextlib
import io
import json
import random
import re
import resource
import shutil
import signal
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stratsynth as ss
from helpers import small
from helpers.ledgers import chained, lines_of
from stratsynth.accounting.account import Request
from stratsynth.accounting.history import read_ledger
from stratsynth.accounting.ledger_file import FileLedger
from stratsynth.adapters import Independent
from stratsynth.errors import StratsynthError
from stratsynth.mechanisms import Public
from stratsynth.recipes.recipe import Recipe
from stratsynth.release.folder import check_new
from stratsynth.release.page.summary import summary
from stratsynth.schema import Schema

QUICK, SLOW = 2_000, 10_000
SECONDS = 10
"""The longest that a file may keep us busy."""
MEMORY = 300_000
"""Kilobytes by which the process may grow over all of them."""


# Damage to bytes


def somewhere(rng, content, most=40):
    start = rng.randrange(len(content) + 1)
    return start, min(len(content), start + rng.randrange(1, most))


def flip(rng, content):
    at = rng.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]


def overwrite(rng, content):
    start, end = somewhere(rng, content)
    return content[:start] + rng.randbytes(end - start) + content[end:]


def cut(rng, content):
    return content[: rng.randrange(len(content))]


def remove(rng, content):
    start, end = somewhere(rng, content)
    return content[:start] + content[end:]


def double(rng, content):
    start, end = somewhere(rng, content, rng.choice([40, len(content) + 2]))
    return content[:end] + content[start:end] + content[end:]


def swap(rng, content):
    a, b, c, d = sorted(rng.randrange(len(content) + 1) for _ in range(4))
    return content[:a] + content[c:d] + content[b:c] + content[a:b] + content[d:]


def insert(rng, content):
    at = rng.randrange(len(content) + 1)
    foreign = rng.choice([b"\0", b"\xff", b"\n", b'"', b"[" * 3000, b"{" * 3000, b"9" * 5000])
    return content[:at] + foreign + content[at:]


BYTES = [flip, flip, overwrite, cut, remove, double, swap, insert]


# Damage to what the bytes mean

VALUES = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2**63,
    -(2**63),
    10**400,
    0.5,
    -0.0,
    1e-320,
    1e308,
    -1e308,
    float("nan"),
    float("inf"),
    "",
    "1",
    "SEX",
    "\0",
    "x" * 2000,
    "../x",
    "nan",
    [],
    {},
    [None],
    [[]],
    {"a": 1},
    {"SEX": "1"},
    json.loads("[" * 300 + "]" * 300),
]


def places(node, found=None):
    """Every (container, key) of a document."""
    found = [] if found is None else found
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        found.append((node, key))
        places(value, found)
    return found


def mean(rng, document):
    """A document with a field replaced, removed, doubled, renamed, or exchanged for another."""
    document = json.loads(json.dumps(document))
    every = places(document)
    node, key = rng.choice(every)
    other, where = rng.choice(every)
    how = rng.randrange(6)
    if how <= 1:
        node[key] = rng.choice(VALUES)
    elif how == 2:
        del node[key]
    elif how == 3:
        node[key], other[where] = json.loads(json.dumps([other[where], node[key]]))
    elif how == 4 and isinstance(node, list):
        node.insert(rng.randrange(len(node) + 1), node[key])
    elif isinstance(node, dict):
        node[str(rng.choice(["", "x", "\0", where]))] = node.pop(key)
    return document


def json_file(rng, content):
    return json.dumps(mean(rng, json.loads(content))).encode()


def ledger_file(rng, content):
    """Soundly chained again: somebody meant it."""
    return chained(mean(rng, [json.loads(line[65:]) for line in content.splitlines()]))


TOML = [
    "nan",
    "-inf",
    "-1",
    "0",
    "1e400",
    "9" * 400,
    "9" * 5000,
    "1e-320",
    "true",
    "[]",
    "{}",
    '""',
    '"\\u0000"',
    '"x\\u0000.csv"',
    '"' + "x" * 300 + '"',
    '"' + "x" * 5000 + '.toml"',
    '"/"',
    '"."',
    '"~"',
    '"/dev/zero"',
    "1979-05-27T07:32:00Z",
    "[[[[1]]]]",
    '["SEX", "SEX"]',
    '["SEX"]',
    '"SEX"',
    "{ SEX = '1' }",
    "0x7fffffffffffffff",
]
VALUE = re.compile(rb'"[^"\n]*"|(?<=[= \[])[-+0-9.e]+|true|false')


def toml_file(rng, content):
    """A value replaced by another one, of its own or foreign; or two lines exchanged."""
    if rng.random() < 0.2:
        lines = content.splitlines(keepends=True)
        a, b = (rng.randrange(len(lines)) for _ in range(2))
        lines[a], lines[b] = rng.choice([(lines[b], lines[a]), (lines[a], lines[a]), (b"", lines[b])])
        return b"".join(lines)
    found = list(VALUE.finditer(content))
    spot = rng.choice(found)
    new = rng.choice(found)[0] if rng.random() < 0.3 else rng.choice(TOML).encode()
    return content[: spot.start()] + new + content[spot.end() :]


def csv_file(rng, content):
    fields = re.split(rb"([,\n])", content)
    fields[rng.randrange(len(fields))] = rng.choice(
        [b"", b",", b"\n", b"nan", b"-1", b"1e999", b"9" * 400, b'"', b"\0", b"x" * 200_000, b"share", b"SEX"]
    )
    return b"".join(fields)


SHAPES = [(-1,), (0,), (), (10**13,), (2**31,), (2**62, 2**62), (3, 1), (1, 3), (10**9, 0), (True,), (1.5,), ("a",)]
KINDS = ["<f8", ">f8", "<i8", "|O", "|V1000000000", "<U100000000", "|S0", "<c16", "<M8[ns]", "|b1", [("a", "<f8")], "x"]


def npz_file(rng, content):
    """A member of the archive with another meaning, and a sound checksum."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(list(members))
    if name.startswith("facts"):
        facts = json.loads(np.load(io.BytesIO(members[name])).tobytes())
        members[name] = npy(np.frombuffer(json.dumps(mean(rng, facts)).encode(), np.uint8))
    else:
        array = np.load(io.BytesIO(members[name]))
        how = rng.randrange(4)
        if how == 0:
            members[name] = npy(np.full(array.shape, rng.choice([-1, 0, 1e308, np.nan, np.inf])))
        elif how == 1:
            members[name] = headed(rng, array)
        else:
            members[name] = rng.choice(BYTES)(rng, npy(array))
        if how == 3:
            members[rng.choice(["x.npy", "../x.npy", name + ".npy"])] = members.pop(name)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, inside in members.items():
            archive.writestr(member, inside)
    return out.getvalue()


def npy(array):
    out = io.BytesIO()
    np.lib.format.write_array(out, array)
    return out.getvalue()


def headed(rng, array):
    """A header that claims another shape or type than the bytes have."""
    header = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape}
    header[rng.choice(["shape", "descr"])] = rng.choice(SHAPES + KINDS)
    text = (repr(header) + "\n").encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + array.tobytes()


def parquet_file(rng, content):
    """A sound table of other columns or types."""
    table = pq.read_table(io.BytesIO(content))
    column = rng.randrange(table.num_columns)
    how = rng.randrange(4)
    if how == 0:
        table = table.remove_column(column)
    elif how == 1:
        table = table.set_column(column, "x", table.column(column))
    elif how == 2:
        table = table.set_column(column, table.field(column).name, pa.nulls(table.num_rows))
    else:
        table = table.slice(0, 0) if rng.random() < 0.5 else table.append_column("x", table.column(0))
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


MEANT = {
    ".json": json_file,
    ".toml": toml_file,
    ".csv": csv_file,
    ".npz": npz_file,
    ".parquet": parquet_file,
    ".ledger": ledger_file,
}


def mutated(rng, path, content):
    """The content damaged once, or a few times."""
    for times in range(rng.choice([1, 1, 1, 3])):
        damage = MEANT[path.suffix] if rng.random() < 0.5 else rng.choice(BYTES)
        with contextlib.suppress(*[Exception] * (times > 0)):  # what is damaged already may be past another damage
            content = damage(rng, content) or b"x"
    return content


# Reading it


def load_release(place):
    release = ss.Release.load(place / "release")
    release.sample(3, seed=1)
    summary(release.certificate)


def judge_recipe(place):
    recipe = Recipe.read(place / "recipe.toml")
    how, table, budget = recipe.how(), recipe.table(), recipe.budget()
    check_new(recipe.directory)
    _ = recipe.rows
    how.price(Public(table.schema, table.declared_size, budget.neighbours), budget)


def load_schema(place):
    Schema.load(place / "schema.toml").to_toml()


def open_ledger(place):
    """By itself: beside files that know more of it, most damage would be refused for that alone."""
    (place / "people.ledger.next").unlink(missing_ok=True)
    shutil.rmtree(place / "people.ledger.journal", ignore_errors=True)
    read_ledger(place / "people.ledger")
    budget = ss.Budget(0.01, 1e-9)
    data = lines_of(place / "sound.ledger")[0]["data"]
    lines = lines_of(place / "sound.ledger")
    for identity in ("new", *(line["identity"] for line in lines if line["kind"] == "reserve")):
        FileLedger(place / "people.ledger", lambda key: data).open(
            Request(identity, "test", budget, budget.zcdp(), None)
        ).close()


READERS = {
    "release/certificate.json": load_release,
    "release/measurements.parquet": load_release,
    "release/model/model.npz": load_release,
    "release/model/schema.toml": load_release,
    "recipe.toml": judge_recipe,
    "schema.toml": load_schema,
    "shares.csv": judge_recipe,
    "people.ledger": open_ledger,
}


@pytest.fixture
def place(tmp_path):
    """A recipe, its release, and the ledger with one fit done and one open."""
    recipe = small.write_recipe(tmp_path)
    small.edit(recipe, "delta = 1e-9\n", 'delta = 1e-9\nledger = "people.ledger"\nledger_epsilon = 3.0\n')
    read = Recipe.read(recipe)
    read.run(tmp_path / "release")
    with pytest.raises(KeyError, match="killed"), ss.fitting.fitted(Independent(), read.table(), ss.Budget(0.5, 1e-9)):
        raise KeyError("killed")
    small.edit(recipe, 'directory = "release"', 'directory = "other"')
    shutil.copy(tmp_path / "people.ledger", tmp_path / "sound.ledger")
    for reader in READERS.values():
        with contextlib.suppress(FileExistsError):
            reader(tmp_path)
    shutil.copy(tmp_path / "sound.ledger", tmp_path / "people.ledger")
    return tmp_path


@contextlib.contextmanager
def within(seconds):
    """A time limit that is no exception anybody catches."""

    def late(*arguments):
        raise SystemExit(f"more than {seconds} s")

    old = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def try_all(place, number, seed):
    """Mutate each kind of file in turn; returns what came out that should not, and how many were refused."""
    rng = random.Random(seed)
    wrong, refused = [], 0
    contents = {name: (place / name).read_bytes() for name in READERS}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for i in range(number):
        name = list(READERS)[i % len(READERS)]
        path = place / name
        content = mutated(rng, path, contents[name])
        path.write_bytes(content)
        try:
            with within(SECONDS):
                READERS[name](place)
        except StratsynthError as error:
            refused += 1
            if str(error).count("\n") > 1:
                wrong.append((i, name, f"{error}"))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - these are what we look for
            wrong.append((i, name, repr(error)[:200]))
        path.write_bytes(contents[name])
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if grown > MEMORY:
        wrong.append(f"grown by {grown} kB")
    return wrong, refused


def test_two_thousand_mutated_files_raise_typed_errors_and_nothing_else(place):
    wrong, refused = try_all(place, QUICK, seed=14)
    assert wrong == []
    assert QUICK / 2 < refused < QUICK  # damage is found, and not all of it is damage


@pytest.mark.slow
def test_ten_thousand_mutated_files_raise_typed_errors_and_nothing_else(place):
    seed = random.SystemRandom().randrange(2**32)
    wrong, _ = try_all(place, SLOW, seed)
    assert wrong == [], f"seed {seed}"
