"""`/v1/chat/completions` by the `openai` client, unchanged, on the packaged model."""

from __future__ import annotations

import json
import math
import re
import threading
from typing import Any, Literal

import jsonschema
import openai
import pydantic
import pytest

from guided.errors import GuidedError
from guided.server.scheduling.runs import CancellableModel
from tests.amounts import each, mostly_slow
from tests.unit.server.api.served import ADA, AS_PERSON, PERSON, TOOLS, Served


class Person(pydantic.BaseModel):
    name: str
    age: int
    mood: Literal["glad", "sad"]


def asked(client: openai.OpenAI, **more: Any) -> Any:
    given: dict[str, Any] = {"model": "nano", "messages": ADA, "temperature": 0, **more}
    if "guided" in given:
        given["extra_body"] = {"guided": given.pop("guided")}
    return client.chat.completions.create(**given)


def text_of(answer: Any) -> str:
    return str(answer.choices[0].message.content)


def test_a_schema_is_obeyed_and_usage_counted(client: openai.OpenAI) -> None:
    answer = asked(client, response_format=AS_PERSON)
    assert json.loads(text_of(answer)) == {"name": "Ada Lovelace", "age": 36}
    assert answer.choices[0].finish_reason == "stop" and answer.model == "nano"
    usage = answer.usage
    assert usage.prompt_tokens > 10 and usage.completion_tokens > 10
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_objects_of_types_are_parsed(client: openai.OpenAI) -> None:
    found = client.chat.completions.parse(model="nano", messages=ADA, response_format=Person, temperature=0)
    person = found.choices[0].message.parsed
    assert isinstance(person, Person) and person.age == 36


def test_any_object(client: openai.OpenAI) -> None:
    answer = asked(client, response_format={"type": "json_object"}, max_completion_tokens=40)
    assert isinstance(json.loads(text_of(answer)), dict)


def test_an_open_schema_is_closed_unless_it_is_not_strict(client: openai.OpenAI) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "maximum": 9, "minimum": 0}}}
    texts = {}
    for strict in (True, None, False):
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": strict}}
        grammar_text = asked(client, response_format=form, max_completion_tokens=30)
        texts[strict] = json.loads(text_of(grammar_text))
    assert set(texts[True]) <= {"a"} and set(texts[None]) <= {"a"}
    jsonschema.validate(texts[False], schema)


@pytest.mark.parametrize(
    "more",
    each(
        [
            {"response_format": AS_PERSON},
            {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False},
            {
                "tools": TOOLS,
                "tool_choice": {"type": "function", "function": {"name": "skip"}},
                "parallel_tool_calls": False,
            },
            {"tools": TOOLS, "tool_choice": "none", "max_completion_tokens": 12},
            {"max_completion_tokens": 12},
            {"guided": {"draft": "auto", "grammar": {"type": "json_schema", "schema": PERSON}}},
        ],
        2,
    ),
)
def test_a_stream_says_what_the_answer_says(client: openai.OpenAI, more: dict[str, Any]) -> None:
    whole = asked(client, **more)
    content, calls, finish, usage = "", {}, None, None
    for chunk in asked(client, **more, stream=True, stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            content += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for call in choice.delta.tool_calls or ():
                known = calls.setdefault(call.index, ["", ""])
                known[0] += call.function.name or ""
                known[1] += call.function.arguments or ""
    message = whole.choices[0].message
    assert content == (message.content or "") and finish == whole.choices[0].finish_reason
    told = [[call.function.name, call.function.arguments] for call in message.tool_calls or ()]
    assert list(calls.values()) == told
    assert usage is not None and usage.completion_tokens == whole.usage.completion_tokens


def test_calls_are_of_the_functions_and_their_schemas(client: openai.OpenAI) -> None:
    answer = asked(client, tools=TOOLS, tool_choice="required", parallel_tool_calls=False)
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls" and choice.message.content is None
    (call,) = choice.message.tool_calls
    schema = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}[call.function.name]  # type: ignore[index]
    jsonschema.validate(json.loads(call.function.arguments), schema)
    named = {"type": "function", "function": {"name": "save"}}
    (call,) = asked(client, tools=TOOLS, tool_choice=named, parallel_tool_calls=False).choices[0].message.tool_calls
    assert call.function.name == "save"
    jsonschema.validate(json.loads(call.function.arguments), PERSON)
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [
        {"type": "function", "function": {"name": "skip"}}]}}  # fmt: skip
    found = asked(client, tools=TOOLS, tool_choice=allowed, parallel_tool_calls=False)
    assert [call.function.name for call in found.choices[0].message.tool_calls] == ["skip"]


