"""Ending a text soon: a depth-first search for a short text, cheapest alternatives first.

Prices of nodes say which alternative is short whatever the attribute says; actions may refuse it, and then the next is
tried.  Grammars are written so that this is rare: an action refuses only what another alternative mends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from guided.errors import LimitError
from guided.grammar.attributed.kept import Kept
from guided.grammar.attributed.lexis import Lexis, is_word_byte
from guided.grammar.attributed.nodes import (
    Action,
    Choice,
    Keyword,
    Literal,
    LiteralForm,
    Name,
    Rule,
    Seq,
    Sign,
    Star,
    Terminal,
)
from guided.grammar.attributed.threads import Place, Stack, Threads

__all__ = ["Closing"]

MOST_STEPS = 20_000
"""Nodes that one search looks at; ends of the queries of Spider take 40 to 400."""
_ENDS = 1 << 12
"""Threads whose ends are remembered."""
MOST_LEXEMES = 400
"""Lexemes of one end: what is open of a query, and tables for all names that wait for one."""


def _must_part(last: int, first: int) -> bool:
    """Does a space stand between two lexemes, by their last and first byte?"""
    if last in b" (),.;" or first in b"(),.;":
        return False
    ends_word = is_word_byte(last) or last in b"'\"`"
    begins_word = is_word_byte(first) or first in b"'\"`"
    return ends_word == begins_word


class Closing:
    """Finds ends, and keeps them by thread."""

    def __init__(self, threads: Threads, lexis: Lexis) -> None:
        self.threads = threads
        self.lexis = lexis
        self.prices = threads.prices
        self._ends: Kept[tuple[Stack | None, Any], tuple[str, ...]] = Kept(_ENDS)

    def text(self, place: Place, before: bytes) -> bytes | None:
        """A short text that ends one of the place's threads; ``before`` is the byte in front of it."""
        if place.may_end:
            return b""
        texts = [self._joined(end, before) for end in map(self._end, place.threads) if end is not None]
        return min(texts, key=lambda text: (len(text), text)) if texts else None

    def _joined(self, lexemes: tuple[str, ...], before: bytes) -> bytes:
        out = bytearray(before)
        for lexeme in lexemes:
            data = lexeme.encode("utf-8", "surrogatepass")
            if out and _must_part(out[-1], data[0]):
                out += b" "
            out += data
        return bytes(out[len(before) :])

    def _end(self, thread: tuple[Stack | None, Any]) -> tuple[str, ...] | None:
        """Lexemes that end a thread, None where the search finds none."""
        known = self._ends.get(thread)
        if known is None:
            known = self._search(thread)
            if known is not None:
                self._ends[thread] = known
        return known

    def _search(self, thread: tuple[Stack | None, Any]) -> tuple[str, ...] | None:
        path: list[str] = []
        steps = 0
        # Each entry: what is left to try at one depth, and how many lexemes were there before.
        open_: list[tuple[Iterator[tuple[Stack | None, Any, str | None]], int]] = [(iter([(*thread, None)]), 0)]
        seen: set[tuple[Stack | None, Any]] = set()
        while open_:
            tries, size = open_[-1]
            following = next(tries, None)
            if following is None:
                open_.pop()
                continue
            del path[size:]
            stack, attribute, lexeme = following
            if lexeme is not None:
                path.append(lexeme)
            if stack is None:
                return tuple(path)
            if (stack, attribute) in seen or len(path) > MOST_LEXEMES:
                continue
            seen.add((stack, attribute))
            steps += 1
            if steps > MOST_STEPS:
                raise LimitError("the end of a text is open after too many steps", remedy="Report the grammar.")
            open_.append((self._next(stack, attribute), len(path)))
        return None

    def _next(self, stack: Stack, attribute: Any) -> Iterator[tuple[Stack | None, Any, str | None]]:
        """The ways to go on from a thread, cheapest first."""
        below = stack.below
        push = self.threads.push
        match stack.node:
            case Terminal():
                for after, lexeme in self._lexemes(stack.node, attribute):
                    yield below, after, lexeme
            case Action(change):
                changed = change(attribute)
                if changed is not None:
                    yield below, changed, None
            case Seq(parts):
                for part in reversed(parts):
                    below = push(part, below)
                yield below, attribute, None
            case Choice(options, preferred):
                first = -1 if preferred is None else preferred(attribute)
                if first >= 0:
                    yield push(options[first], below), attribute, None
                for option in sorted(options, key=self.prices.of):
                    yield push(option, below), attribute, None
            case Star(item, wanted):
                ways = [(below, attribute, None), (push(item, stack), attribute, None)]
                yield from reversed(ways) if wanted is not None and wanted(attribute) else ways
            case Rule(body=body):
                assert body is not None
                yield push(body, below), attribute, None

    def _lexemes(self, terminal: Terminal, attribute: Any) -> Iterator[tuple[Any, str]]:
        match terminal:
            case Keyword(word):
                yield attribute, word.upper()
            case Sign(text):
                yield attribute, text
            case Name(kind):
                names = kind.allowed(attribute)
                for name in kind.suggested(attribute):
                    if names.free or name in names.words:
                        after = kind.after(attribute, name)
                        if after is not None:
                            yield after, self.lexis.written(name)
            case Literal(form=form, kind=kind):
                values = kind.allowed(attribute)
                if values is None:
                    yield terminal.after(attribute, ""), kind.shortest
                for value in () if values is None else sorted(values.members, key=lambda value: (len(value), value)):
                    quoted = "'" + value.replace("'", "''") + "'"
                    yield terminal.after(attribute, value), quoted if form is LiteralForm.STRING else value
