"""Free text around tags as regular languages: texts without some words in them, and texts up to the first such word.

One automaton for all words, after Aho and Corasick ("Efficient string matching", CACM 1975), over characters, so that a
text always ends between two of them: its state is the longest end of the text that begins a word.  No word may be
inside another, so it has read a word exactly when the state is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from guided.errors import LimitError
from guided.grammar.regular.characters import ANY_CHARACTER, negate, normalise, utf8
from guided.grammar.regular.expr import EPSILON, Expr, alternation, concat, equations, repeat

__all__ = ["TEXT", "innermost", "overlap", "text_up_to", "text_without"]

MAX_TRANSITIONS = 100_000
"""Characters of the words times the different ones among them; a tag's triggers and ends have some thousands."""

TEXT = repeat(utf8(ANY_CHARACTER))
"""Any text at all."""


def text_without(words: Sequence[str]) -> Expr:
    """Texts in which none of ``words`` occurs; they may end in the beginning of one.

    >>> from guided.grammar.regular.derivative import matches
    >>> [matches(text_without(["ab"]), text) for text in (b"ba", b"aa", b"cabc")]
    [True, True, False]

    Raises `LimitError` for words of so many characters that an automaton of them would take seconds.
    """
    return _language(tuple(sorted(set(words))), None) if words else TEXT


def text_up_to(word: str, words: Sequence[str]) -> Expr:
    """Texts that end with ``word``, which is the first of ``words`` to occur in them, and occurs once.

    >>> from guided.grammar.regular.derivative import matches
    >>> [matches(text_up_to("ab", ["ab", "c"]), text) for text in (b"xab", b"cab", b"abab", b"aab")]
    [True, False, False, True]
    """
    return _language(tuple(sorted(set(words))), word)


def innermost(words: Sequence[str]) -> list[str]:
    """The words in which no other is: a text without these is without all of them.

    >>> innermost(["<a>", "<a", "b"])
    ['<a', 'b']
    """
    found = sorted(set(words))
    return [word for word in found if not any(other != word and other in word for other in found)]


def overlap(words: Sequence[str]) -> bool:
    """Does the end of some word begin one?  If not, a word after a text without any is the first that occurs.

    >>> overlap(["<a>", "<b"]), overlap(["aba"]), overlap(["ab", "bc"])
    (False, True, True)
    """
    beginnings = {word[:length] for word in words for length in range(1, len(word) + 1)}
    return any(word[start:] in beginnings for word in words for start in range(1, len(word)))


@lru_cache(maxsize=1024)
def _language(words: tuple[str, ...], stop: str | None) -> Expr:
    letters = sorted({letter for word in words for letter in word})
    n_letters = sum(map(len, words))
    if n_letters * len(letters) > MAX_TRANSITIONS:
        raise LimitError(
            f"the texts that free text must be told from have {n_letters} characters, {len(letters)} different ones",
            remedy="Use fewer or shorter ones.",
        )
    after, word_at = _transitions(words)
    places = [place for place in range(len(after)) if place not in word_at]
    number = {place: index for index, place in enumerate(places)}
    others = utf8(negate(normalise((ord(letter), ord(letter)) for letter in letters)))

    def build(unknowns: Sequence[Expr]) -> list[Expr]:
        bodies: list[Expr] = []
        for place in places:
            ways = [concat(others, unknowns[0])] + [EPSILON] * (stop is None)
            targets: dict[int, list[tuple[int, int]]] = {}
            for letter in letters:
                targets.setdefault(after[place].get(letter, 0), []).append((ord(letter), ord(letter)))
            for target, ranges in targets.items():
                if target in number:
                    ways.append(concat(utf8(normalise(ranges)), unknowns[number[target]]))
                elif word_at[target] == stop:
                    ways.append(utf8(normalise(ranges)))
            bodies.append(alternation(ways))
        return bodies

    # Decided: from every state some other letter leads to the first, and from there a word can be read in full.
    return equations([stop is None] * len(places), build, decided=True)[0]


def _transitions(words: Sequence[str]) -> tuple[list[dict[str, int]], dict[int, str]]:
    """For each place in a word where a letter leads, if not to the beginning (place 0); and the words at their ends.

    Breadth first, so that what is known of the longest end of a text that begins a word is known before the text.
    """
    trie: list[dict[str, int]] = [{}]
    word_at: dict[int, str] = {}
    for word in words:
        place = 0
        for letter in word:
            if letter not in trie[place]:
                trie[place][letter] = len(trie)
                trie.append({})
            place = trie[place][letter]
        word_at[place] = word
    after = [dict(children) for children in trie]
    ends = [0] * len(trie)
    order = [*trie[0].values()]
    for place in order:
        shorter = after[ends[place]]
        for letter, target in trie[place].items():
            ends[target] = shorter.get(letter, 0)
            order.append(target)
        after[place] = {**shorter, **trie[place]}
    return after, word_at