def test_an_answered_call_can_be_gone_on_from(client: openai.OpenAI) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "skip", "arguments": "{}"}}
    messages = [
        *ADA,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "done"},
    ]
    answer = asked(client, messages=messages, tools=TOOLS, tool_choice="none", max_completion_tokens=5)
    assert answer.choices[0].message.tool_calls is None


def test_log_probabilities_before_and_after_the_mask(client: openai.OpenAI) -> None:
    """The masked law is the model's own over what the mask leaves: their logarithms differ by that of the rest."""
    extension = {"tokens": True, "alternatives": 4, "explain": True}
    more = {"response_format": AS_PERSON, "logprobs": True, "top_logprobs": 3}
    after = asked(client, **more, guided=extension).choices[0]
    before = asked(client, **more, guided={**extension, "logprobs": "before_mask"}).choices[0]
    assert after.guided["logprobs"] == "after_mask" and before.guided["logprobs"] == "before_mask"
    tokens = after.guided["tokens"]
    assert "".join(entry.token for entry in after.logprobs.content) == after.message.content
    for entry, own, token in zip(after.logprobs.content, before.logprobs.content, tokens, strict=False):
        assert entry.logprob == token["logprob"] and own.logprob == token["model_logprob"]
        # Sums of 2,048 float32 probabilities are right to some 1e-4, and removed is one minus such a sum.
        assert token["logprob"] == pytest.approx(token["model_logprob"] - math.log1p(-token["removed"]), abs=1e-3)
        assert len(entry.top_logprobs) <= 3 and all(top.logprob > -math.inf for top in entry.top_logprobs)
        for other in token["alternatives"]:
            assert (other["logprob"] is None) or other["allowed"]
            assert (other["why"] is None) == other["allowed"]


def test_seeds_fix_texts_and_choices_differ(client: openai.OpenAI) -> None:
    def drawn(seed: int) -> list[str]:
        found = asked(client, temperature=1, seed=seed, n=3, guided={"grammar": {"type": "regex", "text": "[a-z]{12}"}})
        return [choice.message.content for choice in found.choices]

    assert drawn(1) == drawn(1) != drawn(2)
    assert len(set(drawn(1))) > 1 and all(re.fullmatch("[a-z]{12}", text) for text in drawn(1))


