"""The sections of a certificate as types: `certificate.json` is read through them, its JSON Schema is made from them.

A field at its default is left out of the JSON; older versions did not write some of them. Keys that later versions
add are ignored. `stratsynth.release.consistency` turns the numbers into objects of the accounting.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

FORMAT = "stratsynth-certificate/1"
LARGEST = sys.float_info.max
"""Largest number in a certificate: infinity and NaN are refused."""
Number = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
Amount = Annotated[float, Meta(ge=0, le=LARGEST)]
Count = Annotated[int, Meta(ge=0)]
Texts = tuple[str, ...]


def described(text: str) -> Any:
    """Return msgspec's annotation that gives a field the description `text` in the JSON Schema."""
    return Meta(description=text)


class CertificatePart(Struct, frozen=True, omit_defaults=True):
    """A part of a certificate."""

    def to_dict(self) -> dict[str, Any]:
        """Return the section as JSON values by key, without fields at their defaults."""
        found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))  # lists, as in a file
        return found


class Software(CertificatePart, frozen=True):
    """The versions that made the release."""

    stratsynth: str
    python: str = ""


class UnitStated(CertificatePart, frozen=True):
    """A protected unit of several rows: a person, or a household."""

    column: Annotated[str, described("The column that names the unit of a row.")]
    max_rows: Annotated[int, Meta(ge=1, description="The most rows of one unit that are used.")]
    tables: Annotated[
        tuple[str, str] | None,
        described("Of linked tables, the parent's name and the child's: all child rows of a parent weigh as one row."),
    ] = None


class DrawnStated(CertificatePart, frozen=True):
    """Figures of the drawing of two linked tables: rows that were drawn without some of what is known."""

    parents: Annotated[int, described("Parents that were drawn.")]
    rows: Annotated[int, described("Child rows that were drawn.")]
    backed_off: Annotated[
        dict[str, int],
        described("Child rows that known columns leave no cell, by the last one given up."),
    ]
    relaxed: Annotated[int, described("Child rows that what is left of the sum leaves no value.")]
    other_bands: Annotated[int, described("Parents whose sum is in another bin than their model drew.")]


class RowWeightStated(CertificatePart, frozen=True):
    """The column by which rows count more than 1."""

    column: Annotated[str, described("The column of weights.")]
    max: Annotated[int, Meta(ge=1, description="The largest weight; larger ones are cut to it.")]
    missing: Annotated[int, described("The weight of a row without one.")]


class Errors(CertificatePart, frozen=True):
    """The least errors of any test, whatever it uses beside the release, that tells if one unit is in the data."""

    alpha: Annotated[
        float, Meta(gt=0, lt=1, description="It takes the unit for present at most so often if it is not.")
    ]
    beta: Annotated[float, Meta(ge=0, lt=1, description="Then it misses the unit at least so often if it is.")]


class Guarantee(CertificatePart, frozen=True):
    """The promise, and the amount that was reserved for it in the currency of the accounting."""

    currency: Annotated[str, described("zcdp, exact, pure, sampled or claimed.")]
    epsilon: Annotated[float, Meta(gt=0, le=LARGEST, description="Epsilon of one unit under the stated neighbours.")]
    delta: Annotated[float, Meta(ge=0, lt=1, description="Delta of one unit, tails of the noise included.")]
    truncation_delta: Annotated[float, Meta(ge=0, lt=1, description="The part of delta kept for cut-off tails.")]
    rho: Annotated[Amount | None, described("Currency zcdp or exact: rho that was reserved.")] = None
    mu: Annotated[Amount | None, described("Currency exact: mu of Gaussian DP, the root of 2 rho.")] = None
    tradeoff: Annotated[tuple[Errors, ...], described("Currency exact: errors of every test for one unit.")] = ()
    reserved: Annotated[Amount | None, described("Currency pure: epsilon that was reserved.")] = None
    noise: Annotated[Amount | None, described("Currency sampled: noise multiplier of a step.")] = None
    rate: Annotated[Amount | None, described("Currency sampled: probability that a record is in a step.")] = None
    steps: Annotated[Amount | None, described("Currency sampled: number of steps.")] = None
    first: Annotated[Amount | None, described("Currency sampled: rho of the first question, beside the steps.")] = None


