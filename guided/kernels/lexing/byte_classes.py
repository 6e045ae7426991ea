"""Classes of bytes, by which a whole subtree of the trie is kept without being walked.

If a lexer state leads back to itself on every byte of the classes that a subtree has, all tokens of the subtree stay in
that state.  The classes are those that patterns distinguish: digits, and each punctuation mark and small letter by
itself, as far as 62 bits have room.  Bytes above ASCII count only in whole characters, since a state leads back on the
character and not on each of its bytes.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_RANGES = (b"09", b"AF", b"GZ", b"jk", b"qr", b"vw", b"xz", b"\x00\x1f", b"\x7f\x7f")
_SINGLE = tuple(byte for byte in range(0x20, 0x7F) if not chr(byte).isalnum() or chr(byte) in "abcdefghilmnopstu")

TEXT = 1 << (len(_RANGES) + len(_SINGLE))
"""The class of all characters above ASCII but the next two."""

LINES = TEXT << 1
"""The class of U+2028 and U+2029, which the dot of ECMA-262 does not match."""

BROKEN = TEXT << 2
"""The class of bytes above ASCII that do not make characters; no state leads back on it."""


def _ascii_classes() -> list[tuple[int, int]]:
    """For each class of ASCII bytes its bit and the 128-bit mask of its bytes."""
    masks = [sum(1 << byte for byte in range(low, high + 1)) for low, high in _RANGES]
    masks += [1 << byte for byte in _SINGLE]
    return [(1 << number, mask) for number, mask in enumerate(masks)]


_CLASSES = _ascii_classes()


def class_of_byte() -> NDArray[np.int64]:
    """``int64[256]``: the class bit of each byte."""
    found = np.full(256, TEXT, np.int64)
    for bit, mask in _CLASSES:
        for byte in range(128):
            if mask >> byte & 1:
                found[byte] = bit
    return found


Phases: TypeAlias = tuple[tuple[tuple[int, int, int], ...], ...]

UTF8_PHASES: Phases = (
    ((0, 0x7F, 0), (0xC2, 0xDF, 1), (0xE0, 0xE0, 4), (0xE1, 0xEC, 2), (0xED, 0xED, 5), (0xEE, 0xEF, 2),
     (0xF0, 0xF0, 6), (0xF1, 0xF3, 3), (0xF4, 0xF4, 7)),
    ((0x80, 0xBF, 0),), ((0x80, 0xBF, 1),), ((0x80, 0xBF, 2),), ((0xA0, 0xBF, 1),), ((0x80, 0x9F, 1),),
    ((0x90, 0xBF, 2),), ((0x80, 0x8F, 2),),
)  # fmt: skip
"""The bytes that may come in each phase of a UTF-8 text, and the phase after: 0 between characters (RFC 3629)."""


TEXT_PHASES: Phases = (
    ((0xC2, 0xDF, 1), (0xE0, 0xE0, 4), (0xE1, 0xE1, 2), (0xE2, 0xE2, 8), (0xE3, 0xEC, 2), *UTF8_PHASES[0][4:]),
    *UTF8_PHASES[1:],
    ((0x80, 0x80, 9), (0x81, 0xBF, 1)),
    ((0x80, 0xA7, 0), (0xAA, 0xBF, 0)),
)
"""As `UTF8_PHASES`, for the characters of `TEXT` only."""

LINES_PHASES: Phases = (((0xE2, 0xE2, 1),), ((0x80, 0x80, 2),), ((0xA8, 0xA9, 0),))
"""As `UTF8_PHASES`, for the characters of `LINES` only."""


def phase_after() -> NDArray[np.uint8]:
    """``uint8[8, 256]``: the phase after a byte in each phase, 8 where the byte cannot come."""
    found = np.full((8, 256), 8, np.uint8)
    for phase, row in enumerate(UTF8_PHASES):
        for low, high, after in row:
            found[phase, low : high + 1] = after
    return found


def flat_phases(phases: Phases) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int64]]:
    """Phases as arrays: where the ranges of each begin (and those of the last end), their bytes, the phase behind."""
    rows = [row for phase in phases for row in phase]
    first = np.cumsum([0, *map(len, phases)])
    low, high, after = (np.array(column) for column in zip(*rows, strict=True))
    return first.astype(np.int64), low.astype(np.uint8), high.astype(np.uint8), after.astype(np.int64)
