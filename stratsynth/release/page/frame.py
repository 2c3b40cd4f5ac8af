"""Report of a release, for anybody to read: the sections of all releases, and the chapters of the model's own.

From the certificate, the measurements, the schema and the model, all of which are public.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stratsynth.answers.linked import parent_squares
from stratsynth.answers.sizes import sizes_by, squares_of
from stratsynth.certificate import Certificate
from stratsynth.errors import UsageError
from stratsynth.models.base import Returns
from stratsynth.models.intervals import NORMAL_95
from stratsynth.release import limits
from stratsynth.release.coverage import coverage_line
from stratsynth.release.page import words
from stratsynth.release.page.agreement import agreement_figure, benchmark_figures
from stratsynth.release.page.ask import ask
from stratsynth.release.page.families import families
from stratsynth.release.page.measured import (
    EVERYBODY,
    GroupSize,
    GroupTable,
    Names,
    columns,
    measured,
    number_of_sums,
    sizes,
)
from stratsynth.report.numbers import Numbers, several, short
from stratsynth.report.page import Cell, Column, Figure, Page, Points, Row, Section, Table
from stratsynth.report.strip import Axis, Mark, legend
from stratsynth.schema.counted_tables import CountedTables

if TYPE_CHECKING:
    import pyarrow as pa

    from stratsynth.models import Model
    from stratsynth.schema import Schema
    from stratsynth.schema.inside import Inside

CLAIMED = "The guarantee rests in part on a claim of other people's, as stated above."
TABLES = 100
"""Largest number of kinds of measured tables that are listed."""


def release_page(
    record: Mapping[str, Any],
    measurements: pa.Table,
    schema: Schema,
    moved: Mapping[str, Any] | None = None,
    *,
    returns: Returns = Returns.ROWS,
    chapters: Callable[[Callable[[str], str]], Sequence[Section]] = lambda _: (),
    laws: Mapping[str, Inside] | None = None,
    tables: Mapping[str, pa.Table] | None = None,
) -> Page:
    """Return the Page of report.html.

    Everything in it is public already: it reads no real row, and synthetic ones of linked tables alone. It has no date
    but the certificate's.

    Args:
        record: The content of certificate.json, a mapping.
        measurements: Content of measurements.parquet, an Arrow table.
        schema: All columns.
        moved: The mapping in rules.json, if there are rules; else None.
        returns: What the release is for.
        chapters: The model's own chapters, given the names of groups: `Model.sections`.
        laws: `Inside` laws of numbers within bins, by column, where they are more than the schema's; None for none.
        tables: Synthetic tables beside the page, by name; None leaves the chapter on linked ones out.
    """
    certificate = Certificate.from_dict(record)
    linked = schema if isinstance(schema, CountedTables) else None
    squares = (
        squares_of(schema, certificate, measurements, _no_model, laws)
        if linked is None
        else parent_squares(linked, certificate, measurements)
    )
    asked = None if squares is None else ask(certificate, squares)  # before all tables are held once more
    estimates, squares = None if squares is None else sizes_by(squares), None
    names, counted, called = Names(schema, certificate), measured(measurements), words.CALLED[returns]
    counted = counted if linked is None else [table.of_slot(linked.row_weight.most) for table in counted]
    sized = sizes(counted, estimates) if linked is None else []
    own, by = chapters(names.group), certificate.strata.by
    drawn = [] if linked is None or tables is None else families(linked.linked, tables, certificate)
    nearer = [*(["Ask"] if asked else []), *(["the sizes of groups"] if sized else [])]
    compared = agreement_figure(certificate, names.group)
    several_rows = (
        []
        if isinstance(certificate.unit, str) or certificate.unit.tables
        else [("Several rows each", f"The guarantee protects each {words.unit(certificate)}, with all of its rows.")]
    )
    sections = [
        _promise(certificate),
        *drawn,
        Section(
            "groups",
            "The groups",
            facts=list(words.group_facts(certificate, names.group)),
            figures=[
                *benchmark_figures(certificate),
                *([] if compared is None else [compared]),
                *([_sizes(sized, names)] if sized else []),
            ],
        ),
        *([] if asked is None else [asked]),
        *own,
        Section("limits", "What is not protected", facts=[*limits.limits(certificate).items(), *several_rows]),
        *([columns(counted, names, schema, coverage_line(certificate.measured), nearer)] if sized or not own else []),
        _made(certificate, counted, number_of_sums(measurements), moved),
        Section("cite", "How to cite", quotes=words.citation(certificate, returns)),
    ]
    return Page(
        title=(certificate.called and certificate.called.title) or called.title,
        subtitle=f"Released {certificate.created}, mechanism {certificate.mechanism.name}"
        f"{' by ' + ' and '.join(by) if by else ''}, epsilon {certificate.guarantee.epsilon:g}",
        lead=_lead(certificate, sized, names, called),
        sections=sections,
        warnings=words.warnings(certificate),
        made_with=f"Made by stratsynth {certificate.software.stratsynth} from {called.files} beside this file, which "
        "hold all of its figures. The page is one file and loads no other.",
    )


def _lead(certificate: Certificate, sized: list[GroupSize], names: Names, called: words.Called) -> list[str]:
    """Return a list of sentences to open a certificate's page: the promise, and how well the groups `sized` are known.

    `sized` is a list of `GroupSize`; `names`, a `Names`, names groups for readers; `called` has words for the kind of
    release.
    """
    lead = [
        *words.protected(certificate),
        f"{called.about} {CLAIMED if certificate.unverified else called.made}",
        (
            f"The promise has two numbers, epsilon {certificate.guarantee.epsilon:g} and delta "
            f"{certificate.guarantee.delta:g}; their meaning, and what is not protected, is said below."
        ),
    ]
    if counted := words.weighted(certificate):
        linked = not isinstance(certificate.unit, str) and certificate.unit.tables is not None
        lead.append(f"{counted[:1].upper()}{counted[1:]}." if linked else f"Counted is {counted}.")
    if certificate.public_columns:
        lead.insert(
            1,
            "These statements are about the protected columns alone: values of the other columns may be in "
            "the release unchanged, as stated above.",
        )
    groups = [s for s in sized if s.group != EVERYBODY]
    if groups:
        blurred = [s for s in groups if s.value < 4 * NORMAL_95 * s.cell]
        least = min(groups, key=lambda s: s.value)
        few = (
            f"fewer than {least.fewer:,.0f} records, at 95 per cent"
            if least.fewer
            else f"about {least.value:,.0f} records"
        )
        lead.append(
            f"{len(groups)} groups were measured one by one. A count of a group is off by up to about "
            f"{short(NORMAL_95 * max(s.cell for s in groups))} in 95 of 100 cases, however large the group is"
            + (
                f"; in {several(len(blurred), 'group')} that is more than a quarter of all its people, so only coarse "
                f"facts about {'it' if len(blurred) == 1 else 'them'} hold. The smallest of them, "
                f"{names.group(least.group)}, has {few}."
                if blurred
                else ", which is less than a quarter of each of them."
            )
        )
    others = words.groups(certificate) - len(groups)
    if groups and others > 0:
        lead.append(
            f"In {several(others, 'more group')} no single column was measured: the release's figures for "
            f"{'it' if others == 1 else 'them'} come from everybody, or from tables of several columns."
        )
    return lead


def _promise(certificate: Certificate) -> Section:
    """Return the Section on a certificate's guarantee: prices under each notion of neighbour, in words and a table."""
    prices = [(words.STEPS.get(step, step), price) for step, price in words.steps_of(certificate).items()]
    scale = Axis.over([price for _, price in prices])
    what = words.unit(certificate)
    rows: list[Row] = [
        [
            step,
            Points(step, [Mark("epsilon", price, series=1)], price, joined=True),
            Cell(words.price(certificate.neighbours, price), price),
        ]
        for step, price in prices
    ]
    table = Table(
        f"How well this release hides of one {what} whether ... The promise is about the first line"
        f"{' (' + certificate.neighbours + ')' if certificate.neighbours != 'add-remove' else ''}; "
        "the others follow from the same noise. Larger numbers hide less.",
        [
            Column(f"A reader wonders, of one {what}, whether", "text"),
            Column("", "picture", scale),
            Column("epsilon"),
        ],
        rows,
    )
    return Section(
        "promise",
        "What is promised",
        text=words.promise(certificate),
        figures=[
            Figure(
                "The same promise for other questions",
                table=table,
                numbers=Numbers("prices", ["difference", "epsilon"], prices),
            )
        ],
    )


