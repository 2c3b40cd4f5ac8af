"""Sentences on the paper's bounds, its Figure 2 and the learner that it compares with, from one run's figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


def of_bounds(sizes: pd.DataFrame, orders: pd.DataFrame) -> list[str]:
    """Return sentences on sample sizes with constants, and on the orders of the lower bounds."""
    last, before = sizes.iloc[-1], sizes.iloc[-2]
    grows = np.log2(last["n_0 by oracles"] / before["n_0 by oracles"])
    ends = [f"{f(orders.loc[orders['privacy'] == p, 'in orders']):.2f}" for p in ("pure", "delta") for f in (min, max)]
    return [
        (
            f"- With constants, alpha = {last['alpha']:g} takes {last['n_0 by sampling']:.2g} people by exponential "
            f"sampling; by oracles {last['T']:.2g} steps and {last['n_0 by oracles']:.2g} people, and half the alpha "
            f"2^{grows:.1f} times as many, where the paper says 2^3."
        ),
        (
            f"- Noise on the sum misses {ends[0]} to {ends[1]} of K / (epsilon n), and with delta {ends[2]} to "
            f"{ends[3]} of sqrt(K) / (epsilon n), from K = {orders['K'].min()} to {orders['K'].max()}: both orders are "
            "reached."
        ),
    ]


def of_classes(figure: pd.DataFrame, by: pd.DataFrame) -> list[str]:
    """Return sentences on Figure 2's formulas, and on classifiers of most classes."""
    end = figure[(figure["classes"] == figure["classes"].max()) & (figure["matrix"] == "unbalanced")].iloc[0]
    most = by[by["classes"] == by["classes"].max()].set_index("objective")
    plain, fair = most.loc["error"], most.loc["g_mean"]
    others = [most.loc[name, "G-mean"] for name in ("not private", "not private, balanced")]
    return [
        (
            f"- Figure 2: by the formulas both means of equal entries are 1 / L; of unequal ones with {end['classes']} "
            f"classes the G-mean is {end['G-mean']:.3f} and the H-mean {end['H-mean']:.3f}. The paper says that the "
            "H-mean is the larger, and that it rises."
        ),
        (
            f"- {by['classes'].max()} classes, epsilon 1: the objective g_mean brings the G-mean from "
            f"{plain['G-mean']:.3f} to {fair['G-mean']:.3f} for {100 * (fair['error'] - plain['error']):+.1f} points "
            f"of error; logistic regression without privacy has {others[0]:.3f}, with balanced weights {others[1]:.3f}."
        ),
    ]


def of_learner(table: pd.DataFrame) -> list[str]:
    """Return a sentence on violation and error of DP-oracle-learner beside `reductions`, for most people."""
    last = table[table["rows"] == table["rows"].max()]

    def both(start: str) -> str:
        row = last[last["method"].str.startswith(start)].iloc[-1]  # of most rounds
        return f"{row['violation']:.3f} at an error of {row['error']:.3f}"

    return [
        (
            f"- DP-oracle-learner, {table['rows'].max():,} people, epsilon 1, most rounds: a violation of "
            f"{both('DP-oracle-learner, T')}, in zCDP {both('DP-oracle-learner, zCDP')}, without privacy "
            f"{both('without privacy')}; reductions with the same candidates {both('reductions')}."
        )
    ]
