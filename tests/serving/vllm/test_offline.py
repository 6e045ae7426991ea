"""vLLM's offline engine: each kind of request, refusals, ends of texts, beams, drafts and reasoning."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from tests.serving.vllm.cases import KINDS, numbered, valid

pytest.importorskip("vllm", reason="vLLM is not installed: make test-serving")

from vllm import SamplingParams
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import BeamSearchParams, StructuredOutputsParams

PROMPT = "Anna is 35. Record: "


@pytest.fixture(scope="module")
def llm(engine):
    return engine()


def asked(structured, **options):
    return SamplingParams(
        **({"temperature": 0, "max_tokens": 120} | options), structured_outputs=StructuredOutputsParams(**structured)
    )


def texts(llm, params, prompts=None):
    return [each.outputs[0] for each in llm.generate(prompts or [PROMPT] * len(params), params, use_tqdm=False)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature", [0, 1.5])
def test_each_kind(llm, kind, temperature):
    structured, holds = KINDS[kind]
    for each in texts(llm, [asked(structured, temperature=temperature, seed=n) for n in range(4)]):
        assert each.finish_reason == "stop" and holds(each.text), each.text


def test_it_is_the_text_of_our_own_greedy_generate(llm, model_path):
    """Through vLLM's engine and through transformers the same greedy text: masks and places agree."""
    import guided
    from tests.serving.vllm.cases import PERSON

    loaded = guided.hf.load(model_path)
    own = guided.generate(loaded, PROMPT, guided.json_schema(PERSON), max_new_tokens=120, temperature=0)
    (served,) = texts(llm, [asked({"json": PERSON})])
    assert served.text == own.text


def test_a_batch_of_different_schemas(llm):
    schemas = [numbered(n) for n in range(32)]
    for schema, each in zip(schemas, texts(llm, [asked({"json": schema}) for schema in schemas]), strict=True):
        assert each.finish_reason == "stop" and valid(schema, each.text), each.text


def test_several_samples_of_one_request(llm):
    (request,) = llm.generate([PROMPT], asked({"json": numbered(5)}, n=6, temperature=1.0, seed=3), use_tqdm=False)
    assert len(request.outputs) == 6 and all(valid(numbered(5), each.text) for each in request.outputs)


@pytest.mark.parametrize(("structured", "message"), [
    ({"json": {"$ref": "http://elsewhere"}}, r"guided: .*at #/\$ref"),
    ({"json": {"type": "integer", "minimum": 5, "maximum": 4}}, "guided: "),
    ({"regex": "("}, "guided: "),
    ({"grammar": "root ::= other"}, "guided: .*other"),
    ({"choice": []}, "guided: "),
    ({"structural_tag": '{"type": "structural_tag", "format": {"type": "no"}}'}, "guided: .*#/format"),
])  # fmt: skip
def test_refusals_say_where(llm, structured, message):
    with pytest.raises(VLLMValidationError, match=message):
        texts(llm, [asked(structured)])
    # And the engine lives.
    assert texts(llm, [asked({"choice": ["a"]})])[0].text == "a"


def test_ids_that_end_a_text(llm):
    tokenizer = llm.get_tokenizer()
    stop = next(i for i in range(len(tokenizer)) if tokenizer.decode([i]) == "!")
    (each,) = texts(llm, [asked({"regex": "[0-9]{3}"}, stop_token_ids=[stop], logit_bias={stop: 100.0})])
    # The id may come where the text may end, and only there.
    assert re.fullmatch("[0-9]{3}", each.text) and each.stop_reason == stop


