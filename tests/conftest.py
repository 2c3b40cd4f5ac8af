"""Common parts of the tests: the check that the installed wheel is tested, `--slow`, the Hypothesis profiles, fixtures.

No test may use the network, and neither may what it tests; see `helpers.network`.

Shared helpers live in this folder, which is on the path (`pythonpath` in pyproject.toml):
`from strategies import schemas`, `from helpers.tables import small`. The repository's root never is, because
the `stratsynth/` there would hide the installed package, which alone has the adapters and the evaluation.
"""

import functools
import gc
import importlib.util
import os
import random
import sysconfig
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the long audits and simulations too")


def pytest_configure(config: pytest.Config) -> None:
    from helpers import network

    network.forbid()
    if "STRATSYNTH_TEST_INSTALLED" in os.environ:  # set by scripts/test
        refuse_all_but_the_installed_wheel()
    if hasattr(config, "cache"):  # without it, as with -p no:cacheprovider, prices are computed
        from helpers import kept_prices

        kept_prices.keep(config.cache.mkdir("prices"), anew=config.getoption("slow"))
    # Fresh examples on every run, and no deadline, since continuous integration shares its cores. A failure
    # prints the blob that repeats it.
    for profile, examples in {"suite": 60, "slow": 1000}.items():
        hypothesis.settings.register_profile(
            profile,
            derandomize=False,
            deadline=None,
            print_blob=True,
            max_examples=examples,
            suppress_health_check=[hypothesis.HealthCheck.too_slow],
        )
    slow = config.getoption("slow")
    hypothesis.settings.load_profile("slow" if slow else "suite")
    if slow:
        from helpers import contract

        contract.deep.append(slow)


def pytest_report_header() -> str:
    from helpers import contract

    seed = contract.table_seed()
    return f"contract: made-up tables of seed {seed}; {contract.NAME}={seed} repeats them"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("slow"):
        skip = pytest.mark.skip(reason="slow: runs with --slow")
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(skip)


def pytest_collection_finish() -> None:
    """Make shared objects once, and exempt them from garbage collection."""
    import typer.main

    # the tree of commands: a tenth of what most commands take
    typer.main.get_command = functools.cache(typer.main.get_command)
    gc.collect()
    gc.freeze()  # libraries, modules of tests, the tests
    gc.set_threshold(20_000, 10, 50)  # hypothesis notes every collection, which costs more than most find


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    forget_accounts()  # before fixtures of a module or session too, whatever test ran before in this process
    return (yield from without_network(item))


def pytest_runtest_teardown() -> None:
    from helpers import kept_prices

    kept_prices.write()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from without_network(item))


def without_network(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test in which a refused connection was swallowed."""
    from helpers import network

    before = len(network.seen)
    try:
        return (yield)
    finally:
        if len(network.seen) > before and not item.get_closest_marker("network"):
            pytest.fail(f"something used the network: {', '.join(network.seen[before:])}")


def refuse_all_but_the_installed_wheel() -> None:
    spec = importlib.util.find_spec("stratsynth")
    if spec is None or spec.origin is None:
        raise pytest.UsageError("stratsynth is not installed; scripts/test installs it")
    installed = Path(sysconfig.get_path("purelib")).resolve()
    if not Path(spec.origin).resolve().is_relative_to(installed):
        raise pytest.UsageError(f"stratsynth comes from {spec.origin}, not from the wheel in {installed}")


@pytest.fixture(autouse=True)
def accounts_of_its_own() -> None:
    """Nor does what fixtures of the module spent count in the first test that asks for them, and in no other."""
    forget_accounts()


def forget_accounts() -> None:
    """Make each test a process of its own to the accounts in memory, which know equal data again."""
    from stratsynth.accounting import process

    process._ACCOUNTS.clear()


@pytest.fixture
def seeded_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's random bits, from a seed: for tests of what is learned, whose bounds chance passes now and then."""
    from stratsynth.noise import SystemEntropy

    bits = random.Random(1)
    monkeypatch.setattr(SystemEntropy, "read", lambda self, count: bits.randbytes(count))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A file of a hundred people."""
    from helpers import small

    small.people().to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


@pytest.fixture
def ledger(data: Path) -> Path:
    """Path of the ledger of `data`, which the first fit makes."""
    return data.with_name("people.ledger")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """List that grows by one element with every reading of the rows."""
    from stratsynth.data.sources import CsvSource

    reads: list[object] = []
    proper = CsvSource.batches
    monkeypatch.setattr(CsvSource, "batches", lambda self, columns: reads.append(self) or proper(self, columns))
    return reads