def test_a_stop_text_ends_free_text(client: openai.OpenAI) -> None:
    free = text_of(asked(client, max_completion_tokens=20))
    stop = free[len(free) // 2 :][:3]
    answer = asked(client, max_completion_tokens=20, stop=[stop])
    assert text_of(answer) == free[: free.index(stop)] and answer.choices[0].finish_reason == "stop"


GRAMMARS: list[tuple[dict[str, Any], str]] = [
    ({"type": "regex", "text": "[0-9]{3}"}, r"[0-9]{3}"),
    ({"type": "lark", "text": 'start: "a" | "b"'}, "a|b"),
    ({"type": "gbnf", "text": 'root ::= "x" [0-9]'}, "x[0-9]"),
    ({"type": "iso-ebnf", "text": "a = 'x', ? U+0030 .. U+0039 ?;"}, "x[0-9]"),
    ({"type": "w3c-ebnf", "text": "a ::= 'x' [0-9]"}, "x[0-9]"),
    ({"type": "antlr", "text": "grammar G; a: X; X: 'x' [0-9];"}, "x[0-9]"),
    ({"type": "choice", "choices": ["yes", "no"]}, "yes|no"),
    ({"type": "sql", "database": "shop"}, "(?s)SELECT .*"),
    ({"type": "tags", "free_text": False, "at_least_one": True, "stop_after_first": True, "tags": [
        {"begin": "<n>", "content": {"type": "regex", "text": "[0-9]"}, "end": "</n>"}]}, "<n>[0-9]</n>"),
    ({"type": "structural_tag", "format": {"type": "structural_tag", "format": {"type": "regex", "pattern": "z{2}"}}},
     "zz"),
    ({"type": "structural_tag", "format": {"type": "structural_tag", "format": {
        "type": "tag", "begin": "<", "content": {"type": "any_text", "max_tokens": 3}, "end": ">"}}}, "(?s)<.{0,60}>"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("grammar", "pattern"), GRAMMARS, ids=lambda each: each.get("type") if isinstance(each, dict) else ""
)
def test_each_kind_of_grammar(client: openai.OpenAI, grammar: dict[str, Any], pattern: str) -> None:
    assert re.fullmatch(pattern, text_of(asked(client, guided={"grammar": grammar}, max_completion_tokens=60)))


SAMPLERS = ["smc", "importance", "cars", "best-of-n", "local", "smc-steer", "asap", "mcmc", "rejection"]


@pytest.mark.parametrize("name", mostly_slow(SAMPLERS, 4))
def test_samplers_answer_with_their_evidence(client: openai.OpenAI, name: str) -> None:
    sampler = {"name": name, "particles": 4}
    answer = asked(client, temperature=1, seed=3, response_format=AS_PERSON, guided={"sampler": sampler})
    report = answer.choices[0].guided["sampler"]
    jsonschema.validate(json.loads(text_of(answer)), PERSON)
    assert report["texts"][0]["text"] == text_of(answer)
    assert sum(text["weight"] for text in report["texts"]) == pytest.approx(1, abs=1e-9)  # Shares of one sum.
    if name in ("smc", "importance"):
        assert report["log_ml"] <= 0 and 1 <= report["ess"] <= 4
        assert {"", "/name", "/age"} <= set(report["fields"])


def test_particles_are_told_step_by_step(client: openai.OpenAI) -> None:
    sampler = {"name": "smc", "particles": 4, "steps": True, "pick": "draw"}
    given = {"temperature": 1, "seed": 3, "response_format": AS_PERSON, "guided": {"sampler": sampler}, "stream": True}
    chunks = list(asked(client, **given))
    steps = [chunk.guided["step"] for chunk in chunks if not chunk.choices]
    assert [step["number"] for step in steps] == list(range(1, len(steps) + 1)) and len(steps) > 5
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    jsonschema.validate(json.loads(text), PERSON)


def test_a_search_finds_the_best(client: openai.OpenAI) -> None:
    search = {"name": "beam", "beams": 4}
    names = {"type": "choice", "choices": ["Ada", "Bob", "Eve"]}
    answer = asked(client, n=2, guided={"search": search, "grammar": names})
    texts = answer.choices[0].guided["search"]["texts"]
    assert [text["text"] for text in texts[:2]] == [choice.message.content for choice in answer.choices]
    assert texts[0]["score"] >= texts[1]["score"]
    placed = asked(client, response_format=AS_PERSON, guided={"search": {"must_include": [["Bob"]]}})
    assert "Bob" in text_of(placed)


def test_steerers_and_drafts_by_name(client: openai.OpenAI) -> None:
    plain = text_of(asked(client, response_format=AS_PERSON))
    jsonschema.validate(
        json.loads(text_of(asked(client, response_format=AS_PERSON, guided={"steer": ["careful"]}))), PERSON
    )
    drafted = asked(client, response_format=AS_PERSON, guided={"draft": "auto", "tokens": True})
    assert text_of(drafted) == plain
    assert any(token["drafted"] for token in drafted.choices[0].guided["tokens"])
    assert all(token["alternatives"] == [] for token in drafted.choices[0].guided["tokens"])


def test_a_text_with_a_draft_comes_while_it_is_verified(client: openai.OpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model's third pass waits until the first piece is read: a text that came whole would never come."""
    read, passes, check = threading.Event(), [0], CancellableModel.check

    def held(self: CancellableModel) -> None:
        passes[0] += 1
        if passes[0] > 2 and not read.wait(10):
            raise GuidedError("nothing was read")
        check(self)

    monkeypatch.setattr(CancellableModel, "check", held)
    content = ""
    # A text of its own: the draft has learned those of other tests, and has them in few rounds.
    said = [{"role": "user", "content": "Nina Berg is 52 years old."}]
    for chunk in asked(client, messages=said, response_format=AS_PERSON, guided={"draft": "auto"}, stream=True):
        content += chunk.choices[0].delta.content or ""
        if content:
            read.set()
    assert json.loads(content) == {"name": "Nina Berg", "age": 52} and passes[0] > 3


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"frequency_penalty": 2.5}, "frequency_penalty", "invalid_value"),
    ({"logit_bias": {"-1": 1}}, "logit_bias.-1", "invalid_value"),
    ({"logit_bias": {"5": 101}}, "logit_bias.5", "invalid_value"),
    ({"logit_bias": {"99999": 1}}, "logit_bias", "invalid_value"),
    ({"presence_penalty": 1, "guided": {"draft": "auto"}}, "presence_penalty", "unsupported_combination"),
    ({"logit_bias": {"5": 1}, "response_format": AS_PERSON, "guided": {"sampler": {"name": "smc"}}}, "logit_bias",
     "unsupported_combination"),
    ({"store": True}, "store", "unsupported_value"),
    ({"reasoning_effort": "high"}, "reasoning_effort", "unsupported_value"),
    ({"extra_body": {"min_p": 0.1}}, "min_p", "unknown_parameter"),
    ({"guided": {"smapler": {}}}, "guided.smapler", "unknown_parameter"),
    ({"guided": {"sampler": {"name": "smc", "particles": 0}}}, "guided.sampler.particles", "invalid_value"),
    ({"guided": {"grammar": {"type": "regex", "text": "("}}}, "guided.grammar", "malformed_grammar"),
    ({"guided": {"grammar": {"type": "sql", "database": "no"}}}, "guided.grammar", "invalid_value"),
    ({"guided": {"steer": ["no"]}}, "guided.steer[0]", "unsupported"),
    ({"guided": {"draft": "no"}}, "guided.draft", "unsupported"),
    ({"guided": {"sampler": {"name": "smc"}}}, "guided.sampler", "unsupported_combination"),
    ({"guided": {"explain": True}}, "guided.explain", "unsupported_combination"),
    ({"response_format": AS_PERSON, "stop": "x"}, "stop", "unsupported_combination"),
    ({"response_format": AS_PERSON, "tools": TOOLS}, "response_format", "unsupported_combination"),
    ({"response_format": AS_PERSON, "max_tokens": 3}, "max_tokens", "limit"),
    ({"max_tokens": 5000}, "max_tokens", "context_length_exceeded"),
    ({"tool_choice": "required"}, "tool_choice", "unsupported_combination"),
    ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "no"}}}, "tools", "malformed_grammar"),
    ({"top_logprobs": 2}, "top_logprobs", "invalid_value"),
    ({"messages": []}, "messages", "invalid_value"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
     "messages[0].content[0].type", "invalid_value"),
    ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0]", "invalid_value"),
    ({"temperature": "hot"}, "temperature", "invalid_value"),
    ({"n": True}, "n", "invalid_value"),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "strin"}}}},
     "response_format.json_schema.schema", "malformed_grammar"),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": False}}},
     "response_format.json_schema.schema", "unsatisfiable"),
]  # fmt: skip


