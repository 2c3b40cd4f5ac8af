"""`Prior`: public rows and tables that a fit starts from, with a citation that the certificate repeats.

A prior is public, or it is a release that was paid for. Unprotected rows of confidential people are refused, whoever
the people are: anything a fit took from them would be published without a charge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.checks import is_texts, one_of
from stratsynth.checks import path as given_path
from stratsynth.digest import digest
from stratsynth.errors import ReleaseError, UsageError
from stratsynth.inputs import check_citation, check_keys
from stratsynth.mechanisms.prior_rows import MappedPrior, PriorSource
from stratsynth.priors.certificate_section import file_hash
from stratsynth.priors.linked import linked_tables
from stratsynth.priors.mapping import Rules, TranslatedSource, mapped
from stratsynth.priors.measured import FILES, measured_tables
from stratsynth.priors.releases import release_of
from stratsynth.priors.tables import PublishedTable, mapped_table
from stratsynth.release.certificate import read_certificate
from stratsynth.release.hashes import check_files
from stratsynth.schema.counted_tables import CountedTables

if TYPE_CHECKING:
    from stratsynth.certificate import Certificate
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
    "created",
    "unit",
    "neighbours",
    "guarantee",
    "ledger",
    "unprotected",
    "unverified",
    "public_columns",
    "row_weight",
    "prior",
)
"""Entries of a release's certificate that are repeated in the certificate of a fit with that release as its prior."""
ROWS = "synthetic.parquet"
"""File of a release folder that holds its rows."""


