"""Numbers beside a picture, as links that hold them; and numbers in the form for readers."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

SAFE = ",:;/[]{}()!*@$|=~ "
"""Signs, beside letters and digits, that a link may hold unescaped."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Signs with which a spreadsheet's formulas begin."""


@dataclass(frozen=True)
class Numbers:
    """Table of plain values under a name that can be a file's."""

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def links(self, stamp: str | None) -> tuple[str, str, str]:
        """Return three texts: file name without ending, data link of these numbers as CSV, data link as JSON.

        `stamp` is that of an INTERNAL page, None for none: the numbers bear it, and say so wherever they are copied.
        What is not a number is empty in CSV, and null in JSON, which has `columns` and `rows`. Text that a spreadsheet
        would take for a formula gets a quotation mark before it.
        """
        file = re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-") or "numbers"
        rows, text = [[_plain(value) for value in row] for row in self.rows], io.StringIO()
        mark = ["INTERNAL"] if stamp else []
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*self.columns, *(["stamp"] if mark else [])])
        for row in rows:
            safe = (f"'{v}" if isinstance(v, str) and v[:1] in FORMULA else "" if v is None else v for v in row)
            writer.writerow([*safe, *mark])
        document = {**({"stamp": f"INTERNAL: {stamp}"} if stamp else {}), "columns": list(self.columns), "rows": rows}
        plain = json.dumps(document, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        return (
            f"{'INTERNAL-' if stamp else ''}{file}",
            "data:text/csv;charset=utf-8," + quote(text.getvalue(), safe=SAFE),
            "data:application/json;charset=utf-8," + quote(plain, safe=SAFE),
        )


def _plain(value: Any) -> Any:
    """Return a cell's `value` as JSON has it: a float of six decimals, int, text, or None for none and NaN."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value if isinstance(value, int | str | None) else None if value != value else str(value)  # noqa: PLR0124


def known(value: float | None) -> float | None:
    """Return `value` as a float if it is finite; None for None, NaN and infinity."""
    return None if value is None or not math.isfinite(value) else float(value)


def short(value: float | None, digits: int = 3) -> str:
    """Return `value` as text with `digits` significant digits; a dash for None, NaN and infinity."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}".replace("-", "−")
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(places, 4)}f}".replace("-", "−")


def signed(value: float | None, digits: int = 3) -> str:
    """Return `value` as text with its sign and `digits` significant digits; a dash for None and NaN."""
    text = short(value, digits)
    return f"+{text}" if value is not None and value > 0 else text


def percent(share: float | None) -> str:
    """Return a share, 1 being all, as "12.3 %"; a dash for None, NaN and infinity."""
    return "–" if share is None or not math.isfinite(share) else f"{100 * share:.3g} %".replace("-", "−")


def spelt(value: str | float | None, kind: str) -> str:
    """Return a table's `value` as text, as a column of kind `kind` (`page.Column`) shows it; a dash if missing."""
    if kind == "text" or isinstance(value, str):
        return str(value)
    number = known(value)
    if value is None or number is None:
        return "–"
    if kind == "count" or (kind == "number" and isinstance(value, int)):
        return f"{int(value):,}"
    return f"{number:.2f}" if kind == "shade" else percent(number) if kind == "share" else short(number)


def listed(parts: Sequence[str], last: str = "and") -> str:
    """Return the texts `parts` joined as "a, b and c", with `last` in place of "and"; "" for none."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {last} {parts[-1]}"


def several(number: int, one: str, many: str | None = None) -> str:
    """Return text: a number with its noun, "1 group", "2 groups".

    `one` is the singular, `many` the plural, or an s is added.
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def setting_text(value: Any) -> str:
    """Return a mechanism's setting `value` as text: mappings in brackets, lists by commas, booleans yes or no."""
    if isinstance(value, Mapping):
        if set(value) == {"name", "settings"}:
            settings = setting_text(value["settings"])
            return f"{value['name']} ({settings})" if settings else str(value["name"])
        given = {key: item for key, item in value.items() if item is not None and item not in ({}, [])}
        return ", ".join(f"{key} {inner}" for key, item in given.items() if (inner := setting_text(item)))
    if isinstance(value, list | tuple):
        nested = any(isinstance(item, list | tuple) for item in value)
        return ("; " if nested else ",").join(setting_text(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
