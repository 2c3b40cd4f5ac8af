"""The rate of Poisson samples, from public sizes alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stratsynth.errors import Unsupported

if TYPE_CHECKING:
    from stratsynth.mechanisms import Public

UNDECLARED = 0.05
"""The rate where neither it nor a size is declared."""


def sampling_of(who: str, sampling: float | None, batch: float, public: Public) -> float:
    """The rate that is declared, or that of samples of about `batch` rows; in strata it has to be declared."""
    if sampling is not None:
        return sampling
    if public.constant:
        raise Unsupported(f"{who}: all strata are sampled at one rate; give it as sampling, such as sampling = 0.05.")
    return UNDECLARED if public.size is None else min(1.0, batch / max(public.size, 1))
