"""`guided.tool_calls`: functions that a model may call, as tags in the notation of its family.

Arguments are JSON under the function's schema, or elements of a family's own; all else of a call is fixed text, as chat
templates print it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, NamedTuple

from guided.errors import GrammarError, GuidedError
from guided.grammar.choice import choice as choice_of
from guided.grammar.embed import Assembly
from guided.grammar.ir import Body, Choice, Grammar, Reference, Terminal
from guided.grammar.ir import Sequence as Parts
from guided.grammar.json_schema import closed_json_schema, json_schema
from guided.grammar.json_schema.reading.source import read
from guided.grammar.regex import regex
from guided.grammar.regular.expr import literal
from guided.grammar.special import SpecialNames, special_token
from guided.grammar.tags.delimiters import Piece
from guided.grammar.tags.free_text import text_up_to, text_without
from guided.grammar.tags.structural import Tag, tags
from guided.grammar.tags.styles import FORMATS, CallFormat, ToolStyle

__all__ = ["ToolChoice", "tool_calls"]

_NAME = re.compile(r"[\w.:/-]+")
"""Names that no style's delimiters could be confused with."""


class ToolChoice(Enum):
    """What the model is free to do.

    >>> import guided
    >>> def weather(city: str) -> str: ...
    >>> every_byte = guided.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [None], eos_ids=[256])
    >>> grammar = guided.tool_calls([weather], style=guided.ToolStyle.LLAMA, choice=ToolChoice.REQUIRED)
    >>> constraint = guided.compile(grammar, every_byte)
    >>> constraint.advance_bytes(constraint.start, b"It rains.")
    0
    """

    AUTO = "auto"
    """Text, calls, or both."""
    REQUIRED = "required"
    """Calls and nothing else."""
    NONE = "none"
    """Text without a call."""


def tool_calls(
    tools: Sequence[Mapping[str, Any] | type | Callable[..., Any]],
    *,
    style: ToolStyle = ToolStyle.HERMES,
    choice: ToolChoice = ToolChoice.AUTO,
    function: str | None = None,
    parallel: bool = True,
    special_tokens: Iterable[str] | None = None,
    order: str = "schema",
    spelling: str = "plain",
    strict: bool | None = None,
    whitespace: str | None = None,
) -> Grammar:
    """Text in which any of ``tools`` may be called, in the ``style`` of a model family.

    A tool is a specification as in OpenAI's ``tools=[...]`` (``{"type": "function", "function": {...}}`` or what is
    inside), or a Python function, or a class (Pydantic model, dataclass) whose name is the function's.  ``choice`` says
    whether there must, may or must not be a call; ``function`` asks for a call of that one.  ``parallel=False`` ends
    the text after the first call.

    ``special_tokens`` names the delimiters that are special tokens of the model's tokenizer.  None is what the family's
    own tokenizers have; ``special_tokens=vocabulary.special_tokens`` is right for every tokenizer, and ``()`` makes all
    of them text.  ``order``, ``spelling`` and ``whitespace`` are those of `guided.json_schema`, for the arguments.
    ``strict`` is too, but None is what a specification says (``"strict": true`` or false), and where it says nothing,
    no members but those that it declares, unless its schema admits others.

    Raises `GrammarError` for what is no tool, and what `guided.json_schema` raises, with the tool's name.

    >>> def weather(city: str, days: int = 1) -> str: ...
    >>> tool_calls([weather]).special_tokens
    ('</tool_call>', '<tool_call>')
    """
    specifications = [_specification(tool, number) for number, tool in enumerate(tools)]
    style, choice = ToolStyle(style), ToolChoice(choice)
    named = None if special_tokens is None else tuple(special_tokens)
    names = [tool.name for tool in specifications]
    if not names:
        raise GrammarError("no tools", remedy="Pass at least one function or specification.")
    for name in names:
        if names.count(name) > 1:
            raise GrammarError(f"two tools are called {name!r}", remedy="Rename or leave out one of them.")
    if function is not None and function not in names:
        raise GrammarError(f"there is no tool {function!r}", remedy=f"The tools are {', '.join(map(repr, names))}.")
    chosen = [tool for tool in specifications if function in (None, tool.name)]
    call = FORMATS[style]
    special = [name for name in call.special_tokens if named is None or name in named]
    writing = {"order": order, "spelling": spelling, "whitespace": whitespace}
    calls = _Calls(call, special, {tool.name: _arguments(tool, strict, writing, call, special) for tool in chosen})
    required = function is not None or choice is ToolChoice.REQUIRED
    if choice is ToolChoice.NONE and function is not None:
        raise GrammarError("a function is asked for and none may be called", remedy="Leave out function or choice.")
    if style is ToolStyle.FUNCTIONARY:
        grammar = calls.segments(choice is not ToolChoice.NONE, required, parallel)
    elif choice is ToolChoice.NONE:
        grammar = calls.no_call()
    else:
        grammar = calls.with_text(required, parallel)
    options = {
        "style": style, "choice": choice, "function": function, "parallel": parallel, "special_tokens": named,
        "strict": strict, **writing,
    }  # fmt: skip
    plain = [
        {"name": tool.name, "parameters": json.loads(tool.schema), "strict": tool.strict} for tool in specifications
    ]
    return replace(grammar, rebuild=(tool_calls, (plain,), options))


