"""Kinds of questions with a planted bug, and kinds that the package does not have, for as long as a block lasts."""

import contextlib
from dataclasses import fields
from types import FunctionType

import pytest

from stratsynth.questions import admission


@contextlib.contextmanager
def planted(*bugs):
    """The methods of these classes stand in the place of those of their `kind`: each is handed the proper one first."""
    with pytest.MonkeyPatch.context() as patch:
        for bug in bugs:
            for name, method in vars(bug).items():
                if isinstance(method, FunctionType):
                    patch.setattr(bug.kind, name, _in_place(method, getattr(bug.kind, name)))
        yield


def _in_place(method, proper):
    return lambda question, *arguments: method(question, proper, *arguments)


@contextlib.contextmanager
def joined(*kinds):
    """Add kinds to the closed set, as if their file lay in the package's own folder."""
    with pytest.MonkeyPatch.context() as patch:
        parts = {kind: tuple(part.name for part in fields(kind)) for kind in kinds}
        patch.setattr(admission, "_PARTS", {**admission._PARTS, **parts})
        for kind in kinds:
            patch.setitem(admission._DERIVED, kind, frozenset())
        yield
