"""Certificate in words for readers who do not know epsilon, without judgement of how large it may be."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stratsynth.certificate import BenchmarkStated, Certificate, FirstQuestionStated, Title
from stratsynth.errors import ReleaseError
from stratsynth.mechanisms.banding import in_words
from stratsynth.mechanisms.nesting import described
from stratsynth.mechanisms.registry import words_of
from stratsynth.models.base import Returns
from stratsynth.models.intervals import NORMAL_95
from stratsynth.papers import STRATIFICATION
from stratsynth.release.coverage import coverage_line
from stratsynth.release.declared import DECLARED_SIZE, MEASURED, MeasuredCount
from stratsynth.release.notices import inside_line, measured_line
from stratsynth.release.page.sums import sums_line, tables_line
from stratsynth.report.numbers import listed, setting_text, several, short
from stratsynth.weights.sources import source_of

KINDS = {
    "counts": ("noisy table", "noisy tables"),
    "choose": ("private choice", "private choices"),
    "total": ("noisy sum", "noisy sums"),
    "minimiser": ("noisy minimiser of a sum of losses", "noisy minimisers of sums of losses"),
    "raw": ("claim of third-party code", "claims of third-party code"),
    "usable": ("first question", "first questions"),
}
"""Name of one paid answer, and of several, by kind of question."""
CHARGES = {**KINDS, "counts": ("count of tables", "counts of tables")}
"""One charge of each kind, and several: a count of tables may be of many tables."""
Fact = tuple[str, str]
"""Name and statement."""


@dataclass(frozen=True)
class Called:
    """Words for one kind of release."""

    title: str
    """Title of the report."""
    about: str
    """Sentences on the release, for a reader who never saw one."""
    made: str
    """Sentence on how the release came from the data."""
    cited: str
    """Noun for the release in its citation."""
    files: str
    """Files beside the report that hold its statements."""


CALLED = {
    Returns.ROWS: Called(
        "A private synthetic table",
        "The table that this report belongs to is synthetic. Its statistics are meant to be near those of a table of "
        "real people, and it is meant to reveal next to nothing about any single one of them.",
        "Its rows were drawn from a model, and the model was fitted to counts with random noise added.",
        "differentially private synthetic table",
        "certificate.json and measurements.parquet",
    ),
    Returns.ESTIMATES: Called(
        "Private estimates",
        "The numbers that this report belongs to are estimates for all people and for groups. The estimates are "
        "meant to reveal next to nothing about any single person.",
        "The estimates were computed from sums with random noise added, and each has an interval for its error.",
        "differentially private estimates",
        "certificate.json, measurements.parquet and the model",
    ),
    Returns.TABLES: Called(
        "Two private synthetic tables",
        "The two tables that this report belongs to are synthetic, and linked: rows of the one own rows of the other. "
        "Their statistics are meant to be near those of tables of real people, and they are meant to reveal next to "
        "nothing about any single owner with all its rows.",
        "Their rows were drawn from models, and the models were fitted to counts with random noise added.",
        "pair of linked differentially private synthetic tables",
        "certificate.json, measurements.parquet and the two tables",
    ),
    Returns.PREDICTIONS: Called(
        "A private predictor",
        "The model that this report belongs to predicts a column of rows that it is given. The model is meant to "
        "reveal next to nothing about any single person in the data that it was fitted to.",
        "The model was computed from answers with random noise added.",
        "differentially private predictor",
        "certificate.json, measurements.parquet and the model",
    ),
}
STRATA = str(STRATIFICATION)
"""Citation of the paper on stratification, for releases in strata."""


def unit(certificate: Certificate) -> str:
    """Return a certificate's unit of privacy as words: "record", or its column with the largest number of rows."""
    found = certificate.unit
    if not isinstance(found, str) and found.tables:
        parent, child = found.tables
        return f"{parent} with all its {child} rows"
    return "record" if isinstance(found, str) else f"{found.column} (at most {found.max_rows} rows)"


