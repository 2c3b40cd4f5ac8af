"""INTERNAL: all that can be known of a recipe before budget is spent. Reads the data; charges and writes nothing.

Each check is a function that says what it found, or raises what a fit would refuse with.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.data.draft import Check
from stratsynth.data.draft import check as check_rows
from stratsynth.data.lost import absent_words, broken_lines, grave_rules, part
from stratsynth.errors import SchemaError, StratsynthError, UsageError
from stratsynth.recipes.outlook import planned
from stratsynth.recipes.recipe import Recipe
from stratsynth.schema.counted_tables import CountedTables

if TYPE_CHECKING:
    from stratsynth.data.linked_check import LinkedCheck
    from stratsynth.report.page import Page

STAMP = "computed from the data without a charge; not for publication."
NEAR = 0.1
"""Largest part by which a declared size may be off."""
OK, NOTE, FAILS, SKIPPED = "ok", "note", "FAILS", "not checked"
"""Outcomes of a check; FAILS alone gives exit code 1."""


@dataclass(frozen=True)
class Outcome:
    """INTERNAL. Result of one check."""

    name: str
    verdict: str
    """OK, NOTE, FAILS or SKIPPED."""
    text: str
    """Finding, and the remedy if it fails."""


@dataclass(frozen=True)
class RecipeCheck:
    """INTERNAL. Result of checking a recipe with its data."""

    outcomes: tuple[Outcome, ...]
    """One for each check, in their order."""

    @property
    def ok(self) -> bool:
        """True if no check of the recipe failed; notes and checks that were skipped do not count."""
        return all(outcome.verdict != FAILS for outcome in self.outcomes)

    def to_dict(self) -> dict[str, Any]:
        """Return {"INTERNAL": True, "ok", "checks"}: of each check its name, verdict and text, as JSON values."""
        checks = [{"check": o.name, "verdict": o.verdict, "text": o.text} for o in self.outcomes]
        return {"INTERNAL": True, "ok": self.ok, "checks": checks}

    def page(self) -> Page:
        """Return the Page of the result, stamped INTERNAL, the outcome first."""
        from stratsynth.report.page import Page, Section

        failed = [o.name for o in self.outcomes if o.verdict == FAILS]
        said = f"{', '.join(failed)}: exit code 1." if failed else "exit code 0."
        lead = f"{len(failed) or 'None'} of {len(self.outcomes)} checks {'fail' if failed else 'fails'}; {said}"
        facts = [(f"{o.name}: {o.verdict}", o.text) for o in self.outcomes]
        notes = ["Nothing was charged or written. What is private here must decide no setting of the fit."]
        return Page("", lead=[lead], sections=[Section("checks", "", facts=facts, notes=notes)], internal=STAMP)

    def __str__(self) -> str:
        """Return the result as text for a terminal."""
        from stratsynth.report.text import render

        return render(self.page())

    def _repr_html_(self) -> str:
        """Return the HTML fragment of the page of this result, for a notebook."""
        from stratsynth.report.notebook import render

        return render(self.page())


def check(recipe: Recipe | str | os.PathLike[str]) -> RecipeCheck:
    """INTERNAL: return a `RecipeCheck` of all that can be known of a recipe before a fit. Charges and writes nothing.

    The data are read: what is found is for those who hold them. A fit that passes may still be refused or fail, as when
    a disk fills up meanwhile.

    Args:
        recipe: A recipe, or the path of its file.
    """
    if isinstance(recipe, Recipe):
        return RecipeCheck((Outcome("recipe", OK, "valid"), *_Checks(recipe).run()))
    try:
        read = Recipe.read(recipe)
    except StratsynthError as error:
        return RecipeCheck((Outcome("recipe", FAILS, str(error)),))
    return RecipeCheck((Outcome("recipe", OK, f"{Path(recipe).name} is valid"), *_Checks(read).run()))


@dataclass
class _Checks:
    """The checks of one recipe, and the check of its rows once it is made."""

    recipe: Recipe
    rows: Check | None = None
    linked: LinkedCheck | None = None
    """Check of two linked tables, in place of `rows`."""
    failed: set[str] = field(default_factory=set)
    """Names of checks that failed."""

    def run(self) -> Iterator[Outcome]:
        """Yield the outcome of each check; one that needs another which failed is skipped."""
        linked = ("values", "rules", "weights of rows", "code lists")
        checks: tuple[tuple[str, Callable[[], tuple[str, str]], tuple[str, ...]], ...] = (
            ("schema", self._schema, ()),
            ("data", self._data, ("schema",)),
            ("values", self._values, ("schema", "data")),
            ("rules", self._rules, ("schema", "data")),
            ("weights of rows", self._weights, ("schema", "data")),
            ("declared_size", self._size, ("schema", "data")),
            ("shares and prior", self._public, ("schema",)),
            ("same rows", self._copies, ("schema", "data", "shares and prior")),
            ("code lists", self._lists, ("schema", "data")),
            ("plan", self._plan, ("schema", "shares and prior")),
            ("account", self._account, ("schema", "shares and prior")),
            ("places", self._places, ()),
        )
        for name, one, needed in checks:
            if self.recipe.data.linked and name in linked:
                continue
            if lacking := [other for other in needed if other in self.failed]:
                yield Outcome(name, SKIPPED, f"needs {', '.join(lacking)}")
                self.failed.add(name)
                continue
            try:
                verdict, text = one()
            except StratsynthError as error:
                verdict, text = FAILS, str(error)
            except OSError as error:
                verdict, text = FAILS, f"{error.filename or 'a file'} cannot be read ({error.strerror})."
            if verdict == FAILS:
                self.failed.add(name)
            yield Outcome(name, verdict, text)

    def _schema(self) -> tuple[str, str]:
        schema = self.recipe.schema()
        schema.ready(public=self.recipe.data.public)
        return OK, f"{len(schema.names)} columns, {len(schema.rules)} rules, {schema.origin}"

    def _data(self) -> tuple[str, str]:
        from stratsynth.data.sources import open_source

        if self.recipe.data.linked:
            self.linked = self._check_linked()
            return OK if self.linked.ok else FAILS, " ".join(self.linked.lines)
        source = open_source(self.recipe.data.rows)
        self.rows = check_rows(self.recipe.schema(), source)
        if self.rows.absent:
            said = " ".join(absent_words(self.rows.absent, self.rows.header))
            return FAILS, f"Not in the data, or more than once: {', '.join(self.rows.absent)}. {said}".rstrip()
        return OK, f"{self.recipe.data.name}: {self.rows.rows:,} records"

    def _check_linked(self) -> LinkedCheck:
        from stratsynth.data.linked_check import check_linked
        from stratsynth.data.sources import open_source

        schema, data = self.recipe.schema(), self.recipe.data
        self.recipe.table()  # refuses headers that lack a column
        assert isinstance(schema, CountedTables)  # noqa: S101 - refused otherwise
        return check_linked(schema.linked, open_source(data.parent), open_source(data.child))

    def _values(self) -> tuple[str, str]:
        rows = self._checked()
        named = [
            f"{name} has {', '.join(f'{value!r} in {count:,}' for value, count in column.unknown.items())}"
            for name, column in rows.columns.items()
            if column.outside
        ]
        more = f" Unknown values: {'; '.join(named)}." if named else ""
        return FAILS if rows.loss.grave else NOTE if named or rows.loss.lost else OK, f"{rows.loss.words}{more}"

    def _rules(self) -> tuple[str, str]:
        rules, rows = self._checked().rules, self._checked().rows
        broken = any(count for _, count in rules)
        return FAILS if grave_rules(rules, rows) else NOTE if broken else OK, " ".join(
            line.strip() for line in broken_lines(rules, rows)
        )

    def _weights(self) -> tuple[str, str]:
        rows = self._checked()
        if rows.weight is None:
            return (NOTE, " ".join(rows.warnings)) if rows.warnings else (OK, "every row counts 1")
        weight, most = rows.weight, self.recipe.schema().row_weight.most
        whole = weight.total + weight.people_cut
        lacking = f"the release lacks {weight.people_cut:,} of {whole:,} people ({part(weight.people_cut, whole)})"
        cut = f"{weight.cut:,} weights are above {most:,} and count as that: {lacking}"
        none = f"{weight.nothing:,} rows count 0, {weight.missing:,} weights are missing or no number"
        return NOTE if weight.cut or weight.nothing else OK, f"{cut}; {none}."

    def _size(self) -> tuple[str, str]:
        declared = self.recipe.data.declared_size
        if declared is None:
            return NOTE, "none is declared: there is no plan, and nothing to compare with what is measured"
        if self.linked is not None:
            strata, schema = self.recipe.strata, self.recipe.schema()
            every = isinstance(schema, CountedTables) and strata is not None and schema.linked.kind_column in strata.by
            found = self.linked.counted + (sum(self.linked.kinds.values()) if every else 0)
            near = abs(declared - found) <= NEAR * found
            which = "of all kinds" if every else f"with a {self.linked.names[1]}"
            said = f"{declared:,} declared; there are {found:,} {which}"
            return (OK, said) if near else (FAILS, f"{said}. Declare a published figure, and not this one.")
        rows = self._checked()
        people = rows.rows if rows.weight is None else rows.weight.total + rows.weight.people_cut
        what = "records" if rows.weight is None else "people, as the weights count them"
        if abs(declared - people) <= NEAR * people:
            return OK, f"{declared:,} declared; there are {people:,} {what}"
        said = f"{declared:,} declared, and there are {people:,} {what}"
        if rows.weight is not None and abs(declared - rows.rows) <= NEAR * rows.rows:
            said += f". It is the number of records ({rows.rows:,}); where rows have weights, declare the people"
        return FAILS, f"{said}. Declare a published figure, and not this one, which nobody paid for."

    def _public(self) -> tuple[str, str]:
        prepared, recipe = self.recipe.prepared, self.recipe
        layout = prepared.drawn
        shares = "no shares" if layout is None else f"shares of {len(layout.strata)} groups, {layout.weights.source}"
        return OK, f"{shares}; {'no prior' if recipe.given_prior is None else 'the prior has rows of this schema'}"

    def _copies(self) -> tuple[str, str]:
        """Return (verdict, text): a NOTE if shares or prior have most of the private table's rows, else OK.

        StratsynthError if one of them is the private table itself, by path or content.
        """
        from stratsynth.data.shared_rows import overlap
        from stratsynth.fitting.refusals import check_inputs, private_parts, refuse_private_controls
        from stratsynth.mechanisms.prepared import origins_of

        if self.recipe.data.public:
            return OK, "the data are public"
        table, prepared = self.recipe.table(), self.recipe.prepared
        for source, rows, own in private_parts(table):
            check_inputs(prepared, private=source, rows=rows, schema=own)
        if (benchmark := self.recipe.benchmark) is not None:
            schema = prepared.public.schema
            refuse_private_controls(benchmark, schema, private=table.source, rows=table.backend)
        prior = () if prepared.prior is None else prepared.prior.origins
        shared = []
        for public in (*origins_of(prepared.mechanism, prepared.strata), *prior):
            for source, _, own in private_parts(table):
                with contextlib.suppress(SchemaError):  # nothing in common
                    shared.append(overlap(source, public, own or table.schema))
        if suspicious := [each for each in shared if each.suspicious]:
            return NOTE, " ".join(map(str, suspicious))
        return OK, "neither shares nor prior are the private table, or most of it"

    def _lists(self) -> tuple[str, str]:
        """Return (verdict, text): a NOTE if all codes of a user's own list have a record, as if read off these."""
        from stratsynth.data.held_codes import held_codes

        found = held_codes(self.recipe.data.rows, self.recipe.schema())
        if not found or self.recipe.data.public:
            return OK, "the data are public" if found else "no list was given: codes are the schema's own"
        asked = [each for each in found if each.suspicious]
        return NOTE if asked else OK, "; ".join(map(str, asked or found))

    def _plan(self) -> tuple[str, str]:
        if self.recipe.data.declared_size is None:
            return SKIPPED, "a plan needs declared_size"
        plan = planned(self.recipe)
        times = Counter(stratum.verdict for stratum in plan.strata)
        verdicts = "; ".join(f"{count} of {len(plan.strata)}: {words}" for words, count in times.most_common(3))
        more = f" {' '.join(plan.warnings)}" if plan.warnings else ""
        return NOTE if plan.warnings else OK, f"{verdicts}.{more}"

    def _account(self) -> tuple[str, str]:
        from stratsynth.recipes.outlook import account_after

        if self.recipe.data.public:
            return OK, "nothing is charged for public data"
        found = account_after(self.recipe)
        if found is None:
            return NOTE, "no ledger: the account ends with the process"
        if "refused" in found:
            return FAILS, found["refused"]
        cap = "without a cap" if found["cap_epsilon"] is None else f"of at most {found['cap_epsilon']:g}"
        said = (
            f"{found['ledger']}: epsilon {found['spent_epsilon']:.4g} spent, {found['after_epsilon']:.4g} after, {cap}"
        )
        if not found["granted"]:
            return FAILS, f"{said}: it does not fit; the largest epsilon that does is {found['largest_epsilon']:g}"
        return OK, said

    def _places(self) -> tuple[str, str]:
        from stratsynth.release.folder import check_new

        folder = check_new(self.recipe.directory, "Name another with -o")
        ledger = None if self.recipe.data.public else self.recipe.spend.ledger
        if ledger is not None:
            writable(ledger.absolute().parent, ledger)
        rows, above = self.recipe.release.rows or self.recipe.data.declared_size or 0, _existing(folder)
        need, free = rows * ROW, shutil.disk_usage(above).free
        if free < need:
            return FAILS, f"{above} has {free / 2**20:,.0f} MB free, and {rows:,} rows may take {need / 2**20:,.0f} MB."
        return OK, f"{folder} can be written{'' if ledger is None else f', and so can {ledger.name}'}"

    def _checked(self) -> Check:
        assert self.rows is not None  # noqa: S101 - what needs it is skipped where it was not made
        return self.rows


ROW = 200
"""Bytes of a synthetic row on the disk, at most, as a rough guess."""


def _existing(path: Path) -> Path:
    return next(parent for parent in path.absolute().parents if parent.exists())


def writable(folder: Path, file: Path) -> None:
    """Raise UsageError for a folder that does not exist or cannot be written in, and a `file` there that cannot be."""
    if not folder.is_dir():
        raise UsageError(f"{file}: there is no folder {folder}.")
    for path in (folder, *([file] if file.exists() else [])):
        if not os.access(path, os.W_OK):
            raise UsageError(f"{path} cannot be written.")
