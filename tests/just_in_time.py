"""Tests that call what only kernels call, which no library has a function for."""

from __future__ import annotations

import pytest

from guided.kernels.jit import JUST_IN_TIME

needs_numba = pytest.mark.skipif(not JUST_IN_TIME, reason="kernels come from the library; GUIDED_KERNELS=numba")
