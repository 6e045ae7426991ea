"""`install`: the classes of the package xgrammar that engines look up by name, replaced by ours."""

from __future__ import annotations

import importlib
from functools import wraps
from typing import Any

from guided.serving.xgrammar.compiler import TOKENIZER, CompiledGrammar, Grammar, GrammarCompiler
from guided.serving.xgrammar.matcher import GrammarMatcher

__all__ = ["install"]

_REPLACED = {
    "CompiledGrammar": CompiledGrammar,
    "Grammar": Grammar,
    "GrammarCompiler": GrammarCompiler,
    "GrammarMatcher": GrammarMatcher,
}


def install() -> None:
    """Replace ``xgrammar.Grammar``, ``GrammarCompiler``, ``CompiledGrammar`` and ``GrammarMatcher``.

    To be called in every process of the engine, before it makes a compiler; does nothing the second time.  What was
    imported from xgrammar by name before stays XGrammar's own.
    """
    xgrammar: Any = importlib.import_module("xgrammar")
    if xgrammar.GrammarMatcher is GrammarMatcher:
        return
    made = xgrammar.TokenizerInfo.from_huggingface

    @wraps(made)
    def from_huggingface(tokenizer: Any, **options: Any) -> Any:
        info = made(tokenizer, **options)
        setattr(info, TOKENIZER, tokenizer)
        return info

    xgrammar.TokenizerInfo.from_huggingface = staticmethod(from_huggingface)
    for name, ours in _REPLACED.items():
        setattr(xgrammar, name, ours)
