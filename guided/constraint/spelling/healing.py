"""`heal`: prompts that end inside a token, whose end is taken back and put before the constraint.

A tokenizer reads ``http:`` and ``http://`` differently, so a model that has seen ``:`` as the prompt's last token
hardly ever goes on with ``//``.  The end of the prompt whose tokens the generated text could change is therefore
generated again: by a constraint that first demands exactly that text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from guided.constraint.compile import compile
from guided.constraint.constraint import Constraint
from guided.errors import UnsupportedError
from guided.grammar.embed import Assembly
from guided.grammar.ir import Grammar, Terminal
from guided.grammar.ir import Sequence as Parts
from guided.grammar.regular.expr import literal
from guided.vocab.canonical import CanonicalTokenizer
from guided.vocab.vocabulary import Vocabulary

__all__ = ["Healed", "heal", "prefixed"]


@dataclass(frozen=True)
class Healed:
    """A prompt without its end, and a constraint that begins with it."""

    prompt_ids: tuple[int, ...]
    """What is left of the prompt."""
    constraint: Constraint
    """First ``removed``, then the texts of the constraint that was given; that one itself when nothing was removed."""
    removed: bytes
    """The text that was taken back: generated texts begin with it."""


def heal(prompt_ids: Sequence[int], tokenizer: Any, constraint: Constraint) -> Healed:
    """Take back the end of a prompt whose tokens depend on what is generated; the constraint then begins with it.

    With a tokenizer that `guided.canonical` knows, the prompt is taken back to the last place where the tokenizer cuts
    whatever follows.  Nothing is taken back when it cuts before every possible continuation.  With any other, the
    prompt is taken back to the first of its last tokens from which some token of the vocabulary would read on beyond
    it.  The first token, and ids without text with all before them, always stay.

    Raises `UnsupportedError` where no text can be put before the constraint: one with a lexer (Lark), SQL.

    >>> import guided
    >>> from transformers import AutoTokenizer
    >>> tokenizer = AutoTokenizer.from_pretrained(guided.nano.MODEL_PATH)
    >>> constraint = guided.compile(guided.choice(["duct"]), tokenizer)
    >>> healed = heal(tokenizer.encode("The pro"), tokenizer, constraint)
    >>> healed.removed.endswith(b"pro")
    True
    """
    vocabulary = constraint.vocabulary
    ids = [int(token) for token in prompt_ids]
    first = 1 + max((i for i, token in enumerate(ids) if not _text(vocabulary, token)), default=0)
    try:
        keep = _keep_known(CanonicalTokenizer.of(tokenizer, vocabulary), ids, first, constraint)
    except UnsupportedError:
        keep = _keep_any(vocabulary, ids, first)
    removed = b"".join(_text(vocabulary, token) for token in ids[keep:])
    if not removed:
        return Healed(tuple(ids), constraint, b"")
    grammar = prefixed(constraint.grammar, removed)
    return Healed(tuple(ids[:keep]), compile(grammar, vocabulary, limits=constraint.limits), removed)


def prefixed(grammar: Grammar, prefix: bytes) -> Grammar:
    """The texts of ``grammar``, each with ``prefix`` before it."""
    parts = Assembly()
    begin = parts.rule("prefix", Terminal(literal(prefix)))
    start = parts.rule("prefixed", Parts((begin, parts.embed(grammar, where="the grammar after the prompt"))))
    return parts.finish(start, source=prefix, rebuild=(prefixed, (grammar, prefix), {}))


def _text(vocabulary: Vocabulary, token: int) -> bytes:
    return (vocabulary.token_bytes(token) or b"") if 0 <= token < vocabulary.size else b""


def _keep_known(tokenizer: CanonicalTokenizer, ids: list[int], first: int, constraint: Constraint) -> int:
    """Number of tokens before the last cut that no continuation can move; all, when there is always a cut now."""
    vocabulary = tokenizer.vocabulary
    with tokenizer.lock:
        ends = tokenizer.splitter.markings(b"".join(_text(vocabulary, token) for token in ids[first - 1 :]))
        following = _first_bytes(constraint)
        if following[-1:] < [128] and all(
            tokenizer.splitter.is_certain_cut(state, byte) for state in ends for byte in following
        ):
            return len(ids)
    certain = set.intersection(*(set(cuts) for cuts in ends.values())) if ends else set()
    at = 0
    keep = first
    for index, token in enumerate(ids[first - 1 :], start=first - 1):
        if at in certain and index >= first:
            keep = index
        at += len(_text(vocabulary, token))
    return keep


def _first_bytes(constraint: Constraint) -> list[int]:
    """Bytes with which texts may begin, in order."""
    start = constraint.start
    if hasattr(constraint, "possible_bytes"):
        return [int(byte) for byte in np.flatnonzero(constraint.possible_bytes(start))]
    return [byte for byte in range(256) if constraint.advance_bytes(start, bytes([byte]))]


def _keep_any(vocabulary: Vocabulary, ids: list[int], first: int) -> int:
    """Number of tokens before the longest end of the prompt that begins some longer token."""
    trie = vocabulary.trie
    keep = len(ids)
    end = b""
    for index in range(len(ids) - 1, first - 1, -1):
        end = _text(vocabulary, ids[index]) + end
        if len(end) >= vocabulary.longest:
            break
        low, high = 1, trie.n_nodes
        for byte in end:
            while low < high and trie.byte[low] < byte:
                low = int(trie.end[low])
            if low >= high or trie.byte[low] != byte:
                break
            low, high = low + 1, int(trie.end[low])
        else:
            if low < high:
                keep = index
    return keep
