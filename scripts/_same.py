"""Proof that two versions of the code make the same fits bit for bit; see scripts/same, which builds both.

    PYTHON _same.py --out a.json               seeded fits, by the stratsynth that PYTHON has installed
    PYTHON _same.py --compare a.json b.json    "125 fits, 0 differ", or the first differences; exit code 1 then
    PYTHON _same.py --resume OTHER_PYTHON      goes on with fits that OTHER_PYTHON's version began and was killed in

Of each fit this keeps: the questions by moment, with digests of what they say and of what was answered; charges; the
model's arrays and facts; measurements; a sample; the files of its release; the certificate; the lines of its ledger,
in which moments are known by the journal's keys. Left out is what differs between two runs of one version: dates,
versions, the ledger's random key and what follows from it.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

SINGLE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Sums of floats depend on how many threads share them, which is settled when numpy is imported."""
SEED = 7
LEDGER_LEAVES_OUT = ("at", "data", "version", "sha256")
"""Dates, the fingerprint under a random key, the version, and the digest of a file that says when it was written."""
CERTIFICATE_LEAVES_OUT = ("created", "software")
ROWS = 60
"""The number of synthetic rows in a release folder."""
SHOWN = 8
"""The most differences that are printed of one fit."""
KILLED = 9
"""The exit code of a fit that was stopped on purpose."""


# What is kept of a value


def digest(value: Any) -> str:
    """The first 16 digits of the SHA-256 of a value, whatever it is made of."""
    state = hashlib.sha256()
    for piece in pieces(value):
        state.update(b"%d:" % len(piece))
        state.update(piece)
    return state.hexdigest()[:16]


def pieces(value: Any) -> Iterator[bytes]:  # noqa: PLR0912 - a table of kinds
    """A value in bytes: every float to its last bit, every array with its type and shape."""
    if isinstance(value, np.ndarray):
        yield f"array {value.dtype.str} {value.shape}".encode()
        yield value.tobytes() if value.dtype != object else repr(value.tolist()).encode()
    elif isinstance(value, pa.Table):
        yield repr(value.schema.remove_metadata()).encode()
        yield repr(value.to_pydict()).encode()
    elif isinstance(value, pd.DataFrame):
        yield repr([(name, str(kind)) for name, kind in value.dtypes.items()]).encode()
        yield value.to_json(orient="values", double_precision=15).encode()
    elif isinstance(value, Mapping):
        yield b"mapping"
        for key, item in sorted(value.items(), key=lambda pair: str(pair[0])):
            yield str(key).encode()
            yield from pieces(item)
    elif isinstance(value, list | tuple):
        yield f"sequence {len(value)}".encode()
        for item in value:
            yield from pieces(item)
    elif is_dataclass(value) and not isinstance(value, type):
        yield type(value).__name__.encode()
        for field in fields(value):
            if field.metadata.get("digest", True):
                yield from pieces(getattr(value, field.name))
    elif isinstance(value, float):
        yield value.hex().encode()
    elif callable(value):
        yield getattr(value, "__qualname__", type(value).__name__).encode()
    else:
        yield repr(value).encode()


def plain(value: Any) -> Any:
    """A value as JSON keeps it: floats by their shortest exact spelling, NaN and infinities as texts."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


# What a program asks


class Watched:
    """A program's questions and the answers that it was sent, in order; `after` is called for each answer."""

    def __init__(self, after: Callable[[], None] = lambda: None) -> None:
        self.seen: list[list[str]] = []
        self._after = after
        self._inside = False

    @contextlib.contextmanager
    def of(self, *kinds: type) -> Iterator[Watched]:
        """Watch the programs of some mechanisms; what is kept is of the last, which is the fit's: plans come first."""
        homes = list(dict.fromkeys(next(base for base in kind.__mro__ if "steps" in vars(base)) for kind in kinds))
        proper = {home: vars(home)["steps"] for home in homes}
        for home in homes:
            home.steps = self._watching(proper[home])  # type: ignore[attr-defined]
        try:
            yield self
        finally:
            for home in homes:
                home.steps = proper[home]  # type: ignore[attr-defined]

    def _watching(self, steps: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*given: Any, **more: Any) -> Any:
            program = steps(*given, **more)
            if self._inside:  # a program inside another, which is watched already
                return program
            self.seen = []
            return self._through(program, "", self.seen)

        return watched

    def _through(self, program: Any, path: str, seen: list[list[str]]) -> Any:
        """The program as it is, written down."""
        answer = None
        while True:
            before, self._inside = self._inside, True
            try:
                question = program.send(answer)
            except StopIteration as stop:
                return stop.value
            finally:
                self._inside = before
            kind = type(question).__name__
            if kind == "Split":
                inner = {
                    stratum: self._through(child, f"{path}/{stratum.label}", seen)
                    for stratum, child in question.programs.items()
                }
                given = {f.name: getattr(question, f.name) for f in fields(question)}
                question = type(question)(**{**given, "programs": inner})
            line = [path, kind, "" if kind in ("Split", "Work") else digest(question)]
            seen.append(line)
            answer = yield question
            seen.append([path, "answer", "" if kind in ("Split", "Work") else digest(answer)])
            if kind not in ("Split", "Work"):
                self._after()


