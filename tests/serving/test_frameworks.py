"""Each framework over the packaged model: objects of a type, exact, and the same as `guided.generate`'s.

`make test-frameworks` has an environment with all of them.
"""

from __future__ import annotations

import asyncio
import json

import pytest
from pydantic import BaseModel, Field

import guided
from tests.serving.cases import BUDGET, CASES
from tests.serving.conftest import answer

ASKED = "Ann Miller is 34 years old."


class Person(BaseModel):
    name: str = Field(max_length=12)
    age: int = Field(ge=40, multiple_of=17, le=90)


@pytest.fixture(scope="module")
def expected(nano):
    return guided.generate(nano, ASKED, Person, max_new_tokens=60).value


def test_outlines_has_the_cases(nano):
    outlines = pytest.importorskip("outlines")
    from guided.hf.processor import GuidedLogitsProcessor
    from guided.serving.frameworks.outlines import register

    register()
    model = outlines.from_transformers(nano.model, nano.tokenizer)
    for case in CASES[::7]:
        found = answer(nano, case)
        generator = outlines.Generator(model, processor=GuidedLogitsProcessor(found.constraint, max_new_tokens=BUDGET))
        assert generator(case.prompt, max_new_tokens=BUDGET) == nano.tokenizer.decode(found.token_ids), case.name


def test_outlines_by_name(nano, expected):
    outlines = pytest.importorskip("outlines")
    from guided.serving.frameworks.outlines import register

    register()
    register()
    model = outlines.from_transformers(nano.model, nano.tokenizer)
    text = outlines.Generator(model, Person, backend="guided")(ASKED, max_new_tokens=60)
    assert Person.model_validate_json(text) == expected
    look_ahead = outlines.Generator(model, outlines.types.regex("(?=.*7)[0-9]{3}"), backend="guided")
    assert "7" in look_ahead(ASKED, max_new_tokens=10)
    lark = outlines.Generator(model, outlines.types.CFG('start: "a" "b"~3'), backend="guided")
    assert lark(ASKED, max_new_tokens=10) == "abbb"
    with pytest.raises(guided.GuidedError, match="offset"):
        outlines.Generator(model, outlines.types.regex(r"(?P<word>\w+) (?P=word)"), backend="guided")
    with pytest.raises(ValueError, match="not supported"):
        outlines.Generator(model, Person, backend="none")


def test_outlines_default(nano, monkeypatch):
    outlines = pytest.importorskip("outlines")
    import outlines.backends as backends

    from guided.hf.processor import GuidedLogitsProcessor
    from guided.serving.frameworks.outlines import register

    for name in ("CFG", "JSON_SCHEMA", "REGEX"):
        monkeypatch.setattr(backends, f"{name}_DEFAULT_BACKEND", getattr(backends, f"{name}_DEFAULT_BACKEND"))
    register(default=True)
    model = outlines.from_transformers(nano.model, nano.tokenizer)
    assert isinstance(outlines.Generator(model, Person).logits_processor, GuidedLogitsProcessor)


def test_langchain(nano, expected):
    pytest.importorskip("langchain_core")
    from guided.serving.frameworks.langchain import ChatGuided

    model = ChatGuided.of(nano)
    structured = model.with_structured_output(Person)
    assert structured.invoke(ASKED) == expected
    assert structured.batch([ASKED, ASKED]) == [expected, expected]
    assert asyncio.run(structured.ainvoke(ASKED)) == expected
    found = model.with_structured_output(Person, include_raw=True).invoke([("human", ASKED)])
    assert found["parsed"] == expected and json.loads(found["raw"].content)["age"] == expected.age
    assert found["raw"].usage_metadata["output_tokens"] > 5
    assert model.bind(grammar=guided.choice(["yes", "no"])).invoke(ASKED).content in ("yes", "no")
    assert model.invoke(ASKED, max_tokens=3).response_metadata["finish_reason"] == "length"
    with pytest.raises(guided.UnsatisfiableError):
        model.with_structured_output({"type": "integer", "minimum": 2, "maximum": 1})
    with pytest.raises(guided.UnsupportedError):
        model.bind_tools([Person])


def test_llama_index(nano, expected):
    pytest.importorskip("llama_index.core")
    from llama_index.core.llms import ChatMessage
    from llama_index.core.prompts import PromptTemplate

    from guided.serving.frameworks.llama_index import GuidedLLM

    llm = GuidedLLM.of(nano)
    template = PromptTemplate("{who} is 34 years old.")
    assert llm.structured_predict(Person, template, who="Ann Miller") == expected
    assert asyncio.run(llm.astructured_predict(Person, template, who="Ann Miller")) == expected
    assert list(llm.stream_structured_predict(Person, template, who="Ann Miller")) == [expected]
    assert llm.as_structured_llm(Person).chat([ChatMessage(role="user", content=ASKED)]).raw == expected
    assert llm.complete(ASKED, grammar=guided.choice(["yes", "no"])).text in ("yes", "no")
    assert [each.text for each in llm.stream_complete(ASKED, max_new_tokens=4)] == [
        llm.complete(ASKED, max_new_tokens=4).text
    ]


def test_instructor(nano):
    pytest.importorskip("instructor")
    from guided.serving.frameworks.instructor import from_guided

    client = from_guided(nano)
    made = client.create(response_model=Person, messages=[{"role": "user", "content": ASKED}], max_tokens=80)
    assert isinstance(made, Person)
    assert isinstance(
        client.chat.completions.create(response_model=Person, messages=[{"role": "user", "content": ASKED}]), Person
    )


def test_dspy(nano):
    dspy = pytest.importorskip("dspy")
    from guided.serving.frameworks.dspy import GuidedEngine

    class Find(dspy.Signature):
        """Find the person."""

        text: str = dspy.InputField()
        person: Person = dspy.OutputField()

    lm = dspy.LM("guided/nano", engine=GuidedEngine(nano), max_tokens=200, cache=False)
    with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
        assert isinstance(dspy.Predict(Find)(text=ASKED).person, Person)
