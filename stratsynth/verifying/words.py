"""Check the words of a certificate against its own charges, figures and account: nothing that limits it is left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stratsynth.accounting.budget import Currency
from stratsynth.accounting.charges import FIRST
from stratsynth.release.declared import DECLARED_SIZE
from stratsynth.release.limits import sentences
from stratsynth.version import VERSION
from stratsynth.weights.sources import source_of

if TYPE_CHECKING:
    from stratsynth.certificate import Certificate
    from stratsynth.release.consistency import Stated
    from stratsynth.verifying.verdict import Notes


def check_words(certificate: Certificate, stated: Stated, notes: Notes) -> None:
    """Add a finding to `notes` for each claim, disclosure or limit that a certificate lacks for its charges, `stated`.

    Else a check passed.
    """
    found = [*_claims(certificate, stated), *_disclosed(certificate), *_stamped(certificate)]
    if certificate.software.stratsynth == VERSION:
        if list(certificate.not_protected) != sentences(certificate):
            found.append("certificate.json's list of what is not protected is not the one that its sections give.")
        elif not found:
            notes.checked.append(
                "The list of what is not protected is the one that the certificate's other sections imply."
            )
    elif certificate.conversion and not certificate.not_protected:  # 0.1.0 had neither
        found.append("certificate.json does not list what is not protected, as its version does: it was taken out.")
    else:
        notes.unchecked.append(
            "that the list of what is not protected is complete: another version wrote the certificate"
        )
    notes.findings += found


def _claims(certificate: Certificate, stated: Stated) -> Iterator[str]:
    """Yield a sentence if a charge, `stated`, is third-party code's claim and the certificate does not say whose."""
    for charge in stated.spending.charges:
        if charge.kind == "raw" or (charge.currency == Currency.CLAIMED and charge.kind != FIRST):
            by = str(charge.details.get("claimed_by", ""))
            if not by or not any(by in sentence for sentence in certificate.unverified):
                yield (
                    "A charge is what third-party code claims of itself, and certificate.json does not say under "
                    "`unverified` whose claim it is."
                )
                return


def _disclosed(certificate: Certificate) -> Iterator[str]:
    """Yield a sentence for each disclosure without noise in a certificate that its `unprotected` does not name."""
    declared = any(c.what == DECLARED_SIZE and c.declared is not None for c in certificate.declared_and_measured)
    if declared and DECLARED_SIZE not in certificate.unprotected:
        yield "certificate.json states a declared size, and does not list it as unprotected."
    source, weights = source_of(certificate.weights.source), certificate.weights
    if source is not None and (weights.confidential or (source.exact and source.of_rows)):
        for name in set(source.discloses) - set(certificate.unprotected):
            yield f"certificate.json's weights are {source.words}, and it does not list {name} as unprotected."


def _stamped(certificate: Certificate) -> Iterator[str]:
    """Yield sentences on a certificate that is called private, but was charged to no account or has a warning."""
    if certificate.private and not certificate.ledger.releases:
        yield "certificate.json says that the release is private, and that no account was charged for it."
    if certificate.private and certificate.warning:
        yield f"certificate.json says that the release is private, and warns: {certificate.warning}"
