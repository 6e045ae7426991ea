"""Reading code of the C family byte by byte, as far as a monitor needs: strings, comments, numbers, dereferences.

Which marks a language has is data (`CodeDialect`); Python has a lexer of its own (`guided.monitor.python_text`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

__all__ = ["CPP", "CSHARP", "GO", "JAVA", "RUST", "TYPESCRIPT", "CodeDialect", "CodeLexical"]


class _Mode(IntEnum):
    CODE = 0
    LINE_COMMENT = 1
    BLOCK_COMMENT = 2
    STRING = 3
    LONG_STRING = 4


class _Last(IntEnum):
    """What the code before the cursor ends with."""

    OTHER = 0
    WORD = 1
    NUMBER = 2
    DEREFERENCE = 3


_ROOT = re.compile(r"(?<![\w.>:])([^\W\d]\w*)\s*\Z")

CodeLexical = tuple[int, int, bytes]
"""A mode; in code what came last, in strings the quote; and the last byte (empty behind an escape in strings)."""


@dataclass(frozen=True)
class CodeDialect:
    """The marks of one language."""

    language: str
    """Its name among language servers, such as ``java``."""
    dereferences: tuple[bytes, ...] = (b".",)
    """One or two bytes each; behind one a member is named."""
    quotes: bytes = b"'\""
    """What begins and ends strings that end with the line."""
    long_quotes: bytes = b""
    """What begins and ends strings of several lines."""
    letters: str = ""
    """ASCII characters of identifiers besides letters, digits and the underscore."""
    always: frozenset[str] = frozenset()
    """Words that may follow a dereference though no server lists them as members."""
    ranges: bool = False
    """Are two dots a range (``a..b``)?  Then a second one may follow a dot in place of a member."""
    own: frozenset[str] = frozenset({"this", "self", "super", "base"})
    """Words for an object whose class may be just being written: it may get more members below."""
    receiver: str = ""
    """A pattern whose group is another such word, as it was last declared."""
    imports: tuple[str, ...] = ("import", "package")
    """Words that begin lines in which dots name packages."""

    @property
    def start(self) -> CodeLexical:
        """Code."""
        return (_Mode.CODE, _Last.OTHER, b"")

    def may_get_more(self, text: str) -> bool:
        """Does the dereference at the end of ``text`` look directly into an object whose class is being written?"""
        mark = next((m for m in self.dereferences if text.endswith(m.decode())), b"")
        root = _ROOT.search(text[: len(text) - len(mark)])
        if root is None:
            return False
        if root.group(1) in self.own:
            return True
        declared = re.findall(self.receiver, text) if self.receiver else []
        return bool(declared) and declared[-1] == root.group(1)

    def dereferences_here(self, lexical: CodeLexical) -> bool:
        """Has a dereference just been read?"""
        return lexical[0] == _Mode.CODE and lexical[1] == _Last.DEREFERENCE

    def read(self, lexical: CodeLexical, byte: int) -> CodeLexical:
        """The lexical state after one byte."""
        mode, detail, last = lexical
        now = bytes([byte])
        if mode == _Mode.LINE_COMMENT:
            return self.start if byte == 0x0A else lexical
        if mode == _Mode.BLOCK_COMMENT:
            return self.start if last + now == b"*/" else (mode, 0, now)
        if mode in (_Mode.STRING, _Mode.LONG_STRING):
            if last == b"\\":
                return (mode, detail, b"")
            if byte == detail or (byte == 0x0A and mode == _Mode.STRING):
                return self.start
            return (mode, detail, now)
        if last + now == b"//":
            return (_Mode.LINE_COMMENT, 0, b"")
        if last + now == b"/*":
            return (_Mode.BLOCK_COMMENT, 0, b"")
        if now in self.quotes:
            return (_Mode.STRING, byte, now)
        if now in self.long_quotes:
            return (_Mode.LONG_STRING, byte, now)
        return (_Mode.CODE, self._last(detail, last, byte), now)

    def _last(self, detail: int, last: bytes, byte: int) -> int:
        if byte == 0x5F or byte >= 0x80 or chr(byte).isalnum() or chr(byte) in self.letters:
            if detail in (_Last.WORD, _Last.NUMBER):
                return detail
            return _Last.NUMBER if 0x30 <= byte <= 0x39 and detail != _Last.DEREFERENCE else _Last.WORD
        if byte == 0x2E:
            # The point of a number stays in it; several dots are a range or what spreads a list.
            if detail == _Last.NUMBER:
                return _Last.NUMBER if last != b"." else _Last.OTHER
            return _Last.DEREFERENCE if last != b"." and b"." in self.dereferences else _Last.OTHER
        return _Last.DEREFERENCE if last + bytes([byte]) in self.dereferences else _Last.OTHER


JAVA = CodeDialect("java", letters="$", always=frozenset({"class", "this", "super", "new"}))
CSHARP = CodeDialect("csharp", ranges=True, imports=("using", "namespace"))
TYPESCRIPT = CodeDialect("typescript", long_quotes=b"`", letters="$#", imports=())
GO = CodeDialect("go", long_quotes=b"`", own=frozenset(), receiver=r"\bfunc\s*\(\s*([^\W\d]\w*)\s")
# A quote alone begins a lifetime as often as a character; members may be numbers.
RUST = CodeDialect(
    "rust",
    (b".", b"::"),
    b'"',
    always=frozenset({"await", *"0123456789", "self", "super"}),
    ranges=True,
    imports=("use", "mod"),
)
CPP = CodeDialect(
    "cpp", (b".", b"->", b"::"), always=frozenset({"template", "operator"}), imports=("#include", "using")
)
