"""Arguments and options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ReleaseFolder = Annotated[Path, typer.Argument(metavar="RELEASE_DIR", help="A release folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
TableName = Annotated[
    str | None, typer.Option("--table", metavar="NAME", help="The table, if the rows are in a database.")
]
Select = Annotated[
    str | None,
    typer.Option(
        "--query", metavar="SELECT", help="Instead of --table, a query of one table, like `query` in a recipe."
    ),
]