# A fit


def opened(case: Any, folder: Path, form: str = "frame") -> Any:
    """The table of a case, with a ledger in the folder."""
    import stratsynth as ss

    rows = case.rows()
    data: Any = rows.frame.copy()
    if form == "csv":
        data = folder / "people.csv"
        rows.frame.to_csv(data, index=False)
    elif form == "parquet":
        data = folder / "people.parquet"
        rows.frame.to_parquet(data, index=False)
    more = {"public": True} if rows.public else {"ledger": folder / "people.ledger", "ledger_epsilon": 50.0}
    if form == "stream":
        data = folder / "people.csv"
        rows.frame.to_csv(data, index=False)
        more["engine"] = "stream"
    return ss.open_table(data, schema=rows.schema, declared_size=rows.size, **more)


def fitted(case: Any, folder: Path, watched: Watched, seed: int = SEED, noise: int | None = None) -> Any:
    """The release of a case; `noise` is the seed of its noise, if another than the fit's."""
    import stratsynth as ss
    from stratsynth.mechanisms import as_mechanism
    from stratsynth.noise import SeededEntropy

    folder.mkdir(parents=True, exist_ok=True)
    how, table = as_mechanism(case.mechanism()), opened(case, folder, case.form)
    with watched.of(type(how), ss.Weighted):
        entropy = SeededEntropy(seed if noise is None else noise)
        return ss.fit(how, table, case.budget, seed=seed, entropy=entropy, **case.settings())


def facts(case: Any, folder: Path, seed: int = SEED) -> dict[str, Any]:
    """Return all facts of one fit that are compared."""
    watched = Watched()
    release = fitted(case, folder, watched, seed)
    state = release.model.state()
    certificate = plain({k: v for k, v in release.certificate.items() if k not in CERTIFICATE_LEAVES_OUT})
    rows = {"rows": ROWS} if str(release.model.returns) == "rows" else {}
    release.save(folder / "release", seed=seed, **rows)
    found = {
        "kinds": counted(watched.seen),
        "asked": [" ".join(line) for line in watched.seen],
        "charges": [digest(charge) for charge in certificate["charges"]],
        "state facts": digest(state.facts),
        "state arrays": {name: digest(array) for name, array in sorted(state.arrays.items())},
        "measurements": digest(release.measurements),
        "certificate": certificate,
        "files": files_of(folder / "release"),
        "ledger": ledger_of(folder / "people.ledger"),
    }
    if rows:
        found["sample"] = digest(release.sample(50, seed=seed))
    elif str(release.model.returns) == "predictions":
        found["predictions"] = digest(release.predict(case.rows().frame.head(50), seed=seed))
    else:
        found["estimates"] = digest(release.estimates())
    return found


def counted(seen: list[list[str]]) -> dict[str, int]:
    """The number of questions of each kind in each stratum."""
    found: dict[str, int] = {}
    for path, kind, _ in seen:
        found[f"{path} {kind}"] = found.get(f"{path} {kind}", 0) + 1
    return found


def files_of(folder: Path) -> dict[str, str]:
    """Digests of a release's files; the certificate stands beside them, and pages without dates and versions."""
    from stratsynth import __version__

    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name, content = str(path.relative_to(folder)), path.read_bytes()
        if path.suffix == ".html":
            text = re.sub(r"20\d\d-\d\d-\d\d", "DATE", content.decode()).replace(__version__, "VERSION")
            content = re.sub(r"[0-9a-f]{64}", "SHA256", text).encode()
        if path.name != "certificate.json":
            found[name] = digest(content)
    return found


def ledger_of(path: Path) -> list[Any]:
    """The lines of a ledger without what chance and the clock decide; a moment is known by its journal key, `asked`."""
    if not path.exists():
        return []
    lines = [json.loads(line.partition(" ")[2]) for line in path.read_text(encoding="utf-8").splitlines()]
    return [plain({key: value for key, value in line.items() if key not in LEDGER_LEAVES_OUT}) for line in lines]


def run(only: str, seed: int = SEED, wrong: str = "") -> dict[str, Any]:
    """All fits; `wrong` names one whose seed is altered, to show that it is noticed."""
    from _same_fits import cases

    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for number, (name, case) in enumerate(cases().items()):
            if only not in name:
                continue
            began = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    found[name] = facts(case, Path(scratch) / str(number), seed + (name == wrong))
                except Exception as error:  # noqa: BLE001 - what fails on both sides in one way is the same, and is said
                    found[name] = {"failed": f"{type(error).__name__}: {error}".replace(scratch, "SCRATCH")}
                    print(f"{name}: {found[name]['failed']}", file=sys.stderr)
            print(f"{number + 1:4} {time.perf_counter() - began:6.1f} s  {name}", file=sys.stderr)
    return found


