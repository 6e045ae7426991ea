"""What users pass for a grammar and a tokenizer, as compiled constraints over one vocabulary."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence

from guided.constraint.compile import compile as compile_grammar
from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, VocabularyError
from guided.grammar.ir import Grammar
from guided.vocab import Vocabulary

__all__ = ["constraints_for", "named_special_ids", "vocabulary_for"]

# Reading a tokenizer of 128,000 ids takes 50 ms from the disk cache; `generate` is called in loops with the same one.
_VOCABULARIES: weakref.WeakKeyDictionary[object, dict[object, Vocabulary]] = weakref.WeakKeyDictionary()


def vocabulary_for(tokenizer: object, eos_ids: Iterable[int] | None = None) -> Vocabulary:
    """The vocabulary itself, or that of a tokenizer; remembered for as long as the tokenizer lives unchanged.

    ``eos_ids`` replaces the tokenizer's end-of-text id, and must be None for a `Vocabulary`.
    """
    if isinstance(tokenizer, Vocabulary):
        return tokenizer
    ends = None if eos_ids is None else tuple(sorted(set(eos_ids)))
    try:
        known = _VOCABULARIES.setdefault(tokenizer, {})
        key = (len(tokenizer), getattr(tokenizer, "eos_token_id", None), ends)  # type: ignore[arg-type]
    except TypeError:  # not hashable, not weakly referable or without a length: read it each time
        return Vocabulary.from_tokenizer(tokenizer, eos_ids=ends)
    if key not in known:
        known[key] = Vocabulary.from_tokenizer(tokenizer, eos_ids=ends)
    return known[key]


def constraints_for(
    grammar: Grammar | Constrains | Sequence[Grammar | Constrains],
    tokenizer: object | None,
    eos_ids: Iterable[int] | None = None,
) -> tuple[Constrains, ...]:
    """Compiled constraints, one for each grammar given, all over the same vocabulary.

    What is compiled already brings its vocabulary, and a tokenizer is then not looked at.  Raises `VocabularyError` for
    constraints compiled for different vocabularies, and `GuidedError` when a grammar has no tokenizer to be compiled
    for, or when there is no grammar at all.
    """
    given = list(grammar) if isinstance(grammar, Sequence) else [grammar]
    if not given:
        raise GuidedError("no grammar given", remedy="Pass one grammar, or one for each prompt.")
    for item in given:
        if not isinstance(item, (Grammar, Constrains)):
            raise TypeError(
                f"{type(item).__name__} is neither a grammar (guided.json_schema(...), guided.regex(...), ...)"
                " nor a compiled constraint"
            )
    compiled = [item for item in given if not isinstance(item, Grammar)]
    if isinstance(tokenizer, Vocabulary):
        vocabulary = tokenizer
    elif compiled:
        vocabulary = compiled[0].vocabulary
    elif tokenizer is not None:
        vocabulary = vocabulary_for(tokenizer, eos_ids)
    else:
        raise GuidedError("a grammar needs a tokenizer to be compiled for", remedy="Pass the model's tokenizer.")
    for item in compiled:
        if item.vocabulary != vocabulary:
            raise VocabularyError(
                f"a constraint was compiled for {item.vocabulary}, not for {vocabulary}",
                remedy="Compile all constraints with the vocabulary of the model's tokenizer.",
            )
    # The same grammar for several rows is one constraint, with one set of states and memos.
    unique = {id(item): compile_grammar(item, vocabulary) if isinstance(item, Grammar) else item for item in given}
    return tuple(unique[id(item)] for item in given)


def named_special_ids(constraint: Constrains) -> dict[int, str]:
    """The special tokens that a compiled grammar asks for, by id."""
    grammar = getattr(constraint, "grammar", None)
    names = grammar.special_tokens if isinstance(grammar, Grammar) else ()
    return {constraint.vocabulary.special_tokens[name]: name for name in names}
