"""References to publications, software and data, and how they are written: BibTeX, APA, or CSL-JSON.

CSL-JSON is the format that reference managers such as Zotero import.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from stratsynth.checks import one_of

Kind = Literal["article", "inproceedings", "misc", "software", "dataset"]
"""Kinds of works: a journal's article, a paper of a conference, a preprint, a program, or data."""
CSL = {
    "article": "article-journal",
    "inproceedings": "paper-conference",
    "misc": "article",
    "software": "software",
    "dataset": "dataset",
}
"""Names of the kinds of works in CSL."""
PLACES = {"article": "journal", "inproceedings": "booktitle", "misc": "howpublished"}
"""BibTeX field of the venue, by the type of the entry."""
SPECIAL = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        **{sign: f"\\{sign}" for sign in "{}%&#_$"},
    }
)
"""Characters with a meaning in TeX, each with its escaped form."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """One entry of a bibliography; an empty field is unknown."""

    key: str
    """Name by which a text cites it."""
    kind: Kind
    """Kind of the work."""
    title: str
    """Title, or a citation in one line."""
    authors: tuple[str, ...] = ()
    """Authors, each as `Family, Given`, or without a comma the name of an organisation."""
    year: str = ""
    """Year of publication."""
    venue: str = ""
    """Journal or proceedings."""
    volume: str = ""
    """Volume of the journal."""
    number: str = ""
    """Issue within the volume."""
    pages: str = ""
    """First and last page, joined by a hyphen."""
    version: str = ""
    """Version of a program."""
    note: str = ""
    """Remark for readers."""
    link: str = ""
    """Link to the work."""

    def __str__(self) -> str:
        """Return the reference in one line, in the style of the American Psychological Association."""
        names = []
        for author in self.authors:
            family, comma, given = author.partition(", ")  # an organisation's name has no comma, and stays
            names.append(f"{family}, {' '.join(f'{name[0]}.' for name in given.split())}" if comma else family)
        by = " & ".join([f"{', '.join(names[:-1])},", names[-1]] if len(names) > 1 else names)
        version = f" (Version {self.version})" if self.version else ""
        form = " [Computer software]" if self.kind == "software" else ""
        title = f"{self.title.rstrip('.')}{version}{form}."
        year = f"({self.year or 'n.d.'})." if self.year or by else ""
        number = f"({self.number})" if self.number else ""
        where = ", ".join(part for part in (self.venue, f"{self.volume}{number}", self.pages) if part)
        first = [f"{by.rstrip('.')}.", year, title] if by else [title, year]
        last = [f"{part}." for part in (where, self.note) if part]
        return " ".join(part for part in (*first, *last, self.link) if part)

    def bibtex(self) -> str:
        """Return the entry as BibTeX. Programs and data are `@misc`, which every style knows."""
        kind = self.kind if self.kind in ("article", "inproceedings") else "misc"
        fields = {
            "author": " and ".join(f"{{{_tex(a)}}}" if "," not in a else _tex(a) for a in self.authors),
            "title": f"{{{_tex(self.title)}}}",
            PLACES[kind]: _tex(self.venue),
            "volume": _tex(self.volume),
            "number": _tex(self.number),
            "pages": _tex(self.pages).replace("-", "--"),
            "year": _tex(self.year),
            "version": _tex(self.version),
            "note": _tex(self.note),
            "url": self.link,
        }
        lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
        return "\n".join([f"@{kind}{{{self.key},", *lines, "}"])

    def csl(self) -> dict[str, Any]:
        """Return the entry as an object of CSL-JSON, without empty fields."""
        people = [
            {"family": a.partition(", ")[0], "given": a.partition(", ")[2]} if "," in a else {"literal": a}
            for a in self.authors
        ]
        fields = {
            "id": self.key,
            "type": CSL[self.kind],
            "title": self.title,
            "author": people,
            "issued": {"date-parts": [[int(self.year)]]} if self.year else None,
            "container-title": self.venue,
            "volume": self.volume,
            "issue": self.number,
            "page": self.pages,
            "version": self.version,
            "note": self.note,
            "URL": self.link,
        }
        return {name: value for name, value in fields.items() if value}


def bibliography(references: Iterable[Reference], form: str = "bibtex") -> str:
    """Return references, each once, as one text in the form asked for.

    Args:
        references: The entries, in their order.
        form: `bibtex`, `apa` (a line each) or `json` (a list in CSL-JSON).

    Raises:
        UsageError: Another form.
    """
    one_of("format", form, ("bibtex", "apa", "json"))
    entries = list(dict.fromkeys(references))
    if form == "bibtex":
        return "\n\n".join(entry.bibtex() for entry in entries)
    if form == "apa":
        return "\n".join(map(str, entries))
    return json.dumps([entry.csl() for entry in entries], indent=1, ensure_ascii=False)


def numbered(texts: Sequence[str], key: str, note: str) -> list[Reference]:
    """Return citations `texts` as `Reference`s of kind "dataset" with `note`, each once, under `key` and a number."""
    return [
        Reference(key=f"{key}{number}", kind="dataset", title=text, note=note)
        for number, text in enumerate(dict.fromkeys(" ".join(text.split()) for text in texts), start=1)
    ]


def _tex(text: str) -> str:
    """Return the text in one line, with the characters escaped that TeX reads as commands."""
    return re.sub(r"\s+", " ", text).strip().translate(SPECIAL)
