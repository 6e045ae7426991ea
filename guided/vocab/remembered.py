"""`vocabulary_of`: what users pass as a vocabulary, read once for as long as a tokenizer lives.

Reading a tokenizer of 128,000 ids takes 50 ms from the disk cache; `guided.generate` is called in loops with one.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from guided.vocab.vocabulary import Vocabulary

__all__ = ["remembered_of", "vocabulary_of"]

_KNOWN: weakref.WeakKeyDictionary[object, dict[tuple[Any, ...], Vocabulary]] = weakref.WeakKeyDictionary()


def vocabulary_of(tokenizer: object, eos_ids: Iterable[int] | None = None) -> Vocabulary:
    """The vocabulary itself, that of a tokenizer, or of what has a ``vocabulary``, such as a loaded model.

    Remembered for as long as the tokenizer lives unchanged.  ``eos_ids`` replaces its end-of-text id.
    """
    if isinstance(tokenizer, Vocabulary):
        return tokenizer
    own = getattr(tokenizer, "vocabulary", None)
    if isinstance(own, Vocabulary):
        return own
    ends = None if eos_ids is None else tuple(sorted(set(eos_ids)))
    try:
        known = _KNOWN.setdefault(tokenizer, {})
        key = (len(tokenizer), getattr(tokenizer, "eos_token_id", None), ends)  # type: ignore[arg-type]
    except TypeError:  # not hashable, not weakly referable or without a length: read it each time
        return Vocabulary.from_tokenizer(tokenizer, eos_ids=ends)
    if key not in known:
        known[key] = Vocabulary.from_tokenizer(tokenizer, eos_ids=ends)
    return known[key]


def remembered_of(tokenizer: object) -> Vocabulary | None:
    """A vocabulary of a tokenizer, whatever ends its texts, read at most once; None for what cannot be remembered."""
    if isinstance(tokenizer, Vocabulary) or isinstance(getattr(tokenizer, "vocabulary", None), Vocabulary):
        return vocabulary_of(tokenizer)
    try:
        known, size = _KNOWN.get(tokenizer, {}), len(tokenizer)  # type: ignore[arg-type]
    except TypeError:
        return None
    return next((found for key, found in known.items() if key[0] == size), None) or vocabulary_of(tokenizer)
