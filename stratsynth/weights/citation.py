"""Citations: where figures were published, in words that somebody has filled in."""

from __future__ import annotations

import re

from stratsynth.errors import WeightsError

TEMPLATE = re.compile(
    r"""
    \b(TODO|FIXME|TBD|XXX+|lorem\ ipsum)\b
    | \byour\ (source|citation|publisher|reference|table)\b
    | \b(source|citation|reference)\ (goes\ )?here\b
    | [\[<{]\s*(publisher|title|author|year|date|source|citation|url|name|table|agency|insert|your|where)\b
      [^\]>}]*[\]>}]
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Words that stand in templates, this project's own among them, until somebody replaces them."""


def check_citation(citation: str, of: str = "weights") -> str:
    """The citation of something without outer spaces; refuses the words of a template.

    Raises:
        WeightsError: A citation that nobody has filled in.
    """
    found = TEMPLATE.search(citation)
    if found or not any(character.isalnum() for character in citation):
        what = f"still holds the words {found[0]!r} of a template" if found else "has no words"
        raise WeightsError(f"{of}: the citation {what}; say where it was published, so that a reader can look them up.")
    return citation.strip()
