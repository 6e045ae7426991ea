"""Every search on a steered model under a grammar: wide enough, each finds the exact argmax of the steered law."""

from __future__ import annotations

import math
import re

import pytest
import torch

import guided
from guided.lm import TableModel
from guided.search import (
    Clause,
    Literal,
    PhraseConstraint,
    beam_search,
    best_first_beam_search,
    diverse_beam_search,
    dynamic_beam_search,
    grid_beam_search,
    lattice_search,
    neurologic_search,
)
from guided.steer import Contrastive, Product, Stack
from tests.amounts import each, mostly_slow
from tests.tolerances import SINGLE, SUMS
from tests.twin.slow_search import PROMPT, VOCABULARY, contains, every_text

WIDE = 2000
PHRASE = PhraseConstraint.of((2, 0), (3,))
SEARCHES = {
    "beam": lambda *a, **k: beam_search(*a, width=WIDE, **k),
    "best first": lambda *a, **k: best_first_beam_search(*a, width=WIDE, **k),
    "best first in batches": lambda *a, **k: best_first_beam_search(*a, width=WIDE, batch=5, **k),
    "lattice": lambda *a, **k: lattice_search(*a, rows=10_000, branch=5, ngram=None, **k).hypotheses,
    "diverse": lambda *a, **k: diverse_beam_search(*a, width=WIDE, groups=2, **k).groups[1],
    "dynamic": lambda *a, **k: dynamic_beam_search(*a, [PhraseConstraint.of((2, 0), (3,))], width=WIDE, **k),
    "neurologic": lambda *a, **k: neurologic_search(*a, [Clause.of(Literal(PHRASE))], width=WIDE, **k),
    "grid": lambda *a, **k: grid_beam_search(*a, [PhraseConstraint.of((2,))], width=WIDE, **k),
}
WANTED = {"dynamic": [(2, 0), (3,)], "neurologic": [(2, 0), (3,)], "grid": [(2,)]}


def softmax(row):
    exps = [math.exp(value) if value > -math.inf else 0.0 for value in row]
    return [value / math.fsum(exps) for value in exps]


@pytest.mark.parametrize("name", each(SEARCHES, 2))
@pytest.mark.parametrize("seed", mostly_slow(range(3), 1))
def test_the_best_of_the_steered_law(name, seed):
    pattern = "(ab|c|a)*b?"
    model, other = TableModel.random(seed, width=5), TableModel.random(seed + 50, width=5)
    amateur = TableModel.random(seed + 90, width=5)
    steered = Stack([Product((other,), (1.0, 0.5)), Contrastive(amateur, beta=0.3, alpha=0.01)]).over(model)
    constraint = guided.compile(guided.regex(pattern), VOCABULARY)

    def score(text):
        sum_ = 0.0
        for n, token in enumerate(text):
            seen = (*PROMPT, *text[:n])
            row = softmax(steered.start([seen]).last.logits[0].tolist())
            sum_ += math.log(row[token]) if row[token] else -math.inf
        return sum_

    options = WANTED.get(name)
    scores = {
        text: score(text)
        for text in every_text(re.compile(pattern).fullmatch, 4)
        if options is None or any(contains(text, option) for option in options)
    }
    expected = sorted((text for text in scores if scores[text] > -math.inf), key=lambda text: -scores[text])[:3]
    found = SEARCHES[name](steered, PROMPT, constraint, max_tokens=4, n_best=3)
    assert [h.tokens for h in found] == expected != []
    assert [h.score for h in found] == pytest.approx([scores[text] for text in expected], abs=SUMS)


def test_rows_of_a_network_fork_as_they_should():
    from transformers import LlamaConfig, LlamaForCausalLM

    from guided.hf.language_model import TransformersModel

    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=5,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        bos_token_id=None,
        eos_token_id=4,
    )
    network = LlamaForCausalLM(config).eval().double()
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() > 1:
                parameter.mul_(12.0)
    model = TransformersModel(network, eos_ids=[4])

    def law(tokens):
        with torch.no_grad():
            return torch.log_softmax(network(torch.tensor([list(tokens)])).logits[0, -1].double(), -1).numpy()

    table = TableModel(law, width=5, eos_ids=[4])
    constraint = guided.compile(guided.regex("[abc]*"), VOCABULARY)
    small = {
        "lattice": lambda *a, **k: lattice_search(*a, rows=30, ngram=2, batch=3, **k).hypotheses,
        "beam": lambda *a, **k: beam_search(*a, width=4, **k),
        "best first": lambda *a, **k: best_first_beam_search(*a, width=4, batch=3, **k),
        "dynamic": lambda *a, **k: dynamic_beam_search(*a, [PHRASE], width=4, **k),
        "diverse": lambda *a, **k: diverse_beam_search(*a, width=3, groups=3, **k).groups[2],
        "neurologic": lambda *a, **k: neurologic_search(*a, [Clause.of(Literal(PHRASE))], width=4, **k),
    }
    for name, search in small.items():
        ours, exact = (search(m, PROMPT, constraint, max_tokens=8, n_best=3) for m in (model, table))
        assert [h.tokens for h in ours] == [h.tokens for h in exact] != [], name
        assert [h.score for h in ours] == pytest.approx([h.score for h in exact], abs=SINGLE), name
