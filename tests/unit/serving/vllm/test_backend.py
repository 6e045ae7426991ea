"""The grammar and the backend, over stand-ins of vLLM's classes."""

import importlib
import random
from operator import itemgetter
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import guided
from guided import tokenset
from guided.serving import Matcher
from tests.unit.serving.vllm.stand_ins import (
    SIZE,
    TOKENIZER,
    SamplingParams,
    StructuredOutputsParams,
    config_class,
    put_in,
)

END = TOKENIZER.eos_token_id


@pytest.fixture
def backend(monkeypatch):
    put_in(monkeypatch)
    module = importlib.import_module("guided.serving.vllm.backend")
    return module.GuidedBackend(SimpleNamespace(structured_outputs_config=config_class()()), TOKENIZER, SIZE)


def ids(text: str) -> list[int]:
    return TOKENIZER.encode(text, add_special_tokens=False)


def grammar_of(backend, pattern):
    return backend.compile_grammar(SimpleNamespace(name="REGEX"), pattern)


def fill(backend, grammars, masks):
    """A step whose requests are their grammars."""
    backend.fill_step(grammars, lambda request: request, masks)


def own_mask(grammar) -> list[int]:
    row = np.empty(grammar.matcher.constraint.vocabulary.n_words, np.uint32)
    grammar.matcher.constraint.fill_mask(grammar.matcher.state, row)
    return row.tolist()


def test_it_follows_the_text(backend):
    grammar = grammar_of(backend, "yes|no")
    assert grammar.accept_tokens("r", ids("yes")) and not grammar.is_terminated()
    assert grammar.accept_tokens("r", [END]) and grammar.is_terminated()
    # What the engine sampled behind the end is not ours to judge.
    assert grammar.accept_tokens("r", [5, 6, 7]) and grammar.validate_tokens([END]) == []
    grammar.reset()
    assert not grammar.is_terminated() and not grammar.accept_tokens("r", ids("maybe"))


def test_drafts_are_validated_accepted_and_taken_back(backend):
    grammar = grammar_of(backend, "[0-9]{4}")
    digits = ids("1") + ids("2")
    before = own_mask(grammar)
    assert grammar.validate_tokens([*digits, *ids("x"), *digits]) == digits
    assert grammar.validate_tokens([digits[0], -1, digits[1]]) == digits[:1]
    assert grammar.validate_tokens([]) == [] and own_mask(grammar) == before
    for token in digits:
        assert grammar.accept_tokens("r", [token])
    grammar.rollback(2)
    assert own_mask(grammar) == before
    whole = [ids(digit)[-1] for digit in "1234"]
    assert grammar.validate_tokens([*whole, END, *whole]) == [*whole, END]


