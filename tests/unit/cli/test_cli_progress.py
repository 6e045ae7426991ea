"""Progress is for terminals: shown there, absent on pipes; the warm-up exercises every kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from guided.cli.progress import counting, kernel_compilation, steps
from guided.kernels.jit import JUST_IN_TIME
from tests.just_in_time import needs_numba


def test_steps_and_counts_are_silent_on_a_pipe(capsys):
    with steps(3) as step:
        step("one")
        step("two")
    with counting("texts", 4) as advance:
        advance(4)
    assert capsys.readouterr() == ("", "")


def test_steps_are_shown_on_a_terminal(monkeypatch, capsys):
    from rich.console import Console

    monkeypatch.setenv("TERM", "xterm")  # Rich draws nothing on a dumb one.
    monkeypatch.setattr(
        "guided.cli.progress.stderr_console", lambda: Console(stderr=True, force_terminal=True, width=100)
    )
    with steps(2) as step:
        step("reading the tokenizer")
    with counting("extracting", 7) as advance:
        advance(3)
    out, err = capsys.readouterr()
    assert out == ""
    assert "reading the tokenizer" in err
    assert "3/7" in err
    with steps(2, quiet=True) as step:
        step("nothing")
    assert capsys.readouterr() == ("", "")


@needs_numba
def test_only_kernels_of_this_package_count(capsys):
    def other(x):
        return x + 1

    def kernel(x):
        return x + 2

    kernel.__module__ = "guided.kernels.made_up"
    with kernel_compilation() as compiled:
        numba.njit(other)(1)
        numba.njit(kernel)(1)
    assert compiled == ["kernel"]
    # No terminal: a line instead of the bar.
    assert capsys.readouterr().err.count("compiling kernels, once on this machine") == 1
    with kernel_compilation(quiet=True) as compiled:
        numba.njit(kernel)(1)
    assert compiled == ["kernel"]
    assert capsys.readouterr() == ("", "")


def test_a_program_is_told_once_that_kernels_are_compiled():
    code = (
        "import numba\n"
        "from guided.kernels import just_in_time\n"
        "def kernel(x):\n"
        "    return x + 2\n"
        "kernel.__module__ = 'guided.kernels.made_up'\n"
        "numba.njit(lambda x: x + 1)(1)\n"
        "print('mine')\n"
        "numba.njit(kernel)(1)\n"
        "numba.njit(kernel)(1)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "mine\n"
    assert run.stderr.count("compiling kernels") == 1 and "guided warmup" in run.stderr


def test_warm_up_twice_compiles_nothing(guided_cli, monkeypatch):
    if JUST_IN_TIME:
        # No library is made in the middle of the tests.
        monkeypatch.setenv("GUIDED_KERNELS", "numba")
    assert guided_cli("warmup").exit_code == 0
    found = json.loads(guided_cli("warmup", "--json").stdout)
    assert found["compiled"] == 0
    assert found["seconds"] < 20
    assert Path(found["cache"]).is_dir()
    assert guided_cli("warmup", "--quiet").stdout == ""
    assert "all kernels were compiled already" in guided_cli("warmup").stdout


@pytest.mark.slow
def test_after_a_warm_up_nothing_is_compiled(tmp_path, person):
    environment = {**os.environ, "GUIDED_KERNELS": "numba", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "guided"]
    first = subprocess.run([*command, "warmup", "--json"], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(first.stdout)["compiled"] > 20
    code = (
        "import sys\n"
        "from guided.cli.progress import kernel_compilation\n"
        "from guided.cli.application import application\n"
        "from typer.testing import CliRunner\n"
        "with kernel_compilation() as compiled:\n"
        f"    CliRunner().invoke(application, ['check', {str(person)!r}, '--tokenizer', 'nano'])\n"
        "print(compiled)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