@dataclass(frozen=True, eq=False)
class Prior(PriorSource):
    """Public information for a fit. Made by `Prior.public(...)`, `Prior.release(...)` or `Prior.tables(...)`."""

    source: Source | None = field(repr=False)
    """Source of the rows; None if there are tables alone."""
    rules: Rules = field(repr=False)
    """Translation of columns and values to the schema's."""
    stated: Mapping[str, Any]
    """Section of the certificate on the prior, without the entries that mapping adds."""
    published: tuple[PublishedTable, ...] = ()
    """Published tables."""
    behind: tuple[Path, Certificate] | None = field(default=None, repr=False)
    """Folder and certificate of the release whose noisy tables go with the rows; None for public rows."""
    both: tuple[Source, Source] | None = field(default=None, repr=False)
    """Sources of two linked tables, the parents' first; None for one table."""

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
        tables: Sequence[PublishedTable] = (),
    ) -> Prior:
        """Return a `Prior` of rows that anyone can get: last year's public file, or a neighbouring state's.

        Args:
            data: A file, a frame or an Arrow table.
            citation: Place of publication, which the certificate lists as taken for public.
            rename: Names that the prior has for columns of the schema, as `{"SEX": "sex"}`.
            recode: Values that the prior has for levels, by column, as `{"SEX": {"male": "1", "female": "2"}}`; several
                values may become one level. Values that are not listed are kept.
            without: Columns of the schema that the prior does not have. Their levels start as equally likely.
            unknown: "refuse" rows with a value that the schema does not know, or "drop" them.
            tables: Published tables besides, as for `Prior.tables`.

        Raises:
            UsageError: No citation, or malformed rules. Rows are read when a fit is prepared.
        """
        from stratsynth.data.overlap import check_public_inputs
        from stratsynth.data.sources import open_source

        if not isinstance(citation, str) or not citation.strip():
            raise UsageError("prior: a public prior needs a citation that says where it was published.")
        said = check_citation("prior", citation)
        rules = Rules(_texts("rename", rename), _recode(recode), _names(without), unknown)
        source = open_source(data)
        if source.path is not None:
            folder = release_of(source.path)
            if folder is not None:
                raise UsageError(f"prior: {source.path.name} is of a release; take Prior.release({str(folder)!r}).")
            check_public_inputs(declared=[source])
        return cls(source, rules, {"origin": "public", "citation": said}, _published(tables))

    @classmethod
    def linked(cls, parent: Data, child: Data, *, citation: str) -> Prior:
        """Return a `Prior` of two linked public tables, such as last year's households with their persons.

        A fit of linked tables starts from tables of pairs of their counted columns, and departs from them where paid
        answers disagree.

        Args:
            parent: The parent table: a file, a frame or an Arrow table, with the columns, levels and key of the schema.
            child: The child table.
            citation: Place of publication, which the certificate lists as taken for public.

        Raises:
            UsageError: No citation, or data that have an account. Rows are read when a fit is prepared.
        """
        one, other = (cls.public(data, citation=citation) for data in (parent, child))
        assert one.source is not None  # noqa: S101 - made of data
        assert other.source is not None  # noqa: S101 - as above
        return cls(None, one.rules, one.stated, both=(one.source, other.source))

    @classmethod
    def tables(
        cls,
        tables: Sequence[PublishedTable],
        *,
        rename: Mapping[str, str] | None = None,
        recode: Mapping[str, Mapping[str, str]] | None = None,
        unknown: str = "refuse",
    ) -> Prior:
        """Return a `Prior` of published tables and no rows: marginals of some columns, with or without standard errors.

        Args:
            tables: Each a `PublishedTable(file_or_frame, citation)` with the levels of some columns and `share` or
                `count`, and `error` if standard errors were published; without, the figures count as exact for the
                population that the rows are a sample of.
            rename: As for `public`.
            recode: As for `public`; the figures of values that become one level are added up.
            unknown: As for `public`; if lines are dropped, the rest is scaled to 1.

        Raises:
            UsageError: No table, or malformed rules. Tables are read when a fit is prepared.
        """
        found = _published(tables)
        if not found:
            raise UsageError("prior: no table is given.")
        rules = Rules(_texts("rename", rename), _recode(recode), (), unknown)
        citation = "; ".join(dict.fromkeys(table.citation for table in found))
        return cls(None, rules, {"origin": "public", "citation": citation}, found)

    @classmethod
    def release(
        cls,
        folder: str | PathLike[str],
        *,
        rename: Mapping[str, str] | None = None,
        recode: Mapping[str, Mapping[str, str]] | None = None,
        without: Sequence[str] = (),
        unknown: str = "refuse",
        tables: Sequence[PublishedTable] = (),
    ) -> Prior:
        """Return a `Prior` of an earlier release of this program; its guarantee and the new one add up.

        Args:
            folder: The release folder, whose files must match the hashes in its certificate.
            rename: As for `public`.
            recode: As for `public`.
            without: As for `public`.
            unknown: As for `public`.
            tables: Published tables besides, as for `Prior.tables`.

        Raises:
            ReleaseError: No release, a damaged one, one without rows, or one that is not private.
        """
        from stratsynth.data.sources import open_source

        path = given_path("prior: the release", folder)
        record = read_certificate(path)
        certificate = record.statement
        if not certificate.private:
            raise ReleaseError(
                f"prior: {path} is no private release. If its data are public, take Prior.public(data, citation=...)."
            )
        if not (path / ROWS).exists():
            raise ReleaseError(f"prior: {path} holds no rows ({ROWS}).")
        if certificate.files is None:
            raise ReleaseError(f"prior: {path} lists no hashes of its files: an older version made it; make it again.")
        check_files(path, certificate, [ROWS, *FILES])
        rules = Rules(_texts("rename", rename), _recode(recode), _names(without), unknown)
        title = (certificate.called and certificate.called.title) or certificate.mechanism.name
        stated = {
            "origin": "release",
            "citation": f"release of {certificate.created}: {title}",
            "release": {key: record[key] for key in KEPT if key in record},
        }
        return cls(open_source(path / ROWS), rules, stated, _published(tables), (path, certificate))

    @property
    def origins(self) -> tuple[Any, ...]:
        """Tuple of sources, paths and frames that the prior is read from; none may be the private table."""
        own = self.both or (() if self.source is None else (self.source,))
        return (*own, *(table.data for table in self.published))

    def in_schema(self, schema: Schema) -> MappedPrior:
        """Return a `MappedPrior`: this prior's rows and tables as level numbers of a schema; computed once each.

        Raises:
            UsageError: Columns that the prior lacks, and values that the schema does not know, with the number of rows
                that have them.
        """
        from stratsynth.data.overlap import check_public_inputs

        public = self.origins if self.stated["origin"] == "public" else [table.data for table in self.published]
        check_public_inputs(declared=public)  # again: an account may have been opened since
        key = schema.sha256
        if key not in self._mapped:
            self._mapped[key] = self._mapped_once(schema)
        return self._mapped[key]

    def rows(self, schema: Schema) -> PriorRows | None:
        """Return this prior's rows as level numbers of a schema, a `PriorRows`; None if it has tables alone."""
        return self.in_schema(schema).rows

    def _mapped_once(self, schema: Schema) -> MappedPrior:
        """Return a `MappedPrior` of this prior in a schema, read anew; UsageError if its file changes meanwhile."""
        if isinstance(schema, CountedTables):
            return self._mapped_linked(schema)
        if self.both is not None:
            raise UsageError("prior: it is of two linked tables, and the fit is of one: take Prior.public(data, ...).")
        self.rules.check_names(schema)
        if self.behind is not None:
            check_files(*self.behind, [ROWS, *FILES])  # again: files may have been exchanged since
        said = self._stated_of_file()
        rows = None if self.source is None else mapped(self.source, self.rules, schema, said)
        if self._stated_of_file() != said:
            raise UsageError("prior: its file has changed while it was read. Try again when nobody writes to it.")
        read = [mapped_table(table, self.rules, schema) for table in self.published]
        stated = dict(self.stated if rows is None else rows.stated)
        if read:
            stated["tables"] = [record for _, record in read]
        known = tuple(known for known, _ in read)
        if self.behind is not None:
            known += measured_tables(*self.behind, self.rules, schema)
            stated["measurements"] = len(known) - len(read)
        marks = [(one.clique, one.shares, one.error) for one in known]
        other = self.source is not None and (self.rules.rename or self.rules.recode)
        translated = (TranslatedSource(self.source, self.rules),) if other and self.source is not None else ()
        return MappedPrior(stated, digest(stated, marks), rows, known, self.origins, translated)

    def _mapped_linked(self, schema: CountedTables) -> MappedPrior:
        """Return a `MappedPrior` of two linked tables in a schema of them; UsageError for a prior of one table."""
        if self.both is None:
            raise UsageError(
                "prior: two linked tables start from two: Prior.linked(parents, children, citation=...); in a recipe "
                "[prior] parent and child."
            )
        before = [file_hash(source.path) for source in self.both]
        known, said = linked_tables(*self.both, schema, str(self.stated["citation"]))
        if [file_hash(source.path) for source in self.both] != before:
            raise UsageError(
                "prior: its files have changed while they were read. Try again when nobody writes to them."
            )
        stated = {**self.stated, "tables": said, "linked": len(known)}
        marks = [(one.clique, one.shares, one.error) for one in known]
        return MappedPrior(stated, digest(stated, marks), None, known, self.origins)

    def _stated_of_file(self) -> dict[str, Any]:
        """Return a dict, the certificate's section on this prior's rows, with the hash of their file if it is one."""
        return {**self.stated, **file_hash(None if self.source is None else self.source.path)}

    @cached_property
    def _mapped(self) -> dict[str, MappedPrior]:
        return {}