def test_masks_are_those_of_the_constraint(backend):
    masks = backend.allocate_token_bitmask(3)
    assert masks.dtype == torch.int32 and masks.shape == (3, -(-SIZE // 32)) and bool((masks == -1).all())
    grammar = grammar_of(backend, "[0-9]{4}")
    grammar.fill_bitmask(masks, 1)
    assert masks[1].numpy().view(np.uint32).tolist() == own_mask(grammar)
    assert bool((masks[[0, 2]] == -1).all())
    wide = torch.full((1, masks.shape[1] + 4), -1, dtype=torch.int32)
    grammar.fill_bitmask(wide, 0)
    assert wide[0].numpy().view(np.uint32).tolist() == [*own_mask(grammar), 0, 0, 0, 0]


@pytest.mark.parametrize("is_own", [True, False])
def test_a_step_is_the_rows_one_by_one(backend, is_own):
    own = backend.allocate_token_bitmask(5)
    grammars = [grammar_of(backend, pattern) for pattern in ("[0-9]+", "yes|no", "a", "b")]
    grammars[3].accept_tokens("r", [*ids("b"), END])
    for chosen in ([0, 1, 2], [0, 3, 1], [2, None, 0], [2, None, 0, 1], [None]):
        given = [None if n is None else grammars[n] for n in chosen]
        masks = own if is_own else torch.full_like(own, 7)
        before = masks.clone()
        fill(backend, given, masks)
        for row, grammar in zip(masks.numpy().view(np.uint32).tolist(), given, strict=False):
            free = grammar is None or grammar.is_terminated()
            assert row == ([0xFFFFFFFF] * len(row) if free else own_mask(grammar))
        assert torch.equal(masks[len(chosen) :], before[len(chosen) :])
    other = torch.zeros((2, own.shape[1]), dtype=torch.int32)
    fill(backend, grammars[:2], other)
    assert other[1].numpy().view(np.uint32).tolist() == own_mask(grammars[1])


@pytest.mark.parametrize("seed", range(4))
def test_rows_that_stand_are_those_one_by_one(backend, seed):
    """Requests come, go and change places, and their texts go on inside strings or elsewhere, or back."""
    rng = random.Random(seed)
    own = backend.allocate_token_bitmask(4)
    kinds = SimpleNamespace(name="JSON")
    schemas = ('{"type": "string"}', '{"additionalProperties": {"type": "string"}, "type": "object"}')
    grammars = [backend.compile_grammar(kinds, schemas[n % 2]) for n in range(6)]
    given = grammars[:3]
    for _ in range(60):
        if rng.random() < 0.2:
            given = rng.sample(grammars, rng.randrange(1, 5))
        fill(backend, given, own)
        for row, grammar in zip(own.numpy().view(np.uint32).tolist(), given, strict=False):
            assert row == ([0xFFFFFFFF] * len(row) if grammar.is_terminated() else own_mask(grammar))
            allowed = tokenset.ids(np.array(row, np.uint32))
            letters = [token for token in map(itemgetter(0), map(ids, ("a", "b", '"'))) if token in allowed]
            token = rng.choice(letters if letters and rng.random() < 0.8 else allowed.tolist())
            if rng.random() < 0.1 and grammar.matcher.n_tokens:
                grammar.rollback(1)
            elif not grammar.is_terminated() and rng.random() < 0.9:
                assert grammar.accept_tokens("r", [token])
            if grammar.is_terminated():
                grammar.reset()


class Limited:
    """A constraint that comes to its limit at some state."""

    def __init__(self, constraint, at):
        self.inner, self.at = constraint, at
        self.vocabulary, self.start, self.end = constraint.vocabulary, constraint.start, constraint.end

    def fill_mask(self, state, row):
        if state == self.at:
            raise guided.LimitError("too much work")
        self.inner.fill_mask(state, row)

    def advance(self, state, token):
        if state == self.at:
            raise guided.LimitError("too much work")
        return self.inner.advance(state, token)


def test_a_limit_fails_one_request(backend):
    module = importlib.import_module("guided.serving.vllm.backend")
    sound = grammar_of(backend, "[0-9]+")
    inner = sound.matcher.constraint
    masks = backend.allocate_token_bitmask(2)
    hostile = module.GuidedGrammar(Matcher(Limited(inner, inner.start)))
    fill(backend, [hostile, sound], masks)
    rows = masks.numpy().view(np.uint32)
    assert rows[1].tolist() == own_mask(sound)
    # Something must be sampled, and it ends the request with an error.
    assert [t for t in range(SIZE) if rows[0][t >> 5] >> (t & 31) & 1] == [END]
    assert not hostile.accept_tokens("r", [END]) and hostile.validate_tokens(ids("1")) == []
    assert sound.accept_tokens("r", ids("1"))
    stepped = module.GuidedGrammar(Matcher(Limited(inner, inner.start)))
    assert stepped.validate_tokens(ids("1")) == [] and not stepped.failed
    assert not stepped.accept_tokens("r", ids("1")) and stepped.failed
    stepped.reset()
    assert not stepped.failed


def test_a_request_keeps_its_own_choices(backend):
    params = SamplingParams(StructuredOutputsParams(json={"enum": [[1, 2]]}), {END})
    for compact, text in ((False, "[1, 2]"), (True, "[1,2]")):
        params.structured_outputs.disable_any_whitespace = compact
        constraint = backend.compile_request(params).matcher.constraint
        assert constraint.is_accepting(constraint.advance_bytes(constraint.start, text.encode()))
    assert not constraint.advance_bytes(constraint.start, b"[1, 2]")


def test_a_text_can_be_made_whole_in_its_tokens(backend):
    params = SamplingParams(
        StructuredOutputsParams(regex="[0-9]*!"), {END}, extra_args={"guided_whole": True}, max_tokens=3
    )
    grammar = backend.compile_request(params)
    masks = backend.allocate_token_bitmask(1)
    texts = []
    for _ in range(3):
        fill(backend, [grammar], masks)
        allowed = [t for t in range(SIZE) if masks[0].numpy().view(np.uint32)[t >> 5] >> (t & 31) & 1]
        texts.append({TOKENIZER.decode([t]) for t in allowed})
        grammar.accept_tokens("r", allowed[-1:])
    assert "7" in texts[0] and "7" not in texts[1] and texts[2] == {"</s>"} and grammar.is_terminated()
    params.extra_args = {"guided_whole": 0}
    assert backend.compile_request(params).matcher.most_tokens is None


@pytest.mark.parametrize("then", ["mask", "validate", "rollback", "reset", "more", "end"])
def test_a_token_of_the_last_mask_is_noted_and_taken_with_the_next_step(backend, then):
    masks = backend.allocate_token_bitmask(2)
    grammars = [grammar_of(backend, "[0-9]{2}") for _ in range(2)]
    fill(backend, grammars, masks)
    (one,) = ids("1")
    assert all(grammar.accept_tokens("r", [one]) for grammar in grammars)
    first = grammars[0]
    assert first.place.noted == one and first._matcher.n_tokens == 0 and not first.is_terminated()
    if then == "mask":
        fill(backend, grammars, masks)
        assert first.place.noted < 0 and first._matcher.n_tokens == 0 and first.matcher.n_tokens == 1
        assert masks[0].numpy().view(np.uint32).tolist() == own_mask(first) == own_mask(grammars[1])
    elif then == "validate":
        assert first.validate_tokens([one, one]) == [one]
    elif then == "rollback":
        first.rollback(1)
        assert first.matcher.n_tokens == 0
    elif then == "reset":
        first.reset()
        assert first.matcher.n_tokens == 0
    elif then == "more":
        assert first.accept_tokens("r", [one]) and first.matcher.n_tokens == 2
        assert not first.accept_tokens("r", [one])
    else:
        for grammar in grammars:
            grammar.accept_tokens("r", [one])
        fill(backend, grammars, masks)
        # The end of a text is taken at once, and so is what no mask has.
        assert first.accept_tokens("r", [END]) and first.is_terminated()
        assert not grammars[1].accept_tokens("r", [one])
