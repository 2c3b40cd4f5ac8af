"""Certificate as a page, for its signers and readers; the report of a release has its chapters too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stratsynth.accounting.budget import Currency
from stratsynth.accounting.charges import Charge
from stratsynth.accounting.kinds import by_kind
from stratsynth.certificate import Certificate, Title
from stratsynth.errors import ReleaseError
from stratsynth.release import limits
from stratsynth.release.page import words
from stratsynth.release.page.agreement import agreement_figure, benchmark_figures
from stratsynth.release.page.words import Fact
from stratsynth.report import text
from stratsynth.report.numbers import several
from stratsynth.report.page import Cell, Column, Figure, Page, Row, Section, Table


def summary(certificate: Mapping[str, Any], *, brief: bool = False, more: Sequence[Fact] = ()) -> str:
    """Return text for a terminal on a certificate, a mapping: its guarantee, prices, groups, limits.

    If `brief`, only the names of limits. `more`, (caption, text) pairs, come last.
    """
    return text.render(certificate_page(certificate, brief=brief, more=more))


def certificate_page(
    record: Mapping[str, Any], title: str = "Certificate", *, brief: bool = False, more: Sequence[Fact] = ()
) -> Page:
    """Return the Page of a certificate: guarantee, prices under other notions of neighbour, groups, limits.

    Args:
        record: The content of certificate.json, a mapping.
        title: The heading of the page.
        brief: True if limits are named, without their sentences.
        more: Further facts, at the end.

    Raises:
        ReleaseError: The certificate is damaged.
    """
    try:
        certificate = Certificate.from_dict(record)
        guarantee, currency = certificate.guarantee, Currency(certificate.guarantee.currency)
        kinds = by_kind(Charge.from_dict(charge, currency) for charge in record["charges"])
    except (LookupError, ValueError, ArithmeticError) as error:
        raise ReleaseError(f"the certificate is damaged: {error}.") from None
    promise = (
        f"epsilon {guarantee.epsilon:g}, delta {guarantee.delta:g}, accounted in {words.accounting(certificate)}, for "
        f"one {words.unit(certificate)}, {certificate.neighbours}"
    )
    promised = [
        *((key.title(), value) for key, value in (certificate.called or Title()).to_dict().items()),
        ("Guarantee", promise),
        *words.for_one_row(certificate),
        *([("Record", certificate.record)] if certificate.record is not None else []),
        *([("Counted", counted)] if (counted := words.weighted(certificate)) else []),
    ]
    unit = certificate.unit
    prices = price_figure(
        words.steps_of(certificate),
        certificate.neighbours,
        unit if isinstance(unit, str) else unit.tables[0] if unit.tables else unit.column,
        kinds,
        adaptive=certificate.mechanism.adaptive,
    )
    listed: list[Fact] = [(about, said) for about, _, said in (s.partition(": ") for s in certificate.not_protected)]
    unprotected = listed or list(limits.limits(certificate).items())
    names = [("Not protected", "; ".join(about[:1].lower() + about[1:] for about in limits.limits(certificate)))]
    agreement = None if brief else agreement_figure(certificate)
    compared = [*([] if agreement is None else [agreement]), *([] if brief else benchmark_figures(certificate))]
    return Page(
        title,
        warnings=words.warnings(certificate),
        sections=[
            Section("promise", "", facts=promised, figures=[prices]),
            Section("groups", "", facts=list(words.group_facts(certificate)), figures=compared),
            Section("made", "", facts=[*words.made_facts(certificate), *more, *(names if brief else [])]),
            *([] if brief else [Section("limits", "What is not protected", facts=unprotected)]),
        ],
    )


IF = {
    "attribute": "its protected columns change",
    "add-remove": "one {} is added or removed",
    "move": "its group changes",
    "replace-within-group": "its other values change",
    "replace": "everything about it changes",
}
"""Steps between neighbours, for specialists; {} is the unit."""


def price_figure(
    prices: Mapping[str, float | None],
    neighbours: str,
    what: str,
    kinds: Mapping[str, Mapping[str, float]],
    *,
    adaptive: bool,
) -> Figure:
    """Return a Figure, a table of `prices`, {step that a unit can take: epsilon, None if unknown}.

    `what` names the unit. `neighbours` is the certificate's notion. `kinds` maps a kind of question to {"replace": how
    many times as much an exchange costs, "charges": their number}; of an `adaptive` mechanism they are worst cases.
    """
    parts = [
        f"{v['replace']:g} times as much in {several(int(v['charges']), *words.CHARGES.get(kind, (kind, kind)))}"
        for kind, v in kinds.items()
    ]
    note = f"A record that is exchanged costs, beside one that is added, {', '.join(parts)}." if parts else ""
    if adaptive:
        note = "Answers decide which questions follow: the prices are those of the worst case."
    rows: list[Row] = [
        [IF.get(step, step).format(what), Cell(words.price(neighbours, epsilon), epsilon)]
        for step, epsilon in prices.items()
    ]
    return Figure("", table=Table(note, [Column("Price if", "text"), Column("epsilon")], rows))