class AccountStated(CertificatePart, frozen=True):
    """The account after this fit had reserved."""

    name: Annotated[str | None, described("The ledger file; null for an account of one process.")]
    cap_epsilon: Annotated[Amount | None, described("The most that may ever be spent; null where nobody set it.")]
    spent_epsilon: Annotated[float, Meta(ge=0, le=LARGEST, description="Epsilon of all releases so far, this one too.")]
    releases: Annotated[int, Meta(ge=0, description="The number of fits that had reserved, this one included.")]
    spent_delta: Annotated[Amount | None, described("The delta at which spent_epsilon is read.")] = None
    note: str = ""
    account: Annotated[str | None, described("The account's name, where several versions of the data share it.")] = None
    versions: Annotated[int, described("The number of versions of the data that the account has seen.")] = 1
    accounts: Annotated[Texts, described("All accounts that are known for the data.")] = ()
    new_account: Annotated[str | None, described("Why this account was begun beside another.")] = None
    corrections: Annotated[Texts, described("Why the data were corrected, oldest first.")] = ()


class Merge(CertificatePart, frozen=True):
    """A stratum that several groups were joined into."""

    stratum: Annotated[str, described("Its label in paths of charges, measurements and the model.")]
    levels: Annotated[dict[str, Texts], described("The levels joined, by column.")]
    why: str = ""


class SmallPolicy(CertificatePart, frozen=True):
    """The treatment of groups of few people, as declared."""

    policy: str
    threshold: Number | None
    below: Annotated[dict[str, str], described("Why, by group, for the groups that it changed.")] = {}


class StrataStated(CertificatePart, frozen=True):
    """The groups that were fitted apart."""

    by: Annotated[Texts, described("The columns; empty where everybody was fitted together.")]
    cells: Annotated[int, Meta(ge=1, description="Number of combinations of their levels.")]
    merged: tuple[Merge, ...]
    groups: Annotated[int | None, described("Number of strata, where it is not that of the combinations.")] = None
    small: SmallPolicy | None = None
    families: Annotated[tuple[Texts, ...], described("Sets of columns whose groups overlap.")] = ()
    epsilon: Annotated[dict[str, Amount], described("Epsilon by stratum, where budgets differ.")] = {}


class Impossible(CertificatePart, frozen=True):
    """Groups that the schema's rules forbid, although shares were declared for them."""

    strata: Texts
    share_removed: Number


class WeightsStated(CertificatePart, frozen=True):
    """The source of the shares by which groups are put together."""

    source: Annotated[str, described("none, public, raked, holdout, private, invariant, or a source's own name.")]
    citation: str | None
    by: Annotated[Texts, described("The columns of the groups, where they are no strata.")] = ()
    renormalised_from: Annotated[Number | None, described("The sum of the declared shares, where it was not 1.")] = None
    impossible: Impossible | None = None
    sha256: Annotated[str | None, described("Hash of public shares.")] = None
    design: Annotated[str | None, described("How public shares state the error of their own survey.")] = None
    share: Annotated[Number | None, described("Source private: the part of the budget that measures them.")] = None
    confidential: Annotated[bool | None, described("Source holdout: True if its people are not protected.")] = None
    prior: Annotated[dict[str, Any] | None, described("Source private: the public shares that were given too.")] = None
    start: Annotated[dict[str, Any] | None, described("Source raked: the table that was raked.")] = None
    margins: Annotated[tuple[dict[str, Any], ...], described("Source raked: the margins.")] = ()
    worst: Annotated[str | None, described("Source raked: the least public of its sources.")] = None
    groups: Annotated[
        Literal["declared", "measured"], described("Rows follow the declared shares, or the measured sizes of groups.")
    ] = "declared"


class SchemaStated(CertificatePart, frozen=True):
    """The schema of the fit."""

    sha256: str
    origin: Annotated[str, described("The source of levels and bounds, as declared.")]
    reviewed_by: str | None
    model_sha256: Annotated[str | None, described("The model's schema, where it has fewer columns.")] = None


