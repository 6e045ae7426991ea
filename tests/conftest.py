"""Deterministic hypothesis runs, and where the optional test data is."""

from __future__ import annotations

import atexit
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
    """Modules and tests stay; the collector comes a tenth as often as for the small programs that Python thinks of."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(7000, 10, 10)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Behind each file, what is left of it is set aside: the package's caches, which grow to millions of objects.

    Every full collection walked them all, 77 of the suite's 1,130 s.  Now it walks what the file itself made.
    """
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


# What is left is collected when Python ends, or libraries say that it leaked; pytest would walk it before, several times.
atexit.register(gc.unfreeze)
if "PYTEST_XDIST_WORKER" in os.environ:
    # The first to be registered comes last: pytest waits for its processes, which would free gigabytes piece by piece.
    atexit.register(os._exit, 0)


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
