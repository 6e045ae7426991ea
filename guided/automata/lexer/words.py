"""Bounds on how many words a text may have that no token comes near, as in ``(\\S+\\s+){0,99}\\S+``.

A word is a repetition of two classes of characters, of which one has few.  A token holds few words (six of any token
of Llama-3), so a state that leaves room for more leads on with every token as if there were no bound.  Without that
each next word has effects of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import cast

import numpy as np
from numpy.typing import NDArray

from guided.automata.lexer.runs import run_with_pattern
from guided.grammar.regular.derivative import edges, matches
from guided.grammar.regular.expr import Expr, Kind, alternation, concat, intersection, json_string, repeat, sequence
from guided.grammar.regular.lengths import character_counts

FEW = 32
"""Characters of a class that has few: white space has 25."""

Words = Callable[[frozenset[bytes]], int]
"""How many words a token may begin that such characters part."""


def without_far_words(content: Expr, words: Words) -> Expr:
    """The language without bounds on words that no token comes near: with any both lead on, or neither does.

    Proof.  Let ``t`` lead on in the language without the bound: some ``t w`` is in it, read as ``k`` words where the
    repetition is.  Of these ``j`` begin in ``t``, and ``j`` is within the bound.  The others lie in ``w``, and may be
    left out as far as the least number of words allows, each by itself; what is left of ``w`` follows ``t`` in the
    language with the bound.  With ``w`` empty nothing is left out: where a match ends is the same, too.  A text only
    gets shorter by that, so this holds beside a greatest length as well.
    """
    match content.kind:
        case Kind.REPEAT:
            body, low, high = cast("tuple[Expr, int, int | None]", content.parts)
            between = _parted_by(body) if high is not None else None
            return content if between is None or cast(int, high) < words(between) else repeat(body, low)
        case Kind.CONCAT:
            items = sequence(content)
            near = [without_far_words(item, words) if item.kind is Kind.REPEAT else item for item in items]
            return content if near == items else concat(*near)
        case Kind.ALTERNATION:
            parts = cast("tuple[Expr, ...]", content.parts)
            ways = [without_far_words(part, words) for part in parts]
            return content if all(way is part for way, part in zip(ways, parts, strict=True)) else alternation(ways)
        case Kind.INTERSECTION:
            found = run_with_pattern(json_string(content))
            if found is None or found[0].low:
                return content
            pattern = cast(Expr, found[1].parts[0])
            near_pattern = without_far_words(pattern, words)
            if near_pattern is pattern or pattern.kind is Kind.INTERSECTION:
                return content
            bounds = [part for part in cast("tuple[Expr, ...]", content.parts) if part is not pattern]
            return intersection((near_pattern, *bounds))
    return content


@lru_cache(maxsize=4096)
def _parted_by(body: Expr) -> frozenset[bytes] | None:
    """Recognise one or more characters of a class and then of another, apart from it: those of one with few."""
    if body.kind is not Kind.CONCAT:
        return None
    classes = [_class_of(cast(Expr, part)) for part in body.parts]
    if any(character_counts(each) != (1, 1) for each in classes):
        return None
    for each, other in (classes, classes[::-1]):
        few = _few_characters(each)
        if few is not None:
            return None if any(matches(other, character) for character in few) else few
    return None


def _class_of(part: Expr) -> Expr:
    """What a part has one of, or one or more."""
    return cast(Expr, part.parts[0]) if part.kind is Kind.REPEAT and part.parts[1:] == (1, None) else part


def _few_characters(each: Expr) -> frozenset[bytes] | None:
    """The characters of a class, if they are few, and none of them has an escape of its own but control characters."""
    found: set[bytes] = set()
    stack = [(b"", each)]
    while stack:
        begun, rest = stack.pop()
        if rest.nullable:
            found.add(begun)
        for first, last, target in edges(rest):
            if last - first >= FEW or len(begun) == 4:
                return None
            stack.extend((begun + bytes([byte]), target) for byte in range(first, last + 1))
        if len(found) + len(stack) > FEW:
            return None
    return None if found & {b'"', b"\\", b"/"} else frozenset(found)


_ESCAPES = {b"\b": b"b", b"\f": b"f", b"\n": b"n", b"\r": b"r", b"\t": b"t"}


_WHITE_SPACE = (
    "\t\n\v\f\r \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What ``\\s`` matches in ECMA-262, 12.2 and 12.3."""

USUAL = tuple(frozenset([character.encode() for character in between]) for between in (_WHITE_SPACE, " "))
"""What words are mostly parted by."""


class TokenWords:
    """How many words the tokens of a vocabulary may begin; each answer is remembered, those of `USUAL` known."""

    def __init__(self, data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self._data, self._offsets = data, offsets
        self._known = {between: 1 + self._most_rows(between) for between in USUAL}

    def most(self, between: frozenset[bytes]) -> int:
        """A bound on the words that a token may begin; characters ``between`` stand in each, in a row in one place.

        Between the beginnings of two words in a token there is a whole word, as it is spelled, and in it a row of those
        characters, which one of the other class parts from the next row.  A row begins with a character that stands for
        itself and is not behind another, or with an escape, of which each that may be one counts; a backslash is no
        such character, so none is hidden behind the end of an escape.  One more than rows is enough; what a text has
        begun before a token is no word of the token's.  A millisecond for 128,000 tokens.
        """
        found = self._known.get(between)
        if found is None:
            found = self._known[between] = 1 + self._most_rows(between)
        return found

    def _most_rows(self, between: frozenset[bytes]) -> int:
        data, offsets = self._data, self._offsets
        starts = np.zeros(data.size + 1, np.bool_)
        starts[offsets] = True
        # The first byte of a character tells how many it has; only few of several bytes are looked at closely.
        sizes = bytearray(256)
        for character in between:
            sizes[character[0]] = len(character)
        size_at = np.frombuffer(data.tobytes().translate(bytes(sizes)), np.uint8)
        begins = np.zeros(data.size + 1, np.bool_)
        stops = np.zeros(data.size + 1, np.bool_)
        for size in sorted(set(sizes) - {0}):
            found = size_at[: max(data.size - size + 1, 0)] == size
            if size == 1:
                begins[:-1] |= found
                stops[1:] |= found
                continue
            characters = [character for character in between if len(character) == size]
            at = np.flatnonzero(found)
            code = data[at].astype(np.int64)
            within = np.ones(at.size, np.bool_)
            for i in range(1, size):
                code = code << 8 | data[at + i]
                within &= ~starts[at + i]
            at = at[within & np.isin(code, [int.from_bytes(character, "big") for character in characters])]
            begins[at] = True
            stops[at + size] = True
        letters = list(b"".join([_ESCAPES.get(character, b"") for character in between]) + b"u")
        escape = np.flatnonzero(data[:-1] == ord("\\"))
        escape = escape[np.isin(data[escape + 1], letters)]
        # Where a token begins, no character is behind another; there most rows begin, and of which token these are
        # need not be looked for.  A letter may be such a character, too, so that both count.
        inner = np.concatenate((np.flatnonzero(begins & ~stops & ~starts), escape))
        tokens = np.searchsorted(offsets, inner, "right") - 1
        rows = np.bincount(tokens)[tokens] + begins[offsets[tokens]]
        return int(rows.max(initial=begins.any()))
