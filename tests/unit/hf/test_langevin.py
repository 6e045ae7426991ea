"""Langevin proposals: energies and steps against plain passes and autograd of the test's own, texts of the language."""

from __future__ import annotations

import itertools
import math
import re
from functools import partial

import numpy as np
import pytest
import torch

import guided
from guided.errors import GuidedError, LimitError, UnsupportedError
from guided.hf import LoadedModel, TransformersModel, generate
from guided.hf.langevin import Keywords, Soft, SoftTexts, _moved, langevin_search
from guided.lm import TableModel, next_logits
from tests.amounts import some
from tests.tolerances import SINGLE, SUMS

WIDTH = 352
PROMPT = (5, 9, 31, 7)


@pytest.fixture(scope="module")
def base(llama):
    return TransformersModel(llama)


@pytest.fixture(scope="module")
def loaded(llama, tokenizer):
    return LoadedModel("llama", llama, tokenizer)


@pytest.fixture(scope="module")
def words(vocabulary):
    return guided.compile(guided.regex("[a-d]{1,5}"), vocabulary)


def chance(base, tokens):
    text, total = list(PROMPT), 0.0
    for token in tokens:
        total += float(torch.log_softmax(next_logits(base, [text])[0], -1)[token])
        text.append(token)
    return total


def one_hot(tokens):
    return torch.nn.functional.one_hot(torch.tensor([tokens]), WIDTH).double()


def test_the_energy_of_a_text_is_minus_its_log_probability(base):
    texts = SoftTexts(base, PROMPT, lambda soft: soft[:, :, 7].sum(-1), 3.0)
    for tokens in [(4, 5, 6), (7,), (7, 3, 7, 200)]:
        wanted = -chance(base, tokens) + 3.0 * tokens.count(7)
        assert float(texts.of(one_hot(tokens))[0].detach()) == pytest.approx(wanted, abs=SUMS)


@pytest.mark.parametrize("model", ["llama", "gpt2"])
def test_a_step_follows_the_gradient(model, request):
    """COLD without noise: ``y - step grad E(y)``, the energy written out here; its gradient also by differences."""
    network = request.getfixturevalue(model)
    ready = TransformersModel(network)
    phrase = Keywords(((4, 5),))
    state = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 3, WIDTH)))
    texts = SoftTexts(ready, PROMPT, phrase, 0.5)
    moved = _moved(state, texts, Soft.LOGITS, 0.7, 0.0, torch.Generator())
    table = network.get_input_embeddings().weight

    def energy(logits):
        soft = torch.softmax(logits, -1)
        rows = torch.cat([table[list(PROMPT)], soft @ table])
        logs = torch.log_softmax(network(inputs_embeds=rows[None]).logits[0], -1)
        total = sum(-(soft[place] * logs[len(PROMPT) - 1 + place]).sum() for place in range(3))
        return total - 0.5 * torch.log(sum(soft[at, 4] * soft[at + 1, 5] for at in range(2)))

    rng = np.random.default_rng(1)
    for row in range(2):
        gradient = (state[row] - moved[row]) / 0.7
        own = state[row].clone().requires_grad_(True)
        (wanted,) = torch.autograd.grad(energy(own), own)
        torch.testing.assert_close(gradient, wanted, atol=1e-5, rtol=1e-5)  # Llama's norms are in float32
        if model == "gpt2":
            way = torch.from_numpy(rng.standard_normal((3, WIDTH)))
            with torch.no_grad():
                difference = (energy(state[row] + 1e-5 * way) - energy(state[row] - 1e-5 * way)) / 2e-5
            assert float((gradient * way).sum()) == pytest.approx(float(difference), rel=1e-5, abs=1e-6)  # of 1e-10


