"""Databases, and what is made of prompts, asked for by names that the operator gave, in vLLM's offline engine."""

from __future__ import annotations

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed: make test-serving")

from vllm import SamplingParams
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import StructuredOutputsParams

import guided
from guided.serving.named import VARIABLE
from tests.serving.vllm import named


@pytest.fixture(scope="module")
def llm(engine):
    with pytest.MonkeyPatch.context() as patch:
        # The engine's process, which is another, has it from this one.
        patch.setenv(VARIABLE, "tests.serving.vllm.named:CONSTRAINTS")
        yield engine()


def asking(name, **options):
    return SamplingParams(structured_outputs=StructuredOutputsParams(grammar=f"%named {name}"), **options)


def test_a_database(llm, model_path):
    """The text of our own greedy loop, which is a whole statement over that database."""
    prompt = "Question: How many legs?\nSQL: "
    (served,) = llm.generate(
        [prompt], asking("animals", temperature=0, max_tokens=80, extra_args={"guided_whole": True}), use_tqdm=False
    )
    own = guided.generate(guided.hf.load(model_path), prompt, named.ANIMALS, max_new_tokens=80, temperature=0)
    assert served.outputs[0].text == own.text
    assert own.finished and "animals" in own.text.lower()


def test_what_is_made_of_the_prompt(llm):
    prompts = ["Say yes", "Say perhaps", "Say no"]
    found = llm.generate(prompts, [asking("echo", temperature=1, max_tokens=60)] * 3, use_tqdm=False)
    assert [each.outputs[0].text for each in found] == ["yes!" * 3, "perhaps!" * 3, "no!" * 3]


def test_a_name_that_is_not_there(llm):
    with pytest.raises(VLLMValidationError, match=r"nothing is named 'plants' on this server.*animals, echo"):
        llm.generate(["x"], asking("plants"), use_tqdm=False)
