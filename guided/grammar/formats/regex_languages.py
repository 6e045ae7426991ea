"""The format ``regex`` together with what else is asked of a string: lengths, exceptions, patterns; and its opposite.

General products of automata (`guided.grammar.regular.product`) want finitely many states, and those of patterns are
infinitely many.  So what is asked beside the format is followed along with it here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache
from heapq import heappop, heappush
from typing import Any, TypeAlias, cast

from guided.grammar.formats.regex_automata import FIRST_BYTES, LATER_BYTES, PLAIN, SKELETONS, Patterns, State
from guided.grammar.regular.derivative import edges, least_length
from guided.grammar.regular.expr import EMPTY, Expr
from guided.grammar.regular.stepwise import Automaton, Step, automaton_of, by_byte, stepwise

Row: TypeAlias = "Iterable[Step]"

SEARCHED = 2000
"""States in which an end is looked for; it is nearly always straight ahead.  What is not found is left out."""


class Longer:
    """Patterns of at least some length that are none of some texts: every state goes on to infinitely many patterns."""

    def __init__(self, patterns: Patterns) -> None:
        self.patterns = patterns

    def accepts(self, state: Hashable) -> bool:
        """May the pattern end here?"""
        left, texts, now = cast("tuple[int, tuple[bytes, ...], State]", state)
        return not left and b"" not in texts and self.patterns.accepts(now)

    def steps(self, state: Hashable) -> Row:
        """The bytes that may come, and where they lead."""
        left, texts, now = cast("tuple[int, tuple[bytes, ...], State]", state)
        ways = self.patterns.steps(now)
        if not left and not texts:
            for low, high, target in ways:
                yield low, high, (0, (), target)
            return
        for byte, target in by_byte(ways).items():
            missing = left - (left > 0 and not 0x80 <= byte < 0xC0)
            yield byte, byte, (missing, tuple(text[1:] for text in texts if text[:1] == bytes((byte,))), target)


class Both:
    """Texts of an automaton that are in another language too; states are led to where an end was found behind them."""

    def __init__(self, automaton: Automaton, distance: Callable[[Any], int]) -> None:
        self._automaton = automaton
        self._distance = distance
        """How far from an end a state of the automaton looks."""
        self._ends: dict[tuple[Expr, Hashable], bool] = {}

    def accepts(self, state: Hashable) -> bool:
        """May the pattern end here?"""
        language, now = cast("tuple[Expr, Hashable]", state)
        return language.nullable and self._automaton.accepts(now)

    def steps(self, state: Hashable) -> Row:
        """The bytes that may come, and where they lead."""
        for step in self._all_steps(cast("tuple[Expr, Hashable]", state)):
            if self.ends(step[2]):
                yield step

    def _all_steps(self, state: tuple[Expr, Hashable]) -> list[tuple[int, int, tuple[Expr, Hashable]]]:
        language, now = state
        row = edges(language)
        found: list[tuple[int, int, tuple[Expr, Hashable]]] = []
        at = 0
        for low, high, target in self._automaton.steps(now):
            while at < len(row) and row[at][1] < low:
                at += 1
            for first, last, after in row[at:]:
                if first > high:
                    break
                found.append((max(low, first), min(high, last), (after, target)))
        return found

    def ends(self, state: tuple[Expr, Hashable]) -> bool:
        """Is there an end behind a state?  Nearest first; remembered for all that is met."""
        found = self._ends.get(state)
        if found is not None:
            return found
        parents: dict[tuple[Expr, Hashable], tuple[Expr, Hashable] | None] = {state: None}
        queue: list[tuple[int, int, tuple[Expr, Hashable]]] = [(0, 0, state)]
        while queue and len(parents) <= SEARCHED:
            at = heappop(queue)[2]
            if self.accepts(at) or self._ends.get(at):
                walk: tuple[Expr, Hashable] | None = at
                while walk is not None:
                    self._ends[walk] = True
                    walk = parents[walk]
                return True
            if self._ends.get(at) is False:
                continue
            for _, _, target in self._all_steps(at):
                if target not in parents:
                    parents[target] = at
                    far = least_length(target[0]) + self._distance(target[1])
                    heappush(queue, (far, len(parents), target))
        self._ends.update(dict.fromkeys((state,) if queue else parents, False))
        return False


def _to_close(state: State) -> int:
    """How far from the end of a pattern a state looks."""
    kind, groups = state[:2]
    near = 0 if kind in ("term", "atom", "lazy") else 1 if kind in ("class", "items", "behind", "range", "group") else 2
    return 2 * len(groups) + near


def _to_fail(state: tuple[State | None, str]) -> int:
    """The same for the end of what is no pattern."""
    return int(state[0] is not None) + len(state[1])


class _Opposite:
    """Texts that are no skeletons: a state is one of `SKELETONS`, or None, and what of UTF-8 must follow."""

    start: tuple[State | None, str] = (SKELETONS.start, "")

    def accepts(self, state: Hashable) -> bool:
        """May the text end here?"""
        now, more = cast("tuple[State | None, str]", state)
        return not more and (now is None or not SKELETONS.accepts(now))

    def steps(self, state: Hashable) -> Row:
        """The bytes that may come, and where they lead."""
        now, more = cast("tuple[State | None, str]", state)
        ways: dict[int, Any] = {} if now is None else by_byte(SKELETONS.steps(now))
        # What is nested too deeply to be followed may be a pattern.
        unclear = (0x28,) if now is not None and SKELETONS.is_too_deep(now) else ()
        if more:
            symbols, rest = LATER_BYTES[more]
            return [(byte, byte, (ways.get(byte), rest)) for byte in symbols]
        ascii_bytes = [(byte, byte, (ways.get(byte), "")) for byte in range(0x80) if byte not in unclear]
        return ascii_bytes + [(byte, byte, (ways.get(byte), kind)) for byte, kind in sorted(FIRST_BYTES.items())]


_SKELETONS, _PLAIN, _OPPOSITE = Longer(SKELETONS), Longer(PLAIN), _Opposite()


@lru_cache(maxsize=1024)
def skeletons(low: int = 0, without: frozenset[str] = frozenset()) -> Expr:
    """The language of `SKELETONS`, of at least so many characters, less some texts; for the checker."""
    return _start(_SKELETONS, low, without)


@lru_cache(maxsize=1024)
def plain_patterns(low: int = 0, without: frozenset[str] = frozenset()) -> Expr:
    """The same of `PLAIN`, which needs no checker."""
    return _start(_PLAIN, low, without)


def _start(automaton: Longer, low: int, without: frozenset[str]) -> Expr:
    texts = tuple(sorted(text.encode("utf-8", "surrogatepass") for text in without))
    return stepwise(automaton, (low, texts, automaton.patterns.start))


@lru_cache(maxsize=1024)
def patterns_within(language: Expr) -> Expr:
    """The patterns of `PLAIN` that are in another language, with those left out for which no end is found."""
    return _within(Both(PLAIN, _to_close), (language, PLAIN.start))


@lru_cache(maxsize=1024)
def no_patterns_within(language: Expr) -> Expr:
    """The same of texts that are surely no patterns."""
    return _within(Both(_OPPOSITE, _to_fail), (language, _OPPOSITE.start))


def _within(both: Both, start: tuple[Expr, Hashable]) -> Expr:
    return stepwise(both, start) if both.ends(start) else EMPTY


@lru_cache(maxsize=1)
def no_patterns() -> Expr:
    """Texts that are surely no patterns: those that are no skeletons of patterns."""
    return stepwise(_OPPOSITE, _OPPOSITE.start)


def are_patterns(language: Expr) -> bool:
    """Are all texts of a language surely patterns?  Seen for small automata only."""
    seen: set[tuple[Expr, State]] = set()
    work = [(language, PLAIN.start)]
    while work:
        item = work.pop()
        if item in seen:
            continue
        seen.add(item)
        now = item[1]
        if len(seen) > SEARCHED or (item[0].nullable and not PLAIN.accepts(now)):
            return False
        ways = by_byte(PLAIN.steps(now))
        for low, high, target in edges(item[0]):
            for byte in range(low, high + 1):
                if byte not in ways:
                    return False
                work.append((target, cast(State, ways[byte])))
    return True


def reads_skeleton(expr: Expr) -> bool:
    """Is a language one of `skeletons`, or the rest of one?"""
    return automaton_of(expr) is _SKELETONS