KEYS: Mapping[str, Any] = {
    "path": str,
    "parent": str,
    "child": str,
    "citation": str,
    "origin": str,
    "rename": Mapping,
    "recode": Mapping,
    "without": Sequence,
    "unknown": str,
    "tables": Sequence,
}
"""Keys of [prior] in a recipe, with their types."""
HELP = {
    "path": "a file with public rows, or the folder of an earlier release",
    "parent": "of two linked tables: a file with the public rows of the parent table, such as households; with child",
    "child": "a file with the public rows of their child table, instead of path",
    "citation": "where the rows were published; needed, but for a release, which says itself what it is",
    "origin": 'public, the default, or release; confidential rows are refused, and "confidential" says why',
    "rename": 'names that the prior has for columns, as { SEX = "sex" }',
    "recode": 'values that the prior has for levels, by column, as { SEX = { male = "1", female = "2" } }',
    "without": "a list of columns that the prior does not have",
    "tables": "published tables, each a section [[prior.tables]] with path and citation; beside rows, or alone",
    "unknown": 'what becomes of rows with a value that the schema does not know: "refuse" (the default) or "drop"',
}
"""Meanings of the keys, for the reference."""


def read_prior(section: Mapping[str, Any], folder: Path) -> Prior:
    """Return the `Prior` of a recipe's `section` [prior], its path relative to `folder`; UsageError if it is wrong."""
    check_keys(section, KEYS, "[prior]")
    origin = section.get("origin", "public")
    one_of("[prior] origin", origin, ORIGINS)
    if origin == "confidential":
        raise UsageError(CONFIDENTIAL)
    how = {key: section[key] for key in ("rename", "recode", "without", "unknown") if key in section}
    tables = [_table(table, folder) for table in section.get("tables", ())]
    if "parent" in section or "child" in section:
        if set(section) - {"origin"} != {"parent", "child", "citation"} or origin != "public":
            raise UsageError(
                "[prior] two linked tables are parent, child and citation: public files, and no other key."
            )
        return Prior.linked(folder / section["parent"], folder / section["child"], citation=section["citation"])
    if "path" not in section:
        if not tables or origin == "release":
            raise UsageError(
                "[prior] path is missing: the file with the public rows, or the folder of a release; or give published "
                "tables, [[prior.tables]]."
            )
        for key in ("citation", "without"):
            if key in section:
                raise UsageError(f"[prior] {key} is about rows, and there is no path: leave it out.")
        return Prior.tables(tables, **how)
    if origin == "release":
        if "citation" in section:
            raise UsageError("[prior] citation: a release says itself what it is; leave the citation out.")
        return Prior.release(folder / section["path"], **how, tables=tables)
    return Prior.public(folder / section["path"], citation=section.get("citation", ""), **how, tables=tables)


