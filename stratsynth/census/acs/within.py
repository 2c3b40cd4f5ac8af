"""Public shares of codes, by which records counted in a group are given single codes again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stratsynth.census.acs.catalogue import code_lists
from stratsynth.data.overlap import check_public_inputs
from stratsynth.errors import UsageError
from stratsynth.files.outside import level, records
from stratsynth.inputs import check_citation
from stratsynth.schema.typed import figure
from stratsynth.weights.table import is_figure

if TYPE_CHECKING:
    from stratsynth.weights.table import Tabular


def within_codes(tables: Sequence[Tabular], citation: str, names: Sequence[str]) -> Mapping[str, Mapping[str, float]]:
    """Return a mapping from column to {code: share within its column}, from tables of a column of `names` and `share`.

    Raises:
        UsageError: A table of another form, or shares without a citation.
    """
    if tables and not citation:
        raise UsageError("census: shares of codes need a citation that says where they were published.")
    if citation:
        check_citation("census", citation)
    check_public_inputs(declared=tables)
    found: dict[str, dict[str, float]] = {}
    for table in tables:
        lines = records("census: shares of codes", table)
        [name, *more] = [key for key in lines[0] if not is_figure(key)] or [""]
        if more or "share" not in lines[0] or name not in names or name not in code_lists():
            raise UsageError(
                "census: shares of codes are a table of one code list of the schema, and `share`, as `census shares` "
                "writes it."
            )
        digits = code_lists()[name].digits
        own = found.setdefault(name, {})
        for number, line in enumerate(lines, start=2):
            code, share = level(line[name]), figure(line["share"])
            if not 0 <= share <= 1:
                raise UsageError(f"census: the share in line {number} is not a number from 0 to 1.")
            own[code.zfill(digits) if code.isdigit() else code] = share
    return found
