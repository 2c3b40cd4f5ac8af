"""The experiments of paper 001, redone in shape; `scripts/reproduce_lens` runs this.

    python -m studies.lens [--adult FILE] [--law FILE] [--runs N] [--repeats N] [--out DIR]

Simulated people differ in one way at a time, so that what is to blame is known. Beside them stand the public data that
a reader brings, Adult by sex and by race and law school by race; the built-in census where none are brought. Figures
differ from the paper's, and what can be compared is which claims hold. All is seeded but `fair_sgd`, and NOT PRIVATE.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stratsynth.errors import StratsynthError, UsageError
from studies.lens.claims import gaps, last_of, words

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd


def main(arguments: list[str] | None = None) -> int:
    """Run everything, print tables and words, and write them into a folder if one is named."""
    parser = argparse.ArgumentParser(
        prog="scripts/reproduce_lens", description="Paper 001's experiments on excessive risk, redone."
    )
    parser.add_argument("--adult", metavar="FILE", type=Path, help="Adult (CSV), by sex and by race")
    parser.add_argument("--law", metavar="FILE", type=Path, help="law school data (CSV), by race")
    parser.add_argument("--runs", metavar="N", type=int, default=30, help="how many runs of noise of each (30)")
    parser.add_argument("--repeats", metavar="N", type=int, default=10, help="how many fits of each mitigation (10)")
    parser.add_argument("--out", metavar="DIR", type=Path, help="a new folder for tables (CSV) and pictures (PNG)")
    given = parser.parse_args(arguments)
    try:
        text = reproduce(given.runs, given.repeats, given.out, adult=given.adult, law=given.law)
    except StratsynthError as error:
        sys.stderr.write(f"reproduce_lens: {error}\n")
        return error.exit_code
    sys.stdout.write(text + "\n")
    return 0


def reproduce(
    runs: int, repeats: int, out: Path | None, *, adult: Path | None = None, law: Path | None = None
) -> str:  # fmt: skip
    """All experiments; the text to print."""
    if runs < 2 or repeats < 2:
        raise UsageError("runs and repeats are whole numbers of at least 2.")
    if out is not None and out.exists():
        raise UsageError(f"{out} exists already; name a new folder with --out.")
    for path in (adult, law):
        if path is not None and not path.is_file():
            raise UsageError(f"there is no file {path}.")
    from studies.lens import cases, experiments

    rng = np.random.default_rng(2021)
    among = [*cases.simulated(rng), *cases.brought(adult, law, rng)]
    found = {
        "output": experiments.output(among, 20 * runs, rng), "training": experiments.training(among, runs, rng),
        "steps": experiments.steps(among, rng), "mitigation": experiments.mitigation(among, repeats),
    }  # fmt: skip
    if out is not None:
        from studies.lens import picture

        out.mkdir(parents=True)
        for name, frame in found.items():
            frame.to_csv(out / f"{name}.csv", index=False)
        picture.traces(found["output"], out / "traces.png")
        picture.parts(found["training"], out / "training.png")
        picture.mitigated(gaps(found["mitigation"]), out / "mitigation.png")
    text = ["The fairness lens on simulated people, two groups each, and on public data. NOT PRIVATE.", *tables(found)]
    for whom, chosen in (("simulated people", True), ("public data", False)):
        names = [case.name for case in among if case.simulated == chosen]
        part = {name: frame[frame["world"].isin(names)] for name, frame in found.items()}
        text.append(f"In words, on {whom} ({'; '.join(names)}):\n{words(part)}")
    return "\n\n".join(text)


def tables(found: Mapping[str, pd.DataFrame]) -> list[str]:
    """Each experiment's figures at its end."""
    columns = ["world", "model", "group", "n", "trace", "gradient_norm", "excess", "low", "high", "clipping", "noise"]
    return [
        "Output perturbation: excessive risk by its closed form and by draws.\n"
        + _table(found["output"], ["world", "model", "group", "trace", "closed", "risk", "low", "high"]),
        "At the end of a private training: excessive risk and its parts.\n"
        + _table(last_of(found["training"]), columns),
        "fair_sgd: mean excessive risk of everybody and the gap between the groups, with half an interval over fits.\n"
        + gaps(found["mitigation"]).round(4).reset_index().to_string(index=False),
    ]


def _table(frame: pd.DataFrame, columns: list[str]) -> str:
    return frame[columns].round(4).to_string(index=False)
