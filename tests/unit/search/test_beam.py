"""Beam search and best-first beam search: against each other, a plain twin, and Transformers."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import guided
from guided.errors import GuidedError, LimitError
from guided.lm import TableModel
from guided.search import Stopping, beam_search, best_first_beam_search
from tests.amounts import crossed, each, some
from tests.tolerances import DOUBLE, SINGLE
from tests.twin.slow_search import END, PROMPT, VOCABULARY, anything, every_text, slow_beam

PATTERNS = ["[abc]*", "(ab|c)*b?", "a?b?c?(ab)?", "ca*|b"]


def flat(found):
    return [hypothesis.tokens for hypothesis in found]


@pytest.fixture(scope="module", params=PATTERNS)
def language(request):
    constraint = guided.compile(guided.regex(request.param), VOCABULARY)
    return constraint, list(every_text(re.compile(request.param).fullmatch, 5))


@pytest.mark.parametrize("penalty", each([0.0, 1.0, -0.7], 2))
@pytest.mark.parametrize("width", [1, 2, 3])
def test_beams_are_those_of_the_plain_twin(language, width, penalty):
    constraint, texts = language
    for seed in range(some(6, 2)):
        model = TableModel.random(seed, width=5)
        expected = slow_beam(model, texts, width, width, 5, penalty)
        options = {"width": width, "n_best": width, "max_tokens": 5, "length_penalty": penalty}
        found = beam_search(model, PROMPT, constraint, **options)
        assert flat(found) == [tokens for tokens, _ in expected]
        assert [h.score for h in found] == pytest.approx([score for _, score in expected], abs=DOUBLE)
        for batch in (1, 3):
            assert flat(best_first_beam_search(model, PROMPT, constraint, batch=batch, **options)) == flat(found)


def test_best_first_reads_fewer_rows():
    constraint = anything()
    beam_rows = best_rows = 0
    for seed in range(some(40)):
        model = TableModel.random(seed, width=5, scale=2.0)
        for width, n_best, penalty in ((4, 1, 0.0), (5, 3, 0.0), (4, 2, 0.5)):
            options = {"width": width, "n_best": n_best, "max_tokens": 9, "length_penalty": penalty}
            beam = beam_search(model, PROMPT, constraint, **options)
            best = best_first_beam_search(model, PROMPT, constraint, **options)
            assert [(h.tokens, h.score, h.rank_score) for h in beam] == [
                (h.tokens, h.score, h.rank_score) for h in best
            ]
            assert best.cost.rows <= beam.cost.rows
            beam_rows, best_rows = beam_rows + beam.cost.rows, best_rows + best.cost.rows
    assert best_rows < 0.8 * beam_rows


def test_ties_are_broken_alike():
    uniform = TableModel(lambda tokens: np.full(5, -np.log(5)), width=5, eos_ids=[END])
    for width in (1, 2, 5, 9):
        options = {"width": width, "n_best": width, "max_tokens": 4}
        found = beam_search(uniform, PROMPT, anything(), **options)
        assert flat(best_first_beam_search(uniform, PROMPT, anything(), **options)) == flat(found) != []


def test_several_ends_are_one():
    vocabulary = guided.Vocabulary.from_tokens([b"a", b"b", None, None], eos_ids=[2, 3])
    model = TableModel.of({}, otherwise=[0.3, 0.2, 0.24, 0.26], eos_ids=[2, 3])
    found = beam_search(model, (0,), guided.compile(guided.regex("[ab]*"), vocabulary), width=3, n_best=3, max_tokens=3)
    assert [h.data for h in found] == [b"", b"a", b"b"] and found[0].tokens == (3,)
    assert np.exp([h.score for h in found]) == pytest.approx([0.5, 0.15, 0.1])


def test_texts_end_in_time_and_say_so():
    model = TableModel.random(1, width=5)
    constraint = guided.compile(guided.regex("(abc){2,}"), VOCABULARY)
    found = beam_search(model, PROMPT, constraint, width=2, n_best=2, max_tokens=7)
    assert all(h.finished and re.fullmatch("(abc){2,}", h.text) and len(h.tokens) <= 7 for h in found) and len(found)
    with pytest.raises(LimitError):
        beam_search(model, PROMPT, constraint, width=2, max_tokens=3)


@pytest.mark.parametrize("options", [{"width": 0}, {"width": 2, "n_best": 3}, {"n_best": 0}, {"max_tokens": 0}])
def test_sizes_below_one_are_refused(options):
    for search in (beam_search, best_first_beam_search):
        with pytest.raises(GuidedError):
            search(TableModel.random(1, width=5), PROMPT, anything(), **options)
    with pytest.raises(GuidedError, match="batch"):
        best_first_beam_search(TableModel.random(1, width=5), PROMPT, anything(), batch=0)


def test_a_probability_of_0_is_no_candidate():
    model = TableModel.of({}, otherwise=[0.5, 0.0, 0.0, 0.0, 0.5], eos_ids=[END])
    found = beam_search(model, PROMPT, anything(), width=8, n_best=8, max_tokens=4)
    assert [h.text for h in found] == ["", "a", "aa", "aaa"]
    none = guided.compile(guided.regex("b+"), VOCABULARY)
    assert len(beam_search(model, PROMPT, none, max_tokens=4)) == 0
    assert len(best_first_beam_search(model, PROMPT, none, max_tokens=4)) == 0


def test_a_steered_model_is_searched_like_any_other():
    from guided.steer import Product, Stack

    one, other = TableModel.random(1, width=5), TableModel.random(2, width=5)
    steered = Stack([Product((other,), (1.0, 0.5))]).over(one)

    def product(tokens):
        row = one.logprobs(tokens) + 0.5 * other.logprobs(tokens)
        return row - np.log(np.exp(row).sum())

    table = TableModel(product, width=5, eos_ids=[END])
    for search in (beam_search, best_first_beam_search):
        options = {"width": 3, "n_best": 3, "max_tokens": 5}
        assert flat(search(steered, PROMPT, anything(), **options)) == flat(
            search(table, PROMPT, anything(), **options)
        )


class _Masks:
    """A `LogitsProcessor` that masks by advancing every row's tokens from the start."""

    def __init__(self, constraint, prompt, max_tokens):
        self.constraint, self.prompt, self.max_tokens = constraint, prompt, max_tokens

    def __call__(self, input_ids, scores):
        size = self.constraint.vocabulary.size
        for row, ids in enumerate(input_ids[:, self.prompt :].tolist()):
            state = self.constraint.start
            for token in ids:
                state = self.constraint.advance(state, token) if state else 0
            bits = np.zeros(self.constraint.vocabulary.n_words, np.uint32)
            if state:
                self.constraint.fill_budget_mask(state, bits, self.max_tokens - len(ids))
            allowed = np.unpackbits(bits.view(np.uint8), bitorder="little")[:size].astype(bool)
            scores[row, :size][~torch.from_numpy(allowed)] = -float("inf")
            scores[row, size:] = -float("inf")
        return scores


