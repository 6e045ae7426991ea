"""What IDNA 2008 says of single characters: may they stand in labels, and what do its rules on context look at.

The derived property of RFC 5892, computed by its own rules from this interpreter's Unicode; joining types, scripts and
ignorable characters come from the package that `unicode_sets` asks.  Nothing here reads labels.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guided.grammar.regex.unicode_sets import all_code_points, library_pattern, unicode_property
from guided.grammar.regular.characters import CharacterSet, intersect, negate, normalise

SEPARATORS = ".\u3002\uff0e\uff61"
"""Full stops between labels (RFC 3490, section 3.1), the first of them the one of the DNS."""

# RFC 5892, section 2.6: exceptions, by what they are.
_VALID: CharacterSet = ((0xDF, 0xDF), (0x3C2, 0x3C2), (0x6FD, 0x6FE), (0xF0B, 0xF0B), (0x3007, 0x3007))
_IN_CONTEXT: CharacterSet = (
    (0xB7, 0xB7), (0x375, 0x375), (0x5F3, 0x5F4), (0x660, 0x669), (0x6F0, 0x6F9), (0x200C, 0x200D), (0x30FB, 0x30FB),
)  # fmt: skip
"""Those that appendix A has rules for (CONTEXTJ and CONTEXTO)."""
_DISALLOWED: CharacterSet = (
    (0x640, 0x640), (0x7FA, 0x7FA), (0x302E, 0x302F), (0x3031, 0x3035), (0x303B, 0x303B),
)  # fmt: skip
_IGNORED_BLOCKS: CharacterSet = ((0x20D0, 0x20FF), (0x1D100, 0x1D24F))
"""Section 2.4."""
_OLD_HANGUL: CharacterSet = ((0x1100, 0x11FF), (0xA960, 0xA97F), (0xD7B0, 0xD7FF))
"""Section 2.9: conjoining jamo."""
_LDH: CharacterSet = ((0x2D, 0x2D), (0x30, 0x39), (0x61, 0x7A))
_UPPER: CharacterSet = ((0x41, 0x5A),)
_LETTERS = frozenset(("Ll", "Lu", "Lo", "Nd", "Lm", "Mn", "Mc"))
"""General categories of section 2.1."""
_MARKS = frozenset(("Mn", "Mc", "Me"))
"""Those of marks; no other character has a canonical combining class but 0."""
_BLOCK = 4096
"""Code points that are passed over at once where all of them are unassigned, private or the like."""
_CHUNK = 64
"""Characters whose stability is looked at together; where they are not stable, one by one."""

_BIDI = {
    "L": "L", "R": "R", "AL": "R", "AN": "AN", "EN": "EN", "NSM": "NSM",
    "ES": "ON", "CS": "ON", "ET": "ON", "ON": "ON", "BN": "ON",
}  # fmt: skip
"""Bidirectional classes, as far as the rule of RFC 5893 tells them apart."""
_SPECIAL = {
    **dict.fromkeys(SEPARATORS, "."),
    **{letter: letter for letter in "-lxnXN\xb7\u0375\u30fb\u200c\u200d"},
    "\u05f3": "\u05f3",
    "\u05f4": "\u05f3",
}


class Character(NamedTuple):
    """All that the rules on labels want to know of a character."""

    special: str
    """The character itself, or one that stands for it, where a rule names it; else empty."""
    is_ascii: bool
    is_upper: bool
    """A capital of ASCII, which labels of ASCII alone may have."""
    is_mark: bool
    is_virama: bool
    reorders: bool
    """Its canonical combining class is not 0."""
    composes: bool
    """A character before it may compose with it."""
    script: str
    """``Greek``, ``Hebrew``, ``Kana`` (with Han), or empty."""
    joining: str
    """``L``, ``R``, ``D``, ``T``, or empty."""
    bidi: str


class Characters(NamedTuple):
    """Every code point's class."""

    of: bytes
    """By code point: the index into ``classes``, 0 for what no name holds."""
    classes: tuple[Character, ...]


@lru_cache(maxsize=1)
def valid_characters() -> CharacterSet:
    """The code points that RFC 5892 calls PVALID, CONTEXTJ and CONTEXTO."""
    letters = normalise(
        (first + found.start(), first + found.end() - 1)
        for first, text in _printed()
        for found in re.finditer(b"\1+", bytes(map(_LETTERS.__contains__, map(unicodedata.category, text))))
    )
    ignorable = unicode_property("Default_Ignorable_Code_Point", "")
    excluded = normalise((*ignorable, *_IGNORED_BLOCKS, *_OLD_HANGUL, *_DISALLOWED))
    candidates = intersect(letters, negate(excluded))
    return normalise((*_LDH, *_stable(candidates), *_VALID, *_IN_CONTEXT))


