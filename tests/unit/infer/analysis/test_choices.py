"""`choice_probabilities` against brute force over token strings, on vocabularies that spell texts in many ways."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import guided
from guided.errors import LimitError, UnsatisfiableError, UnsupportedError
from guided.infer.analysis.choices import choice_probabilities, lattice_of
from guided.lm import TableModel
from tests.amounts import each
from tests.tolerances import DOUBLE

AMBIGUOUS = guided.Vocabulary.from_tokens(
    [b"a", b"b", b"ab", b"ba", b"aba", b"a", None, b"n", b"o", b"no", "é".encode()[:1], "é".encode()[1:], None],
    eos_ids=[6, 12],
)


def brute_force(model, prompt, texts, vocabulary):
    """Every token string is tried: the probability of each text, and in how many ways it is spelled."""
    ids = [t for t in range(vocabulary.size) if vocabulary.token_bytes(t)]
    logs = {text: [] for text in texts}
    longest = max(len(text.encode()) for text in texts)
    for n in range(longest + 1):
        for tokens in itertools.product(ids, repeat=n):
            data = b"".join(vocabulary.token_bytes(token) for token in tokens)
            for text in texts:
                if data == text.encode():
                    chain = [model.logprobs((*prompt, *tokens[:i]))[token] for i, token in enumerate(tokens)]
                    end = model.logprobs((*prompt, *tokens))
                    logs[text] += [math.fsum(chain) + end[eos] for eos in vocabulary.eos_ids]
    sums = {text: math.fsum(map(math.exp, each)) for text, each in logs.items()}
    return sums, {text: len(each) for text, each in logs.items()}


@pytest.mark.parametrize("texts", each([["aba", "ab", "abab"], ["no", "n", "é"], ["", "a"], ["aaa"]], 2))
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("batch", [1, 64])
def test_all_tokenisations_count(texts, seed, batch):
    model = TableModel.random(seed, width=AMBIGUOUS.size, eos_ids=AMBIGUOUS.eos_ids)
    constraint = guided.compile(guided.choice(texts), AMBIGUOUS)
    found = choice_probabilities(model, (7,), constraint, batch=batch)
    sums, spelled = brute_force(model, (7,), texts, AMBIGUOUS)
    total = math.fsum(sums.values())
    assert dict(found) == pytest.approx({text: value / total for text, value in sums.items()}, abs=DOUBLE)
    assert math.fsum(found.values()) == pytest.approx(1, abs=DOUBLE)
    assert {text: math.exp(log) for text, log in found.log_weights.items()} == pytest.approx(sums, abs=DOUBLE)
    assert found.tokenisations == spelled
    assert found.log_ml == pytest.approx(math.log(total), abs=DOUBLE)
    assert list(found.values()) == sorted(found.values(), reverse=True) and found.best == next(iter(found))


def test_the_lattice_counts_what_the_model_will_read():
    texts = ["aba", "ab", "abab"]
    constraint = guided.compile(guided.choice(texts), AMBIGUOUS)
    lattice = lattice_of(constraint)
    model = TableModel.random(0, width=AMBIGUOUS.size, eos_ids=AMBIGUOUS.eos_ids)
    before = model.calls.positions
    found = choice_probabilities(model, (7,), constraint)
    # Two end-of-text ids end each sequence.
    assert 2 * lattice.n_sequences == sum(found.tokenisations.values())
    assert lattice.longest == 4
    # Each prefix is read once, the prompt's one token included.
    assert model.calls.positions - before == lattice.n_prefixes


@pytest.mark.parametrize("pattern", ["a*", "(ab)*", "n(o|b)+", "a{3,}"])
def test_infinite_languages_are_refused_before_the_model_is_asked(pattern):
    model = TableModel.random(0, width=AMBIGUOUS.size, eos_ids=AMBIGUOUS.eos_ids)
    constraint = guided.compile(guided.regex(pattern), AMBIGUOUS)
    with pytest.raises(UnsupportedError, match=r"infinite.*Bound every repetition"):
        choice_probabilities(model, (7,), constraint)
    assert model.calls.passes == 0


def test_infinite_languages_without_a_loop_reach_the_limit():
    vocabulary = guided.Vocabulary.from_tokens([b"(", b")", None], eos_ids=[2])
    constraint = guided.compile(guided.lark('start: "(" start ")" | "(" ")"'), vocabulary)
    with pytest.raises(LimitError, match="if it is finite at all"):
        lattice_of(constraint, max_edges=300)


def test_large_languages_are_refused_with_their_size():
    model = TableModel.random(0, width=AMBIGUOUS.size, eos_ids=AMBIGUOUS.eos_ids)
    constraint = guided.compile(guided.regex("[ab]{40}"), AMBIGUOUS)
    with pytest.raises(LimitError, match=r"token sequences have \d{15,} prefixes, more than 5000"):
        choice_probabilities(model, (7,), constraint, max_prefixes=5000)
    assert model.calls.passes == 0


def test_most_of_the_mass_is_found_with_a_bound_on_the_rest():
    texts = ["ab" * 5, "ab" * 4, "no"]
    model = TableModel.random(5, width=AMBIGUOUS.size, eos_ids=AMBIGUOUS.eos_ids)
    constraint = guided.compile(guided.choice(texts), AMBIGUOUS)
    whole = choice_probabilities(model, (7,), constraint)
    for mass in [0.5, 0.9, 0.999]:
        part = choice_probabilities(model, (7,), constraint, mass=mass, batch=1)
        assert part.cost.model_rows < whole.cost.model_rows and whole.unseen == 0
        assert 0 < part.unseen <= 1 - mass + 1e-12
        assert part.log_ml <= whole.log_ml <= part.log_ml - math.log1p(-part.unseen) + 1e-12
        for text in texts:
            assert part.get(text, 0.0) * (1 - part.unseen) <= whole[text] + 1e-12
            assert whole[text] <= part.get(text, 0.0) + part.unseen + 1e-12
        assert math.fsum(part.values()) == pytest.approx(1)


def test_a_model_that_says_none_of_the_texts():
    with np.errstate(divide="ignore"):
        row = np.log(np.array([0.0] * 12 + [1.0]))
    model = TableModel(lambda tokens: row, width=13, eos_ids=[12])
    with pytest.raises(UnsatisfiableError, match="probability"):
        choice_probabilities(model, (7,), guided.compile(guided.choice(["a", "b"]), AMBIGUOUS))


def test_special_tokens_are_no_texts():
    vocabulary = guided.Vocabulary.from_tokens([b"a", None, None], eos_ids=[1], special_tokens={"<x>": 2})
    constraint = guided.compile(guided.lark('start: "a" <x>', special_tokens=True), vocabulary)
    model = TableModel.random(0, width=3, eos_ids=[1])
    with pytest.raises(UnsupportedError, match="special tokens"):
        choice_probabilities(model, (0,), constraint)


def test_one_spelling_of_each_text():
    """A spelling that takes the longest token first stands for a tokenizer's."""
    texts = ["aba", "ab", "ba"]
    constraint = guided.compile(guided.choice(texts), AMBIGUOUS)
    spellings = {(4,): "aba", (2,): "ab", (3,): "ba"}
    model = TableModel.random(3, width=AMBIGUOUS.size, eos_ids=AMBIGUOUS.eos_ids)

    class Greedy:
        vocabulary, start = AMBIGUOUS, 1

        def advance(self, state, token):
            if state == 1:
                return {4: 2, 2: 3, 3: 4}.get(token, 0)
            return 5 if token in AMBIGUOUS.eos_ids and state < 5 else 0

    found = choice_probabilities(model, (7,), constraint, canonical=Greedy())
    weights = {}
    for tokens, text in spellings.items():
        end = model.logprobs((7, *tokens))
        weights[text] = math.exp(model.logprobs((7,))[tokens[0]]) * math.fsum(math.exp(end[e]) for e in (6, 12))
    total = math.fsum(weights.values())
    assert dict(found.canonical) == pytest.approx({text: w / total for text, w in weights.items()}, abs=DOUBLE)