class MechanismStated(CertificatePart, frozen=True):
    """The mechanism, with every setting."""

    name: str
    settings: dict[str, Any]
    adaptive: Annotated[bool, described("True if answers decide which questions follow.")] = False


class WorstCase(CertificatePart, frozen=True):
    """Adaptive mechanisms: bounds of the questions that could have been asked, for the prices of other neighbours."""

    factor: Annotated[int, Meta(ge=1, le=4, description="Largest price factor under replace-one of a question.")]
    only_strata: Annotated[bool, described("True if every question is put to single strata, none to everybody.")]


class ChargeStated(CertificatePart, frozen=True):
    """A charge: one question in one stratum, or several questions at the same price."""

    path: Annotated[tuple[dict[str, str], ...], described("The levels of the strata by column, outermost first.")]
    kind: Annotated[str, described("counts, choose, total, raw or usable.")]
    sensitivity: Annotated[
        dict[str, Amount], described("Sensitivity by neighbours, in the unit of the answer: L2, under pure epsilon L1.")
    ]
    rho: Annotated[Amount | None, described("Currency zcdp or exact: the price.")] = None
    epsilon: Annotated[Amount | None, described("Currency pure or claimed: the price; else of a choice.")] = None
    steps: Annotated[Amount | None, described("Currency sampled: the number of steps.")] = None
    times: Annotated[
        Annotated[int, Meta(ge=2)] | None, described("The number of questions that this entry stands for.")
    ] = None
    each: Annotated[Amount | None, described("The price of one of them.")] = None
    sigma: Annotated[Amount | None, described("Standard deviation of discrete Gaussian noise.")] = None
    scale: Annotated[Amount | None, described("Scale of discrete Laplace noise.")] = None
    cliques: Annotated[int | None, described("Number of tables counted.")] = None
    columns: Annotated[int | None, described("Kind usable: number of columns of the schema.")] = None
    candidates: Annotated[int | tuple[int, ...] | None, described("Number of candidates of a choice.")] = None
    noise: Annotated[Amount | None, described("Currency sampled: noise multiplier.")] = None
    rate: Annotated[Amount | None, described("Currency sampled: sampling probability.")] = None
    delta: Annotated[Amount | None, described("Currency claimed: delta.")] = None
    claimed_by: Annotated[str | None, described("Currency claimed: the code that claims it.")] = None


class PriorTable(CertificatePart, frozen=True):
    """A published table that the fit started from."""

    citation: str
    columns: Texts
    sha256: str | None = None
    people: Number | None = None
    error: Number | None = None


class PriorStated(CertificatePart, frozen=True):
    """The public rows and tables that the fit started from."""

    origin: Annotated[Literal["public", "release"], described("public, or an earlier release.")]
    citation: str
    rows: Annotated[Count | None, described("Number of its rows; absent for tables alone.")] = None
    people: Annotated[Number | None, described("The most people that they were taken for.")] = None
    left_out: Annotated[int | None, described("Rows with levels that the schema does not know.")] = None
    file: Annotated[str | None, described("SHA-256 of its file.")] = None
    sha256: Annotated[str | None, described("Hash of its rows in the columns and levels of the schema.")] = None
    tables: tuple[PriorTable, ...] = ()
    linked: Annotated[Count | None, described("Of two linked tables, the number of tables made of them.")] = None
    without: Annotated[Texts, described("Columns that it does not have.")] = ()
    without_groups: Annotated[Texts, described("Strata that it has no rows of.")] = ()
    release: Annotated[dict[str, Any] | None, described("Of an earlier release: its guarantee.")] = None


class CodeListStated(CertificatePart, frozen=True):
    """A long list of codes, and the level at which it was counted."""

    column: str
    codes: int
    levels: int
    records: Number | None
    noise: Number | None
    drawn: str
    source: str | None
    why: str
    listed: Annotated[str | None, described("The file of the list and its citation, where a table was given.")] = None


