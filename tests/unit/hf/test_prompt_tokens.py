"""Prompt tokens of models of transformers: embeddings behind a text, trained alone, drafting without another model."""

from __future__ import annotations

import pytest
import torch
from transformers import T5Config, T5ForConditionalGeneration

from guided.draft import DraftLoss, Fixed, speculate
from guided.errors import GuidedError, UnsupportedError
from guided.hf.language_model import TransformersModel
from guided.hf.prompt_tokens import PromptTokens
from guided.lm import Tree
from guided.testing import check_language_model
from tests.tolerances import SINGLE
from tests.unit.hf.test_skipped_layers import PROMPTS, WHOLE, made


@pytest.fixture(scope="module")
def target():
    return made(WHOLE["llama"]())


def by_hand(target, prompted, text, n):
    """The scores after a text and so many prompt tokens, each of them an embedding of the untouched model's input."""
    read = target.model.get_input_embeddings()(torch.tensor([text]))
    behind = prompted.embeddings.prompts.detach()[None, :n]
    with torch.no_grad():
        return target.model(inputs_embeds=torch.cat([read, behind], dim=1), use_cache=False).logits[0, -1]


def test_they_are_embeddings_behind_each_branch(target):
    prompted = PromptTokens(target, 2)
    rows = prompted.model.start([[5, 6, 7], [9]])
    first = prompted.model.width
    # Tokens 20 and 21 behind the text, 30 behind 20; prompt tokens behind the text, 21 and 30.
    tree = Tree((20, 21, 30, first, first + 1, first, first, first + 1), (-1, -1, 0, -1, 3, 1, 2, 6))
    scores = rows.extend_tree([tree, Tree((first,), (-1,))])
    wanted = {3: ([5, 6, 7], 1), 4: ([5, 6, 7], 2), 5: ([5, 6, 7, 21], 1), 7: ([5, 6, 7, 20, 30], 2)}
    for node, (text, n) in wanted.items():
        expected = by_hand(target, prompted, text, n)
        assert torch.allclose(scores[0].logits[node], expected, atol=SINGLE * float(expected.abs().max()))
    expected = by_hand(target, prompted, [9], 1)
    assert torch.allclose(scores[1].logits[0], expected, atol=SINGLE * float(expected.abs().max()))
    with pytest.raises(GuidedError, match="not in range"):
        prompted.model.start([[first]])
    check_language_model(prompted.model, steps=10, length=12)


def test_training_reads_what_drafting_reads(target):
    """Behind several ends of one text at once, and none of them sees another's."""
    prompted = PromptTokens(target, 2)
    text = [5, 6, 7, 8, 20, 30]
    with torch.no_grad():
        said, own = prompted._said(text, torch.tensor([2, 4, 5]))
        plain = target.model(input_ids=torch.tensor([text]), use_cache=False).logits[0]
    assert torch.allclose(own[1:], plain, atol=SINGLE * float(plain.abs().max()))
    for i, end in enumerate((2, 4, 5)):
        for j in range(2):
            expected = by_hand(target, prompted, text[:end], j + 1)
            assert torch.allclose(said[i, j], expected, atol=SINGLE * float(expected.abs().max()))


def test_they_learn_what_comes_and_nothing_else_changes(target, tmp_path):
    before = {name: value.clone() for name, value in target.model.state_dict().items()}
    found, _ = speculate(0, target, PROMPTS, [None] * len(PROMPTS), greedy=True, max_tokens=24)
    texts = [list(each.tokens) for each in found]
    prompted = PromptTokens(target, 2)
    losses = []
    prompted.fit(
        PROMPTS, texts, epochs=60, batch=3, rate=0.05, loss=DraftLoss.FORWARD_KL,
        done=lambda step, loss: losses.append(loss),
    )  # fmt: skip
    assert losses[-1] < 0.8 * losses[0]
    assert all(torch.equal(before[name], value) for name, value in target.model.state_dict().items())
    assert all(parameter.grad is None for parameter in target.model.parameters())
    prompted.calibrate(PROMPTS, texts)
    assert len(prompted.accuracies) == 2
    assert all(0 < sum(each) <= 1 + SINGLE for each in prompted.accuracies)
    prompted.save(tmp_path / "prompts.safetensors")
    again = PromptTokens(target, 2)
    again.load(tmp_path / "prompts.safetensors")
    assert torch.equal(again.embeddings.prompts, prompted.embeddings.prompts)
    with pytest.raises(GuidedError, match="no 3 prompt tokens"):
        PromptTokens(target, 3).load(tmp_path / "prompts.safetensors")
    drafted, counts = speculate(
        0, again.model, PROMPTS, [None] * len(PROMPTS), again.drafter(), greedy=True, max_tokens=24, policy=Fixed(12)
    )
    assert drafted == found
    assert counts.accepted > 0
    assert counts.drafted > counts.accepted


def test_what_cannot_have_them_is_refused(target):
    with pytest.raises(GuidedError, match="0 prompt tokens"):
        PromptTokens(target, 0)
    with pytest.raises(GuidedError, match="no texts"):
        PromptTokens(target, 2).fit([[5]], [[6, 7]])
    config = T5Config(vocab_size=64, d_model=16, d_kv=8, d_ff=16, num_layers=2, num_heads=2, decoder_start_token_id=0)
    with pytest.raises(UnsupportedError):
        PromptTokens(TransformersModel(T5ForConditionalGeneration(config).eval(), eos_ids=[1]), 1)
