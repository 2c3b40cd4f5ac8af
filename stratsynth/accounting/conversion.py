"""Conversion of each currency's reserved amounts to epsilon, with theorem and method; certificates state it."""

from __future__ import annotations

from collections.abc import Mapping

from stratsynth.accounting.budget import Currency

CONVERSIONS: Mapping[Currency, Mapping[str, str]] = {
    Currency.ZCDP: {
        "from": "rho of zero-concentrated DP, added up",
        "formula": "epsilon = min over a > 1 of rho a + (log(1/d) + (a - 1) log(1 - 1/a) - log a) / (a - 1), "
        "where d = delta - truncation_delta",
        "source": "Canonne, Kamath and Steinke 2020, The Discrete Gaussian for Differential Privacy "
        "(arXiv:2004.00010), Proposition 12 and Corollary 13",
        "optimisation": "golden section over log(a - 1); every order a is valid, so one that is not the best "
        "overstates epsilon",
    },
    Currency.EXACT: {
        "from": "rho = mu^2 / 2 of Gaussian DP, added up",
        "formula": "the least epsilon with Phi(mu / 2 - epsilon / mu) - exp(epsilon) Phi(-mu / 2 - epsilon / mu) <= "
        "d exp(-6e-7 rho), and 6e-7 rho on top for discrete noise, where d = delta - truncation_delta",
        "source": "Dong, Roth and Su 2022, Gaussian Differential Privacy (arXiv:1905.02383), Corollary 2.13; adaptive "
        "composition: Smith and Thakurta 2022, Fully Adaptive Composition for Gaussian Differential Privacy "
        "(arXiv:2210.17520)",
        "optimisation": "bisection from above, rounded up",
    },
    Currency.PURE: {
        "from": "epsilon of pure DP, added up",
        "formula": "epsilon = the sum of epsilons; delta = 0",
        "source": "Dwork, McSherry, Nissim and Smith 2006, Calibrating Noise to Sensitivity in Private Data Analysis; "
        "Dwork and Roth 2014, The Algorithmic Foundations of Differential Privacy, Theorem 3.14",
        "optimisation": "none",
    },
    Currency.SAMPLED: {
        "from": "steps of Gaussian noise on Poisson samples, all reserved",
        "formula": "epsilon at delta - truncation_delta of the steps' privacy loss distribution, noise narrowed by "
        "1e-9 for the grid",
        "source": "Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022, Connect the Dots: Tighter Discrete "
        "Approximations of Privacy Loss Distributions (arXiv:2207.04380), by dp-accounting",
        "optimisation": "pessimistic discretisation of dp-accounting, an upper bound",
    },
    Currency.CLAIMED: {
        "from": "claims of third-party code, added up",
        "formula": "epsilon = the sum of claimed epsilons; delta = the sum of claimed deltas",
        "source": "the claims themselves, which nobody here has checked",
        "optimisation": "none",
    },
}
