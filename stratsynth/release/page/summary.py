"""A certificate in words, for whoever signs it or reads it."""

from __future__ import annotations

import contextlib
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stratsynth.accounting.budget import Currency
from stratsynth.accounting.charges import Charge
from stratsynth.accounting.kinds import by_kind
from stratsynth.errors import ReleaseError
from stratsynth.mechanisms.nesting import described
from stratsynth.release import limits
from stratsynth.release.notices import measured_line
from stratsynth.release.page import words
from stratsynth.release.shown import CertificateRecord
from stratsynth.report.numbers import several


def summary(certificate: Mapping[str, Any], *, brief: bool = False) -> str:
    """The guarantee, its prices under other notions of neighbour, and the groups.

    Args:
        certificate: What certificate.json says.
        brief: Whether what is not protected is named, in a few lines; `not_protected` says it in full.
    """
    with _damage():
        return _summary(CertificateRecord(certificate), brief)


def not_protected(certificate: Mapping[str, Any]) -> str:
    """What the release does not protect, in full."""
    with _damage():
        return limits.in_full(CertificateRecord(certificate).statement)


@contextlib.contextmanager
def _damage() -> Iterator[None]:
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ReleaseError(f"the certificate is damaged ({type(error).__name__}).") from None


def _summary(certificate: CertificateRecord, brief: bool) -> str:
    guarantee, ledger = certificate["guarantee"], certificate["ledger"]
    prices = {step: words.price(certificate["neighbours"], price) for step, price in certificate["prices"].items()}
    record = certificate.get("record")
    lines = [
        "" if certificate["private"] else f"*** {certificate.get('warning', 'NOT PRIVATE')} ***",
        *(_noticed(notice["text"]) for notice in certificate.get("notices", ())),
        *(_folded(key.title(), text) for key, text in certificate.get("called", {}).items()),
        _folded("Mechanism", words.mechanism(certificate)),
        (
            f"Guarantee     epsilon {guarantee['epsilon']:g}, delta {guarantee['delta']:g}, accounted in "
            f"{guarantee['currency']}, for one {_unit(certificate)} ({certificate['neighbours']})"
        ),
        f"Record        {record}" if record is not None else "",
        _folded("Counted", words.weighted(certificate)) if words.weighted(certificate) else "",
        *price_lines(
            prices, _what(certificate), _kinds(certificate), adaptive=certificate["mechanism"].get("adaptive")
        ),
        f"Strata        {_strata(certificate['strata'])}",
        _folded("Weights", _weights(certificate["weights"])),
        f"Measured      {measured}" if (measured := measured_line(certificate.statement)) else "",
        *(_folded("Code list", described(each)) for each in certificate.get("code_lists", ())),
        f"Account       {_account(ledger)}",
        limits.in_short(certificate.statement) if brief else "",
        f"Schema        {_schema(certificate['schema'])}",
        f"Charges       {_charges(certificate['charges'])}",
    ]
    lines.extend(_groups(certificate["strata"], certificate.get("small_groups", ())))
    if certificate["unverified"]:
        lines.append(f"Unverified    {', '.join(certificate['unverified'])}")
    return "\n".join(line for line in lines if line)


def _noticed(text: str) -> str:
    """Lines that stand out."""
    return textwrap.fill(f"*** {text} ***", 110, subsequent_indent=" " * 4, break_long_words=False)


def _folded(head: str, line: str) -> str:
    return textwrap.fill(f"{head:13} {line}", 110, subsequent_indent=" " * 14, break_long_words=False)


def price_lines(
    prices: Mapping[str, str], what: str, kinds: Mapping[str, Mapping[str, float]], *, adaptive: bool | None = False
) -> list[str]:
    """What each step that a record, or unit, can take would cost, and what makes the difference."""
    words = {
        "attribute": "its protected columns change",
        "add-remove": f"one {what} is added or removed",
        "move": "its group changes",
        "replace-within-group": "its other values change",
        "replace": "everything about it changes",
    }
    head = ["Price if", *[""] * len(words)]
    lines = [f"{first:13} {words[step]:32} {prices[step]:>8}" for first, step in zip(head, prices, strict=False)]
    lines[0] += "  (epsilon)"
    if adaptive:
        lines.append(f"{'':13} (answers decide what is asked: the dearest course it could have taken)")
    elif kinds:
        parts = [f"times {v['replace']:g} in {v['charges']:g} {kind}" for kind, v in kinds.items()]
        lines.append(f"{'':13} (a change is seen at the price {', '.join(parts)})")
    return lines


