"""`guided warmup` compiles whatever a later command may call."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pkgutil import iter_modules

import pytest

import guided.kernels


def _entries():
    from numba.core.dispatcher import Dispatcher

    for module in iter_modules(guided.kernels.__path__):
        kernels = vars(importlib.import_module(f"guided.kernels.{module.name}")).values()
        for kernel in kernels:
            if isinstance(kernel, Dispatcher) and not kernel.targetoptions.get("no_cpython_wrapper"):
                yield f"{kernel.py_func.__module__.rsplit('.', 1)[-1]}.{kernel.py_func.__qualname__}"


@pytest.mark.slow
def test_no_kernel_is_left_to_be_compiled(tmp_path):
    command = [sys.executable, "-m", "guided", "warmup", "--json"]
    environment = {**os.environ, "GUIDED_KERNELS": "numba", "NUMBA_CACHE_DIR": str(tmp_path)}
    told = [
        json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout) for _ in range(2)
    ]
    assert told[0]["compiled"] > 0 == told[1]["compiled"]
    compiled = {path.name.split("-")[0] for path in tmp_path.rglob("*.nbi")}
    assert compiled >= set(_entries())
