"""The generated reference names every key of recipes and schemas, with what it means, and every command and class."""

import datetime as dt
import importlib.util
import re
from dataclasses import make_dataclass
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import tomli_w

import stratsynth as ss
from stratsynth.errors import RecipeError, SchemaError
from stratsynth.mechanisms import make
from stratsynth.recipes.recipe import Recipe

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def made():
    spec = importlib.util.spec_from_file_location("_reference", ROOT / "scripts" / "_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(made):
    return made.pages()


def part(text, heading):
    """Text below a heading, up to the next."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", text, re.DOTALL | re.MULTILINE)
    assert found, heading
    return found[1]


def rows(text):
    return {key: rest.strip() for key, rest in re.findall(r"^\| `(\w+)` \|(.*)\|$", text, re.MULTILINE)}


@pytest.mark.parametrize(
    ("heading", "keys"),
    [
        ("[data]", "path schema declared_size public engine table parent child query"),
        ("[strata]", "by merge bands hierarchy small threshold by_tables"),
        ('source = "public"', "path citation records"),
        ('source = "holdout"', "path citation confidential"),
        ('source = "private"', "share prior"),
        ('source = "raked"', "margins start"),
        ('source = "invariant"', "path citation"),
        ("[budget]", "epsilon delta neighbours accounting ledger ledger_epsilon account strata first"),
        ("[release]", "rows directory seed workers csv title publisher groups margin"),
        (
            "[compare]",
            (
                "mechanisms stratifications epsilons seeds metrics k cliques holdout target positive above thresholds "
                "models workers pairs"
            ),
        ),
    ],
)
def test_a_section_of_a_recipe_has_these_keys(pages, heading, keys):
    found = rows(part(pages["reference/recipe.md"], heading))
    assert list(found) == keys.split()
    assert all(row.split("|")[-1].strip() for row in found.values())


def test_what_a_recipe_accepts_is_in_the_reference(pages, tmp_path):
    whole = {
        "data": {"path": "p.csv", "schema": "s.toml"},
        "strata": {"by": ["A"]},
        "weights": {"source": "public"},
        "mechanism": {"name": "mst"},
        "budget": {"epsilon": 1.0, "delta": 1e-9},
        "release": {},
    }
    for section in ("data", "strata", "budget", "release"):
        for key in [*rows(part(pages["reference/recipe.md"], f"[{section}]")), "nonsense"]:
            wrong = {
                **whole,
                section: {key: dt.date(2026, 1, 1)},
            }  # a type that no key has: whether it is known is judged first
            (tmp_path / "recipe.toml").write_text(tomli_w.dumps(wrong), encoding="utf-8")
            with pytest.raises(RecipeError) as refused:
                Recipe.read(tmp_path / "recipe.toml")
            assert ("has no key" in str(refused.value)) == (key == "nonsense"), key


def test_every_mechanism_and_each_of_its_settings_is_there(pages):
    for point in entry_points(group="stratsynth.mechanisms"):
        found = rows(part(pages["reference/recipe.md"], f'name = "{point.name}"'))
        with pytest.raises(RecipeError) as refused:
            make(point.name, {"nonsense_of_a_key": 1})
        known = re.search(r"It has: (.*)\.$", str(refused.value))
        assert list(found) == (known[1].split(", ") if known else [])
        assert all(row.split("|")[-1].strip() for row in found.values())


BOUNDS = {
    "categorical": 'levels = ["a"]',
    "nested": 'levels = ["a"]',
    "numeric": "lower = 0\nupper = 9",
    "date": 'lower = "2024-01-01"\nupper = "2024-12-31"',
}


@pytest.mark.parametrize("kind", BOUNDS)
def test_every_key_of_a_column_is_there(pages, kind):
    shown = kind if kind != "date" else 'date", "datetime", "time" or "duration'
    found = rows(part(pages["reference/schema.md"], f'[columns.NAME] kind = "{shown}"'))
    start = f'format = "stratsynth-schema/1"\n[columns.A]\nkind = "{kind}"\n'
    for key in [*found, "integer", "kind", "levels", "lower", "unit", "spikes", "ordered", "nonsense"]:
        try:
            ss.Schema.from_toml_text(f"{start}{key} = {{}}\n")
        except (SchemaError, TypeError) as error:
            unknown = "unknown key" in str(error)
        else:
            unknown = False
        if key != "kind":
            assert unknown == (key not in found), key
    assert all(row.split("|")[-1].strip() for row in found.values())


def test_the_keys_of_the_file_of_a_unit_and_of_a_rule_are_there(pages):
    text = pages["reference/schema.md"]
    assert list(rows(part(text, "The file"))) == ["format", "origin", "reviewed_by", "unit", "frame"]
    assert list(rows(part(text, "unit"))) == ["column", "max_rows"]
    assert list(rows(part(text, "weight"))) == ["column", "max", "mean", "missing"]
    assert list(rows(part(text, "[[forbid]]"))) == ["when", "never"]


def test_every_command_is_there(pages):
    text = pages["reference/commands.md"]
    for words in (
        "fit",
        "plan",
        "sample",
        "schema draft",
        "ledger show",
        "weights sensitivity",
        "evaluate",
        "means",
        "demo",
    ):
        assert "Usage: stratsynth" in part(text, f"stratsynth {words}")


def test_every_public_name_is_there(pages):
    for name in ss.__all__:
        assert re.search(rf"^::: stratsynth\S*\b{name}$", pages["reference/python.md"], re.MULTILINE), name


def test_a_field_without_a_docstring_is_refused(made):
    with pytest.raises(RuntimeError, match="no docstring under it"):
        made._keys(make_dataclass("Bare", [("key", int)]))