# Comparing


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every number and text of nested tables and lists, with where it is."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from flat(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        for i, item in enumerate(value):
            yield from flat(item, f"{path}[{i}]")
    else:
        yield path, value


def compare(one: Mapping[str, Any], two: Mapping[str, Any], without: str = "") -> int:
    """Print the differences, but for those of the file `without` of a release; the number of fits that differ."""
    differ, failed = 0, [name for name in one if "failed" in one[name] and one[name] == two.get(name)]
    for name in sorted({*one, *two}):
        if name not in one or name not in two:
            print(f"{name}: only in the {'second' if name in two else 'first'}")
            differ += 1
            continue
        here, there = dict(flat(one[name])), dict(flat(two[name]))
        keys = [key for key in {**here, **there} if not without or key != f"files.{without}"]
        wrong = [key for key in keys if key not in here or key not in there or here[key] != there[key]]
        if wrong:
            differ += 1
            print(f"{name}: {len(wrong)} differ")
            for key in wrong[:SHOWN]:
                print(f"    {key}: {here.get(key, '(none)')} -> {there.get(key, '(none)')}")
    print(f"{len({*one, *two})} fits, {differ} differ" + (f"; failed in both: {', '.join(failed)}" if failed else ""))
    return differ


# Resuming


def begin(name: str, folder: Path, moments: int) -> None:
    """Begin a fit, and die when so many answers have been given."""
    from _same_fits import resumed

    answers: list[int] = []

    def after() -> None:
        if not (folder / "people.ledger").exists():  # the rehearsal, whose answers are made up
            return
        answers.append(1)
        if len(answers) == moments:
            (folder / "seen.json").write_text(json.dumps(watched.seen), encoding="utf-8")
            os._exit(KILLED)

    watched = Watched(after)
    fitted(resumed()[name], folder, watched)
    raise SystemExit(f"{name} asked fewer than {moments} questions")


def resume(other: str) -> int:
    """Go on here with fits that another version began; the number of those that do not go on as they should."""
    from _same_fits import resumed

    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        for number, (name, case) in enumerate(resumed().items()):
            for moments in case.kills:
                folder = Path(scratch) / f"{number} {moments}"
                folder.mkdir()
                begun = [other, __file__, "--begin", name, "--folder", str(folder), "--moments", str(moments)]
                done = subprocess.run(begun, check=False, capture_output=True, text=True)  # noqa: S603 - itself
                problem = done.stderr[-2000:] if done.returncode != KILLED else gone_on(case, folder)
                wrong += bool(problem)
                print(f"{name}, killed after answer {moments}: {problem or 'gone on with, nothing charged twice'}")
    print(f"{wrong} went wrong")
    return wrong


def gone_on(case: Any, folder: Path) -> str:
    """The faults of fits that were resumed; empty if there are none."""
    before = ledger_of(folder / "people.ledger")
    seen = json.loads((folder / "seen.json").read_text(encoding="utf-8"))
    watched = Watched()
    release = fitted(case, folder, watched, noise=SEED + 1)  # answers that were drawn again would be others
    after = ledger_of(folder / "people.ledger")
    if after[: len(before)] != before:
        return "the ledger's lines were changed"
    if [line["kind"] for line in after].count("reserve") != 1:
        return "another reservation was made: the fit is not known for the same"
    moments = [line["moment"] for line in after if line["kind"] == "charge"]
    if moments != list(range(len(moments))):
        return f"charges at moments {moments}: one was charged twice, or none"
    if watched.seen[: len(seen)] != seen:
        first = next(i for i, line in enumerate(seen) if watched.seen[i] != line)
        return f"line {first}: {seen[first]} before, {watched.seen[first]} now"
    return "" if len(release.certificate["charges"]) else "nothing was charged"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, metavar="JSON", help="where the facts of all fits go")
    parser.add_argument("--only", default="", metavar="TEXT", help="only fits whose names contain this")
    parser.add_argument("--wrong", default="", metavar="NAME", help="alter the seed of one fit, to see it noticed")
    parser.add_argument("--compare", nargs=2, type=Path, metavar="JSON", help="compare two such files")
    parser.add_argument("--without", default="", metavar="FILE", help="a file of releases that is not compared")
    parser.add_argument("--resume", metavar="PYTHON", help="go on with fits that another version began")
    for hidden in ("--begin", "--folder", "--moments"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if any(os.environ.get(name) != "1" for name in SINGLE):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **SINGLE})  # noqa: S606 - itself # nosec B606
    if given.compare:
        one, two = (json.loads(path.read_text(encoding="utf-8")) for path in given.compare)
        return min(compare(one, two, given.without), 1)
    if given.begin:
        begin(given.begin, Path(given.folder), int(given.moments))
    if given.resume:
        return min(resume(given.resume), 1)
    if given.out is None:
        parser.error("give one of --out, --compare and --resume")
    found = run(given.only, wrong=given.wrong)
    given.out.write_text(json.dumps(found, indent=1, sort_keys=True), encoding="utf-8")
    print(f"{len(found)} fits, {sum('failed' in one for one in found.values())} failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
