"""What users pass for grammars and a tokenizer, as compiled constraints over one vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from guided.constraint.compile import compile as compile_grammar
from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, VocabularyError
from guided.grammar.given import grammar_of
from guided.grammar.ir import Grammar
from guided.vocab import Vocabulary, vocabulary_of

__all__ = ["constraints_for", "named_special_ids"]


def constraints_for(
    grammar: Any,
    tokenizer: object | None,
    eos_ids: Iterable[int] | None = None,
) -> tuple[Constrains, ...]:
    """Compiled constraints, one for each grammar given (or what stands for one), all over the same vocabulary.

    What is compiled already brings its vocabulary, and a tokenizer is then not looked at.  Raises `VocabularyError` for
    constraints compiled for different vocabularies, and `GuidedError` when a grammar has no tokenizer to be compiled
    for, or when there is no grammar at all.
    """
    given = list(grammar) if isinstance(grammar, Sequence) and not isinstance(grammar, str) else [grammar]
    if not given:
        raise GuidedError("no grammar given", remedy="Pass one grammar, or one for each prompt.")
    # The same for several rows is one constraint, with one set of states and memos.
    known = {id(item): item if isinstance(item, Constrains) else grammar_of(item) for item in given}
    compiled = [item for item in known.values() if not isinstance(item, Grammar)]
    if isinstance(tokenizer, Vocabulary):
        vocabulary = tokenizer
    elif compiled:
        vocabulary = compiled[0].vocabulary
    elif tokenizer is not None:
        vocabulary = vocabulary_of(tokenizer, eos_ids)
    else:
        raise GuidedError("a grammar needs a tokenizer to be compiled for", remedy="Pass the model's tokenizer.")
    for item in compiled:
        if item.vocabulary != vocabulary:
            raise VocabularyError(
                f"a constraint was compiled for {item.vocabulary}, not for {vocabulary}",
                remedy="Compile all constraints with the vocabulary of the model's tokenizer.",
            )
    unique = {
        key: compile_grammar(item, vocabulary) if isinstance(item, Grammar) else item for key, item in known.items()
    }
    return tuple(unique[id(item)] for item in given)


def named_special_ids(constraint: Constrains) -> dict[int, str]:
    """The special tokens that a compiled grammar asks for, by id."""
    grammar = getattr(constraint, "grammar", None)
    names = grammar.special_tokens if isinstance(grammar, Grammar) else ()
    return {constraint.vocabulary.special_tokens[name]: name for name in names}
