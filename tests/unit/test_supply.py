"""Reports of scripts/audit and scripts/wheel on the supply chain."""

import hashlib
import importlib.metadata
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def supply():
    spec = importlib.util.spec_from_file_location("supply", ROOT / "scripts" / "_supply.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def asked(*packages):
    return json.dumps({"dependencies": [{"name": f"p{i}", "version": "1", **p} for i, p in enumerate(packages)]})


SOUND, BAD, LOST = {"vulns": []}, {"vulns": [{"id": "PYSEC-1"}]}, {"skip_reason": "Dependency not found on PyPI"}


@pytest.mark.parametrize(
    ("said", "error", "bad", "line"),
    [
        (asked(SOUND, SOUND), "", False, "no known vulnerability in 2 packages"),
        (asked(SOUND, LOST), "", False, "no known vulnerability in 1 packages; 1 more could not be looked up"),
        (asked(SOUND, BAD), "", True, "VULNERABLE: p1 1: PYSEC-1"),
        (asked(BAD, LOST), "", True, "VULNERABLE: p0 1: PYSEC-1"),
        (asked(LOST, LOST), "", False, "not run: the vulnerability service is unreachable (Dependency not found"),
        ("", "ConnectionError: no route", False, "unreachable (ConnectionError: no route)"),
        ("", "", False, "not run: the vulnerability service is unreachable (it printed nothing)"),
        ("[]", "", False, "not run"),
        (asked(), "", False, "not run"),
    ],
)
def test_only_packages_that_were_looked_up_count_as_sound(supply, said, error, bad, line):
    found, printed = supply.judged("run.txt", said, error)
    assert found is bad
    assert line in printed
    assert printed.startswith("pip-audit: run.txt: ")
    assert ("no known vulnerability" in printed) == ("no known" in line)


@pytest.mark.parametrize(
    ("says", "asks", "code"),
    [
        ([asked(LOST)], 1, 0),  # nobody answers
        ([asked(SOUND), asked(LOST), asked(BAD)], 3, 1),  # a lock of which no package is known is not the last
    ],
)
def test_a_service_that_is_unreachable_is_asked_once(supply, monkeypatch, capsys, says, asks, code):
    locks, asked_of = [Path("a.txt"), Path("b.txt"), Path("c.txt")], []

    def run(command, **settings):
        asked_of.append(command[-1])
        return subprocess.CompletedProcess(command, 0, says[len(asked_of) - 1], "")

    monkeypatch.setattr(supply.subprocess, "run", run)
    assert supply.vulnerabilities(locks) == code
    assert len(asked_of) == asks
    assert [line.split(": ")[1] for line in capsys.readouterr().out.splitlines()] == ["a.txt", "b.txt", "c.txt"]


@pytest.mark.parametrize("lock", ["run.txt", "test.txt", "audit.txt", "rivals.txt"])
def test_every_pin_of_a_lock_is_a_component_with_its_hashes(supply, lock):
    text = (ROOT / "locks" / lock).read_text(encoding="utf-8")
    found = supply.pinned(text)
    assert [f"{c['name']}=={c['version']}" for c in found] == re.findall(r"^[a-z0-9-]+==[^\s;]+", text, re.MULTILINE)
    hashes = [h["content"] for c in found for r in c["externalReferences"] for h in r["hashes"]]
    assert hashes == re.findall(r"[0-9a-f]{64}", text)


def made_wheel(path, date=(2026, 1, 1, 0, 0, 0)):
    facts = 'Name: stratsynth\nVersion: 9.9\nSummary: s\nLicense-Expression: Apache-2.0\nRequires-Dist: numpy>=2\nRequires-Dist: mypy; extra == "test"\n'  # noqa: E501
    with zipfile.ZipFile(path, "w") as z:
        z.writestr(zipfile.ZipInfo("stratsynth-9.9.dist-info/METADATA", date), facts)
    return path


def test_the_bill_of_materials_names_wheel_and_packages_by_hash(supply, tmp_path):
    wheel = made_wheel(tmp_path / "w.whl")
    bill = supply.bill(wheel, ROOT / "locks" / "run.txt")
    itself = bill["metadata"]["component"]
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert (itself["name"], itself["version"], itself["purl"]) == ("stratsynth", "9.9", "pkg:pypi/stratsynth@9.9")
    assert itself["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}]
    assert itself["licenses"] == [{"expression": "Apache-2.0"}]
    (direct,) = bill["dependencies"]
    assert all(re.match(r"pkg:pypi/numpy@", ref) for ref in direct["dependsOn"])
    refs = [c["bom-ref"] for c in bill["components"]]
    assert len(set(refs)) == len(refs)
    assert set(direct["dependsOn"]) <= set(refs)
    assert bill == supply.bill(wheel, ROOT / "locks" / "run.txt"), "the same for the same wheel and lock"


def test_wheels_that_differ_are_told_apart(supply, tmp_path, capsys):
    one = made_wheel(tmp_path / "one.whl")
    assert supply.same(one, made_wheel(tmp_path / "two.whl")) == 0
    assert supply.same(one, made_wheel(tmp_path / "three.whl", (2026, 1, 1, 0, 0, 2))) == 1
    assert "differ, in stratsynth-9.9.dist-info/METADATA" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="scripts need bash")
def test_the_wheel_is_the_same_whoever_builds_it_and_when(tmp_path):
    """Two copies of the sources with other dates and modes of files, another umask and another time zone."""
    built = []
    for zone, umask, mode in (("UTC", "022", "u=rw,go=r"), ("Pacific/Auckland", "077", "u=rwx,go=")):
        copy = tmp_path / umask
        ignore = shutil.ignore_patterns(".git", ".venv", "__pycache__", "*.egg-info", "tests")
        shutil.copytree(ROOT, copy, ignore=ignore, copy_function=shutil.copyfile)  # dates of now
        script = (
            f"umask {umask}; find {copy}/stratsynth -type f -exec chmod {mode} {{}} +; source {copy}/scripts/_env.sh; "
            f"env={sys.prefix}; build_wheel {tmp_path}/{umask}-wheel"
        )
        subprocess.run(["bash", "-c", script], check=True, env={"PATH": "/usr/bin:/bin", "TZ": zone})
        (wheel,) = (tmp_path / f"{umask}-wheel").glob("*.whl")
        built.append(wheel.read_bytes())
    assert built[0] == built[1]


def test_the_audit_runs_in_continuous_integration():
    script = (ROOT / "scripts" / "test").read_text(encoding="utf-8")
    assert '  check audit "$root/scripts/audit"' in script
    audit = (ROOT / "scripts" / "audit").read_text(encoding="utf-8")
    for failure in ("bandit", "pip-audit", "wheel", "bill"):
        assert f'failed="$failed {failure}"' in audit


def test_what_is_installed_is_what_the_locks_name():
    script = (ROOT / "scripts" / "_env.sh").read_text("utf-8")
    assert 'install --require-hashes --only-binary :all: "${wheels[@]/#/--requirement=}"' in script
    assert "install --require-hashes --only-binary :all: --no-binary pyspark --no-build-isolation" in script
    kinds = re.findall(r"run_pip install (--\S+)", script)
    assert kinds == ["--require-hashes", "--require-hashes", "--no-deps"]  # the last one is the project's own wheel


GRAPHICS = re.compile(r"nvidia|cuda|triton|rocm|cudnn", re.IGNORECASE)


def test_pytorch_is_locked_to_its_cpu_build_and_brings_nothing_for_graphics_cards():
    """No other file fits the hash, so pip refuses where an index has no such build."""
    torch, rest = ((ROOT / "locks" / name).read_text(encoding="utf-8") for name in ("torch_cpu.txt", "torch.txt"))
    assert len(re.findall(r"^torch==[\d.]+\+cpu \\\n    --hash=sha256:[0-9a-f]{64}$", torch, re.MULTILINE)) == 1
    assert re.findall(r"^torch==\S+ ; (.+) \\$", rest, re.MULTILINE) == ["sys_platform == 'none'"]
    assert not GRAPHICS.search(rest)
    assert re.search(r"^opacus==", rest, re.MULTILINE)


@pytest.mark.torch
def test_what_is_installed_with_pytorch_is_nothing_for_graphics_cards():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed; scripts/test --with torch installs it")
    assert torch.__version__.endswith("+cpu")
    assert [d.name for d in importlib.metadata.distributions() if GRAPHICS.search(d.name)] == []


def test_the_audit_and_the_wheel_are_locked_as_declared():
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    audit, test = ((ROOT / "locks" / name).read_text(encoding="utf-8") for name in ("audit.txt", "test.txt"))
    for wanted in (*groups["audit"], *groups["build"]):
        assert f"\n{wanted.split('>=')[0]}==" in audit, "run scripts/lock"
    for wanted in groups["build"]:  # the wheel of scripts/wheel is built with what the tested one is built with
        (pin,) = re.findall(rf"^{wanted.split('>=')[0]}==\S+", test, re.MULTILINE)
        assert f"\n{pin} " in audit, "run scripts/lock"


def test_a_source_distribution_holds_what_its_checks_need():
    lines = (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines()
    assert {f"graft {folder}" for folder in ("docs", "locks", "scripts", "tests", "adapters", "evaluation")} <= set(
        lines
    )
    assert "SECURITY.md" in next(line for line in lines if line.startswith("include "))