class _Tool(NamedTuple):
    """A tool's name, the schema of its arguments as JSON text, and what its specification says of strictness."""

    name: str
    schema: str
    strict: bool | None


def _specification(tool: Any, number: int) -> _Tool:
    where = f"tool {number}"
    strict = None
    if isinstance(tool, Mapping):
        inner = tool.get("function", tool)
        if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
            raise GrammarError(
                "a tool without a name", where=where, remedy='Pass {"type": "function", "function": {"name": ...}}.'
            )
        name, strict = inner["name"], inner.get("strict")
        if strict not in (None, True, False):
            raise GrammarError(f"strict is true or false, not {strict!r}", where=where, remedy="Correct the tool.")
        given = [inner[key] for key in ("parameters", "input_schema", "inputSchema") if inner.get(key) is not None]
        schema: Any = given[0] if given else {"type": "object", "properties": {}, "additionalProperties": False}
    elif callable(tool):
        name = getattr(tool, "__name__", "")
        schema = tool
    else:
        raise GrammarError(
            f"{tool!r} is no tool", where=where, remedy="Pass a specification, a function, or a class of its arguments."
        )
    if not _NAME.fullmatch(name):
        raise GrammarError(
            f"{name!r} cannot be a function's name", where=where, remedy="Use letters, digits and '_', '-', '.', ':'."
        )
    try:
        return _Tool(name, json.dumps(read(schema)), strict)
    except GuidedError as error:
        raise type(error)(f"tool {name!r}: {error.what}", where=error.where, remedy=error.remedy) from error
    except TypeError as error:
        raise GrammarError(f"tool {name!r}: the schema is not plain JSON data: {error}", where=where) from None


def _arguments(
    tool: _Tool, strict: bool | None, writing: dict[str, Any], call: CallFormat, special: Sequence[str]
) -> Grammar:
    # Loaded late: elements are made of free text, whose package loads this file.
    from guided.grammar.xml_arguments import xml_arguments

    strict = tool.strict if strict is None else strict
    try:
        if call.arguments is not None:
            return xml_arguments(
                json.loads(tool.schema), call.arguments, special_tokens=special, strict=strict, **writing
            )
        if strict is None:
            return closed_json_schema(tool.schema, **writing)
        return json_schema(tool.schema, strict=strict, **writing)
    except GuidedError as error:
        raise type(error)(f"tool {tool.name!r}: {error.what}", where=error.where, remedy=error.remedy) from error