EARLY = {Stopping.FIRST: True, Stopping.CURRENT_LENGTH: False, Stopping.BOUND: "never"}


@pytest.mark.parametrize(("stopping", "penalty"), crossed(EARLY, [0.0, 1.0, 0.4]))
def test_the_beams_of_transformers(stopping, penalty):
    from transformers import LlamaConfig, LlamaForCausalLM, LogitsProcessorList

    from guided.hf.language_model import TransformersModel

    constraint = guided.compile(guided.regex("(a|bc|cab){2,5}"), VOCABULARY)
    for seed in range(3):
        torch.manual_seed(seed)
        config = LlamaConfig(
            vocab_size=5,
            hidden_size=16,
            intermediate_size=24,
            num_hidden_layers=1,
            num_attention_heads=2,
            bos_token_id=None,
            eos_token_id=END,
            pad_token_id=END,
        )
        network = LlamaForCausalLM(config).eval()
        with torch.no_grad():
            for parameter in network.parameters():
                if parameter.dim() > 1:
                    parameter.mul_(12.0)
        model = TransformersModel(network, eos_ids=[END])
        prompt = [1, 0, 2]
        theirs = network.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, 3, dtype=torch.long),
            num_beams=3,
            num_return_sequences=3,
            max_new_tokens=10,
            do_sample=False,
            early_stopping=EARLY[stopping],
            length_penalty=penalty,
            logits_processor=LogitsProcessorList([_Masks(constraint, 3, 10)]),
            return_dict_in_generate=True,
            output_scores=True,
        )
        expected = []
        for row, score in zip(theirs.sequences[:, 3:].tolist(), theirs.sequences_scores.tolist(), strict=True):
            if END in row and score > -1e8:
                expected.append((tuple(row[: row.index(END) + 1]), score))
        options = {"width": 3, "n_best": 3, "max_tokens": 10, "length_penalty": penalty}
        ours = beam_search(model, prompt, constraint, stopping=stopping, **options)
        assert flat(ours) == [tokens for tokens, _ in expected] != []
        assert [h.rank_score for h in ours] == pytest.approx([score for _, score in expected], abs=SINGLE)
        if stopping is Stopping.BOUND:
            assert flat(best_first_beam_search(model, prompt, constraint, batch=2, **options)) == flat(ours)
