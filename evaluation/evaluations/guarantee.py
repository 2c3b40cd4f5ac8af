"""INTERNAL. The sections about the release's certificate, and about how to cite it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from stratsynth.release.limits import disclosed
from stratsynth.release.page import words
from stratsynth.release.shown import CertificateRecord
from stratsynth.report.page import Figure, Section


def guarantee(record: Mapping[str, Any] | None) -> Section:
    """The certificate in plain words. The evaluation itself is not covered by it."""
    not_this = (
        "It is about the release. This report was computed from the private rows themselves and is covered by no "
        "guarantee at all."
    )
    if record is None:
        return Section("certificate", "The certificate", text=["No certificate came with the table."])
    certificate = CertificateRecord(record)
    name = certificate["mechanism"]["name"]
    return Section(
        "certificate",
        "The certificate",
        text=[*words.promise(certificate), not_this],
        facts=[
            ("Mechanism", name),
            ("Groups", words.strata(certificate)),
            ("Their shares", words.weights(certificate)),
            ("Spent on these data", words.account(certificate)),
            ("Disclosed without noise", " ".join(disclosed(certificate.statement).values()) or "Nothing was declared."),
            *([("Warning", str(certificate.get("warning", "NOT PRIVATE")))] if not certificate["private"] else []),
        ],
    )


def cited(certificate: Mapping[str, Any] | None, facts: Mapping[str, Any]) -> Section:
    """How to cite the release, and why not to cite the evaluation."""
    lines = [] if certificate is None else words.citation(CertificateRecord(certificate))
    return Section(
        "cite",
        "How to cite",
        text=["Cite the release, not this report: it is INTERNAL.", f"Schema sha256 {facts['schema_sha256']}."],
        figures=[Figure("", picture=Markup("<pre>{}</pre>").format(line)) for line in lines],
    )
