"""`forced_tokens`: the tokens that must come next in the tokenizer's own spelling, for decoding without the model."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from guided.constraint.protocol import Constrains
from guided.constraint.spelling.canonical import CanonicalConstraint
from guided.errors import LimitError, UnsupportedError
from guided.vocab.canonical import CanonicalTokenizer

__all__ = ["forced_tokens"]

_Known = weakref.WeakKeyDictionary[Constrains, dict[str, CanonicalConstraint]]
_KNOWN: _Known = weakref.WeakKeyDictionary()


def forced_tokens(constraint: Constrains, state: int, tokenizer: Any, before: Sequence[int]) -> list[int]:
    """The tokens with which every text that may follow goes on, as ``tokenizer`` spells it; empty where they differ.

    ``before`` are all tokens up to here, the prompt's and the generated ones: a state does not know how its text was
    spelled, nor what the prompt ends with, and both decide what comes next.  Promised is: for every text that the
    constraint allows from ``state``, if the tokenizer's own tokens of the whole begin with ``before``, then they go on
    with the returned ones.  A byte may be forced and no token, since a longer token could still swallow it.

    With a tokenizer that is not exactly understood (see `guided.canonical`), special tokens in the grammar, or a search
    that reaches its limits, nothing is forced.  Costs 10 us where no
    byte is forced, else some 100 us a token until states are known, some ms where a stretch of forced text ends.
    """
    if isinstance(constraint, CanonicalConstraint):
        return constraint.forced_tokens(state)
    forced = constraint.forced(state)
    grammar = getattr(constraint, "grammar", None)
    if not forced or (grammar is not None and grammar.special_tokens):
        return []
    try:
        canonical = _canonical(constraint, tokenizer)
    except UnsupportedError:
        return []
    try:
        return canonical.forced_tokens(canonical.state_at(state, before), len(forced))
    except LimitError:
        return []


def _canonical(constraint: Constrains, tokenizer: Any) -> CanonicalConstraint:
    model = CanonicalTokenizer.of(tokenizer, constraint.vocabulary)
    known = _KNOWN.setdefault(constraint, {})
    key = constraint.vocabulary.digest
    found = known.get(key)
    if found is None or found.tokenizer is not model:
        # The copy must not keep the constraint alive that it is looked up by.
        found = known[key] = CanonicalConstraint(weakref.proxy(constraint), model)
    return found
