"""Drafts with streamers, stop strings and stopping criteria: what they see and do is what they do without drafts."""

from __future__ import annotations

import threading

import pytest
import torch
from transformers import LogitsProcessor, StoppingCriteria, StopStringCriteria, TextIteratorStreamer
from transformers.generation.streamers import BaseStreamer

import guided
from guided.draft import Drafting, Fixed, PromptLookup, auto
from guided.errors import GuidedError, UnsupportedError
from guided.hf import LoadedModel, generate
from guided.hf.speculation import draft_generate
from guided.infer import smc
from guided.steer import Momentum
from tests.amounts import each

GRAMMAR = guided.regex('[a-z0-9 ,\\[\\]"]{20,80}')
PROMPT = '["a", "b", [1, 22, 333]], ["a", "b", [1, 22'
OPTIONS = {"do_sample": False, "max_new_tokens": 24}


@pytest.fixture(scope="module")
def loaded(llama, tokenizer):
    return LoadedModel("llama", llama, tokenizer)


@pytest.fixture(scope="module", params=["auto", "lookup"])
def draft(request):
    return auto() if request.param == "auto" else Drafting(PromptLookup(), Fixed(6))


class Kept(BaseStreamer):
    """All that a streamer is handed."""

    def __init__(self):
        self.tokens, self.ends = [], 0

    def put(self, value):
        self.tokens += value.reshape(-1).tolist()

    def end(self):
        self.ends += 1


class Every(StoppingCriteria):
    """Ends texts whose ids sum to a multiple of a number, and keeps what it was asked."""

    def __init__(self, number):
        self.number = number
        self.asked = []

    def __call__(self, input_ids, scores, **kwargs):
        self.asked.append(input_ids.tolist())
        return input_ids.sum(1) % self.number == 0


def same(one, other):
    assert (one.text, one.token_ids, one.finished) == (other.text, other.token_ids, other.finished)


def test_streamers_get_the_tokens_and_the_end(loaded, draft):
    plain, drafted = Kept(), Kept()
    text = generate(loaded, PROMPT, GRAMMAR, streamer=plain, **OPTIONS)
    same(text, generate(loaded, PROMPT, GRAMMAR, streamer=drafted, draft=draft, **OPTIONS))
    assert drafted.tokens == plain.tokens
    assert drafted.ends == plain.ends == 1


def test_a_stream_that_is_read_elsewhere_ends(loaded, tokenizer, draft):
    plain = generate(loaded, PROMPT, GRAMMAR, **OPTIONS)
    streamer = TextIteratorStreamer(tokenizer, skip_prompt=True, skip_special_tokens=True, timeout=60)
    options = {"streamer": streamer, "draft": draft, **OPTIONS}
    thread = threading.Thread(target=generate, args=(loaded, PROMPT, GRAMMAR), kwargs=options)
    thread.start()
    assert "".join(streamer).strip() == plain.text.strip()
    thread.join()


@pytest.mark.parametrize("refused", [
    {"draft": auto(), "num_beams": 2}, {"draft": "auto"}, {"sampler": smc}, {"draft": auto(), "prompt": [PROMPT] * 2},
    {"grammar": guided.regex("a{40}")},
], ids=["beams", "no draft", "sampler", "batch", "no text fits"])  # fmt: skip
def test_a_stream_ends_where_nothing_is_generated(loaded, refused):
    streamer = Kept()
    with pytest.raises((GuidedError, TypeError)):
        generate(loaded, **{"prompt": PROMPT, "grammar": GRAMMAR, "streamer": streamer, **OPTIONS, **refused})
    assert streamer.ends == 1


class Own(LogitsProcessor):
    """Steering goes with it in transformers' own loop alone."""

    def __call__(self, input_ids, scores):
        return scores


@pytest.mark.parametrize("processors", [[], [Own()]], ids=["own loop", "loop of transformers"])
def test_steering_streams(loaded, tokenizer, processors):
    streamer = Kept()
    text = generate(
        loaded, PROMPT, GRAMMAR, steer=[Momentum()], streamer=streamer, logits_processor=processors, **OPTIONS
    )
    assert streamer.tokens[: len(streamer.tokens) - len(text.token_ids) - text.finished] == tokenizer.encode(PROMPT)
    assert streamer.ends == 1


def test_streams_of_transformers_own_call(loaded, tokenizer, constraints):
    ids = torch.tensor([tokenizer.encode(PROMPT)])
    for options, error in (({}, None), ({"num_beams": 2}, UnsupportedError)):
        streamer, call = Kept(), draft_generate(constraints["nested"])
        arguments = {"custom_generate": call, "streamer": streamer, "max_new_tokens": 8, "do_sample": False, **options}
        if error is None:
            out = loaded.model.generate(ids, **arguments)
            assert streamer.tokens == out[0].tolist()
        else:
            with pytest.raises((error, ValueError)):
                loaded.model.generate(ids, **arguments)
        assert streamer.ends == 1


def test_stop_strings(loaded, draft):
    whole = generate(loaded, PROMPT, GRAMMAR, **OPTIONS)
    prompts = [PROMPT, "yes no may", "the cat"]
    for strings in each((whole.text[3:5], [whole.text[6:9], whole.text[9:10]], "never said"), 2):
        options = {"stop_strings": strings, **OPTIONS}
        plain = generate(loaded, prompts, GRAMMAR, **options)
        for one, other in zip(plain, generate(loaded, prompts, GRAMMAR, draft=draft, **options), strict=True):
            same(one, other)
            assert loaded.tokenizer.pad_token_id not in one.token_ids
    assert len(generate(loaded, PROMPT, GRAMMAR, draft=draft, stop_strings=whole.text[3:5], **OPTIONS).text) < len(
        whole.text
    )


@pytest.mark.parametrize("number", [3, 7, 19])
def test_stopping_criteria(loaded, draft, number):
    """They are asked after each token, forced ones too, with the ids that they would see."""
    plain, drafted = Every(number), Every(number)
    text = generate(loaded, PROMPT, GRAMMAR, stopping_criteria=[plain], **OPTIONS)
    same(text, generate(loaded, PROMPT, GRAMMAR, stopping_criteria=[drafted], draft=draft, **OPTIONS))
    assert drafted.asked == plain.asked


def test_stopping_with_steering_and_drawn_texts(loaded, tokenizer, draft):
    options = {"stop_strings": ["e", "1"], "max_new_tokens": 24}
    plain = generate(loaded, PROMPT, GRAMMAR, steer=[Momentum()], do_sample=False, **options)
    same(plain, generate(loaded, PROMPT, GRAMMAR, steer=[Momentum()], do_sample=False, draft=draft, **options))
    rule = StopStringCriteria(tokenizer, ["e", "1"])
    for one in generate(loaded, PROMPT, GRAMMAR, n=8, seed=1, draft=draft, **options):
        ids = list(one.token_ids)
        stops = [n for n in range(1, len(ids) + 1) if rule(torch.tensor([ids[:n]]), None)]
        assert stops == [len(ids)] if stops else one.finished or len(ids) == 24


def test_time_is_up(loaded, draft):
    text = generate(loaded, PROMPT, GRAMMAR, draft=draft, max_time=0.0, **OPTIONS)
    assert len(text.token_ids) == 1 and not text.finished


def test_criteria_that_may_look_at_other_rows_are_refused_in_batches(loaded):
    with pytest.raises(UnsupportedError, match=r"Every may look at all rows.*one prompt"):
        generate(loaded, [PROMPT, "the cat"], GRAMMAR, draft=auto(), stopping_criteria=[Every(3)], **OPTIONS)