class BandsStated(CertificatePart, frozen=True):
    """A column of smooth whole numbers, and the bands in which it was counted."""

    column: str
    values: Annotated[int, described("Number of values between its bounds.")]
    bands: int
    width: Annotated[int, described("Values in a band that no bound and no rule cuts.")]
    records: Annotated[Number | None, described("Declared records of a band, on average.")]
    noise: Annotated[Number | None, described("Noise of a count that they were compared with.")]
    why: str


class AgreementStated(CertificatePart, frozen=True):
    """The equivalence test by which declared and measured numbers of records are compared."""

    margin: Annotated[float, Meta(gt=0, lt=1, description="Relative difference that counts as none.")]
    level: Annotated[float, Meta(gt=0, lt=1, description="Probability that all intervals hold at once.")]
    correction: Annotated[str, described("Correction of the level for the number of statements.")]
    statements: Annotated[Count, described("Number of figures that are compared.")]
    records: Annotated[
        Amount | None, described("Records in which the shares were counted; null: unknown, and taken for exact.")
    ] = None


class FirstQuestionStated(CertificatePart, frozen=True):
    """The first question, asked before the rest of the budget was reserved; or the reason why there was none."""

    asked: bool
    why: Annotated[str, described("Why it was not asked.")] = ""
    share: Annotated[Amount | None, described("Its part of the amount that was reserved.")] = None
    rho: Annotated[Amount | None, described("Currency zcdp or sampled: its price.")] = None
    epsilon: Annotated[Amount | None, described("Currency pure or claimed: its price.")] = None
    noise_sd: Annotated[Amount | None, described("Standard deviation of the noise of each of its numbers.")] = None
    declared: Annotated[int | None, described("The declared number of records.")] = None
    stops_below: Annotated[Amount | None, described("The fit stops if usable_at_most is below this.")] = None
    level: Annotated[Amount | None, described("The level of usable_at_most.")] = None
    usable: Annotated[int | None, described("Noisy number of records that the schema does not leave out.")] = None
    usable_at_most: Annotated[Number | None, described("Upper bound of the number of usable records.")] = None
    outside: Annotated[
        dict[str, int], described("By column, the noisy number of values that are missing or unknown to the schema.")
    ] = {}
    too_few: Annotated[bool, described("True if it found too few, and the fit was told to go on.")] = False


class ClippedSumStated(CertificatePart, frozen=True):
    """Noisy sums of min(x, clip) - middle of one column."""

    column: str
    lower: Annotated[Number, described("Lower bound of the column.")]
    clip: Annotated[Number, described("Number as which larger values count.")]
    middle: Annotated[Number, described("(lower + clip) / 2, which is taken off each value.")]
    noise_sd: Annotated[Amount, described("Standard deviation of the noise of everybody's sum, in the column's unit.")]
    half_width: Annotated[
        Amount | None,
        described("Half width at 95 % of everybody's mean, by this noise alone, of as many records as declared."),
    ] = None


class SumsStated(CertificatePart, frozen=True):
    """Clipped sums that were asked beside the mechanism's questions, for means; or the reason why there were none."""

    asked: bool
    why: Annotated[str, described("Why none were asked.")] = ""
    share: Annotated[Amount | None, described("Part of the mechanism's amount that they may cost together.")] = None
    rho: Annotated[Amount | None, described("Currency zcdp: price of all sums of everybody, of one row.")] = None
    epsilon: Annotated[Amount | None, described("Currency pure: price of all sums of everybody, of one row.")] = None
    columns: tuple[ClippedSumStated, ...] = ()
    strata: Annotated[dict[str, Amount], described("Price of all sums of a stratum, by the label of each asked.")] = {}
    declared: Annotated[int | None, described("The declared number of records.")] = None
    precise: Annotated[
        Amount | None,
        described(
            "Strata are asked if noise leaves the mean of one within this part of (clip - lower) / 2, at 95 %; before, "
            "such ones alone."
        ),
    ] = None
    counted: Annotated[
        Amount | None, described("Part of the price of a stratum's sums that bought tables of their columns there.")
    ] = None


