"""A certificate as a page, for whoever signs it or reads it; its chapters are in the report of a release, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from stratsynth.accounting.budget import Currency
from stratsynth.accounting.charges import Charge
from stratsynth.accounting.kinds import by_kind
from stratsynth.errors import ReleaseError
from stratsynth.mechanisms.nesting import described
from stratsynth.release import limits
from stratsynth.release.notices import measured_line
from stratsynth.release.page import words
from stratsynth.report import text
from stratsynth.report.numbers import listed, several
from stratsynth.report.page import Page, Section

Fact = tuple[str, str]
"""A name and what is so."""


def summary(certificate: Mapping[str, Any], *, brief: bool = False, more: Sequence[Fact] = ()) -> str:
    """The page of a certificate as text.

    Raises:
        ReleaseError: The certificate is damaged.
    """
    try:
        return text.render(certificate_page(certificate, brief=brief, more=more))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ReleaseError(f"the certificate is damaged ({type(error).__name__}).") from None


def certificate_page(
    certificate: Mapping[str, Any], title: str = "Certificate", *, brief: bool = False, more: Sequence[Fact] = ()
) -> Page:
    """The guarantee, its prices under other notions of neighbour, the groups, and what is not protected.

    Args:
        certificate: What certificate.json says.
        title: Of the page.
        brief: Whether what is not protected is named alone.
        more: Further facts, at the end.
    """
    guarantee, currency = certificate["guarantee"], Currency(certificate["guarantee"]["currency"])
    kinds = by_kind(Charge.from_dict(charge, currency) for charge in certificate["charges"])
    promise = (
        f"epsilon {guarantee['epsilon']:g}, delta {guarantee['delta']:g}, accounted in {guarantee['currency']}, for "
        f"one {words.unit(certificate)}, {certificate['neighbours']}"
    )
    promised = [
        *((key.title(), str(value)) for key, value in certificate.get("called", {}).items()), ("Guarantee", promise),
        *([("Record", str(certificate["record"]))] if "record" in certificate else []),
        *([("Counted", counted)] if (counted := words.weighted(certificate)) else []),
    ]  # fmt: skip
    unit = certificate["unit"]
    prices = words.price_figure(
        certificate["prices"], certificate["neighbours"], unit if isinstance(unit, str) else unit["column"], kinds,
        adaptive=certificate["mechanism"].get("adaptive"),
    )  # fmt: skip
    told: list[Fact] = [tuple(line.partition(": ")[::2]) for line in certificate.get(limits.KEY) or ()]
    unprotected = told or list(limits.limits(certificate).items())
    names = [("Not protected", "; ".join(about[:1].lower() + about[1:] for about in limits.limits(certificate)))]
    return Page(
        title,
        warnings=warnings(certificate),
        sections=[
            Section("promise", "", facts=promised, figures=[prices]),
            Section("groups", "", facts=list(group_facts(certificate))),
            Section("made", "", facts=[*made_facts(certificate), *more, *(names if brief else [])]),
            *([] if brief else [Section("limits", "What is not protected", facts=unprotected)]),
        ],
    )


def warnings(certificate: Mapping[str, Any]) -> list[str]:
    """What is wrong with the release itself, or has to be believed, the gravest first."""
    found = [str(notice["text"]) for notice in certificate.get("notices", ())]
    if not certificate["private"]:
        found.insert(0, str(certificate.get("warning", "NOT PRIVATE")))
    if certificate["unverified"]:
        found.append(f"UNVERIFIED: the guarantee rests on {listed(certificate['unverified'])}.")
    return [text[:1].upper() + text[1:] for text in found]


def group_facts(certificate: Mapping[str, Any], named: Callable[[str], str] = str) -> Iterator[Fact]:
    """Groups and their shares, merges, small groups, and whose epsilon is not the whole; `named` names a group."""
    found = certificate["strata"]
    yield "Groups", words.strata(certificate)
    yield "Their shares", words.weights(certificate)
    if measured := measured_line(certificate):
        yield "Declared and measured", f"{measured[:1].upper()}{measured[1:]}, in 95 of 100 cases."
    if found["merged"]:
        yield "Taken together", words.merges(certificate)
    if "small" in found and found["small"]["policy"] != "keep":
        below = found["small"]["below"]
        who = "; ".join(f"{named(name)}: {why}" for name, why in below.items()) or "none"
        rule = f"{found['small']['policy']}, below public size x epsilon {found['small']['threshold']:g}"
        yield "Small groups", f"Treated by the rule “{rule}”: {who}."
    if few := sum(bool(group["few"]) for group in certificate.get("small_groups", ())):
        yield "Very small", f"{several(few, 'group')}, listed in certificate.json as small_groups."
    if "epsilon" in found:
        own = ", ".join(f"{named(name)} {epsilon:g}" for name, epsilon in found["epsilon"].items())
        yield "Epsilon of each", f"{own}; the promise states the largest."


def made_facts(certificate: Mapping[str, Any]) -> Iterator[Fact]:
    """Mechanism, charges, account, schema and code lists."""
    yield "Mechanism", words.mechanism(certificate)
    kinds = Counter[str]()
    for charge in certificate["charges"]:
        kinds[charge["kind"]] += charge.get("times", 1)
    charges = ", ".join(f"{number:,} {kind}" for kind, number in sorted(kinds.items())) or "none"
    yield "Charges", f"{charges}; each is in certificate.json, from which the promise can be recomputed."
    yield "Account", words.account(certificate)
    schema = certificate["schema"]
    reviewed = f", reviewed by {schema['reviewed_by']}" if schema["reviewed_by"] else ""
    yield "Schema", f"It says that it comes from: {schema['origin']}{reviewed}. sha256 {schema['sha256']}"
    yield from (("Code list", f"{described(each)}.") for each in certificate.get("code_lists", ()))
