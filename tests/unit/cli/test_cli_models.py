"""What the commands do with a model besides generating."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(("asked", "threads"), [(None, 1), ("2", 2)])
def test_a_small_model_takes_one_thread_unless_told(asked, threads, monkeypatch):
    """With more, a busy machine takes several times as long: each small product waits for all of them."""
    import torch

    from guided.cli.models import load_model

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if asked:
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
    before = torch.get_num_threads()
    try:
        # What torch takes when it is loaded: as many as it is told, else one for each core.
        torch.set_num_threads(int(asked or 4))
        load_model("nano", device="cpu", offline=True, quiet=True)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


def test_a_packaged_model_is_named_a_toy_once_and_on_a_terminal_only(monkeypatch, capsys):
    from guided.cli import models, output

    monkeypatch.setattr(models, "_named", set())
    for _ in range(2):
        models.load_model("nano", device="cpu", offline=True, quiet=False)
    assert capsys.readouterr().err == ""
    console = output.stderr_console

    def terminal():
        made = console()
        made._force_terminal = True
        return made

    monkeypatch.setattr(models, "stderr_console", terminal)
    models.load_model("nano", device="cpu", offline=True, quiet=True)
    assert capsys.readouterr().err == ""
    for _ in range(2):
        models.load_model("nano", device="cpu", offline=True, quiet=False)
    said = " ".join(capsys.readouterr().err.split())
    assert said.count("nano is a toy of") == 1 and "--model takes a real one" in said
