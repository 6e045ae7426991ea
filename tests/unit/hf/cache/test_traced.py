"""`TracedPasses`: the same scores to the bit as the model's own code; where that cannot be known, its own code."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from guided.hf.cache.row_layers import RowLayer
from guided.hf.cache.traced import TracedPasses
from guided.hf.language_model import TransformersModel
from guided.hf.network import Caching
from guided.lm import NOTHING, Needs
from tests.unit.hf.test_language_model import build


class Masked(TracedPasses):
    """Makes no pass, but the model's own code gets the masks that recordings get, by which scores are rounded."""

    def run(self, *args: Any) -> None:
        return None


def traced(model: Any) -> TransformersModel:
    found = TransformersModel(model)
    found.trace()
    return found


def plain(model: Any) -> TransformersModel:
    found = TransformersModel(model)
    found._network.traced = Masked(model)
    return found


def run(model: TransformersModel, needs: Needs = NOTHING) -> list[torch.Tensor]:
    """Scores of rows of lengths of their own that are read, go on, go back, leave and enter."""
    rows = model.start([[5, 6, 7], [8, 9, 10, 11, 12]], needs)
    found = [rows.last.logits.clone()]
    for added in ([[20], [21]], [[22, 23, 24], [25]], [[26], []], [[], [29]], [[27], [28]]):
        rows.extend(added)
        found.append(rows.last.logits.clone())
    rows.crop([4, 7])
    rows.join([[5, 6, 30], [31]])
    for token in range(40, 90):  # beyond the room that there was at first
        rows.extend([[token], [token + 1], [token + 2, 7], [token]])
        found.append(rows.last.logits.clone())
    rows.select([3, 0])
    rows.extend([[50], [51]])
    return [*found, rows.last.logits.clone()]


@pytest.mark.parametrize("name", ["llama-gqa", "opt"])
def test_scores_are_the_same_to_the_bit(name: str) -> None:
    model = build(name)
    ours = traced(model)
    assert TracedPasses.of(model).trusted == (True, True), TracedPasses.of(model).refused
    assert all(map(torch.equal, run(ours), run(plain(model))))


def test_what_runs_beside_a_pass_is_begun_when_all_else_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other threads would have the interpreter before the pass otherwise."""
    ours, came = traced(build("llama-gqa")), list[str]()
    rows = ours.start([[5, 6, 7], [8, 9]])
    buffers = RowLayer.buffers
    monkeypatch.setattr(RowLayer, "buffers", lambda self, new: came.append("buffers") or buffers(self, new))
    ours.before_passes(lambda: came.append("begun"))
    rows.extend([[1], [2]])
    assert came[-1] == "begun" and came.count("begun") == 1 and "buffers" in came


def test_few_operations_lay_a_pass_out() -> None:
    """Each gives the interpreter up, and so does each tensor that is dropped."""
    ours, before = traced(build("llama-gqa")), list[int]()
    rows = ours.start([[5, 6, 7], [8, 9]])
    rows.extend([[1], [2]])

    class Counting(TorchDispatchMode):  # type: ignore[no-untyped-call]
        n = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.n += 1
            return func(*args, **(kwargs or {}))

    with Counting() as counting:
        ours.before_passes(lambda: before.append(counting.n))
        rows.extend([[3], [4]])
    assert before[0] <= 8 and counting.n > 50  # All others are the model's own.


def test_the_model_is_left_alone_but_for_what_it_is_asked_besides(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("llama-gqa")
    ours, seen = traced(model), list[int]()
    own = model.model.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        seen.append(1)
        return own(*args, **kwargs)

    monkeypatch.setattr(model.model, "forward", forward)
    run(ours)
    assert len(seen) == 1  # what allocates the cache
    run(ours, Needs(layers=(1,)))
    assert len(seen) > 50


def test_hooks_are_called() -> None:
    model = build("llama-gqa")
    ours, seen = traced(model), list[int]()
    hook = model.model.layers[0].mlp.register_forward_hook(lambda *_: seen.append(1))
    run(ours)
    assert len(seen) > 50
    hook.remove()


@pytest.mark.parametrize("look", [
    lambda x: x.sum() > 0, lambda x: len(x[x > 0]) > 3, lambda x: x[0, 0].tolist()[0] > 0,
], ids=["value", "shape", "list"])  # fmt: skip
def test_a_model_that_looks_at_values_is_not_recorded(look: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("llama-gqa")
    block = model.model.layers[0].mlp
    own = block.forward
    assert TransformersModel(model).caching is Caching.RAGGED  # found out before it looks at all rows at once
    monkeypatch.setattr(block, "forward", lambda x: own(x) if look(x) else -own(x))
    ours = traced(model)
    assert TracedPasses.of(model).trusted == (False, False)
    assert "it goes by what aten." in TracedPasses.of(model).refused
    assert all(map(torch.equal, run(ours), run(TransformersModel(model))))


def test_a_model_whose_recording_says_something_else_is_not_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("llama-gqa")
    block = model.model.layers[0].mlp
    own, calls = block.forward, list[int]()

    def changing(x: torch.Tensor) -> Any:
        calls.append(1)
        return own(x) * (1.0 + len(calls))

    assert TransformersModel(model).caching is Caching.RAGGED  # found out before it changes
    monkeypatch.setattr(block, "forward", changing)
    traced(model)
    assert TracedPasses.of(model).trusted == (False, False)
    assert "are not the same" in TracedPasses.of(model).refused
