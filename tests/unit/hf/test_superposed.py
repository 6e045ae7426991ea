"""Superposed decoding: one draft is greedy decoding; several are those of a slow twin without caches; the grammar holds."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import guided
from guided.errors import GuidedError, LimitError, UnsupportedError
from guided.hf import LoadedModel, TransformersModel
from guided.hf.superposed import superposed_search
from guided.lm import TableModel
from guided.search import beam_search
from tests.amounts import each
from tests.tolerances import PASSES


@pytest.fixture(scope="module")
def loaded(llama, tokenizer):
    return LoadedModel("llama", llama, tokenizer)


@pytest.fixture(scope="module")
def grammar(loaded):
    return guided.compile(guided.regex("(the|cat|sat|[a-d ]){1,6}"), loaded.vocabulary)


def prompt_of(loaded, text="the cat"):
    return loaded.tokenizer(text)["input_ids"]


def test_one_draft_is_greedy_decoding(loaded, grammar):
    for text in ("the cat", "[1, 22", "yes"):
        prompt = prompt_of(loaded, text)
        found = superposed_search(loaded, prompt, grammar, drafts=1, max_tokens=9)
        greedy = beam_search(TransformersModel(loaded), prompt, grammar, width=1, max_tokens=9)
        assert found[0].tokens == greedy[0].tokens
        assert found[0].score == pytest.approx(greedy[0].score, abs=PASSES)
        assert found[0].rank_score == pytest.approx(found[0].score, abs=PASSES)


def slow(loaded, prompt, accepts, k, max_tokens, own=None, alpha=0.5, penalty=200.0):
    """All inputs read anew at each step; ``accepts`` says which tokens may come; pairs of tokens and score."""
    network, table = loaded.model, loaded.model.get_input_embeddings()
    inputs = table(torch.tensor([prompt]))
    live, done = [((), 0.0)], []
    for _ in range(max_tokens):
        with torch.no_grad():
            logs = network(inputs_embeds=inputs).logits[0, -1].double().log_softmax(-1).tolist()
        grown = []
        for tokens, score in live:
            if own is None:
                here = logs
            else:
                other = own.logprobs((*prompt, *tokens))
                other = other - np.logaddexp.reduce(other)
                here = [(1 - alpha) * a + alpha * b for a, b in zip(logs, other)]
                if all(here[t] == -math.inf for t in accepts(tokens)):
                    here = [(1 - alpha) * a - penalty for a in logs]
            ways = sorted((t for t in accepts(tokens) if here[t] > -math.inf), key=lambda t: (-here[t], t))[: 2 * k]
            grown += [((*tokens, t), score + here[t]) for t in ways]
        grown = sorted(grown, key=lambda pair: (-pair[1], pair[0]))[: 2 * k]
        end = loaded.tokenizer.eos_token_id
        done = sorted([*done, *(p for p in grown if p[0][-1] == end)], key=lambda p: (-p[1], p[0]))[:k]
        live = [pair for pair in grown if pair[0][-1] != end][:k]
        if not live or (len(done) == k and live[0][1] <= done[-1][1]):
            break
        weights = np.exp([score - live[0][1] for _, score in live])
        weights /= weights.sum()
        rows = [w * table.weight[tokens[-1]] for w, (tokens, _) in zip(weights, live)]
        inputs = torch.cat([inputs, sum(rows)[None, None].float()], 1)
    return done


def accepted(loaded, constraint, max_tokens):
    def of(tokens):
        state = constraint.start
        for token in tokens:
            state = constraint.advance(state, token)
        words = np.zeros(constraint.vocabulary.n_words, np.uint32)
        constraint.fill_budget_mask(state, words, max_tokens - len(tokens))
        return [t for t in range(constraint.vocabulary.size) if words[t // 32] >> (t % 32) & 1]

    return of


@pytest.mark.parametrize("drafts", each([2, 4], 2))
@pytest.mark.parametrize("seed", [None, 0, 1])
def test_drafts_are_those_of_the_slow_twin(loaded, grammar, drafts, seed):
    width = loaded.model.config.vocab_size
    own = None if seed is None else TableModel.random(seed, width=width)
    prompt = prompt_of(loaded)
    found = superposed_search(
        loaded, prompt, grammar, drafts=drafts, n_best=drafts, max_tokens=8, n_grams=own, alpha=0.4
    )
    expected = slow(loaded, prompt, accepted(loaded, grammar, 8), drafts, 8, own, alpha=0.4)
    assert [each.tokens for each in found] == [tokens for tokens, _ in expected] and len(found) == drafts
    # Single precision, summed along texts, from caches and without.
    assert [each.rank_score for each in found] == pytest.approx([score for _, score in expected], abs=PASSES)
    for hypothesis in found:
        assert guided_accepts(grammar, hypothesis.tokens)
        assert hypothesis.score == pytest.approx(whole(loaded, prompt, hypothesis.tokens), abs=PASSES)
    assert found.cost.passes <= 8


def guided_accepts(constraint, tokens):
    state = constraint.start
    for token in tokens[:-1]:
        state = constraint.advance(state, token)
    return bool(state) and constraint.is_accepting(state)


def whole(loaded, prompt, tokens):
    with torch.no_grad():
        logs = loaded.model(torch.tensor([[*prompt, *tokens]])).logits[0].double().log_softmax(-1)
    return sum(float(logs[len(prompt) - 1 + n, token]) for n, token in enumerate(tokens))


def test_n_grams_that_know_nothing_cost_the_penalty(loaded, grammar):
    prompt = prompt_of(loaded)
    width = loaded.model.config.vocab_size

    def only_special(tokens):
        row = np.full(width, -np.inf)
        row[0] = 0.0
        return row

    own = TableModel(only_special, width=width)
    plain = superposed_search(loaded, prompt, grammar, drafts=1, max_tokens=6)[0]
    found = superposed_search(loaded, prompt, grammar, drafts=1, max_tokens=6, n_grams=own, alpha=0.4, penalty=7.0)[0]
    assert found.tokens == plain.tokens
    assert found.rank_score == pytest.approx(0.6 * plain.rank_score - 7 * len(plain.tokens), abs=PASSES)


def test_what_is_refused(loaded, grammar, bart):
    prompt = prompt_of(loaded)
    for options in ({"drafts": 0}, {"drafts": 2, "n_best": 3}, {"alpha": 1.0}, {"max_tokens": 0}):
        with pytest.raises(GuidedError):
            superposed_search(loaded, prompt, grammar, **options)
    with pytest.raises(UnsupportedError, match="decoder"):
        superposed_search(LoadedModel("bart", bart, loaded.tokenizer), prompt, grammar)
    long = guided.compile(guided.regex("a{9}b{9}"), loaded.vocabulary)
    with pytest.raises(LimitError):
        superposed_search(loaded, prompt, long, max_tokens=3)
