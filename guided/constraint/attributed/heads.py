"""Heads: the places within tokens at which a lexeme may begin, and the tokens that go on from there.

A token is cut into lexemes the same way wherever it comes, since a lexeme is the longest text that is one.  So what is
left of all tokens behind the same lexemes is a set of nodes of the trie, found once for a vocabulary; what a grammar
allows of it is the business of `rows`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from guided import tokenset
from guided.constraint.attributed.spelled import SpelledRun
from guided.constraint.attributed.tables import Run, quoted_run, word_run
from guided.constraint.attributed.walks import Starts, Walks
from guided.constraint.per_vocabulary import PerVocabulary
from guided.grammar.attributed.first import Begun
from guided.grammar.attributed.lexis import BLANKS, MOST_BLANKS, POINT, Lexis, is_word_byte
from guided.grammar.attributed.quotes import closes, is_doubled
from guided.grammar.attributed.spellings import Spellings
from guided.vocab.vocabulary import Vocabulary

__all__ = ["AFTER_NUMBER", "AFTER_WORD", "ONWARD", "Begin", "Head", "Heads"]

_WORD_BYTES = frozenset(byte for byte in range(256) if is_word_byte(byte))
AFTER_WORD = _WORD_BYTES | frozenset(b"'\"")
"""Bytes that do not follow a word at once: they would belong to it, or be refused."""
AFTER_NUMBER = _WORD_BYTES | frozenset(b".")
ONWARD = frozenset(range(256)) - AFTER_WORD
"""Bytes with which a token goes on behind a word in it."""
_DIGITS = frozenset(b"0123456789")
_LETTERS = _WORD_BYTES - _DIGITS - frozenset(b"$") - frozenset(range(0x80, 0xC2))
"""First bytes of words, of UTF-8 those that begin a character."""
_STRING = ord("'")
_NUMBER_BYTES = b"0123456789.+-abcdefABCDEFxX_"
"""All that a number may hold in any dialect."""
_MOST_NUMBER = 40
"""Bytes of a token's number that are looked at: more than any number has."""
_CONTROLS = (*range(32), 127)
_HEADS = 4096
"""Heads that are remembered for a vocabulary."""


class Numbers(NamedTuple):
    """The tokens that are part of a number, and the head behind whole numbers."""

    row: tokenset.Row
    behind: Head


class Signs(NamedTuple):
    """The tokens that are part of some signs, and the head behind whole ones; None where there are none."""

    row: tokenset.Row | None
    behind: Head | None


Begin = tuple[int, frozenset[int]]
"""A node of the trie, and the bytes that may not come behind it at once."""


class Head:
    """Nodes of the trie at which a lexeme may begin, after white space or at once."""

    def __init__(self, heads: Heads, begins: tuple[Begin, ...], blanks: int) -> None:
        self._heads = heads
        self._walks = heads.walks
        self._begins = begins
        self._spaced: list[int] = []
        last: Iterable[int] = [node for node, _ in begins]
        for _ in range(blanks):
            last = heads.after(last, BLANKS)
            self._spaced += last
        self.blanks = self._walks.tokens_at(self._spaced) if self._spaced else None
        """The tokens that are white space."""
        first = {byte for node in self._spaced for byte in self._walks.children(node)}
        for node, closed in begins:
            first.update(byte for byte in self._walks.children(node) if byte not in closed)
        first.difference_update(BLANKS)
        self.first = frozenset(first)
        """The first bytes of lexemes that tokens go on with."""
        self.has_words = bool(first & _LETTERS)
        self.has_numbers = bool(first & _DIGITS)
        self.has_points = POINT in first
        self.is_empty = not first and self.blanks is None
        """Does no token go on from here?"""
        quotes = frozenset(heads.quoted) & first
        self.begun = Begun(
            signs=frozenset(map(chr, first - _LETTERS - _DIGITS - quotes)),
            words=self.has_words,
            numbers=self.has_numbers or self.has_points,
            strings=_STRING in quotes,
            quotes=not quotes <= {_STRING},
        )
        """The same, as far as terminals differ by it."""
        self._signs: dict[frozenset[str], Signs] = {}
        self._after: dict[int, Starts] = {}

    def _at(self, byte: int) -> list[int]:
        """The nodes at which a lexeme may begin with a byte."""
        return [node for node, closed in self._begins if byte not in closed] + self._spaced

    def after(self, byte: int) -> Starts:
        """The nodes behind the first byte of a lexeme."""
        found = self._after.get(byte)
        if found is None:
            found = self._after[byte] = self._walks.starts(self._heads.after(self._at(byte), (byte,)))
        return found

    @cached_property
    def ended(self) -> tokenset.Row:
        """The tokens that end before any lexeme begins."""
        return self._walks.tokens_at(node for node, _ in self._begins)

    @cached_property
    def words(self) -> Starts:
        """Where a word may begin."""
        return self._walks.starts(self._at(ord("a")))

    @cached_property
    def numbers(self) -> Starts:
        """Where a number may begin."""
        return self._walks.starts(self._at(ord("0")))

    def signs(self, signs: frozenset[str]) -> Signs:
        """What becomes of the tokens that go on with some signs."""
        found = self._signs.get(signs)
        if found is None:
            nodes: list[int] = []
            begins: list[Begin] = []
            for sign in signs:
                if ord(sign[0]) not in self.first:
                    continue
                at = self._at(ord(sign[0]))
                for byte in sign.encode():
                    at = self._heads.after(at, (byte,))
                    nodes += at
                closed = self._heads.after_sign(sign)
                begins += ((node, closed) for node in at if not closed.issuperset(self._walks.children(node)))
            row = self._walks.tokens_at(nodes) if nodes else None
            found = self._signs[signs] = Signs(row, self._heads.joined(begins) if begins else None)
        return found


