r"""Named sets of characters: ``\w`` and its kin, ``\p{..}`` properties, and closure under case.

Sets come from three sources, each asked lazily and once: constants for ASCII, `unicodedata` for general categories
(``\p{Lu}``, ``\p{Letter}``) and the ``regex`` package (which transformers depends on) for scripts, script extensions,
blocks and binary properties (``\p{Script=Greek}``, ``\p{scx=Deva}``, ``\p{Alphabetic}``).  Nothing here reads patterns.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from bisect import bisect_right
from functools import lru_cache
from typing import Any

import numpy as np

from guided.errors import GrammarError, UnsupportedError
from guided.grammar.regular.characters import ANY_CHARACTER, CharacterSet, intersect, negate, normalise

ASCII_DIGIT: CharacterSet = ((0x30, 0x39),)
ASCII_WORD: CharacterSet = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
ASCII_SPACE: CharacterSet = ((0x09, 0x0D), (0x20, 0x20))
PYTHON_SPACE: CharacterSet = (
    (0x09, 0x0D), (0x1C, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029),
    (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000),
)  # fmt: skip
r"""``str.isspace``, which is what Python's ``\s`` asks."""
ECMA_SPACE: CharacterSet = (
    (0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F),
    (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF),
)  # fmt: skip
"""WhiteSpace and LineTerminator of ECMA-262, sections 12.2 and 12.3."""
ECMA_LINE_TERMINATOR: CharacterSet = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
LINE_FEED: CharacterSet = ((0x0A, 0x0A),)


