"""`Prior`: public rows that a fit starts from, with where they come from, which is never left out.

A prior is public, or it is a release that was paid for. Rows of confidential people that nobody protected are neither,
whoever the people are: what a fit takes from them would be given out without a charge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

from stratsynth.checks import check_keys, is_texts, one_of
from stratsynth.checks import path as given_path
from stratsynth.errors import ReleaseError, UsageError
from stratsynth.mechanisms.prior_rows import PriorSource
from stratsynth.priors.mapping import Rules, mapped

if TYPE_CHECKING:
    from pathlib import Path

    from stratsynth.data.sources import Data, Source
    from stratsynth.mechanisms.prior_rows import PriorRows
    from stratsynth.schema import Schema

ORIGINS = ("public", "release", "confidential")
CONFIDENTIAL = (
    'prior: origin = "confidential" is refused. The rows of a prior are read without a charge, and what the fit takes '
    "from them is not protected, whether or not the same people are in both files. Fit that file too and take its "
    'release (origin = "release"), or take a published file or table.'
)
KEPT = (
    "created", "unit", "neighbours", "guarantee", "ledger", "unprotected", "unverified", "public_columns", "row_weight",
    "prior",
)  # fmt: skip
"""What a certificate repeats of the certificate of a release that is its prior."""
ROWS = "synthetic.parquet"
"""Where a release has its rows."""


@dataclass(frozen=True, eq=False)
class Prior(PriorSource):
    """Public rows, and how they are read. Made by `Prior.public(...)` or `Prior.release(...)`."""

    source: Source = field(repr=False)
    """Where the rows are."""
    rules: Rules = field(repr=False)
    """How their columns and values become those of the schema."""
    stated: Mapping[str, Any]
    """What the certificate says of it, besides what mapping it came to."""

    @classmethod
    def public(
        cls,
        data: Data,
        *,
        citation: str,
        rename: Mapping[str, str] | None = None,
        recode: Mapping[str, Mapping[str, str]] | None = None,
        without: Sequence[str] = (),
        unknown: str = "refuse",
    ) -> Prior:
        """Rows that anyone can get: last year's public file, or a neighbouring state's.

        Args:
            data: A file, a frame or an Arrow table.
            citation: Where it was published. It is listed in the certificate as taken for public.
            rename: Names that the prior has for columns of the schema, as `{"SEX": "sex"}`.
            recode: Values that the prior has for levels, by column, as `{"SEX": {"male": "1", "female": "2"}}`; several
                values may become one level. Values that are not listed stay as they are.
            without: Columns of the schema that the prior does not have. Their levels are taken as even, until a paid
                answer says otherwise.
            unknown: "refuse" rows with a value that the schema does not know, or "drop" them.

        Raises:
            UsageError: No citation, or rules that are none. Rows are read when a fit is prepared.
        """
        from stratsynth.accounting.registry import refuse_public
        from stratsynth.data.sources import open_source
        from stratsynth.weights.citation import check_citation

        if not isinstance(citation, str) or not citation.strip():
            raise UsageError("prior: a public prior needs a citation that says where it was published.")
        said = check_citation(citation, "prior")
        rules = Rules(_texts("rename", rename), _recode(recode), _names(without), unknown)
        source = open_source(data)
        if source.path is not None:
            if (source.path.parent / "certificate.json").exists():
                raise UsageError(
                    f"prior: {source.path.name} is of a release; take Prior.release({str(source.path.parent)!r})."
                )
            refuse_public(source.path)  # rows that have an account are not public
        return cls(source, rules, {"origin": "public", "citation": said})

    @classmethod
    def release(
        cls,
        folder: str | PathLike[str],
        *,
        rename: Mapping[str, str] | None = None,
        recode: Mapping[str, Mapping[str, str]] | None = None,
        without: Sequence[str] = (),
        unknown: str = "refuse",
    ) -> Prior:
        """An earlier release of this program: it was paid for, so that its guarantee and the new one add up.

        Args:
            folder: The release folder, whose files must be those that its certificate lists.
            rename: As for `public`.
            recode: As for `public`.
            without: As for `public`.
            unknown: As for `public`.

        Raises:
            ReleaseError: What is no sound release, or has no rows, or is not private.
        """
        from stratsynth.data.sources import open_source
        from stratsynth.release.certificate import read_certificate
        from stratsynth.release.hashes import check_files, hashes_of

        path = given_path("prior: the release", folder)
        record = read_certificate(path)
        if not record["private"]:
            raise ReleaseError(
                f"prior: {path} is no private release. If its data are public, take Prior.public(data, citation=...)."
            )
        if not (path / ROWS).exists():
            raise ReleaseError(f"prior: {path} holds no rows ({ROWS}).")
        if hashes_of(record) is None:
            raise ReleaseError(f"prior: {path} lists no hashes of its files: an older version made it; make it again.")
        check_files(path, record, [ROWS])
        rules = Rules(_texts("rename", rename), _recode(recode), _names(without), unknown)
        title = record.get("called", {}).get("title") or record["mechanism"]["name"]
        stated = {
            "origin": "release",
            "citation": f"release of {record['created']}: {title}",
            "release": {key: record[key] for key in KEPT if key in record},
        }
        return cls(open_source(path / ROWS), rules, stated)

    def rows(self, schema: Schema) -> PriorRows:
        """The rows in the columns and levels of a schema; the same object for the same schema.

        Raises:
            UsageError: Columns that the prior lacks, and values that the schema does not know, with how many rows of
                the prior have them.
        """
        from stratsynth.accounting.registry import refuse_public

        if self.source.path is not None and self.stated["origin"] == "public":
            refuse_public(self.source.path)  # again: an account may have been opened since
        key = schema.sha256
        if key not in self._mapped:
            self._mapped[key] = mapped(self.source, self.rules, schema, self.stated)
        return self._mapped[key]

    @cached_property
    def _mapped(self) -> dict[str, PriorRows]:
        return {}


KEYS: Mapping[str, Any] = {
    "path": str, "citation": str, "origin": str, "rename": Mapping, "recode": Mapping, "without": Sequence,
    "unknown": str,
}  # fmt: skip
"""The keys of [prior] in a recipe."""
HELP = {
    "path": "a file with public rows, or the folder of an earlier release",
    "citation": "where the rows were published; needed, but for a release, which says itself what it is",
    "origin": 'public, the default, or release; confidential rows are refused, and "confidential" says why',
    "rename": 'names that the prior has for columns, as { SEX = "sex" }',
    "recode": 'values that the prior has for levels, by column, as { SEX = { male = "1", female = "2" } }',
    "without": "a list of columns that the prior does not have",
    "unknown": 'what becomes of rows with a value that the schema does not know: "refuse" (the default) or "drop"',
}
"""What keys mean, for the reference."""


def read_prior(section: Mapping[str, Any], folder: Path) -> Prior:
    """The prior that a recipe's section [prior] describes; its path is relative to the recipe's folder."""
    check_keys(section, KEYS, "[prior]")
    origin = section.get("origin", "public")
    one_of("[prior] origin", origin, ORIGINS)
    if origin == "confidential":
        raise UsageError(CONFIDENTIAL)
    if "path" not in section:
        raise UsageError("[prior] path is missing: the file with the public rows, or the folder of a release.")
    how = {key: section[key] for key in ("rename", "recode", "without", "unknown") if key in section}
    if origin == "release":
        if "citation" in section:
            raise UsageError("[prior] citation: a release says itself what it is; leave the citation out.")
        return Prior.release(folder / section["path"], **how)
    return Prior.public(folder / section["path"], citation=section.get("citation", ""), **how)


def _texts(what: str, given: object) -> dict[str, str]:
    """A mapping from texts to texts."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(text, str) for item in given.items() for text in item):
        raise UsageError(f'prior: {what} is a table of texts, such as {{"SEX" = "sex"}}.')
    return dict(given)


def _recode(given: object) -> dict[str, dict[str, str]]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise UsageError('prior: recode is a table by column, such as {"SEX" = {"male" = "1", "female" = "2"}}.')
    return {name: _texts(f"recode of {name}", values) for name, values in given.items()}


def _names(given: object) -> tuple[str, ...]:
    if not is_texts(given):
        raise UsageError('prior: without is a list of columns, such as ["INCOME"].')
    return tuple(given)
