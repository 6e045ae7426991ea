"""How model families write tool calls: for each style its delimiters, and which of them are special tokens.

The formats are those of the chat templates that are published with the models; where arguments are elements, and those
of EXAONE and Kimi, they are as XGrammar 0.2.8 has them (``python/xgrammar/builtin_structural_tag.py``).  What a
template would print for a call and what a model generates are the same text, so a style serves every model that was
trained on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from guided.grammar.xml_arguments.notation import ArgumentStyle

__all__ = ["CallFormat", "ToolStyle"]


class ToolStyle(Enum):
    """Who writes calls how; ``f`` is a function's name and ``{...}`` its arguments as a JSON object.

    >>> import guided
    >>> def weather(city: str) -> str: ...
    >>> every_byte = guided.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [None], eos_ids=[256])
    >>> constraint = guided.compile(guided.tool_calls([weather], style=ToolStyle.LLAMA), every_byte)
    >>> constraint.forced(constraint.advance_bytes(constraint.start, b"<function=w"))[:8]
    b'eather>'
    """

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
    DEEPSEEK_V32 = "deepseek-v3.2"
    """DeepSeek V3.2: ``<｜DSML｜invoke name="f">`` and arguments as elements, in ``<｜DSML｜function_calls>``."""
    DEEPSEEK_V4 = "deepseek-v4"
    """DeepSeek V4: the same in ``<｜DSML｜tool_calls>``."""
    DEEPSEEK_V41 = "deepseek-v4.1"
    """DeepSeek V4.1: the same in ``<｜DSML｜ calls>``, with a space behind each ``｜DSML｜``."""
    EXAONE = "exaone"
    """EXAONE 4: ``<tool_call>{"name": "f", "arguments": {...}}</tool_call>``."""
    GLM = "glm"
    """GLM 4.5 and later: ``<tool_call>f`` and arguments as elements, ``</tool_call>``."""
    KIMI = "kimi"
    """Kimi K2: ``<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{...}<|tool_call_end|>``, in a section."""
    MIMO = "mimo"
    """MiMo V2: ``<tool_call><function=f>`` and arguments as elements, ``</function></tool_call>``."""
    MINIMAX = "minimax"
    """MiniMax M2: ``<invoke name="f">`` and arguments as elements, in ``<minimax:tool_call>``."""
    QWEN_CODER = "qwen-coder"
    r"""Qwen 3 Coder, Qwen 3.5: ``<tool_call>\n<function=f>\n``, arguments as elements, and both closed again."""
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
    numbered: str | None = None
    """What follows the number of a call, where one stands behind ``between``."""
    arguments: ArgumentStyle | None = None
    """How arguments are written as elements, where they are not JSON."""
    before_section: str = ""
    """What stands before ``opening`` where there is no text before it."""
    special_tokens: tuple[str, ...] = ()
    """The special tokens in these texts, as the family's tokenizers have them."""


_DEEPSEEK = (
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁calls▁end｜>",
)


def _dsml(calls: str, invoke: str, arguments: ArgumentStyle) -> CallFormat:
    mark = "｜DSML｜"
    return CallFormat(
        f'<{mark}{invoke} name="', '">\n', f"</{mark}{invoke}>\n",
        opening=f"<{mark}{calls}>\n", closing=f"</{mark}{calls}>", before_section="\n\n",
        arguments=arguments, special_tokens=(mark,),
    )  # fmt: skip


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
    ToolStyle.DEEPSEEK_V32: _dsml("function_calls", "invoke", ArgumentStyle.DEEPSEEK),
    ToolStyle.DEEPSEEK_V4: _dsml("tool_calls", "invoke", ArgumentStyle.DEEPSEEK),
    ToolStyle.DEEPSEEK_V41: _dsml(" calls", " invoke", ArgumentStyle.DEEPSEEK_V41),
    ToolStyle.EXAONE: CallFormat(
        '<tool_call>{"name": "', '", "arguments": ', "}</tool_call>",
        separator="\n", trigger="<tool_call>", special_tokens=("<tool_call>", "</tool_call>"),
    ),
    ToolStyle.GLM: CallFormat(
        "<tool_call>", "", "</tool_call>", trigger="<tool_call>", arguments=ArgumentStyle.GLM,
        special_tokens=(
            "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>",
        ),
    ),
    ToolStyle.KIMI: CallFormat(
        "<|tool_call_begin|>functions.", ":", "<|tool_call_end|>", numbered="<|tool_call_argument_begin|>",
        opening="<|tool_calls_section_begin|>", closing="<|tool_calls_section_end|>",
        special_tokens=(
            "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>", "<|tool_call_end|>",
            "<|tool_call_argument_begin|>",
        ),
    ),
    ToolStyle.MIMO: CallFormat(
        "<tool_call><function=", ">", "</function></tool_call>", trigger="<tool_call>", arguments=ArgumentStyle.QWEN,
        special_tokens=("<tool_call>", "</tool_call>"),
    ),
    ToolStyle.MINIMAX: CallFormat(
        '<invoke name="', '">\n', "</invoke>\n", opening="<minimax:tool_call>\n", closing="</minimax:tool_call>",
        arguments=ArgumentStyle.MINIMAX, special_tokens=("<minimax:tool_call>", "</minimax:tool_call>"),
    ),
    ToolStyle.QWEN_CODER: CallFormat(
        "<tool_call>\n<function=", ">\n", "\n</function>\n</tool_call>", separator="\n",
        trigger="<tool_call>\n<function=", arguments=ArgumentStyle.QWEN, special_tokens=("<tool_call>", "</tool_call>"),
    ),
    ToolStyle.FUNCTIONARY: CallFormat("", "\n", "", separator=">>>"),
}  # fmt: skip
