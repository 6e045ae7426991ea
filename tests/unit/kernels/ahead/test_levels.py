"""Which levels this processor has."""

from __future__ import annotations

import pytest

from guided.kernels.ahead import levels
from guided.kernels.ahead.levels import LEVELS, levels_here

V3 = "fpu avx avx2 bmi1 bmi2 f16c fma abm movbe"
V4 = f"{V3} avx512f avx512bw avx512cd avx512dq avx512vl"


@pytest.mark.parametrize(
    ("machine", "flags", "names"),
    [
        ("x86_64", V4, ["x86_64_v4", "x86_64_v3"]),
        ("x86_64", V3, ["x86_64_v3"]),
        ("x86_64", V3.replace("movbe", ""), []),
        ("aarch64", "", ["aarch64"]),
        ("riscv64", V4, []),
        ("", V4, []),
    ],
)
def test_the_best_comes_first(monkeypatch, machine, flags, names):
    monkeypatch.setattr(levels, "machine", lambda: machine)
    monkeypatch.setattr(levels, "_flags", lambda: frozenset(flags.split()))
    assert [level.name for level in levels_here()] == names


def test_where_the_system_says_nothing_there_is_no_level(monkeypatch, tmp_path):
    monkeypatch.setattr(levels, "machine", lambda: "x86_64")
    monkeypatch.setattr(levels, "Path", lambda path: tmp_path / "none")
    assert levels_here() == []


def test_no_library_is_for_another_system(monkeypatch):
    monkeypatch.setattr(levels.sys, "platform", "darwin")
    assert levels.machine() == "" and levels_here() == []


def test_names_are_different():
    assert len({level.name for level in LEVELS}) == len(LEVELS)
