"""`Vocabularies`: the vocabulary of an engine's tokenizer, for each set of ids that end a text.

Servers let a request name more ids that end it (``stop_token_ids``).  An id that ends a text never matches text, so a
vocabulary with other ends is another vocabulary.  Most requests have the model's own; of others a few are kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable

from guided.vocab.vocabulary import Vocabulary

__all__ = ["Vocabularies"]

KEPT = 8
"""Vocabularies kept: one of 128,000 ids, with its tries and what masks are made of, is some 50 MB."""


class Vocabularies:
    """The vocabularies of one tokenizer, made when first asked for.  Safe to share between threads.

    ``size`` is the width of the model's logits, where it exceeds the tokenizer's.

    >>> import guided.hf
    >>> from guided.serving import Vocabularies
    >>> vocabularies = Vocabularies(guided.hf.load().tokenizer, size=2100)  # a matrix that is padded
    >>> vocabularies.ending_with().size, vocabularies.ending_with([5]).eos_ids
    (2100, (5,))
    """

    def __init__(self, tokenizer: object, size: int | None = None) -> None:
        self.tokenizer = tokenizer
        self.size = size
        self._made: OrderedDict[tuple[int, ...] | None, Vocabulary] = OrderedDict()
        self._lock = threading.Lock()

    def ending_with(self, ids: Iterable[int] | None = None) -> Vocabulary:
        """The vocabulary in which these ids end a text; None: the tokenizer's own.

        Raises `guided.VocabularyError` for ids that the model does not have.
        """
        ends = None if ids is None else tuple(sorted(set(ids)))
        with self._lock:
            found = self._made.pop(ends, None)
            if found is None:
                found = Vocabulary.from_tokenizer(self.tokenizer, size=self.size, eos_ids=ends)
            self._made[ends] = found
            while len(self._made) > KEPT:
                self._made.popitem(last=False)
            return found
