"""What users pass for grammars and a tokenizer, as compiled constraints over one vocabulary; what may come first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.constraint.batch import fill_masks
from guided.constraint.compile import compile as compile_grammar
from guided.constraint.prefixes import PrefixStates
from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, LimitError, VocabularyError
from guided.grammar.given import grammar_of
from guided.grammar.ir import Grammar
from guided.vocab import Vocabulary, vocabulary_of
from guided.vocab.remembered import remembered_of

__all__ = ["constraints_for", "first_masks", "is_whole", "named_special_ids", "too_few"]


def constraints_for(
    grammar: Any,
    tokenizer: object | None,
    eos_ids: Iterable[int] | None = None,
) -> tuple[Constrains, ...]:
    """Compiled constraints, one for each grammar given (or what stands for one), all over the same vocabulary.

    What is compiled already brings its vocabulary.  Raises `VocabularyError` for constraints compiled for different
    vocabularies, or for one in which an id has another text than the tokenizer gives it, and `GuidedError` when a
    grammar has no tokenizer to be compiled for, or when there is no grammar at all.
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
        _check_texts(vocabulary, tokenizer)
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


def _check_texts(vocabulary: Vocabulary, tokenizer: object | None) -> None:
    """Raise `VocabularyError` where some id has another text than the tokenizer gives it: every mask would be wrong."""
    if tokenizer is None:
        return
    try:
        own = remembered_of(tokenizer)
    except GuidedError:
        return  # A tokenizer that cannot be read may have a vocabulary that somebody wrote for it.
    token = None if own is None or own is vocabulary else vocabulary.differs_at(own)
    if own is not None and token is not None:
        raise VocabularyError(
            f"the constraint was compiled for another tokenizer: id {token} is {_shown(vocabulary, token)} there,"
            f" and {_shown(own, token)} here",
            remedy="Compile it with this tokenizer: guided.compile(grammar, tokenizer).",
        )


def _shown(vocabulary: Vocabulary, token: int) -> str:
    text = vocabulary.token_bytes(token)
    return "no text" if text is None else repr(text)


def first_masks(constraints: Sequence[Constrains], max_new_tokens: int) -> NDArray[np.uint32]:
    """What may come first under a budget, ``uint32[n, words]``: all of one vocabulary.

    Raises `LimitError` for a constraint of which no text fits.
    """
    unique = {id(each): each for each in constraints}
    rows = np.zeros((len(unique), constraints[0].vocabulary.n_words), np.uint32)
    late: list[int] = []
    starts = [each.start for each in unique.values()]
    fill_masks(list(unique.values()), starts, rows, budgets=max_new_tokens, unfinishable=late)
    if late:
        late_keys = {list(unique)[number] for number in late}
        first = next(number for number, each in enumerate(constraints) if id(each) in late_keys)
        raise too_few(constraints, first, max_new_tokens)
    places = {key: place for place, key in enumerate(unique)}
    found: NDArray[np.uint32] = rows[[places[id(each)] for each in constraints]]
    return found


def too_few(constraints: Sequence[Constrains | None], number: int, max_new_tokens: int) -> LimitError:
    """The error for a constraint, by its number among those of a call, of which no text fits."""
    constraint = constraints[number]
    assert constraint is not None
    needed = constraint.shortest_completion(constraint.start) + 1
    which = f" of grammar {number}" if len(constraints) > 1 else ""
    return LimitError(
        f"max_new_tokens={max_new_tokens} is too few: the shortest text{which} takes {needed} tokens,"
        " the end-of-text token included",
        remedy=f"Pass max_new_tokens={needed} or more, to the processor and to generate.",
    )


def is_whole(constraint: Constrains, tokens: Sequence[int]) -> bool:
    """Are these generated ids, with or without an end-of-text id and padding, a whole text?"""
    state = PrefixStates(constraint).after(np.asarray(tokens, np.int64))
    return state != 0 and constraint.is_accepting(state)


def named_special_ids(constraint: Constrains) -> dict[int, str]:
    """The special tokens that a compiled grammar asks for, by id."""
    grammar = getattr(constraint, "grammar", None)
    names = grammar.special_tokens if isinstance(grammar, Grammar) else ()
    return {constraint.vocabulary.special_tokens[name]: name for name in names}
