"""Steering in vLLM's V1 runner: the texts are those of our own loop, and what cannot be served is refused."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed: make test-serving")

from vllm import SamplingParams
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import StructuredOutputsParams

import guided
from tests.serving.vllm import steered

PROMPT = "Anna is 35. Record: "
PATTERN = "[a-z ]{4,12}: [0-9]{3,6}!"


@pytest.fixture(scope="module")
def llm(engine, model_path):
    os.environ[steered.MODEL] = model_path
    return engine(logits_processors=["tests.serving.vllm.steered:Steered"])


def served(llm, argument):
    extra = None if argument is None else {"guided_steer": argument}
    return SamplingParams(
        temperature=0, max_tokens=60, extra_args=extra, structured_outputs=StructuredOutputsParams(regex=PATTERN)
    )  # fmt: skip


def test_the_texts_are_those_of_our_own_loop(llm):
    """In one batch steered and not, each like `guided.generate`."""
    asked = [None, "digits", "contrast", None]
    found = llm.generate([PROMPT] * 4, [served(llm, each) for each in asked], use_tqdm=False)
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
        llm.generate([PROMPT], served(llm, argument), use_tqdm=False)
