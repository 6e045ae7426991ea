"""`vocabulary_of`: what users pass as a vocabulary, read once for as long as a tokenizer lives.

Reading a tokenizer of 128,000 ids takes 50 ms from the disk cache; `guided.generate` is called in loops with one.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable

from guided.vocab.vocabulary import Vocabulary

__all__ = ["vocabulary_of"]

_KNOWN: weakref.WeakKeyDictionary[object, dict[object, Vocabulary]] = weakref.WeakKeyDictionary()


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
