"""Wheels bring the kernels compiled, where they can be: the rest is in pyproject.toml.

A wheel with a library is for one system and any CPython from 3.10 on; one without is for all.
``GUIDED_MACHINE=aarch64`` makes the wheel of another architecture than this one's, which takes a linker for it
(`guided.kernels.ahead.linking`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

MACHINE = os.environ.get("GUIDED_MACHINE", "")


class BuildWithLibrary(build_py):
    """Copies the sources, and compiles the kernels of the copy; `guided warmup` does it for an editable install."""

    def run(self) -> None:
        """Have Numba of the build's own environment compile them."""
        super().run()
        if self.editable_mode:
            return
        copy = Path(self.build_lib).resolve()
        environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        wanted = ["--machine", MACHINE] if MACHINE else []
        done = subprocess.run([sys.executable, "-m", "guided.kernels.ahead", *wanted], cwd=copy, env=environment)
        if done.returncode and MACHINE:
            raise SystemExit(f"the kernels cannot be compiled for {MACHINE}, so there is no wheel of it")
        if done.returncode:
            self.warn("the kernels are not compiled into this wheel; Numba compiles each when it is first called")


class WheelWithLibrary(bdist_wheel):
    """Says of a wheel with a library which system it is for."""

    def run(self) -> None:
        """Look for a library before the wheel is laid out."""
        self.run_command("build")
        if any(Path(self.get_finalized_command("build").build_lib).rglob("*.kernels")):
            self.root_is_pure = False
            self.distribution.has_ext_modules = lambda: True
        super().run()

    def get_tag(self) -> tuple[str, str, str]:
        """No version of Python: the library uses its stable interface."""
        _, _, system = super().get_tag()
        return "py3", "none", f"linux_{MACHINE}" if MACHINE else system


setup(cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": WheelWithLibrary})
