"""INTERNAL. Sections on the release's certificate, and on its citation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stratsynth.certificate import Certificate
from stratsynth.release.limits import disclosed
from stratsynth.release.page import words
from stratsynth.report.page import Section


def guarantee(record: Mapping[str, Any] | None) -> Section:
    """Return the page's Section on the release's certificate, the dict `record`, in plain words.

    None: that none came.
    """
    not_this = (
        "The guarantee is about the release. This report was computed from the private rows themselves, and "
        "is covered by no guarantee at all."
    )
    if record is None:
        return Section("certificate", "The certificate", text=["No certificate came with the table."])
    certificate = Certificate.from_dict(record)
    nothing = [("Disclosed without noise", " ".join(disclosed(certificate).values()) or "Nothing was declared.")]
    warned = [("Warning", " ".join(found))] if (found := words.warnings(certificate)) else []
    facts = [*warned, *words.group_facts(certificate), *words.made_facts(certificate), *nothing]
    return Section("certificate", "The certificate", text=[*words.promise(certificate), not_this], facts=facts)


def cited(certificate: Mapping[str, Any] | None, facts: Mapping[str, Any]) -> Section:
    """Return the page's Section on citing the release, by its certificate, a dict; None leaves the citation out.

    `facts`, of the evaluation, has the schema's sha256.
    """
    lines = [] if certificate is None else words.citation(Certificate.from_dict(certificate))
    return Section(
        "cite",
        "How to cite",
        text=["Cite the release, not this report: it is INTERNAL.", f"Schema sha256 {facts['schema_sha256']}."],
        quotes=lines,
    )
