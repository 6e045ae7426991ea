"""A model with a chat template: its prompts are what the template writes, of tools, calls and reasoning too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from guided.hf.loading import LoadedModel
from guided.server.api.settings import Settings
from guided.server.scheduling import Job, Scheduler, Stream
from tests.unit.server.api.served import Served, served

# As Qwen's and Hermes' are: tools in the system's turn, calls as JSON between tags, answers of tools as the user's.
TEMPLATE = r"""{%- if messages[0]['role'] == 'assistant' %}{{ raise_exception('the user begins') }}{% endif -%}
{%- if tools %}<|system|>tools:
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}{% endif -%}
{%- for message in messages -%}
<|{{ message['role'] }}|>
{%- if message['name'] %}({{ message['name'] }}){% endif -%}
{%- if message['reasoning_content'] %}<think>{{ message['reasoning_content'] }}</think>{% endif -%}
{{ message['content'] }}
{%- for call in message['tool_calls'] or [] -%}
<call>{{ call['function']['name'] }} {{ call['function']['arguments']['city'] }}</call>
{%- endfor -%}
{%- if message['tool_call_id'] %} of {{ message['tool_call_id'] }}{% endif -%}
{{ '\n' }}
{%- endfor -%}
{%- if add_generation_prompt %}<|assistant|>{% endif -%}"""

TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
TALK: list[dict[str, Any]] = [
    {"role": "developer", "content": "Be short."},
    {"role": "user", "name": "ida", "content": [{"type": "text", "text": "Is it raining "}, {"type": "text", "text": "in Oslo?"}]},
    {
        "role": "assistant", "content": None, "reasoning_content": "I look it up.",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "rain"},
]  # fmt: skip
WRITTEN = """\
<|system|>Be short.
<|user|>(ida)Is it raining in Oslo?
<|assistant|><think>I look it up.</think><call>weather Oslo</call>
<|tool|>rain of c1
<|assistant|>"""


@pytest.fixture(scope="module")
def templated(loaded: LoadedModel) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loaded.tokenizer, "chat_template", TEMPLATE)
        with served(loaded, Settings(grace_seconds=10)) as found:
            yield found
            assert found.checking.checked and not found.checking.problems


@pytest.fixture
def prompts(monkeypatch: pytest.MonkeyPatch, loaded: LoadedModel) -> list[str]:
    """The prompts of the jobs that come to the scheduler."""
    found: list[str] = []
    real = Scheduler.submit

    async def submit(scheduler: Scheduler, job: Job) -> Stream:
        found.append(loaded.tokenizer.decode(job.prompt))
        return await real(scheduler, job)

    monkeypatch.setattr(Scheduler, "submit", submit)
    return found


def asked(server: Served, talk: list[dict[str, Any]], **more: Any) -> Any:
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
    given: dict[str, Any] = {"model": "nano", "messages": talk, "temperature": 0, "max_tokens": 40, **more}
    return client.chat.completions.create(**given)


def test_the_prompt_is_what_the_template_writes(templated: Served, prompts: list[str], loaded: LoadedModel) -> None:
    answer = asked(templated, TALK, extra_body={"guided": {"grammar": {"type": "choice", "choices": ["yes", "no"]}}})
    assert answer.choices[0].message.content in ("yes", "no")
    assert prompts == [WRITTEN]
    assert answer.usage.prompt_tokens == len(loaded.tokenizer(WRITTEN, add_special_tokens=False)["input_ids"])


def test_tools_are_shown_to_the_template_and_calls_are_theirs(templated: Served, prompts: list[str]) -> None:
    answer = asked(templated, TALK[1:2], tools=[TOOL], tool_choice="required")
    (call,) = answer.choices[0].message.tool_calls
    assert call.function.name == "weather" and set(json.loads(call.function.arguments)) == {"city"}
    head, rest = prompts[0].split("\n", 1)
    assert head == "<|system|>tools:"
    shown, rest = rest.split("\n", 1)
    assert json.loads(shown) == TOOL
    assert rest == "<|user|>(ida)Is it raining in Oslo?\n<|assistant|>"


def test_what_the_template_refuses_is_the_requests_fault(templated: Served, prompts: list[str]) -> None:
    with pytest.raises(openai.BadRequestError, match="the user begins") as caught:
        asked(templated, [{"role": "assistant", "content": "I begin"}])
    assert caught.value.param == "messages" and not prompts
