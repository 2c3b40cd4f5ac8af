"""A plan for a reader."""

from __future__ import annotations

from stratsynth.planning.foresee import Plan, StratumPlan
from stratsynth.release.summary import price_lines


def describe(plan: Plan) -> str:
    """The budget, its prices, and a line for each stratum, the largest first."""
    price = {k: "unknown" if v is None else f"{v:.4g}" for k, v in plan.prices.items()}
    reserved = f"reserved as {plan.currency} {plan.reserved:.6g}; every stratum gets all of it"
    lines = [
        f"Mechanism  {plan.mechanism}",
        f"Budget     epsilon {plan.epsilon:g}, delta {plan.delta:g} ({plan.neighbours}), {reserved}",
        *price_lines(price, plan.unit, plan.kinds, adaptive=plan.adaptive),
        f"Memory     {sum(s.megabytes for s in plan.strata):.3g} MB for answers",
        "",
    ]
    width = max(7, *(len(s.stratum) for s in plan.strata))
    lines.append(f"{'stratum':{width}} {'people':>9} {'tables':>7} {'noise':>8} {'1-way':>7} {'2-way':>7}  verdict")
    lines.extend(_line(s, width) for s in sorted(plan.strata, key=lambda s: -s.size))
    lines.append("")
    lines.append("noise: sigma of a cell. 1-way, 2-way: expected error of a mean count from noise alone.")
    return "\n".join(lines)


def _line(s: StratumPlan, width: int) -> str:
    sigma = "-" if s.sigma is None else f"{s.sigma:.1f}"
    errors = f"{percent(s.oneway_error):>7} {percent(s.twoway_error):>7}"
    return f"{s.stratum or 'all':{width}} {s.size:>9,} {s.tables:>7} {sigma:>8} {errors}  {s.verdict}"


def percent(error: float | None) -> str:
    """An error as a reader wants it."""
    if error is None:
        return "-"
    if error >= 10:
        return "> 10x"
    return f"{100 * error:.2g} %" if error < 1 else f"{100 * error:.0f} %"
