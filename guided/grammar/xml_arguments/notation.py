"""How model families write the arguments of a call as elements, one for each: the text around names and values.

The texts are those of the families' chat templates, as XGrammar 0.2.8 has them (``cpp/converter_ext``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

__all__ = ["NOTATIONS", "ArgumentStyle", "JsonType", "Notation"]


class ArgumentStyle(Enum):
    """Who writes an argument how; ``k`` is its name and ``v`` its value."""

    QWEN = "qwen_xml"
    """Qwen 3 Coder, Qwen 3.5, MiMo: ``<parameter=k>v</parameter>``."""
    MINIMAX = "minimax_xml"
    """MiniMax M2: ``<parameter name="k">v</parameter>``."""
    DEEPSEEK = "deepseek_xml"
    """DeepSeek V3.2, V4: ``<｜DSML｜parameter name="k" string="true">v</｜DSML｜parameter>``; "false" if JSON."""
    DEEPSEEK_V41 = "deepseek_v4_1_xml"
    """DeepSeek V4.1: the same with a space behind each ``｜DSML｜``."""
    GLM = "glm_xml"
    """GLM 4.5 and later: ``<arg_key>k</arg_key><arg_value>v</arg_value>``."""
    KIMI_K3 = "kimi_k3_xml"
    """Kimi K3: ``<|open|>argument key="k" type="string"<|sep|>v<|close|>argument<|sep|>``, with the JSON type of v."""


class JsonType(Enum):
    """The types of JSON values, whole numbers being numbers."""

    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    NULL = "null"
    OBJECT = "object"
    ARRAY = "array"


@dataclass(frozen=True)
class Notation:
    """One style: an argument is ``before``, its name, ``after``, the opening for its type, the value, ``closing``."""

    before: str
    after: str
    openings: Mapping[JsonType, str]
    closing: str
    apart: bool = False
    """May white space stand between what follows the name and the opening?"""
    padded: bool = True
    """May white space stand around a string, which is then no part of it?"""
    escaped: bool = False
    """Are ``&`` and ``"`` in names written as ``&amp;`` and ``&quot;``?"""

    def name(self, name: str) -> str:
        """A name as it is written."""
        return name.replace("&", "&amp;").replace('"', "&quot;") if self.escaped else name


def _all(opening: str) -> Mapping[JsonType, str]:
    return dict.fromkeys(JsonType, opening)


def _deepseek(gap: str) -> Notation:
    openings = {kind: f' string="{"true" if kind is JsonType.STRING else "false"}">' for kind in JsonType}
    element = f"｜DSML｜{gap}parameter"
    return Notation(f'<{element} name="', '"', openings, f"</{element}>", padded=False)


NOTATIONS: Mapping[ArgumentStyle, Notation] = {
    ArgumentStyle.QWEN: Notation("<parameter=", ">", _all(""), "</parameter>"),
    ArgumentStyle.MINIMAX: Notation('<parameter name="', '">', _all(""), "</parameter>"),
    ArgumentStyle.DEEPSEEK: _deepseek(""),
    ArgumentStyle.DEEPSEEK_V41: _deepseek(" "),
    ArgumentStyle.GLM: Notation("<arg_key>", "</arg_key>", _all("<arg_value>"), "</arg_value>", apart=True),
    ArgumentStyle.KIMI_K3: Notation(
        '<|open|>argument key="', '"', {kind: f' type="{kind.value}"<|sep|>' for kind in JsonType},
        "<|close|>argument<|sep|>", escaped=True,
    ),
}  # fmt: skip
