"""The commands that judge, show or rake a release: `certificate`, `cite`, `verify` and `benchmark`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stratsynth.cli.options import AsJson, NewFolder, NewRows, ReleaseFolder, RowSeed
from stratsynth.cli.terminal import echo, print_json


def certificate(
    release: ReleaseFolder,
    as_json: AsJson = False,
    registry: Annotated[
        bool,
        typer.Option(
            "--registry", help="Print the record for the OpenDP deployments registry, as YAML; needs the options below."
        ),
    ] = False,
    name: Annotated[str | None, typer.Option(help="Registry: the name of the data product.")] = None,
    slug: Annotated[
        str | None, typer.Option(help="Registry: the end of the record's address, such as city-survey-2024.")
    ] = None,
    curator: Annotated[
        list[str] | None, typer.Option(help="Registry: who publishes the data product; repeat for more.")
    ] = None,
    use: Annotated[str | None, typer.Option(help="Registry: the intended use of the data product.")] = None,
    region: Annotated[
        str | None, typer.Option(help="Registry: the region that the data describe, or whose laws apply.")
    ] = None,
    published: Annotated[
        str | None, typer.Option(metavar="YYYY-MM-DD", help="Registry: when it was published.")
    ] = None,
    author: Annotated[
        list[str] | None, typer.Option(help="Registry: who fills in this record; repeat for more.")
    ] = None,
    sector: Annotated[
        str | None, typer.Option(help="Registry, if wanted: Technology, Healthcare, Education, Government, ...")
    ] = None,
) -> None:
    """Show what a release guarantees, and what it does not protect."""
    from stratsynth.release.registry import Person, registry_record

    person = Person(name, slug, tuple(curator or ()), use, region, published, tuple(author or ()), sector)
    if registry:
        echo(registry_record(release, person).rstrip())
        return
    person.refuse_any()
    from stratsynth.cli.work import describe_rules
    from stratsynth.release.certificate import read_certificate
    from stratsynth.release.page.summary import summary

    record = read_certificate(release)
    if as_json:
        print_json(record)
    else:
        echo(summary(record, more=describe_rules(release)))


def cite(
    release: Annotated[
        Path | None,
        typer.Argument(
            metavar="RELEASE_DIR", help="A release folder. Without it: the software and all papers that it follows."
        ),
    ] = None,
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="bibtex; apa, a line each; or json, which is CSL-JSON.")
    ] = "bibtex",
) -> None:
    """Print the works to cite for a release: software, papers of its method, sources of its weights and prior."""
    from stratsynth.references import bibliography
    from stratsynth.release.certificate import read_certificate
    from stratsynth.release.citing import works, works_of

    echo(bibliography(works() if release is None else works_of(read_certificate(release).statement), form))


def verify(
    release: ReleaseFolder,
    ledger: Annotated[Path | None, typer.Option(metavar="FILE", help="The ledger that the fit was charged to.")] = None,
    prior: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="A file that the prior was read from, or the release that was the prior; repeat for more.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute a release's guarantee, and check its files. Exit code 0: it holds; 1: it does not."""
    from stratsynth.verifying import verify as verified

    verdict = verified(release, ledger, prior or ())
    if as_json:
        print_json(verdict.to_dict())
    else:
        echo(verdict.to_text())
    if not verdict.ok:
        raise typer.Exit(1)


def benchmark(
    release: ReleaseFolder,
    tables: Annotated[
        Path,
        typer.Argument(
            metavar="TABLES",
            help="A TOML file with a section [benchmark], such as a recipe: its tables of published totals.",
        ),
    ],
    out: NewFolder,
    rows: NewRows = None,
    seed: RowSeed = None,
) -> None:
    """Make of a release one whose rows have published totals (raking). Reads no private data, spends nothing."""
    from stratsynth.cli.work import rake_release

    number, said = rake_release(release, tables, out, rows, seed)
    echo(
        f"{number:,} rows by published totals, in {out}; nothing was charged. Publish it in place of {release}, not "
        f"beside it: both are made of the same noisy answers.\n\n{said}",
        done=f"The release in {out} is complete.",
    )
