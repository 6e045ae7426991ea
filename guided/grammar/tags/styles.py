"""How model families write tool calls: for each style its delimiters, and which of them are special tokens.

The formats are those of the chat templates that are published with the models.  What a template would print for a call
and what a model generates are the same text, so a style serves every model that was trained on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

__all__ = ["CallFormat", "ToolStyle"]


class ToolStyle(Enum):
    """Who writes calls how; ``f`` is a function's name and ``{...}`` its arguments as a JSON object."""

    HERMES = "hermes"
    r"""Hermes 2 Pro and 3, Qwen 2.5 and 3: ``<tool_call>\n{"name": "f", "arguments": {...}}\n</tool_call>``."""
    LLAMA = "llama"
    """Llama 3.1 and later with user-defined functions, Functionary 3.1: ``<function=f>{...}</function>``."""
    LLAMA_JSON = "llama-json"
    """Llama 3.1 and later with JSON-based calls: ``{"name": "f", "parameters": {...}}``, without delimiters."""
    MISTRAL = "mistral"
    """Mistral with tokenizers up to version 7: ``[TOOL_CALLS] [{"name": "f", "arguments": {...}}, ...]``."""
    MISTRAL_ARGS = "mistral-args"
    """Mistral with tokenizers of version 11 and later: ``[TOOL_CALLS]f[ARGS]{...}``, once for each call."""
    DEEPSEEK = "deepseek"
    """DeepSeek V3 and R1: calls with a block of JSON each, in a section of special tokens."""
    DEEPSEEK_V31 = "deepseek-v3.1"
    """DeepSeek V3.1: the same section, name and arguments side by side."""
    FUNCTIONARY = "functionary"
    r"""Functionary 3.2, whose prompts end in ``>>>``: ``f\n{...}``, or ``all\n`` and text; then ``>>>`` and more."""


@dataclass(frozen=True)
class CallFormat:
    """One style: a call is ``before``, the name, ``between``, the arguments, ``after``.

    A section of calls is ``opening``, one of ``leads``, calls with ``separator`` between, and ``closing``.  With an
    empty ``opening`` every call stands alone, and where free text is left out, ``separator`` stands between calls.
    """

    before: str
    between: str
    after: str
    opening: str = ""
    leads: tuple[str, ...] = ("",)
    closing: str = ""
    separator: str = ""
    trigger: str | None = None
    """What begins a call in free text, where that is shorter than ``before``, the name and ``between``."""
    special_tokens: tuple[str, ...] = ()
    """The special tokens in these texts, as the family's tokenizers have them."""


_DEEPSEEK = (
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁calls▁end｜>",
)

FORMATS: Mapping[ToolStyle, CallFormat] = {
    ToolStyle.HERMES: CallFormat(
        '<tool_call>\n{"name": "', '", "arguments": ', "}\n</tool_call>",
        separator="\n", trigger="<tool_call>", special_tokens=("<tool_call>", "</tool_call>"),
    ),
    ToolStyle.LLAMA: CallFormat("<function=", ">", "</function>", trigger="<function="),
    ToolStyle.LLAMA_JSON: CallFormat('{"name": "', '", "parameters": ', "}", separator="; ", trigger='{"name": "'),
    ToolStyle.MISTRAL: CallFormat(
        '{"name": "', '", "arguments": ', "}",
        opening="[TOOL_CALLS]", leads=("[", " ["), closing="]", separator=", ", special_tokens=("[TOOL_CALLS]",),
    ),
    ToolStyle.MISTRAL_ARGS: CallFormat("[TOOL_CALLS]", "[ARGS]", "", special_tokens=("[TOOL_CALLS]", "[ARGS]")),
    ToolStyle.DEEPSEEK: CallFormat(
        f"{_DEEPSEEK[1]}function{_DEEPSEEK[2]}", "\n```json\n", f"\n```{_DEEPSEEK[3]}",
        opening=_DEEPSEEK[0], closing=_DEEPSEEK[4], separator="\n", special_tokens=_DEEPSEEK,
    ),
    ToolStyle.DEEPSEEK_V31: CallFormat(
        _DEEPSEEK[1], _DEEPSEEK[2], _DEEPSEEK[3],
        opening=_DEEPSEEK[0], closing=_DEEPSEEK[4], special_tokens=_DEEPSEEK,
    ),
    ToolStyle.FUNCTIONARY: CallFormat("", "\n", "", separator=">>>"),
}  # fmt: skip
