"""Clients and frameworks that speak OpenAI's protocol, unchanged, against `guided serve`'s application.

Run by `make test-frameworks`; the `openai` client itself is also in the default tests, tests/unit/server/api.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Literal

import pydantic
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from guided.server.api.settings import Settings
from tests.unit.server.api.served import Served, served

TEXT = "Ada Lovelace is 36 years old."
NAME = "gpt-4o-mini"
"""A name that classes which know only OpenAI's models take; the server has it as an alias."""


class Person(pydantic.BaseModel):
    """A person."""

    name: str
    age: int
    mood: Literal["glad", "sad"]


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    import guided.hf
    from guided.server.api.serving import warm

    loaded = guided.hf.load("nano")
    warm(loaded)
    with served(loaded, Settings(aliases=(NAME,), grace_seconds=10, default_tokens=200)) as found:
        yield found
        assert found.checking.checked and not found.checking.problems


def of(server: Served) -> dict[str, Any]:
    return {"base_url": f"{server.url}/v1", "api_key": "none"}


def test_openai(server: Served) -> None:
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(**of(server))
    messages = [{"role": "user", "content": TEXT}]
    person = client.chat.completions.parse(model=NAME, messages=messages, response_format=Person, temperature=0)
    assert isinstance(person.choices[0].message.parsed, Person)
    with client.chat.completions.stream(model=NAME, messages=messages, response_format=Person, temperature=0) as stream:
        kinds = {event.type for event in stream}
        assert stream.get_final_completion().choices[0].message.parsed == person.choices[0].message.parsed
    assert {"chunk", "content.delta", "content.done"} <= kinds
    called = client.chat.completions.parse(
        model=NAME, messages=messages, tools=[openai.pydantic_function_tool(Person)], tool_choice="required",
        parallel_tool_calls=False, temperature=0,
    )  # fmt: skip
    assert isinstance(called.choices[0].message.tool_calls[0].function.parsed_arguments, Person)
    assert NAME in [model.id for model in client.models.list()]

    async def many() -> list[Any]:
        async with openai.AsyncOpenAI(**of(server)) as asynchronous:
            one = asynchronous.chat.completions.parse
            return await asyncio.gather(
                *(one(model=NAME, messages=messages, response_format=Person, seed=i) for i in range(4))
            )

    assert all(isinstance(each.choices[0].message.parsed, Person) for each in asyncio.run(many()))


@pytest.mark.parametrize("responses", [False, True])
def test_langchain(server: Served, responses: bool) -> None:
    langchain_openai = pytest.importorskip("langchain_openai")
    model = langchain_openai.ChatOpenAI(
        model=NAME, **of(server), temperature=0, max_retries=0, use_responses_api=responses
    )
    for method in ("json_schema", "function_calling"):
        found = model.with_structured_output(Person, method=method).invoke(TEXT)
        assert isinstance(found, Person)
    bound = model.bind_tools([Person], tool_choice="Person", parallel_tool_calls=False)
    (call,) = bound.invoke(TEXT).tool_calls
    assert call["name"] == "Person" and Person(**call["args"])
    whole = model.bind(max_tokens=8).invoke(TEXT)
    streamed = "".join(chunk.text for chunk in model.bind(max_tokens=8).stream(TEXT))
    assert streamed == whole.text and whole.usage_metadata["output_tokens"] <= 8
    drawn = list(bound.stream(TEXT))
    assert "".join(part.get("args") or "" for chunk in drawn for part in chunk.tool_call_chunks).strip().startswith("{")


def test_llama_index(server: Served) -> None:
    module = pytest.importorskip("llama_index.llms.openai")
    from llama_index.core.llms import ChatMessage
    from llama_index.core.prompts import PromptTemplate
    from llama_index.core.tools import FunctionTool

    keys = of(server)
    model = module.OpenAI(model=NAME, api_base=keys["base_url"], api_key="none", temperature=0, max_retries=0)
    found = model.structured_predict(Person, PromptTemplate("{text}"), text=TEXT)
    assert isinstance(found, Person)
    messages = [ChatMessage(role="user", content=TEXT)]
    whole = model.chat(messages, max_tokens=8).message.content
    assert "".join(part.delta or "" for part in model.stream_chat(messages, max_tokens=8)) == whole

    def save(name: str, age: int) -> str:
        """Save a person."""
        return f"{name}, {age}"

    tool = FunctionTool.from_defaults(save)
    answer = model.chat_with_tools([tool], user_msg=TEXT, tool_required=True, allow_parallel_tool_calls=False)
    (call,) = model.get_tool_calls_from_response(answer)
    assert call.tool_name == "save" and isinstance(call.tool_kwargs["age"], int)


def test_instructor(server: Served) -> None:
    instructor = pytest.importorskip("instructor")
    import openai

    messages = [{"role": "user", "content": TEXT}]
    # Not Mode.JSON: it asks for any object, and leaves the schema to the model.
    for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA):
        client = instructor.from_openai(openai.OpenAI(**of(server)), mode=mode)
        found = client.chat.completions.create(
            model=NAME, messages=messages, response_model=Person, max_retries=0, temperature=0
        )
        assert isinstance(found, Person)
        parts = list(
            client.chat.completions.create_partial(
                model=NAME, messages=messages, response_model=Person, max_retries=0, temperature=0
            )
        )
        assert parts[-1].name == found.name and len(parts) > 3
