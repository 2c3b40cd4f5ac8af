"""The arrows between the parts, and the few things that only one part may do, read from the source tree."""

import ast
import fnmatch
import functools
import graphlib
import itertools
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers import trusted

ROOT = Path(__file__).parents[2]
PRODUCT = {"stratsynth": "stratsynth", "stratsynth.adapters": "adapters", "stratsynth.evaluation": "evaluation"}
LABORATORY = {"studies": "scripts/studies", "benches": "scripts/benches", "fuzzing": "scripts/fuzzing"}
PARTS = PRODUCT | LABORATORY
FORBIDDEN = {
    "stratsynth": {"stratsynth.adapters", "stratsynth.evaluation", *LABORATORY},
    "stratsynth.adapters": {"stratsynth.evaluation", *LABORATORY},
    "stratsynth.evaluation": {"stratsynth.adapters", *LABORATORY},
    "studies": {"stratsynth.adapters", "benches"},
    "benches": {"stratsynth.adapters"},
    "fuzzing": {"studies", "benches"},
}
PICKLES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "shelve", "marshal"}
UNPICKLERS = {"joblib.dump", "joblib.load", "torch.load", "mbi.load"}
ENTROPY = {"os.urandom", "os.getrandom", "random.SystemRandom"}
SEEDED = {"BitGenerator", "Generator", "PCG64", "PCG64DXSM", "Philox", "SFC64", "SeedSequence", "default_rng"}
WATCHES = {"random", "random.getstate", "numpy.random.get_state"}  # how stratsynth.testing catches their use
BY_STRING = {"__import__", "find_spec", "import_module"}
HEAVY = {"duckdb", "jax", "matplotlib", "mbi", "pandas", "pyarrow", "scipy", "sklearn", "typer"}


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of the source tree, with the name it is imported by."""
    for part, folder in PARTS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            inner = path.relative_to(ROOT / folder).with_suffix("").parts
            yield ".".join([part, *inner]), path


def part_of(module: str) -> str:
    return max((part for part in PARTS if f"{module}.".startswith(f"{part}.")), key=len)


def imported(module: str, tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Line, dotted name with relative imports spelled out, and the local name, of each import."""
    package = module.split(".")[:-1]  # right for __init__ too, whose name here ends in .__init__
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield node.lineno, name.name, name.asname or name.name
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            source = [*above, *([node.module] if node.module else [])]
            for name in node.names:
                yield node.lineno, ".".join([*source, name.name]), name.asname or name.name


