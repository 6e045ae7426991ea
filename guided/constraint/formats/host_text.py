"""Where a checker is in a JSON string whose text is an internationalized host name: in the name, and in an escape."""

from __future__ import annotations

import re
from typing import NamedTuple

from guided.constraint.distinct.json_text import BACKSLASH, escaped
from guided.grammar.formats.idna_names import HostName
from guided.grammar.regular.json_text import spelled_ranges

_ESCAPE = re.compile(rb"\\u?|\\u[0-9a-f]{1,4}|\\ud[89ab][0-9a-f]{2}\\(?:u[0-9a-f]{0,4})?")
"""An escape of JSON, or the beginning of one, in lower case; those of one letter stand for nothing in names."""


class HostText(NamedTuple):
    """Immutable; equal places go on equally."""

    name: HostName
    pending: bytes
    """An escape that is not complete yet, in lower case."""

    def step(self, byte: int) -> HostText | None:
        """The place after one more byte inside the string; None where it cannot become a host name."""
        if not self.pending:
            if byte == BACKSLASH:
                return None if self.name.partial else self._begun(b"\\")
            then = self.name.step(byte)
            return None if then is None else HostText(then, b"")
        longer = (self.pending + bytes((byte,))).lower()
        if not _ESCAPE.fullmatch(longer):
            return None
        text, pending = escaped(longer)
        if pending:
            return self._begun(pending)
        name: HostName | None = self.name if text else None
        for one in text:
            name = None if name is None else name.step(one)
        return None if name is None else HostText(name, b"")

    def _begun(self, pending: bytes) -> HostText | None:
        """In an escape, where the name goes on with some character that is written so."""
        found = HostText(self.name, pending)
        return found if found.next_letter is not None else None

    @property
    def next_letter(self) -> str | None:
        """A character with which the escape that has begun may end."""
        return self.name.first_of(spelled_ranges(self.pending[1:].decode() or "u"))

    @property
    def may_end(self) -> bool:
        """May the name end here?"""
        return not self.pending and self.name.ends

    def way_out(self) -> bytes:
        """What completes the character and the name."""
        name = self.name
        begun = b""
        if self.pending:
            letter = self.next_letter
            assert letter is not None
            units = letter.encode("utf-16-be").hex()
            spelled = "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
            begun = spelled.encode()[len(self.pending) :]
        elif name.partial:
            letter = name.completed
            begun = letter.encode()[len(name.partial) :]
        else:
            return name.ending.encode()
        after = name._replace(partial=b"").read(letter)
        assert after is not None
        return begun + after.ending.encode()
