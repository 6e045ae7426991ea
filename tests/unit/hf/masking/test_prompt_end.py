"""Where generated text begins: one object over many `generate` calls, in the cases where guessing would go wrong."""

from __future__ import annotations

import random
import threading

import pytest
import torch
from transformers import LogitsProcessor, LogitsProcessorList

from guided.hf import GuidedLogitsProcessor
from guided.hf import processor as processor_module
from guided.hf.masking.prompt import running_generate
from tests.amounts import ALL, each, some
from tests.twin.earley import accepts
from tests.unit.hf.conftest import generated, text_of


def run(model, ids, processor, **options):
    options = {"max_new_tokens": 24, "do_sample": False, **options}
    return model.generate(ids, attention_mask=torch.ones_like(ids), logits_processor=[processor], **options)


def fresh(constraint, model, ids, **options):
    """What a new object gives."""
    return run(model, ids, GuidedLogitsProcessor(constraint), **options)


@pytest.fixture
def processor(constraints):
    return GuidedLogitsProcessor(constraints["nested"])


def test_whole_outputs_as_prompts(processor, constraints, llama):
    constraint = constraints["nested"]
    ids = torch.tensor([[1, 70, 71]])
    for _ in range(4):
        out = run(llama, ids, processor)
        assert torch.equal(out, fresh(constraint, llama, ids))
        text = text_of(constraint.vocabulary, generated(out[0], ids.shape[1], constraint.vocabulary.eos_ids))
        assert accepts(constraint.grammar, text)
        ids = out


def test_outputs_cut_short_as_prompts(processor, constraints, llama):
    ids = torch.tensor([[1, 70, 71]])
    out = run(llama, ids, processor)
    assert out.shape[1] >= 6
    for length in range(out.shape[1], 0, -2 if ALL else -4):
        assert torch.equal(run(llama, out[:, :length], processor), fresh(constraints["nested"], llama, out[:, :length]))


def test_prompts_longer_by_one_allowed_token(processor, constraints, llama):
    bracket = constraints["nested"].vocabulary.tokens.index(b"[")
    for n in range(some(6, 2)):
        ids = torch.tensor([[1, 70] + [bracket] * n])
        assert torch.equal(run(llama, ids, processor), fresh(constraints["nested"], llama, ids))


def test_a_model_that_does_not_stop_at_the_end(processor, constraints, llama):
    constraint = constraints["nested"]
    out = run(llama, torch.tensor([[1, 70, 71]]), processor, eos_token_id=299, max_new_tokens=60)
    ids = out[0, 3:].tolist()
    ends = constraint.vocabulary.eos_ids
    assert ids.index(ends[0]) < 59
    assert set(ids[ids.index(ends[0]) :]) == set(ends)


def test_many_calls_in_any_order_of_any_method(processor, constraints, llama, draft_llama):
    rng = random.Random(1)
    prompts = [
        torch.tensor([[1] + [rng.randrange(3, 300) for _ in range(rng.randrange(1, 9))]]) for _ in range(some(5, 4))
    ]
    methods = [{}, {"num_beams": 3}, {"prompt_lookup_num_tokens": 3}, {"assistant_model": draft_llama}]
    cases = [(ids, options) for ids in prompts for options in methods]
    rng.shuffle(cases)
    for ids, options in cases:
        assert torch.equal(run(llama, ids, processor, **options), fresh(constraints["nested"], llama, ids, **options))


def test_calls_interleaved_by_threads(processor, constraints, llama):
    prompts = [torch.tensor([[1, 60 + i, 80, 60 + 2 * i]]) for i in range(4)]
    wanted = [fresh(constraints["nested"], llama, ids) for ids in prompts]
    found: list[object] = [None] * 4

    def work(i: int) -> None:
        for _ in range(3):
            found[i] = run(llama, prompts[i], processor)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_a_generate_inside_a_generate(constraints, llama, gpt2):
    """The inner call's prompt is its own, though an outer `generate` is on the stack."""
    inner = GuidedLogitsProcessor(constraints["record"])
    outer = GuidedLogitsProcessor(constraints["nested"])
    wanted = fresh(constraints["record"], gpt2, torch.tensor([[1, 90]]))
    found = []

    class Nesting(LogitsProcessor):
        def __call__(self, input_ids, scores):
            if not found:
                found.append(run(gpt2, torch.tensor([[1, 90]]), inner))
            return scores

    ids = torch.tensor([[1, 70, 71]])
    out = llama.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        logits_processor=[Nesting(), outer],
        max_new_tokens=40,
        do_sample=False,
    )
    assert torch.equal(found[0], wanted)
    assert torch.equal(out, fresh(constraints["nested"], llama, ids))


class Watch(LogitsProcessor):
    """Records what `running_generate` says for this object."""

    def __init__(self):
        self.seen = []

    def __call__(self, input_ids, scores):
        self.seen.append((running_generate(self), input_ids.shape[1]))
        return scores


