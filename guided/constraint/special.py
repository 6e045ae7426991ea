"""The special tokens that a grammar names, looked up in a vocabulary before anything is compiled."""

from __future__ import annotations

from guided.errors import VocabularyError
from guided.grammar.ir import Grammar
from guided.special_bytes import special_bytes
from guided.vocab.special import near_names
from guided.vocab.vocabulary import Vocabulary


def named_special_tokens(grammar: Grammar, vocabulary: Vocabulary) -> list[bytes]:
    """What automata read for each special token of the grammar; raises `VocabularyError` where one cannot be had.

    A token that the vocabulary does not have is named with those that look like it.  One that ends the text there is
    refused: a decoder stops at it, so nothing could follow, and that the text may end the grammar says by ending.
    """
    known = vocabulary.special_tokens
    for name in grammar.special_tokens:
        if name not in known:
            near = ", ".join(map(repr, near_names(name, known)))
            has = f"Its names most like this one are {near}." if near else _names(vocabulary)
            raise VocabularyError(f"this vocabulary has no special token {name!r}", remedy=has)
        if known[name] in vocabulary.eos_ids:
            raise VocabularyError(
                f"the special token {name!r} ends the text in this vocabulary, so a grammar cannot name it",
                remedy="Leave it out where the grammar ends, since end-of-text tokens are allowed there; or pass "
                "eos_ids=[...] without it when the vocabulary is made.",
            )
    if grammar.holds_sentinel and any(token not in vocabulary.eos_ids for token in known.values()):
        raise VocabularyError(
            "the grammar's texts hold the byte 0xFF, which is kept for special tokens in this vocabulary",
            remedy="Use Vocabulary.from_tokens(vocabulary.tokens, eos_ids=vocabulary.eos_ids), which names none.",
        )
    return [special_bytes(name) for name in grammar.special_tokens]


def _names(vocabulary: Vocabulary) -> str:
    if not vocabulary.special_tokens:
        return "It has none: pass special_tokens={name: id} to Vocabulary.from_tokens, or write the name as text."
    names = list(vocabulary.special_tokens)
    shown = ", ".join(map(repr, names[:8]))
    return f"It has {shown}{', ...' if len(names) > 8 else ''}."
