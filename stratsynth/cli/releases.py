"""The commands that judge or show a release: `certificate` and `verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stratsynth.cli.options import AsJson, ReleaseFolder
from stratsynth.cli.terminal import echo, print_json


def certificate(
    release: ReleaseFolder,
    as_json: AsJson = False,
    registry: Annotated[
        bool,
        typer.Option(
            "--registry", help="Print the record for the OpenDP deployments registry, as YAML. Needs the rest:"
        ),
    ] = False,
    name: Annotated[str | None, typer.Option(help="Registry: the name of the data product.")] = None,
    slug: Annotated[
        str | None, typer.Option(help="Registry: the end of the record's address, such as city-survey-2024.")
    ] = None,
    curator: Annotated[
        list[str] | None, typer.Option(help="Registry: who publishes the data product; repeat for more.")
    ] = None,
    use: Annotated[str | None, typer.Option(help="Registry: what it is meant to be used for.")] = None,
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


def verify(
    release: ReleaseFolder,
    ledger: Annotated[Path | None, typer.Option(metavar="FILE", help="The ledger that the fit was charged to.")] = None,
    prior: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help="A file the prior was read from, or the release it was; repeat for more."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Work a release's guarantee out again, and check its files. Exit code 0: it holds; 1: it does not."""
    from stratsynth.verifying import verify as verified

    verdict = verified(release, ledger, prior or ())
    if as_json:
        print_json(verdict.to_dict())
    else:
        echo(verdict.to_text())
    if not verdict.ok:
        raise typer.Exit(1)
