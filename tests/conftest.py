"""Deterministic hypothesis runs, and where the optional test data is."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.amounts import some
from tests.databases import Databases, databases_of_a_session

# One thread for the small matrices here, in processes that tests start, too; torch reads it when it is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile(
    "default", derandomize=True, deadline=None, max_examples=some(80, 10), suppress_health_check=list(HealthCheck)
)
settings.load_profile("default")

ROOT = Path(__file__).resolve().parent.parent


# All that collection makes stays, and is walked again and again for nothing: 4.5 of its 24 seconds.
gc.disable()


def pytest_collection_finish() -> None:
    """Modules and tests stay: the collector, which would walk them half a second each time, need not look at them.

    What caches of the package keep grows to millions of objects, too, so that Python's thresholds (700, 10, 10), made
    for programs that are small, were 5 % of the suite's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(5000, 10, 10)
    gc.enable()


def pytest_sessionfinish() -> None:
    """What is left is collected when Python ends, or libraries say that it leaked."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of optional test data (`GUIDED_DATA`, else `../shared/data`); skips the test without it."""
    folder = Path(os.environ.get("GUIDED_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no test data: set GUIDED_DATA")
    return folder


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    """The source of a dialect's databases: ``databases("postgresql").create("CREATE TABLE t (a int)")`` is a URL.

    Dialects are those of `tests.databases.DIALECTS`; skips the test where one is not installed.
    """
    with databases_of_a_session() as source:
        yield source
