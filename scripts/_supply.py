"""Python parts of scripts/audit and scripts/wheel: known vulnerabilities, equal wheels, the bill of materials."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import uuid
import zipfile
from collections.abc import Mapping, Sequence
from email.parser import Parser
from pathlib import Path
from typing import Any

PATIENCE = 300
"""Seconds that pip-audit may take."""


def vulnerabilities(locks: Sequence[Path]) -> int:
    """Look the pinned packages up; 1 if one has a known vulnerability, 0 if none has or nobody can be asked.

    A service that knows no package of the first lock is not asked for the others: each could wait for minutes.
    """
    worst, reached = 0, True
    for lock in locks:
        if not reached:
            print(f"pip-audit: {lock.name}: not run: the vulnerability service is unreachable")
            continue
        command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "--progress-spinner=off"]
        try:
            done = subprocess.run(  # noqa: S603 - no shell, and arguments of our own
                [*command, "--format=json", "--requirement", str(lock)],
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
            said, error = done.stdout, done.stderr
        except subprocess.TimeoutExpired:
            said, error = "", f"no answer within {PATIENCE} s"
        bad, line = judged(lock.name, said, error)
        reached = lock != locks[0] or "not run" not in line
        print(line)
        worst = max(worst, int(bad))
    return worst


def judged(name: str, said: str, error: str) -> tuple[bool, str]:
    """Return True if a package is vulnerable, and a line to print, from pip-audit's output on one lock.

    A package that its service does not know is not one without vulnerabilities: pip-audit itself says "no known
    vulnerabilities found" even where every single question failed.
    """
    try:
        packages = json.loads(said)["dependencies"]
    except (ValueError, LookupError, TypeError):
        why = " ".join(error.split())[-200:] or "it printed nothing"
        return False, f"pip-audit: {name}: not run: the vulnerability service is unreachable ({why})"
    known = [p for p in packages if "vulns" in p]
    if not known:
        why = packages[0].get("skip_reason", "no reason given") if packages else "the lock is empty"
        return False, f"pip-audit: {name}: not run: the vulnerability service is unreachable ({why})"
    found = [f"{p['name']} {p['version']}: {v['id']}" for p in known for v in p["vulns"]]
    if found:
        return True, f"pip-audit: {name}: VULNERABLE: {'; '.join(found)}"
    lost = len(packages) - len(known)
    rest = f"; {lost} more could not be looked up" if lost else ""
    return False, f"pip-audit: {name}: no known vulnerability in {len(known)} packages{rest}"


def same(one: Path, two: Path) -> int:
    """1 unless two wheels are the same, byte for byte; says in which member they differ."""
    if one.read_bytes() == two.read_bytes():
        print(f"wheel: two builds of {one.name} are the same, sha256 {sha256(one)}")
        return 0
    with zipfile.ZipFile(one) as first, zipfile.ZipFile(two) as second:
        members = [{i.filename: (i.date_time, i.external_attr, i.CRC) for i in z.infolist()} for z in (first, second)]
    differing = [name for name in {**members[0], **members[1]} if members[0].get(name) != members[1].get(name)]
    print(f"wheel: two builds of {one.name} differ, in {', '.join(differing[:5]) or 'their order'}")
    return 1


def sha256(path: Path) -> str:
    """The hash of a file, in hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def pinned(lock: str) -> list[dict[str, Any]]:
    """The packages of a lock as components, with the hashes of every file that may be installed."""
    found = []
    for text in re.split(r"^(?=[a-z0-9])", lock, flags=re.MULTILINE)[1:]:
        head = re.match(r"([a-z0-9-]+)==([^\s;\\]+)\s*(?:;\s*([^\\\n]+?)\s*)?(?:\\|$)", text, flags=re.MULTILINE)
        if head is None:
            raise SystemExit(f"this line of the lock is not understood: {text.splitlines()[0]}")
        name, version, marker = head.groups()
        purl = f"pkg:pypi/{name}@{version}"
        hashes = [{"alg": "SHA-256", "content": digest} for digest in re.findall(r"--hash=sha256:([0-9a-f]{64})", text)]
        found.append(
            {
                "type": "library",
                "bom-ref": purl,
                "name": name,
                "version": version,
                "purl": purl,
                "externalReferences": [
                    {"type": "distribution", "url": f"https://pypi.org/project/{name}/{version}/", "hashes": hashes}
                ],
                **({"properties": [{"name": "stratsynth:marker", "value": marker}]} if marker else {}),
            }
        )
    return found


def bill(wheel: Path, lock: Path) -> dict[str, Any]:
    """The bill of materials: the wheel, and the packages that its lock installs with it. The same for the same two."""
    with zipfile.ZipFile(wheel) as z:
        (name,) = (n for n in z.namelist() if n.endswith(".dist-info/METADATA"))
        facts = Parser().parsestr(z.read(name).decode("utf-8"))
    packages = pinned(lock.read_text(encoding="utf-8"))
    purl = f"pkg:pypi/{facts['Name']}@{facts['Version']}"
    itself = {
        "type": "library",
        "bom-ref": purl,
        "name": facts["Name"],
        "version": facts["Version"],
        "purl": purl,
        "description": facts["Summary"],
        "licenses": [{"expression": facts["License-Expression"]}],
        "hashes": [{"alg": "SHA-256", "content": sha256(wheel)}],
    }
    document: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": itself},
        "components": packages,
        "dependencies": [{"ref": purl, "dependsOn": direct(facts.get_all("Requires-Dist") or [], packages)}],
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(document, sort_keys=True))
    return {"serialNumber": f"urn:uuid:{number}", **document}


def direct(required: Sequence[str], packages: Sequence[Mapping[str, Any]]) -> list[str]:
    """The pinned packages that are required without an extra."""
    plain = [line for line in required if "extra ==" not in line]
    names = {re.sub(r"[-_.]+", "-", re.split(r"[^A-Za-z0-9._-]", line)[0]).lower() for line in plain}
    return [package["bom-ref"] for package in packages if package["name"] in names]


def main() -> int:
    """One of the tasks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=["vulnerabilities", "same", "bill", "sums"])
    parser.add_argument("files", nargs="+", type=Path)
    given = parser.parse_args()
    if given.task == "vulnerabilities":
        return vulnerabilities(given.files)
    if given.task == "same":
        return same(*given.files)
    if given.task == "bill":
        print(json.dumps(bill(*given.files), indent=1))
        return 0
    for path in given.files:
        print(f"{sha256(path)}  {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
