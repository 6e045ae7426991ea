"""Decides whether some completion avoids every name and item already used, and finds one.

The automaton alone has no dead ends, and every array of distinct items and every object has, by the conditions of
`guided.grammar.json_schema.satisfiability.distinct`, a new value for each place that must be filled.  So a text that
can no longer become a duplicate (`guided.constraint.distinct.collisions`) can end.  One that may become a duplicate can
end exactly if some text leads it away.  That is a depth-first search, usually of one byte, and seldom done: mostly more
strings may come than are used (`guided.constraint.distinct.supply`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from guided.constraint.distinct.json_text import BACKSLASH, QUOTE, Expects, Level, Mode, Text
from guided.constraint.distinct.json_values import STRING_KEY, is_zero
from guided.constraint.distinct.spelling import Spelling
from guided.constraint.distinct.steps import Steps
from guided.constraint.distinct.supply import Supply
from guided.constraint.limits import Limits
from guided.errors import LimitError
from guided.kernels.data.layout import DEAD, FINISHED

_OPEN_MODES = frozenset((Mode.NAME, Mode.STRING, Mode.SCALAR))
_QUOTED = frozenset((Mode.NAME, Mode.STRING))
_MOST_SPACES = 128
"""States behind white space that are looked at; where it may be as long as one likes there is one."""
_SPACE = b" \t\n\r"
_LETTERS = bytes(byte for byte in range(0x20, 0x7F) if byte not in b'"\\')


class Liveness:
    """Answers for the pairs of one machine; the automaton's lock must be held."""

    def __init__(self, steps: Steps, supply: Supply, limits: Limits) -> None:
        self._steps = steps
        self._collisions = steps.collisions
        self.supply = supply
        self._spelling = None if steps.automaton.vocabulary.byte_complete else Spelling(steps, limits)
        self._most = limits.search_states
        self._alive: dict[tuple[int, Text], bool] = {}
        self._spaces: dict[int, tuple[int, ...]] = {}
        self._uniform: dict[tuple[int, Mode], bool] = {}

    def lives(self, state: int, text: Text | None, data: bytes) -> bool:
        """May some bytes come next?"""
        after, then = self._steps.read(state, text, data)
        return after != DEAD and self.goes_on(after, then)

    def goes_on(self, state: int, text: Text | None) -> bool:
        """Do some tokens lead from here to an end of the text, without repeating anything?"""
        if self._spelling is not None:
            return self._spelling.alive(state, text)
        return text is None or self._steps.only_names or self.alive(state, text)

    def alive(self, state: int, text: Text | None) -> bool:
        """Is there a text that goes on from here, repeats nothing, and ends?"""
        if text is None or not self._collisions.may_collide(text):
            return True
        if self._steps.open_names and self._collisions.is_about_names(text):
            # Only a name is in question, and of infinitely many finitely many are taken.
            return True
        if self.is_open(state, text) or self._is_open_behind_escape(state, text):
            return True
        if text.mode is Mode.BETWEEN and text.level is not None and self._is_open_between(state, text.level):
            return True
        found = self._alive.get((state, text))
        if found is None and self._outnumbers(state, text):
            found = self._alive[state, text] = True
        if found is None:
            found = self._search(state, text)
        return found

    def _outnumbers(self, state: int, text: Text) -> bool:
        """May more strings come here, as an item or a name, than begin so among those that are there?"""
        level = text.level
        if level is None or self._collisions.candidates(level):
            return False
        names = text.mode is Mode.NAME or (text.mode is Mode.BETWEEN and level.expects is Expects.NAME)
        if not (names or level.compares):
            return False
        if text.mode in (Mode.NAME, Mode.STRING):
            begun = sum(1 for _ in level.used.beginning(text.text if names else STRING_KEY + text.text))
            return self.supply.more_than(state, text.pending, begun)
        if text.mode is not Mode.BETWEEN or not (names or level.expects is Expects.VALUE):
            return False
        quote = self._steps.byte_step(state, QUOTE)
        return quote != DEAD and self.supply.more_than(quote, b"", level.used.size)

    def is_open(self, state: int, text: Text) -> bool:
        """Is there a byte that lengthens the name, string or number as often as one likes?

        Then infinitely many may come of it, and only finitely many have been seen.
        """
        if text.mode not in _OPEN_MODES or text.pending or (text.mode is Mode.SCALAR and is_zero(text.text)):
            return False
        return self.supply.is_open(state, text.mode)

    def _is_open_between(self, state: int, level: Level) -> bool:
        """The same of a value that may begin, or of what else may come in a container that is part of an item."""
        if level.expects is Expects.VALUE and self.supply.is_open_value(state):
            return True
        return level.collects and not level.compares and self.supply.is_open_container(state, level.expects)

    def _is_open_behind_escape(self, state: int, text: Text) -> bool:
        """The same behind one way to end the escape that is being read."""
        return bool(text.pending) and self.supply.is_open_string(state, text.mode, text.pending)

    def is_free(self, state: int, mode: Mode, pending: bytes, in_array: bool) -> bool:
        """As `alive` where a next item or member, or what is read of it, has just begun: whatever is there already.

        ``in_array``: does the innermost container, which gathers, hold items?  Decided by the automaton's state alone;
        wrong only where it says False.
        """
        if pending:
            return self.supply.is_open_string(state, mode, pending)
        if mode is Mode.BETWEEN:
            return self.supply.is_open_value(state) if in_array else self.supply.is_open_container(state)
        return self.supply.is_open(state, mode)

    def behind_space(self, state: int) -> tuple[int, ...]:
        """The state and those that white space leads to; none where these are too many to look at."""
        found = self._spaces.get(state)
        if found is None:
            reached = [state]
            met = {DEAD, state}
            for at in reached:
                for byte in _SPACE:
                    then = self._steps.byte_step(at, byte)
                    if then not in met:
                        met.add(then)
                        reached.append(then)
                if len(reached) > _MOST_SPACES:
                    reached.clear()
            found = self._spaces[state] = tuple(reached)
        return found

    def is_uniform(self, state: int, text: Text) -> bool:
        """Is it open, and do all digits, or all characters that need no escape, leave the automaton where it is?"""
        if not self.is_open(state, text):
            return False
        key = (state, text.mode)
        found = self._uniform.get(key)
        if found is None and text.mode is not Mode.SCALAR and self.supply.holds_any_text(state):
            found = self._uniform[key] = True
        if found is None:
            tried = b"0123456789" if text.mode is Mode.SCALAR else _LETTERS
            found = self._uniform[key] = all(self._steps.byte_step(state, byte) == state for byte in tried)
        return found

    def _search(self, state: int, text: Text) -> bool:
        steps, collisions = self._steps, self._collisions
        parents: dict[tuple[object, ...], tuple[object, ...] | None] = {}
        start = (state, *collisions.key(text))
        parents[start] = None
        pairs: list[tuple[int, Text, tuple[object, ...]]] = [(state, text, start)]
        work = [0]
        while work:
            at, now, key = pairs[work.pop()]
            known = self._alive.get((at, now))
            if known:
                self._remember(parents, key, pairs)
                return True
            if known is False:
                continue
            ending = []
            if steps.may_end(at):
                self._remember(parents, key, pairs)
                return True
            plain = now.mode in _QUOTED and not now.pending and not self.supply.needs_escape(at)
            for byte in steps.next_bytes(at):
                if plain and byte == BACKSLASH:
                    continue
                inside = steps.reader.inside(now, byte) if now.mode is not Mode.BETWEEN else None
                # Inside a name, string or number a byte needs no automaton to show that it leads away.
                if inside is not None and not collisions.may_collide(inside):
                    self._remember(parents, key, pairs)
                    return True
                ending.append(byte)
            for byte in reversed(ending):
                after, then = steps.step(at, now, byte)
                if after == DEAD:
                    continue
                if then is None or not collisions.may_collide(then):
                    self._remember(parents, key, pairs)
                    return True
                following = (after, *collisions.key(then))
                if following not in parents:
                    parents[following] = key
                    work.append(len(pairs))
                    pairs.append((after, then, following))
            if len(pairs) > self._most:
                raise LimitError(
                    f"whether a name or item can still be a new one was not decided in {len(pairs)} states",
                    remedy="Let names or items be longer or freer, or pass Limits(search_states=...).",
                )
        for at, now, _ in pairs:
            self._alive[at, now] = False
        return False

    def _remember(
        self,
        parents: dict[tuple[object, ...], tuple[object, ...] | None],
        key: tuple[object, ...] | None,
        pairs: list[tuple[int, Text, tuple[object, ...]]],
    ) -> None:
        """Everything on the way from the start is alive."""
        by_key = {key: (at, now) for at, now, key in pairs}
        while key is not None:
            self._alive[by_key[key]] = True
            key = parents[key]

    def way_out(self, state: int, text: Text, cost: Callable[[int], int] | None = None) -> bytes:
        """A short text after which nothing in progress can become a duplicate: best first by the automaton's prices.

        ``cost``: what states cost, in bytes if it is not said.  There is such a text, since no dead end is entered, so
        it is looked for as long as it takes.  Of equal ones an end comes first: where eleven strings are there, all
        that go on from the others are not looked at.  A byte that leads away at once, and no farther from the end, is
        taken without a search.
        """
        steps, collisions = self._steps, self._collisions
        cost_of = cost or steps.automaton.cost
        near = self._byte_out(state, text, cost_of)
        if near:
            return near
        costs: dict[int, int] = {}
        seen: set[tuple[object, ...]] = set()
        queue: list[tuple[int, bool, bytes, int, int]] = [(0, collisions.may_collide(text), b"", 0, state)]
        texts: list[Text | None] = [text]
        while queue:
            _, collides, written, index, at = heapq.heappop(queue)
            now = texts[index]
            if now is None or not collides:
                return written
            key = (at, *collisions.key(now))
            if key in seen:
                continue
            seen.add(key)
            for byte in steps.next_bytes(at):
                after, then = steps.step(at, now, byte)
                if after > FINISHED:
                    price = costs.get(after)
                    if price is None:
                        price = costs[after] = cost_of(after)
                    texts.append(then)
                    collides = then is not None and collisions.may_collide(then)
                    entry = (len(written) + 1 + price, collides, written + bytes((byte,)), len(texts) - 1, after)
                    heapq.heappush(queue, entry)
        raise AssertionError("a live state has a way out")

    def _byte_out(self, state: int, text: Text, cost: Callable[[int], int]) -> bytes:
        """A byte of a name, string or number with which it can be no duplicate; empty where there is none so near."""
        if text.mode not in _OPEN_MODES or text.pending:
            return b""
        steps, own = self._steps, cost(state)
        for byte in steps.next_bytes(state):
            inside = None if byte == BACKSLASH else steps.reader.inside(text, byte)
            if inside is not None and not self._collisions.may_collide(inside):
                after, then = steps.step(state, text, byte)
                if after > FINISHED and (then is None or not self._collisions.may_collide(then)) and cost(after) <= own:
                    return bytes((byte,))
        return b""
