"""The commands about schemas: `schema draft` and `schema check`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from stratsynth.cli.options import AsJson, Select, TableName
from stratsynth.cli.terminal import echo, print_json
from stratsynth.errors import UsageError
from stratsynth.report.page import Column, Figure, Page, Row, Section, Table
from stratsynth.report.text import render

schema_app = typer.Typer(
    help="INTERNAL: draft a schema from private data, or check data against a schema. Not for publication.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

STAMP = "Computed from the data without a charge; not for publication."
"""Words that a page of private data is stamped with."""

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="A .csv, .csv.gz, .parquet, .feather or .arrow file, a folder of .parquet files, a DuckDB database, or a "
        "recipe, for the rows of its [data].",
    ),
]


@schema_app.command("draft")
def schema_draft(
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The schema file to write.")],
    table: TableName = None,
    query: Select = None,
) -> None:
    """INTERNAL: write a draft schema from private data, for a person to review before anything is spent."""
    draft_schema(data, out, table, query)
    echo(
        f"INTERNAL: draft written to {out}. Its levels and bounds were read from the data: correct them from "
        "public knowledge,\nthen set `reviewed_by`. Nothing can be fitted with the draft before that."
    )


@schema_app.command("check")
def schema_check(
    data: Data,
    schema: Annotated[Path, typer.Option(metavar="SCHEMA", help="A schema file.")],
    as_json: AsJson = False,
    table: TableName = None,
    query: Select = None,
    child: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Of two linked tables: the child's file, where DATA is the parent's."),
    ] = None,
) -> None:
    """INTERNAL: count and name the values that a schema does not know, and everything else that a fit leaves out.

    These are lines of a CSV file that are no records, rows beyond a unit's max_rows, rows without a unit, and weights
    that are cut or missing. Exit code 1: more than 1 % of the records would be lost, have in one column a value that
    the schema does not know, or break a rule. If a column of the schema is absent, it shows the header instead and
    exits with 2.
    """
    if child is not None:
        echo_linked(data, child, schema, as_json=as_json)
        return
    found = check_schema(data, schema, table, query)
    if as_json:
        print_json(found)
    else:
        echo(render(check_page(found)))
    if "absent" in found:
        raise typer.Exit(2)
    if not found["ok"]:
        raise typer.Exit(1)


def echo_linked(parent: Path, child: Path, schema: Path, *, as_json: bool) -> None:
    """INTERNAL: print how files `parent`, `child` fit a schema, perhaps `as_json`; exit code 1 if over 1 % is lost.

    Where a column is absent, the headers are printed instead, and the exit code is 2.
    """
    from stratsynth.data.linked_check import check_linked
    from stratsynth.data.sources import open_source
    from stratsynth.schema.linked import LinkedSchema

    linked, sources = LinkedSchema.load(schema), (open_source(parent), open_source(child))
    lacking = _lacking(linked, [source.columns() for source in sources])
    if lacking:
        if as_json:
            print_json({"INTERNAL": True, "ok": False, "tables": lacking})
        else:
            lead = [f"{table}: {text}" for table, found in lacking.items() for text in check_page(found).lead]
            swapped = len(lacking) > 1 and not _lacking(linked, [source.columns() for source in sources[::-1]])
            hint = [f"The files are in the wrong order: that of {linked.names[0]} comes first."] if swapped else []
            echo(render(Page("", lead=[*lead, *hint], internal=STAMP)))
        raise typer.Exit(2)
    found = check_linked(linked, *sources)
    if as_json:
        print_json(found.to_dict())
    else:
        echo(render(Page("", lead=found.lines, internal=STAMP)))
    if not found.ok:
        raise typer.Exit(1)


def _lacking(linked: Any, headers: Sequence[Sequence[str]]) -> dict[str, dict[str, Any]]:
    """INTERNAL: return {table: {absent, header}} of tables, in order, whose header lacks columns or has one twice."""
    wanted = (*linked.parent.names, linked.key), (*linked.child.names, *linked.beside)
    found = {
        table: {"absent": [name for name in names if list(header).count(name) != 1], "header": list(header)}
        for table, names, header in zip(linked.names, wanted, headers, strict=True)
    }
    return {table: facts for table, facts in found.items() if facts["absent"]}


def draft_schema(data: Path, out: Path, table: str | None = None, query: str | None = None) -> None:
    """INTERNAL: write a draft schema of `data` (or its table, query) to the new file `out`; print warnings.

    UsageError if `out` exists, or lies in a release folder.
    """
    from stratsynth.data.draft import drafted, refuse_release_folder
    from stratsynth.recipes.rows_argument import rows_of
    from stratsynth.schema.weight_names import weight_warnings

    refuse_release_folder(out)
    if out.exists():
        raise UsageError(f"{out} exists already; a draft never overwrites a schema.")
    made = drafted(rows_of(data, table, query).source)
    out.write_text(made.to_toml(), encoding="utf-8")
    for text in weight_warnings(made.schema):
        typer.echo(f"stratsynth: warning: {text}", err=True)


def check_schema(data: Path, schema: Path, table: str | None = None, query: str | None = None) -> dict[str, Any]:
    """INTERNAL: return a dict of numbers of rows and values of `data` (its `table`, `query`) unfit to a schema."""
    from stratsynth.data.draft import check
    from stratsynth.recipes.rows_argument import rows_of
    from stratsynth.schema import Schema
    from stratsynth.schema.counted_tables import CountedTables

    described = Schema.load(schema)
    if isinstance(described, CountedTables):
        raise UsageError(f"{schema} describes two linked tables: name the child's file with --child.")
    return check(described, rows_of(data, table, query).source).to_dict()


def check_page(found: Mapping[str, Any]) -> Page:
    """Return the Page, stamped INTERNAL, of the mapping `found` of `check_schema`: rows and values that do not fit."""
    if "absent" in found:
        header = ", ".join(found["header"])
        printable = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in header)
        from stratsynth.data.lost import absent_words

        lead = [
            f"Not in the data, or more than once: {', '.join(found['absent'])}.",
            *absent_words(found["absent"], found["header"]),
            f"The data's header: {printable}",
        ]
        return Page("", lead=lead, internal=STAMP)
    lead = [
        f"{found['rows']:,} rows, of which {found['left_out']:,} would be left out by the schema's policy.",
        *_lines_left_out(found.get("lines_left_out", {})),
        *_units(found.get("unit")),
        *_weighed(found.get("weight")),
        found["verdict"],
        *_rules(found.get("rules", ()), found["rows"]),
        *(f"WARNING: {text}" for text in found.get("warnings", ())),
    ]
    rows: list[Row] = [
        [name, column["outside"], column["clipped"], column["missing"], _values(column), _first(column["unseen"])]
        for name, column in found["columns"].items()
    ]
    heads = [
        Column("column", "text"),
        *map(Column, ("outside", "clipped", "missing")),
        Column("outside are", "text"),
        Column("levels never seen", "text"),
    ]
    table = Table("", heads, rows, most=len(rows))
    return Page("", lead=lead, sections=[Section("columns", "", figures=[Figure("", table=table)])], internal=STAMP)


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "") or "–"


def _values(column: Mapping[str, Any]) -> str:
    """Return text on a column's dict in a check: unknown values with their numbers of rows; a dash without any."""
    named = [f"{value!r} in {count:,}" for value, count in column["unknown"].items()]
    more = column["outside"] - sum(column["unknown"].values())
    return ", ".join(named) + (f" and others in {more:,}" if more > 0 and named else "") or "–"


