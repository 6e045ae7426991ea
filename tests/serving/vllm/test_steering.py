"""Steering in vLLM's runners: the texts are those of our own loop, and what cannot be served is refused.

On a processor vLLM runs its V1 runner.  V2 needs a GPU: its loader, its class and what it says of a step are the real
ones here, its buffers tensors.
"""

from __future__ import annotations

import os
from types import SimpleNamespace

import numpy as np
import pytest
import torch

pytest.importorskip("vllm", reason="vLLM is not installed: make test-serving")

from vllm import SamplingParams
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import StructuredOutputsParams
from vllm.v1.worker.gpu.sample.logits_processor import LogitsContext, build_custom_logits_processors

import guided
from tests.serving.vllm import steered
from tests.tolerances import PASSES

PROMPT = "Anna is 35. Record: "
PATTERN = "[a-z ]{4,12}: [0-9]{3,6}!"


@pytest.fixture(scope="module")
def llm(engine, model_path):
    os.environ[steered.MODEL] = model_path
    return engine(logits_processors=["tests.serving.vllm.steered:Steered"])


def asking(argument):
    extra = None if argument is None else {"guided_steer": argument}
    return SamplingParams(
        temperature=0, max_tokens=60, extra_args=extra, structured_outputs=StructuredOutputsParams(regex=PATTERN)
    )  # fmt: skip


def test_the_texts_are_those_of_our_own_loop(llm):
    """In one batch steered and not, each like `guided.generate`."""
    asked = [None, "digits", "contrast", None]
    found = llm.generate([PROMPT] * 4, [asking(each) for each in asked], use_tqdm=False)
    for argument, each in zip(asked, found, strict=True):
        steer = None if argument is None else steered.steerers(argument)
        own = guided.generate(
            steered.loaded(), PROMPT, guided.regex(PATTERN), max_new_tokens=60, temperature=0, steer=steer
        )  # fmt: skip
        assert each.outputs[0].text == own.text, argument
    assert found[0].outputs[0].text != found[1].outputs[0].text


@pytest.mark.parametrize(("argument", "message"), [
    ("other", "there is no steering 'other'.*Ask for digits"),
    ("prompt", "ClassifierFree asks the served model about another prompt"),
])  # fmt: skip
def test_what_cannot_be_steered_is_refused(llm, argument, message):
    with pytest.raises(VLLMValidationError, match=message):
        llm.generate([PROMPT], asking(argument), use_tqdm=False)


class Slots:
    """The V2 runner's requests, each in a slot: ids of prompts and texts, drafts of this step, and the step itself."""

    def __init__(self, model_path):
        os.environ[steered.MODEL] = model_path
        self.width = steered.loaded().model.config.vocab_size
        config = SimpleNamespace(get_vocab_size=lambda: self.width, hf_config=SimpleNamespace(eos_token_id=None))
        self.state = SimpleNamespace(
            device=torch.device("cpu"),
            max_num_reqs=4,
            vocab_size=self.width,
            all_token_ids=SimpleNamespace(gpu=torch.full((4, 64), -1)),
            prompt_len=SimpleNamespace(np=np.zeros(4, np.int32)),
            prefill_len=None,
            total_len=None,
        )
        (self.processor,) = build_custom_logits_processors(
            SimpleNamespace(model_config=config), self.state, False, ["tests.serving.vllm.steered:Steered"]
        )
        self.drafts = {}

    def take(self, slot, argument, prompt, text=(), drafts=()):
        ids = [*prompt, *text]
        self.state.all_token_ids.gpu[slot] = -1
        self.state.all_token_ids.gpu[slot, : len(ids)] = torch.tensor(ids)
        self.state.prompt_len.np[slot] = len(prompt)
        self.drafts[slot] = [*ids[-1:], *drafts], len(ids) - 1
        return self.processor.add_request(slot, asking(argument))

    def step(self, slots, logits):
        rows = [(slot, n, token) for slot in slots for n, token in enumerate(self.drafts[slot][0])]
        each = [torch.tensor(column) for column in zip(*rows, strict=True)]
        return self.processor.apply(
            logits,
            LogitsContext(
                expanded_idx_mapping=each[0],
                idx_mapping=torch.tensor(slots),
                idx_mapping_np=np.asarray(slots),
                expanded_local_pos=each[1],
                input_ids=each[2],
                pos=torch.tensor([self.drafts[slot][1] + n for slot, n, _ in rows]),
                seq_lens_upper_bound_np=np.asarray([self.drafts[slot][1] + 1 for slot in slots]),
            ),
        )


def steered_alone(slots, argument, prompt, text, scores):
    """The row that the V1 runner's way makes of it."""
    return slots.processor.new_req_logits_processor(asking(argument))([*prompt], [*text], scores.clone())


@pytest.fixture
def slots(model_path):
    return Slots(model_path)


def test_rows_of_the_other_runner_are_steered_like_texts(slots):
    encode = steered.loaded().tokenizer.encode
    prompt, text, drafts = encode(PROMPT), encode("five 5"), encode(" 55")
    assert len(drafts) > 1
    assert slots.take(2, "contrast", prompt, text, drafts)
    assert not slots.take(0, None, prompt, text)
    assert slots.take(3, "digits", prompt)
    scores = torch.randn(2 + len(drafts) + 1, slots.width)
    scores[:, 7] = -torch.inf
    found = slots.step([3, 2, 0], scores.clone())
    assert torch.equal(found[0], steered_alone(slots, "digits", prompt, [], scores[0]))
    for n in range(len(drafts) + 1):
        alone = steered_alone(slots, "contrast", prompt, text + drafts[:n], scores[1 + n])
        # The amateur read the drafts one after another here, there at once.
        torch.testing.assert_close(found[1 + n], alone, rtol=0, atol=PASSES)
    assert torch.equal(found[-1], scores[-1])
    assert not torch.equal(found[:-1], scores[:-1])
    assert (found[:, 7] == -torch.inf).all()


def test_slots_are_taken_again(slots):
    prompt = steered.loaded().tokenizer.encode(PROMPT)
    scores = torch.randn(1, slots.width)
    slots.take(1, "contrast", prompt)
    slots.step([1], scores.clone())
    slots.take(1, "digits", prompt[1:])
    assert torch.equal(slots.step([1], scores.clone())[0], steered_alone(slots, "digits", prompt[1:], [], scores[0]))
    slots.take(1, None, prompt)
    assert torch.equal(slots.step([1], scores.clone()), scores)


def test_a_prompt_that_is_read_in_parts_is_not_steered_before_its_end(slots):
    prompt = steered.loaded().tokenizer.encode(PROMPT)
    slots.take(1, "contrast", prompt)
    slots.drafts[1] = prompt[3:4], 3
    scores = torch.randn(1, slots.width)
    assert torch.equal(slots.step([1], scores.clone()), scores)
