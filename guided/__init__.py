"""Constrained and guided decoding of language models.

Importing this package loads neither torch nor transformers nor numba: every public name is fetched when first used.
So are its parts: `guided.infer` (samplers), `guided.steer`, `guided.monitor`, `guided.lm` (the interface to models),
`guided.search`, `guided.draft`, `guided.hf`, `guided.testing`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from guided.errors import (
    GrammarError,
    GuidedError,
    LimitError,
    TextError,
    UnsatisfiableError,
    UnsupportedError,
    VocabularyError,
    extra_missing,
)

if TYPE_CHECKING:
    from guided.constraint.batch import fill_masks
    from guided.constraint.compile import compile
    from guided.constraint.constraint import Constraint
    from guided.constraint.limits import Limits
    from guided.constraint.spelling.canonical import canonical
    from guided.constraint.spelling.healing import heal
    from guided.grammar.choice import choice
    from guided.grammar.combined import either, free_text, optional, repeat, sequence
    from guided.grammar.ebnf import ebnf
    from guided.grammar.gbnf import gbnf
    from guided.grammar.ir import Grammar
    from guided.grammar.json_schema import json_schema
    from guided.grammar.lark import lark
    from guided.grammar.regex import regex
    from guided.grammar.special import special_token
    from guided.grammar.sql import sql
    from guided.grammar.structural_tag import structural_tag
    from guided.grammar.tags import Tag, ToolChoice, ToolStyle, tags, think, tool_calls
    from guided.hf.asynchronous import agenerate, astream
    from guided.hf.choices import choice_probabilities
    from guided.hf.extraction import extract
    from guided.hf.generate import generate
    from guided.hf.masking.apply import allocate_masks, apply_masks
    from guided.reading.captures import captures
    from guided.reading.json_stream import FieldState, JsonStream
    from guided.reading.partial_json import partial_json
    from guided.steer.stack import Stack
    from guided.vocab.vocabulary import Vocabulary

__version__ = "0.1.0"

_HOMES = {
    "Constraint": "guided.constraint.constraint",
    "FieldState": "guided.reading.json_stream",
    "Grammar": "guided.grammar.ir",
    "JsonStream": "guided.reading.json_stream",
    "Limits": "guided.constraint.limits",
    "Stack": "guided.steer.stack",
    "Tag": "guided.grammar.tags",
    "ToolChoice": "guided.grammar.tags",
    "ToolStyle": "guided.grammar.tags",
    "Vocabulary": "guided.vocab.vocabulary",
    "agenerate": "guided.hf.asynchronous",
    "allocate_masks": "guided.hf.masking.apply",
    "apply_masks": "guided.hf.masking.apply",
    "astream": "guided.hf.asynchronous",
    "canonical": "guided.constraint.spelling.canonical",
    "captures": "guided.reading.captures",
    "choice": "guided.grammar.choice",
    "choice_probabilities": "guided.hf.choices",
    "compile": "guided.constraint.compile",
    "ebnf": "guided.grammar.ebnf",
    "either": "guided.grammar.combined",
    "extract": "guided.hf.extraction",
    "fill_masks": "guided.constraint.batch",
    "free_text": "guided.grammar.combined",
    "gbnf": "guided.grammar.gbnf",
    "generate": "guided.hf.generate",
    "heal": "guided.constraint.spelling.healing",
    "json_schema": "guided.grammar.json_schema",
    "lark": "guided.grammar.lark",
    "optional": "guided.grammar.combined",
    "partial_json": "guided.reading.partial_json",
    "regex": "guided.grammar.regex",
    "repeat": "guided.grammar.combined",
    "sequence": "guided.grammar.combined",
    "special_token": "guided.grammar.special",
    "sql": "guided.grammar.sql",
    "structural_tag": "guided.grammar.structural_tag",
    "tags": "guided.grammar.tags",
    "think": "guided.grammar.tags",
    "tool_calls": "guided.grammar.tags",
}

__all__ = [
    "Constraint",
    "FieldState",
    "Grammar",
    "GrammarError",
    "GuidedError",
    "JsonStream",
    "LimitError",
    "Limits",
    "Stack",
    "Tag",
    "TextError",
    "ToolChoice",
    "ToolStyle",
    "UnsatisfiableError",
    "UnsupportedError",
    "Vocabulary",
    "VocabularyError",
    "agenerate",
    "allocate_masks",
    "apply_masks",
    "astream",
    "canonical",
    "captures",
    "choice",
    "choice_probabilities",
    "compile",
    "ebnf",
    "either",
    "extract",
    "fill_masks",
    "free_text",
    "gbnf",
    "generate",
    "grammar",
    "heal",
    "json_schema",
    "lark",
    "optional",
    "partial_json",
    "regex",
    "repeat",
    "sequence",
    "special_token",
    "sql",
    "structural_tag",
    "tags",
    "think",
    "tool_calls",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    try:
        if home is None:
            return importlib.import_module(f"guided.{name}")
        value = getattr(importlib.import_module(home), name)
    except ModuleNotFoundError as error:
        if error.name == f"guided.{name}":
            raise AttributeError(f"module 'guided' has no attribute {name!r}") from None
        raise extra_missing(error) or error from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