def weighted(certificate: Certificate) -> str:
    """Return words, without a full stop, on a certificate's counting by weight; "" where every row counts 1."""
    weight, unit = certificate.row_weight, certificate.unit
    if weight is None:
        return ""
    if not isinstance(unit, str) and unit.tables:
        parent, child = unit.tables
        return (
            f"a {parent} weighs at most {weight.max} in every table, whose {child} rows share that weight: however "
            f"many there are, together they cost what one row does. Counts are in units of 1/{weight.max} {parent}"
        )
    return (
        f"every record as its {weight.column}, a whole number from 0 to {weight.max:,}: counts, sums and the "
        "declared size are weighted totals, of the people whom the records stand for, and noise covers "
        f"{weight.max:,}. A larger weight counts as {weight.max:,}, and the people beyond that are missing"
        f"{_gap(certificate)}"
    )


def _gap(certificate: Certificate) -> str:
    """Return words on how many of the people that a certificate declares were not counted, with a 95 % interval.

    "" if none are missing beyond noise.
    """
    found = next((c for c in certificate.declared_and_measured if c.what == DECLARED_SIZE), None)
    if found is None or found.declared is None:
        return ""
    gap, noise = found.declared - found.measured, NORMAL_95 * found.noise_sd
    if gap <= noise:
        return ""
    missing = f"{gap:,.0f} give or take {noise:,.0f} are not counted, in 95 of 100 cases"
    return f": of {found.declared:,.0f} people declared, {missing}, for this or other reasons"


def promise(certificate: Certificate) -> list[str]:
    """Return a list of sentences, a certificate's guarantee in plain words, for one unit of privacy."""
    guarantee, one = certificate.guarantee, unit(certificate)
    epsilon, delta = guarantee.epsilon, guarantee.delta
    factor = short(math.exp(epsilon), 3) if epsilon < 14 else f"10^{epsilon / math.log(10):.0f}"
    chance = f"1 in {1 / delta:,.0f}" if 1e-15 < delta < 1 else f"{delta:g}"
    least = f", but for a chance of at most {chance}" if delta else ""
    exchanged = certificate.neighbours == "replace"
    named = ", ".join(certificate.public_columns)
    physical = (
        [f"A record is {certificate.record}: a person on several lines is protected line by line only."]
        if certificate.record is not None
        else []
    )
    compared = f"with any other {one} in its place" if exchanged else f"without that {one}"
    if named:
        compared = f"if that {one} had any other values in the protected columns, which are all but {named}"
    return [
        (
            f"Epsilon is {epsilon:g} and delta is {delta:g}. These numbers mean: whatever anybody concludes from this "
            f"release, its chance of coming out that way differs by a factor of at most {factor} from what it would be "
            f"{compared}{least}. The bound holds for every {one}, also in the smallest group, and whatever else the "
            "reader knows or will ever learn."
        ),
        *_as_tests(certificate),
        *physical,
        *(text for _, text in for_one_row(certificate)),
        (
            "A smaller epsilon is a stronger promise, and takes more noise. The choice of epsilon was made by those "
            "who released these data; this report does not judge it."
        ),
    ]


def accounting(certificate: Certificate) -> str:
    """Return words on the accounting of a `Certificate`: its currency, and theorem and mu of the exact one."""
    guarantee = certificate.guarantee
    exact = "" if guarantee.mu is None else f" (Gaussian DP by its exact curve, mu {guarantee.mu:.4g})"
    return f"{guarantee.currency}{exact}"


def _as_tests(certificate: Certificate) -> list[str]:
    """Return a list of one sentence, errors of tests by the exact curve, of a `Certificate`; [] in other currencies."""
    errors = {f"{100 * e.alpha:g}": f"{math.floor(1e4 * e.beta) / 100:g}" for e in certificate.guarantee.tradeoff}
    if "5" not in errors:
        return []
    one, others = errors.pop("5"), "; ".join(f"at most {alpha}: {beta}" for alpha, beta in errors.items())
    return [
        (
            "Put as a test: of all who decide by this release, and by whatever else they know, which of two such "
            "tables was used, nobody who is wrong in at most 5 of 100 cases of the one is wrong in fewer than "
            f"{one} of 100 cases of the other ({others})."
        )
    ]


