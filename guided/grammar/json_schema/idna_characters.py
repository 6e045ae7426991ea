"""What IDNA 2008 says of single characters: may they stand in labels, and what do its rules on context look at.

The derived property of RFC 5892, computed by its own rules from this interpreter's Unicode; joining types, scripts and
ignorable characters come from the package that `unicode_sets` asks.  Nothing here reads labels.
"""

from __future__ import annotations

import itertools
import unicodedata
from functools import lru_cache
from typing import NamedTuple

from guided.grammar.regex.unicode_sets import unicode_property
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
        pair for name in ("Ll", "Lu", "Lo", "Nd", "Lm", "Mn", "Mc") for pair in unicode_property(name, "")
    )
    ignorable = unicode_property("Default_Ignorable_Code_Point", "")
    excluded = normalise((*ignorable, *_IGNORED_BLOCKS, *_OLD_HANGUL, *_DISALLOWED))
    candidates = intersect(letters, negate(excluded))
    return normalise((*_LDH, *_stable(candidates), *_VALID, *_IN_CONTEXT))


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
    for low, high in unicode_property("Assigned", ""):
        for code in range(low, high + 1):
            parts = unicodedata.decomposition(chr(code)).split()
            if len(parts) == 2 and not parts[0].startswith("<"):
                found.add(int(parts[1], 16))
    return frozenset(found)


def _joining_types() -> dict[int, str]:
    """The characters that join to others, and how (Unicode Standard, section 9.2)."""
    import regex  # type: ignore[import-untyped,unused-ignore]

    valid = "".join(map(chr, itertools.chain.from_iterable(range(low, high + 1) for low, high in valid_characters())))
    return {
        ord(letter): kind
        for kind in "LRDT"
        for letter in regex.findall(f"\\p{{Joining_Type={kind}}}", valid, regex.VERSION1)
    }


@lru_cache(maxsize=1)
def characters() -> Characters:
    """The classes of all code points that may stand in names, separators and capitals of ASCII included."""
    scripts = {
        code: name
        for name, members in (("Greek", ("Greek",)), ("Hebrew", ("Hebrew",)), ("Kana", ("Hiragana", "Katakana")))
        for member in members
        for low, high in unicode_property(f"Script={member}", "")
        for code in range(low, high + 1)
    }
    joining = _joining_types()
    han = bytearray(0x110000)
    for low, high in unicode_property("Script=Han", ""):
        han[low : high + 1] = b"\1" * (high - low + 1)
    of = bytearray(0x110000)
    classes: dict[Character | None, int] = {None: 0}
    composed = composing()
    known: dict[tuple[object, ...], int] = {}
    separators = [(ord(letter), ord(letter)) for letter in SEPARATORS]
    for low, high in normalise((*valid_characters(), *_UPPER, *separators)):
        for code in range(low, high + 1):
            letter = chr(code)
            key = (
                _SPECIAL.get(letter, ""),
                code < 0x80,
                0x41 <= code <= 0x5A,
                unicodedata.category(letter)[0] == "M",
                unicodedata.combining(letter) == 9,
                unicodedata.combining(letter) > 0,
                code in composed,
                "Kana" if han[code] else scripts.get(code, ""),
                joining.get(code, ""),
                _BIDI.get(unicodedata.bidirectional(letter)),
            )
            number = known.get(key)
            if number is None:
                bidi = key[-1]
                number = 0 if bidi is None else classes.setdefault(Character(*key), len(classes))  # type: ignore[arg-type]
                known[key] = number
            of[code] = number
    del classes[None]
    none = Character("", False, False, False, False, False, False, "", "", "")
    return Characters(bytes(of), (none, *(item for item in classes if item is not None)))