def uses(module: str, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of whatever the code imports, by statement or by string, or takes from it."""
    real: dict[str, str] = {}
    for line, name, local in imported(module, tree):
        real[local.split(".")[0]] = name if "." not in local else name.split(".")[0]
        yield line, name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            first, *rest = ast.unparse(node).split(".")
            # The head of a chain with a call in it comes by itself.
            if first in real and all(part.isidentifier() for part in rest):
                yield node.lineno, ".".join([real[first], *rest])
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in BY_STRING:
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield node.lineno, argument.value


def breaches(module: str, name: str) -> Iterator[str]:
    """Fault of this module's using that name."""
    top, *rest = name.split(".")
    if module.startswith("stratsynth.testing.") and name in WATCHES:
        return
    if any(f"{name}.".startswith(f"{target}.") for target in FORBIDDEN[part_of(module)]):
        yield f"{part_of(module)} may not import {name}"
    if (top == "secrets" or name in ENTROPY) and not module.startswith("stratsynth.noise."):
        yield f"{name}: only stratsynth.noise reads the system's entropy"
    cases = part_of(module) == "fuzzing" and name in {
        "random",
        "random.Random",
    }  # generators with a seed, in no product
    if top == "random" and name not in ENTROPY and not cases:
        yield f"{name}: randomness is an argument"
    if name.startswith("numpy.random.") and rest[1] not in SEEDED:
        yield f"{name}: numpy's global generator"
    if top in PICKLES or name in UNPICKLERS:
        yield f"{name}: no pickle"


def is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def problems(module: str, source: str) -> list[str]:
    tree = ast.parse(source)
    used = uses(module, tree)
    found = [f"{module}:{line}: {what}" for line, name in used for what in breaches(module, name)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in {"/dev/random", "/dev/urandom"}:
            found.append(f"{module}:{node.lineno}: {node.value}")
        if isinstance(node, ast.Attribute) and node.attr in {"to_pickle", "read_pickle"}:
            found.append(f"{module}:{node.lineno}: {node.attr}: no pickle")
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle" and not is_false(node.value):
            found.append(f"{module}:{node.lineno}: allow_pickle")
    return sorted(set(found))


@pytest.mark.parametrize(("module", "path"), [pytest.param(*found, id=found[0]) for found in modules()])
def test_every_module_keeps_to_its_layer(module: str, path: Path):
    assert problems(module, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("stratsynth.cli", "import stratsynth.adapters"),
        ("stratsynth.cli", "from stratsynth import evaluation"),
        ("stratsynth.cli", "from . import adapters"),
        ("stratsynth.driver.local", "from ..adapters.mst import MST"),
        ("stratsynth.driver.__init__", "from ..adapters import MST"),
        ("stratsynth.__init__", "from .adapters import MST"),
        ("stratsynth.cli", "def f():\n    from stratsynth.evaluation import parity_error"),
        ("stratsynth.cli", "from importlib import import_module\nimport_module('stratsynth.adapters.mst')"),
        ("stratsynth.adapters.mst", "import stratsynth.evaluation.scores"),
        ("stratsynth.evaluation.scores", "import stratsynth\nstratsynth.adapters.MST()"),
        ("stratsynth.evaluation.means.commands", "from studies.means import theory"),
        ("stratsynth.evaluation.commands", "def f():\n    import benches.figures"),
        ("stratsynth.adapters.mst", "from importlib import import_module\nimport_module('studies.data')"),
        ("stratsynth.cli", "from benches import door"),
        ("studies.means.reproduce", "from benches.figures import Figure"),
        ("stratsynth.driver", "import secrets"),
        ("stratsynth.driver", "import os as o\no.urandom(8)"),
        ("stratsynth.driver", "from os import urandom"),
        ("stratsynth.driver", "open('/dev/urandom')"),
        ("stratsynth.noisework", "import secrets"),
        ("stratsynth.noise.table", "import random"),
        ("stratsynth.adapters.mst", "from random import choice"),
        ("stratsynth.adapters.mst", "import numpy as np\nnp.random.seed(0)"),
        ("stratsynth.adapters.mst", "import numpy as np\nnp.random.RandomState(0).normal()"),
        ("stratsynth.adapters.mst", "from numpy.random import normal"),
        ("stratsynth.adapters.mst", "from numpy import random as r\nr.shuffle([])"),
        ("stratsynth.testing.contract", "import random\nrandom.seed(1)"),
        ("stratsynth.release", "import pickle"),
        ("stratsynth.release", "from joblib import dump"),
        ("stratsynth.release", "import importlib\nimportlib.import_module('pickle')"),
        ("stratsynth.release", "def f(frame):\n    frame.to_pickle('x')"),
        ("stratsynth.release", "import numpy as np\nnp.load('x', allow_pickle=True)"),
        ("stratsynth.release", "import numpy as np\nnp.load('x', allow_pickle=flag)"),
    ],
)
def test_the_checker_sees_each_breach(module: str, source: str):
    assert problems(module, source) != []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("stratsynth.noise.entropy", "import os, secrets\nos.urandom(8)"),
        ("stratsynth.adapters.mst", "from stratsynth.adapters._mbi import fit\nfrom . import independent"),
        ("stratsynth.adapters.mst", "from stratsynth import counts\nfrom stratsynth.schema import Schema"),
        ("benches.fermi", "from studies import data"),
        ("stratsynth.evaluation.scores", "from ._frames import tidy\nimport stratsynth as ss\nss.Schema"),
        (
            "stratsynth.driver",
            "import numpy as np\ndef f(rng: np.random.Generator):\n    return rng.random()",
        ),
        (
            "stratsynth.driver",
            "import numpy as np\nnp.random.default_rng(np.random.SeedSequence(7)).normal()",
        ),
        ("stratsynth.release", "import numpy as np\nnp.load('x', allow_pickle=False)"),
    ],
)
def test_the_checker_lets_sound_code_pass(module: str, source: str):
    assert problems(module, source) == []


class WithoutTypeChecking(ast.NodeTransformer):
    """Drops what only type checkers import: it never runs, and makes no arrow."""

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        return node.orelse or None if ast.unparse(node.test).endswith("TYPE_CHECKING") else node


