"""Page of a plan: the budget and its prices, all public facts, a row for each stratum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from stratsynth.mechanisms.banding import in_words
from stratsynth.mechanisms.nesting import described
from stratsynth.planning.foresee import Plan
from stratsynth.planning.rehearsal import about
from stratsynth.planning.stratum import StratumPlan
from stratsynth.release.coverage import coverage_line
from stratsynth.release.notices import START, named, open_columns
from stratsynth.release.page.summary import price_figure
from stratsynth.release.page.words import joined, without_groups
from stratsynth.report.page import Column, Figure, Page, Row, Section, Table

MOST = 200
"""Largest number of strata that are listed one by one."""
ENDS = (40, 20)
"""Numbers of the largest and of the smallest strata that are listed where there are more than MOST."""


def plan_page(plan: Plan) -> Page:
    """Return the Page of a plan: warnings, budget with prices, needs, merges, and a row for each stratum."""
    whole = bool(plan.linked_words) and plan.weights["source"] == "none"
    steps = without_groups(plan.prices) if whole else plan.prices
    prices = price_figure(steps, plan.neighbours, plan.unit, plan.kinds, adaptive=plan.adaptive)
    budget = f"epsilon {plan.epsilon:g}, delta {plan.delta:g} ({plan.neighbours}), {_reserved(plan)}"
    words = {"Clipped sums": plan.sums_words, "Within bins": plan.bin_sums_words}
    words |= {"Tables by strata": plan.by_tables_words}
    asked = [("First question", plan.first_words), *((name, text) for name, text in words.items() if text)]
    needs = [
        *_account(plan.account),
        *_counted(plan),
        *([("Linked tables", plan.linked_words)] if plan.linked_words else []),
        *_weights(plan),
        *_measured(plan),
        *_prior(plan),
        *_small(plan),
        *(("Codes", described(each)) for each in plan.code_lists),
        *(("Bands", in_words(each)) for each in plan.bands),
        ("Memory", f"{sum(s.megabytes for s in plan.strata):.3g} MB for answers, {plan.rows_megabytes:,.0f} besides"),
        ("Time", f"{about(plan.seconds)} on one core, by a rough model: within a factor of a few"),
        *_rows(plan),
    ]
    return Page(
        f"Plan of {plan.mechanism}",
        warnings=[*open_columns(plan.public_columns), *(f"WARNING: {text}" for text in plan.warnings)],
        sections=[
            Section("budget", "", facts=[("Budget", budget), *asked], figures=[prices]),
            Section("needs", "", facts=needs),
            *([Section("merged", "Merged", figures=[Figure("", table=_merged(plan))])] if plan.merged else []),
            Section("strata", "", figures=list(_strata(plan)), notes=list(_notes(plan))),
        ],
    )


def _strata(plan: Plan) -> Iterator[Figure]:
    """Yield a Figure with a row for each of a plan's strata, the largest first; beyond MOST one of verdicts too."""
    ordered = sorted(plan.strata, key=lambda s: -s.size)
    ranged = any(s.size_low is not None for s in ordered)
    columns = {
        "stratum": "text",
        f"{plan.unit}s" if plan.linked_words else "people": "count",
        **({"from": "count", "to": "count"} if ranged else {}),
        **({} if plan.budgets is None else {"epsilon": "number"}),
        "rounds": "count",
        "tables": "count",
        "MB": "number",
        "noise": "number",
        "1-way": "number",
        "2-way": "number",
        "verdict": "text",
    }

    def row(s: StratumPlan) -> Row:
        own = [] if plan.budgets is None else [f"{plan.budgets[s.stratum]:.4g}" if s.stratum in plan.budgets else ""]
        return [
            s.stratum or "all",
            s.size,
            *([s.size_low, s.size_high] if ranged else []),
            *own,
            s.rounds,
            s.tables,
            f"{s.megabytes:.1f}",
            s.sigma,
            bracketed(percent(s.oneway_error), s.oneway_borrowed),
            bracketed(percent(s.twoway_error), s.twoway_borrowed),
            f"{s.verdict}{'; one-way tables only' if s.one_way else ''}",
        ]

    rest = "strata between, which --json and Plan.strata have"
    heads = [Column(name, kind) for name, kind in columns.items()]
    yield Figure("", table=Table("", heads, [row(s) for s in ordered], most=MOST, ends=ENDS, rest=rest))
    if len(ordered) > MOST:
        times = Counter(s.verdict for s in ordered)
        rows: list[Row] = [[number, words] for words, number in times.items()]
        heads = [Column("strata", "count"), Column("verdict", "text")]
        yield Figure("", table=Table("", heads, rows, most=MOST, ends=ENDS, rest="verdicts between"))


