"""`guided.tool_calls`: every style takes the calls that its chat templates print, and no others."""

from __future__ import annotations

import json
import pickle
import random
import re
from typing import Any

import jsonschema
import numpy as np
import pytest

import guided
from guided import ToolChoice, ToolStyle
from guided.errors import GrammarError, UnsatisfiableError, VocabularyError
from guided.grammar.json_schema.reading.source import read
from guided.grammar.tags.styles import FORMATS
from guided.grammar.xml_arguments.notation import NOTATIONS, JsonType
from guided.testing import check_constraint
from tests import vocabularies
from tests.amounts import crossed, each

SPECIAL_NAMES = sorted({name for call in FORMATS.values() for name in call.special_tokens})
SPECIAL = {name: 257 + number for number, name in enumerate(SPECIAL_NAMES)}
VOCABULARY = guided.Vocabulary.from_tokens(
    [*vocabularies.SINGLE_BYTES, None, *[None] * len(SPECIAL)], eos_ids=[256], special_tokens=SPECIAL
)
SPLIT = re.compile("|".join(map(re.escape, SPECIAL_NAMES)))


def weather(city: str, days: int = 1) -> str:
    raise NotImplementedError


NOW = {
    "type": "function",
    "function": {
        "name": "now",
        "description": "the time",
        "parameters": {
            "$defs": {"zone": {"enum": ["utc", "local"]}},
            "type": "object",
            "properties": {"zone": {"$ref": "#/$defs/zone"}},
            "required": ["zone"],
            "additionalProperties": False,
        },
    },
}
PING: dict[str, Any] = {"name": "ping"}
TOOLS = [weather, NOW, PING]
W = '{"city": "Köln", "days": 2}'
N = '{"zone": "utc"}'
B = {name.strip("<>").replace("｜", "").replace("▁", "_"): name for name in FORMATS[ToolStyle.DEEPSEEK].special_tokens}
V3 = B["tool_calls_begin"], B["tool_call_begin"], B["tool_sep"], B["tool_call_end"], B["tool_calls_end"]


def elements(style: ToolStyle, *arguments: tuple[str, JsonType, str]) -> str:
    kind = FORMATS[style].arguments
    assert kind is not None
    notation = NOTATIONS[kind]
    return "".join(
        f"{notation.before}{name}{notation.after}{notation.openings[of]}{value}{notation.closing}\n"
        for name, of, value in arguments
    )


XML = [style for style in ToolStyle if FORMATS[style].arguments is not None]
WX = {
    style: elements(style, ("city", JsonType.STRING, "Köln"), ("days", JsonType.NUMBER, "2")).rstrip("\n")
    for style in XML
}
NX = {style: elements(style, ("zone", JsonType.STRING, "utc")).rstrip("\n") for style in XML}
QWEN, GLM = ToolStyle.QWEN_CODER, ToolStyle.GLM


def dsml(style: ToolStyle, *calls: tuple[str, str]) -> str:
    call = FORMATS[style]
    return call.opening + "".join(f"{call.before}{f}{call.between}{x}\n{call.after}" for f, x in calls) + call.closing


