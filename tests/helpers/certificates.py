"""Certificates to change: one of a fit by version 0.1.0, with other sections in place of its own."""

import json
from pathlib import Path

from stratsynth.certificate import Certificate

WRITTEN = Path(__file__).parents[1] / "golden/written_by_0_1_0/independent/certificate.json"


def record(**sections):
    """The certificate as JSON; sections of several keys are merged with its own."""
    found = json.loads(WRITTEN.read_text(encoding="utf-8"))
    for name, section in sections.items():
        found[name] = {**found[name], **section} if _both(section, found.get(name)) else section
    return found


def _both(one, other):
    return isinstance(one, dict) and isinstance(other, dict)


def statement(**sections):
    """Return the typed certificate of `record`."""
    return Certificate.from_dict(record(**sections))
