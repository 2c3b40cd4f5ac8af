"""Other handlers in the place of the package's own, for as long as a `with` block lasts."""

import contextlib

import pytest

from stratsynth.driver.handlers import HANDLERS


@contextlib.contextmanager
def answered_by(*handlers):
    """Questions of these handlers' kinds are answered by them; a kind that is new is one only here."""
    with pytest.MonkeyPatch.context() as patch:
        for handler in handlers:
            patch.setitem(HANDLERS, handler.kind, handler)
        yield
