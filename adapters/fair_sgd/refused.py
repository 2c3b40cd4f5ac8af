"""Options of paper 001 and its companions that are refused, with the reason."""

from __future__ import annotations

MITIGATIONS = {
    "paper": "is not private: the paper's penalty, gamma1 |<g_a - g_D, g_D - gb_D>| + gamma2 |Tr H_a - Tr H|, averages "
    "over groups and over everybody inside the loss, so that a record changes the gradient of every other one, and "
    'clipping each row\'s gradient bounds nothing. Take mitigation = "surrogate": the averages are those of earlier '
    "steps, asked with noise and charged, and each row's gradient is of that row alone.",
    "dpsgd_f": "is not private: DPSGD-F takes its noise from the largest clip of the groups present in a batch, so "
    "that the noise itself tells whether a group was present, and asks for a batch's counts before it uses the same "
    'batch. Take mitigation = "group_clip": the largest clip of all declared groups, and the counts of earlier '
    "samples.",
    "realised_batch": "is not private: Global-Adapt as published divides by the realised size of each sample, which is "
    'private. Take mitigation = "global_adapt", which divides by the expected size.',
}
"""Published mitigations that are not private, with what to take instead."""
SCALINGS = {
    "groups": "is not offered: it would bring each group to mean 0 and variance 1 (figure 9 of the paper) by the "
    "groups' own means and variances, which are private. Features are scaled by their public bounds."
}
"""Scales that would have to be read from rows."""