def room_graph(package: str, sources: Iterable[tuple[str, str]]) -> dict[str, dict[str, list[str]]]:
    """Imports between rooms of a package, with their lines.

    A room is a folder or a module directly in the package; the package's own `__init__` is the room `__init__`, whose
    arrows are its imports for type checkers too, since what it exports is imported when it is first used. `sources`
    are the dotted names and the texts of modules; those outside the package are ignored. Imports within functions
    make an arrow like any other.
    """
    inner = {name.removeprefix(f"{package}."): text for name, text in sources if name.startswith(f"{package}.")}
    graph: dict[str, dict[str, list[str]]] = {name.split(".")[0]: {} for name in inner}
    for name, text in inner.items():
        room, tree = name.split(".")[0], ast.parse(text)
        running = tree if name == "__init__" else WithoutTypeChecking().visit(tree)
        for line, target, _ in imported(f"{package}.{name}", running):
            if f"{target}.".startswith(f"{package}."):
                there = target.removeprefix(package).removeprefix(".").split(".")[0]
                there = there if there in graph else "__init__"
                if there != room:
                    graph[room].setdefault(there, []).append(f"{package}.{name}:{line}: {target}")
    return graph


def cycle(graph: dict[str, dict[str, list[str]]]) -> list[str]:
    """The lines that close a cycle of rooms; none where there is no cycle."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        rooms: list[str] = error.args[1]  # each is imported by the next
        return [line for there, room in itertools.pairwise(rooms) for line in graph[room][there]]
    return []


@pytest.mark.parametrize("package", [part for part in PARTS if part not in {"benches", "fuzzing"}])  # these have none
def test_no_room_of_a_package_imports_one_that_imports_it(package: str):
    own = [(name, path.read_text(encoding="utf-8")) for name, path in modules() if part_of(name) == package]
    graph = room_graph(package, own)
    assert len(graph) > 5
    assert cycle(graph) == []


@pytest.mark.parametrize(
    ("room", "barred"),
    [
        ("stratsynth.report", {"release", "models", "accounting", "schema", "strata"}),
        ("stratsynth.models", {"release", "mechanisms", "driver", "accounting"}),
        ("stratsynth.release.page", {"release.release", "release.folder"}),
    ],
)
def test_pages_know_no_models_and_models_no_releases(room: str, barred: set[str]):
    sources = [
        (name, path.read_text(encoding="utf-8")) for name, path in modules() if f"{name}.".startswith(f"{room}.")
    ]
    found = {target for name, text in sources for _, target, _ in imported(name, ast.parse(text))}
    assert sources
    assert not [t for t in found if any(f"{t}.".startswith(f"stratsynth.{room_}.") for room_ in barred)]


ROOMS = {"p.a.x": "", "p.b.__init__": "from p.a.x import f\nfrom p.b import inner", "p.c": "def f():\n    import p.b"}


@pytest.mark.parametrize(
    ("module", "source", "closes"),
    [
        ("p.a.y", "from p.c import f", True),
        ("p.a.y", "def f():\n    from p import b", True),
        ("p.a.y", "from ..c import f", True),
        ("p.a.y", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.c import f", False),
        ("p.a.y", "if TYPE_CHECKING:\n    pass\nelse:\n    from p.c import f", True),
        ("p.a.y", "from p.a import x\nfrom pc import f\nimport q.c", False),
        ("p.d", "from p import f\nfrom p.a import x", False),
        ("p.__init__", "if TYPE_CHECKING:\n    from p.c import f", False),
    ],
)
def test_a_cycle_of_rooms_is_found_by_what_runs(module: str, source: str, closes: bool):
    found = cycle(room_graph("p", [*ROOMS.items(), (module, source)]))
    assert any(line.startswith(f"{module}:") for line in found) == closes
    assert bool(found) == closes


def test_a_room_may_not_import_a_door_that_exports_it():
    door = {"p.__init__": "if TYPE_CHECKING:\n    from p.a.x import f"}
    assert cycle(room_graph("p", (ROOMS | door | {"p.a.y": "from p import f"}).items())) != []


def test_importing_the_package_loads_no_heavy_library():
    code = "import stratsynth, sys; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert set(run.stdout.split()) & HEAVY == set()


# The trusted base: docs/privacy.md lists the modules that have to be right for the guarantee.

TRUSTED = {module.name: module for module in trusted.modules()}
GUARDED = {"noise", "account", "rows"}
"""The parts of it that hold entropy, the account and rows: only what is trusted may use them, of whatever path."""
HELD = {"charge", "recall", "store"}
"""Methods of an account."""
OUTSIDE = {
    "stratsynth.data.draft": "INTERNAL: drafts of schemas and checks, which nothing is released of",
    "stratsynth.data.linked_check": "INTERNAL: checks of linked files, which nothing is released of",
    "stratsynth.priors.linked": "counts the rows of a prior, which are public, as private ones are counted",
    "stratsynth.accounting.history": "tells of a ledger's past and coming fits, and spends nothing",
    "stratsynth.recipes.outlook": "foresees what fits will cost",
    "stratsynth.fitting.repeats": "refuses a fit that its ledger has done, before anything is reserved",
    "stratsynth.adapters.sklearn.searches": "foresees what fits will cost",
    "stratsynth.planning.rehearsal": "charges an account of its own, for made-up answers",
    "stratsynth.testing.*": "runs mechanisms on made-up rows",
    "stratsynth.evaluation.audit.*": "runs mechanisms on made-up rows",
    "stratsynth.evaluation.scores.streamed": "INTERNAL: exact scores of real rows",
    "stratsynth.evaluation.means.shown": "INTERNAL: exact means of real rows",
    "stratsynth.evaluation.comparisons.compare": "compares on rows declared public, or charges; marks files by a key",
    "stratsynth.evaluation.lens.twins": "research on rows declared public",
    "stratsynth.evaluation.fermi.columns": "research on public rows",
}
"""Modules that are not trusted and use one of these all the same, and what for."""


def guarded(module: str, source: str) -> list[str]:
    """Places at which a module uses entropy, the account, or rows."""
    found, tree = [], WithoutTypeChecking().visit(ast.parse(source))
    for line, name in uses(module, tree):
        home = trusted.home(name, TRUSTED)
        if home is not None and home.part in GUARDED and home.name != module:
            found.append(f"{module}:{line}: {name}, which is of the {home.part}")
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        whose = ast.unparse(node.value)
        if (node.attr in HELD and "account" in whose) or (node.attr == "rows" and whose.endswith("backend")):
            found.append(f"{module}:{node.lineno}: {ast.unparse(node)}")
    return sorted(set(found))


def allowed(module: str) -> list[str]:
    """The entries of OUTSIDE for a module."""
    return [name for name in OUTSIDE if fnmatch.fnmatch(module, name)]


def test_nothing_else_holds_rows_entropy_or_the_account():
    product = [(name, path) for name, path in modules() if name.startswith("stratsynth.") and name not in TRUSTED]
    found = {name: guarded(name, path.read_text(encoding="utf-8")) for name, path in product}
    assert [line for name, lines in found.items() if not allowed(name) for line in lines] == []
    needed = {entry for name, lines in found.items() if lines for entry in allowed(name)}
    assert set(OUTSIDE) - needed == set(), "these need no exception any more"


@pytest.mark.parametrize(
    ("source", "breach"),
    [
        ("from stratsynth.driver.rows import MemoryRows", True),
        ("def f():\n    from stratsynth.data.load import load_rows", True),
        ("from stratsynth.driver import private", True),
        ("from stratsynth import noise\nnoise.SystemEntropy()", True),
        ("from stratsynth.noise.entropy import SYSTEM", True),
        ("import stratsynth\nstratsynth.accounting.ledger_file.FileLedger", True),
        ("from importlib import import_module\nimport_module('stratsynth.driver.answering')", True),
        ("def f(account):\n    account.charge(0, '', [], 0.0)", True),
        ("def f(self):\n    return self._account.recall(0, '')", True),
        ("def f(table):\n    return table.backend.rows()", True),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from stratsynth.noise import Entropy", False),
        ("from stratsynth.accounting.budget import Budget\nfrom stratsynth.questions import counts", False),
        ("def f(table):\n    return table.rows + table.charge", False),
    ],
)
def test_the_guard_sees_each_use(source: str, breach: bool):
    assert bool(guarded("stratsynth.adapters.mst", source)) == breach


@functools.cache
def known() -> frozenset[str]:
    """Every module, by the name of its import statement."""
    return frozenset(name.removesuffix(".__init__") for name, _ in modules())


def loads(module: str, source: str) -> Iterator[tuple[int, str]]:
    """Line and module of ours of each import that runs when a module is imported."""
    tree = WithoutTypeChecking().visit(ast.parse(source))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [ast.Pass()]
    for line, name, _ in imported(module, tree):
        home = name if name in known() else name.rpartition(".")[0]
        if home in known():
            yield line, home


def test_what_is_trusted_imports_only_what_is_trusted():
    short = {name.removesuffix(".__init__") for name in TRUSTED}
    found = [
        f"{name}:{line}: {home}"
        for name, path in modules()
        if name in TRUSTED
        for line, home in loads(name, path.read_text(encoding="utf-8"))
        if home not in short
    ]
    assert found == []


def test_imports_that_run_at_once_are_told_from_those_that_wait():
    source = "from stratsynth.noise import table\ndef f():\n    import stratsynth.fitting\nimport stratsynth.digest"
    assert [home for _, home in loads("stratsynth.checks", source)] == ["stratsynth.noise.table", "stratsynth.digest"]
