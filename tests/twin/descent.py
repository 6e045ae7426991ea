"""A second slow twin: a memoised recursive-descent recogniser for grammars without a lexer and left recursion.

Unlike the Earley twin it looks only where the text leads, so it serves grammars of a hundred thousand nodes.  It
answers membership of whole texts, not prefixes.
"""

from __future__ import annotations

from collections.abc import Iterator

from guided.grammar.ir import Body, Choice, Grammar, Lexing, Reference, Repetition, Sequence, Terminal
from guided.grammar.regular.derivative import derivative
from guided.grammar.regular.expr import Expr


class Descent:
    """Recognises texts; ``farthest`` is the offset up to which the last text could be read."""

    def __init__(self, grammar: Grammar) -> None:
        assert grammar.lexing is Lexing.NONE
        self.grammar = grammar
        self._text = b""
        self._memo: dict[tuple[int, int], frozenset[int]] = {}
        self._words: dict[tuple[Expr, int], tuple[int, ...]] = {}
        self.farthest = 0

    def accepts(self, text: bytes) -> bool:
        self._text, self._memo, self._words, self.farthest = text, {}, {}, 0
        return len(text) in self._ends(Reference(self.grammar.start), 0)

    def _ends(self, body: Body, at: int) -> frozenset[int]:
        """All places where a match of ``body`` from ``at`` may end."""
        if isinstance(body, Terminal):
            return frozenset(self._match(body.expr, at))
        key = (body.rule if isinstance(body, Reference) else id(body), at)
        if isinstance(body, Reference):
            key = (-1 - body.rule, at)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = frozenset(self._find(body, at))
        return found

    def _find(self, body: Body, at: int) -> Iterator[int]:
        if isinstance(body, Reference):
            yield from self._ends(self.grammar.rules[body.rule].body, at)
        elif isinstance(body, Choice):
            for option in body.options:
                yield from self._ends(option, at)
        elif isinstance(body, Sequence):
            places = {at}
            for part in body.parts:
                places = {end for place in places for end in self._ends(part, place)}
            yield from places
        elif isinstance(body, Repetition):
            places, count, seen = {at}, 0, set()
            while places and (body.high is None or count <= body.high):
                if count >= body.low:
                    yield from places
                    if places <= seen:
                        return
                    seen |= places
                if count and body.separator is not None:
                    places = {end for place in places for end in self._ends(body.separator, place)}
                places = {end for place in places for end in self._ends(body.body, place)}
                count += 1
        else:
            raise NotImplementedError(type(body))

    def _match(self, expr: Expr, at: int) -> tuple[int, ...]:
        key = (expr, at)
        found = self._words.get(key)
        if found is None:
            ends = [at] if expr.nullable else []
            state: Expr | None = expr
            place = at
            while place < len(self._text):
                state = derivative(state, self._text[place])  # type: ignore[arg-type]
                if state is None:
                    break
                place += 1
                if state.nullable:
                    ends.append(place)
            self.farthest = max(self.farthest, place)
            found = self._words[key] = tuple(ends)
        return found