def for_one_row(certificate: Certificate) -> list[Fact]:
    """Return a list of one (caption, sentence) on a `Certificate`'s worth for one child row of linked tables; else [].

    A child row more, fewer or other changes all that is counted of its parent, which is an exchange of that parent.
    """
    unit, price_ = certificate.unit, certificate.prices.get("replace")
    if isinstance(unit, str) or not unit.tables or price_ is None:
        return []
    parent, child = unit.tables
    return [
        (
            f"For one {child}",
            (
                f"Of a single {child} the {parent} of which stays, whether it is there, and what is said of it, is "
                f"hidden with an epsilon of {price_:.4g}: that is what it costs to exchange the {parent} for another."
            ),
        )
    ]


def protected(certificate: Certificate) -> list[str]:
    """Return a list of a sentence on what a `Certificate` of linked tables protects, and the worth for one row.

    It opens the page; empty for one table.
    """
    unit, stated = certificate.unit, certificate.guarantee
    if isinstance(unit, str) or not unit.tables:
        return []
    parent, child = unit.tables
    other = certificate.prices.get("replace")
    one = f"; for a single {child} of a {parent} that stays, that is worth an epsilon of {other:.4g}" if other else ""
    return [
        (
            f"Protected is one {parent} with all its {child} rows: whether it is in the data is hidden with epsilon "
            f"{stated.epsilon:g} and delta {stated.delta:g}{one}."
        )
    ]


def given_up(drawn: Mapping[str, Any], parent: str, child: str) -> str:
    """Return a sentence on child rows that were drawn with less than is known, by `drawn`, a certificate's mapping.

    `drawn` has `rows`, a number, and `backed_off`, {column: number}; `parent` and `child` name the two tables.
    """
    by = ", ".join(f"{column} in {number:,}" for column, number in drawn["backed_off"].items())
    return (
        f"{sum(drawn['backed_off'].values()):,} of {drawn['rows']:,} {child} rows were drawn without some of what is "
        f"known of their {parent}{f' ({by})' if by else ''}, as the models leave such a combination no chance."
    )


STEPS = {
    "attribute": "its values in the protected columns are these or any others",
    "add-remove": "it is there or not",
    "move": "it is in one group or another",
    "replace-within-group": "its values are these or any others, its group aside",
    "replace": "its values are these or any others, its group among them",
}


def steps_of(certificate: Certificate) -> dict[str, float | None]:
    """Return a dict, a certificate's prices, {step: epsilon, None if unknown}.

    Of two linked tables without strata, none that tells groups from values: whatever changes in a parent's rows may
    change all that is counted of it.
    """
    unit, prices = certificate.unit, certificate.prices
    whole = not isinstance(unit, str) and bool(unit.tables) and not certificate.strata.by
    return without_groups(prices) if whole else dict(prices)


