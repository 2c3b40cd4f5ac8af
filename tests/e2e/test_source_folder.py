"""Python started in the source folder, where the folder `stratsynth` hides the installed package."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IMPORTS = """
import stratsynth as ss, stratsynth.adapters, stratsynth.evaluation, stratsynth.adapters.sklearn
from pathlib import Path
table = ss.open_table(ss.census.make(300), schema=ss.census.schema(), public=True)
release = ss.fit("independent", table, ss.Budget(epsilon=1, delta=1e-9))
folder = release.save(Path(r"{folder}") / "release", rows=10)
assert len(ss.Release.load(folder).sample(5)) == 5
for module in (ss, stratsynth.adapters, stratsynth.evaluation):
    print(Path(module.__file__).parent)
"""


def python(*arguments: object, cwd: Path) -> str:
    """Output of Python, started as by a user; without -P, so that the working folder comes first."""
    run = subprocess.run([sys.executable, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_everything_imports_from_the_source_folder(tmp_path: Path):
    found = python("-c", IMPORTS.format(folder=tmp_path), cwd=ROOT).split()
    assert found == [str(ROOT / "stratsynth"), str(ROOT / "adapters"), str(ROOT / "evaluation")]


@pytest.mark.parametrize("where", ["source", "elsewhere"])
def test_the_module_is_the_command(where: str, tmp_path: Path):
    said = python("-m", "stratsynth", "mechanisms", cwd=ROOT if where == "source" else tmp_path)
    assert {"aim", "mst", "pooled"} <= {line.split()[0] for line in said.splitlines()}
    assert "cannot be imported" not in said