def kimi(*calls: tuple[str, str]) -> str:
    inside = "".join(
        f"<|tool_call_begin|>functions.{f}:{n}<|tool_call_argument_begin|>{x}<|tool_call_end|>"
        for n, (f, x) in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{inside}<|tool_calls_section_end|>"


def qwen(f: str, x: str) -> str:
    return f"<tool_call>\n<function={f}>\n{x}\n</function>\n</tool_call>"


def exaone(f: str, x: str) -> str:
    return f'<tool_call>{{"name": "{f}", "arguments": {x}}}</tool_call>'


ONE = {
    **{style: dsml(style, ("weather", WX[style])) for style in XML if FORMATS[style].opening},
    QWEN: qwen("weather", WX[QWEN]),
    ToolStyle.MIMO: f"<tool_call><function=weather>{WX[ToolStyle.MIMO]}</function></tool_call>",
    GLM: f"<tool_call>weather\n{WX[GLM]}\n</tool_call>",
    ToolStyle.KIMI: kimi(("weather", W)),
    ToolStyle.EXAONE: exaone("weather", W),
    ToolStyle.HERMES: f'<tool_call>\n{{"name": "weather", "arguments": {W}}}\n</tool_call>',
    ToolStyle.LLAMA: f"<function=weather>{W}</function>",
    ToolStyle.LLAMA_JSON: f'{{"name": "weather", "parameters": {W}}}',
    ToolStyle.MISTRAL: f'[TOOL_CALLS] [{{"name": "weather", "arguments": {W}}}]',
    ToolStyle.MISTRAL_ARGS: f"[TOOL_CALLS]weather[ARGS]{W}",
    ToolStyle.DEEPSEEK: f"{V3[0]}{V3[1]}function{V3[2]}weather\n```json\n{W}\n```{V3[3]}{V3[4]}",
    ToolStyle.DEEPSEEK_V31: f"{V3[0]}{V3[1]}weather{V3[2]}{W}{V3[3]}{V3[4]}",
    ToolStyle.FUNCTIONARY: f"weather\n{W}",
}
TWO = {
    **{style: dsml(style, ("weather", WX[style]), ("now", NX[style])) for style in XML if FORMATS[style].opening},
    QWEN: f"{ONE[QWEN]}\n{qwen('now', NX[QWEN])}",
    ToolStyle.MIMO: f"{ONE[ToolStyle.MIMO]}<tool_call><function=now>{NX[ToolStyle.MIMO]}</function></tool_call>",
    GLM: f"{ONE[GLM]}<tool_call>now{NX[GLM]}</tool_call>",
    ToolStyle.KIMI: kimi(("weather", W), ("now", N)),
    ToolStyle.EXAONE: f"{ONE[ToolStyle.EXAONE]}\n{exaone('now', N)}",
    ToolStyle.HERMES: f'{ONE[ToolStyle.HERMES]}\n<tool_call>\n{{"name": "now", "arguments": {N}}}\n</tool_call>',
    ToolStyle.LLAMA: f"<function=weather>{W}</function><function=now>{N}</function>",
    ToolStyle.LLAMA_JSON: f'{ONE[ToolStyle.LLAMA_JSON]}; {{"name": "now", "parameters": {N}}}',
    ToolStyle.MISTRAL: f'[TOOL_CALLS][{{"name": "weather", "arguments": {W}}}, {{"name": "now", "arguments": {N}}}]',
    ToolStyle.MISTRAL_ARGS: f"[TOOL_CALLS]weather[ARGS]{W}[TOOL_CALLS]now[ARGS]{N}",
    ToolStyle.DEEPSEEK: ONE[ToolStyle.DEEPSEEK].removesuffix(V3[4])
    + f"\n{V3[1]}function{V3[2]}now\n```json\n{N}\n```{V3[3]}{V3[4]}",
    ToolStyle.DEEPSEEK_V31: ONE[ToolStyle.DEEPSEEK_V31].removesuffix(V3[4])
    + f"{V3[1]}now{V3[2]}{N}{V3[3]}{V3[4]}",
    ToolStyle.FUNCTIONARY: f"weather\n{W}>>>now\n{N}",
}  # fmt: skip


def compiled(special: bool = True, **options: Any) -> guided.Constraint:
    grammar = guided.tool_calls(TOOLS, special_tokens=None if special else (), **options)
    assert pickle.loads(pickle.dumps(grammar)).key == grammar.key
    return guided.compile(grammar, VOCABULARY)


def accepts(constraint: guided.Constraint, text: str, special: bool = True) -> bool:
    """Tokenized as the family's tokenizer does: special tokens are one id each."""
    state = constraint.start
    at = 0
    for match in SPLIT.finditer(text) if special else ():
        state = state and constraint.advance_bytes(state, text[at : match.start()].encode())
        state = state and constraint.advance(state, SPECIAL[match[0]])
        at = match.end()
    state = state and constraint.advance_bytes(state, text[at:].encode())
    return bool(state) and constraint.is_accepting(state)


@pytest.mark.parametrize(("special", "style"), crossed([True, False], ToolStyle))
def test_calls_of_the_style(style: ToolStyle, special: bool) -> None:
    def takes(text: str, **options: Any) -> bool:
        return accepts(compiled(special, style=style, **options), text, special)

    text = "all\nHello" if style is ToolStyle.FUNCTIONARY else "Hello, [ and < and {"
    one, two, w, n, nothing = ONE[style], TWO[style], WX.get(style, W), NX.get(style, N), "" if style in WX else "{}"
    forced = FORMATS[style].before_section
    mixed = f"all\nHello>>>{one}" if style is ToolStyle.FUNCTIONARY else f"{text}{one}"
    assert takes(text) and takes(one) and takes(mixed)
    assert takes(two) or style is ToolStyle.LLAMA_JSON
    assert takes(forced + two, choice=ToolChoice.REQUIRED) and takes(forced + one, choice=ToolChoice.REQUIRED)
    assert not takes(text, choice=ToolChoice.REQUIRED) and not takes(mixed, choice=ToolChoice.REQUIRED)
    assert takes(one, parallel=False) and not takes(two, parallel=False)
    assert takes(text, choice=ToolChoice.NONE) and not takes(mixed, choice=ToolChoice.NONE)
    one, two = forced + one, forced + two
    assert takes(one, function="weather") and not takes(one, function="now") and not takes(two, function="weather")
    for wrong in (one.replace("2", "\\q"), one.replace("weather", "rain"), one.replace(w, n), one.replace(w, "[]")):
        assert not takes(wrong, choice=ToolChoice.REQUIRED), wrong
    empty = one.replace("weather", "ping").replace(w, nothing).replace("ping\n\n", "ping\n")
    assert takes(empty, choice=ToolChoice.REQUIRED)
    assert not takes(one.replace("weather", "ping"), choice=ToolChoice.REQUIRED)


@pytest.mark.parametrize("style", each(ToolStyle, 2))
def test_contracts(style: ToolStyle) -> None:
    check_constraint(compiled(style=style), walks=3, length=25, threads=1, pickled=False)


def test_the_tokenizer_says_which_delimiters_are_special() -> None:
    own = guided.tool_calls(TOOLS, special_tokens=VOCABULARY.special_tokens)
    assert own.special_tokens == ("</tool_call>", "<tool_call>")
    other = guided.Vocabulary.from_tokens([*vocabularies.SINGLE_BYTES], eos_ids=[])
    text = guided.tool_calls(TOOLS, special_tokens=other.special_tokens)
    assert text.special_tokens == () and guided.compile(text, other)
    with pytest.raises(VocabularyError, match="no special token '</tool_call>'"):
        guided.compile(guided.tool_calls(TOOLS), other)


def test_classes_are_tools_of_their_name() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Lookup(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        key: str

    grammar = guided.tool_calls([Lookup], style=ToolStyle.LLAMA, choice=ToolChoice.REQUIRED)
    assert accepts(guided.compile(grammar, VOCABULARY), '<function=Lookup>{"key": "a"}</function>')


def test_strings_at_the_edge() -> None:
    grammar = guided.tool_calls(TOOLS, style="llama", choice="required")  # type: ignore[arg-type]
    assert grammar.key == guided.tool_calls(TOOLS, style=ToolStyle.LLAMA, choice=ToolChoice.REQUIRED).key


@pytest.mark.parametrize(
    ("tools", "options", "error", "what"),
    [
        ([], {}, GrammarError, "no tools"),
        ([PING, PING], {}, GrammarError, "two tools"),
        ([5], {}, GrammarError, "no tool"),
        ([{"type": "function"}], {}, GrammarError, "without a name"),
        ([{"name": "a>b"}], {}, GrammarError, "function's name"),
        ([{"name": "a", "parameters": {"type": "nothing"}}], {}, GrammarError, "tool 'a'"),
        ([{"name": "a", "parameters": {"x": {1}}}], {}, GrammarError, "JSON"),
        ([{"name": "a", "parameters": False}], {}, UnsatisfiableError, "tool 'a'"),
        ([PING], {"function": "pong"}, GrammarError, "The tools are 'ping'"),
        ([PING], {"function": "ping", "choice": ToolChoice.NONE}, GrammarError, "none may be called"),
    ],
)
def test_errors(tools: list[Any], options: dict[str, Any], error: type[Exception], what: str) -> None:
    with pytest.raises(error, match=re.escape(what)):
        guided.tool_calls(tools, **options)


@pytest.mark.parametrize("function", ["weather", "now"])
def test_every_argument_is_json(function: str) -> None:
    """What is generated between the delimiters is JSON under the function's schema."""
    schema = read(weather if function == "weather" else NOW["function"]["parameters"])
    constraint = compiled(style=ToolStyle.LLAMA, function=function, parallel=False, whitespace="compact")
    rnd = random.Random(0)
    texts = set()
    for _ in range(12):
        state, text = constraint.start, b""
        while not constraint.is_accepting(state):
            row = np.zeros(VOCABULARY.n_words, np.uint32)
            constraint.fill_budget_mask(state, row, constraint.shortest_completion(state) + rnd.choice((1, 5, 9)))
            token = rnd.choice(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())
            text += bytes([token])
            state = constraint.advance(state, token)
        match = re.fullmatch(rf"<function={function}>([\s\S]*)</function>", text.decode())
        assert match, text
        jsonschema.validate(json.loads(match[1]), schema)
        texts.add(match[1])
    assert len(texts) > 1


def test_arguments_hold_no_invented_members() -> None:
    def call(arguments: str) -> str:
        return f'<tool_call>\n{{"name": "find", "arguments": {arguments}}}\n</tool_call>'

    parameters = {
        "type": "object",
        "properties": {"q": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["q"],
    }
    some, every, invented = call('{"q": "a"}'), call('{"q": "a", "n": 1}'), call('{"q": "a", "n": 1, "x": 1}')

    def verdicts(given: dict[str, Any], **options: Any) -> list[bool]:
        tool = {"name": "find", "parameters": parameters, **given}
        grammar = guided.tool_calls([tool], choice=ToolChoice.REQUIRED, special_tokens=(), **options)
        found = []
        for made in (grammar, pickle.loads(pickle.dumps(grammar))):
            constraint = guided.compile(made, VOCABULARY)
            found.append([takes(constraint, text) for text in (some, every, invented)])
        assert found[0] == found[1]
        return found[0]

    def takes(constraint: guided.Constraint, text: str) -> bool:
        return constraint.is_accepting(constraint.advance_bytes(constraint.start, text.encode()))

    assert verdicts({}) == [True, True, False]
    assert verdicts({"strict": True}) == verdicts({}, strict=True) == [False, True, False]
    assert verdicts({"strict": False}) == verdicts({}, strict=False) == [True, True, True]
    assert verdicts({"parameters": {**parameters, "additionalProperties": True}}) == [True, True, True]
    with pytest.raises(GrammarError, match="strict is true or false"):
        verdicts({"strict": "yes"})
    escaped = call('{"\\u0071": "a"}')
    for spelling, taken in (("plain", False), ("any", True)):
        tool = {"name": "find", "parameters": parameters}
        grammar = guided.tool_calls([tool], choice=ToolChoice.REQUIRED, special_tokens=(), spelling=spelling)
        assert takes(guided.compile(grammar, VOCABULARY), escaped) is taken
