"""`Goal`: what a text must be, and how it is read off the tokens that an engine generated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from guided.constraint.compile import compile as compile_grammar
from guided.constraint.protocol import Constrains
from guided.errors import VocabularyError
from guided.grammar.given import grammar_of, reader_of
from guided.reading.text import Text
from guided.vocab.vocabulary import Vocabulary

__all__ = ["Goal", "Text"]


@dataclass(frozen=True)
class Goal:
    """A compiled grammar, and from a whole text to its value.

    >>> import guided
    >>> from guided.serving import Goal
    >>> digits = guided.Vocabulary.from_tokens([b"1", b"2", b"[", b"]", b",", None], eos_ids=[5])
    >>> goal = Goal.of(list[int], digits)
    >>> goal.text([2, 0, 1, 4, 1, 3, 5]).value  # "[12,2]" and the end
    [12, 2]
    """

    constraint: Constrains
    read: Callable[[str], Any] = str

    @classmethod
    def of(cls, grammar: Any, vocabulary: Vocabulary) -> Goal:
        """What users pass: a grammar, a constraint, a type, a function, or a JSON Schema as data.

        Raises `VocabularyError` for a constraint that was compiled for another vocabulary.
        """
        if not isinstance(grammar, Constrains):
            return cls(compile_grammar(grammar_of(grammar), vocabulary), reader_of(grammar))
        if grammar.vocabulary != vocabulary:
            raise VocabularyError(
                f"a constraint was compiled for {grammar.vocabulary}, not for {vocabulary}",
                remedy="Compile it with the vocabulary of this model.",
            )
        return cls(grammar, reader_of(grammar))

    def text(self, ids: Sequence[int]) -> Text:
        """The text of generated ids, up to an end-of-text id or where it was cut."""
        vocabulary = self.constraint.vocabulary
        names = {token: name for name, token in vocabulary.special_tokens.items()}
        state, tokens = self.constraint.start, list[int]()
        for token in ids:
            if token in vocabulary.eos_ids:
                break
            tokens.append(token)
            state = self.constraint.advance(state, token) if state else 0
        data = b"".join(vocabulary.token_bytes(token) or names.get(token, "").encode() for token in tokens)
        finished = state != 0 and self.constraint.is_accepting(state)
        # A text that was cut may end within a character.
        return Text(data.decode("utf-8", errors="replace"), tuple(tokens), finished, self.read)
