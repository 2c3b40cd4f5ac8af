"""Options of paper 001 and its companions that are refused, with the reason."""

from __future__ import annotations

from stratsynth.errors import Unsupported

MITIGATIONS = ("surrogate", "group_clip", "global_adapt", "none")
UNSOUND = {
    "paper": "the paper's penalty, gamma1 |<g_a - g_D, g_D - gb_D>| + gamma2 |Tr H_a - Tr H|, averages over groups and "
    "over everybody inside the loss, so that a record changes the gradient of every other one, and clipping each row's "
    'gradient bounds nothing. Take mitigation = "surrogate": the averages are those of earlier steps, asked with noise '
    "and charged, and each row's gradient is of that row alone",
    "dpsgd_f": "DPSGD-F takes its noise from the largest clip of the groups present in a batch, so that the noise "
    "itself tells whether a group was present, and asks for a batch's counts before it uses the same batch. Take "
    'mitigation = "group_clip": the largest clip of all declared groups, and the counts of earlier samples',
    "realised_batch": "Global-Adapt as published divides by the realised size of each sample, which is private. Take "
    'mitigation = "global_adapt", which divides by the expected size',
}
"""What is published and not private, with what to take instead."""
NORMALISED = (
    'scaling = "groups" is not offered: it would bring each group to mean 0 and variance 1 (figure 9 of the paper) by '
    "the groups' own means and variances, which are private. Features are scaled by their public bounds."
)


def check_mitigation(who: str, mitigation: object) -> None:
    """Refuse what is not private, with the reason, and what nobody knows."""
    if isinstance(mitigation, str) and mitigation in UNSOUND:
        raise Unsupported(f'{who}: mitigation = "{mitigation}" is not private: {UNSOUND[mitigation]}.')
    if mitigation not in MITIGATIONS:
        known = ", ".join(f'"{name}"' for name in MITIGATIONS)
        raise Unsupported(f"{who}: mitigation is one of {known}, not {mitigation!r}.")


def check_scaling(who: str, scaling: object) -> None:
    """Refuse scales that would have to be read from rows."""
    if scaling == "groups":
        raise Unsupported(f"{who}: {NORMALISED}")
    if scaling != "bounds":
        raise Unsupported(f'{who}: scaling is "bounds": features are scaled by their public bounds.')
