"""`Monitor`: what reads a text byte by byte, and says what may come at the places where it wants to be asked.

After Agrawal et al., 2023 (monitor-guided decoding).  A monitor reads the text byte by byte (*update*), says where it
wants to be asked (*trigger*), analyses the text before the cursor and answers with a live language of continuations
(*analyse*, `Verdict`) or that it knows nothing.  `guided.monitor.monitor` makes a constraint of one.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from guided.monitor.names import Verdict
from guided.vocab.vocabulary import Vocabulary

__all__ = ["Monitor"]

Kept = TypeVar("Kept")


class Monitor(ABC):
    """What watches a text.  Reading is a pure function of bytes; analyses are remembered by text, so they are too.

    One monitor may watch any number of texts, from several threads.
    """

    trigger_bytes: bytes
    """A trigger comes only right behind one of these."""

    @property
    @abstractmethod
    def lexical_start(self) -> Hashable:
        """The lexical state of the empty text."""

    @abstractmethod
    def read(self, lexical: Any, byte: int) -> Hashable:
        """The lexical state (code, string, comment, ...) after one byte; there are few different ones."""

    @abstractmethod
    def triggers(self, lexical: Any) -> bool:
        """Is this a place where the analysis should be asked?"""

    @abstractmethod
    def analyse(self, text: bytes, context: Any) -> Verdict | None:
        """What may come behind ``text``, None when nothing is known.  Always the same for the same text."""

    context_start: Hashable = None
    """What `follow` knows of the empty text."""

    def follow(self, context: Any, lexical: Any, byte: int, position: int) -> Any:
        """What else is remembered of the text, after one byte at an offset; ``lexical`` is the state before it."""
        return context

    def screen(self, text: bytes, context: Any) -> Callable[[bytes], bool]:
        """A cheap test: False for bytes behind which `analyse` would know nothing if they followed ``text``."""
        return lambda prefix: True

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about the analyses so far: time-outs, crashes."""
        return ()

    def kept(self, vocabulary: Vocabulary, make: Callable[[Vocabulary, Any], Kept]) -> Kept:
        """What ``make`` finds once for a vocabulary, kept with the monitor."""
        known: weakref.WeakKeyDictionary[Vocabulary, Kept] | None = self.__dict__.get("_kept")
        if known is None:
            known = self.__dict__["_kept"] = weakref.WeakKeyDictionary()
        found = known.get(vocabulary)
        if found is None:
            found = known[vocabulary] = make(vocabulary, self)
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_kept"}
