"""The pages of the reference, made from the code: keys of recipes and schemas, commands, the Python interface."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.testing import CliRunner

from stratsynth.cli.app import app
from stratsynth.evaluation.comparisons.keys import KINDS
from stratsynth.mechanisms.documented import documented
from stratsynth.mechanisms.registry import load
from stratsynth.priors import prior
from stratsynth.recipes.sections import BudgetSection, DataSection, ReleaseSection, StrataSection
from stratsynth.release import controls
from stratsynth.schema import Categorical, Nested, Numeric, Schema, Temporal
from stratsynth.schema.drawn import DrawnWithin
from stratsynth.schema.rules import Rule
from stratsynth.schema.schema import Unit
from stratsynth.schema.toml import FORMAT, IMPLIED
from stratsynth.schema.weight import RowWeight
from stratsynth.settings import KEY, resolved
from stratsynth.strata.groups import Groups
from stratsynth.weights.sources import SHARE_SOURCES

if TYPE_CHECKING:
    from typer import Typer

_MADE = "*This page is made from the code.*\n"
NEEDED = {"tables", "path", "citation"}
"""Keys of [benchmark] that have no default."""
_WORDS = {
    "bool": "true or false",
    "float": "number",
    "int": "whole number",
    "int | str": "whole number or text",
    "str": "text",
    "Path": "path",
    "None": "",
    "Any": "text or number",
    "Mapping": "table",
    "Sequence": "list",
    "list": "list",
    "dict": "table",
    "tuple[int, ...]": "list of whole numbers",
    "tuple[float, ...]": "list of numbers",
    "tuple[float, float]": "two numbers",
    "tuple[tuple[float, float], ...]": "list of pairs of numbers",
    "Sequence[int]": "list of whole numbers",
    "Sequence[float]": "list of numbers",
    "tuple[str, ...]": "list of texts",
    "Sequence[str]": "list of texts",
    "Sequence[Sequence[str]]": "list of lists of texts",
    "Mapping[str, Any]": "table",
    "Mapping[str, Sequence[str]]": "table of lists of texts",
    "Mapping[str, float]": "table of numbers",
    "Mapping[str, str]": "table of texts",
    "Mapping[str, Sequence[float]]": "table of lists of numbers",
    "Mapping[str, Condition]": "table of conditions",
    "Grouping": "table of lists of texts",
    "tuple[Grouping, ...]": "list of tables of lists of texts",
    "Merges": "table of tables of lists",
    "Unit": "table",
    "Network": '"mlp" or "conv"; in Python also a function',
    "Mechanism[Any]": "the name of a mechanism",
    "Groups": "of [strata]",
    "Weights": "of [weights]",
}
"""Types in TOML by annotation; an annotation that is not listed raises KeyError."""
_OBJECTS: Mapping[str, tuple[str, Sequence[str]]] = {
    "python": ("stratsynth", ()),
    "mechanisms": ("stratsynth.adapters", ()),
    "sklearn": ("stratsynth.adapters.sklearn", ()),
    "evaluation": ("stratsynth.evaluation", ()),
    "extending": ("stratsynth.mechanisms", ("Mechanism", "Public")),
}
"""The pages of the Python interface: a module, and the names of it; none: all that it lists."""


def pages() -> dict[str, str]:
    """Every page of the reference by its path below `docs/`."""
    return {
        "reference/recipe.md": recipe(),
        "reference/schema.md": schema(),
        "reference/commands.md": commands(),
        **{f"reference/{page}.md": interface(module, names) for page, (module, names) in _OBJECTS.items()},
    }


def recipe() -> str:
    """The sections of a recipe and their keys."""
    parts = [
        "# Keys of a recipe",
        _MADE,
        "Paths are relative to the recipe's folder. Keys without a default are needed.",
    ]
    for cls in (DataSection, StrataSection):
        parts += [
            _heading(cls),
            _table([*_keys(cls, leave=("groups",)), *(_keys(Groups) if cls is StrataSection else ())]),
        ]
    rows = [(key, _WORDS[kind.__name__], "not given", prior.HELP[key]) for key, kind in prior.KEYS.items()]
    parts += [
        "## [prior]",
        "What is public already, which the fit starts from; see [priors](../guide/priors.md).",
        _table(rows),
    ]
    parts += ["## [weights]", "Where the shares of the strata come from: `source`, and the keys that belong to it."]
    for source in SHARE_SOURCES:
        rows = [
            (name, _WORDS[key.kind.__name__], "" if key.needed else "not given", key.help)
            for name, key in source.keys.items()
        ]
        parts += [f'### source = "{source.name}"', _table(rows)]
    parts += ["## [mechanism]", "`name`, and the settings of that mechanism."]
    for point in sorted(entry_points(group="stratsynth.mechanisms"), key=lambda found: found.name):
        parts += [f'### name = "{point.name}"', _first(load(point.name)), _table(_keys(load(point.name)))]
    for cls in (BudgetSection, ReleaseSection):
        parts += [_heading(cls), _table(_keys(cls))]
    parts += [
        "## [benchmark]",
        "Published totals that rows are raked to; see [published totals](../guide/totals.md).",
    ]
    for title, keys in (("", controls.SECTION), ("### tables", controls.KEYS)):
        needed = [
            (key, _WORDS[kind.__name__], "" if key in NEEDED else "not given", controls.HELP[key])
            for key, kind in keys.items()
        ]
        parts += [*([title] if title else []), _table(needed)]
    rows = [(key, _said(kind), "not given", text) for key, (kind, text) in KINDS.items()]
    parts += ["## [compare]", "What `stratsynth compare` varies and judges; a fit takes no notice of it.", _table(rows)]
    return "\n\n".join(parts) + "\n"


def schema() -> str:
    """The keys of a schema file."""
    top = [("format", "text", "", f'Always "{FORMAT}".'), *_keys(Schema, leave=("columns", "rules", "row_weight"))]
    weight = [("max" if key == "most" else key, *rest) for key, *rest in _keys(RowWeight)]
    parts = [
        "# Keys of a schema",
        _MADE,
        "## The file",
        _table(top),
        "## unit",
        'Either "record", or a table of these keys.',
        _table(_keys(Unit)),
        "## weight",
        _first(RowWeight),
        _table(sorted(weight)),
    ]
    for kinds, cls in (('"categorical"', Categorical), ('"nested"', Nested), ('"numeric"', Numeric)):
        parts += [f"## [columns.NAME] kind = {kinds}", _first(cls), _table(_keys(cls))]
    shown = _keys(Temporal, leave=tuple(IMPLIED))
    parts += ['## [columns.NAME] kind = "date", "datetime", "time" or "duration"', _first(Temporal), _table(shown)]
    parts += ["## [[forbid]]", _first(Rule), _table(_keys(Rule))]
    return "\n\n".join(parts) + "\n"


def commands() -> str:
    """The help of every command."""
    parts = ["# Commands", _MADE]
    for words in ((), *_commands(app)):
        shown = CliRunner().invoke(app, [*words, "--help"], prog_name="stratsynth", env={"COLUMNS": "100"})
        if shown.exit_code:
            raise RuntimeError(f"stratsynth {' '.join(words)} --help fails: {shown.output}")
        parts.append(f"## {' '.join(('stratsynth', *words))}\n\n```text\n{shown.output.strip()}\n```")
    return "\n\n".join(parts) + "\n"


def interface(module: str, names: Sequence[str] = ()) -> str:
    """The names of a module, each with what mkdocstrings makes of its docstring."""
    found = import_module(module)
    parts = [f"# {module}", _MADE, _first(found)]
    if module == "stratsynth":
        parts.append("[Examples](examples.md) has one for each name.")
    for name in names or sorted(found.__all__, key=str.lower):
        thing = getattr(found, name)
        home = thing.__name__ if inspect.ismodule(thing) else f"{getattr(thing, '__module__', module)}.{name}"
        parts.append(f"::: {home}")
    return "\n\n".join(parts) + "\n"


def _commands(typer: Typer, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for command in typer.registered_commands:
        yield (*above, command.name or command.callback.__name__)
    for group in typer.registered_groups:
        yield (*above, group.name)
        yield from _commands(group.typer_instance, (*above, group.name))


def _heading(cls: type) -> str:
    name, _, text = _first(cls).partition(": ")
    return f"## {name}\n\n{text[:1].upper()}{text[1:]}"


def _first(thing: Any) -> str:
    """The first paragraph of a docstring."""
    text = inspect.getdoc(thing)
    if not text:
        raise RuntimeError(f"{thing} has no docstring")
    return _flat(text.split("\n\n")[0])


def _keys(cls: type, leave: Sequence[str] = ()) -> list[tuple[str, str, str, str]]:
    """The fields of a dataclass: name, type with the range it is declared with, default, and its docstring."""
    rows = []
    drawn = {key.name for key in fields(DrawnWithin)} if issubclass(cls, DrawnWithin) else set()
    for field in sorted(fields(cls), key=lambda key: key.name in drawn):
        if field.name in leave:
            continue
        annotation, text = documented(cls, field.name)
        if not text:
            raise RuntimeError(f"{cls.__name__}.{field.name} has no docstring under it")
        allowed = field.metadata.get(KEY)
        kind = allowed.words(resolved(cls, field.name)) if allowed else _said(annotation)
        rows.append((field.name, kind, _default(field), text))
    return rows


def _said(annotation: Any) -> str:
    """Return a type in the words of TOML."""
    if isinstance(annotation, tuple):
        return " or ".join(dict.fromkeys(_said(kind) for kind in annotation))
    text = annotation.__name__ if isinstance(annotation, type) else annotation
    if text in _WORDS:
        return _WORDS[text]
    said = []
    for part in re.split(r" \| (?![^\[]*\])", text):
        if part.startswith("Literal["):
            said += [f'"{choice}"' for choice in ast.literal_eval(part.removeprefix("Literal"))]
        else:
            said.append(_WORDS[part])
    return " or ".join(dict.fromkeys(part for part in said if part))


def _default(field: Field[Any]) -> str:
    if field.default_factory is not MISSING:
        return "none" if not field.default_factory() else f"`{field.default_factory()}`"
    value = field.default
    if value is MISSING:
        return ""
    if value is None or value == "":
        return "not given"
    if isinstance(value, tuple):
        return "none" if not value else f"`{list(value)}`"
    return f"`{json.dumps(value)}`"


def _flat(text: str) -> str:
    return " ".join(text.split())


def _table(rows: Sequence[tuple[str, str, str, str]]) -> str:
    if not rows:
        return "No keys."
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for key, kind, default, text in rows:
        safe = [re.sub(r"(?<!\\)\|", r"\\|", cell) for cell in (kind, default, text)]
        lines.append(f"| `{key}` | {' | '.join(safe)} |")
    return "\n".join(lines)


def write(folder: Path) -> None:
    """Write the pages below a folder."""
    for name, text in pages().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
