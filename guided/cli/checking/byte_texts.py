"""Where a text fails a grammar, character by character, without a tokenizer.

Everything here asks a constraint over the vocabulary of the 256 bytes, through its public functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from guided import tokenset
from guided.eval.byte_sampling import END, special_ids
from guided.special_bytes import SENTINEL

if TYPE_CHECKING:
    from guided.constraint.constraint import Constraint

__all__ = ["Verdict", "judge"]

MAX_NAMED = 8
"""Single characters that an expectation lists before it counts them."""


@dataclass(frozen=True)
class Verdict:
    """Whether a text is accepted; if not, the first character that cannot stand there, or the end of the text."""

    accepted: bool
    offset: int = 0
    """Characters before the place."""
    line: int = 1
    column: int = 1
    found: str = ""
    """The character at the place; empty at the end of the text."""
    expected: str = ""
    """What may stand there, character by character."""
    explanation: str = ""
    """The same in the grammar's own words."""

    @property
    def place(self) -> str:
        """``line L, column C``, from 1."""
        return f"line {self.line}, column {self.column}"


def judge(constraint: Constraint, text: str) -> Verdict:
    """Follow a text character by character to its end or to where it fails.

    The name of a special token is that token wherever the grammar asks for it.
    """
    special = {name.decode(): token for token, name in special_ids(constraint).items()}
    state = constraint.start
    offset = 0
    while offset < len(text):
        named = [name for name, token in special.items() if text.startswith(name, offset)]
        taken = next((name for name in named if constraint.advance(state, special[name])), text[offset])
        # A lone surrogate (an argument that is not UTF-8) goes in as the byte it stands for.
        after = (
            constraint.advance(state, special[taken])
            if taken in named
            else constraint.advance_bytes(state, taken.encode("utf-8", "surrogateescape"))
        )
        if not after:
            return _failed(constraint, state, text, offset)
        state = after
        offset += len(taken)
    return Verdict(True) if constraint.is_accepting(state) else _failed(constraint, state, text, len(text))


def _failed(constraint: Constraint, state: int, text: str, offset: int) -> Verdict:
    line = text.count("\n", 0, offset) + 1
    column = offset - (text.rfind("\n", 0, offset) + 1) + 1
    found = text[offset] if offset < len(text) else ""
    token = found.encode("utf-8", "surrogateescape")[0] if found else END
    # Where the first byte of a character fits and a later one does not, the byte says less than the character.
    explanation = "" if constraint.advance(state, token) else constraint.explain(state, token)
    return Verdict(False, offset, line, column, found, expected_after(constraint, state), explanation)


def expected_after(constraint: Constraint, state: int) -> str:
    """In words, what may come in a state: a text that must come, characters, or the end of the text."""
    forced = constraint.forced(state)
    if len(forced) > 1:
        return repr(forced.replace(SENTINEL, b"").decode("utf-8", "replace"))
    row = np.zeros(constraint.vocabulary.n_words, np.uint32)
    constraint.fill_mask(state, row)
    allowed = tokenset.ids(row).tolist()
    special = [f"the special token {special_ids(constraint)[token].decode()}" for token in allowed if token > END]
    ends = ["the end of the text"] if END in allowed else []
    return _joined(_named({byte for byte in allowed if byte < END}) + special + ends)


_CLASSES = (
    ("a letter", frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")),
    ("a lower-case letter", frozenset(b"abcdefghijklmnopqrstuvwxyz")),
    ("a capital letter", frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")),
    ("a digit", frozenset(b"0123456789")),
    ("a digit from 1 to 9", frozenset(b"123456789")),
    ("white space", frozenset(b" \t\n\r")),
    # What begins the white space of a plain text.
    ("white space", frozenset(b" \n\r")),
)
_SPACES = {0x20: "a space", 0x09: "a tab", 0x0A: "a new line", 0x0D: "a carriage return"}
_PRINTABLE = frozenset(range(0x20, 0x7F))


def _named(allowed: set[int]) -> list[str]:
    """Descriptions that cover exactly these bytes; bytes beyond ASCII are summed up."""
    beyond = any(byte >= 0x80 for byte in allowed)
    rest = {byte for byte in allowed if byte < 0x80}
    missing = _PRINTABLE - rest
    if beyond and len(missing) <= MAX_NAMED:
        but = f" but {_joined([_shown(byte) for byte in sorted(missing)])}" if missing else ""
        return [f"any character{but}"]
    named = []
    for name, members in _CLASSES:
        if members <= rest:
            named.append(name)
            rest -= members
    singles = sorted(rest)
    named = [_shown(byte) for byte in singles[:MAX_NAMED]] + named
    if len(singles) > MAX_NAMED:
        named.append(f"{len(singles) - MAX_NAMED} more characters")
    if beyond:
        named.append("a character beyond ASCII")
    return named


def _shown(byte: int) -> str:
    return _SPACES.get(byte) or repr(chr(byte))


def _joined(names: list[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