def _rules(rules: Sequence[Mapping[str, Any]], rows: int) -> list[str]:
    """Return a list of lines on `rules`, dicts of a rule and the rows that break it, with remedy; [] without rules."""
    from stratsynth.data.lost import broken_lines

    return broken_lines([(rule["rule"], rule["rows"]) for rule in rules], rows) if rules else []


def _lines_left_out(lines: Mapping[str, int]) -> list[str]:
    """Return a list of sentences on lines of a CSV file that are no records, from a mapping of numbers; [] if none."""
    said = []
    if lines.get("quotes"):
        said.append(
            f"{lines['quotes']:,} more lines are left out, since their quotes do not close. A field with a line break "
            "cuts its record into pieces, and each piece that is a whole line counts as a record. Remove the line "
            "breaks, or write Parquet."
        )
    if lines.get("fields"):
        said.append(
            f"{lines['fields']:,} more lines are left out, as their number of fields is not that of the header."
        )
    return said


def _weighed(weight: Mapping[str, float] | None) -> list[str]:
    """Return a list of one sentence on row weights, from the mapping of their sums and numbers; [] for None."""
    if weight is None:
        return []
    cut = f"{weight['cut']:,} weights are above max (the largest is {weight['largest']:,.6g}) and count as max"
    if weight["people_cut"]:
        part = 100 * weight["people_cut"] / (weight["total"] + weight["people_cut"])
        cut += f", so that the release lacks {weight['people_cut']:,} people ({part:.2g} %)"
    none = f"{weight['missing']:,} are missing or no number, and {weight['nothing']:,} rows count 0."
    return [f"The weights of all rows add up to {weight['total']:,}; {cut}, {none}"]


def _units(unit: Mapping[str, int] | None) -> list[str]:
    """Return a list of one sentence on units of several rows, from the mapping of their numbers; [] for None."""
    if unit is None:
        return []
    beyond, without = f"{unit['beyond']:,} rows beyond a unit's max_rows", f"{unit['without']:,} rows without a unit"
    return [f"{unit['units']:,} units; {beyond} and {without} are left out."]