@pytest.mark.parametrize(("more", "param", "code"), REFUSED, ids=lambda each: each if isinstance(each, str) else "")
def test_what_cannot_be_honoured_is_refused_by_its_path(
    client: openai.OpenAI, more: dict[str, Any], param: str, code: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        asked(client, **more)
    assert (caught.value.param, caught.value.code) == (param, code)


def test_biases_come_before_the_mask_and_penalties_count_what_was_written(client: openai.OpenAI) -> None:
    digits = {"grammar": {"type": "regex", "text": "[0-9]{12}"}}
    greedy = {"temperature": 0, "guided": {**digits, "tokens": True}}
    plain = asked(client, **greedy)
    first = plain.choices[0].guided["tokens"][0]
    biased = asked(client, **greedy, logit_bias={str(first["id"]): -100})
    assert biased.choices[0].guided["tokens"][0]["id"] != first["id"]
    assert len(text_of(biased)) == 12, "a bias takes nothing from the grammar"
    forced = asked(client, **greedy, logit_bias={str(biased.choices[0].guided["tokens"][0]["id"]): 100})
    assert len({token["id"] for token in forced.choices[0].guided["tokens"][:-1]}) == 1
    varied = asked(client, **greedy, frequency_penalty=2, presence_penalty=2)
    assert len(set(text_of(varied))) > len(set(text_of(plain)))


def test_values_that_change_nothing_are_taken(client: openai.OpenAI) -> None:
    neutral = {
        "frequency_penalty": 0, "presence_penalty": 0.0, "logit_bias": {}, "store": False, "user": "me", "n": 1,
        "metadata": {"a": "b"}, "parallel_tool_calls": None, "service_tier": "auto", "modalities": ["text"],
    }  # fmt: skip
    assert text_of(asked(client, response_format=AS_PERSON, **neutral)).startswith("{")


def test_another_model_is_not_found(client: openai.OpenAI, server: Served) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        asked(client, model="other")
    assert caught.value.code == "model_not_found"
    assert asked(client, model="gpt-4o-mini", max_tokens=2).model == "gpt-4o-mini"
    assert server.checking.checked > 0