def test_a_whole_text_in_few_tokens(llm):
    """Unbounded strings and numbers, in 24 tokens: without a budget they run to the end."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    }
    whole = asked({"json": schema}, max_tokens=24, extra_args={"guided_whole": True}, temperature=1.5, seed=1)
    for each in texts(llm, [whole] * 4):
        assert each.finish_reason == "stop" and len(each.token_ids) <= 24 and valid(schema, each.text)
    with pytest.raises(VLLMValidationError, match="Raise max_tokens"):
        texts(llm, [asked({"json": schema}, max_tokens=3, extra_args={"guided_whole": True})])


def test_free_text_of_so_many_tokens(llm):
    tag = {"type": "tag", "begin": "<a>", "content": {"type": "any_text", "max_tokens": 5}, "end": "</a>"}
    structured = {"structural_tag": json.dumps({"type": "structural_tag", "format": tag})}
    own = llm.get_tokenizer()
    for each in texts(llm, [asked(structured, temperature=1.5, seed=n) for n in range(8)]):
        assert each.finish_reason == "stop" and re.fullmatch("(?s)<a>.*</a>", each.text)
        # Where each token begins.
        lengths = [len(own.decode(each.token_ids[:n])) for n in range(len(each.token_ids))]
        assert sum(len("<a>") <= length < len(each.text) - len("</a>") for length in lengths) <= 5


def test_beams(llm):
    params = BeamSearchParams(
        beam_width=3, max_tokens=8, structured_outputs=StructuredOutputsParams(choice=["yes", "no", "maybe"])
    )
    (found,) = llm.beam_search([{"prompt": PROMPT}], params)
    answers = [sequence.text.removeprefix(PROMPT).removesuffix("</s>") for sequence in found.sequences]
    assert answers and set(answers) <= {"yes", "no", "maybe"}


@pytest.mark.parametrize("method", ["ngram", "draft_model"])
def test_drafts(engine, llm, model_path, method):
    """With drafts the same greedy texts, from an engine that validates, takes back and goes on."""
    requests = [asked(structured) for structured, _ in KINDS.values()]
    requests += [asked({"json": numbered(n)}) for n in range(8)]
    requests.append(asked({"regex": "(ab[0-9]ab[0-9]){6}"}))
    prompts = [f'{PROMPT}{{"key3": 5, "kind": "k3"}} ab1ab1ab1ab1 {{"key3": 5, "kind": "k3"}} '] * len(requests)
    plain = [each.text for each in texts(llm, requests, prompts)]
    # The model for itself, whose drafts know no grammar.
    how = {
        "ngram": {"prompt_lookup_min": 1, "prompt_lookup_max": 4},
        "draft_model": {"model": model_path, "max_model_len": 512},
    }
    drafting = engine(speculative_config={"method": method, "num_speculative_tokens": 4, **how[method]})
    assert [each.text for each in texts(drafting, requests, prompts)] == plain


def test_reasoning_is_free_and_the_rest_is_not(engine):
    reasoning = engine(reasoning_parser="deepseek_r1")
    tokenizer = reasoning.get_tokenizer()
    end = tokenizer.convert_tokens_to_ids("</think>")
    lengths = []
    for bias in (8.0, 11.0, 100.0):
        # The bias ends the reasoning at some time; the mask then forbids the token that it favours.
        params = asked({"json": numbered(2)}, logit_bias={end: bias}, max_tokens=200, skip_special_tokens=False)
        (each,) = texts(reasoning, [params])
        thought, found, answer = each.text.partition("</think>")
        assert found and each.finish_reason == "stop" and valid(numbered(2), answer), each.text
        lengths.append(len(thought))
    assert lengths[-1] == 0 and max(lengths) > 0


def test_a_release_that_is_not_known_is_left_alone():
    code = (
        "import vllm.version; vllm.version.__version__ = '0.40.0'\n"
        "from vllm.plugins import load_general_plugins; load_general_plugins()\n"
        "from vllm.sampling_params import SamplingParams\n"
        "print(hasattr(SamplingParams._validate_structured_outputs, 'of_guided'))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=True)
    assert run.stdout.strip().endswith("False")
    assert "guided: this is vLLM 0.40.0, and guided's backend is written for 0.32 and 0.33" in run.stdout + run.stderr
