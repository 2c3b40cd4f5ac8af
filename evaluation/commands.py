"""Commands that the evaluation adds to `stratsynth`. Nothing heavy is imported before one of them runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stratsynth.cli.options import AsJson, Select, TableName
from stratsynth.cli.terminal import echo, print_json

if TYPE_CHECKING:
    from stratsynth.data.sources import Source
    from stratsynth.recipes.rows_argument import RowsArgument
    from stratsynth.report.page import Page
    from stratsynth.schema.linked import LinkedSchema


def register(app: typer.Typer) -> None:
    """Add the evaluation's commands to `app`; the core calls this by the entry-point group `stratsynth.commands`."""
    app.command()(audit)
    app.command()(compare)
    app.command()(demo)
    app.command()(evaluate)
    app.command()(lens)


def demo(
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where to put everything; by default a new folder here.")
    ] = None,
    rows: Annotated[int, typer.Option(metavar="N", min=100, help="How many people to simulate.")] = 50_000,
) -> None:
    """Run the whole job on the built-in census: plan, a vanilla and a stratified fit, the error of each group."""
    from stratsynth.evaluation.evaluations.demo import run_demo

    run_demo(out, rows, echo)


def audit(
    mechanism: Annotated[
        str | None,
        typer.Argument(
            metavar="[MECHANISM]",
            help="An installed mechanism; without it, the questions that all mechanisms build on.",
        ),
    ] = None,
    long: Annotated[bool, typer.Option("--long", help="Minutes instead of seconds.")] = False,
    as_json: AsJson = False,
) -> None:
    """Try to catch the noise being too small. Exit code 1 if it was, or if a broken control was missed.

    Reads no data of yours: the tables are made for the purpose.
    """
    from stratsynth.evaluation.audit import audit_primitives
    from stratsynth.evaluation.audit.mechanism import audit_registered

    report = audit_primitives(long=long) if mechanism is None else audit_registered(mechanism, long=long)
    if as_json:
        print_json(report.to_dict())
    else:
        echo(report.to_text())
    if not report.passed:
        raise typer.Exit(1)


