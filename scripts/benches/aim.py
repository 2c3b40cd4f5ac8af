"""AIM's part of `synth`: time, memory and error, stratified and not, at several epsilons; its solver against mbi."""

from __future__ import annotations

from typing import Any

from benches.figures import seconds
from benches.synth import fitted, mean, several
from studies.figures import Figure, limited

TIMES_VANILLA = 3.0
"""Largest time of a stratified fit, as a multiple of the vanilla one's."""
SMALL = {"model_cells": 2**14, "rounds": 4}
"""Models, and rounds, that JAX compiles in reasonable time."""


def run(acs: str | None) -> list[Figure]:
    """Return all of AIM's figures."""
    plain, timing = several(3, acs, mechanism="aim")
    return [
        seconds("AIM vanilla, epsilon 1: fit in a cold process", timing, at_most=60),
        Figure("  the whole process, loading and scoring too", mean(plain, "process"), "s", 3),
        limited("  peak memory after the fit", max(f["peak"] for f in plain), 1500, "MB", 3),
        limited("  mean L1 of 64 three-way marginals", mean(plain, "error"), 0.18, "of 2", 3),
        Figure("  rounds", mean(plain, "asked") - 1, "", 3),
        Figure("  different marginals measured, columns too", mean(plain, "cliques"), "", 3),
        *stratified(acs, timing.median),
        *epsilons(acs),
        *against_mbi(acs),
    ]


def stratified(acs: str | None, vanilla: float) -> list[Figure]:
    """SEX x RAC1P: 18 models, which are fitted together; those of few people measure their columns alone."""
    found, timing = several(3, acs, mechanism="aim", stratified=True)
    return [
        seconds("AIM stratified by SEX x RAC1P, epsilon 1: fit", timing),
        limited("  times as long as vanilla", timing.median / vanilla, TIMES_VANILLA, "x"),
        Figure("  peak memory after the fit", max(f["peak"] for f in found), "MB", 3),
        Figure("  mean L1 of 64 three-way marginals", mean(found, "error"), "of 2", 3),
    ]


def epsilons(acs: str | None) -> list[Figure]:
    """AIM's error against MST's."""
    figures = []
    for epsilon in (0.1, 10.0):
        ours, theirs = (several(3, acs, mechanism=name, epsilon=epsilon)[0] for name in ("aim", "mst"))
        due, error = mean(theirs, "error"), mean(ours, "error")
        name = f"AIM vanilla, epsilon {epsilon:g}: mean L1 of 64 three-way marginals"
        figures.append(Figure(name, error, "of 2", 3, None, f"at most MST's {due:.3f}", error <= due))
        figures.append(Figure("  fit", mean(ours, "fit"), "s", 3))
    return figures


def against_mbi(acs: str | None) -> list[Figure]:
    """AIM with all rounds by either engine, rules and prior included; noise is seeded."""
    found: dict[str, dict[str, Any]] = {
        engine: fitted(acs, mechanism="aim", settings={**SMALL, "engine": engine}, seeded=True)
        for engine in ("numpy", "mbi")
    }
    ours, theirs = found["numpy"], found["mbi"]
    return [
        Figure("AIM, same noise, model_cells 2^14, 4 rounds, engine numpy: fit", ours["fit"], "s"),
        Figure("  mean L1 of 64 three-way marginals", ours["error"], "of 2"),
        Figure("  engine mbi: fit", theirs["fit"], "s"),
        limited("  mean L1 of 64 three-way marginals, times that of numpy", theirs["error"] / ours["error"], 1.02, "x"),
        limited("  seconds of numpy for one of mbi", ours["fit"] / theirs["fit"], 1.0, "x"),
    ]
