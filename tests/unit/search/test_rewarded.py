"""DeAL and best of blocks as searches: the algorithms of `guided.steer` under a grammar, with costs and several texts."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch

import guided
from guided.errors import GuidedError, LimitError
from guided.lm import TableModel, next_logits
from guided.search import beam_search, block_search, deal_search
from guided.steer import Contrastive, RewardError, Stack, TextReward, best_of_blocks, deal
from tests.amounts import some

END = 4
VOCABULARY = guided.Vocabulary.from_tokens([b"a", b"b", b"ab", b"c", None], eos_ids=[END])
LANGUAGE = guided.compile(guided.regex("(ab|ca|b)+c?"), VOCABULARY)
MODEL = TableModel.random(3, width=END + 1, eos_ids=[END])
PROMPT = (1, 2)


def text_of(tokens):
    return "".join(["a", "b", "ab", "c", ""][token] for token in tokens)


def letters(texts):
    return [float(text.count("c")) for text in texts]


REWARD = TextReward(letters, text_of, prompt=False)


def log_probability(model, tokens):
    total = 0.0
    for length, token in enumerate(tokens):
        total += float(torch.log_softmax(next_logits(model, [PROMPT + tokens[:length]])[0].double(), -1)[token])
    return total


def test_deal_is_that_of_steering():
    found = deal_search(MODEL, PROMPT, LANGUAGE, heuristic=REWARD, weight=2.0, width=3, look_ahead=2, n_best=2,
                        max_tokens=6)  # fmt: skip
    own = deal(MODEL, PROMPT, REWARD, weight=2.0, n_beams=3, look_ahead=2, max_new_tokens=6, constraint=LANGUAGE)
    assert [each.tokens for each in found] == [beam.tokens for beam in own[:2]]
    for each, beam in zip(found, own):
        assert each.rank_score == beam.score
        assert each.score == pytest.approx(log_probability(MODEL, each.tokens))
        assert re.fullmatch("(ab|ca|b)+c?", each.text) and each.tokens[-1] == END and each.finished
        assert each.rank_score == pytest.approx(each.score + 2.0 * each.text.count("c")), "a whole text has no roll-out"


def test_without_weight_it_is_beam_search():
    for seed in range(8):
        model = TableModel.random(seed, width=END + 1, eos_ids=[END])
        plain = beam_search(model, PROMPT, LANGUAGE, width=4, max_tokens=6)
        found = deal_search(model, PROMPT, LANGUAGE, heuristic=REWARD, weight=0.0, width=4, expand=5, max_tokens=6)
        assert found[0].score >= plain[0].score - 1e-9, "texts that end stay in the beam here"
        assert found[0].score == found[0].rank_score


def test_weight_brings_reward():
    plain, steered = (
        np.mean([
            deal_search(TableModel.random(seed, width=END + 1, eos_ids=[END]), PROMPT, LANGUAGE, heuristic=REWARD,
                        weight=weight, max_tokens=8)[0].text.count("c")
            for seed in range(some(10, 2))
        ])
        for weight in (0.0, 5.0)
    )  # fmt: skip
    assert steered > plain + 0.5


def test_blocks_are_those_of_steering():
    for seed in range(6):
        found = block_search(MODEL, PROMPT, LANGUAGE, value=REWARD, blocks=3, block_tokens=2, max_tokens=6, seed=seed)
        own = best_of_blocks(MODEL, PROMPT, REWARD, np.random.default_rng(seed), n_blocks=3, block_tokens=2,
                             max_new_tokens=6, constraint=LANGUAGE)  # fmt: skip
        assert len(found) == 1
        assert (found[0].tokens, found[0].rank_score) == (own.tokens, own.value)
        assert found[0].score == pytest.approx(log_probability(MODEL, own.tokens)) == own.log_probability
        assert re.fullmatch("(ab|ca|b)+c?", found[0].text) and found[0].tokens[-1] == END


def test_blocks_over_a_steered_model():
    steered = Stack([Contrastive(TableModel.random(9, width=END + 1, eos_ids=[END]), alpha=0.0)]).over(MODEL)
    found = block_search(steered, PROMPT, LANGUAGE, value=REWARD, max_tokens=6, seed=1)
    assert found[0].score == pytest.approx(log_probability(steered, found[0].tokens))


def test_costs_leave_the_prompt_out():
    model = TableModel.random(3, width=END + 1, eos_ids=[END])
    found = block_search(model, PROMPT, LANGUAGE, value=REWARD, blocks=1, block_tokens=9, max_tokens=6, seed=2)
    assert found.cost.passes == found.cost.rows == len(found[0].tokens)
    one = deal_search(model, PROMPT, LANGUAGE, heuristic=REWARD, look_ahead=0, width=1, expand=1, max_tokens=6)
    assert one.cost.rows == len(one[0].tokens)
    ahead = deal_search(model, PROMPT, LANGUAGE, heuristic=REWARD, look_ahead=2, width=1, expand=1, max_tokens=6)
    assert ahead.cost.rows > one.cost.rows


def test_what_is_refused():
    with pytest.raises(GuidedError, match="n_best is 5"):
        deal_search(MODEL, PROMPT, LANGUAGE, heuristic=REWARD, n_best=5)
    for search, name in ((deal_search, "heuristic"), (block_search, "value")):
        with pytest.raises(LimitError):
            search(MODEL, PROMPT, LANGUAGE, **{name: REWARD}, max_tokens=1)
        with pytest.raises(RewardError, match="raised ZeroDivisionError"):
            search(MODEL, PROMPT, LANGUAGE, **{name: lambda texts: 1 / 0}, max_tokens=6)
        with pytest.raises(RewardError, match="shape"):
            search(MODEL, PROMPT, LANGUAGE, **{name: lambda texts: [math.pi] * (len(texts) + 1)}, max_tokens=6)
