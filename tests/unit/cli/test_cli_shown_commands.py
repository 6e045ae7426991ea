"""Every line that README.md and ``--help`` show is run, in a folder with the files of ``examples/``."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from typer.main import get_command

from guided.cli.application import application
from guided.cli.methods.search_methods import search_help
from guided.cli.methods.steering import steering_help
from tests.conftest import ROOT

EXAMPLES = ROOT / "examples"
ELSEWHERE = re.compile(r"Qwen/|--data |--ray|\./target|MODEL|PATH\b|\[FILE\]|warmup")
"""Lines about models of the hub, about data sets that are fetched, and patterns of lines."""
FILE = re.compile(r"(?:sqlite:///)?([\w-]+\.(?:json|jsonl|csv|parquet|txt|db|lark|gbnf))\Z")
MADE = {"answers.jsonl", "people.csv", "people.jsonl", "people.parquet", "orders.parquet"}
"""What the lines themselves write."""


def commands_in(command) -> list[str]:
    """The lines of a command's help and of those below it."""
    text = f"{command.help or ''}\n{command.epilog or ''}"
    found = [line.strip() for line in text.splitlines()]
    for below in getattr(command, "commands", {}).values():
        found += commands_in(below)
    return found


def shown() -> list[str]:
    readme = [
        line.removeprefix("$ ") for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("$ ")
    ]
    further = [line.strip() for line in f"{search_help()}\n{steering_help()}".splitlines()]
    lines = [*readme, *commands_in(get_command(application)), *further]
    kept = [line for line in lines if re.search(r"(?:^|\| )guided (?:extract|sql|check|bench|eval)", line)]
    return list(dict.fromkeys(line for line in kept if not ELSEWHERE.search(line)))


def test_every_file_that_is_named_is_in_examples():
    text = (ROOT / "README.md").read_text() + "\n".join(commands_in(get_command(application)))
    # Rows of the table have placeholders.
    lines = [line for line in text.splitlines() if "guided " in line and not line.startswith("|")]
    lines = [line for line in lines if not re.search(r"\./target|--data ", line)]
    named = {found.group(1) for line in lines for word in re.split(r"[\s'\"`>]+", line) if (found := FILE.match(word))}
    assert {"person.json", "letter.txt", "weather.json", "shop.db", "letters.jsonl"} <= named
    missing = sorted(name for name in named - MADE if not (EXAMPLES / name).is_file())
    assert missing == []


def test_lines_are_found():
    assert len(shown()) >= 25, shown()


@pytest.mark.slow
@pytest.mark.parametrize("line", shown())
def test_a_line_that_is_shown_runs(line, tmp_path):
    for path in EXAMPLES.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    script = bin_folder / "guided"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m guided "$@"\n')
    script.chmod(0o755)
    environment = {**os.environ, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"}
    # What a pipe ends in need not be installed.
    line = re.sub(r"\| jq -r \.\w+", "", line)
    options = " --limit 2" if line.startswith("guided eval") else ""
    done = subprocess.run(
        line.replace(" --limit 50", "") + options,
        shell=True,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    # 1: the answer is no, which is an answer, too.
    refused = "--accepts" in line or "--compare" in line
    assert done.returncode in ((0, 1) if refused else (0,)), done.stderr
    assert done.stdout.strip() or " > " in line or "--out" in line
