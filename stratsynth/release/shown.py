"""What Python and notebooks show of a release and its certificate: short, and nothing but what is published."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stratsynth.display import panel, preformatted

if TYPE_CHECKING:
    from stratsynth.certificate import Certificate


class CertificateRecord(dict[str, Any]):
    """A certificate as `certificate.json` has it, whose `statement` is typed; a notebook shows it in words."""

    @cached_property
    def statement(self) -> Certificate:
        """The certificate in its sections; ValueError names the key that is none."""
        from stratsynth.certificate import Certificate

        return Certificate.from_dict(self)

    def __repr__(self) -> str:
        """The guarantee in a line."""
        return f"Certificate({_in_short(self)})"

    def _repr_html_(self) -> str:
        """The summary of `stratsynth certificate`."""
        from stratsynth.release.page.summary import summary

        return preformatted("Certificate", summary(self, brief=True))


def release_text(certificate: CertificateRecord, columns: int) -> str:
    """A release in a line."""
    return f"Release({_in_short(certificate)}; {columns} column{'s' * (columns != 1)})"


def release_html(certificate: CertificateRecord, columns: int, declared_size: int | None) -> str:
    """A release for a notebook."""
    from stratsynth.release.page import words

    guarantee = certificate["guarantee"]
    warnings = [notice["text"] for notice in certificate.get("notices", ())]
    if not certificate["private"]:
        warnings.insert(0, str(certificate.get("warning", "NOT PRIVATE")))
    facts = [
        ("Mechanism", words.mechanism(certificate)),
        ("Guarantee", f"epsilon {guarantee['epsilon']:g}, delta {guarantee['delta']:g} ({certificate['neighbours']})"),
        ("Strata", " x ".join(certificate["strata"].get("by", ()))),
        ("Columns", columns),
        ("Declared size", "" if declared_size is None else f"{declared_size:,}"),
        ("Not verified", "; ".join(certificate["unverified"])),
    ]
    return panel(
        "Release", [fact for fact in facts if fact[1] != ""], warning=" ".join(warnings),
        note="release.sample(n) draws rows; release.certificate says what was guaranteed; release.save(folder) writes "
        "everything.",
    )  # fmt: skip


def _in_short(certificate: Mapping[str, Any]) -> str:
    try:
        guarantee, by = certificate["guarantee"], certificate["strata"].get("by", ())
        name = str(certificate["mechanism"]["name"]) + (" by " + " x ".join(by) if by else "")
        said = f"{name}; epsilon {guarantee['epsilon']:g}, delta {guarantee['delta']:g}"
        return said if certificate["private"] else f"{said}; NOT PRIVATE"
    except (LookupError, TypeError, ValueError, AttributeError):  # a part of a certificate, or a damaged one
        return f"{len(certificate)} entries"
