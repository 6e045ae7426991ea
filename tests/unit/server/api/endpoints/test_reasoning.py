"""Reasoning stands apart from answers, in whole answers and in streams, under a grammar and in free text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from guided.hf.loading import LoadedModel
from guided.server.api.settings import Settings, Thinking
from tests.unit.server.api.served import ADA, Served, served

GRAMMAR = {"grammar": {"type": "choice", "choices": ["yes", "no"]}}


@pytest.fixture(scope="module")
def thinking(loaded: LoadedModel) -> Iterator[Served]:
    with served(loaded, Settings(thinking=Thinking("<think>", "</think>"), grace_seconds=10)) as found:
        yield found
        assert found.checking.checked and not found.checking.problems


def client_of(server: Served) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


def asked(server: Served, **more: Any) -> Any:
    given: dict[str, Any] = {"model": "nano", "messages": ADA, "temperature": 0, "max_tokens": 40}
    return client_of(server).chat.completions.create(**given, extra_body={"guided": GRAMMAR}, **more)


def test_a_grammar_begins_behind_the_reasoning(thinking: Served) -> None:
    answer = asked(thinking)
    message = answer.choices[0].message
    assert message.content in ("yes", "no") and message.reasoning_content
    assert "think>" not in message.reasoning_content
    assert 0 < answer.usage.completion_tokens_details.reasoning_tokens < answer.usage.completion_tokens
    reasoning, content = "", ""
    for chunk in asked(thinking, stream=True):
        for choice in chunk.choices:
            content += choice.delta.content or ""
            reasoning += getattr(choice.delta, "reasoning_content", None) or ""
    assert (content, reasoning) == (message.content, message.reasoning_content)
    items = client_of(thinking).responses.create(
        model="nano", input=ADA[0]["content"], temperature=0, max_output_tokens=40, extra_body={"guided": GRAMMAR}
    )
    assert [item.type for item in items.output] == ["reasoning", "message"]
    assert items.output_text == content and items.output[0].content[0].text == reasoning  # type: ignore[union-attr, index]


def test_reasoning_has_a_budget_of_its_own(thinking: Served) -> None:
    free = asked(thinking).usage.completion_tokens_details.reasoning_tokens
    create = client_of(thinking).chat.completions.create
    given: dict[str, Any] = {"model": "nano", "messages": ADA, "temperature": 0, "max_tokens": 40}
    answer = create(**given, extra_body={"guided": {**GRAMMAR, "thinking_tokens": 3}})
    message = answer.choices[0].message
    # The tokens around the reasoning are counted with it.
    assert message.content in ("yes", "no") and answer.usage.completion_tokens_details.reasoning_tokens < free
    with pytest.raises(openai.BadRequestError) as caught:
        create(**given, extra_body={"guided": {"thinking_tokens": 3}})
    assert caught.value.param == "guided.thinking_tokens"


def test_what_whole_texts_do_not_tell_apart_is_refused(thinking: Served) -> None:
    sampler = {"guided": {**GRAMMAR, "sampler": {"name": "smc"}}}
    with pytest.raises(openai.BadRequestError) as caught:
        client_of(thinking).chat.completions.create(model="nano", messages=ADA, extra_body=sampler)  # type: ignore[arg-type]
    assert caught.value.param == "guided.sampler"


def test_completions_are_texts_as_they_stand(thinking: Served) -> None:
    given: dict[str, Any] = {"model": "nano", "prompt": "JSON", "temperature": 0, "max_tokens": 30}
    text = {"type": "regex", "text": "<think>[a-z]{2}</think>[0-9]"}
    body = {"guided": {"grammar": text}}
    whole = client_of(thinking).completions.create(**given, extra_body=body).choices[0].text
    assert whole.startswith("<think>") and whole[9:17] == "</think>"
    chunks = client_of(thinking).completions.create(**given, extra_body=body, stream=True)
    assert "".join(choice.text for chunk in chunks for choice in chunk.choices) == whole