def _notes(plan: Plan) -> Iterator[str]:
    """Yield sentences on columns and dashes in a plan's table of strata, and on the limits of its errors."""
    yield "rounds: approximate number of choices of what to measure; where answers decide, fits differ."
    yield "MB: memory for exact and noisy tables; a fitted model takes its own, as its mechanism's settings allow."
    yield "noise: sigma of a cell. 1-way, 2-way: expected error of a mean count from noise alone."
    if plan.everybody_first:
        yield (
            "(in brackets): the stratum measures no table of this kind, and the error is that of the model of "
            "everybody. It leaves out the difference between the stratum and everybody, which only data could tell."
        )
    missing = [
        words
        for words, there in (
            ("1-way", any(s.oneway_error is None for s in plan.strata)),
            ("2-way", any(s.twoway_error is None for s in plan.strata)),
            ("noise", any(s.sigma is None for s in plan.strata)),
        )
        if there
    ]
    if missing:
        yield f"–: no question of the fit determines it ({', '.join(missing)}); see the verdict."
    if any(s.size_low is not None for s in plan.strata):
        yield "from, to: bounds of the group's size, by the source of the weights."


def _rows(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield one ("Rows", text) on the engine that holds a plan's rows, its disk space and passes; or nothing."""
    held = plan.rows
    if held is None:
        return
    if held.engine == "spark":
        passes = "1 pass" if held.passes == 1 else f"{held.passes} passes"
        yield "Rows", f"engine spark: {passes} over the rows where they lie, and one for their fingerprint"
        return
    disk = f"{held.scratch_megabytes:,.0f} MB on disk under TMPDIR, " if held.scratch_megabytes else ""
    over = f"{held.passed_megabytes:,.0f} MB" if held.passed_megabytes >= 1 else "less than 1 MB"
    yield "Rows", f"engine {held.engine}: {disk}{held.passes} passes over {over} of codes; the file is read twice"


def _account(account: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Yield (name, text) pairs on a plan's `account`, the dict of the ledger's state after this fit, and every refusal.

    Nothing for None: no ledger.
    """
    if account is None:
        return
    spent, after, cap = (account[f"{key}_epsilon"] for key in ("spent", "after", "cap"))
    of = "no cap was set" if cap is None else f"of {cap:g}, {account['left_epsilon']:.6g} left"
    would = "delta is used up" if after is None else f"this fit would make it {after:.6g}"
    resumed = "this run continues an interrupted fit, which is charged already"
    yield "Account", f"{account['ledger']}: epsilon {spent:.6g} spent, {of}; {would if account['fits'] else resumed}"
    if "refused" in account:
        yield "", f"REFUSED without --new-account: {account['refused']}"
    if not account["granted"]:
        yield "", "REFUSED: fit would refuse it before reading"
    if account["largest_epsilon"] is not None:
        yield "", f"the largest epsilon that fits now is {account['largest_epsilon']:g}"
    yield "", account["rule"]


def _counted(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield one ("Counted", text) on a plan's column of row weights and the noise they cause; nothing without."""
    weight = plan.row_weight
    if weight is None:
        return
    part = weight["relative_noise_factor"]
    relative = (
        f"relative to the weighted total, {part:.3g} times that of the sample without weights at the same budget"
        if part is not None
        else "write mean = ... into the schema's weight, population over sample, for the noise relative to the total"
    )
    text = (
        f"every row as its {weight['column']}, at most {weight['max']:,}: the declared size and all that is released "
        f"are weighted totals, of people; larger weights count as {weight['max']:,}, and the people beyond that are "
        f"missing; noise is {weight['max']:,} times that of counting rows; {relative}"
    )
    yield "Counted", text


def _prior(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield (name, text) pairs on a plan's prior, its rows and tables and their worth; nothing without a prior."""
    prior = plan.prior
    if prior is None:
        return
    if "rows" in prior:
        lacking = f", without {', '.join(prior['without'])}" if "without" in prior else ""
        dropped = f", {prior['left_out']:,} of them left out" if prior["left_out"] else ""
        noisy = f" and {prior['measurements']:,} noisy tables" if prior.get("measurements") else ""
        text = (
            f"{prior['origin']}: {prior['citation']}; {prior['rows']:,} rows{dropped}{lacking}{noisy}. Assumed to be "
            f"worth the word of {prior['worth_at_most']:,} people at most, as two samples of one population are; paid "
            "answers decide whether it is worth less, and which share of the release it makes"
        )
        yield "Prior", text
    if linked := prior.get("linked"):
        homes = prior["tables"][0]["people"]
        text = (
            f"{prior['origin']}: {prior['citation']}; {linked:,} tables of the counted columns, of two linked tables, "
        )
        text += f"{homes:,} rows in the first"
        yield "Prior", f"{text}. Paid answers decide how much they count"
    for table in prior.get("tables", ()) if not linked else ():
        error = f"standard error {table['error']:.2g}" if table["error"] else "taken to be exact for its population"
        by = " x ".join(table["columns"])
        yield "Prior", f"table of {by}: {table['citation']}; {error}. Paid answers decide how much it counts"
    if groups := prior.get("without_groups"):
        yield "", f"it has no rows of {named(groups)}: {START}"


def _measured(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield one ("Measured", text) on the pairs of columns that a plan's tables cover; nothing without tables."""
    if line := coverage_line(plan.measured, "will be"):
        about = " Answers decide which: these numbers are of a rehearsal." if plan.adaptive else ""
        yield "Measured", f"{line}{about}"


def _reserved(plan: Plan) -> str:
    """Return words on the amount that a plan reserves, and how strata share it."""
    if plan.everybody_first:
        return f"reserved as {plan.currency} {plan.reserved:.6g}; everybody's model first, every stratum gets the rest"
    each = "strata get what their budgets say" if plan.budgets else "every stratum gets all of it"
    return f"reserved as {plan.currency} {plan.reserved:.6g}; {each}"


def _weights(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield (name, text) pairs on a plan's weights: source, citation, errors, disclosures; nothing without."""
    weights = plan.weights
    if weights["citation"] is None:
        return
    worst = f" (worst source: {weights['worst']})" if "worst" in weights else ""
    yield "Weights", f"{weights['source']}{worst}: {weights['citation']}"
    if "design" in weights:
        yield "", f"the error of their survey's design is known, by {weights['design']}: means weighted by them show it"
    if "by" in weights:
        names = " x ".join(weights["by"])
        yield "", f"of {names}, which are no strata: no budget is spent on these shares, and rows are drawn by them"
        yield "", "no measured count is compared with the shares, so that wrong shares are not noticed"
    if plan.weights_sigma is not None:
        guess = "even shares: guesses" if weights["prior"] is None else f"those of {weights['prior']['citation']}"
        yield "", f"each count has noise of {plan.weights_sigma:.1f} people; until then sizes here are {guess}"
    if len(plan.unprotected) > 1:
        yield "", f"NOT PROTECTED: {', '.join(plan.unprotected[1:])}"


def _small(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield (name, text) pairs on a plan's policy for small groups; nothing if these are kept."""
    small, threshold = plan.policy["small"], plan.policy["threshold"]
    if small == "keep":
        return
    left = [s for s in plan.strata if s.small]
    done = {"merge": "merged along the hierarchy", "one-way": "given one-way tables only"}[small]
    yield "Small", f"below public size x epsilon {threshold:g}: {done}"
    if small == "merge" and left:
        some = ", ".join(s.stratum for s in left[:MOST]) + (f" and {len(left) - MOST:,} more" if left[MOST:] else "")
        yield "", f"still small, and the hierarchy has no wider group to merge them into: {some}"


def _merged(plan: Plan) -> Table:
    """Return a Table with a row for each merge of the plan: name, levels, reason."""
    rows = [[merge["stratum"], joined(merge["levels"]), merge["why"]] for merge in plan.merged]
    heads = [Column(name, "text") for name in ("stratum", "of", "why")]
    return Table("", heads, rows, most=MOST, ends=ENDS, rest="merges between, which --json has")


def bracketed(text: str | None, borrowed: bool) -> str | None:
    """Return a text in brackets if it is `borrowed`, an error of everybody's model; else itself. None for None."""
    return f"({text})" if borrowed and text is not None else text


def percent(error: float | None) -> str | None:
    """Return a relative error, 1 being the whole, as text "12 %"; "> 10x" from 10 on, None if unknown."""
    if error is None or error >= 10:
        return None if error is None else "> 10x"
    return f"{100 * error:.2g} %" if error < 1 else f"{100 * error:.0f} %"
