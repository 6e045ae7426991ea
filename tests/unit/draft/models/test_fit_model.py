"""Training of draft models: towards the target by every loss beforehand, and online from refused drafts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from guided.draft import Chain, DraftLoss, Fixed, Model, Online, distil, speculate
from guided.errors import GuidedError
from guided.lm.table import TableModel
from tests.amounts import each

WIDTH, END = 6, 5
TARGET = TableModel.random(2, width=WIDTH, eos_ids=[END], order=1)
PROMPTS = [[i % (WIDTH - 1)] for i in range(30)]
TEXTS = [list(text.tokens) for text in speculate(1, TARGET, PROMPTS, [None] * 30, max_tokens=8)[0]]


class Bigrams(nn.Module):
    """A draft model whose scores depend on the last token: the target is one of these."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(WIDTH, WIDTH))

    def forward(self, tokens):
        return self.table[tokens]

    def drafter(self, **options):
        def logprobs(tokens):
            with torch.no_grad():
                return self.table[tokens[-1]].log_softmax(-1).double().numpy()

        class Fresh(TableModel):
            """A table that changes is not to be remembered."""

            def logprobs(self, tokens, masked=()):
                return logprobs(tokens)

        return Model(Fresh(logprobs, width=WIDTH, eos_ids=[END]), Chain(3), **options)


def accepted(network):
    """The share of drawn drafts that the target accepts where texts begin."""
    q, p = network.table.detach().softmax(-1).numpy(), np.stack([np.exp(TARGET.logprobs([t])) for t in range(WIDTH)])
    return np.minimum(p, q).sum(1)[:-1].mean()


@pytest.mark.parametrize("loss", each(DraftLoss, 2))
def test_every_loss_brings_the_draft_to_the_target(loss):
    network = Bigrams()
    before = accepted(network)
    distil(network, network, TARGET, PROMPTS, TEXTS, loss=loss, epochs=60, rate=0.05)
    # The target's own tokens are a sample of 30 texts, the divergences know its law.
    assert accepted(network) > (0.93 if loss is not DraftLoss.TOKENS else 0.8) > before + 0.1


def test_texts_must_be_there():
    with pytest.raises(GuidedError, match="nothing to learn"):
        distil(Bigrams(), Bigrams(), TARGET, [[1]], [])


def test_refused_drafts_teach_and_the_text_stays_the_targets():
    network = Bigrams()
    online = Online(network.drafter(), network, network, batch=8, rate=0.1)
    before = accepted(network)
    shares = []
    for seed in range(12):
        _, counts = speculate(seed, TARGET, PROMPTS, [None] * 30, online, max_tokens=8, policy=Fixed(3))
        shares.append(counts.accepted / counts.drafted)
    assert online.steps > 10 and accepted(network) > before + 0.15
    assert np.mean(shares[-3:]) > np.mean(shares[:2]) + 0.1
    greedy = {"max_tokens": 8, "greedy": True}
    plain, _ = speculate(0, TARGET, PROMPTS, [None] * 30, **greedy)
    assert speculate(0, TARGET, PROMPTS, [None] * 30, online, policy=Fixed(3), **greedy)[0] == plain


def test_what_is_kept_is_the_refused_place():
    """Each kept text ends where the draft and the target parted, with the target's scores there."""
    network = Bigrams()
    online = Online(network.drafter(), network, network, batch=10_000)
    speculate(0, TARGET, PROMPTS[:6], [None] * 6, online, max_tokens=8, policy=Fixed(3))
    assert len(online._refused) > 5
    for text, logits, _ in online._refused:
        assert logits.numpy() == pytest.approx(TARGET.logprobs(text), abs=1e-5)  # float32 of numbers up to 10.
    with pytest.raises(GuidedError):
        Online(network.drafter(), network, network, batch=0)