def _sizes(sized: list[GroupSize], names: Names) -> Figure:
    """Return a Figure, a row for each `GroupSize` in `sized`, the largest first: size, noise of one count beside it.

    `names`, a `Names`, names groups for readers.
    """
    ordered, counted = sorted(sized, key=lambda s: -s.value), names.counted
    scale = Axis.over([max(s.value, 1.0) for s in ordered] + [NORMAL_95 * s.cell for s in ordered], log=True)
    rows: list[Row] = []
    numbers = []
    for s in ordered:
        low, high = s.value - NORMAL_95 * s.sigma, s.value + NORMAL_95 * s.sigma
        noise = NORMAL_95 * s.cell
        ratio = noise / s.value if s.value > 0 else None
        marks = [
            Mark(counted, max(s.value, scale.low), max(low, scale.low), high, 1),
            Mark("noise of one count, plus or minus", noise, series=-1),
        ]
        worth = ratio if ratio is None or ratio < 1 else "over 100 %"
        rows.append(
            [
                names.group(s.group),
                Points(names.group(s.group), marks, s.value),
                round(s.value) if s.fewer is None else Cell(f"fewer than {s.fewer:,.0f}", s.value),
                NORMAL_95 * s.sigma,
                noise,
                worth,
            ]
        )
        numbers.append([s.group or "everybody", s.value, low, high, s.cell])
    table = Table(
        "Sizes are estimates from all noisy tables together, at 95 per cent; “fewer than” stands where noise alone "
        "could have made the number. The last column is how much of the group the noise of a single count can be. "
        "Where it is large, trust totals of many cells, not single ones.",
        [
            Column("Group", "text"),
            Column(f"{counted}, and noise of one count", "picture", scale),
            Column(f"{counted}, about"),
            Column("give or take"),
            Column("one count is off by up to"),
            Column("of the group", "share"),
        ],
        rows,
    )
    return Figure(
        "How large the groups are, and how large the noise",
        "Noise does not shrink with a group. “Up to” means that the noise of a count is no larger in 95 of 100 draws. "
        "The scale is logarithmic.",
        table,
        legend=legend([(f"{counted} in the group", 1), ("noise of one count", -1)]),
        numbers=Numbers("group sizes", ["group", counted, "low", "high", "sigma of one count"], numbers),
    )


