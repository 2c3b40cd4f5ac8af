"""The trusted base in lines of code, by path: what an auditor of the guarantee reads.

The table in docs/privacy.md lists the modules; this reads it and counts all lines of their files.
"""

from __future__ import annotations

import argparse
import fnmatch
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
HEADING = "## The trusted base"
PATHS = {
    "counts": "counts and choices from CSV or Parquet (MST, AIM, GEM, pooled, independent, fixed)",
    "types": "code lists, bands of numbers, dates, times and durations",
    "sums": "clipped sums",
    "samples": "steps on Poisson samples, and the exact curve of Gaussian noise",
    "engines": "frames, databases, Spark, rows kept on disk; accounts without a file",
    "linked": "two linked tables, such as households and persons",
}
"""Each path comes on top of those before it; `loaded` is none."""
ROW = re.compile(r"^\| (\w+) \| (\w*) ?\| (.+?) \| (.+?) \|$", flags=re.MULTILINE)


class Module(NamedTuple):
    """One listed file."""

    path: str
    """One of `PATHS`, or `loaded`."""
    part: str
    file: str
    """Below the folder `stratsynth`."""


def rows(text: str) -> list[tuple[str, str, list[str]]]:
    """Path, part and patterns of each row of the table."""
    section = text.partition(f"{HEADING}\n")[2].partition("\n## ")[0]
    return [
        (path, part, re.findall(r"`([^`]+)`", modules))
        for path, part, modules, _ in ROW.findall(section)
        if "`" in modules
    ]


def listed(text: str, sources: Path) -> list[Module]:
    """Every listed file; one that is named in full belongs to that row, others to the first pattern that covers them.

    Raises:
        ValueError: A name or pattern that no file has, a file that two rows name, or a path that is none.
    """
    files = sorted(str(path.relative_to(sources)) for path in sources.rglob("*.py"))
    found: dict[str, Module] = {}
    table = rows(text)
    for path, part, patterns in table:
        if path not in (*PATHS, "loaded"):
            raise ValueError(f"{path}: no path")
        for name in (pattern for pattern in patterns if "*" not in pattern):
            if name not in files or name in found:
                raise ValueError(f"{name}: {'named twice' if name in found else 'no such file'}")
            found[name] = Module(path, part, name)
    for path, part, patterns in table:
        for pattern in (pattern for pattern in patterns if "*" in pattern):
            covered = [name for name in fnmatch.filter(files, pattern) if name.count("/") == pattern.count("/")]
            if not covered:
                raise ValueError(f"{pattern}: no such file")
            for name in covered:
                found.setdefault(name, Module(path, part, name))
    return list(found.values())


def main() -> None:
    """Print the table of lines."""
    parser = argparse.ArgumentParser(prog="scripts/trusted", description=__doc__)
    parser.add_argument("--files", action="store_true", help="every file with its lines")
    parser.add_argument("--sources", type=Path, default=ROOT, metavar="DIR", help="count another checkout's files")
    given = parser.parse_args()
    sources = given.sources / "stratsynth"
    modules = listed((ROOT / "docs" / "privacy.md").read_text(encoding="utf-8"), sources)
    lines = {each.file: len((sources / each.file).read_text(encoding="utf-8").splitlines()) for each in modules}
    together = 0
    for path, what in {**PATHS, "loaded": "imported by these, given neither rows nor entropy nor the account"}.items():
        mine = [each for each in modules if each.path == path]
        own = sum(lines[each.file] for each in mine)
        together += own
        whole = "" if path == "loaded" else f", {together:,} with those above"
        print(f"{path:8} {own:6,} lines in {len(mine):3} files{whole}: {what}")
        for part in dict.fromkeys(each.part for each in mine) if path != "loaded" else ():
            inner = sorted((each.file for each in mine if each.part == part), key=lambda file: -lines[file])
            print(f"    {part:10} {sum(map(lines.__getitem__, inner)):6,}")
            if given.files:
                print("".join(f"        {lines[file]:4} {file}\n" for file in inner), end="")


if __name__ == "__main__":
    main()