def test_transformers_still_says_where_the_prompt_ends(llama, draft_llama, t5):
    """A canary: fails when a release of transformers renames what `running_generate` reads."""
    ids = torch.tensor([[1, 70, 71, 70, 71]])
    for options in ({}, {"num_beams": 2}, {"prompt_lookup_num_tokens": 2}, {"assistant_model": draft_llama}):
        watch = Watch()
        run(llama, ids, watch, max_new_tokens=6, **options)
        assert len(watch.seen) >= 5
        assert all(call.prompt_length == 5 and not call.other_tokenizer for call, _ in watch.seen)
        assert {length for _, length in watch.seen} >= {5, 6, 7}
        for call, _ in watch.seen:
            # Older releases keep a mask of ones where newer ones drop it.
            assert call.mask_given and (call.attention_mask is None or bool(call.attention_mask.all()))
    padded, mask = torch.tensor([[0, 0, 70], [1, 70, 71]]), torch.tensor([[0, 0, 1], [1, 1, 1]])
    for options in ({}, {"num_beams": 2}):
        for given in ({"attention_mask": mask}, {}):
            watch = Watch()
            llama.generate(padded, logits_processor=[watch], max_new_tokens=3, pad_token_id=0, **given, **options)
            for call, _ in watch.seen:
                assert call.attention_mask.tolist() == mask.repeat_interleave(options.get("num_beams", 1), 0).tolist()
                assert call.mask_given == bool(given)
    watch = Watch()
    run(t5, ids, watch, max_new_tokens=4)
    assert [(call.prompt_length, length) for call, length in watch.seen] == [(1, n) for n in range(1, 5)]
    assert running_generate(watch) is None


def test_without_the_stack_the_history_decides(processor, constraints, llama, monkeypatch):
    """What is left for releases that the canary warns of: right for every method on prompts that do not nest."""
    monkeypatch.setattr("guided.hf.processor.RunningGenerates.of", lambda self, processor: None)
    for ids in (torch.tensor([[1, 70, 71]]), torch.tensor([[1, 65, 66, 67]]), torch.tensor([[1, 70, 71]])):
        for options in each(({}, {"num_beams": 4}, {"prompt_lookup_num_tokens": 3}), 2):
            found = run(llama, ids, processor, **options)
            assert torch.equal(found, fresh(constraints["nested"], llama, ids, **options))


class Keeping(LogitsProcessor):
    """Keeps the scores that it sees, and a copy of them."""

    def __init__(self):
        self.seen = []

    def __call__(self, input_ids, scores):
        self.seen.append((scores, scores.clone()))
        return scores


IN_PLACE = [
    ({}, True),
    ({"do_sample": True, "temperature": 0.7}, True),
    ({"do_sample": True, "num_return_sequences": 3}, True),
    ({"output_scores": True, "return_dict_in_generate": True}, True),
    ({"output_logits": True, "return_dict_in_generate": True}, False),
    ({"suppress_tokens": [5]}, False),
    ({"num_beams": 2}, False),
    ({"prompt_lookup_num_tokens": 2}, False),
]


@pytest.mark.parametrize(("options", "in_place"), IN_PLACE)
def test_scores_are_written_to_only_where_nobody_else_has_them(constraints, llama, monkeypatch, options, in_place):
    """Also a canary: fails when transformers no longer copies the model's scores, or hides that it does."""
    ids = torch.tensor([[1, 70, 71]])
    of_model, written = [], []
    forward = type(llama).forward

    def kept_forward(self, *args, **kwargs):
        out = forward(self, *args, **kwargs)
        of_model.append((out.logits, out.logits.clone()))
        return out

    monkeypatch.setattr(type(llama), "forward", kept_forward)
    for write in ("mask_own_scores", "mask_scores"):
        function = getattr(processor_module, write)
        monkeypatch.setattr(
            processor_module,
            write,
            lambda *call, write=write, function=function: written.append(write) or function(*call),
        )
    processor = GuidedLogitsProcessor(constraints["nested"])
    for _ in range(2):
        torch.manual_seed(0)
        run(llama, ids, processor, **{"max_new_tokens": 12, **options})
    assert set(written) == {"mask_own_scores" if in_place else "mask_scores"}
    assert len(of_model) > 4
    if in_place:  # assisted decoding writes to them itself
        assert all(torch.equal(now, then) for now, then in of_model)


def test_processors_before_keep_what_they_saw(constraints, llama):
    ids = torch.tensor([[1, 70, 71]])
    for second in (GuidedLogitsProcessor(constraints["nested"]), None):
        keeping = Keeping()
        last = GuidedLogitsProcessor(constraints["nested"])
        given = [keeping, last] if second is None else [second, keeping, last]
        out = llama.generate(
            ids, attention_mask=torch.ones_like(ids), logits_processor=given, max_new_tokens=12, do_sample=False
        )
        assert torch.equal(out, fresh(constraints["nested"], llama, ids, max_new_tokens=12))
        assert len(keeping.seen) > 2
        assert all(torch.equal(now, then) for now, then in keeping.seen)


def test_a_list_of_processors_that_is_used_again_is_another_call(processor, constraints, llama):
    """What is kept of a call must not outlive it, even where prompts grow by one token a call."""
    given = LogitsProcessorList([processor])
    ids = torch.tensor([[1, 70, 71]])
    for _ in range(8):
        mask = torch.ones_like(ids)
        out = llama.generate(ids, attention_mask=mask, logits_processor=given, max_new_tokens=1, do_sample=False)
        assert torch.equal(out, fresh(constraints["nested"], llama, ids, max_new_tokens=1))
        ids = out
