"""Calls are read back from the texts that `guided.tool_calls` allows, however the text is cut into pieces."""

from __future__ import annotations

import pytest

import guided
from guided.errors import UnsupportedError
from guided.grammar.tags import ToolStyle
from guided.grammar.tags.styles import FORMATS
from guided.server.api.reading.calls import CallReader, check_style
from guided.server.api.reading.parts import CallArguments, CallBegins, Content
from guided.server.api.reading.special import SpecialTokens

TOOLS = [
    {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {}}}}},
    {"type": "function", "function": {"name": "g.h", "parameters": {"type": "object", "properties": {}}}},
]
ARGUMENTS = ['{"a": "}{\\"\\\\</tool_call>"}', "{}"]
STYLES = [style for style in ToolStyle if FORMATS[style].arguments is None and style is not ToolStyle.FUNCTIONARY]


def written(style: ToolStyle, names: list[str], arguments: list[str]) -> str:
    """Some calls as the style writes them."""
    call = FORMATS[style]
    between = [
        f"{call.before}{name}{call.between}{f'{i}{call.numbered}' if call.numbered else ''}{text}{call.after}"
        for i, (name, text) in enumerate(zip(names, arguments, strict=True))
    ]
    return call.opening + call.leads[0] + call.separator.join(between) + call.closing


def parts_of(reader: CallReader, text: str, size: int) -> tuple[str, list[tuple[str, str]]]:
    """The content, and each call with its arguments."""
    parts = [part for i in range(0, len(text), size) for part in reader.read(text[i : i + size])] + reader.close()
    content, calls = "", []
    for part in parts:
        if isinstance(part, Content):
            content += part.text
        elif isinstance(part, CallBegins):
            assert part.index == len(calls)
            calls.append((part.name, ""))
        elif isinstance(part, CallArguments):
            assert part.index == len(calls) - 1
            calls[-1] = (calls[-1][0], calls[-1][1] + part.text)
    return content, calls


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("named", [False, True])
def test_what_the_grammar_allows_is_read_back(style: ToolStyle, named: bool) -> None:
    """``named``: the delimiters that are special tokens of the family's tokenizers are special tokens here."""
    names = list(FORMATS[style].special_tokens) if named else []
    special = SpecialTokens({name: i for i, name in enumerate(names, 300)})
    # Delimiters alone are special: arguments may hold their names as text.
    text = special.read(written(style, ["f", "g.h"], ["@0", "@1"])).replace("@0", ARGUMENTS[0])
    text = text.replace("@1", ARGUMENTS[1])
    tokens: list[bytes | None] = [bytes([i]) for i in range(256)] + [None] * (44 + len(names) + 1)
    vocabulary = guided.Vocabulary.from_tokens(
        tokens, eos_ids=[len(tokens) - 1], special_tokens={name: i for i, name in enumerate(names, 300)}
    )
    grammar = guided.tool_calls(TOOLS, style=style, choice="required", special_tokens=names)
    constraint = guided.compile(grammar, vocabulary)
    state = constraint.start
    for character in text:
        if "\ud800" <= character <= "\udfff":
            state = constraint.advance(state, 300 + ord(character) - 0xD800)
        else:
            state = constraint.advance_bytes(state, character.encode())
        assert state, (text, character)
    assert constraint.is_accepting(state)
    for size in (1, 2, 3, 7, len(text)):
        reader = CallReader(style, special, only_calls=True)
        assert parts_of(reader, text, size) == ("", list(zip(["f", "g.h"], ARGUMENTS, strict=True)))


@pytest.mark.parametrize("style", STYLES)
def test_text_around_calls_is_content(style: ToolStyle) -> None:
    special = SpecialTokens({})
    call = written(style, ["f"], ['{"a": 1}'])
    # What stands behind calls is text but in a style in which one call alone is a text, whose next one follows `; `.
    for size in (1, 4, 1000):
        content, calls = parts_of(CallReader(style, special, only_calls=False), f"Some <b> text. {call}", size)
        assert (content, calls) == ("Some <b> text. ", [("f", '{"a": 1}')])


def test_text_that_only_begins_like_a_call_is_content() -> None:
    for text in ("a <tool", "<tool_cal", "<"):
        assert parts_of(CallReader(ToolStyle.HERMES, SpecialTokens({}), only_calls=False), text, 1) == (text, [])


def test_a_special_token_is_not_its_name() -> None:
    special = SpecialTokens({"<tool_call>": 5, "</tool_call>": 6})
    reader = CallReader(ToolStyle.HERMES, special, only_calls=False)
    content, calls = parts_of(reader, '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>', 1)
    assert content.startswith("<tool_call>") and calls == []


def test_arguments_that_were_cut_are_told_as_far_as_they_came() -> None:
    text = written(ToolStyle.HERMES, ["f"], ['{"a": "xy"}'])
    cut = text[: text.index("xy") + 1]
    _, calls = parts_of(CallReader(ToolStyle.HERMES, SpecialTokens({}), only_calls=True), cut, 1)
    assert calls == [("f", '{"a": "x')]


def test_notations_that_are_not_read_back_are_refused() -> None:
    for style in set(ToolStyle) - set(STYLES):
        with pytest.raises(UnsupportedError, match="read back"):
            check_style(style)
