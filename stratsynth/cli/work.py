"""What the commands do, between arguments and printing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratsynth.errors import UsageError

if TYPE_CHECKING:
    from stratsynth.planning import Plan


def fit_recipe(path: Path, out: Path | None, workers: int = 1) -> tuple[Path, Mapping[str, Any]]:
    """Refuse everything that can be refused, then fit and write the release folder."""
    from stratsynth.cli.progress import fit_with_progress
    from stratsynth.recipes.recipe import Recipe
    from stratsynth.release.release import check_new

    recipe = Recipe.read(path)
    folder = check_new(out if out is not None else recipe.directory)
    return folder, fit_with_progress(recipe, folder, workers).certificate


def plan_recipe(path: Path, picture: Path | None) -> Plan:
    """The plan of a recipe, and its picture if one is wanted."""
    from stratsynth.planning import plan
    from stratsynth.recipes.recipe import Recipe

    recipe = Recipe.read(path)
    size = recipe.data.declared_size
    if size is None:
        raise UsageError("[data] declared_size is missing: a plan needs to know about how many records there are.")
    how, schema, budget = recipe.how(), recipe.schema(), recipe.budget()
    if picture is not None:
        from stratsynth.planning.plot import plot

        plot(how, schema, budget, picture, declared_size=size)
    return plan(how, schema, budget, declared_size=size)


def sample_release(
    folder: Path,
    rows: int | None,
    out: Path,
    where: Sequence[str],
    seed: int | None,
    balance: str | None = None,
    by_group: Path | None = None,
) -> tuple[int, str]:
    """Draw rows and write them; returns how many, and what structural rules moved if there are any."""
    from stratsynth.data.sources import write_table
    from stratsynth.models.rules import Moved
    from stratsynth.release import Release
    from stratsynth.release.page.summary import rules_line

    if out.exists():
        raise UsageError(f"{out} exists already; name another file with -o.")
    condition: dict[str, list[str]] = {}
    for item in where:
        column, equals, level = item.partition("=")
        if not equals:
            raise UsageError(f"--where {item!r} is not COLUMN=LEVEL.")
        condition.setdefault(column, []).append(level)
    if rows is None and by_group is None:
        raise UsageError("how many rows? Give -n, or --by-group with each group's number.")
    columns = None if balance is None else balance.split(",")
    release, moved = Release.load(folder), Moved()
    table = release.sample_arrow(rows, seed=seed, where=condition, n_by_group=by_group, balance=columns, moved=moved)
    write_table(table, out)
    return int(table.num_rows), f"\nRules: {rules_line(moved.to_dict())}" if release.model.schema.rules else ""


def predict_rows(folder: Path, data: Path, out: Path) -> int:
    """Write what a release predicts of some rows; the number of rows."""
    from stratsynth.data.sources import write_table
    from stratsynth.release import Release

    table = Release.load(folder).predictions(data)
    write_table(table, out)
    return int(table.num_rows)


def describe_rules(folder: Path) -> str:
    """What structural rules moved in a release's synthetic table, as a line of the certificate's summary."""
    from stratsynth.errors import ReleaseError
    from stratsynth.files.whole import read_json
    from stratsynth.release.page.summary import rules_line
    from stratsynth.release.release import RULES

    try:
        return f"\nRules         {rules_line(read_json(folder / RULES))}"
    except FileNotFoundError:
        return ""  # no rules
    except (OSError, ValueError) as error:
        raise ReleaseError(f"{folder}: {RULES} is damaged ({type(error).__name__}).") from None


def list_mechanisms() -> list[dict[str, str]]:
    """The registered mechanisms with the first sentence of their module."""
    from stratsynth.errors import StratsynthError
    from stratsynth.mechanisms import installed, load

    found = []
    for name, point in installed().items():
        try:
            load(name)
            first = _first_sentence(point.module)
        except StratsynthError as error:
            first = str(error)
        package = point.dist.name if point.dist is not None else ""
        found.append({"name": name, "summary": first, "package": package})
    return found


def _first_sentence(module: str) -> str:
    import sys

    text = " ".join((sys.modules[module].__doc__ or "").split())
    return text.split(". ")[0].rstrip(".")


def draft_schema(data: Path, out: Path) -> None:
    """INTERNAL: a draft beside the data, never in a release."""
    from stratsynth.data.draft import draft, refuse_release_folder
    from stratsynth.data.sources import open_source

    refuse_release_folder(out)
    if out.exists():
        raise UsageError(f"{out} exists already; a draft never overwrites a schema.")
    out.write_text(draft(open_source(data)), encoding="utf-8")


def check_schema(data: Path, schema: Path) -> dict[str, Any]:
    """INTERNAL: what a schema does not know of some data."""
    from stratsynth.data.draft import check
    from stratsynth.data.sources import open_source
    from stratsynth.schema import Schema

    return check(Schema.load(schema), open_source(data)).to_dict()


def describe_ledger(found: Mapping[str, Any]) -> str:
    """The ledger for a reader."""
    if not found["fits"]:
        return f"{found['ledger']}: nothing has been spent."
    cap, left = found["cap_epsilon"], found.get("left_epsilon")
    limit = "no cap was set" if cap is None else f"{left:.6g} left of {cap:g}"
    lines = [
        f"{found['ledger']}: epsilon {found['spent_epsilon']:.6g} spent at delta {found['delta']:g}, {limit}",
        "",
    ]
    width = max(len("mechanism"), *(len(fit["mechanism"]) for fit in found["fits"]))
    lines.append(f"{'when':19}  {'mechanism':{width}} {'epsilon':>8} {'delta':>8} {'questions':>10}  state")
    for fit in found["fits"]:
        spent = f"{fit['epsilon']:>8g} {fit['delta']:>8g} {fit['questions']:>10}"
        state = "done" if fit["state"] == "done" else "open: the same recipe goes on from here"
        lines.append(f"{fit['at'][:19]}  {fit['mechanism']:{width}} {spent}  {state}")
    return "\n".join(lines)


def describe_check(found: Mapping[str, Any]) -> str:
    """The check for a reader."""
    lines = [
        "INTERNAL: computed from the data without a charge; not for publication.",
        f"{found['rows']:,} rows, of which {found['left_out']:,} would be left out by the schema's policy.",
        "",
        f"{'column':20} {'outside':>9} {'clipped':>9} {'missing':>9}  levels never seen",
    ]
    for name, column in found["columns"].items():
        unseen = ", ".join(column["unseen"][:6]) + (
            f" and {len(column['unseen']) - 6} more" if len(column["unseen"]) > 6 else ""
        )
        lines.append(
            f"{name:20} {column['outside']:>9,} {column['clipped']:>9,} {column['missing']:>9,}  {unseen or '-'}"
        )
    return "\n".join(lines)
