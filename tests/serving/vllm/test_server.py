"""vLLM's server by the openai client: formats, many at once, streams, tools, refusals and metrics."""

from __future__ import annotations

import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.serving.vllm.cases import KINDS, PERSON, numbered, valid

openai = pytest.importorskip("openai", reason="vLLM is not installed: make test-serving")

SAY = [{"role": "user", "content": "Anna is 35 and from Oslo."}]

WEATHER = {
    "type": "object",
    "properties": {"city": {"enum": ["Oslo", "Rome"]}, "days": {"type": "integer", "multipleOf": 7, "minimum": 1, "maximum": 30}},
    "required": ["city", "days"],
    "additionalProperties": False,
}  # fmt: skip
CLOCK = {
    "type": "object", "properties": {"zone": {"enum": ["utc", "cet"]}}, "required": ["zone"],
    "additionalProperties": False,
}  # fmt: skip
SCHEMAS = {"weather": WEATHER, "clock": CLOCK}


def tool(name, schema, **options):
    return {"type": "function", "function": {"name": name, "parameters": schema, **options}}


TOOLS = [tool(name, schema, strict=True) for name, schema in SCHEMAS.items()]


@pytest.fixture(scope="module")
def client(server):
    return openai.OpenAI(base_url=f"{server}/v1", api_key="none", timeout=120, max_retries=0)


@pytest.fixture(scope="module")
def tool_call_id(model_path):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(model_path).convert_tokens_to_ids("<tool_call>")


def chat(client, **options):
    given = {"model": "nano", "messages": SAY, "temperature": 0, "max_tokens": 120}
    return client.chat.completions.create(**(given | options))


def schema_format(schema):
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def check_calls(calls):
    for call in calls:
        assert valid(SCHEMAS[call.function.name], call.function.arguments), call


def test_a_schema_with_log_probabilities(client):
    (answer,) = chat(client, response_format=schema_format(PERSON), logprobs=True, top_logprobs=2).choices
    assert answer.finish_reason == "stop" and valid(PERSON, answer.message.content)
    assert "".join(each.token for each in answer.logprobs.content).startswith(answer.message.content[:5])


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind(client, kind):
    structured, holds = KINDS[kind]
    (answer,) = chat(client, extra_body={"structured_outputs": structured}).choices
    assert answer.finish_reason == "stop" and holds(answer.message.content), answer


def test_any_object_in_its_tokens(client):
    body = {"vllm_xargs": {"guided_whole": 1}}
    (answer,) = chat(client, response_format={"type": "json_object"}, max_tokens=20, extra_body=body).choices
    assert answer.finish_reason == "stop" and valid({"type": "object"}, answer.message.content)


def test_legacy_structural_tags(client):
    form = {
        "type": "structural_tag",
        "structures": [{"begin": "<f>", "schema": {"type": "integer", "minimum": 10, "maximum": 99}, "end": "</f>"}],
        "triggers": ["<f>"],
    }
    (answer,) = chat(client, response_format=form, max_tokens=60, temperature=1.0, seed=1).choices
    for part in answer.message.content.split("<f>")[1:]:
        number, found, _ = part.partition("</f>")
        assert not found or 10 <= int(number) <= 99


def test_many_schemas_at_once(client):
    """32 different schemas, each by a connection of its own; among them some that are refused."""

    def ask(n):
        if n % 8 == 7:
            with pytest.raises(openai.BadRequestError):
                chat(client, response_format=schema_format({"$ref": f"http://elsewhere/{n}"}))
            return True
        (answer,) = chat(client, response_format=schema_format(numbered(n)), temperature=1.0, seed=n).choices
        return answer.finish_reason == "stop" and valid(numbered(n), answer.message.content)

    with ThreadPoolExecutor(36) as pool:
        assert all(pool.map(ask, range(36)))


def test_a_stream(client):
    pieces = [
        each.choices[0].delta.content or ""
        for each in chat(client, response_format=schema_format(PERSON), stream=True)
        if each.choices
    ]
    assert len(pieces) > 5 and valid(PERSON, "".join(pieces))


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}])
@pytest.mark.parametrize("strict", [True, None])
def test_tools_that_must_be_called(client, choice, strict):
    tools = [tool(name, schema, **({"strict": True} if strict else {})) for name, schema in SCHEMAS.items()]
    (answer,) = chat(client, tools=tools, tool_choice=choice, parallel_tool_calls=False).choices
    (call,) = answer.message.tool_calls
    assert call.function.name in SCHEMAS and (choice == "required" or call.function.name == "weather")
    # Of tools that are not strict vLLM asks for any JSON.
    assert valid(SCHEMAS[call.function.name] if strict else {}, call.function.arguments), call


def test_tools_that_may_be_called(client, tool_call_id):
    called = chat(
        client, tools=TOOLS, tool_choice="auto", parallel_tool_calls=False, logit_bias={str(tool_call_id): 100}
    )  # fmt: skip
    (call,) = called.choices[0].message.tool_calls
    check_calls([call])
    (text,) = chat(client, tools=TOOLS, tool_choice="auto", logit_bias={str(tool_call_id): -100}, max_tokens=20).choices
    assert not text.message.tool_calls and text.message.content


def test_several_calls(client, model_path):
    """The end of text is unwelcome, so there are calls until the budget, and the last of them is whole."""
    (answer,) = chat(
        client, tools=TOOLS, tool_choice="required", max_tokens=200, temperature=1.0, seed=2, logit_bias={"1": -100},
        extra_body={"vllm_xargs": {"guided_whole": 1}},
    ).choices  # fmt: skip
    assert answer.finish_reason != "length" and len(answer.message.tool_calls) > 2
    check_calls(answer.message.tool_calls)


def test_a_call_in_a_stream(client):
    name, arguments = "", ""
    for each in chat(client, tools=TOOLS, tool_choice="required", parallel_tool_calls=False, stream=True):
        for delta in each.choices[0].delta.tool_calls or () if each.choices else ():
            name += delta.function.name or ""
            arguments += delta.function.arguments or ""
    assert valid(SCHEMAS[name], arguments)


@pytest.mark.parametrize(("asked", "message"), [
    ({"response_format": schema_format({"properties": {"a": {"$ref": "http://x"}}})}, "#/properties/a/$ref"),
    ({"response_format": schema_format({"type": "integer", "minimum": 2, "maximum": 1})}, "guided: "),
    ({"extra_body": {"structured_outputs": {"regex": "(a"}}}, "offset"),
    ({"extra_body": {"structured_outputs": {"grammar": "root ::= x"}}}, "line 1"),
    ({"response_format": {"type": "structural_tag", "format": {"type": "regex", "pattern": "(a"}}}, "#/format/pattern"),
    ({"tools": [tool("f", {"type": "object", "properties": {"a": {"$ref": "http://x"}}}, strict=True)],
      "tool_choice": "required"}, "$ref"),
])  # fmt: skip
def test_a_refusal_is_a_bad_request(client, asked, message):
    with pytest.raises(openai.BadRequestError) as caught:
        chat(client, **asked)
    assert caught.value.status_code == 400 and message in caught.value.message, caught.value.message
    assert chat(client, extra_body={"structured_outputs": {"choice": ["fine"]}}).choices[0].message.content == "fine"


def test_metrics(client, server):
    chat(client, response_format=schema_format(numbered(99)))
    with urllib.request.urlopen(f"{server}/metrics", timeout=20) as answer:
        text = answer.read().decode()
    assert 'guided:compile_seconds_count{kind="json_schema"}' in text, json.dumps(text[:500])
