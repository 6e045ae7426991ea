"""How known pre-tokenizers cut a text into chunks, as an automaton over bytes with marked cuts.

A pre-tokenizer is a pattern whose matches, one after the other, are the chunks; where a chunk ends can depend on text
that is still to come (``\\s+(?!\\S)``).  So the automaton here does not find the cuts: it reads a text with the cuts
marked, and lives exactly as long as they can still be the true ones.  A text has one true marking, and the state says
what it demands of the rest: nothing, or say that the white space just cut off is followed by something else.

The patterns are GPT-2's, Llama-3's and Qwen's, by their exact text; any other is refused.  Which characters are
letters, numbers or white space is asked of the tokenizer itself, since libraries differ in their version of Unicode.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum, auto
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from guided.errors import UnsupportedError

__all__ = ["DEAD", "INITIAL", "Pattern", "Splitter", "known_pattern"]


class Kind(IntEnum):
    """What a pattern tells apart."""

    OTHER = 0
    LETTER = auto()
    S_T_M_D = auto()
    """Letters that make a contraction with the apostrophe before them."""
    R_V = auto()
    """Letters that make one with an ``e``."""
    E = auto()
    L = auto()
    NUMBER = auto()
    SPACE = auto()
    NEWLINE = auto()
    BLANK = auto()
    """White space that is neither a space nor a newline."""
    APOSTROPHE = auto()


_LETTERS = frozenset({Kind.LETTER, Kind.S_T_M_D, Kind.R_V, Kind.E, Kind.L})
_OTHERS = frozenset({Kind.OTHER, Kind.APOSTROPHE})
_WHITE = frozenset({Kind.SPACE, Kind.NEWLINE, Kind.BLANK})


@dataclass(frozen=True)
class Pattern:
    """One family of pre-tokenizers by what its members differ in."""

    newlines: bool
    """Newlines end runs of white space, follow punctuation, and any character but they and numbers may lead letters."""
    digits: int
    """Most numbers in a chunk; 0: no limit, and a space may lead them."""
    ignore_case: bool
    """Contractions of capital letters too."""


_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_MODERN = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT2 = Pattern(newlines=False, digits=0, ignore_case=False)
_PATTERNS = {
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": _GPT2,
    f"{_CONTRACTIONS}|{_MODERN % '{1,3}'}": Pattern(newlines=True, digits=3, ignore_case=True),
    f"{_CONTRACTIONS}|{_MODERN % ''}": Pattern(newlines=True, digits=1, ignore_case=True),
}


def known_pattern(pre_tokenizer: Mapping[str, Any] | None) -> Pattern:
    """The pattern of a ``pre_tokenizer`` as serialised in ``tokenizer.json``; `UnsupportedError` if it is not known."""
    match pre_tokenizer:
        case {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}:
            return _GPT2
        case {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": str(text)}, "behavior": "Isolated", "invert": False},
                {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
            ],
        } if text in _PATTERNS:
            return _PATTERNS[text]
    raise UnsupportedError(
        f"canonical tokenisation knows the pre-tokenizers of GPT-2, Llama-3 and Qwen, not {str(pre_tokenizer)[:300]}",
        remedy="Leave out canonical tokenisation for this model.",
    )


State: TypeAlias = tuple[object, ...]
"""Where in a chunk, see `_begin` and `_inside`; an element after the name is a demand or a count."""

FREE, NO_NEWLINE, LAST = "", "no newline", "last"
"""Demands on a run of white space: none; no newline before its end; to be followed by something else at once."""


def _begin(pattern: Pattern, kind: Kind, demand: str = FREE) -> State:
    """The state after the first character of a chunk."""
    if kind in _LETTERS:
        return ("letters",)
    if kind is Kind.NUMBER:
        return ("numbers", 1 if pattern.digits else 0)
    if kind is Kind.APOSTROPHE:
        return ("apostrophe",)
    if kind is Kind.OTHER:
        return ("mark",) if pattern.newlines else ("marks",)
    if kind is Kind.NEWLINE and pattern.newlines:
        return ("newline",)
    return ("space" if kind is Kind.SPACE else "blank", demand)


def _inside(pattern: Pattern, state: State, kind: Kind) -> State | None:
    """The state when ``kind`` continues the chunk; None where it cannot."""
    newline = kind is Kind.NEWLINE and pattern.newlines
    match state:
        case ("letters",):
            return state if kind in _LETTERS else None
        case ("letters", forbidden):
            return ("letters",) if kind in _LETTERS and kind is not forbidden else None
        case ("numbers", int(count)):
            if kind is not Kind.NUMBER or (pattern.digits and count == pattern.digits):
                return None
            return ("numbers", count + 1) if pattern.digits else state
        case ("apostrophe",):
            if kind is Kind.S_T_M_D:
                return ("contraction",)
            if kind in (Kind.R_V, Kind.L):
                return ("apostrophe and", Kind.E if kind is Kind.R_V else Kind.L)
            if kind in _LETTERS:
                return ("letters",) if pattern.newlines else None
            if kind in _OTHERS:
                return ("marks",)
            return ("marks and newline",) if newline else None
        case ("apostrophe and", wanted):
            if kind is wanted:
                return ("contraction",)
            return ("letters",) if kind in _LETTERS and pattern.newlines else None
        case ("mark",) | ("marks",):
            if kind in _OTHERS:
                return ("marks",)
            if newline:
                return ("marks and newline",)
            return ("letters",) if kind in _LETTERS and state == ("mark",) else None
        case ("marks and newline",):
            return state if newline else None
        case ("space" | "blank" as first, str(demand)):
            if kind in _WHITE:
                if demand == LAST or (newline and demand == NO_NEWLINE):
                    return None
                return ("newline",) if newline else ("white", demand)
            if kind in _LETTERS:
                return ("letters",) if first == "space" or pattern.newlines else None
            if kind in _OTHERS:
                return ("marks",) if first == "space" else None
            return ("numbers", 0) if first == "space" and not pattern.digits else None
        case ("white", str(demand)):
            if newline:
                return None if demand == NO_NEWLINE else ("newline",)
            return state if kind in _WHITE else None
        case ("newline",) | ("white before newline",):
            if newline:
                return ("newline",)
            return ("white before newline",) if kind in _WHITE else None
    return None  # a contraction


def _cut(pattern: Pattern, state: State, kind: Kind) -> State | None:
    """The state when a chunk ends before ``kind`` and it begins the next; None where it cannot."""
    newline = kind is Kind.NEWLINE and pattern.newlines
    match state:
        case ("contraction",) | ("start",):
            return _begin(pattern, kind)
        case ("apostrophe",) if not pattern.newlines and kind in _LETTERS:
            # "'r" is cut only where no contraction follows.
            if kind in (Kind.R_V, Kind.L):
                return ("letters", Kind.E if kind is Kind.R_V else Kind.L)
            return None if kind is Kind.S_T_M_D else ("letters",)
        case ("apostrophe and", _) if not pattern.newlines:
            return None
        case ("letters", _) if kind in _LETTERS:
            return None
        case ("space" | "blank" | "white" as name, str(demand)) if kind in _WHITE:
            # All but the last of a run, which something else must follow.
            return None if newline or (demand == LAST and name != "white") else _begin(pattern, kind, LAST)
        case ("white", _) | ("white before newline",):
            return None
        case ("newline",) if kind in _WHITE:
            # The chunk reached to the last newline of its run.
            return None if newline else _begin(pattern, kind, NO_NEWLINE)
        case _:
            # Greedy: what could have continued the chunk has.
            return None if _inside(pattern, state, kind) is not None else _begin(pattern, kind)


def _may_end(pattern: Pattern, state: State) -> bool:
    match state:
        case ("white before newline",) | ("space" | "blank", "last"):
            return False
        case ("apostrophe and", _):
            return pattern.newlines
    return True


DEAD, INITIAL = 0, 1
"""The state of a marking that is wrong, and that of a text with nothing before it: only a cut may follow."""


_FIRST = b'"a1 ,}.)]:!\n'
_USUAL = [*_FIRST, *(byte for byte in range(128) if byte not in _FIRST)]


class Splitter:
    """The automaton over bytes; states are ints, made when they are first met.

    A state stands between two bytes.  `cut` gives the state that reads the next byte as the first of a new chunk,
    the state itself reads it as part of this one.  Within a character nothing can be cut.  Only valid UTF-8 lives.
    """

    def __init__(self, pattern: Pattern, kinds: NDArray[np.uint8]) -> None:
        self.pattern = pattern
        self._kinds = kinds
        # A key is (state, cut before the next character?), or ("rest", n, state after n more continuation bytes), or
        # ("part", the state after each kind of character, the character's bytes so far).
        self._keys: list[tuple[Any, ...]] = [(), (("start",), False)]
        self._numbers: dict[tuple[Any, ...], int] = {key: number for number, key in enumerate(self._keys)}
        self.table: NDArray[np.int32] = np.full((64, 256), -1, np.int32)
        """``int32[at least n_states, 256]``: where a byte leads, -1 not known yet; replaced when it grows."""
        self.table[DEAD] = DEAD
        self._certain: dict[int, list[int]] = {}
        self._kinds_within = lru_cache(maxsize=4096)(self._kinds_of_range)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Splitter, (self.pattern, self._kinds))

    @property
    def n_states(self) -> int:
        """Number of states made so far."""
        return len(self._keys)

    def _number(self, key: tuple[Any, ...]) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._keys)
            self._keys.append(key)
            if number >= len(self.table):
                self.table = np.concatenate([self.table, np.full_like(self.table, -1)])
        return number

    def cut(self, state: int) -> int:
        """The state that reads what comes next as a new chunk; `DEAD` within a character."""
        key = self._keys[state]
        if len(key) != 2 or key[1]:
            return DEAD
        return self._number((key[0], True))

    def may_end(self, state: int) -> bool:
        """May the text end here?"""
        key = self._keys[state]
        return len(key) == 2 and not key[1] and _may_end(self.pattern, key[0])

    def is_certain_cut(self, state: int, byte: int) -> bool:
        """Is there a cut before this ASCII byte, whatever comes after it?"""
        after = self.step(self.cut(state), byte)
        return after != DEAD and after == self.step(self.cut(INITIAL), byte)

    def certain_cuts(self, state: int) -> list[int]:
        """The ASCII bytes before which there is a cut for certain, those that grammars have most coming first."""
        found = self._certain.get(state)
        if found is None:
            found = [byte for byte in _USUAL if self.is_certain_cut(state, byte)]
            self._certain[state] = found
        return found

    def step(self, state: int, byte: int) -> int:
        """The state after one more byte."""
        after = int(self.table[state, byte])
        if after < 0:
            after = self._step(self._keys[state], byte)
            self.table[state, byte] = after
        return after

    def _step(self, key: tuple[Any, ...], byte: int) -> int:
        if key[0] == "rest":
            _, n, then = key
            if byte >> 6 != 2:
                return DEAD
            return int(then) if n == 1 else self._number(("rest", n - 1, then))
        if key[0] == "part":
            _, after, read = key
        else:
            after, read = self._after_kinds(*key), b""
        read += bytes([byte])
        left = _length(read[0]) - len(read)
        if left == 0 and len(read) > 1:
            return int(after[self._kind(read)])
        results = {after[kind] for kind in self._kinds_within(read)}
        if results <= {DEAD}:
            return DEAD
        if left == 0:
            return int(results.pop())
        # What remains of the character no longer matters when all that it may become is the same; the second byte of
        # some characters is restricted (no surrogates, no overlong forms), the others are any continuation byte.
        if len(results) == 1 and (len(read) > 1 or read[0] not in b"\xe0\xed\xf0\xf4"):
            return self._number(("rest", left, results.pop()))
        return self._number(("part", after, read))

    def _after_kinds(self, state: State, cut: bool) -> tuple[int, ...]:
        """The state after a character of each kind, by the number of the kind; the last entry is for no character."""
        move = _cut if cut else _inside
        found = [None if state == ("start",) and not cut else move(self.pattern, state, kind) for kind in Kind]
        return (*(DEAD if after is None else self._number((after, False)) for after in found), DEAD)

    def _kind(self, read: bytes) -> int:
        """The kind of a whole character of two bytes or more; -1 if it is none."""
        try:
            return int(self._kinds[ord(read.decode())])
        except UnicodeDecodeError:
            return -1

    def _kinds_of_range(self, read: bytes) -> tuple[Kind, ...]:
        """The kinds of the characters whose UTF-8 begins with ``read``."""
        n = _length(read[0])
        if not n:
            return ()
        try:
            if n == 1:
                return (Kind(int(self._kinds[read[0]])),)
            low = read[0] & (0x7F >> n)
            for byte in read[1:]:
                if byte >> 6 != 2:
                    return ()
                low = low << 6 | byte & 63
        except IndexError:
            return ()
        shift = 6 * (n - len(read))
        smallest = (0, 0x80, 0x800, 0x10000)[n - 1]
        within = np.arange(max(low << shift, smallest), min((low + 1) << shift, 0x110000))
        within = within[(within < 0xD800) | (within > 0xDFFF)]
        return tuple(Kind(int(kind)) for kind in np.unique(self._kinds[within]))

    def markings(self, text: bytes) -> dict[int, tuple[int, ...]]:
        """The states that a beginning of a text may have led to, each with the offsets at which its chunks begin.

        Which of them is true depends on what follows; of a whole text, the one in which `may_end`.
        """
        at: dict[int, tuple[int, ...]] = {INITIAL: ()}
        for offset, byte in enumerate(text):
            after: dict[int, tuple[int, ...]] = {}
            for state, found in at.items():
                inside, new = self.step(state, byte), self.step(self.cut(state), byte)
                if inside:
                    after[inside] = found
                if new:
                    after[new] = (*found, offset)
            at = after
        return at

    def cuts(self, text: bytes) -> list[int]:
        """The offsets at which the chunks of a whole text begin; None of them lies within a character.

        Raises `ValueError` for bytes that are not UTF-8.
        """
        ends = [found for state, found in self.markings(text).items() if self.may_end(state)]
        if text and len(ends) != 1:
            raise ValueError(f"{text!r} is not UTF-8")
        return list(ends[0]) if text else []


ROUNDS = 12
"""Rounds of asking about characters; libraries that are one version of Unicode apart take three."""


def _length(byte: int) -> int:
    """Bytes of a character by its first one, 0 for a byte that begins none."""
    if byte < 0x80:
        return 1
    return 2 if 0xC2 <= byte < 0xE0 else 3 if 0xE0 <= byte < 0xF0 else 4 if 0xF0 <= byte < 0xF5 else 0


def read_kinds(pattern: Pattern, split: Callable[[str], list[str]]) -> NDArray[np.uint8]:
    """``uint8[0x110000]``: the `Kind` of every character, as the tokenizer's own ``split`` (text to chunks) sees it.

    Guessed from Python's tables, then checked: all supposed letters must make one chunk, and so must all others;
    characters at the edges of what does not are asked for one by one.  2.0 to 2.5 s for the tokenizers of Llama-3,
    GPT-2 and Qwen, most of it theirs; callers keep the answer on disk.  Raises `UnsupportedError` where its pattern
    does not explain how it splits.
    """
    kinds = np.zeros(0x110000, np.uint8)
    categories = np.array([unicodedata.category(character)[0] for character in map(chr, range(0x110000))])
    kinds[categories == "L"] = Kind.LETTER
    kinds[categories == "N"] = Kind.NUMBER
    white = [9, 10, 11, 12, 13, 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]
    kinds[white] = Kind.BLANK
    kinds[32] = Kind.SPACE
    kinds[[10, 13]] = Kind.NEWLINE

    def ask(code: int) -> Kind:
        character = chr(code)
        if len(split("a" + character)) == 1:
            return Kind.LETTER
        return Kind.OTHER if len(split("!" + character)) == 1 else Kind.NUMBER

    # What was seen in one chunk stays together: behind the first round, only characters at the ends of chunks are put
    # beside each other.
    edge = np.ones(0x110000, bool)
    edge[0xD800:0xE000] = False
    for _ in range(ROUNDS):
        changed = False
        for kind in (Kind.LETTER, Kind.OTHER):
            run = np.flatnonzero((kinds == kind) & edge)
            offset = 0
            chunks = split("".join(map(chr, run.tolist())))
            for chunk in chunks if len(chunks) > 1 else ():
                # One other character may lead letters; what follows in a chunk is of the last one's kind.
                first, last = ask(ord(chunk[0])), ask(ord(chunk[-1]))
                place = run[offset : offset + len(chunk)]
                changed |= first != kind or last != kind
                kinds[place] = last
                kinds[place[0]] = first
                edge[place[2:-1]] = False
                offset += len(chunk)
        if not changed:
            break
    else:
        raise UnsupportedError("the tokenizer splits characters in a way that its pattern does not explain")
    for code in np.flatnonzero(kinds == Kind.NUMBER).tolist():
        kinds[code] = ask(code)
    for kind, letters in ((Kind.S_T_M_D, "stmd"), (Kind.R_V, "rv"), (Kind.E, "e"), (Kind.L, "l")):
        kinds[[ord(letter) for letter in letters]] = kind
        if pattern.ignore_case:
            kinds[[ord(letter.upper()) for letter in letters]] = kind
    if pattern.ignore_case and split("'\u017fa")[0] == "'\u017f":
        # The long s, which is an s to some libraries when case is ignored.
        kinds[0x17F] = Kind.S_T_M_D
    kinds[ord("'")] = Kind.APOSTROPHE
    return kinds
