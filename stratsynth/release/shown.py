"""Releases and certificates as Python and notebooks show them: short, and of published facts alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

from stratsynth.errors import ReleaseError

NEXT = "release.sample(n) draws rows; release.certificate is the certificate; release.save(folder) writes everything."

if TYPE_CHECKING:
    from stratsynth.certificate import Certificate


class CertificateRecord(dict[str, Any]):
    """Content of `certificate.json`, whose `statement` is typed; a notebook shows it in words."""

    @cached_property
    def statement(self) -> Certificate:
        """`Certificate` of this record, typed sections; ValueError names the first key of another type, or missing."""
        from stratsynth.certificate import Certificate

        return Certificate.from_dict(self)

    def __repr__(self) -> str:
        """Return one line: Certificate(mechanism, strata, epsilon, delta), or its number of entries."""
        return f"Certificate({_in_short(self)})"

    def _repr_html_(self) -> str:
        """Return HTML of the brief certificate page; the record's text in <pre> if it is damaged."""
        from stratsynth.release.page.summary import certificate_page
        from stratsynth.report import notebook

        try:
            return notebook.render(certificate_page(self, brief=True))
        except ReleaseError:  # a notebook shows whatever it is given
            return f"<pre>{escape(repr(self))}</pre>"


def release_text(certificate: CertificateRecord, columns: int) -> str:
    """Return one line: Release(mechanism, strata, epsilon, delta of a certificate record; number of columns)."""
    return f"Release({_in_short(certificate)}; {columns} column{'s' * (columns != 1)})"


def release_html(certificate: CertificateRecord, columns: int, declared_size: int | None) -> str:
    """Return HTML for a notebook: the brief page of a certificate record, with the number of `columns`.

    The page has the `declared_size`, unless it is None.
    """
    from stratsynth.release.page.summary import certificate_page
    from stratsynth.report import notebook

    declared = [] if declared_size is None else [("Declared size", f"{declared_size:,}")]
    more = [("Columns", f"{columns}"), *declared, ("Next", NEXT)]
    return notebook.render(certificate_page(certificate, "Release", brief=True, more=more))


def _in_short(certificate: Mapping[str, Any]) -> str:
    """Return text: mechanism, strata, epsilon and delta of a certificate, a mapping; "N entries" of a damaged one."""
    try:
        guarantee, by = certificate["guarantee"], certificate["strata"].get("by", ())
        name = str(certificate["mechanism"]["name"]) + (" by " + " x ".join(by) if by else "")
        said = f"{name}; epsilon {guarantee['epsilon']:g}, delta {guarantee['delta']:g}"
        return said if certificate["private"] else f"{said}; NOT PRIVATE"
    except (LookupError, TypeError, ValueError, AttributeError):  # a part of a certificate, or a damaged one
        return f"{len(certificate)} entries"
