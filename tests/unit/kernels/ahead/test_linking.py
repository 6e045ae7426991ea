"""A library comes to stand where it is asked for, whole."""

from __future__ import annotations

import sys

import pytest

from guided.kernels.ahead import linking
from guided.kernels.ahead.levels import LEVELS

COPY = [sys.executable, "-S", "-c", "import sys, shutil; shutil.copy(sys.argv[4], sys.argv[3])"]


def test_the_folder_is_made(monkeypatch, tmp_path):
    monkeypatch.setattr(linking, "linker", lambda level: COPY)
    into = tmp_path / "no" / "such" / "kernels.so"
    linking.link(b"objects", LEVELS[0], into)
    assert into.read_bytes() == b"objects" and list(into.parent.iterdir()) == [into]


def test_a_linker_that_fails_leaves_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(linking, "linker", lambda level: [sys.executable, "-S", "-c", "raise SystemExit('no room')"])
    with pytest.raises(linking.NoLinkerError, match="no room"):
        linking.link(b"objects", LEVELS[0], tmp_path / "kernels.so")
    assert list(tmp_path.iterdir()) == []
