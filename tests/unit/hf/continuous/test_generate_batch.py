"""transformers' continuous batching with a grammar for each request."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch
from transformers import GenerationConfig

import guided
import guided.hf
from guided.errors import GuidedError, LimitError, UnsupportedError
from guided.hf.continuous import generate_batch

pytest.importorskip("transformers.generation.continuous_batching.cb_logits_processors")

from transformers import ContinuousBatchingConfig
from transformers.generation.continuous_batching.requests import FutureRequestState, RequestState

from guided.hf.continuous.processor import ContinuousProcessor
from tests.amounts import each

PROMPTS = ["the cat", '{"name": ', "yes no", "1, 22", "the mat sat on the cat", "maybe"]


def small(**more):
    return ContinuousBatchingConfig(num_blocks=16, max_batch_tokens=64, **more)


@pytest.fixture
def goals(constraints):
    return [constraints["nested"], constraints["record"], None, constraints["answer"], constraints["record"], None]


@pytest.mark.parametrize("rows", each([6, 2], 2))
def test_each_text_is_that_of_generate(llama, tokenizer, goals, rows):
    found = generate_batch(
        llama, PROMPTS, goals, tokenizer=tokenizer, max_new_tokens=24, config=small(max_requests_per_batch=rows)
    )
    for prompt, goal, text in zip(PROMPTS, goals, found, strict=True):
        assert text == guided.generate(llama, prompt, goal, tokenizer=tokenizer, max_new_tokens=24)
        assert goal is None or text.finished


def test_budgets_are_those_of_requests(llama, tokenizer, constraints):
    budgets = [5, 40, 12]
    found = generate_batch(
        llama, PROMPTS[:3], constraints["nested"], tokenizer=tokenizer, max_new_tokens=budgets, config=small()
    )
    assert all(text.finished and len(text.token_ids) < most for text, most in zip(found, budgets, strict=True))


def test_drawn_texts_are_in_the_language(llama, tokenizer, constraints):
    asked = {"do_sample": True, "temperature": 2.0, "top_k": 50, "top_p": 0.99, "seed": 3}
    found = generate_batch(
        llama, PROMPTS[:1] * 12, constraints["nested"], tokenizer=tokenizer, max_new_tokens=20, config=small(), **asked
    )
    assert all(text.finished for text in found) and len({text.text for text in found}) > 1


def test_types_give_values(llama, tokenizer):
    schema = {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 2}
    (found,) = generate_batch(llama, ["x"], schema, tokenizer=tokenizer, max_new_tokens=30, config=small())
    assert [type(value) for value in found.value] == [bool, bool]


@pytest.mark.parametrize(("given", "kind", "says"), [
    ({"prompts": []}, GuidedError, "at least one"),
    ({"prompts": "the cat"}, GuidedError, "list of prompts"),
    ({"grammars": [None]}, GuidedError, "1 grammars for 2"),
    ({"max_new_tokens": [1, 2, 3]}, GuidedError, "3 budgets for 2"),
    ({"max_new_tokens": 2}, LimitError, "max_new_tokens=2 is too few"),
    ({"num_beams": 2}, UnsupportedError, "no option num_beams"),
    ({"config": small(use_async_batching=True)}, UnsupportedError, "before the last token is known"),
])  # fmt: skip
def test_what_cannot_be_is_refused(llama, tokenizer, constraints, given, kind, says):
    prompts = given.pop("prompts", PROMPTS[:2])
    arguments = {"grammars": constraints["record"], "config": small(), **given}
    with pytest.raises(kind, match=says):
        generate_batch(llama, prompts, tokenizer=tokenizer, **arguments)
    # Nothing is left behind: the next call is served.
    assert generate_batch(llama, ["a"], constraints["answer"], tokenizer=tokenizer, config=small())[0].finished


def test_the_attention_is_the_models_own_again_whatever_happens(llama, tokenizer, constraints):
    model = deepcopy(llama)
    model.set_attn_implementation("eager")
    for config in (small(), small(use_async_batching=True)):
        try:
            generate_batch(model, ["a"], constraints["answer"], tokenizer=tokenizer, config=config)
        except UnsupportedError:
            assert config.use_async_batching
        assert model.config._attn_implementation == "eager"
    assert guided.generate(model, "a", constraints["answer"], tokenizer=tokenizer).finished


def test_an_encoder_decoder_model_is_refused(t5, tokenizer, constraints):
    with pytest.raises(UnsupportedError, match="T5ForConditionalGeneration has no continuous batching"):
        generate_batch(t5, ["a"], constraints["answer"], tokenizer=tokenizer)


def test_several_texts_of_one_request_in_a_manager_of_ones_own(llama, tokenizer, constraints):
    config = GenerationConfig(do_sample=True, num_return_sequences=3, eos_token_id=2, max_new_tokens=20)
    manager = llama.init_continuous_batching(config, small(use_async_batching=False, seed=1))
    processor = ContinuousProcessor(tokenizer, llama.config.vocab_size)
    processor.attach(manager)
    processor.attach(manager)
    manager.start()
    try:
        ids = tokenizer("the cat")["input_ids"]
        manager.add_request(ids, max_new_tokens=20, grammar=processor.grammar(constraints["record"], 20))
        texts = [manager.get_result(timeout=20).generated_tokens for _ in range(3)]
        with pytest.raises(GuidedError, match="the manager has started"):
            ContinuousProcessor(tokenizer, llama.config.vocab_size).attach(manager)
    finally:
        manager.stop()
        manager.destroy()
    ends = [_after(constraints["record"], tokens) for tokens in texts]
    assert ends == [constraints["record"].end] * 3


def test_a_processor_that_may_take_all_tokens_is_refused(llama, tokenizer):
    config = GenerationConfig(eos_token_id=2, repetition_penalty=1.5)
    manager = llama.init_continuous_batching(config, small(use_async_batching=False, drop_unsupported_processors=False))
    with pytest.raises(UnsupportedError, match="RepetitionPenaltyLogitsProcessor may leave no token"):
        ContinuousProcessor(tokenizer, llama.config.vocab_size).attach(manager)
    manager.destroy()


class _Manager:
    """As much of a manager as `attach` looks at."""

    def __init__(self, model):
        self.model, self.batch_processor = model, None
        self.continuous_batching_config = small(use_async_batching=False, max_requests_per_batch=4)
        self.logit_processor = self
        self.logits_processor, self.tensors_required = [], 0

    def _retrieve_processors_kwargs(self):
        pass


@pytest.fixture
def processor(llama, tokenizer):
    made = ContinuousProcessor(tokenizer, llama.config.vocab_size)
    made.attach(_Manager(llama))
    return made


def _after(constraint, tokens):
    state = constraint.start
    for token in tokens:
        state = constraint.advance(state, token)
    return state


def _allowed(processor, request):
    """The ids that a processor leaves a request."""
    numbers = processor.prepare_tensor_args([FutureRequestState(request, True, {}, 1)])
    # Graphs are padded: numbers of other rows may follow.
    scores = processor(torch.zeros(1, processor.width), torch.cat([numbers, torch.zeros(3, dtype=torch.int32)]))
    return torch.nonzero(scores[0] == 0).ravel().tolist()


def _expected(constraint, tokens, budget):
    row = np.zeros(constraint.vocabulary.n_words, np.uint32)
    constraint.fill_budget_mask(_after(constraint, tokens), row, budget)
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


def _request(processor, constraint, name="one", most=30):
    return RequestState(
        name, [5, 6], max_new_tokens=most, logit_processor_kwargs={"grammar": processor.grammar(constraint)}
    )


def test_masks_follow_a_request_that_is_forked_started_over_and_whose_id_comes_again(processor, constraints):
    record = constraints["record"]
    tokens = [token for token in guided_text(record) if token not in record.vocabulary.eos_ids]
    request = _request(processor, record)
    for n in range(len(tokens)):
        assert _allowed(processor, request) == _expected(record, tokens[:n], 30 - n)
        if n == 3:
            child = request.fork("child")
            assert child.logit_processor_kwargs["grammar"].constraint is record
            assert _allowed(processor, child) == _expected(record, tokens[:n], 30 - n)
        if n in (4, 6):
            request = request.create_equivalent_initial_request()
            assert _allowed(processor, request) == _expected(record, tokens[:n], 30 - n)
        request.generated_tokens.append(tokens[n])
    answer = constraints["answer"]
    assert _allowed(processor, _request(processor, answer)) == _expected(answer, [], 30)


def guided_text(constraint):
    """The ids of some text of a constraint."""
    state, ids = constraint.start, []
    while state != constraint.end:
        ids.append(_expected(constraint, ids, constraint.shortest_completion(state) + 1)[0])
        state = constraint.advance(state, ids[-1])
    return ids


def test_requests_without_a_grammar_are_free(processor):
    assert _allowed(processor, RequestState("free", [5])) == list(range(processor.width))


def test_known_states_are_bounded(processor, constraints, monkeypatch):
    monkeypatch.setattr("guided.hf.continuous.processor.KNOWN_STATES", 5)
    for number in range(20):
        _allowed(processor, _request(processor, constraints["answer"], f"request {number}"))
    assert len(processor._states) == 5


class _Failing:
    """A constraint that gives no masks but its end's."""

    def __init__(self, constraint):
        self.constraint = constraint

    def __getattr__(self, name):
        return getattr(self.constraint, name)

    def fill_budget_mask(self, state, row, budget):
        raise LimitError("too much work")


def test_a_request_without_masks_ends_alone(processor, constraints):
    record = constraints["record"]
    broken = _request(processor, record, "broken")
    broken.logit_processor_kwargs["grammar"].constraint = _Failing(record)
    sound = _request(processor, record, "sound")
    numbers = processor.prepare_tensor_args([FutureRequestState(each, True, {}, 1) for each in (broken, sound)])
    scores = processor(torch.zeros(2, processor.width), numbers)
    assert torch.nonzero(scores[0] == 0).ravel().tolist() == list(record.vocabulary.eos_ids)
    assert torch.nonzero(scores[1] == 0).ravel().tolist() == _expected(record, [], 30)
    assert broken.error == "too much work" and sound.error is None


def test_grammars_are_not_copied(processor, constraints):
    held = processor.grammar(constraints["answer"])
    assert deepcopy(held) is held
