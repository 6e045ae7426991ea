"""The structural tags that XGrammar builds for model families: read, and the same language.

Texts are walks of pieces that stay alive here, ended on a short way, and the same a little changed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from guided.errors import UnsupportedError
from tests.amounts import each, some
from tests.oracle.test_structural_tags_against_xgrammar import Ours, theirs

pytest.importorskip("xgrammar")

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": parameters}}
    for name, parameters in {
        "weather": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
        "time": {"type": "object", "properties": {"zone": {"enum": ["utc", "cet"]}}, "required": ["zone"]},
    }.items()
]
FORCED = {"type": "function", "function": {"name": "time"}}
MODELS = [
    "llama", "kimi", "deepseek_r1", "deepseek_v3_1", "deepseek_v3_2", "deepseek_v4", "deepseek_v4_1", "qwen_3",
    "qwen_3_5", "qwen_3_coder", "mimo", "harmony", "minimax", "glm_4_7", "exaone", "kimi_k3",
]  # fmt: skip
REFUSED = {"cohere": "style", "minimax_m3": "style"}
"""What XGrammar has besides, and the field that is refused."""
VALUES = {"a", "1", "\n", '{"city": "x", "days": 3}', '{"zone":"utc"}', "<parameter=city>R</parameter>"}


def built(model: str, choice: Any, reasoning: str = "enabled", parallel: bool = True) -> dict[str, Any]:
    from xgrammar import get_model_structural_tag

    tag = get_model_structural_tag(model, TOOLS, choice, reasoning, parallel_tool_calls=parallel)
    return dict(json.loads(tag.model_dump_json()))


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name not in ("type", "style"):
                yield from strings(item)


def ended(mine: Ours, text: str) -> str:
    """The text, ended on a short way."""
    constraint = mine.constraint
    state = mine.state(text)
    found = text.encode()
    while not constraint.is_accepting(state):
        token = next(iter(constraint._machine.completions.tokens(state)))
        found += bytes([token])
        state = constraint.advance(state, token)
    return found.decode()


@pytest.mark.parametrize("model", each(MODELS, 2))
def test_same_language(model: str) -> None:
    for choice, reasoning, parallel in (("auto", "enabled", True), ("required", "auto", False), (FORCED, "auto", True)):
        format = built(model, choice, reasoning, parallel)["format"]
        mine, other = Ours(format, spelling="any"), theirs(format)
        seed = random.Random(model)
        pieces = sorted({*strings(format), *VALUES} - {""})
        for _ in range(some(24, 8)):
            text = ended(mine, mine.alive(pieces, seed))
            for found in (text, text[:-1], f"{text}x", text + seed.choice(pieces), text.replace("\n", "", 1)):
                assert mine.accepts(found) == other(found.encode()), (choice, reasoning, found)


@pytest.mark.parametrize("model", REFUSED)
def test_refused_by_name(model: str) -> None:
    with pytest.raises(UnsupportedError) as found:
        Ours(built(model, "auto")["format"])
    assert found.value.where is not None
    assert found.value.where.endswith(f"/{REFUSED[model]}")


def test_every_model_is_named_here() -> None:
    from xgrammar.builtin_structural_tag import _structural_tag_registry

    assert {*_structural_tag_registry} == {*MODELS, *REFUSED}
