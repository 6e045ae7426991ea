"""`agenerate` and `astream` beside `generate`: the same texts, and nothing goes on that nobody waits for."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import BaseModel

import guided
from guided.errors import UnsupportedError
from guided.infer import smc
from guided.steer import ClassifierFree

PROMPT = "Ada Lovelace is 36 years old and lives in London.\n"
SHORT = {"max_new_tokens": 40}


class Person(BaseModel):
    name: str
    age: int = 7


@pytest.fixture(scope="module")
def nano():
    return guided.hf.load("nano")


@pytest.fixture
def passes(nano):
    """Grows by one with each pass of the model; no hook but this one is left behind."""
    counted = []
    hook = nano.model.register_forward_pre_hook(lambda *_: counted.append(None))
    yield counted
    hook.remove()
    assert not nano.model._forward_pre_hooks


async def collected(stream):
    return [item async for item in stream]


def test_texts_are_those_of_generate(nano):
    async def several():
        seeded = [guided.agenerate(nano, PROMPT, Person, seed=seed, do_sample=True, **SHORT) for seed in range(2)]
        return await asyncio.gather(*seeded, guided.agenerate(nano, [PROMPT, "Bo"], Person, **SHORT))

    *drawn, greedy = asyncio.run(several())
    assert drawn == [guided.generate(nano, PROMPT, Person, seed=seed, do_sample=True, **SHORT) for seed in range(2)]
    assert greedy == guided.generate(nano, [PROMPT, "Bo"], Person, **SHORT)
    assert isinstance(greedy[0].value, Person)


@pytest.mark.parametrize(
    "options", [{}, {"draft": True}, {"steer": [ClassifierFree()]}], ids=["plain", "draft", "steer"]
)
def test_a_stream_is_the_text_in_pieces(nano, options):
    items = asyncio.run(collected(guided.astream(nano, PROMPT, Person, **options)))
    made = guided.generate(nano, PROMPT, Person, **options)
    assert "".join(item.new for item in items) == items[-1].text == made.text
    assert items[-1].generation.token_ids == made.token_ids and items[-1].value == made.value
    assert len(items) > 3 and all(item.generation is None for item in items[:-1])
    values = [item.value for item in items[:-1]]
    begun = [value for value in values if value is not None]
    assert all(isinstance(value, Person) for value in begun)
    assert [len(value.model_fields_set) for value in begun] == sorted(len(value.model_fields_set) for value in begun)
    assert {"name"} in [value.model_fields_set for value in begun]
    assert all(made.value.name.startswith(value.name) for value in begun if "name" in value.model_fields_set)


def test_texts_without_a_type(nano):
    items = asyncio.run(collected(guided.astream(nano, PROMPT, guided.regex("[ab]{3}"))))
    assert [item.value for item in items] == [item.text for item in items]
    # Without white space: before the bracket there is no value yet.
    pairs = guided.json_schema({"type": "array", "maxItems": 2}, whitespace="")
    data = asyncio.run(collected(guided.astream(nano, PROMPT, pairs, **SHORT)))
    assert all(isinstance(item.value, list) for item in data)
    assert data[-1].value == data[-1].generation.value


def test_whoever_leaves_a_stream_ends_the_text(nano, passes):
    async def first():
        stream = guided.astream(nano, PROMPT, guided.regex("a{200}"), max_new_tokens=250)
        async for _ in stream:
            break
        await stream.aclose()
        seen = len(passes)
        # The next call waits for the thread, so that nothing of the one before runs any more.
        await guided.agenerate(nano, PROMPT, guided.choice(["b"]))
        return seen

    seen = asyncio.run(first())
    assert len(passes) < 60 and seen < 50


@pytest.mark.parametrize("options", [{}, {"sampler": smc, "n": 4}, {"draft": True}], ids=["plain", "sampler", "draft"])
def test_a_cancelled_task_ends_before_the_next_pass(nano, passes, options):
    grammar = guided.regex("([a-z] ?){150,240}")

    async def cancelled():
        task = asyncio.ensure_future(guided.agenerate(nano, PROMPT, grammar, max_new_tokens=250, **options))
        behind = asyncio.ensure_future(guided.agenerate(nano, PROMPT, grammar, **options))
        while not passes:
            await asyncio.sleep(0.001)
        behind.cancel()
        task.cancel()
        for each in (task, behind):
            with pytest.raises(asyncio.CancelledError):
                await each
        await guided.agenerate(nano, PROMPT, guided.choice(["b"]))

    asyncio.run(cancelled())
    assert len(passes) < 60


def test_errors_are_those_of_generate(nano):
    with pytest.raises(guided.LimitError):
        asyncio.run(guided.agenerate(nano, PROMPT, Person, max_new_tokens=2))
    with pytest.raises(guided.LimitError):
        asyncio.run(collected(guided.astream(nano, PROMPT, Person, max_new_tokens=2)))


@pytest.mark.parametrize("options", [{"sampler": smc}, {"n": 2}, {"heal": True}, {"think": "draft"}])
def test_what_does_not_grow_is_not_streamed(nano, options):
    with pytest.raises(UnsupportedError, match=f"{next(iter(options))}= has no single text"):
        asyncio.run(collected(guided.astream(nano, PROMPT, Person, **options)))
    with pytest.raises(UnsupportedError, match="brings no tokenizer"):
        asyncio.run(collected(guided.astream(nano.model, PROMPT, Person)))
