"""The help pages, versions, and that asking for help loads nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import guided
from tests.unit.cli.conftest import one_line

COMMANDS = ("extract", "sql", "check", "warmup", "version")
"""Those of one word; the help of `guided eval` is tested with the evaluations."""


def test_help_names_every_command_and_the_exit_codes(guided_cli):
    result = guided_cli("--help")
    assert result.exit_code == 0
    assert all(command in result.stdout for command in COMMANDS)
    assert "guided extract --schema person.json letter.txt" in result.stdout
    assert "Exit codes" in result.stdout
    assert "refused" in result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_each_commands_help_teaches(guided_cli, command):
    result = guided_cli(command, "--help")
    assert result.exit_code == 0
    assert "--json" in result.stdout
    assert "130 interrupted" in result.stdout
    if command != "version":
        assert result.stdout.count(f"guided {command}") >= 3, "usage and at least two examples"


def test_no_arguments_shows_the_help(guided_cli):
    result = guided_cli()
    assert result.exit_code == 2
    assert "Usage: guided" in result.stdout or "Usage: guided" in result.stderr


def test_version(guided_cli):
    assert guided_cli("--version").stdout == f"guided {guided.__version__}\n"
    versions = json.loads(guided_cli("version", "--json").stdout)
    assert versions["guided"] == guided.__version__
    assert versions["numba"]
    assert guided.__version__ in guided_cli("version").stdout


def test_help_loads_no_heavy_library():
    code = (
        "import sys\n"
        "from guided.cli.application import application\n"
        "from typer.testing import CliRunner\n"
        "assert CliRunner().invoke(application, ['--help']).exit_code == 0\n"
        "assert CliRunner().invoke(application, ['sql', '--help']).exit_code == 0\n"
        "print([m for m in ('torch', 'transformers', 'numba', 'numpy', 'sqlalchemy', 'jsonschema') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_check_loads_no_torch(person):
    code = (
        "import sys\n"
        "from guided.cli.application import application\n"
        "from typer.testing import CliRunner\n"
        f"assert CliRunner().invoke(application, ['check', {str(person)!r}]).exit_code == 0\n"
        "print([m for m in ('torch', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_python_m_guided():
    done = subprocess.run([sys.executable, "-m", "guided", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"guided {guided.__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["extract"], "Missing option '--schema'"),
        (["sql", "question"], "Missing option '--db'"),
        (["check"], "Missing argument 'GRAMMAR'"),
        (["chekc", "x"], "No such command 'chekc'"),
        (["check", "x", "--nonsense"], "No such option"),
        (["check", "x", "--format", "yaml"], "Invalid value for '--format'"),
        (["extract", "-s", "x", "--max-new-tokens", "0"], "Invalid value for '--max-new-tokens'"),
    ],
)
def test_wrong_usage_is_one_line(guided_cli, arguments, message):
    result = guided_cli(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    line = one_line(result.stderr)
    assert line.startswith("guided: error: ")
    assert message in line
    assert "--help" in line


def test_wrong_usage_for_machines(guided_cli):
    result = guided_cli("check", "x", "--nonsense", "--json")
    assert result.exit_code == 2
    assert result.stderr == ""
    error = json.loads(result.stdout)["error"]
    assert error["kind"] == "UsageError"
    assert error["exit_code"] == 2
    assert "--nonsense" in error["message"]
