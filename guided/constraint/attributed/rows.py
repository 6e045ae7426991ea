"""The mask at a place of an L-attributed grammar: a walk over the trie, but for free names and strings.

Where any name or string may stand, most of the vocabulary is allowed: these tokens are taken from lists
(`runs`).  What is left of a token behind a name is read once for all names that mean nothing yet; the few that the
attribute knows are read by themselves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.attributed.runs import Rest, Runs, character_runs, word_runs
from guided.constraint.live import TokenTree
from guided.grammar.attributed.language import ANY, MOST_QUOTED, WHOLE, At, AttributedLanguage, Reading
from guided.grammar.attributed.lexis import MOST_NAME, is_word_byte
from guided.grammar.attributed.threads import Lexeme, LexemeKind, Place

__all__ = ["Rows"]

_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_NO_WORD = frozenset(byte for byte in range(256) if not is_word_byte(byte))
_ALL = frozenset(range(256))
_UNHEARD = "\x01"
"""A name that no text holds: it stands for all that mean nothing yet."""
FEW = 64
"""Nodes below one of the trie from which on tokens are taken from lists; fewer are walked."""
LONG_RUN = 32
"""Bytes of a name in one token from which on it does not count as one that fits a token budget."""
_CONTROLS = (*range(32), 127)


class Rows:
    """Makes the rows of a language over a vocabulary."""

    def __init__(self, language: AttributedLanguage, tree: TokenTree) -> None:
        self.language = language
        self.tree = tree
        self._runs: dict[object, Runs] = {}
        self._limit: int | None = None

    def row(self, at: At, limit: int | None = None) -> tokenset.Row:
        """The mask without end-of-text ids; with ``limit`` only tokens after which so many bytes are enough."""
        self._limit = limit
        found = np.zeros(self.tree.vocabulary.n_words, np.uint32)
        if self._in_string(at):
            self._string(at, b"", found)
        elif at.utf8 == WHOLE and at.reading is Reading.NAME and self._names_any(at):
            self._name(at, b"", found)
        else:
            self._walk(at, found)
        return found

    # Walks ---------------------------------------------------------------------------------------------------------

    def _walk(self, start: At, found: tokenset.Row) -> None:
        """Allow the tokens behind a state; where many begin a free name or string, by their lists."""
        step, children, spelled = self.language.step, self.tree.children, self.tree.spelled_here
        end = self.tree.trie.end
        tokens: list[NDArray[np.int32]] = []
        work = [(start, 0, b"")]
        while work:
            at, node, head = work.pop()
            skipped = self._by_lists(at, head, found) if end[node] - node > FEW else frozenset()
            viable = self._viable(at)
            for byte, child in children(node).items():
                if byte not in skipped and (viable is None or byte in viable):
                    after = step(at, byte)
                    if after is not None:
                        if self._fits(after):
                            tokens.append(spelled(child))
                        if end[child] > child + 1:
                            work.append((after, child, head + bytes([byte])))
        if tokens:
            tokenset.add_all(found, np.concatenate(tokens))

    def _viable(self, at: At) -> set[int] | None:
        """Bytes that hold all that may follow a word in progress, None where these are not few."""
        language = self.language
        if at.reading is not Reading.WORD or language.takes_any_word(at.place):
            return None
        found = language.listed_words(at.place).next_bytes(at.text.lower())
        found.update(byte - 32 for byte in tuple(found) if 97 <= byte <= 122)
        if language.resolved(at) is not None:
            found |= _NO_WORD
        return found

    def _by_lists(self, at: At, head: bytes, found: tokenset.Row) -> frozenset[int]:
        """Allow the tokens with a head that go on with a free name or string; the bytes with which these go on."""
        if at.reading is Reading.WORD and not head and self._is_any_word(at.place, at.text):
            self._words(at, found)
            return _LETTERS | frozenset(b"0123456789")
        if head and self._in_string(at):
            self._string(at, head, found)
            return _ALL
        if at.reading is Reading.NAME and head and at.text == head[-1:] and self._names_any(at):
            self._name(at, head, found)
            return _ALL
        if at.reading in (Reading.WORD, Reading.NUMBER, Reading.STRING, Reading.NAME):
            return frozenset()
        place = self.language.resolved(at)
        if place is None or not any(names.free for _, names in place.names):
            return frozenset()
        self._first_words(place, head, found)
        return _LETTERS

    def _fits(self, at: At, longer: int = 0) -> bool:
        """Do so many bytes end the text as are left, if names are so much longer than they are here?"""
        return self._limit is None or self.language.price(at) + longer <= self._limit

    def _whole(self, at: At, runs: Runs) -> tokenset.Row:
        """The tokens that are nothing but a run, as far as they fit."""
        if self._limit is None:
            return runs.whole.copy()
        if not self._fits(at, 3 * LONG_RUN):
            return np.zeros_like(runs.whole)
        return runs.whole & ~tokenset.of_flags(runs.lengths > LONG_RUN)

    def _rests(self, at: At, rest: Rest, found: tokenset.Row, longer: int = 0) -> None:
        """Allow the tokens of a trie of rests."""
        step = self.language.step
        tokens: list[int] = []
        work = [(at, rest)]
        while work:
            state, here = work.pop()
            for byte, below in here.children.items():
                after = step(state, byte)
                if after is not None:
                    if below.tokens and self._fits(after, longer):
                        tokens += below.tokens
                    work.append((after, below))
        tokenset.add_all(found, np.array(tokens, np.int64))

    def _allows(self, at: At | None, data: bytes) -> bool:
        for byte in data:
            if at is None:
                return False
            at = self.language.step(at, byte)
        return at is not None and self._fits(at)

    def _known_tokens(self, at: At, known: list[bytes], runs: Runs, group: tokenset.Row) -> None:
        """Read the tokens whose names mean something by themselves."""
        tokens = [(run + rest, token) for run in known for rest, token in runs.by_run[run]]
        tokenset.remove_all(group, np.array([token for _, token in tokens], np.int64))
        allowed = [token for text, token in tokens if self._allows(at, text)]
        tokenset.add_all(group, np.array(allowed, np.int64))

    # Free words ----------------------------------------------------------------------------------------------------

    def _is_any_word(self, place: Place, text: bytes) -> bool:
        """May a word go on as it will?"""
        plain = text.isascii() and b"$" not in text and len(text) < MOST_NAME
        return plain and any(names.free for _, names in place.names)

    def _first_words(self, place: Place, head: bytes, found: tokenset.Row) -> None:
        """Tokens that begin a free word behind a head."""
        key = ("first", head)
        if key not in self._runs:
            self._runs[key] = word_runs(self.tree.vocabulary, head, starts=True)
        self._word_tokens(place, b"", self._runs[key], found)

    def _words(self, at: At, found: tokenset.Row) -> None:
        """Tokens that go on with a free word."""
        if "words" not in self._runs:
            self._runs["words"] = word_runs(self.tree.vocabulary, b"", starts=False)
        self._word_tokens(at.place, at.text, self._runs["words"], found)

    def _word_tokens(self, place: Place, text: bytes, runs: Runs, found: tokenset.Row) -> None:
        unheard = At(place, Reading.WORD, text + _UNHEARD.encode())
        group = self._whole(unheard, runs)
        behind = self._behind(place, LexemeKind.WORD)
        if behind is not None:
            self._rests(At(place, Reading.WORD, _UNHEARD.encode()), runs.rests, group, 3 * (LONG_RUN + len(text)))
        known = self._known_runs(self.language.known_words(place), text, runs) if behind is not None else runs.by_run
        self._known_tokens(
            At(place, Reading.WORD, text) if text else At(place, Reading.BLANK, b""), list(known), runs, group
        )
        room = MOST_NAME - len(text)
        if room < runs.longest:
            tokenset.remove_all(group, np.flatnonzero(runs.lengths > room))
        found |= group

    def _behind(self, place: Place, kind: LexemeKind) -> Place | None:
        """The place behind a free name that means nothing yet."""
        return self.language.threads.after(place, Lexeme(kind, _UNHEARD), False)

    def _known_runs(self, known: frozenset[str], text: bytes, runs: Runs) -> list[bytes]:
        """The runs that make the text a name that means something; in any letter case."""
        folded = text.lower()
        size = len(folded)
        rests = {name[size:] for name in (word.encode() for word in known) if name.startswith(folded)}
        return [run for run in runs.by_run if run.lower() in rests]

    # Strings and names in quotes -----------------------------------------------------------------------------------

    def _in_string(self, at: At) -> bool:
        """Is it between two characters of a string that may be any?"""
        between = at.reading is Reading.STRING and at.utf8 == WHOLE and at.text != b"\\"
        return between and self.language.is_free(at.place)

    def _string(self, at: At, head: bytes, found: tokenset.Row) -> None:
        """Tokens inside a free string, those that end it, and what these hold behind it."""
        key = ("string", head)
        ends = self.language.lexis.ends_run("'")
        if key not in self._runs:
            self._runs[key] = character_runs(self.tree.vocabulary, head, (0, *ends))
        runs = self._runs[key]
        group = self._whole(at, runs)
        if self.language.takes_any_text(at):
            self._rests(at, runs.rests, group)
        else:
            # What others are held to is read by itself; any other run makes it a text that does not matter.
            self._rests(at._replace(text=ANY), runs.rests, group)
            known = [run for run in runs.by_run if self.language.begins_value(at.place, at.text + run)]
            self._known_tokens(at, known, runs, group)
        for byte in ends:
            self._ended(at, head, byte, group)
        found |= group

    def _ended(self, at: At, head: bytes, quote: int, found: tokenset.Row) -> None:
        """Tokens that have the quote, or a byte that is read as such, right behind their head."""
        child: int | None = 0
        for byte in (*head, quote):
            child = None if child is None else self.tree.children(child).get(byte)
        after = self.language.step(at, quote)
        if child is not None and after is not None:
            if self._fits(after):
                tokenset.add_all(found, self.tree.spelled_here(child))
            work = [(after, child)]
            while work:
                state, node = work.pop()
                for byte, below in self.tree.children(node).items():
                    following = self.language.step(state, byte)
                    if following is not None:
                        if self._fits(following):
                            tokenset.add_all(found, self.tree.spelled_here(below))
                        work.append((following, below))

    def _names_any(self, at: At) -> bool:
        quote = at.text[:1]
        return any(names.free for _, names in self.language.held(at.place, quote)) and len(at.text) < MOST_QUOTED // 2

    def _name(self, at: At, head: bytes, found: tokenset.Row) -> None:
        """Tokens inside a free name in quotes, those that end it, and what these hold behind it."""
        language, quote = self.language, at.text[:1]
        key = ("name", quote, head)
        if key not in self._runs:
            self._runs[key] = character_runs(
                self.tree.vocabulary, head, (*_CONTROLS, *language.lexis.ends_run(quote.decode()))
            )
        runs = self._runs[key]
        group = self._whole(at, runs)
        unheard = At(at.place, Reading.NAME, quote + _UNHEARD.encode())
        self._rests(unheard, runs.rests, group, 3 * (LONG_RUN + len(at.text)))
        known = self._known_runs(language.known_words(at.place), at.text[1:], runs)
        self._known_tokens(at, known, runs, group)
        self._ended(at, head, quote[0], group)
        found |= group