def evaluate(
    real: Annotated[
        Path,
        typer.Option(
            metavar="R",
            help="The private table: a file, a folder of .parquet files, a DuckDB database, or a recipe, for the rows "
            "of its [data].",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="A new folder, not in a release.")],
    schema: Annotated[
        Path | None,
        typer.Option(metavar="SCHEMA", help="The schema file of both tables; by default that of the recipe in R."),
    ] = None,
    child: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Of two linked tables: the child's file, where R is the parent's."),
    ] = None,
    synthetic: Annotated[
        Path | None, typer.Option(metavar="S", help="The synthetic table, or the release folder it is in.")
    ] = None,
    table: TableName = None,
    query: Select = None,
    predictions: Annotated[
        Path | None,
        typer.Option(
            metavar="P",
            help="Instead of --synthetic: the output of `predict` for these rows, or a release that predicts.",
        ),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="COLUMN,...", help="The columns whose crossing makes the groups.")
    ] = None,
    holdout: Annotated[
        Path | None, typer.Option(metavar="H", help="Real rows that the release was not fitted to: a file or a recipe.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="With --holdout or --predictions: a column, or employment or income."),
    ] = None,
    positive: Annotated[
        str | None, typer.Option(metavar="LEVEL,...", help="The levels of the target that count as 1.")
    ] = None,
    above: Annotated[
        float | None, typer.Option(metavar="X", help="The number above which the target counts as 1.")
    ] = None,
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=X,...",
            help="Numbers, the shares above which are compared, as PINCP=100000,200000; by default the schema's last "
            "three starts of a bin.",
        ),
    ] = None,
    area: Annotated[str | None, typer.Option(metavar="COLUMN", help="A column of areas, to score each.")] = None,
    quasi: Annotated[
        str | None,
        typer.Option(metavar="COLUMN,...", help="Quasi-identifiers, which a neighbour may know, for matches."),
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=S", help="Another release, table or predictions to compare with, as vanilla=DIR."),
    ] = None,
    recipe: Annotated[
        Path | None,
        typer.Option(
            metavar="RECIPE",
            help="The recipe of the release: splits each group's error into its causes, by one more fit.",
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many columns a marginal has.")] = 3,
    cliques: Annotated[
        int, typer.Option(min=1, help="The largest number of marginals, the same ones every time.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="The seed of models and of their intervals.")] = 0,
    marginals_only: Annotated[
        bool,
        typer.Option(
            "--marginals-only", help="The error of marginals alone, from counts: for tables larger than memory."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """INTERNAL: the error of a release in every group, beside baselines. Reads the private table, charges nothing."""
    from stratsynth.errors import UsageError
    from stratsynth.evaluation.evaluations import card, output
    from stratsynth.evaluation.evaluations.evaluate import evaluate as evaluated
    from stratsynth.evaluation.linked.files import private_pair
    from stratsynth.recipes.rows_argument import rows_of

    output.refuse_output(out)
    columns, levels, known = (text.split(",") if text else None for text in (by, positive, quasi))
    others = dict(_named_place(text) for text in beside or [])
    limits = dict(_thresholds(text) for text in threshold or [])
    if (synthetic is None) == (predictions is None):
        raise UsageError("evaluate: give --synthetic for a table of rows, or --predictions for predictions.")
    rest = {
        "--predictions": predictions,
        "--holdout": holdout,
        "--target": target,
        "--positive": positive,
        "--above": above,
        "--threshold": threshold or None,
        "--area": area,
        "--quasi": quasi,
        "--beside": beside or None,
        "--recipe": recipe,
    }
    needless = [name for name, value in rest.items() if value is not None]
    if (pair := private_pair(real, child, schema)) is not None:
        if needless or marginals_only or table or query:
            named = [*needless, *(["--marginals-only"] if marginals_only else []), "--table and --query"]
            raise UsageError(f"evaluate: {named[0]} is of one table; leave it out for two linked ones.")
        assert synthetic is not None  # noqa: S101 - as --predictions is not there
        _evaluate_linked(pair, synthetic, by, out, seed=seed, as_json=as_json)
        return
    if marginals_only and needless:
        raise UsageError(f"evaluate: {needless[0]} needs the rows; leave it or --marginals-only out.")
    given = rows_of(real, table, query)
    schema = schema or given.schema
    if schema is None:
        raise UsageError("evaluate: name the schema of both tables with --schema.")
    if marginals_only:
        assert synthetic is not None  # noqa: S101 - as --predictions is not there
        if (synthetic / "certificate.json").is_file():
            _weighed_alike(schema, synthetic)
        _evaluate_marginals(given, _rows(synthetic), schema, out, columns, k=k, cliques=cliques, as_json=as_json)
        return
    if predictions is not None:
        if limits:
            raise UsageError("evaluate: --threshold is of synthetic rows; leave it or --predictions out.")
        if target is None:
            raise UsageError("evaluate: name the column that was predicted with --target.")
        _evaluate_predictions(
            given.source,
            predictions,
            schema,
            target,
            out,
            columns,
            positive=levels,
            above=above,
            beside=others,
            seed=seed,
            as_json=as_json,
        )
        return
    assert synthetic is not None  # noqa: S101 - one of the two is there
    _weighed_alike(schema, synthetic, *others.values())
    found = evaluated(
        given.source,
        _table(synthetic),
        schema,
        columns,
        beside={name: _table(place) for name, place in others.items()},
        k=k,
        cliques=cliques,
        holdout=None if holdout is None else rows_of(holdout).source,
        target=target,
        positive=levels,
        above=above,
        thresholds=limits or None,
        area=area,
        quasi=known,
        seed=seed,
        recipe=recipe,
        release=synthetic if recipe is not None and synthetic.is_dir() else None,
        intervals=synthetic if synthetic.is_dir() else None,
    )
    files = output.write(found, out, certificate=_certificate(synthetic))
    frames = {"groups": card.disparity_card(found)} | ({} if found.numbers is None else {"numbers": found.numbers})
    _tell(found, found.page("this release", None), frames, files, out, as_json=as_json)


def compare(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe, perhaps with a section [compare].")],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="DIR", help="A new folder, or the folder of the same comparison, which goes on."
        ),
    ],
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that fit at a time; by default what the recipe says, or 1.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit and score mechanisms x stratifications x epsilons, several times each; resumes.

    With a target and a hold-out it trains models on every table, audits mechanisms that predict beside them, and says
    which road to a prediction is better, for whom, at which epsilon.

    It is for research on data declared public. On private data every fit is charged to the recipe's ledger, and the
    output is INTERNAL.
    """
    from stratsynth.evaluation.comparisons import compare_text
    from stratsynth.evaluation.comparisons.compare import compare as compared
    from stratsynth.report.text import render

    with compare_text.progress() as tick:
        frame = compared(recipe, out, workers=workers, tick=tick, note=lambda text: typer.echo(text, err=True))
    echo(compare_text.document(frame, out) if as_json else render(compare_text.comparison_summary(frame, out)))


def lens(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe of synthetic rows or of a predictor.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="A new folder, not in a release.")],
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN,...", help="The columns whose crossing makes the groups; by default the recipe's."
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option(min=2, max=1000, help="The number of fits; their spread makes the intervals.")
    ] = 5,
    on: Annotated[
        Path | None,
        typer.Option(
            metavar="H", help="Rows to judge predictions on, a file or a recipe; by default the recipe's own."
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column to predict, if the recipe names none.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="For post-processing and drawn rows.")] = 0,
    as_json: AsJson = False,
) -> None:
    """INTERNAL: how much each group loses under a recipe, and why: clipping, noise, misfit, weights, few rows.

    Fits the recipe several times, with noise and without, and charges nothing: none of its output may be released.
    """
    from stratsynth.evaluation.evaluations import output
    from stratsynth.evaluation.lens.scores import lens as looked
    from stratsynth.recipes.rows_argument import rows_of

    output.refuse_output(out)
    columns, rows = by.split(",") if by else None, None if on is None else rows_of(on).source
    found = looked(recipe, columns, repeats=repeats, on=rows, target=target, seed=seed)
    files = output.write(found, out)
    _tell(found, found.page("this recipe", None), {"lens": found.lens}, files, out, as_json=as_json)


def _table(place: Path) -> Path:
    """Return the path `place` itself, a file; of a release folder, that of its table: UsageError without rows."""
    from stratsynth.errors import UsageError

    if (place / "certificate.json").is_file() and not (place / "synthetic.parquet").exists():
        raise UsageError(
            f"{place} has no table of synthetic rows. If it predicts, name it with --predictions; of two linked tables "
            "name the recipe with --real, or the child's file with --child."
        )
    return place / "synthetic.parquet" if place.is_dir() else place


def _rows(place: Path) -> Path:
    """Return the path `place` itself, a file or folder of Parquet; of a release folder, that of the table in it."""
    return _table(place) if (place / "certificate.json").is_file() else place


def _evaluate_marginals(
    real: RowsArgument,
    synthetic: Path,
    schema: Path,
    out: Path,
    by: list[str] | None,
    *,
    k: int,
    cliques: int,
    as_json: bool,
) -> None:
    """Score k-way marginals of the file `synthetic` against a `RowsArgument` by groups of `by`; write to `out`, print.

    At most `cliques` marginals of the schema are scored; `as_json` prints JSON.
    """
    from stratsynth.evaluation.evaluations import output
    from stratsynth.evaluation.evaluations.marginals_only import MarginalScores

    found = MarginalScores.of(real.source, synthetic, schema, by, k=k, cliques=cliques, engine=real.engine)
    files = output.write(found, out, called="these rows")
    _tell(found, found.page("these rows", None), {"workload": found.workload}, files, out, as_json=as_json)


def _evaluate_linked(
    pair: tuple[Path, Path, LinkedSchema], synthetic: Path, by: str | None, out: Path, *, seed: int, as_json: bool
) -> None:
    """Score the linked tables in the folder `synthetic` against two files, grouped by the child's column `by`.

    `pair` is (parents' file, children's file, LinkedSchema). Results are written to `out`, and printed; `as_json` as
    JSON. Queries and samples are drawn by `seed`.
    """
    from stratsynth.evaluation.evaluations import output
    from stratsynth.evaluation.linked.evaluation import evaluate_linked
    from stratsynth.evaluation.linked.files import read_pair, released_pair
    from stratsynth.evaluation.linked.rows import LinkedColumns

    *files, linked = pair
    LinkedColumns.of(linked, by)  # refuses a group that is none before anything is read
    made = released_pair(synthetic, linked)
    found = evaluate_linked(read_pair(*files), made, linked, by, seed=seed)
    written = output.write(found, out)
    _tell(found, found.page("this release", None), {"means": found.means}, written, out, as_json=as_json)


def _evaluate_predictions(
    real: Source,
    predictions: Path,
    schema: Path,
    target: str,
    out: Path,
    by: list[str] | None,
    *,
    as_json: bool,
    **settings: Any,
) -> None:
    """Score predictions of the column `target` for a `Source`, `real`, by groups; write to the new folder `out`; print.

    `predictions` are a file or a release folder; `schema` is of the rows, `by` names the groups' columns, `settings`
    are those of `evaluate_predictions`; `as_json` prints JSON.
    """
    from stratsynth.evaluation.evaluations import output
    from stratsynth.evaluation.evaluations.predictions import evaluate_predictions

    found = evaluate_predictions(real, predictions, schema, target, by, **settings)
    called = "this release" if predictions.is_dir() else "these predictions"
    files = output.write(found, out, called=called, certificate=_certificate(predictions))
    _tell(found, found.page(called, None), {"rates": found.rates}, files, out, as_json=as_json)


def _tell(
    found: Any, page: Page, frames: Mapping[str, Any], files: Sequence[Path], out: Path, *, as_json: bool
) -> None:
    """Print scores `found`: the text of `page` and the folder `out`; or as JSON of facts, `frames` and `files`.

    `frames` maps names to frames, `files` are paths; `as_json` decides.
    """
    from stratsynth.report.text import render

    if as_json:
        rows = {name: json.loads(frame.to_json(orient="records")) for name, frame in frames.items()}
        document = {"INTERNAL": True, "facts": dict(found.facts), **rows, "files": [str(f) for f in files]}
        print_json(document)
        return
    echo(render(page))
    echo(f"\nTo read: {out / 'report.html'}. Every figure is in {out}, in CSV, Parquet and evaluation.json.")


def _named_place(text: str) -> tuple[str, Path]:
    from stratsynth.errors import UsageError

    name, equals, place = text.partition("=")
    if not (name and equals and place):
        raise UsageError(f"--beside {text!r} is not NAME=RELEASE, as in vanilla=releases/vanilla.")
    return name, Path(place)


def _thresholds(text: str) -> tuple[str, list[float]]:
    from stratsynth.errors import UsageError
    from stratsynth.schema.text import number

    name, equals, given = text.partition("=")
    numbers = [number(part) for part in given.split(",")]
    if not (name and equals) or None in numbers:
        raise UsageError(f"--threshold {text!r} is not COLUMN=NUMBER,..., as in PINCP=100000,200000.")
    return name, [one for one in numbers if one is not None]


def _weighed_alike(schema: Path, *releases: Path) -> None:
    """Raise UsageError on `releases`, folders, whose certificate has other row weights than the `schema` file.

    A path that is no release folder passes.
    """
    from stratsynth.errors import UsageError
    from stratsynth.schema import Schema

    told = Schema.load(schema).row_weight.column
    for place in releases:
        record = _certificate(place)
        if record is None:
            continue
        stated = (record.get("row_weight") or {}).get("column")
        if stated != told:
            says = [f"counts rows as {name} says" if name else "counts every row 1" for name in (stated, told)]
            raise UsageError(
                f"evaluate: the release {place} {says[0]}, and {schema} {says[1]}: take the schema of the release, "
                "with or without its `weight`."
            )


def _certificate(place: Path) -> dict[str, Any] | None:
    """Return the certificate of a release as a dict, if `place` is its folder; None if `place` is a file."""
    from stratsynth.release.certificate import read_certificate

    return read_certificate(place) if place.is_dir() else None
