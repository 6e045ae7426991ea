"""Generation with special tokens, tags and thinking, through transformers."""

from __future__ import annotations

import copy
import json
import re

import pytest
import torch

import guided
from guided import Tag, ToolChoice, ToolStyle
from guided.errors import LimitError, VocabularyError
from guided.hf import GuidedLogitsProcessor
from guided.hf.generate import generate
from tests.amounts import each

SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": ["Rome", "Oslo"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def chat(tokenizer):
    """The tokenizer with added tokens: one special, three that are not marked so."""
    added = copy.deepcopy(tokenizer)
    added.add_special_tokens({"additional_special_tokens": ["<|call|>"]})
    added.add_tokens(["<tool_call>", "</tool_call>", "</think>"])
    return added


@pytest.fixture(scope="module")
def special(chat):
    return guided.Vocabulary.from_tokenizer(chat).special_tokens


def test_added_tokens_are_special_tokens(chat, special):
    assert set(special) >= {"<|call|>", "<tool_call>", "</tool_call>", "</think>", "</s>", "<pad>"}
    assert all(chat.convert_tokens_to_ids(name) == token for name, token in special.items())


@pytest.mark.parametrize(
    "options", each([{}, {"do_sample": True, "top_k": 0, "temperature": 3.0}, {"num_beams": 3}], 2)
)
def test_tool_calls(llama, chat, options):
    def travel(city: str, days: int) -> None: ...

    spec = {"name": "travel", "parameters": SCHEMA}
    grammar = guided.tool_calls([spec], choice=ToolChoice.REQUIRED, whitespace="compact")
    torch.manual_seed(0)
    made = generate(llama, "where", grammar, tokenizer=chat, max_new_tokens=120, **options)
    assert made.finished
    calls = re.findall(r'<tool_call>\n\{"name": "travel", "arguments": (.*)\}\n</tool_call>', made.text)
    assert calls and made.text.count("<tool_call>") == len(calls) == list(made.token_ids).count(
        chat.convert_tokens_to_ids("<tool_call>")
    )
    for call in calls:
        assert json.loads(call)["city"] in ("Rome", "Oslo")


def test_free_text_before_a_special_token(llama, chat, special):
    grammar = guided.tags(
        [Tag(guided.special_token("<|call|>"), guided.json_schema(SCHEMA, whitespace="compact"))],
        at_least_one=True,
        stop_after_first=True,
    )
    torch.manual_seed(1)
    made = generate(llama, "where", grammar, tokenizer=chat, max_new_tokens=60, do_sample=True, temperature=5.0)
    assert made.finished and made.token_ids.count(special["<|call|>"]) == 1
    before, after = made.text.split("<|call|>")
    assert json.loads(after)["days"] in range(1, 10)
    ids = list(made.token_ids)
    where = ids.index(special["<|call|>"])
    assert chat.decode(ids[:where]) == before


def test_thinking_within_a_budget(llama, chat):
    grammar = guided.think(
        guided.choice(["yes", "no"]), begin=None, end=guided.special_token("</think>"), separator="\n"
    )
    for budget in (6, 9, 20):
        made = generate(llama, "think", grammar, tokenizer=chat, max_new_tokens=budget)
        assert made.finished and re.fullmatch(r"[\s\S]*</think>\n(yes|no)", made.text)
    with pytest.raises(LimitError, match="too few"):
        GuidedLogitsProcessor(grammar, chat, max_new_tokens=2)


def test_two_grammars_of_one_batch(llama, chat):
    grammars = [guided.think(guided.choice(["yes", "no"]), end="</th>"), guided.special_token("<|call|>")]
    made = generate(llama, ["a", "b"], grammars, tokenizer=chat, max_new_tokens=40)
    assert made[0].finished and re.fullmatch(r"<think>[\s\S]*</th>\n{0,2}(yes|no)", made[0].text)
    assert made[1].text == "<|call|>"


def test_a_model_without_the_special_token(chat, special):
    processor = GuidedLogitsProcessor(guided.special_token("</think>"), chat)
    width = special["</think>"]
    scores = torch.zeros(1, width)
    with pytest.raises(VocabularyError, match="special token"):
        processor(torch.zeros((1, 1), dtype=torch.long), scores)
    # Grammars that do not ask for it do not mind.
    GuidedLogitsProcessor(guided.choice(["yes"]), chat)(torch.zeros((1, 1), dtype=torch.long), scores)


def test_the_packaged_model_calls_a_tool():
    from guided.hf import load

    loaded = load()
    grammar = guided.tool_calls(
        [{"name": "travel", "parameters": SCHEMA}],
        style=ToolStyle.LLAMA,
        choice=ToolChoice.REQUIRED,
        parallel=False,
        whitespace="compact",
    )
    made = generate(loaded, "Two days in Rome.", grammar, max_new_tokens=60)
    match = re.fullmatch(r"<function=travel>(.*)</function>", made.text)
    assert match
    assert guided.partial_json(match[1], final=True).value["city"] in ("Rome", "Oslo")