def test_noise_is_added_and_embeddings_are_of_tokens(base):
    texts = SoftTexts(base, PROMPT, None, 1.0)
    state = torch.zeros(1, 2, WIDTH, dtype=torch.float64)
    calm = _moved(state, texts, Soft.LOGITS, 0.1, 0.0, torch.Generator().manual_seed(3))
    loud = _moved(state, texts, Soft.LOGITS, 0.1, 2.0, torch.Generator().manual_seed(3))
    drawn = torch.randn(state.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    torch.testing.assert_close(loud - calm, 2.0 * drawn, atol=SUMS, rtol=0)
    begun = texts.embeddings[torch.tensor([[4, 5]])]
    moved = _moved(begun, texts, Soft.EMBEDDINGS, 50.0, 0.1, torch.Generator().manual_seed(3))
    for row in moved[0]:
        assert float((texts.embeddings - row).abs().sum(-1).min()) == 0.0


@pytest.mark.parametrize("phrases", [((1,),), ((0, 1), (2,)), ((0, 1, 2, 0),)])
def test_keywords_sum_over_places(phrases):
    soft = torch.softmax(torch.from_numpy(np.random.default_rng(2).standard_normal((2, 3, 3))), -1)
    for row, found in zip(soft.tolist(), Keywords(phrases)(soft).tolist()):
        wanted = 0.0
        for phrase in phrases:
            places = range(len(row) - len(phrase) + 1)
            total = sum(math.prod(row[at + i][token] for i, token in enumerate(phrase)) for at in places)
            wanted -= math.log(max(total, torch.finfo(torch.float64).tiny))
        assert found == pytest.approx(wanted)


OPTIONS = {"chains": 4, "length": 5, "steps": 12, "every": 4, "max_tokens": 6, "noise": 1.0}


@pytest.mark.parametrize("soft", Soft)
def test_every_text_is_of_the_language_and_scored_as_the_model_does(soft, base, words, vocabulary):
    energy = Keywords(((letter(vocabulary, b"d"),),))
    found = langevin_search(base, PROMPT, words, energy=energy, soft=soft, seed=1, n_best=5, step_size=4.0, **OPTIONS)
    assert len(found) >= 2
    assert [each.rank_score for each in found] == sorted((each.rank_score for each in found), reverse=True)
    for each in found:
        assert re.fullmatch("[a-d]{1,5}", each.text)
        assert each.score == pytest.approx(chance(base, each.tokens), abs=SUMS)
        worth = each.score - float(energy(one_hot(each.tokens))[0])
        assert each.rank_score == pytest.approx(worth, abs=SINGLE)


def letter(vocabulary, which):
    return next(token for token in range(vocabulary.size) if vocabulary.token_bytes(token) == which)


def test_steps_find_what_draws_do_not(base, words, vocabulary):
    """With the same draws to begin with: never worse, and mostly better, by the energy that is asked for."""
    energy = Keywords(((letter(vocabulary, b"d"), letter(vocabulary, b"d")),))
    gains = []
    for seed in range(6):
        options = OPTIONS | {"chains": 2, "seed": seed, "energy": energy, "weight": 2.0, "step_size": 6.0}
        drawn = langevin_search(base, PROMPT, words, **options | {"steps": 0})[0]
        moved = langevin_search(base, PROMPT, words, **options)[0]
        assert moved.rank_score >= drawn.rank_score
        gains.append(moved.rank_score - drawn.rank_score)
    assert sum(gain > 1 for gain in gains) >= 4


def test_a_small_language_is_searched_to_its_best(base, vocabulary):
    """Brute force over two letters of three: the greatest rank score of all texts."""
    constraint = guided.compile(guided.regex("[abc]{2}"), vocabulary)
    energy = Keywords(((letter(vocabulary, b"c"),),))
    found = langevin_search(
        base, PROMPT, constraint, energy=energy, weight=4.0, chains=12, length=2, steps=30, every=3, step_size=4.0,
        noise=3.0, max_tokens=3, seed=0,
    )[0]  # fmt: skip
    end = found.tokens[-1:] if found.tokens[-1] in vocabulary.eos_ids else ()
    ranked = {}
    for pair in itertools.product(b"abc", repeat=2):
        tokens = tuple(letter(vocabulary, bytes([each])) for each in pair) + end
        ranked[tokens] = chance(base, tokens) - 4.0 * float(energy(one_hot(tokens))[0])
    assert found.rank_score >= max(ranked.values()) - SUMS


def test_draws_are_those_of_the_mask(base, words):
    """Without steps the texts are masked draws: with one chain the shares are those of the masked law."""
    first, n = {}, some(200, 4)
    for seed in range(n):
        found = langevin_search(base, PROMPT, words, chains=1, steps=0, max_tokens=6, seed=seed)[0]
        first[found.tokens[0]] = first.get(found.tokens[0], 0) + 1
    bits = np.zeros(words.vocabulary.n_words, np.uint32)
    words.fill_budget_mask(words.start, bits, 6)
    allowed = np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little"))
    law = torch.softmax(next_logits(base, [PROMPT])[0][allowed], -1).tolist()
    for token, share in zip(allowed.tolist(), law):
        # Five standard errors of a share of n draws.
        assert abs(first.get(token, 0) / n - share) < 5 * math.sqrt(share * (1 - share) / n) + 1e-9


def test_generate_takes_it_as_a_search(loaded, vocabulary):
    energy = Keywords(((letter(vocabulary, b"d"),),))
    search = partial(langevin_search, energy=energy, steps=4, chains=2, seed=5)
    made = generate(loaded, ["the cat", "yes"], guided.regex("[a-d]{3}"), search=search, max_new_tokens=5)
    assert all(re.fullmatch("[a-d]{3}", found[0].text) for found in made)


def test_what_cannot_be_is_refused(base, words, t5):
    with pytest.raises(UnsupportedError, match="has no gradients"):
        langevin_search(TableModel.random(0), (1,), words)
    with pytest.raises(UnsupportedError, match="a decoder's inputs"):
        langevin_search(TransformersModel(t5), (1,), words)
    with pytest.raises(LimitError):
        langevin_search(base, PROMPT, guided.compile(guided.regex("a{9}"), words.vocabulary), max_tokens=2)
    for options in ({"chains": 0}, {"step_size": 0.0}, {"noise": -1.0}, {"steps": -1}, {"every": 0}):
        with pytest.raises(GuidedError, match="Pass counts"):
            langevin_search(base, PROMPT, words, **options)
    for phrases in ((), ((),)):
        with pytest.raises(GuidedError, match="a phrase has no tokens"):
            Keywords(phrases)
