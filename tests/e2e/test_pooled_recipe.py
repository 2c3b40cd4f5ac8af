"""A recipe for `pooled`, which makes its strata itself, from the command line."""

import json

import pytest

from helpers import small
from stratsynth import cli


@pytest.mark.parametrize(
    ("base", "name"), [('"mst"', "mst"), ('{ name = "aim", model_cells = 4096 }', "aim")], ids=["mst", "aim"]
)
def test_a_recipe_fits_pooled_with_any_base(tmp_path, monkeypatch, capsys, base, name):
    recipe = small.write_recipe(tmp_path)
    small.edit(recipe, '"independent"', f'"pooled"\nbase = {base}')
    monkeypatch.chdir(tmp_path)
    assert cli.run(["plan", "recipe.toml"]) == 0
    assert cli.run(["fit", "recipe.toml"]) == 0
    capsys.readouterr()
    said = json.loads((tmp_path / "release" / "certificate.json").read_text(encoding="utf-8"))
    assert said["mechanism"]["name"] == "pooled"
    assert said["mechanism"]["settings"]["base"]["name"] == name
    if name == "aim":
        assert said["mechanism"]["settings"]["base"]["settings"]["model_cells"] == 4096
    assert said["strata"]["by"] == ["SEX", "GROUP"]
    assert cli.run(["sample", "release", "-n", "20", "-o", "more.csv"]) == 0
