"""Plan of a recipe, with its account after the fit: what is known without reading the data."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stratsynth.errors import UsageError

if TYPE_CHECKING:
    from stratsynth.planning import Plan
    from stratsynth.recipes.recipe import Recipe


FAR = 10
"""Number of times as many rows as records from which a declared size of people is doubted."""


def planned(recipe: Recipe) -> Plan:
    """Return the plan of a recipe with its account; UsageError without a declared size, and for what a fit refuses."""
    from stratsynth.planning import plan

    size = recipe.data.declared_size
    if size is None:
        raise UsageError("[data] declared_size is missing: a plan needs to know about how many records there are.")
    how, schema, budget = recipe.how(), recipe.schema(), recipe.budget()
    rows, benchmark = recipe.drawn(), recipe.benchmark
    if benchmark is not None:
        if rows is None:
            raise UsageError(f"benchmark: totals are those of rows, and {how.title} makes none.")
        benchmark.read(recipe.prepared.public.schema)
    found = plan(how, schema, budget, declared_size=size, engine=recipe.data.holds, prior=recipe.prior)
    files = (recipe.data.path, recipe.data.parent, recipe.data.child)
    absent = [path for path in files if path is not None and not path.exists()]
    lacking = [f"there is no {path}, so a fit would be refused." for path in absent]
    named = () if benchmark is None else [table.name for table in benchmark.tables if table.exact]
    exact = [f"NOT PROTECTED: exact totals of the private rows, {', '.join(named)}."] if named else []
    warnings = (*exact, *found.warnings, *_size_of_people(recipe, size), *lacking)
    return replace(found, account=account_after(recipe), warnings=warnings)


def _size_of_people(recipe: Recipe, size: int) -> list[str]:
    """Return a warning, in a list, where a recipe's declared `size` of people is rather one of records; else [].

    Known are the declared size, the mean weight, and how many rows are to be drawn, which are seldom many times as many
    as there are records.
    """
    weight, rows = recipe.schema().row_weight, recipe.release.rows
    if (
        recipe.data.linked
        or weight.column is None
        or weight.mean is None
        or rows is None
        or rows * weight.mean <= FAR * size
    ):
        return []
    people = f"declared_size {size:,} is of people, who at a mean weight of {weight.mean:g} are"
    records = f"{size / weight.mean:,.0f} records, and {rows:,} rows are to be drawn. Is it the number of records?"
    return [f"{people} {records} Declare the people: about {size * weight.mean:,.0f} if it is."]


def account_after(recipe: Recipe) -> dict[str, Any] | None:
    """Return a dict, the ledger's account after a recipe's fit, as JSON values.

    None without a ledger or for public data. No data are read.
    """
    from stratsynth.accounting.history import coming
    from stratsynth.accounting.ledger_file import FileLedger
    from stratsynth.accounting.registry import Registry
    from stratsynth.accounting.standing import rule
    from stratsynth.data.overlap import check_public_inputs
    from stratsynth.fitting import request_of

    path, data, refused = recipe.spend.ledger, recipe.data.file, ""
    registry = None if data is None else Registry(data)  # a table of Spark lies beside no list of accounts
    if recipe.data.public:
        check_public_inputs(declared=[data])
        return None
    if path is None:
        if registry is not None:
            registry.refuse_other(None, None)
        return None
    try:
        FileLedger(path, _unread, registry=registry).refuse_other()
    except UsageError as error:
        refused = str(error)
    request = request_of(recipe.prepared, recipe.seed, query=recipe.data.query)
    ledger = FileLedger(path, _unread, recipe.spend.ledger_epsilon, account=recipe.spend.account)
    outlook = coming(ledger, [request], refuse=False)
    found = {"granted": outlook.granted, **outlook.to_dict(), "rule": rule(request.budget.delta, outlook.currency)}
    return {"ledger": path.name, **found, **({"refused": refused} if refused else {})}


def _unread(key: bytes) -> str:
    """Raise an AssertionError for any key: a plan never reads the data, so it asks for no fingerprint."""
    raise AssertionError(f"a plan asked for the fingerprint of the data under {len(key)} bytes")