class BinSumStated(CertificatePart, frozen=True):
    """A noisy question of everybody about one column's numbers within its bins: places, or multiples."""

    column: str
    multiples: Annotated[tuple[int, ...], described("Declared multiples; none for places.")]
    noise_sd: Annotated[Amount, described("Standard deviation of the noise of each number.")]
    rho: Annotated[Amount | None, described("Currency zcdp: its price, of one row.")] = None
    epsilon: Annotated[Amount | None, described("Currency pure: its price, of one row.")] = None


class BinSumsStated(CertificatePart, frozen=True):
    """Questions about numbers within bins, or the reason why none was asked."""

    asked: bool
    why: Annotated[str, described("Why nothing was asked.")] = ""
    questions: tuple[BinSumStated, ...] = ()


class ByTablesStated(CertificatePart, frozen=True):
    """Tables of everybody by each of the strata's columns, asked beside the mechanism's questions."""

    share: Annotated[Amount, described("Part of the mechanism's amount that they may cost together.")]
    rho: Annotated[Amount, described("Price of all of them, of one row.")]
    tables: Annotated[int, Meta(ge=1, description="Number of tables.")]
    noise_sd: Annotated[Amount, described("Standard deviation of the noise of each cell, in records.")]


class ComparisonStated(CertificatePart, frozen=True):
    """A declared number of records beside the measured one."""

    what: Annotated[str, described("declared_size, or share.")]
    stratum: Annotated[str, described("The group's label; empty for everybody.")]
    declared: Annotated[Number | None, described("The declared size, or the group's share of the measured total.")]
    measured: Annotated[Number, described("Noisy size in records, by least squares over all tables.")]
    noise_sd: Annotated[Number, described("Standard deviation of the noise of the measurement, in records.")]
    z: Annotated[Number | None, described("Measured less declared, in standard deviations of the difference.")]
    verdict: Annotated[
        str, described("agrees, differs, not to be told, or not declared; other words in older versions.")
    ]
    share: Annotated[Number | None, described("Declared share of a group.")] = None
    difference: Annotated[Number | None, described("measured / declared - 1.")] = None
    low: Annotated[Number | None, described("Lower end of its interval.")] = None
    high: Annotated[Number | None, described("Upper end.")] = None
    rows: Annotated[Number | None, described("Part of the synthetic rows that is drawn of the group.")] = None


class MeasuredStated(CertificatePart, frozen=True):
    """Columns and pairs of columns that noisy tables cover."""

    columns: Annotated[int, Meta(ge=1, description="Number of columns.")]
    unmeasured: Annotated[Texts, described("Columns that no noisy table has.")] = ()
    partly: Annotated[Texts, described("Columns that were measured in some groups only.")] = ()
    pairs: Annotated[
        Count, described("Number of pairs of columns measured together, of everybody or in every group.")
    ] = 0
    pairs_in_some: Annotated[Count, described("Number of further pairs, measured together in some groups only.")] = 0


class ControlCell(CertificatePart, frozen=True):
    """A cell of a control table."""

    levels: Annotated[dict[str, str], described("Its levels by column, as the table writes them.")]
    published: Annotated[Amount, described("Its published total.")]
    measured: Annotated[Number | None, described("Its noisy number, by least squares over all tables.")] = None
    low: Annotated[Number | None, described("Lower end of the interval for the noise of that.")] = None
    high: Annotated[Number | None, described("Upper end.")] = None
    rows: Annotated[Count | None, described("Number of rows of the synthetic table in it.")] = None


class ControlTableStated(CertificatePart, frozen=True):
    """A table of published totals that rows were raked to."""

    citation: str
    columns: Texts
    cells: tuple[ControlCell, ...]
    sha256: Annotated[str, described("Hash of columns, groups of levels and totals.")]
    year: Annotated[int | None, described("The year that its totals are of.")] = None
    file: Annotated[str | None, described("SHA-256 of its file.")] = None
    exact: Annotated[bool, described("True for exact totals of the private rows, which are not protected.")] = False


