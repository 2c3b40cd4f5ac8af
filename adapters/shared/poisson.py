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
    if public.size is None:
        return UNDECLARED
    rows = public.size / (public.schema.row_weight.mean or 1.0)  # of weighted rows the size is a total
    return min(1.0, batch / max(rows, 1.0))
