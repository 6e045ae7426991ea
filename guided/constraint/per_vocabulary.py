"""What is made once for a vocabulary, and kept as long as it."""

from __future__ import annotations

import threading
import weakref
from typing import Any, ClassVar, TypeVar

from guided.vocab.vocabulary import Vocabulary

__all__ = ["PerVocabulary"]

Made = TypeVar("Made", bound="PerVocabulary")


class PerVocabulary:
    """One object of each subclass a vocabulary; it must not hold on to the vocabulary itself."""

    _all: ClassVar[weakref.WeakKeyDictionary[Vocabulary, Any]]
    # One for all, and open to its own thread: some are made from others.
    _making: ClassVar[threading.RLock] = threading.RLock()

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Subclasses look at the vocabulary here."""

    def __init_subclass__(cls) -> None:
        cls._all = weakref.WeakKeyDictionary()

    @classmethod
    def of(cls: type[Made], vocabulary: Vocabulary) -> Made:
        """The one object of a vocabulary."""
        found: Made | None = cls._all.get(vocabulary)
        if found is None:
            with cls._making:
                found = cls._all.get(vocabulary)
                if found is None:
                    found = cls._all[vocabulary] = cls(vocabulary)
        return found
