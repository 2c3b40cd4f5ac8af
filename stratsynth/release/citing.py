"""The works to cite for a release: the software, the papers of its method, and the sources of weights and prior."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stratsynth.errors import ReleaseError
from stratsynth.mechanisms.words import words_of
from stratsynth.papers import PAPERS, STRATIFICATION
from stratsynth.references import Reference, numbered
from stratsynth.version import VERSION
from stratsynth.weights.invariant import COUNTS
from stratsynth.weights.sources import source_of

TITLE = "stratsynth: differentially private synthetic tables by strata"
"""The title of the software, as CITATION.cff has it."""
KNOWN = {str(paper): paper for paper in PAPERS}
"""The papers by their text, which is how mechanisms and certificates state them."""


def software(version: str = VERSION) -> Reference:
    """The entry of this program in one of its versions."""
    return Reference(key="stratsynth", kind="software", title=TITLE, authors=("stratsynth authors",), version=version)


def works() -> list[Reference]:
    """The software as it is installed, and every paper that it follows."""
    return [software(), *PAPERS]


def works_of(certificate: Mapping[str, Any]) -> list[Reference]:
    """The works that a release rests on, as its certificate names them.

    They are the release itself where it has a title, the version of the software that made it, the papers of the
    mechanism and, in strata, of stratification, and the published sources of the weights and of the prior.

    Raises:
        ReleaseError: A certificate whose entries are not of the kind that it should have.
    """
    try:
        return list(dict.fromkeys(_works(certificate)))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ReleaseError(f"the certificate is damaged ({type(error).__name__}): it cannot be cited from.") from None


def _works(certificate: Mapping[str, Any]) -> Iterator[Reference]:
    yield from _release(certificate)
    yield software(str(certificate["software"].get("stratsynth", VERSION)))
    yield from _papers(certificate)
    if certificate["strata"].get("by"):
        yield STRATIFICATION
    yield from numbered(list(_sources(certificate["weights"])), "weights", "Source of the group weights")
    if (prior := certificate.get("prior")) is not None:
        yield from numbered(list(_prior(prior)), "prior", "Source of the prior")


def _release(certificate: Mapping[str, Any]) -> Iterator[Reference]:
    called = certificate.get("called")
    if isinstance(called, Mapping) and isinstance(called.get("title"), str):
        publisher, guarantee = called.get("publisher"), certificate["guarantee"]
        yield Reference(
            key="release",
            kind="dataset",
            title=called["title"],
            authors=(publisher.replace(",", ""),) if isinstance(publisher, str) else (),
            year=str(certificate["created"])[:4],
            note=f"Made with epsilon {guarantee['epsilon']:g} and delta {guarantee['delta']:g}",
        )


def _papers(certificate: Mapping[str, Any]) -> Iterator[Reference]:
    """The paper of the mechanism, and that of the mechanism it is based on."""
    text = words_of(certificate).paper
    if text:
        yield KNOWN.get(text, Reference(key="mechanism", kind="misc", title=text))
    settings = certificate["mechanism"].get("settings")
    base = settings.get("base") if isinstance(settings, Mapping) else None
    if isinstance(base, Mapping) and "name" in base:
        yield from _papers({"mechanism": base})


def _sources(weights: Mapping[str, Any]) -> Iterator[str]:
    """The citations of published figures among the sources of weights; nobody can look up confidential ones."""
    parts = [weights.get("prior"), weights.get("start"), *(weights.get("margins") or ())]
    inner = [part for part in parts if isinstance(part, Mapping)]
    for part in inner:
        yield from _sources(part)
    citation, source = weights.get("citation"), source_of(weights.get("source"))
    if not isinstance(citation, str) or citation == COUNTS or weights.get("confidential") is True:
        return
    if not inner and (source is None or source.published):
        yield citation


def _prior(prior: Mapping[str, Any]) -> Iterator[str]:
    """The citation of the rows, if there are any, and of each published table."""
    tables = [table.get("citation") for table in prior.get("tables") or () if isinstance(table, Mapping)]
    texts = list(dict.fromkeys(text for text in tables if isinstance(text, str)))
    rows = prior.get("citation")
    if isinstance(rows, str) and rows != "; ".join(texts):  # a prior without rows cites its tables alone
        yield rows
    yield from texts
