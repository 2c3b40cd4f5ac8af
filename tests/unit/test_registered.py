"""An entry that a package registers as a mechanism is a class, or is refused with the remedy."""

from importlib.metadata import EntryPoint

import pytest

from stratsynth.errors import RecipeError, UsageError
from stratsynth.mechanisms import registry


@pytest.mark.parametrize("value", ["stratsynth.census:make", "stratsynth.schema:Schema", "stratsynth:census"])
def test_what_is_no_class_of_mechanisms_is_refused_with_the_remedy(monkeypatch, value):
    point = EntryPoint("mine", value, registry.GROUP)
    monkeypatch.setattr(registry, "installed", lambda: {"mine": point})
    with pytest.raises(UsageError, match=f"registered as {value}, which is no class .* Register a class"):
        registry.make("mine", {})


def test_a_mechanism_named_without_what_it_needs_is_refused_with_the_remedy():
    with pytest.raises(
        RecipeError, match=r"pooled needs by and weights; in Python Pooled\(by=\.\.\., weights=\.\.\.\)"
    ):
        registry.make("pooled", {})
    assert registry.make("mst", {})
