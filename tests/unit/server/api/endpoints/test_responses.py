"""`/v1/responses` by the `openai` client, unchanged, on the packaged model."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import openai
import pydantic
import pytest

from tests.unit.server.api.served import PERSON

TEXT = "Ada Lovelace is 36 years old."
FORM = {"format": {"type": "json_schema", "name": "person", "schema": PERSON, "strict": True}}
TOOLS: list[Any] = [{"type": "function", "name": "save", "parameters": PERSON, "strict": True}]


class Person(pydantic.BaseModel):
    name: str
    age: int


def asked(client: openai.OpenAI, **more: Any) -> Any:
    return client.responses.create(**{"model": "nano", "input": TEXT, "temperature": 0, **more})


def test_a_schema_is_obeyed(client: openai.OpenAI) -> None:
    answer = asked(client, text=FORM)
    assert json.loads(answer.output_text) == {"name": "Ada Lovelace", "age": 36}
    assert answer.status == "completed" and answer.usage.total_tokens > 20 and answer.store is False
    parsed = client.responses.parse(model="nano", input=TEXT, temperature=0, text_format=Person)
    assert parsed.output_parsed == Person(name="Ada Lovelace", age=36)


def test_calls_and_going_on_from_them(client: openai.OpenAI) -> None:
    more = {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False}
    (call,) = asked(client, **more).output
    assert call.type == "function_call" and call.name == "save"
    jsonschema.validate(json.loads(call.arguments), PERSON)
    said = [
        {"role": "user", "content": TEXT},
        call.model_dump(exclude_none=True),
        {"type": "function_call_output", "call_id": call.call_id, "output": "saved"},
    ]
    again = asked(client, input=said, tools=TOOLS, tool_choice="none", max_output_tokens=5)
    assert [item.type for item in again.output] == ["message"]
    back = asked(client, input=[*said, *(item.model_dump(exclude_none=True) for item in again.output)], text=FORM)
    assert back.status == "completed"


@pytest.mark.parametrize(
    "more",
    [
        {"text": FORM},
        # Tools by events are those of the stream of chat completions, by default.
        pytest.param({"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False}, marks=pytest.mark.slow),
        {"max_output_tokens": 6},
    ],
)
def test_events_put_together_are_the_answer(client: openai.OpenAI, more: dict[str, Any]) -> None:
    whole = asked(client, **more)
    events = list(asked(client, stream=True, **more))
    final = events[-1].response
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[0].type == "response.created" and events[-1].type in ("response.completed", "response.incomplete")
    assert final.output_text == whole.output_text and final.status == whole.status
    deltas = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert deltas == whole.output_text
    told = [getattr(item, "arguments", None) for item in final.output]
    assert told == [getattr(item, "arguments", None) for item in whole.output]
    if "max_output_tokens" not in more:
        with client.responses.stream(model="nano", input=TEXT, temperature=0, **more) as stream:
            assert [event.type for event in stream] == [event.type for event in events]
            assert stream.get_final_response().output_text == whole.output_text
    else:
        assert whole.status == "incomplete" and whole.incomplete_details.reason == "max_output_tokens"


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"store": True}, "store"),
        ({"background": True}, "background"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "strin"}}}}, "text.format.schema"),
        ({"max_output_tokens": 2, "text": FORM}, "max_output_tokens"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
            "input[0].content[0].type",
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused(client: openai.OpenAI, more: dict[str, Any], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        asked(client, **more)
    assert caught.value.param == param
