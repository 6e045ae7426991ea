"""`guided doctor`: what it finds, what it calls slow, and that it says what to do."""

from __future__ import annotations

import importlib.util
import json

import pytest
from typer.testing import CliRunner

from guided.cli.application import application
from guided.cli.commands import doctor
from guided.cli.commands.doctor import Verdict, findings
from guided.kernels.ahead import library
from guided.vocab import cache


def found(part: str) -> doctor.Finding:
    return next(each for each in findings() if each.part == part)


def test_every_part_is_looked_at_and_every_fault_has_a_remedy():
    result = CliRunner().invoke(application, ["doctor", "--json"])
    said = json.loads(result.stdout)["findings"]
    parts = ["versions", "kernels", "models", "vocabulary", "first mask", "masks", "defaults"]
    assert [each["part"] for each in said] == parts
    assert all(bool(each["remedy"]) == (each["verdict"] != "fine") for each in said)
    assert result.exit_code == any(each["verdict"] == "slow" for each in said)


def test_kernels_that_have_to_be_compiled_are_slow(monkeypatch):
    monkeypatch.setattr(library, "found", lambda: None)
    monkeypatch.delenv(library.CHOICE, raising=False)
    assert found("kernels").verdict is Verdict.SLOW
    assert found("kernels").remedy == "Run: guided warmup"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "guided-decoding[numba]" in found("kernels").remedy
    assert found("models").verdict is Verdict.NOTE
    result = CliRunner().invoke(application, ["doctor"])
    assert result.exit_code == 1
    assert "SLOW  kernels" in result.stdout


def test_the_choice_of_numba_is_named(monkeypatch):
    monkeypatch.setenv(library.CHOICE, "numba")
    assert found("kernels").remedy == "Unset GUIDED_KERNELS"


def test_more_threads_than_processors(monkeypatch):
    import torch

    monkeypatch.setattr(torch, "get_num_threads", lambda: 4096)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert found("models").verdict is Verdict.SLOW
    assert "OMP_NUM_THREADS=" in found("models").remedy


def test_no_folder_for_vocabularies(monkeypatch):
    monkeypatch.setattr(cache, "cache_directory", lambda: None)
    assert found("vocabulary").verdict is Verdict.NOTE


def test_masks_slower_than_the_bound(monkeypatch):
    monkeypatch.setattr(doctor, "SLOW_MASK", 0.0)
    assert found("masks").verdict is Verdict.SLOW


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_commands(shell):
    variables = {
        "_GUIDED_COMPLETE": f"complete_{shell}", "COMP_WORDS": "guided ext", "COMP_CWORD": "1",
        "_TYPER_COMPLETE_ARGS": "guided ext", "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }  # fmt: skip
    result = CliRunner().invoke(application, [], prog_name="guided", env=variables)
    assert "extract" in result.stdout and "sql" not in result.stdout


def test_which_defaults_are_used(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "findings", lambda: iter(()))

    def said(*options):
        result = CliRunner().invoke(application, [*map(str, options), "doctor"])
        return result.exit_code, " ".join(result.stdout.split())

    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.toml"
    file.write_text("seed = 1")
    assert said("--config", file) == (0, f"ok defaults from {file}")
    assert "no guided.toml" in said("--no-config")[1]
    file.write_text("sead = 1")
    code, line = said("--config", file)
    assert code == 1 and line.startswith("WRONG defaults no command has this option") and line.endswith("mean seed?")
