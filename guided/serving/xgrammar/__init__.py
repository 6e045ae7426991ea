"""XGrammar's classes over guided's automata, for engines that take XGrammar by its names: LMDeploy, TensorRT-LLM.

`install` puts them into the package xgrammar (0.2), whose masks, kernels and tokenizers stay.  Engines with a door for
others (vLLM, SGLang) have packages of their own.

* `matcher`: `GrammarMatcher`; `compiler`: `Grammar`, `GrammarCompiler`, `CompiledGrammar`.
"""

from guided.serving.xgrammar.compiler import CompiledGrammar, Grammar, GrammarCompiler, RefusedError
from guided.serving.xgrammar.installation import install
from guided.serving.xgrammar.matcher import GrammarMatcher

__all__ = ["CompiledGrammar", "Grammar", "GrammarCompiler", "GrammarMatcher", "RefusedError", "install"]
