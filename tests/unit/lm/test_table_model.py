"""The exact table model: its answers, its bookkeeping and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from guided.errors import GuidedError, UnsupportedError
from guided.lm import NOTHING, LanguageModel, Needs, TableModel, Tree, next_logits
from tests.tolerances import DOUBLE


@pytest.fixture
def model() -> TableModel:
    return TableModel.random(3, width=5)


def test_scores_are_the_functions(model):
    rows = model.start([[0, 1], [], [0, 1]])
    assert len(rows) == 3 and rows.tokens(1) == ()
    assert np.array_equal(rows.last.logits[0].numpy(), model.logprobs([0, 1]))
    assert torch.allclose(rows.last.logits.exp().sum(1), torch.ones(3, dtype=torch.float64), atol=DOUBLE)
    first, second, third = rows.extend([[2], [], [3, 0]])
    assert [len(first), len(second), len(third)] == [1, 0, 2]
    assert np.array_equal(third.logits[0].numpy(), model.logprobs([0, 1, 3]))
    assert np.array_equal(
        rows.last.logits.numpy(), np.stack([model.logprobs(t) for t in ([0, 1, 2], [], [0, 1, 3, 0])])
    )
    assert isinstance(model, LanguageModel)


def test_results_belong_to_the_caller(model):
    rows = model.start([[0], [0]])
    rows.last.logits.fill_(7)
    rows.extend([[1], [1]])[0].logits.fill_(7)
    assert np.array_equal(rows.last.logits[1].numpy(), model.logprobs([0, 1]))


def test_equal_prefixes_are_counted_once(model):
    rows = model.start([[0, 1], [0, 1], [0, 2]])
    assert (model.calls.passes, model.calls.rows, model.calls.positions) == (1, 2, 3)
    rows.extend([[1], [1], []])
    assert (model.calls.passes, model.calls.rows, model.calls.positions) == (2, 3, 4)
    rows.extend([[], [], []])
    assert model.calls.passes == 2


def test_trees(model):
    rows = model.start([[0], [1]])
    tree = Tree((1, 2, 3), (-1, 0, -1))
    scores = rows.extend_tree([tree, Tree()])
    assert np.array_equal(scores[0].logits[1].numpy(), model.logprobs([0, 1, 2]))
    assert len(scores[1]) == 0 and rows.tokens(0) == (0,)
    rows.keep([[0, 1], []])
    assert rows.tokens(0) == (0, 1, 2) and rows.tokens(1) == (1,)
    with pytest.raises(GuidedError, match="no tree"):
        rows.keep([[], []])
    rows.extend_tree([tree, Tree()])
    with pytest.raises(GuidedError, match="no path"):
        rows.keep([[1], []])


def test_needs():
    table = TableModel(
        lambda tokens: np.log([0.5, 0.5]),
        width=2,
        layers=[lambda tokens: np.log([0.1, 0.9]), lambda tokens: np.log([0.3, 0.7])],
        hidden=lambda tokens: np.arange(3.0) + len(tokens),
        masked=lambda tokens, heads: np.log([0.25, 0.75]),
    )
    rows = table.start([[0]], Needs(layers=(0, -2, 2), hidden=True))
    assert rows.last.layers[0].exp()[0].tolist() == pytest.approx([0.1, 0.9])
    assert rows.last.layers[-2].exp()[0].tolist() == pytest.approx([0.3, 0.7])
    assert torch.equal(rows.last.layers[2], rows.last.logits)
    assert rows.last.hidden.tolist() == [[1.0, 2.0, 3.0]]
    rows = table.start([[0]], Needs(masked_heads=((0, 0),), masked_prompt=False))
    assert rows.last.logits.exp()[0, 0].item() == pytest.approx(0.5)
    assert rows.extend([[1]])[0].logits.exp()[0, 0].item() == pytest.approx(0.25)
    for needs in (Needs(layers=(3,)), Needs(layers=(-4,))):
        with pytest.raises(UnsupportedError, match="no layer"):
            table.start([[0]], needs)
    for needs in (Needs(layers=(0,)), Needs(hidden=True), Needs(masked_heads=((0, 0),))):
        with pytest.raises(UnsupportedError):
            TableModel.random(0).start([[0]], needs)


def test_tables_from_probabilities():
    table = TableModel.of({(): [1.0, 0.0], (0,): [0.25, 0.75]}, eos_ids=[1])
    assert next_logits(table, [[], [0]]).exp().tolist() == [[1.0, 0.0], [0.25, 0.75]]
    with pytest.raises(GuidedError, match="no row"):
        next_logits(table, [[0, 0]])
    with pytest.raises(GuidedError, match="sum to 1"):
        TableModel.of({(): [0.5, 0.4]})
    with pytest.raises(GuidedError, match="same width"):
        TableModel.of({(): [1.0], (0,): [0.5, 0.5]})


@pytest.mark.parametrize("row", [[0.0], [np.nan, 0.0], [np.inf, 0.0], [-np.inf, -np.inf]])
def test_answers_that_are_no_scores(row):
    with pytest.raises(GuidedError, match="2 logarithms"):
        next_logits(TableModel(lambda tokens: row, width=2), [[0]])


def test_bad_requests(model):
    rows = model.start([[0, 1]])
    with pytest.raises(GuidedError, match="range"):
        rows.extend([[5]])
    with pytest.raises(GuidedError, match="1 rows"):
        rows.extend([[1], [1]])
    with pytest.raises(GuidedError, match="cropped"):
        rows.crop([3])
    with pytest.raises(IndexError):
        rows.select([1])
    with pytest.raises(GuidedError, match="end-of-text"):
        TableModel.random(0, width=2, eos_ids=[2])
    with pytest.raises(GuidedError, match="parents"):
        Tree((1,), ())
    with pytest.raises(GuidedError, match="parents"):
        Tree((1, 2), (-1, 1))
    assert rows.tokens(0) == (0, 1) and Needs() == NOTHING