class Heads:
    """The heads over one vocabulary for one lexis (`Heads.of`)."""

    def __init__(self, walks: Walks, lexis: Lexis) -> None:
        self.walks = walks
        self.lexis = lexis
        self.word = word_run()
        self.quoted: dict[int, Run] = {}
        """Runs in quotes, by the quote."""
        for quote in ("'", *lexis.quotes, *lexis.text_quotes):
            ends = lexis.ends_run(quote)
            excluded = (0,) if quote == "'" else (*_CONTROLS, *ends[1:])
            ending = closes(ord(quote))
            # Behind a bracket no name goes on, so that it is the caller's to know whether one may be over.
            excluded += () if is_doubled(ord(quote)) else (ending,)
            self.quoted[ord(quote)] = quoted_run(ending, excluded, escapes=quote == "'" and len(ends) > 1)
        self._kept: dict[tuple[tuple[Begin, ...], int], Head] = {}
        self._sign_ends: dict[str, frozenset[int]] = {}
        self._numbers: dict[tuple[Starts, bytes], Numbers] = {}
        self._runs: dict[Starts, dict[bytes, list[int]]] = {}
        self._spelled: dict[tuple[Spellings | None, int | None], SpelledRun] = {}

    @staticmethod
    def of(vocabulary: Vocabulary, lexis: Lexis) -> Heads:
        """Those of a vocabulary, shared by all its constraints."""
        return _AllHeads.of(vocabulary).for_lexis(lexis)

    def head(self, nodes: Iterable[int], closed: frozenset[int], blanks: int = MOST_BLANKS) -> Head:
        """The head of some nodes: ``closed`` bytes may not come at once, and white space has so many bytes at most."""
        return self.joined([(node, closed) for node in nodes], blanks)

    def joined(self, begins: Iterable[Begin], blanks: int = MOST_BLANKS) -> Head:
        """The head of nodes that have each their own ``closed`` bytes."""
        key = (tuple(sorted(begins, key=_by_node)), blanks)
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= _HEADS:
                self._kept.clear()
            found = self._kept[key] = Head(self, *key)
        return found

    def after(self, nodes: Iterable[int], some: Iterable[int]) -> list[int]:
        """The children of nodes by some bytes."""
        found = (self.walks.children(node).get(byte) for node in nodes for byte in some)
        return [child for child in found if child is not None]

    def spelled(self, spellings: Spellings | None, quote: int | None) -> SpelledRun:
        """What reads literals in a quote, or numbers, that are held to a spelling; numbers also to none."""
        found = self._spelled.get((spellings, quote))
        if found is None:
            excluded = b"" if quote is None else self.lexis.ends_run(chr(quote))
            found = self._spelled[spellings, quote] = SpelledRun(spellings, quote, excluded)
        return found

    def after_sign(self, sign: str) -> frozenset[int]:
        """The bytes that would be read together with a sign, or be refused behind it."""
        found = self._sign_ends.get(sign)
        if found is None:
            found = frozenset(byte for byte in range(128) if self.lexis.munches(sign, byte))
            self._sign_ends[sign] = found
        return found

    def numbers(self, starts: Starts, text: bytes) -> Numbers:
        """What becomes of tokens that go on with any number, of which a text was read."""
        key = (starts, _shape(text))
        found = self._numbers.get(key)
        if found is None:
            nodes: list[int] = []
            whole: list[int] = []
            for run, at in self._number_runs(starts).items():
                # Where a point may come first there may be other bytes before it than before a digit.
                if self.lexis.number_may_go_on(text + run) and (text or run[0] != POINT):
                    nodes += at
                    if self.lexis.is_number(text + run):
                        whole += at
            head = self.head((node for node in whole if self.walks.has_children(node)), AFTER_NUMBER)
            found = self._numbers[key] = Numbers(self.walks.tokens_at(nodes), head)
        return found

    def _number_runs(self, starts: Starts) -> dict[bytes, list[int]]:
        """The nodes behind runs of a number's bytes, by shape: of digits only 0 is told from the others."""
        found = self._runs.get(starts)
        if found is None:
            found = self._runs[starts] = {}
            work = [(int(node), b"") for node in starts.nodes]
            while work:
                node, shape = work.pop()
                for byte, child in self.walks.children(node).items():
                    if byte in _NUMBER_BYTES and len(shape) < _MOST_NUMBER:
                        longer = shape + _shape(bytes([byte]))
                        found.setdefault(longer, []).append(child)
                        work.append((child, longer))
        return found


class _AllHeads(PerVocabulary):
    """The heads over a vocabulary, by lexis."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._walks = Walks.of(vocabulary)
        self._of: dict[Lexis, Heads] = {}

    def for_lexis(self, lexis: Lexis) -> Heads:
        """Those of a lexis."""
        found = self._of.get(lexis)
        if found is None:
            found = self._of[lexis] = Heads(self._walks, lexis)
        return found


def _by_node(begin: Begin) -> int:
    return begin[0]


def _shape(text: bytes) -> bytes:
    return _MORE_THAN_ONE.sub(b"1", text)


_MORE_THAN_ONE = re.compile(rb"[2-9]")