def _what(certificate: Mapping[str, Any]) -> str:
    unit = certificate["unit"]
    return str(unit if isinstance(unit, str) else unit["column"])


def _kinds(certificate: Mapping[str, Any]) -> Mapping[str, Mapping[str, float]]:
    currency = Currency(certificate["guarantee"]["currency"])
    return by_kind(Charge.from_dict(charge, currency) for charge in certificate["charges"])


def _unit(certificate: Mapping[str, Any]) -> str:
    unit = certificate["unit"]
    return unit if isinstance(unit, str) else f"{unit['column']} of at most {unit['max_rows']} rows"


def _strata(strata: Mapping[str, Any]) -> str:
    if not strata["by"]:
        return "none: everybody together"
    cells = f"{strata['cells']} by {' x '.join(strata['by'])}"
    return f"{cells}, merged into {strata['groups']}" if strata["merged"] else cells


def _groups(strata: Mapping[str, Any], groups: Sequence[Mapping[str, Any]] = ()) -> Iterator[str]:
    """Who was merged and why, which groups are small, and whose epsilon is not the whole."""
    if "small" in strata and strata["small"]["policy"] != "keep":
        small = strata["small"]
        rule = f"{small['policy']} below public size x epsilon {small['threshold']:g}"
        yield f"Small         {rule}; small now: {', '.join(small['below']) or 'none'}"
    for merge in strata["merged"]:
        of = ", ".join(f"{c} {' + '.join(levels)}" for c, levels in merge["levels"].items() if len(levels) > 1)
        yield f"Merged        {merge['stratum']}: {of} ({merge['why']})"
    if few := sum(bool(group["few"]) for group in groups):
        yield f"Very small    {several(few, 'group')}, listed in certificate.json as small_groups"
    if "epsilon" in strata:
        own = ", ".join(f"{label} {epsilon:g}" for label, epsilon in strata["epsilon"].items())
        yield f"Epsilon of    {own}; the guarantee states the largest"


def _weights(weights: Mapping[str, Any]) -> str:
    if weights["citation"] is None:
        return "none needed"
    scaled = f", scaled from a sum of {weights['renormalised_from']:.6g}" if "renormalised_from" in weights else ""
    worst = f" (worst source: {weights['worst']})" if "worst" in weights else ""
    return f"{weights['source']}{worst}: {weights['citation']}{scaled}"


def _account(ledger: Mapping[str, Any]) -> str:
    cap = f" of at most {ledger['cap_epsilon']:g}" if ledger["cap_epsilon"] is not None else ""
    name = ledger["name"] or "this process only, no ledger file"
    spent = f"{name}: epsilon {ledger['spent_epsilon']:.6g}{cap} over {ledger['releases']} release(s)"
    return "; ".join([spent, *_accounts(ledger)])


def _accounts(ledger: Mapping[str, Any]) -> Iterator[str]:
    """The account's name, the versions of the data that share it, and the data's other accounts."""
    if "account" in ledger:
        yield f"account {ledger['account']!r}, shared by {ledger['versions']} version(s) of the data"
    if len(ledger.get("accounts", ())) > 1:
        yield f"these data have {len(ledger['accounts'])} accounts: {', '.join(ledger['accounts'])}"
    if "new_account" in ledger:
        yield f"begun beside another account because: {ledger['new_account']}"


def _schema(schema: Mapping[str, Any]) -> str:
    reviewed = f", reviewed by {schema['reviewed_by']}" if schema["reviewed_by"] else ""
    return f"{schema['origin']}{reviewed}, sha256 {schema['sha256'][:12]}"


def _charges(charges: list[Mapping[str, Any]]) -> str:
    kinds = Counter(charge["kind"] for charge in charges)
    return ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items())) or "none"