class _Calls:
    """The calls of some functions in one format."""

    def __init__(self, call: CallFormat, special: Sequence[str], arguments: Mapping[str, Grammar]) -> None:
        self.call = call
        self.arguments = arguments
        self._cut = SpecialNames(special).cut

    def _pieces(self, text: str) -> list[Piece]:
        """A delimiter's text and special tokens."""
        return [special_token(piece) if special else piece for piece, special in self._cut(text)]

    def _each(self) -> list[Tag]:
        call = self.call
        return [
            Tag(self._pieces(f"{call.before}{name}{call.between}"), self._content(arguments), self._pieces(call.after))
            for name, arguments in self.arguments.items()
        ]

    def _content(self, arguments: Grammar) -> Grammar:
        """The arguments, behind the number of the call where there is one."""
        if self.call.numbered is None:
            return arguments
        behind = [choice_of([piece]) if isinstance(piece, str) else piece for piece in self._pieces(self.call.numbered)]
        return _one_after_another((regex("[0-9]+"), *behind, arguments))

    def _triggers(self) -> list[str] | None:
        """What begins a call, where that is text and shorter than all that comes before the arguments."""
        trigger = self.call.trigger
        return None if trigger is None or not self._is_text(trigger) else [trigger]

    def _is_text(self, text: str) -> bool:
        """Is no special token in it?"""
        return all(isinstance(piece, str) for piece in self._pieces(text))

    def _section(self, parallel: bool) -> Tag:
        calls = tags(
            self._each(), free_text=False, separator=self.call.separator, at_least_one=True, at_most_one=not parallel
        )
        content = calls if self.call.leads == ("",) else _one_after_another((choice_of(self.call.leads), calls))
        return Tag(self._pieces(self.call.opening), content, self._pieces(self.call.closing))

    def with_text(self, required: bool, parallel: bool) -> Grammar:
        """Calls, with text before and after them unless they are required."""
        if self.call.opening:
            section = self._section(parallel)
            if required:
                begin = self._pieces(self.call.before_section + self.call.opening)
                return tags([replace(section, begin=begin)], free_text=False, at_least_one=True, at_most_one=True)
            return tags([section], triggers=None if self._is_text(self.call.opening) else [], stop_after_first=True)
        if required:
            return tags(
                self._each(),
                free_text=False,
                separator=self.call.separator,
                at_least_one=True,
                at_most_one=not parallel,
            )
        return tags(self._each(), triggers=self._triggers(), stop_after_first=not parallel)

    def no_call(self) -> Grammar:
        """Text in which no call begins."""
        is_text = self._is_text(self.call.opening or self.call.before)
        trigger = self.call.trigger or self.call.opening or self.call.before
        text = text_without([trigger] if is_text else [])
        assembly = Assembly()
        start = assembly.rule("text", Terminal(text, "text"))
        return assembly.finish(start, source=("no call", trigger, not is_text), rebuild=(tool_calls, (), {}))

    def segments(self, may_call: bool, required: bool, parallel: bool) -> Grammar:
        """Functionary's: text under the name ``all``, and calls, in segments with a separator between."""
        separator = self.call.separator
        assembly = Assembly()
        calls = [
            Parts((_text(f"{name}{self.call.between}"), assembly.embed(arguments)))
            for name, arguments in self.arguments.items()
        ]
        up_to = Terminal(text_up_to(separator, [separator]), f"text up to {separator!r}")
        last = Terminal(text_without([separator]), "text")

        def segment(again: Reference) -> Body:
            options: list[Body] = []
            if not required:
                options.append(Parts((_text("all\n"), Choice((last, Parts((up_to, again))) if may_call else (last,)))))
            if may_call:
                after = Choice((Parts(()), Parts((_text(separator), again)))) if parallel else Parts(())
                options += [Parts((call, after)) for call in calls]
            return Choice(tuple(options))

        start = assembly.recursive("segments", segment)
        source = ("segments", list(self.arguments), may_call, required, parallel)
        return assembly.finish(start, source=source, rebuild=(tool_calls, (), {}))


def _text(text: str) -> Terminal:
    return Terminal(literal(text.encode()), repr(text))


def _one_after_another(parts: tuple[Grammar, ...]) -> Grammar:
    assembly = Assembly()
    start = assembly.rule("sequence", Parts(tuple(map(assembly.embed, parts))))
    return assembly.finish(start, source=len(parts), rebuild=(_one_after_another, (parts,), {}))
