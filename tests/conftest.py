"""Deterministic hypothesis runs, and where the optional test data is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default", derandomize=True, deadline=None, max_examples=60, suppress_health_check=list(HealthCheck)
)
settings.load_profile("default")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of optional test data (`GUIDED_DATA`, else `../shared/data`); skips the test without it."""
    folder = Path(os.environ.get("GUIDED_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no test data: set GUIDED_DATA")
    return folder
