"""Arguments and options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ReleaseFolder = Annotated[Path, typer.Argument(metavar="RELEASE_DIR", help="A release folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
NewFolder = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder of the new release.")]
NewRows = Annotated[
    int | None,
    typer.Option("-n", "--rows", metavar="N", help="Its number of rows; that of the release by default."),
]
RowSeed = Annotated[int | None, typer.Option(help="The same seed gives the same rows.")]
TableName = Annotated[
    str | None, typer.Option("--table", metavar="NAME", help="The table, if the rows are in a database.")
]
Select = Annotated[
    str | None,
    typer.Option(
        "--query", metavar="SELECT", help="Instead of --table, a query of one table, like `query` in a recipe."
    ),
]
