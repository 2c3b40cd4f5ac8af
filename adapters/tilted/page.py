"""Chapter of a report on the prior's distance from the release, as far as paid answers show it."""

from __future__ import annotations

from collections.abc import Mapping

from stratsynth.report.numbers import percent
from stratsynth.report.page import Section

NOTE = (
    "The release started from public rows, and reweighted them where paid answers disagreed by more than noise "
    "explains. The figure of a column is the share of records whose level would have to change to turn the prior's "
    "distribution into the release's (total variation). Where noise is large the release stays near the prior, so a "
    "small figure may also mean that the answers were too noisy to correct it."
)
MADE = (
    "Of the release's rows, {} are none of the prior's: the mechanism's own model, fitted to the same paid answers, "
    "made them up. All others are rows of the prior, given out as often as their new weights say. This share follows "
    "from how well the prior's rows foretold paid answers, and from how far the two models are apart."
)


def prior_section(off: Mapping[str, float], made: float) -> Section:
    """Return the page's Section on a prior: distances `off` by column, the largest first.

    `made` is the share of rows that the own model made, in words.
    """
    ordered = sorted(off.items(), key=lambda item: -item[1])
    rows = [(name, percent(value)) for name, value in ordered]
    return Section("prior", "How far the prior was off", [NOTE, MADE.format(percent(made))], rows)