def _table(section: object, folder: Path) -> PublishedTable:
    """Return the PublishedTable of `section`, one of [[prior.tables]], its path in `folder`; UsageError for others."""
    if not isinstance(section, Mapping):
        raise UsageError("[prior] tables are sections [[prior.tables]], each with path and citation.")
    check_keys(section, {"path": str, "citation": str}, "[[prior.tables]]")
    if "path" not in section:
        raise UsageError("[[prior.tables]] path is missing: a CSV file with the columns' levels and their figures.")
    return PublishedTable(folder / section["path"], section.get("citation", ""))


def _published(tables: object) -> tuple[PublishedTable, ...]:
    """Return `tables` as a tuple; UsageError for anything but a list of PublishedTable."""
    if not isinstance(tables, Sequence) or any(type(table) is not PublishedTable for table in tables):
        raise UsageError("prior: tables is a list of PublishedTable(file_or_frame, citation).")
    return tuple(tables)


def _texts(what: str, given: object) -> dict[str, str]:
    """Return a copy of `given`, a mapping from text to text; {} for None, UsageError on `what` for anything else."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(text, str) for item in given.items() for text in item):
        raise UsageError(f'prior: {what} is a table of texts, such as {{"SEX" = "sex"}}.')
    return dict(given)


def _recode(given: object) -> dict[str, dict[str, str]]:
    """Return a copy of `given`, {column: {value: level}}; {} for None, UsageError for anything else."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise UsageError('prior: recode is a table by column, such as {"SEX" = {"male" = "1", "female" = "2"}}.')
    return {name: _texts(f"recode of {name}", values) for name, values in given.items()}


def _names(given: object) -> tuple[str, ...]:
    """Return `given`, a list of names of columns, as a tuple; UsageError for anything else."""
    if not is_texts(given):
        raise UsageError('prior: without is a list of columns, such as ["INCOME"].')
    return tuple(given)
