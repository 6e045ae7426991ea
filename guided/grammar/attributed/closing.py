"""Ending a text soon: a depth-first search for a short text, cheapest alternatives first.

Prices of nodes say which alternative is short whatever the attribute says; actions may refuse it, and then the next is
tried.  Grammars are written so that this is rare: an action refuses only what another alternative mends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

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

__all__ = ["MOST_STEPS", "Closing"]

MOST_STEPS = 100_000
"""Nodes that one search looks at; ends of the queries of Spider take 40 to 400.  Where as many names wait for FROM as
SQL lets wait, 270 of them without a source and 24 with one, it takes 54,268 on PostgreSQL."""
_SOON, _LATER = 500, 5_000
"""Steps that each thread has before any has more: one without an end may be searched for 17 s, beside one that has it
after 50 steps (a name in MySQL that ends with a space, which is the alias of a column and of no table).  Of 800 random
texts on PostgreSQL, whose places have up to 36 threads, each had an end within 500 steps of some thread."""
_ENDS = 1 << 14
"""Threads whose ends are remembered."""
MOST_LEXEMES = 4_000
"""Lexemes of one end: what is open of a query, and tables for all names that wait for one.  Where 294 names wait
that is a thousand: three a name without a source, and seven a source."""


def _must_part(last: int, first: int) -> bool:
    """Does a space stand between two lexemes, by their last and first byte?"""
    if last in b" (),.;" or first in b"(),.;":
        return False
    ends_word = is_word_byte(last) or last in b"'\"`"
    begins_word = is_word_byte(first) or first in b"'\"`"
    return ends_word == begins_word


_Thread = tuple[Stack | None, Any]


class _End(NamedTuple):
    """Lexemes that end a thread, and the nodes that a search for them looks at which knows no other ends."""

    lexemes: tuple[str, ...]
    steps: int


_NOTHING = _End((), 1)


class Closing:
    """Finds ends, and keeps them by thread.

    An end that is known counts with all steps that it took, so that what a search finds, and how many steps it counts,
    does not depend on what was searched for before (but for threads to which a search comes back).
    """

    def __init__(self, threads: Threads, lexis: Lexis) -> None:
        self.threads = threads
        self.lexis = lexis
        self.prices = threads.prices
        self._ends: Kept[_Thread, _End] = Kept(_ENDS)
        self.steps = 0
        """The steps of all searches so far."""

    def text(self, place: Place, before: bytes, most: int = MOST_STEPS) -> bytes | None:
        """A short text that ends one of the place's threads; ``before`` is the byte in front of it.

        Raises `LimitError` where none is found and the searches that go farthest come to ``most`` steps together.
        """
        if place.may_end:
            return b""
        late: LimitError | None = None
        for limit in dict.fromkeys(min(limit, most) for limit in (_SOON, _LATER, most)):
            found: list[bytes] = []
            late = None
            begun = self.steps
            for thread in place.threads:
                if limit > _LATER and (found or self.steps - begun >= most):
                    break
                try:
                    end = self._end(thread, limit)
                except LimitError as error:
                    late = error
                else:
                    found += () if end is None else (self._joined(end, before),)
            if found:
                return min(found, key=lambda text: (len(text), text))
            if late is None:
                return None
        assert late is not None
        raise late

    def _joined(self, lexemes: tuple[str, ...], before: bytes) -> bytes:
        out = bytearray(before)
        for lexeme in lexemes:
            data = lexeme.encode("utf-8", "surrogatepass")
            if out and _must_part(out[-1], data[0]):
                out += b" "
            out += data
        return bytes(out[len(before) :])

    def _end(self, thread: _Thread, most: int) -> tuple[str, ...] | None:
        """Lexemes that end a thread, None where the search finds none."""
        path: list[str] = []
        steps = 0
        # Each entry: what is left to try at one depth, lexemes and steps before it, and the thread there.
        open_: list[tuple[Iterator[tuple[Stack | None, Any, str | None]], int, int, _Thread]] = []
        seen: set[_Thread] = set()
        following: _Thread | None = thread
        while True:
            if following is not None:
                settled = self._settled(*following)
                known = None if settled is None else _NOTHING if settled[0] is None else self._ends.get(settled)
                if known is not None:
                    break
                if settled is not None and settled not in seen and len(path) <= MOST_LEXEMES:
                    seen.add(settled)
                    assert settled[0] is not None
                    open_.append((self._next(settled[0], settled[1]), len(path), steps, settled))
                steps += 1
            self._count(steps, most)
            if not open_:
                self.steps += steps
                return None
            tries, size, _, _ = open_[-1]
            del path[size:]
            taken = next(tries, None)
            if taken is None:
                open_.pop()
                following = None
                continue
            below, attribute, lexeme = taken
            if lexeme is not None:
                path.append(lexeme)
            following = (below, attribute)
        steps += known.steps
        self._count(steps, most)
        self.steps += steps
        end = (*path, *known.lexemes)
        for _, size, before, at in open_:
            self._ends[at] = _End(end[size:], steps - before)
        return end

    def _count(self, steps: int, most: int) -> None:
        """Raise where a search takes more steps than it may."""
        if steps > most:
            self.steps += most
            raise LimitError("the end of a text is open after too many steps", remedy="Report the grammar.")

    def _settled(self, stack: Stack | None, attribute: Any) -> tuple[Stack | None, Any] | None:
        """The thread behind all that leaves no choice, None where it cannot go on."""
        push = self.threads.push
        while stack is not None:
            match stack.node:
                case Action(change):
                    attribute = change(attribute)
                    if attribute is None:
                        return None
                    stack = stack.below
                case Seq(parts):
                    stack = stack.below
                    for part in reversed(parts):
                        stack = push(part, stack)
                case Rule(body=body):
                    assert body is not None
                    stack = push(body, stack.below)
                case _:
                    break
        return stack, attribute

    def _next(self, stack: Stack, attribute: Any) -> Iterator[tuple[Stack | None, Any, str | None]]:
        """The ways to go on from a thread, cheapest first."""
        below = stack.below
        push = self.threads.push
        match stack.node:
            case Choice(options, preferred):
                first = -1 if preferred is None else preferred(attribute)
                if first >= 0:
                    yield push(options[first], below), attribute, None
                for option in sorted(options, key=self.prices.of):
                    yield push(option, below), attribute, None
            case Star(item, wanted, of_use):
                ways = [(below, attribute, None), (push(item, stack), attribute, None)]
                if of_use is not None and not of_use(attribute):
                    ways.pop()
                yield from reversed(ways) if wanted is not None and wanted(attribute) else ways
            case Terminal():
                for after, lexeme in self._lexemes(stack.node, attribute):
                    yield below, after, lexeme

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
            case Literal(form=form, kind=kind, hears=hears):
                values = kind.allowed(attribute)
                if values is None:
                    yield terminal.after(attribute, ""), kind.shortest
                    return
                # What is behind one that is not heard is behind each.
                for value in values.shortest_first if hears else values.shortest_first[:1]:
                    quoted = "'" + value.replace("'", "''") + "'"
                    yield terminal.after(attribute, value), quoted if form is LiteralForm.STRING else value