class BenchmarkStated(CertificatePart, frozen=True, kw_only=True):
    """The published totals that rows were raked to, and what that took."""

    tables: tuple[ControlTableStated, ...]
    level: Annotated[float, Meta(gt=0, lt=1, description="Level of each interval of a measured number.")]
    people: Annotated[Number | None, described("Noisy number of everybody, in the unit of the measured ones.")] = None
    most: Annotated[Amount, described("The largest ratio that a row may have, relative to the fitted model.")]
    largest: Annotated[Amount, described("The largest ratio of a row.")]
    efficiency: Annotated[Amount, described("Kish's: 1 over the mean of squared ratios, of rows of the fitted model.")]
    trimmed: Annotated[Count, described("Number of combinations of cells whose rows are at the largest ratio.")] = 0
    trimmed_share: Annotated[Amount, described("Their part of the rows.")] = 0.0
    missed: Annotated[Amount, described("Largest part of everybody by which a cell misses its total for that.")] = 0.0
    rows: Annotated[Count | None, described("Number of rows of the synthetic table.")] = None


class InsideStated(CertificatePart, frozen=True):
    """The law by which numbers of a column are drawn within bins, where it is more than an even or logarithmic one."""

    column: str
    shape: Annotated[str, described("Declared law within a bin: even, log, smooth, or pareto, log with a Pareto tail.")]
    slope: Annotated[Amount | None, described("Slope of the tail: its density falls as x to the -slope - 1.")] = None
    slopes: Annotated[tuple[Amount, Amount] | None, described("Smallest and largest slope that is declared.")] = None
    start: Annotated[Number | None, described("Number at which the tail starts.")] = None
    bins: Annotated[Count, described("Number of bins that the tail has; they are one for drawing.")] = 0
    fitted: Annotated[bool, described("True if the slope is one of noisy counts, cut to the declared slopes.")] = False
    summed: Annotated[bool, described("True if the slope follows everybody's clipped sum of the column too.")] = False
    why: Annotated[str, described("Why the slope is the middle of the declared ones.")] = ""
    prior: Annotated[Count, described("Number of bins in which numbers are drawn as the prior's rows have them.")] = 0
    places: Annotated[Count, described("Number of bins whose mean place follows noisy sums of places.")] = 0
    heaps: Annotated[Count, described("Number of bins that have multiples by noisy numbers of them.")] = 0
    rounded: Annotated[bool, described("True if numbers are multiples of declared units.")] = False


class GapStated(CertificatePart, frozen=True, kw_only=True):
    """A wanted gap between groups' rates of decisions, and that of the published model, by noisy counts."""

    stratum: Annotated[str, described("Group of records whose model it is of; empty for everybody's.")] = ""
    criterion: Annotated[str, described("parity; or odds, among records of each true class.")]
    wanted: Annotated[Amount, described("Largest wanted difference between two groups' rates.")]
    measured: Annotated[Amount | None, described("Largest noisy difference; null: no count is clear of its noise.")]
    noise: Annotated[Amount | None, described("Standard deviation of the noise in it.")]
    low: Annotated[Amount, described("Lower end of the interval of the gap among the private rows.")]
    high: Annotated[Amount, described("Upper end.")]
    level: Annotated[float, Meta(gt=0, lt=1, description="Probability with which the interval holds.")]
    status: Annotated[str, described("met: all of the interval is wanted; missed: none of it; or not to be told.")]
    multipliers: Annotated[tuple[Number, ...], described("Last multiplier of each difference of rates.")] = ()


class Notice(CertificatePart, frozen=True):
    """A sentence that a reader has to know."""

    kind: str
    text: str


class SmallGroup(CertificatePart, frozen=True):
    """A group of very few people, or one that was fitted as a part of a merge."""

    levels: dict[str, Texts]
    people: Annotated[Number | None, described("Its declared size; null where none is public.")]
    fitted_in: Annotated[str | None, described("The merge that it is a part of.")]
    few: Annotated[bool, described("True if its declared size is small, or below the noise of a count.")]


class Title(CertificatePart, frozen=True):
    """The name of the release and of its publisher."""

    title: str = ""
    publisher: str = ""


