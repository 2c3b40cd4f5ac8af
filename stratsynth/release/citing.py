"""The works to cite for a release: the software, the papers of its method, and the sources of weights and prior."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from stratsynth.mechanisms.registry import Words, installed_words, words_of
from stratsynth.papers import PAPERS, STRATIFICATION
from stratsynth.references import Reference, numbered
from stratsynth.version import VERSION
from stratsynth.weights.invariant import COUNTS
from stratsynth.weights.sources import source_of

if TYPE_CHECKING:
    from stratsynth.certificate import Certificate, PriorStated

TITLE = "stratsynth: differentially private synthetic tables by strata"
"""Title of the software, as in CITATION.cff."""
KNOWN = {str(paper): paper for paper in PAPERS}
"""Papers by their text, as mechanisms and certificates state them."""


def software(version: str = VERSION) -> Reference:
    """Return the `Reference`, a bibliography entry, of stratsynth in this `version`, a text."""
    return Reference(key="stratsynth", kind="software", title=TITLE, authors=("stratsynth authors",), version=version)


def works() -> list[Reference]:
    """Return a list of `Reference`: stratsynth, in the installed version, and every paper that it follows."""
    return [software(), *PAPERS]


def works_of(certificate: Certificate) -> list[Reference]:
    """Return a list of `Reference`: the works that a release rests on, as its certificate names them.

    They are the release itself where it has a title, the version of the software that made it, the papers of the
    mechanism and, in strata, of stratification, and the published sources of the weights, of the prior
    and of totals that rows were raked to.
    """
    return list(dict.fromkeys(_works(certificate)))


def _works(certificate: Certificate) -> Iterator[Reference]:
    """Yield a `Reference` for each work that a release rests on, by its certificate, in order."""
    yield from _release(certificate)
    yield software(certificate.software.stratsynth)
    yield from _papers(words_of(certificate), certificate.mechanism.settings)
    if certificate.strata.by:
        yield STRATIFICATION
    yield from numbered(list(_sources(certificate.weights.to_dict())), "weights", "Source of the group weights")
    if certificate.prior is not None:
        yield from numbered(list(_prior(certificate.prior)), "prior", "Source of the prior")
    if certificate.benchmark is not None:
        tables = dict.fromkeys(table.citation for table in certificate.benchmark.tables if not table.exact)
        yield from numbered(list(tables), "benchmark", "Published totals that rows were raked to")


def _release(certificate: Certificate) -> Iterator[Reference]:
    called, guarantee = certificate.called, certificate.guarantee
    if called is not None and called.title:
        yield Reference(
            key="release",
            kind="dataset",
            title=called.title,
            authors=(called.publisher.replace(",", ""),) if called.publisher else (),
            year=certificate.created[:4],
            note=f"Made with epsilon {guarantee.epsilon:g} and delta {guarantee.delta:g}",
        )


def _papers(words: Words, settings: Mapping[str, Any]) -> Iterator[Reference]:
    """Yield a `Reference` for the paper of a mechanism that its `words`, a `Words`, name; nothing without one.

    Then that of the mechanism named `base` in its `settings`, a mapping, if any.
    """
    if words.paper:
        yield KNOWN.get(words.paper, Reference(key="mechanism", kind="misc", title=words.paper))
    base = settings.get("base")
    if isinstance(base, Mapping) and "name" in base:
        inner = base.get("settings")
        yield from _papers(installed_words(base["name"]), inner if isinstance(inner, Mapping) else {})


def _sources(weights: Mapping[str, Any]) -> Iterator[str]:
    """Yield citation texts of `weights`, a mapping of a certificate, first those of the mappings nested in it.

    Confidential ones have none.
    """
    parts = [weights.get("prior"), weights.get("start"), *(weights.get("margins") or ())]
    inner = [part for part in parts if isinstance(part, Mapping)]
    for part in inner:
        yield from _sources(part)
    citation, source = weights.get("citation"), source_of(weights.get("source"))
    if not isinstance(citation, str) or citation == COUNTS or weights.get("confidential") is True:
        return
    if not inner and (source is None or source.published):
        yield citation


def _prior(prior: PriorStated) -> Iterator[str]:
    """Yield citation texts of a `PriorStated`, a certificate's entry: of its rows, if any, and published tables."""
    texts = list(dict.fromkeys(table.citation for table in prior.tables))
    if prior.citation != "; ".join(texts):  # a prior without rows cites its tables alone
        yield prior.citation
    yield from texts
