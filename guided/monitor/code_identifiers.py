"""`code_identifiers`: behind a dereference in code of any language only names that its language server lists.

The sibling of `guided.monitor.python_identifiers` for languages that are known by their marks alone
(`guided.monitor.code_text`).  The server is asked in place, once about the text as it stands and once with a name and
the missing closing brackets behind the cursor, and the answers are united.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from guided.monitor.analyses import Analyses, Engine, Statistics
from guided.monitor.code_text import CodeDialect
from guided.monitor.interface import Monitor
from guided.monitor.names import IdentifierBytes, Names, Verdict

__all__ = ["CodeIdentifiers", "code_identifiers"]

_OPENING, _CLOSING = b"([{", b")]}"
_ENDS = ")]}>\"'`?!"
"""What an expression with members may end with besides a letter or digit; ``a?.b`` and ``a!.b`` are TypeScript."""


class CodeIdentifiers(Monitor):
    """See `code_identifiers`."""

    context_start: Hashable = b""

    def __init__(self, analyses: Analyses, dialect: CodeDialect) -> None:
        self.analyses = analyses
        self.dialect = dialect
        self.trigger_bytes = bytes({mark[-1] for mark in dialect.dereferences})
        self._alphabet = IdentifierBytes.of(dialect.letters)
        self._known: dict[tuple[frozenset[str], bytes], Names] = {}

    def __repr__(self) -> str:
        return f"{self.dialect.language} identifiers ({self.analyses.what})"

    @property
    def statistics(self) -> Statistics:
        """Counts of questions, answers and failures."""
        return self.analyses.statistics

    @property
    def notes(self) -> tuple[str, ...]:
        """Failures of the server so far."""
        return self.analyses.notes

    @property
    def lexical_start(self) -> Hashable:
        """Code."""
        return self.dialect.start

    def read(self, lexical: Any, byte: int) -> Hashable:
        """See `CodeDialect.read`."""
        return self.dialect.read(lexical, byte)

    def triggers(self, lexical: Any) -> bool:
        """Behind a dereference."""
        return self.dialect.dereferences_here(lexical)

    def follow(self, context: Any, lexical: Any, byte: int, position: int) -> Any:
        """The open brackets."""
        if lexical[0] != self.dialect.start[0]:
            return context
        if byte in _OPENING:
            return context + bytes([byte])
        return context[:-1] if byte in _CLOSING else context

    def screen(self, text: bytes, context: Any) -> Callable[[bytes], bool]:
        """Looks at what stands before the dereference."""
        tail = text[-200:].decode("utf-8", "replace")
        return lambda prefix: self._may_have_members(tail + prefix.decode("utf-8", "replace"))

    def _may_have_members(self, text: str) -> bool:
        mark = next((m for m in self.dialect.dereferences if text.endswith(m.decode())), b".")
        before = text[: len(text) - len(mark)].rstrip()[-1:]
        return bool(before) and (before == "_" or before.isalnum() or before in _ENDS or before in self.dialect.letters)

    def analyse(self, text: bytes, context: Any) -> Verdict | None:
        """The members, or None."""
        decoded = text.decode("utf-8", "replace")
        line = decoded.rpartition("\n")[2].split()
        if (line and line[0] in self.dialect.imports) or not self._may_have_members(decoded[-200:]):
            return None
        if self.dialect.may_get_more(decoded):
            return None
        found = self.analyses.complete(decoded) or frozenset()
        closers = "".join(chr(_CLOSING[_OPENING.index(byte)]) for byte in reversed(context))
        found |= self.analyses.complete(decoded, "_" + closers) or frozenset()
        if not found:
            return None
        # Behind "a." a second dot makes a range; behind "a::" nothing but a name can come.
        instead = b"." if self.dialect.ranges and text.endswith(b".") else b""
        names = self._known.get((found, instead))
        if names is None:
            names = Names.of(found | self.dialect.always, self._alphabet, instead=instead)
            self._known[found, instead] = names
        return names.begin() if names.names else None


def code_identifiers(
    engine: Callable[[], Engine], dialect: CodeDialect, *, seconds: float = 30.0, required: bool = False
) -> CodeIdentifiers:
    """A monitor for code of a language: behind a dereference come only members that its language server lists there.

    ``engine`` starts the server, see `guided.monitor.language_server.language_server`; ``dialect`` is one of
    `guided.monitor.code_text`, or your own.  Nothing is demanded in strings, comments and lines of imports, behind
    numbers, directly behind ``this`` and its like, whose class may be still being written, and where the server lists
    nothing.  ``seconds`` is the time for one question; what comes too late is not
    known, or raised if ``required``, as for `python_identifiers`.  Use it with `guided.monitor.monitor.monitored`.
    """
    return CodeIdentifiers(Analyses(engine, f"the {dialect.language} language server", seconds, required), dialect)
