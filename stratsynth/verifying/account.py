"""Check that the ledger holds the fit: its reservation, its charges, and the total that the certificate states."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stratsynth.accounting.budget import MOST_EPSILON
from stratsynth.accounting.chain import Chain
from stratsynth.accounting.charges import Charge
from stratsynth.accounting.joined import joined
from stratsynth.accounting.lines import allotment_of, head_of, reservations, shared_by
from stratsynth.accounting.standing import readable
from stratsynth.accounting.totals import total
from stratsynth.errors import LedgerError
from stratsynth.release.certificate import sections_digest
from stratsynth.release.consistency import TOLERANCE, Stated
from stratsynth.release.shown import CertificateRecord
from stratsynth.verifying.prior import check_reserved
from stratsynth.verifying.verdict import Notes


def check_account(ledger: Path | None, record: CertificateRecord, stated: Stated, notes: Notes) -> None:
    """Compare a certificate's account with its charges, `stated`, and the file `ledger`, None for no ledger.

    Findings or checks passed are added to `notes`. `record` is the `CertificateRecord`.
    """
    said = record.statement.ledger
    cap, spent, delta = said.cap_epsilon, said.spent_epsilon, said.spent_delta
    if record.statement.private and delta is not None:
        alone = total([stated.allot], readable([stated.allot], delta))
        if spent < alone * (1 - TOLERANCE):
            notes.findings.append(
                f"certificate.json says that all releases came to epsilon {spent:.6g}, less than this one alone, "
                f"{alone:.6g}."
            )
    if cap is not None and spent > cap * (1 + TOLERANCE):
        notes.findings.append("certificate.json says that more was spent than its account's cap.")
    if ledger is not None:
        _ledger(ledger, record, stated, notes)
    elif said.name:
        notes.unchecked.append(
            f"the ledger {said.name}: give it with --ledger, to see that it holds these charges, and that delta "
            "covers the cut-off tails of the noise"
        )
    else:
        notes.unchecked.append("what else was spent on these data: the fit was charged to no ledger file")


def _ledger(ledger: Path, record: CertificateRecord, stated: Stated, notes: Notes) -> None:
    """Compare the `ledger` file with a certificate record and its `stated` charges; add the outcome to `notes`."""
    try:
        lines = Chain(ledger).read()
        if lines:
            head_of(ledger, lines)
    except LedgerError as error:
        notes.findings.append(str(error))
        return
    made = reservations(lines)
    same = [place for place, line in enumerate(made) if _is_it(line, lines, record, stated)]
    if not same:
        notes.findings.append(
            f"{ledger.name} holds no fit of this mechanism with this guarantee and these charges: the release was not "
            "charged to it, or one of the two was changed."
        )
        return
    notes.checked.append(
        f"{ledger.name} is unbroken, and holds the reservation and all {record.statement.answers:,} charges of this "
        "fit."
    )
    said = record.statement.ledger
    if said.new_account != lines[0].get("reason"):
        notes.findings.append(
            f"certificate.json and {ledger.name} give different reasons for an account beside another one."
        )
    if said.corrections != shared_by(lines).corrections[: len(said.corrections)]:
        notes.findings.append(f"certificate.json and {ledger.name} give different reasons for corrections of the data.")
    check_reserved(_own(same, made, lines, said.releases), record, notes)
    _sections(_own(same, made, lines, said.releases), record, notes)
    _tails([_distance(made[place]["run"], lines) for place in same], stated, notes)
    if said.releases <= min(same):
        notes.findings.append("certificate.json counts fewer releases than the ledger holds up to this one.")
    ends = {line["run"]: place for place, line in enumerate(lines) if line["kind"] in ("reserve", "rest")}
    own = max((place for place in same if place < said.releases), default=same[-1])
    until = ends[made[own]["run"]] + 1  # later rests were not reserved yet
    reserved = [allotment_of(line) for line in reservations(lines, until)[: said.releases]]
    if said.spent_delta is not None and reserved and len(reserved) == said.releases:
        found = total(reserved, readable(reserved, said.spent_delta))
        if said.spent_epsilon < found * (1 - TOLERANCE):
            notes.findings.append(
                f"certificate.json says that epsilon {said.spent_epsilon:.6g} was spent in all; by the ledger it "
                f"was {found:.6g}."
            )


def _sections(lines: Sequence[Mapping[str, Any]], record: CertificateRecord, notes: Notes) -> None:
    """Add a finding to `notes` if a certificate record's fixed sections are not those of its reservations.

    Else a check. For an older ledger, a statement not checked. `lines` are the reservations, mappings of a ledger's
    lines.
    """
    reserved = {line.get("sections") for line in lines}
    if None in reserved:
        notes.unchecked.append(
            "that unit, groups, weights, schema and mechanism are described as they were when the fit reserved: an "
            "older version wrote the ledger's line"
        )
    elif sections_digest(record) in reserved:
        notes.checked.append(
            "Unit, groups, weights, schema, mechanism and disclosures are described as they were when the fit reserved."
        )
    else:
        notes.findings.append(
            "certificate.json describes unit, groups, weights, schema, mechanism or disclosures otherwise than "
            "they were when the ledger's reservation was made: it was edited."
        )


def _distance(run: str, lines: Sequence[Mapping[str, Any]]) -> float:
    """Return the sum of total variations of the drawn noise over the charges of the fit `run` in a ledger's `lines`.

    `run` is the fit's name; `lines` are mappings, one a line of the ledger.
    """
    return math.fsum(line["distance"] for line in lines if line["kind"] == "charge" and line["run"] == run)


def _tails(distances: Sequence[float], stated: Stated, notes: Notes) -> None:
    """Add a finding to `notes` if the part of the stated delta for tails is too small, else a check passed.

    `distances` are numbers, the total variation of the noise of each run that may be the release's; the least counts. A
    mechanism within total variation t of an (epsilon, d)-DP one is (epsilon, d + (1 + exp(epsilon)) t)-DP.
    """
    kept = stated.budget.truncation_delta
    found = (1 + math.exp(min(stated.budget.epsilon, MOST_EPSILON))) * min(distances)
    if found > kept * (1 + TOLERANCE):
        notes.findings.append(
            f"The cut-off tails of the noise take {found:.3g} of delta; {kept:.3g} was kept for them."
        )
    elif found:
        notes.checked.append(f"The cut-off tails of the noise take {found:.3g} of delta, of {kept:.3g} kept for them.")


def _own(
    same: Sequence[int], made: Sequence[Mapping[str, Any]], lines: Sequence[Mapping[str, Any]], releases: int
) -> list[Mapping[str, Any]]:
    """Return a list of those reservations, mappings of a ledger's line, that may be the release's own: some of `made`.

    `same` has places in `made`, the candidates; `lines` is the whole ledger. A certificate states how many reservations
    there were when its fit made one, `releases`: it is the last of these, or an earlier one, if the fit was
    interrupted.
    """
    if not 0 < releases <= len(made):
        return [made[place] for place in same]
    last = made[releases - 1]
    since = lines[
        next(i for i, each in enumerate(lines) if (each["kind"], each.get("run")) == ("reserve", last["run"])) + 1 :
    ]
    went_on = {line[key] for line in since if line["kind"] != "reserve" for key in ("run", "identity") if key in line}
    return [
        made[place]
        for place in same
        if made[place] is last or (place < releases and went_on & {made[place]["run"], made[place]["identity"]})
    ]


def _is_it(
    line: Mapping[str, Any], lines: Sequence[Mapping[str, Any]], record: CertificateRecord, stated: Stated
) -> bool:
    """True if the reservation `line` has the stated budget and mechanism, and its run's charges are the certificate's.

    `line` is a mapping of the ledger, whose `lines` are all such; `record` is the `CertificateRecord`.
    """
    allot = allotment_of(line)
    promised = (
        allot.currency,
        allot.promise.epsilon,
        allot.promise.neighbours,
        allot.promise.unit,
        allot.promise.public,
    )
    wanted = (
        stated.allot.currency,
        stated.budget.epsilon,
        stated.budget.neighbours,
        stated.budget.unit,
        stated.budget.public,
    )
    if promised != wanted or (stated.reserved and allot.amount != stated.allot.amount):
        return False
    if record.statement.mechanism.name not in re.findall(r"[\w.-]+", line["mechanism"]):
        return False
    charged = (
        charge
        for each in lines
        if each["kind"] == "charge" and each["run"] == line["run"]
        for charge in each["charges"]
    )
    if any("times" in charge for charge in record["charges"]):
        found = joined(Charge.from_dict(charge, allot.currency) for charge in charged)
        return bool([charge.to_dict() for charge in found] == record["charges"])
    return bool(list(charged) == record["charges"])