def _printed() -> Iterator[tuple[int, str]]:
    """The blocks of code points that hold letters, marks or signs: where each begins, and its characters.

    Of the others, which are most, ``repr`` writes every character as an escape, and says so at once.
    """
    everything = all_code_points()
    for first in range(0, len(everything), _BLOCK):
        text = everything[first : first + _BLOCK]
        if len(repr(text)) < 2 + len(text) * len("\\uFFFF" if first < 0x10000 else "\\U0010FFFF"):
            yield first, text


def _stable(characters: CharacterSet) -> list[tuple[int, int]]:
    """Those that compatibility normalisation and case folding leave alone (section 2.2)."""
    found = []
    for low, high in characters:
        for first in range(low, high + 1, _CHUNK):
            last = min(first + _CHUNK - 1, high)
            text = "".join(map(chr, range(first, last + 1)))
            if unicodedata.normalize("NFKC", text) == text and text.casefold() == text:
                found.append((first, last))
            else:
                found.extend((code, code) for code in range(first, last + 1) if _is_stable(chr(code)))
    return found


def _is_stable(letter: str) -> bool:
    folded = unicodedata.normalize("NFKC", letter).casefold()
    return unicodedata.normalize("NFKC", folded) == letter


@lru_cache(maxsize=1)
def composing() -> frozenset[int]:
    """Characters that a character before them may compose with: the second ones of canonical decompositions.

    Those of Hangul are no characters of names, and so left out.
    """
    found = set()
    for _, block in _printed():
        for at in range(0, len(block), _CHUNK):
            text = block[at : at + _CHUNK]
            if unicodedata.is_normalized("NFD", text):
                continue
            for letter in text:
                parts = unicodedata.decomposition(letter).split()
                if len(parts) == 2 and not parts[0].startswith("<"):
                    found.add(int(parts[1], 16))
    return frozenset(found)


_SCRIPTS = {"Greek": "Greek", "Hebrew": "Hebrew", "Hiragana": "Kana", "Katakana": "Kana", "Han": "Kana"}


def _column(text: str, kinds: dict[str, str]) -> tuple[NDArray[np.int64], list[str]]:
    """For each character of a text which of some properties it has: an index into the names that stand for them."""
    names = list(dict.fromkeys(("", *kinds.values())))
    column = np.zeros(len(text), np.int64)
    for query, name in kinds.items():
        for found in library_pattern(query).finditer(text):
            column[found.start() : found.end()] = names.index(name)
    return column, names


@lru_cache(maxsize=1)
def characters() -> Characters:
    """The classes of all code points that may stand in names, separators and capitals of ASCII included."""
    separators = [(ord(letter), ord(letter)) for letter in SEPARATORS]
    ranges = normalise((*valid_characters(), *_UPPER, *separators))
    codes = np.concatenate([np.arange(low, high + 1) for low, high in ranges])
    everything = all_code_points()
    text = "".join([everything[low : high + 1] for low, high in ranges])
    script, scripts = _column(text, {f"Script={query}": name for query, name in _SCRIPTS.items()})
    joining, joinings = _column(text, {f"Joining_Type={kind}": kind for kind in "LRDT"})
    # Most characters differ in these alone, of which there are few combinations; the others are looked at one by one.
    bidis = ["", *dict.fromkeys(_BIDI.values())]
    directions = {name: bidis.index(kind) for name, kind in _BIDI.items()}
    bidi = np.asarray([directions.get(name, 0) for name in map(unicodedata.bidirectional, text)])
    composed = np.isin(codes, list(composing()))
    special = np.isin(codes, [ord(letter) for letter in _SPECIAL])
    marks = np.frombuffer(bytes(map(_MARKS.__contains__, map(unicodedata.category, text))), np.bool_)
    single = (codes < 0x80) | composed | special | marks
    key = (bidi * len(scripts) + script) * len(joinings) + joining
    key = np.where(single, np.arange(len(codes)) + key.max(initial=0) + 1, key)
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    numbers = np.zeros(len(first), np.uint8)
    classes: dict[Character, int] = {}
    for at in np.argsort(first).tolist():
        place = int(first[at])
        if not bidi[place]:
            continue
        letter = text[place]
        combining = unicodedata.combining(letter)
        character = Character(
            _SPECIAL.get(letter, ""),
            letter.isascii(),
            letter.isascii() and letter.isupper(),
            bool(marks[place]),
            combining == 9,
            combining > 0,
            bool(composed[place]),
            scripts[script[place]],
            joinings[joining[place]],
            bidis[bidi[place]],
        )
        numbers[at] = classes.setdefault(character, len(classes) + 1)
    of = np.zeros(len(everything), np.uint8)
    of[codes] = numbers[which]
    none = Character("", False, False, False, False, False, False, "", "", "")
    return Characters(of.tobytes(), (none, *classes))