def _made(certificate: Certificate, tables: list[GroupTable], sums: int, moved: Mapping[str, Any] | None) -> Section:
    """Return the Section "How it was made" of a certificate: facts, and a Figure of each `GroupTable`'s noise, if any.

    Facts are mechanism, charges, account, schema, code lists, accounting, software; the number `sums` of noisy sums,
    and the mapping `moved` of rules.json, None without rules.
    """
    facts = [
        *words.made_facts(certificate),
        ("Accounting", f"{words.accounting(certificate)}; {certificate.composition}"),
        ("Software", ", ".join(f"{name} {version}" for name, version in certificate.software.to_dict().items())),
    ]
    if sums:
        facts.append(("Sums", f"{several(sums, 'noisy sum')}, in measurements.parquet with the noise of each."))
    if moved is not None:
        facts.append(("Rules", f"Combinations that cannot occur: {words.rules_line(moved)}."))
    noun = "records" if certificate.row_weight is None else "people"
    return Section("made", "How it was made", facts=facts, figures=[_cliques(tables, noun)] if tables else [])


def _cliques(tables: list[GroupTable], counted: str) -> Figure:
    """Return a Figure of `tables`, a list of `GroupTable`: by set of columns groups, cells, least and largest sigma.

    `counted` is the noun for what is counted.
    """
    found: dict[str, list[GroupTable]] = {}
    for t in tables:
        found.setdefault(t.clique, []).append(t)
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0].count(","), item[0]))
    rows = [
        (
            clique.replace(",", ", ") or f"(number of {counted})",
            len(several_),
            max(t.cells for t in several_),
            min(t.sigma for t in several_),
            max(t.sigma for t in several_),
        )
        for clique, several_ in ordered[:TABLES]
    ]
    hidden = len(ordered) - len(rows)
    return Figure(
        "Which tables were measured",
        table=Table(
            "Sigma is the standard deviation of the noise of a count."
            + (f" {hidden} more in measurements.parquet." if hidden > 0 else ""),
            [Column("Columns", "text"), Column("in groups"), Column("cells"), Column("least sigma"), Column("largest")],
            rows,
        ),
        numbers=Numbers("tables measured", ["columns", "groups", "cells", "least sigma", "largest sigma"], rows),
    )


def _no_model() -> Model:
    raise UsageError("a page asks tables alone.")