class Certificate(CertificatePart, frozen=True, kw_only=True):
    """The certificate of a release: the guarantee, and everything that is needed to recompute it."""

    format: Literal["stratsynth-certificate/1"]
    created: Annotated[str, described("The day, as YYYY-MM-DD.")]
    software: Software
    private: Annotated[bool, described("False for public data and seeded noise: then nothing is promised.")]
    warning: Annotated[str, described("Why it is not private.")] = ""
    unverified: Annotated[Texts, described("Parts of the guarantee that nobody has checked.")]
    unit: Annotated[str | UnitStated, described("The protected unit.")]
    record: Annotated[str | None, described("A record of a text file.")] = None
    row_weight: RowWeightStated | None = None
    neighbours: Annotated[str, described("Step between two compared tables: add-remove, replace or attribute.")]
    public_columns: Annotated[Texts, described("Columns that are not protected.")] = ()
    guarantee: Guarantee
    conversion: Annotated[dict[str, str], described("Theorem by which epsilon follows from the charges.")] = {}
    prices: Annotated[dict[str, Amount | None], described("Epsilon by step that a record can take.")]
    dearest: WorstCase | None = None
    ledger: AccountStated
    strata: StrataStated
    weights: WeightsStated
    unprotected: Annotated[Texts, described("Names of everything that was disclosed without noise.")]
    schema: SchemaStated
    mechanism: MechanismStated
    mechanism_words: Annotated[dict[str, str | bool], described("What the mechanism's author says of it.")] = {}
    composition: str
    charges: tuple[ChargeStated, ...]
    prior: PriorStated | None = None
    code_lists: tuple[CodeListStated, ...] = ()
    bands: tuple[BandsStated, ...] = ()
    first_question: FirstQuestionStated | None = None
    sums: Annotated[SumsStated | None, described("Absent where no column declares a clip.")] = None
    bin_sums: Annotated[BinSumsStated | None, described("Absent where no column declares places or heaps.")] = None
    by_tables: Annotated[ByTablesStated | None, described("Absent where strata ask for none.")] = None
    declared_and_measured: tuple[ComparisonStated, ...] = ()
    measured: Annotated[MeasuredStated | None, described("Absent without noisy tables and in 0.3.0 and earlier.")] = (
        None
    )
    agreement: AgreementStated | None = None
    benchmark: Annotated[BenchmarkStated | None, described("Absent where rows follow the fitted model.")] = None
    drawn: Annotated[DrawnStated | None, described("Drawing of two linked tables; absent of one table.")] = None
    inside: Annotated[tuple[InsideStated, ...], described("Laws of numbers within bins; a tail is a model.")] = ()
    gaps: Annotated[tuple[GapStated, ...], described("Absent where no gap of decisions was wanted.")] = ()
    notices: tuple[Notice, ...] = ()
    small_groups: tuple[SmallGroup, ...] = ()
    not_protected: Annotated[Texts, described("What the release does not protect, in sentences.")] = ()
    called: Title | None = None
    files: Annotated[dict[str, str] | None, described("SHA-256 of every other file of the folder.")] = None

    @property
    def answers(self) -> int:
        """Number of answers that were charged: an entry of `charges` may stand for several."""
        return sum(charge.times or 1 for charge in self.charges)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Certificate:
        """Return the certificate with the content of the mapping `record`: the only validator of its form.

        Raises:
            ValueError: The first key that is missing or has another type or range than stated here.
        """
        try:
            return msgspec.convert(record, cls)
        except msgspec.ValidationError as error:
            raise ValueError(_plain(str(error))) from None


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of certificates as a dict, for readers in other programs."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(Certificate)}


def main() -> None:
    """Print the JSON Schema of certificates, which `docs/certificate.schema.json` holds."""
    sys.stdout.write(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")


def _plain(message: str) -> str:
    """Return msgspec's message with the key first: `guarantee.delta: expected float, got str`."""
    text, _, path = message.partition(" - at ")
    key = path.strip("`").removeprefix("$").removeprefix(".")
    text = (text[:1].lower() + text[1:]).replace("`", "")
    return f"{key}: {text}" if key else text


if __name__ == "__main__":
    main()