@lru_cache(maxsize=1)
def all_code_points() -> str:
    """A string whose character number ``i`` is code point ``i``, surrogates included."""
    return np.arange(0x110000, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")


@lru_cache(maxsize=8)
def python_class(letter: str) -> CharacterSet:
    r"""The Unicode meaning of Python's ``\d`` or ``\w``, as this very interpreter's ``re`` has it."""
    return normalise((found.start(), found.end() - 1) for found in re.finditer(f"\\{letter}+", all_code_points()))


UNIFORM = (
    (0x4E00, 0x9FD5, "Lo"), (0xAC00, 0xD7A3, "Lo"), (0xD800, 0xDFFF, "Cs"), (0xE000, 0xF8FF, "Co"),
    (0x20000, 0x2A6D6, "Lo"), (0x40000, 0xDFFFF, "Cn"), (0xE1000, 0xEFFFF, "Cn"), (0xF0000, 0xFFFFD, "Co"),
    (0x100000, 0x10FFFD, "Co"),
)  # fmt: skip
"""Stretches of one category in every Unicode since 8.0, five sixths of all (the tests check it against this
interpreter's): planes without characters, private use, surrogates, syllables and ideographs."""


@lru_cache(maxsize=1)
def _categories() -> dict[str, CharacterSet]:
    ranges: dict[str, list[tuple[int, int]]] = {}
    text = all_code_points()
    at = 0
    for low, high, category in (*UNIFORM, (len(text), len(text), "Cn")):
        # A category is two letters, and the same two are one number.
        found = np.frombuffer("".join(map(unicodedata.category, text[at:low])).encode(), "<u2")
        bounds = [*np.flatnonzero(np.diff(found, prepend=0)).tolist(), found.size]
        for first, stop in itertools.pairwise(bounds):
            ranges.setdefault(unicodedata.category(text[at + first]), []).append((at + first, at + stop - 1))
        if low < len(text):
            ranges.setdefault(category, []).append((low, high))
        at = high + 1
    return {category: normalise(pairs) for category, pairs in ranges.items()}


_LONG_CATEGORIES = {
    "letter": "L", "casedletter": "LC", "uppercaseletter": "Lu", "lowercaseletter": "Ll", "titlecaseletter": "Lt",
    "modifierletter": "Lm", "otherletter": "Lo", "mark": "M", "combiningmark": "M", "nonspacingmark": "Mn",
    "spacingmark": "Mc", "enclosingmark": "Me", "number": "N", "decimalnumber": "Nd", "digit": "Nd",
    "letternumber": "Nl", "othernumber": "No", "punctuation": "P", "punct": "P", "connectorpunctuation": "Pc",
    "dashpunctuation": "Pd", "openpunctuation": "Ps", "closepunctuation": "Pe", "initialpunctuation": "Pi",
    "finalpunctuation": "Pf", "otherpunctuation": "Po", "symbol": "S", "mathsymbol": "Sm", "currencysymbol": "Sc",
    "modifiersymbol": "Sk", "othersymbol": "So", "separator": "Z", "spaceseparator": "Zs", "lineseparator": "Zl",
    "paragraphseparator": "Zp", "other": "C", "control": "Cc", "cntrl": "Cc", "format": "Cf", "surrogate": "Cs",
    "privateuse": "Co", "unassigned": "Cn", "l&": "LC",
}  # fmt: skip
_SHORT_CATEGORIES = {
    short.lower(): short
    for short in (
        *("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po"),
        *("Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn", "L", "LC", "M", "N", "P", "S", "Z"),
        "C",
    )
}
_GROUPS = {"LC": ("Lu", "Ll", "Lt")}
_BINARY_NAMES = """
    alphabetic alpha asciihexdigit ahex bidicontrol bidic bidimirrored bidim caseignorable ci cased
    changeswhencasefolded cwcf changeswhencasemapped cwcm changeswhenlowercased cwl changeswhentitlecased cwt
    changeswhenuppercased cwu dash defaultignorablecodepoint di deprecated dep diacritic dia emoji emojicomponent
    ecomp emojimodifier emod emojimodifierbase ebase emojipresentation epres extendedpictographic extpict extender
    ext graphemebase grbase graphemeextend grext hexdigit hex idsbinaryoperator idsb idstrinaryoperator idst
    idcontinue idc idstart ids ideographic ideo joincontrol joinc logicalorderexception loe lowercase lower math
    noncharactercodepoint nchar patternsyntax patsyn patternwhitespace patws quotationmark qmark radical
    regionalindicator ri sentenceterminal sterm softdotted sd terminalpunctuation term unifiedideograph uideo
    uppercase upper variationselector vs whitespace wspace space xidcontinue xidc xidstart xids
"""
_BINARY = frozenset(_BINARY_NAMES.split())
"""The binary properties of ECMA-262 (table 68) by loose name; Any, ASCII and Assigned are done without a library."""


def _loose(name: str) -> str:
    return name.replace("_", "").replace("-", "").replace(" ", "").lower()


def _category(name: str) -> CharacterSet | None:
    short = _SHORT_CATEGORIES.get(name) or _LONG_CATEGORIES.get(name)
    if short is None:
        return None
    table = _categories()
    members = _GROUPS.get(short) or [key for key in table if key.startswith(short)]
    return normalise(pair for key in members for pair in table.get(key, ()))


@lru_cache(maxsize=256)
def unicode_property(name: str, where: str) -> CharacterSet:
    r"""The characters with property ``name``, the text between the braces of ``\p{..}``; names match loosely (UAX 44).

    Known are general categories (``Lu``, ``gc=Lu``), ``Any``, ``ASCII``, ``Assigned``, and, where the ``regex`` package
    can be imported, ``Script=``/``sc=``, ``Script_Extensions=``/``scx=``, ``Block=``/``blk=``, bare names as in other
    engines (``Greek``, ``IsGreek``, ``InBasicLatin``) and the binary properties of ECMA-262.  Raises `GrammarError`
    for a name that is none of these, `UnsupportedError` when the library is missing.
    """
    key, equals, value = name.replace(":", "=", 1).partition("=")
    key, value = _loose(key), _loose(value)
    found: CharacterSet | None = None
    if equals:
        if key in ("generalcategory", "gc"):
            found = _category(value)
        elif key in ("script", "sc", "scriptextensions", "scx", "block", "blk") and value.isalnum():
            found = _from_library(f"{key}={value}", where)
    elif key == "any":
        found = ANY_CHARACTER
    elif key == "ascii":
        found = ((0, 0x7F),)
    elif key == "assigned":
        found = negate(_categories()["Cn"])
    else:
        bare = key.removeprefix("is")
        found = _category(key)
        if found is None and bare in _BINARY:
            found = _from_library(bare, where)
        if found is None and key.startswith("in") and key.isalnum():
            found = _from_library(f"block={key[2:]}", where)
        if found is None and bare.isalnum():
            found = _from_library(f"script={bare}", where)
    if found is None:
        raise GrammarError(
            f"unknown Unicode property {name!r}",
            where=where,
            remedy="Use a general category (Lu, L, Nd), Script=Name, Script_Extensions=Name or a binary property.",
        )
    return found


def _from_library(query: str, where: str) -> CharacterSet | None:
    pattern = library_pattern(query, where)
    if pattern is None:
        return None
    return normalise((found.start(), found.end() - 1) for found in pattern.finditer(all_code_points()))


@lru_cache(maxsize=256)
def library_class(written: str, flags: int, where: str) -> CharacterSet:
    r"""The characters that match ``written``, a pattern for one character, by the `regex` package itself.

    Raises `GrammarError` where that package refuses it.
    """
    import regex

    # The package numbers its flags otherwise.
    own = regex.VERSION0 | (regex.IGNORECASE if flags & re.IGNORECASE else 0) | (regex.ASCII if flags & re.ASCII else 0)
    try:
        one = regex.compile(f"(?:{written})+", own)
    except regex.error as error:
        raise GrammarError(
            f"{written!r} is malformed: {error.msg}",
            where=where,
            remedy="Correct it; its notation is that of the `regex` package.",
        ) from None
    return normalise((found.start(), found.end() - 1) for found in one.finditer(all_code_points()))


def library_pattern(query: str, where: str = "") -> Any:
    """What finds runs of characters with a property in a text, None for a property that the library does not know.

    Raises `UnsupportedError` where the library is missing.
    """
    try:
        import regex  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise UnsupportedError(
            f"the Unicode property {query!r} needs the table of scripts and properties of the `regex` package",
            where=where,
            remedy="Install it: pip install regex.",
        ) from None
    try:
        return regex.compile(f"\\p{{{query}}}+", regex.VERSION1)
    except regex.error:
        return None


LAST_CASED_CODE_POINT = 0x1FFFF
"""No character above it has a case mapping (the tests check it against this interpreter's Unicode)."""
_ASCII_MATES = {0x69: (0x130, 0x131), 0x73: (0x17F,), 0x6B: (0x212A,)}
"""Python: what else than ASCII matches i, s and k when case is ignored."""
_ASCII_MATES_ECMA = {0x73: (0x17F,), 0x6B: (0x212A,)}


def _python_key(code: int) -> str:
    # re compares simple lower-case forms, and takes lower-case forms with one upper-case form for equal.  Only U+0130
    # lowers to two characters, the first of which is its simple mapping.
    return chr(code).lower()[0].upper()


def _ecma_key(code: int) -> str:
    # Simple case folding: the full folding where it is one character, else the lower case where that is one, else none.
    character = chr(code)
    for folded in (character.casefold(), character.lower()):
        if len(folded) == 1:
            return folded
    return character


@lru_cache(maxsize=2)
def _case_classes(ecma: bool) -> tuple[tuple[int, ...], ...]:
    """The classes of two or more characters that match each other when case is ignored."""
    key = _ecma_key if ecma else _python_key
    classes: dict[str, list[int]] = {}
    for code in range(LAST_CASED_CODE_POINT + 1):
        classes.setdefault(key(code), []).append(code)
    return tuple(tuple(members) for members in classes.values() if len(members) > 1)


def close_under_case(characters: CharacterSet, *, ecma: bool, ascii_only: bool = False) -> CharacterSet:
    """All characters that match some character of the set when case is ignored, by Python's rules or ECMA-262's."""
    if ascii_only:
        return normalise([*characters, *_swapped_ascii(characters)])
    if not characters or characters[-1][1] < 0x80:
        mates = [*characters, *_swapped_ascii(characters)]
        for letter, others in (_ASCII_MATES_ECMA if ecma else _ASCII_MATES).items():
            if _has(characters, letter) or _has(characters, letter - 32):
                mates.extend((other, other) for other in others)
        return normalise(mates)
    found = list(characters)
    starts = [low for low, _ in characters]
    for members in _case_classes(ecma):
        inside = 0
        for code in members:
            place = bisect_right(starts, code) - 1
            inside += place >= 0 and code <= characters[place][1]
        if 0 < inside < len(members):
            found.extend((code, code) for code in members)
    return normalise(found)


def _has(characters: CharacterSet, code: int) -> bool:
    return any(low <= code <= high for low, high in characters)


def _swapped_ascii(characters: CharacterSet) -> list[tuple[int, int]]:
    upper = [(low + 32, high + 32) for low, high in intersect(characters, ((0x41, 0x5A),))]
    return upper + [(low - 32, high - 32) for low, high in intersect(characters, ((0x61, 0x7A),))]
