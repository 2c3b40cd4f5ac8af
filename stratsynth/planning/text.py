"""A plan for a reader."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from typing import Any

from stratsynth.display import panel
from stratsynth.mechanisms.nesting import described
from stratsynth.planning.foresee import Plan
from stratsynth.planning.rehearsal import about
from stratsynth.planning.stratum import StratumPlan
from stratsynth.release.notices import START, named, open_columns
from stratsynth.release.page import words
from stratsynth.release.page.summary import price_lines

INDENT = 11 * " "
MOST = 200
"""The most strata that are listed one by one."""
ENDS = (40, 20)
"""Of more, the largest and the smallest are."""


def describe(plan: Plan) -> str:
    """The budget, its prices, where shares come from, who was merged and why, and a line for each stratum."""
    price = {k: words.price(plan.neighbours, v) for k, v in plan.prices.items()}
    lines = [
        *(
            textwrap.fill(f"*** {text} ***", 100, subsequent_indent=INDENT)
            for text in open_columns(plan.public_columns)
        ),
        *(_folded("WARNING", text) for text in plan.warnings),
        f"Mechanism  {plan.mechanism}",
        f"Budget     epsilon {plan.epsilon:g}, delta {plan.delta:g} ({plan.neighbours}), {_reserved(plan)}",
        *price_lines(price, plan.unit, plan.kinds, adaptive=plan.adaptive),
        *_account(plan.account),
        *_counted(plan),
        *_weights(plan),
        *_prior(plan),
        *_small(plan),
        *_code_lists(plan),
        f"Memory     {sum(s.megabytes for s in plan.strata):.3g} MB for answers, {plan.rows_megabytes:,.0f} besides",
        f"Time       {about(plan.seconds)} on one core, by a rough model: within a factor of a few",
        *_rows(plan),
        "",
        *_merged(plan),
    ]
    width = max(7, *(len(s.stratum) for s in plan.strata))
    uneven = plan.budgets is not None
    ranged = any(s.size_low is not None for s in plan.strata)
    extra = f"{' between':17}" * ranged + f" {'epsilon':>8}" * uneven
    heads = f"{'rounds':>7} {'tables':>7} {'MB':>6} {'noise':>8} {'1-way':>7} {'2-way':>7}  verdict"
    lines.append(f"{'stratum':{width}} {'people':>9}{extra} {heads}")
    ordered = [
        _line(s, width, ranged=ranged, own=(plan.budgets or {}).get(s.stratum))
        for s in sorted(plan.strata, key=lambda s: -s.size)
    ]
    lines.extend([*_ends(ordered, "strata"), *_verdicts(plan), ""])
    lines.append("rounds: how often it chooses what to measure next, about; where answers decide, fits differ.")
    lines.append(
        "MB: memory for exact and noisy tables; a fitted model takes its own, as its mechanism's settings allow."
    )
    lines.append("noise: sigma of a cell. 1-way, 2-way: expected error of a mean count from noise alone.")
    lines.extend(_unknown(plan))
    if ranged:
        lines.append("between: where the group's size may lie, as far as the source of the weights says.")
    return "\n".join(lines)


def _ends(listed: list[str], what: str) -> list[str]:
    """All of a list; of a long one, its ends."""
    if len(listed) <= MOST:
        return listed
    first, last = ENDS
    between = f"... {len(listed) - first - last:,} {what} between, which --json and Plan.strata have ..."
    return [*listed[:first], between, *listed[-last:]]


def _verdicts(plan: Plan) -> list[str]:
    """The number of strata with each verdict, where not all are listed."""
    if len(plan.strata) <= MOST:
        return []
    times = Counter(s.verdict for s in sorted(plan.strata, key=lambda s: -s.size))
    shown = [f"{number:>9,} strata: {words}" for words, number in times.items()]
    return ["", *_ends(shown, "verdicts")]


def _code_lists(plan: Plan) -> list[str]:
    """At which level code lists will be counted."""
    lines = [line for each in plan.code_lists for line in textwrap.wrap(described(each), 100)]
    return [f"{head:10} {line}" for head, line in zip(["Codes", *[""] * len(lines)], lines, strict=False)]


def _rows(plan: Plan) -> list[str]:
    """How the rows will be held."""
    if plan.rows is None:
        return []
    held = plan.rows
    if held.engine == "spark":
        passes = "1 pass" if held.passes == 1 else f"{held.passes} passes"
        return [f"Rows       engine spark: {passes} over the rows where they lie, and one for their fingerprint"]
    disk = f"{held.scratch_megabytes:,.0f} MB on disk under TMPDIR, " if held.scratch_megabytes else ""
    over = f"{held.passed_megabytes:,.0f} MB" if held.passed_megabytes >= 1 else "less than 1 MB"
    return [f"Rows       engine {held.engine}: {disk}{held.passes} passes over {over} of codes; the file is read twice"]


def _unknown(plan: Plan) -> list[str]:
    """What a dash means, and what errors leave out, where there is one."""
    lines = []
    if plan.everybody_first:
        lines.append("Where a stratum measures no table of a kind, the error is that of everybody's model. How far its")
        lines.append("people differ from everybody is in no plan: only data could tell.")
    missing = [words for words, there in (
        ("1-way", any(s.oneway_error is None for s in plan.strata)),
        ("2-way", any(s.twoway_error is None for s in plan.strata)),
        ("noise", any(s.sigma is None for s in plan.strata)),
    ) if there]  # fmt: skip
    if missing:
        lines.append(f"-: nothing is asked that tells it ({', '.join(missing)}); see the verdict.")
    return lines


def _account(account: dict[str, Any] | None) -> list[str]:
    """What the ledger will say."""
    if account is None:
        return []
    spent, after, cap = (account[f"{key}_epsilon"] for key in ("spent", "after", "cap"))
    of = "no cap was set" if cap is None else f"of {cap:g}, {account['left_epsilon']:.6g} left"
    would = "delta is used up" if after is None else f"this fit would make it {after:.6g}"
    resumed = "it goes on with an interrupted fit, which is charged already"
    lines = [
        f"Account    {account['ledger']}: epsilon {spent:.6g} spent, {of}; {would if account['fits'] else resumed}",
    ]
    if "refused" in account:
        lines += textwrap.wrap(
            f"REFUSED without --new-account: {account['refused']}", 111, initial_indent=INDENT, subsequent_indent=INDENT
        )
    if not account["granted"]:
        lines.append("           REFUSED: fit would refuse it before reading")
    if account["largest_epsilon"] is not None:
        lines.append(f"           the largest epsilon that fits now is {account['largest_epsilon']:g}")
    return [*lines, *textwrap.wrap(account["rule"], 111, initial_indent=INDENT, subsequent_indent=INDENT)]


def _folded(head: str, text: str) -> str:
    return textwrap.fill(f"{head:10} {text}", 111, subsequent_indent=INDENT, break_long_words=False)


def _counted(plan: Plan) -> list[str]:
    """What a row counts, and what that costs beside the same budget without weights."""
    weight = plan.row_weight
    if weight is None:
        return []
    part = weight["relative_noise_factor"]
    relative = (
        f"relative to what is counted, {part:.3g} times that of the sample without weights at the same budget"
        if part is not None
        else "write mean = ... into the schema's weight, population over sample, to see what that is relative to it"
    )
    text = (
        f"every row as its {weight['column']}, at most {weight['max']:,}: the declared size and all that is released "
        f"are weighted totals; noise is {weight['max']:,} times that of counting rows; {relative}"
    )
    return [_folded("Counted", text)]


def _prior(plan: Plan) -> list[str]:
    """What the fit starts from, and what is assumed of it."""
    prior = plan.prior
    if prior is None:
        return []
    lines = []
    for table in prior.get("tables", ()):
        error = f"standard error {table['error']:.2g}" if table["error"] else "taken to be exact for its population"
        by = " x ".join(table["columns"])
        lines.append(
            _folded("Prior", f"table of {by}: {table['citation']}; {error}. Paid answers decide how far it holds")
        )
    if "rows" not in prior:
        return lines
    lacking = f", without {', '.join(prior['without'])}" if "without" in prior else ""
    dropped = f", {prior['left_out']:,} of them left out" if prior["left_out"] else ""
    noisy = f" and {prior['measurements']:,} noisy tables" if prior.get("measurements") else ""
    text = (
        f"{prior['origin']}: {prior['citation']}; {prior['rows']:,} rows{dropped}{lacking}{noisy}. Assumed to be worth "
        f"the word of {prior['worth_at_most']:,} people at most, as two samples of one population are; paid answers "
        "decide whether it is worth less"
    )
    if groups := prior.get("without_groups"):
        lines.append(_folded("", f"it has no rows of {named(groups)}: {START}"))
    return [_folded("Prior", text), *lines]


def _reserved(plan: Plan) -> str:
    if plan.everybody_first:
        return f"reserved as {plan.currency} {plan.reserved:.6g}; everybody's model first, every stratum gets the rest"
    each = "strata get what their budgets say" if plan.budgets else "every stratum gets all of it"
    return f"reserved as {plan.currency} {plan.reserved:.6g}; {each}"


def _weights(plan: Plan) -> list[str]:
    weights = plan.weights
    if weights["citation"] is None:
        return []
    worst = f" (worst source: {weights['worst']})" if "worst" in weights else ""
    lines = [f"Weights    {weights['source']}{worst}: {weights['citation']}"]
    if "by" in weights:
        names = " x ".join(weights["by"])
        lines.append(
            f"{INDENT}of {names}, which are no strata: nothing is spent on their shares, rows are drawn by them"
        )
        lines.append(f"{INDENT}the shares are compared with nothing that is measured: wrong ones are not noticed")
    if plan.weights_sigma is not None:
        guess = "even shares: guesses" if weights["prior"] is None else f"those of {weights['prior']['citation']}"
        lines.append(
            f"           each count has noise of {plan.weights_sigma:.1f} people; until then sizes here are {guess}"
        )
    if len(plan.unprotected) > 1:
        lines.append(f"           NOT PROTECTED: {', '.join(plan.unprotected[1:])}")
    return lines


def _small(plan: Plan) -> list[str]:
    small, threshold = plan.policy["small"], plan.policy["threshold"]
    if small == "keep":
        return []
    left = [s for s in plan.strata if s.small]
    done = {"merge": "merged along the hierarchy", "one-way": "given one-way tables only"}[small]
    lines = [f"Small      below public size x epsilon {threshold:g}: {done}"]
    if small == "merge" and left:
        some = ", ".join(s.stratum for s in left[:MOST]) + (f" and {len(left) - MOST:,} more" if left[MOST:] else "")
        lines.append(f"           small still, with nothing wider to merge into: {some}")
    return lines


def _merged(plan: Plan) -> list[str]:
    """Who was merged and why."""
    if not plan.merged:
        return []
    lines = []
    for merge in plan.merged:
        of = ", ".join(f"{c} {' + '.join(levels)}" for c, levels in merge["levels"].items() if len(levels) > 1)
        lines.append(f"  {merge['stratum']}: {of} ({merge['why']})")
    return ["Merged", *_ends(lines, "merges"), ""]


def _line(s: StratumPlan, width: int, *, ranged: bool, own: float | None) -> str:
    sigma = "-" if s.sigma is None else f"{s.sigma:.1f}"
    errors = f"{percent(s.oneway_error):>7} {percent(s.twoway_error):>7}"
    ends = f"{s.size_low:>8,}{s.size_high:>8,} " if s.size_low is not None and s.size_high is not None else " " * 17
    budget = "" if own is None else f" {own:>8.4g}"
    plain = "; one-way tables only" if s.one_way else ""
    name = f"{s.stratum or 'all':{width}} {s.size:>9,}{ends * ranged}{budget}"
    return f"{name} {s.rounds:>7} {s.tables:>7} {s.megabytes:>6.1f} {sigma:>8} {errors}  {s.verdict}{plain}"


def in_html(plan: Plan) -> str:
    """A plan for a notebook."""
    facts = [
        ("Budget", f"epsilon {plan.epsilon:g}, delta {plan.delta:g} ({plan.neighbours}), {_reserved(plan)}"),
        ("Weights", plan.weights["citation"] or "none"),
        ("Time", f"{about(plan.seconds)} on one core, by a rough model"),
    ]
    rows = [
        [s.stratum or "all", s.size, s.tables, math.nan if s.sigma is None else s.sigma, percent(s.oneway_error),
         percent(s.twoway_error), s.verdict]
        for s in sorted(plan.strata, key=lambda s: -s.size)[:MOST]
    ]  # fmt: skip
    heads = ["stratum", "people", "tables", "noise", "1-way", "2-way", "verdict"]
    note = "1-way, 2-way: expected error of a mean count from noise alone. print(plan) says more."
    if len(plan.strata) > MOST:
        note = f"The largest {MOST} of {len(plan.strata):,} strata; plan.strata has all. {note}"
    return panel(f"Plan of {plan.mechanism}", facts, (heads, rows), note=note)


def percent(error: float | None) -> str:
    """An error as a reader wants it."""
    if error is None:
        return "-"
    if error >= 10:
        return "> 10x"
    return f"{100 * error:.2g} %" if error < 1 else f"{100 * error:.0f} %"
