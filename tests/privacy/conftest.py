"""The nursery of processes that are killed: all tests of a session share one, which takes a second to warm up."""

from collections.abc import Iterator

import pytest

from helpers.crash import Nursery


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    nursery = Nursery()
    yield nursery
    nursery.close()
