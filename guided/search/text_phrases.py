"""`TextPhrase`: a phrase given as text, which counts however the text that has it is split into tokens.

What a text contains is read off its bytes.  Searches that place phrases need tokens to place: these are the tokenizer's
own, after nothing, a space, a line break and a quotation mark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from guided.errors import GuidedError, UnsupportedError
from guided.search.phrases import MET, PhraseAutomaton, PhraseConstraint
from guided.vocab.vocabulary import Vocabulary

__all__ = ["TextAutomaton", "TextPhrase", "spellings"]

CONTEXTS = ("", " ", "\n", '"')
"""What a phrase is tokenized after: tokenizers join a space to the word behind it, and treat quotes their own way."""


@dataclass(frozen=True)
class TextPhrase(PhraseConstraint):
    """Met when the bytes of one of ``texts`` occur in a text; ``options`` are the tokens that a search places.

    With ``whole_words`` they count where their first and last words are no parts of longer words: a letter, digit or
    underscore, or a byte above ASCII, neither comes before a text that begins with one nor after one that ends so.

    >>> import guided
    >>> from guided import search
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.5, 0.2, 0.3], eos_ids=[2])
    >>> language = guided.compile(guided.regex("[ab]{1,4}"), letters)
    >>> phrase = search.TextPhrase.written(letters, lambda text: [0 if each == "a" else 1 for each in text], "bb")
    >>> phrase.texts, phrase.options
    ((b'bb',), ((1, 1),))
    >>> "bb" in search.grid_beam_search(model, [0], language, [phrase], width=6, max_tokens=6)[0].text
    True
    """

    texts: tuple[bytes, ...]
    vocabulary: Vocabulary
    whole_words: bool = False

    @classmethod
    def written(
        cls, vocabulary: Vocabulary, encode: Callable[[str], Sequence[int]], *texts: str, whole_words: bool = False
    ) -> TextPhrase:
        """The constraint that one of these texts occurs; ``encode`` tokenizes without special tokens.

        Raises `GuidedError` for an empty text, or one that comes out of the tokenizer changed.
        """
        options = [option for text in texts for option in spellings(text, vocabulary, encode)]
        return cls(tuple(dict.fromkeys(options)), tuple(text.encode() for text in texts), vocabulary, whole_words)

    @cached_property
    def automaton(self) -> TextAutomaton:
        """The automaton, built once."""
        return TextAutomaton(self.options, self.texts, self.vocabulary, self.whole_words)

    def placed_together(self) -> PhraseConstraint:
        """The shortest spellings, which are of one length; `UnsupportedError` for whole words."""
        if self.whole_words:
            raise UnsupportedError(
                "grid beam search counts phrase tokens, and what comes after them decides whether they are words",
                remedy="Use dynamic_beam_search or neurologic_search.",
            )
        least = min(map(len, self.options))
        return PhraseConstraint(tuple(option for option in self.options if len(option) == least))


class TextAutomaton(PhraseAutomaton):
    """Two automata side by side: that of the bytes says what has occurred, that of the tokens what to place next.

    States stand for pairs of their states, numbered as they come up; the tries of the tokens are the base class's.
    """

    def __init__(
        self, options: Sequence[Sequence[int]], texts: Sequence[bytes], vocabulary: Vocabulary, whole_words: bool
    ) -> None:
        super().__init__(options)
        self._bytes = WordAutomaton(texts) if whole_words else PhraseAutomaton(texts)
        self._vocabulary = vocabulary
        self._pairs = [(0, 0)]
        self._states = {(0, 0): 0}
        self._edges: dict[tuple[int, int], int] = {}

    def advance(self, node: int, token: int) -> int:
        """The state after a token."""
        if node == MET:
            return MET
        found = self._edges.get((node, token))
        if found is None:
            found = self._edges[node, token] = self._advance(node, token)
        return found

    def _advance(self, node: int, token: int) -> int:
        read, placed = self._pairs[node]
        for byte in self._vocabulary.token_bytes(token) or b"":
            read = self._bytes.advance(read, byte)
            if read == MET:
                return MET
        after = self._next(placed, token)
        # The last token of a spelling ends the phrase, so the bytes have met it, or it is not, or not yet, a word.
        pair = (read, 0 if self._ends[after] else after)
        if pair not in self._states:
            self._states[pair] = len(self._pairs)
            self._pairs.append(pair)
        return self._states[pair]

    def remaining(self, node: int) -> int:
        """The fewest tokens after which a spelling has been placed; 0 where the text may end with it."""
        return 0 if self.at_end(node) else super().remaining(self._pairs[node][1])

    def at_end(self, node: int) -> bool:
        """Has a phrase occurred if the text ends here?"""
        return node == MET or self._bytes.at_end(self._pairs[node][0])

    def progress(self, node: int) -> float:
        """How much of the spelling that is nearest to its end has been placed, 0 to 1."""
        return 1.0 if self.at_end(node) else super().progress(self._pairs[node][1])

    def next_tokens(self, node: int) -> list[int]:
        """The tokens that go on with a spelling begun, or begin one; ascending."""
        return [] if node == MET else super().next_tokens(self._pairs[node][1])


class WordAutomaton:
    """Texts that count as whole words, byte by byte; a state is what was read of each, and whether in a word."""

    def __init__(self, texts: Sequence[bytes]) -> None:
        self._texts = list(texts)
        start: _Read = (False, frozenset())
        self._reads = [start]
        self._states = {start: 0}

    def advance(self, node: int, byte: int) -> int:
        """The state after a byte."""
        if node == MET:
            return MET
        inside, begun = self._reads[node]
        word = _is_word(byte)
        after: set[tuple[int, int]] = set()
        for number, text in enumerate(self._texts):
            places = [place for one, place in begun if one == number]
            if not (inside and _is_word(text[0])):
                places.append(0)
            for place in places:
                if place == len(text):
                    # It waited for the end of its last word.
                    if not word:
                        return MET
                elif text[place] == byte:
                    if place + 1 == len(text) and not word:
                        return MET
                    after.add((number, place + 1))
        read: _Read = (word, frozenset(after))
        if read not in self._states:
            self._states[read] = len(self._reads)
            self._reads.append(read)
        return self._states[read]

    def at_end(self, node: int) -> bool:
        """Has a text occurred if all ends here?"""
        return node == MET or any(place == len(self._texts[number]) for number, place in self._reads[node][1])


_Read = tuple[bool, frozenset[tuple[int, int]]]
"""Whether the last byte belongs to a word; the texts begun, each with how much of it was read."""


def _is_word(byte: int) -> bool:
    return byte >= 0x80 or chr(byte).isalnum() or byte == ord("_")


def spellings(text: str, vocabulary: Vocabulary, encode: Callable[[str], Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """The tokens that the tokenizer writes a text with behind each of `CONTEXTS`, each spelling once.

    Tokens wholly before the text are left out; the first one may begin before it.  Raises as `TextPhrase.written`.
    Raises `GuidedError` for an empty phrase, and for one that the tokenizer writes with other bytes.
    """
    if not text:
        raise GuidedError("a phrase is empty", remedy="Leave it out.")
    wanted = text.encode()
    found: dict[tuple[int, ...], None] = {}
    for context in CONTEXTS:
        tokens = [int(token) for token in encode(context + text)]
        covered = b""
        for place in range(len(tokens) - 1, -1, -1):
            data = vocabulary.token_bytes(tokens[place])
            if not data:
                break
            covered = data + covered
            if len(covered) >= len(wanted):
                if covered.endswith(wanted):
                    found[tuple(tokens[place:])] = None
                break
    if not found:
        raise GuidedError(
            f"the tokenizer does not write {text!r}: what it makes of it has other bytes",
            remedy="Give the phrase as the model would write it, or as token ids.",
        )
    return tuple(found)
