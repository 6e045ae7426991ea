"""Limits on tokens inside a grammar, where engines use constraints: matchers, models, vLLM's classes."""

import importlib
import json
import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import guided
from guided import hf, tokenset
from guided.serving import Matcher, fill_rows
from guided.serving.matcher import step
from tests import vocabularies
from tests.amounts import some
from tests.unit.serving.vllm.stand_ins import SIZE, TOKENIZER, config_class, put_in

TOKENS = vocabularies.bytes_first([b"ab", b"abc", b"</t>", b"b<", b"<t>", b"\xc3\xa9", b"a\xc3"])
VOCABULARY = vocabularies.of_tokens(TOKENS)
WANTED = [*b"ab<", *range(256, len(TOKENS) + 1)]


def thinking(max_tokens: int) -> guided.Grammar:
    return guided.think(guided.regex("[ab]{1,3}"), begin="<t>", end="</t>", separator="", max_tokens=max_tokens)


def state_after(constraint, tokens):
    state = constraint.start
    for token in tokens:
        state = constraint.advance(state, token)
    return state


def row_of(constraint, state):
    row = np.zeros(constraint.vocabulary.n_words, np.uint32)
    constraint.fill_mask(state, row)
    return row


@pytest.mark.parametrize("seed", range(some(12)))
def test_matchers_go_on_and_back(seed):
    """Each text in a batch, drafts and rollbacks: against the constraint stepped from the start, by a new one."""
    rng = random.Random(seed)
    limits = [1, 2, 4, 40]
    matchers = [Matcher(guided.compile(thinking(most), VOCABULARY), None if most % 4 else 60) for most in limits]
    apart = [guided.Constraint(thinking(most), VOCABULARY) for most in limits]
    twins: list[list[int]] = [[] for _ in limits]
    for _ in range(50):
        rows = torch.zeros((len(limits), VOCABULARY.n_words), dtype=torch.int32).numpy().view(np.uint32)
        fill_rows(matchers, rows)
        tokens = []
        for matcher, twin, constraint, row in zip(matchers, twins, apart, rows, strict=True):
            own = row_of(constraint, state_after(constraint, twin))
            assert (row & ~own == 0).all() and (matcher.most_tokens is not None or (row == own).all())
            allowed = tokenset.ids(row).tolist()
            some_allowed = [token for token in allowed if token in WANTED]
            tokens.append(rng.choice(some_allowed or allowed))
        for matcher, twin, constraint, token in zip(matchers, twins, apart, tokens, strict=True):
            draft = [token, *rng.choices(WANTED, k=3)]
            fits = 0
            while fits < len(draft) and state_after(constraint, [*twin, *draft[: fits + 1]]):
                fits += 1
            assert matcher.validate(draft) == fits >= 1
        for matcher, twin, token, kept in zip(matchers, twins, tokens, step(matchers, tokens), strict=True):
            if kept is None:
                assert matcher.accept(token)
            twin.append(token)
            if matcher.is_over or rng.random() < 0.2:
                back = rng.randint(1, len(twin))
                matcher.rollback(back)
                del twin[len(twin) - back :]


def test_a_whole_text_comes_in_time():
    constraint = guided.compile(thinking(3), VOCABULARY)
    for budget in range(constraint.shortest_completion(constraint.start) + 1, 12):
        rng = random.Random(budget)
        matcher = Matcher(constraint, budget)
        while not matcher.is_over:
            row = np.zeros(VOCABULARY.n_words, np.uint32)
            matcher.fill(row)
            assert matcher.accept(rng.choice(tokenset.ids(row).tolist()))
        assert matcher.n_tokens <= budget


def test_no_text_is_spelled_anew():
    constraint = guided.compile(thinking(3), VOCABULARY)
    assert constraint.forced(constraint.start) == b"<t>" and Matcher(constraint).forced_text() == ""


def test_the_packaged_model_thinks_no_longer():
    nano = hf.load("nano")
    answer = guided.choice(["yes", "no"])
    grammar = guided.think(answer, begin=None, end="</think>", max_tokens=6)
    written = guided.generate(nano, "Is the sky blue?", grammar, max_new_tokens=60)
    reasoning, end, rest = written.text.partition("</think>")
    assert end and rest.strip() in ("yes", "no")
    vocabulary = guided.Vocabulary.from_tokenizer(nano.tokenizer)
    begun = np.cumsum([0, *(len(vocabulary.token_bytes(token) or b"") for token in written.token_ids)])
    # It would have gone on: all six are taken.
    assert np.count_nonzero(begun[:-1] < len(reasoning.encode())) == 6
    drafted = guided.generate(nano, "Is the sky blue?", grammar, max_new_tokens=60, draft=guided.draft.auto())
    assert drafted.text == written.text


def test_vllm_s_classes(monkeypatch):
    put_in(monkeypatch)
    module = importlib.import_module("guided.serving.vllm.backend")
    backend = module.GuidedBackend(SimpleNamespace(structured_outputs_config=config_class()()), TOKENIZER, SIZE)
    tag = {"type": "tag", "begin": "<a>", "content": {"type": "any_text", "max_tokens": 2}, "end": "</a>"}
    payload = json.dumps({"type": "structural_tag", "format": tag})
    grammar = backend.compile_grammar(SimpleNamespace(name="STRUCTURAL_TAG"), payload)

    def ids(text):
        return TOKENIZER.encode(text, add_special_tokens=False)

    word = ids("the")[0]
    draft = [*ids("<a>"), word, word, word]
    opening = len(draft) - 3
    assert grammar.validate_tokens(draft) == draft[: opening + 2]
    assert grammar.accept_tokens("r", draft[: opening + 2])
    masks = backend.allocate_token_bitmask(1)
    grammar.fill_bitmask(masks, 0)
    row = masks[0].numpy().view(np.uint32)
    assert not tokenset.contains(row, word) and tokenset.contains(row, ids("</a>")[0])
    grammar.rollback(1)
    grammar.fill_bitmask(masks, 0)
    assert tokenset.contains(masks[0].numpy().view(np.uint32), word)