def without_groups(prices: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return a dict, the mapping `prices`, {step: epsilon or None}, without steps "move" and "replace-within-group"."""
    return {step: epsilon for step, epsilon in prices.items() if step not in {"move", "replace-within-group"}}


def price(neighbours: str, epsilon: float | None) -> str:
    """Return an epsilon as text; for None "unknown", or "not protected" under the notion "attribute".

    `neighbours` is a certificate's notion of neighbour.
    """
    if epsilon is None:
        return "not protected" if neighbours == "attribute" else "unknown"
    return f"{epsilon:.4g}"


def strata(certificate: Certificate) -> str:
    """Return sentences, as one text, on a certificate's groups, their merges and how they share the budget."""
    found = certificate.strata
    if not found.by:
        return (
            "None: all records were measured together. Figures of small groups come from tables and a model of "
            "everybody."
        )
    if found.families:
        families = listed([" x ".join(family) for family in found.families])
        return (
            f"{several(groups(certificate), 'group')} that overlap: by {families}. A person is in one group of each "
            "of these families, and the costs of the families add up."
        )
    who = "person" if isinstance(certificate.unit, str) or not certificate.unit.tables else certificate.unit.tables[0]
    depths = {len(charge.path) for charge in certificate.charges}
    each = "its own epsilon" if found.epsilon else "the whole of it"
    spent = (
        "A part of epsilon was spent on everybody together, and the rest in each group by itself. "
        f"As a {who} is in one group only, the costs of the groups do not add up."
        if 0 in depths and len(depths) > 1
        else f"Each was measured by itself, with noise of its own. As a {who} is in one group only, epsilon need not "
        f"be shared: each group gets {each}."
    )
    merged = f", merged from {found.cells:,}" if found.merged else ""
    return f"{several(groups(certificate), 'group')} by {' and '.join(found.by)}{merged}. {spent}"


def groups(certificate: Certificate) -> int:
    """Return the number of a certificate's groups (strata) after merges; 1 without strata."""
    return certificate.strata.groups or certificate.strata.cells


def joined(levels: Mapping[str, Sequence[str]]) -> str:
    """Return words for `levels`, {column: list of levels}, "SEX 1 + 2, RACE 3 + 4", of columns with several.

    "" if none.
    """
    return ", ".join(f"{c} {' + '.join(names)}" for c, names in levels.items() if len(names) > 1)


def merges(certificate: Certificate) -> str:
    """Return one text: each merged stratum of a certificate with its levels and reason; "" without merges."""
    merged = certificate.strata.merged
    return "; ".join(f"{merge.stratum} is {joined(merge.levels)} ({merge.why})" for merge in merged)


def rules_line(moved: Mapping[str, Any]) -> str:
    """Return words on the rows that rules changed, by `moved`, the mapping in rules.json; ReleaseError if damaged."""
    try:
        rows, redrawn, mended = (int(moved[key]) for key in ("rows", "redrawn", "mended"))
        worst = max(moved["strata"].items(), key=lambda item: item[1]["redrawn"] / item[1]["rows"], default=None)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ReleaseError(f"the count of what rules moved is damaged ({type(error).__name__}).") from None
    if not redrawn:
        return f"none of {rows:,} rows drawn by the model broke a rule"
    most = f"; most in {worst[0]}, {worst[1]['redrawn'] / worst[1]['rows']:.2%}" if worst is not None else ""
    return f"{redrawn / rows:.2%} of {rows:,} rows broke a rule and were drawn again, {mended:,} of them mended{most}"


def mechanism(certificate: Certificate) -> str:
    """Return a certificate's mechanism as words: label, name and settings, without those on strata and weights."""
    name, settings = certificate.mechanism.name, certificate.mechanism.settings
    elsewhere = {"by", "groups", "weights", "budgets"} if "by" in settings else set()
    found = setting_text(
        {"name": name, "settings": {key: item for key, item in settings.items() if key not in elsewhere}}
    )
    label = words_of(certificate).label
    return f"{label}: {found}" if label else found


def weights(certificate: Certificate) -> str:
    """Return words on the source of the groups' shares in a certificate; "Not needed." without a source."""
    found = certificate.weights
    if found.citation is None:
        return "Not needed."
    worst = f"; the least public of its sources is {found.worst}" if found.worst is not None else ""
    total = found.renormalised_from
    # a sum off by rounding alone is 1
    scaled = "" if total is None or f"{total:.6g}" == "1" else f"; scaled from a sum of {total:.6g}"
    source = source_of(found.source)
    said = f"{(found.source if source is None else source.words).capitalize()}: {found.citation}{worst}{scaled}"
    if found.design:
        said += f"; the error of their survey's design is known, by {found.design}"
    if found.by:  # groups that are no strata
        said += f"; nothing was spent on the shares of {' x '.join(found.by)}, and rows are drawn by them"
    return said


def account(certificate: Certificate) -> str:
    """Return a sentence on the epsilon spent on a certificate's data in all, its accounts and versions of the data."""
    ledger = certificate.ledger
    if ledger.note and ledger.spent_delta is None:  # public data, of which nothing is charged
        return f"{ledger.note[:1].upper()}{ledger.note[1:].rstrip('.')}."
    cap = f" of at most {ledger.cap_epsilon:g}" if ledger.cap_epsilon is not None else ""
    delta = f" at delta {ledger.spent_delta:g}" if ledger.spent_delta is not None else ""
    name, releases = ledger.name or "this process", several(ledger.releases, "release")
    parts = [f"{name}: epsilon {ledger.spent_epsilon:.6g}{cap}{delta} over {releases}, this one included"]
    if not ledger.name:
        parts.append("the account was not kept in a file, so that other runs are not counted")
    if ledger.account is not None:
        parts.append(f"account {ledger.account!r}, shared by {several(ledger.versions, 'version')} of the data")
    if len(ledger.accounts) > 1:
        parts.append(f"these data have {len(ledger.accounts)} accounts: {', '.join(ledger.accounts)}")
    if ledger.new_account is not None:
        parts.append(f"begun beside another account because: {ledger.new_account}")
    parts += [f"the data were corrected: {reason}" for reason in ledger.corrections]
    return f"{'; '.join(parts)}."


def citation(certificate: Certificate, returns: Returns = Returns.ROWS) -> list[str]:
    """Return a list of texts to cite for a certificate: the release, a thing of kind `returns`, software, papers.

    Papers are those of the mechanism and of strata.
    """
    guarantee, by, called = certificate.guarantee, certificate.strata.by, certificate.called or Title()
    strata_ = f", stratified by {' and '.join(by)}" if by else ""
    private = "" if certificate.private else " NOT A PRIVATE RELEASE."
    found = [
        (
            f"{called.publisher or '[Publisher]'} ({certificate.created[:4]}). "
            f"{called.title or '[Title of the data]'}, {CALLED[returns].cited}. "
            f"Epsilon {guarantee.epsilon:g}, delta {guarantee.delta:g} ({certificate.neighbours}, per "
            f"{unit(certificate)}); mechanism {certificate.mechanism.name}{strata_}; schema sha256 "
            f"{certificate.schema.sha256[:12]}; released {certificate.created}.{private}"
        ),
        (
            f"stratsynth authors. stratsynth: differentially private synthetic tables by strata, version "
            f"{certificate.software.stratsynth}."
        ),
    ]
    paper = words_of(certificate).paper
    found += [paper] if paper else []
    return found + ([STRATA] if by and paper != STRATA else [])


def warnings(certificate: Certificate) -> list[str]:
    """Return a list of sentences on a certificate's faults and unverified claims, the gravest first; [] without any."""
    found = [notice.text for notice in certificate.notices]
    if not certificate.private:
        found.insert(0, certificate.warning or "NOT PRIVATE")
    if certificate.unverified:
        found.append(f"UNVERIFIED: the guarantee rests on {listed(certificate.unverified)}.")
    return [text[:1].upper() + text[1:] for text in found]


def first_words(first: FirstQuestionStated, counted: str = "records") -> str:
    """Return a sentence on a certificate's `FirstQuestionStated`: the question's share of the budget and its answer.

    Or why it was not asked. `counted` is the noun of its numbers.
    """
    if not first.asked or first.usable is None or first.noise_sd is None:
        return f"Not asked: {first.why or 'the fit was recorded without it'}."
    few = "; fewer than half of the declared, and the fit was told to go on" if first.too_few else ""
    return (
        f"For {100 * (first.share or 0):g} % of the budget: {MeasuredCount(first.usable, first.noise_sd)} {counted} "
        f"are usable, in 95 of 100 cases{few}."
    )


def benchmark_words(stated: BenchmarkStated) -> str:
    """Return sentences, one text, on a `BenchmarkStated`: the totals that rows were raked to, the largest ratio."""
    tables = "; ".join(
        f"{' x '.join(t.columns)} ({t.citation}{'' if t.year is None else f', {t.year}'}"
        f"{'; EXACT totals of the private rows, not protected' if t.exact else ''})"
        for t in stated.tables
    )
    trimmed = (
        f"{several(stated.trimmed, 'combination')} of cells, {stated.trimmed_share:.2%} of the rows, would need more "
        f"than {stated.most:g} times, and are trimmed to that"
        if stated.trimmed
        else f"no row needs more than {stated.most:g} times, so that nothing is trimmed"
    )
    return (
        f"Raked to {several(len(stated.tables), 'table')} of published totals: {tables}. A row counts up to "
        f"{stated.largest:.3g} times what the fitted model gives it; {trimmed}. Kish efficiency "
        f"{stated.efficiency:.1%}. Answers of queries stay those of the measurements."
    )


def group_facts(certificate: Certificate, named: Callable[[str], str] = str) -> Iterator[Fact]:
    """Yield (caption, text) pairs on a certificate's groups: shares, merges, small groups, epsilons of their own.

    `named` is a function from a group's name to the words shown.
    """
    found = certificate.strata
    yield "Groups", strata(certificate)
    yield "Their shares", weights(certificate)
    if measured := measured_line(certificate):
        yield "Declared and measured", f"{measured[:1].upper()}{measured[1:]}."
    if (stated := certificate.benchmark) is not None:
        yield "Rows", benchmark_words(stated)
    elif found.by and certificate.weights.groups == MEASURED:
        yield "Rows of each", "As many as the measured sizes say, not the shares; sizes below 0 by noise have none."
    if (first := certificate.first_question) is not None:
        yield "First question", first_words(first, "records" if certificate.row_weight is None else "people")
    if found.merged:
        yield "Taken together", merges(certificate)
    if found.small is not None and found.small.policy != "keep":
        who = "; ".join(f"{named(name)}: {why}" for name, why in found.small.below.items()) or "none"
        rule = f"{found.small.policy}, below public size x epsilon {found.small.threshold:g}"
        yield "Small groups", f"Treated by the rule “{rule}”: {who}."
    if few := sum(group.few for group in certificate.small_groups):
        yield "Very small", f"{several(few, 'group')}, listed in certificate.json as small_groups."
    if found.epsilon:
        own = ", ".join(f"{named(name)} {epsilon:g}" for name, epsilon in found.epsilon.items())
        yield "Epsilon of each", f"{own}; the promise states the largest."


def made_facts(certificate: Certificate) -> Iterator[Fact]:
    """Yield (caption, text) pairs on how a certificate was made: mechanism, charges, account, schema, lists, bands."""
    yield "Mechanism", mechanism(certificate)
    kinds = Counter[str]()
    for charge in certificate.charges:
        kinds[charge.kind] += (charge.times or 1) * (charge.cliques or 1)
    asked = listed([several(number, *KINDS.get(kind, (kind, kind))) for kind, number in sorted(kinds.items())])
    yield "Charged for", f"{asked or 'nothing'}; each is in certificate.json, from which the promise can be recomputed."
    if known := coverage_line(certificate.measured):
        yield "Measured together", known
    yield "Account", account(certificate)
    schema = certificate.schema
    reviewed = f", reviewed by {schema.reviewed_by}" if schema.reviewed_by else ""
    yield "Schema", f"Its stated source: {schema.origin}{reviewed}. sha256 {schema.sha256}"
    yield from (("Code list", f"{described(each.to_dict())}.") for each in certificate.code_lists)
    yield from (("Bands", f"{in_words(each.to_dict())}.") for each in certificate.bands)
    if certificate.sums is not None:
        yield "Clipped sums", sums_line(certificate.sums)
    if certificate.by_tables is not None:
        yield "Tables by strata", tables_line(certificate.by_tables)
    yield from (("Within bins", inside_line(each)) for each in certificate.inside)
