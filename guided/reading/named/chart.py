"""How a text is derived by slots: a chart of all derivations, and the one of them that is told.

The chart is filled from the left, for all derivations at once (Earley, 1970; with the bookkeeping by rule and place of
Scott and Johnstone's GLL, 2010).  Of several derivations the one is told that a reader from the left takes who gives
each part as much text as can be, and of what is equally long the one that is written first.  Parts are rules that say
something or name such a rule, copies of repetitions, and the pieces between them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from guided.errors import LimitError, TextError
from guided.reading.named.slots import END_OF_TEXT, Slots, Way, WayKind

__all__ = ["MOST_STEPS", "Read", "Span", "derivation"]

MOST_STEPS = 4_000_000
"""Steps that reading a text may take: about ten seconds."""


@dataclass(frozen=True, slots=True)
class Span:
    """A leaf or a rule and its bytes of the text."""

    is_leaf: bool
    what: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Read:
    """Part of a derivation as it is read: a leaf, or a rule that begins or, where ``is_over``, ends."""

    span: Span
    is_over: bool = False


def derivation(slots: Slots, data: bytes) -> Iterator[Read]:
    """How a text is derived, from the left; each rule before its parts, and again behind them.

    Raises `TextError` for a text that is none of the grammar, `LimitError` where it takes too many steps.
    """
    chart = _Chart(slots, data)
    chart.fill()
    waiting = [Read(Span(False, 0, 0, len(data)))]
    while waiting:
        read = waiting.pop()
        yield read
        if not read.is_over and not read.span.is_leaf:
            waiting.append(Read(read.span, True))
            waiting += [Read(span) for span in reversed(chart.parts(read.span))]


class _Chart:
    """An item is a slot, the place where its rule began, and the place that it has come to, as one number."""

    def __init__(self, slots: Slots, data: bytes) -> None:
        self.slots = slots
        self.data = data
        self.width = len(data) + 1
        self.ways: list[list[Way] | None] = list(slots.ways)
        self.rule_of = list(slots.rule_of)
        self.accepts = list(slots.accepts)
        self.copies: dict[tuple[int, int], int] = {}
        """Slots between the copies of counted repetitions, by the slot before the first and the number of copies."""
        self.copied: dict[int, tuple[int, int]] = {}
        for slot in slots.counts:
            self.copies[slot, 0] = slot
            self.copied[slot] = (slot, 0)
            self.ways[slot] = None
        self.came: dict[int, list[tuple[int, int]]] = {}
        """Each item, and how it was come to: from which items, by which of the ways of their slots."""
        self.waiting: list[int] = []
        self.ends: dict[int, dict[int, int]] = {}
        """Where a rule that began somewhere may end, and as the how-manieth of all it was seen."""
        self.callers: dict[int, list[tuple[int, int, int, int]]] = {}
        self.allowed: dict[int, frozenset[int]] = {}
        self.n_ended = 0
        self.n_steps = 0
        self.furthest = 0

    # All derivations

    def fill(self) -> None:
        width, starts, ends_of_rules = self.width, self.slots.starts, self.slots.ends
        self.callers[0] = []
        self.ends[0] = {}
        self.add(starts[0], 0, 0, None)
        while self.waiting:
            item = self.waiting.pop()
            before, place = divmod(item, width)
            slot, origin = divmod(before, width)
            rule = self.rule_of[slot]
            if slot == ends_of_rules[rule]:
                self.end(rule, origin, place, item)
                continue
            for number, (kind, what, target) in enumerate(self.ways_of(slot)):
                if kind is WayKind.NOTHING:
                    self.add(target, origin, place, (item, number))
                elif kind is WayKind.LEAF:
                    found, stuck = self.slots.leaves[what].ends(self.data, place)
                    self.n_steps += stuck - place
                    self.furthest = max(self.furthest, stuck)
                    for end in found:
                        self.add(target, origin, end, (item, number))
                else:
                    self.call(what, place, (target, origin, item, number))
        if len(self.data) not in self.ends[0]:
            raise TextError(
                "the text is none of the grammar's",
                where=f"offset {len(self.data[: self.furthest].decode('utf-8', 'ignore'))}",
                remedy="Pass a whole text of the grammar.",
            )

    def call(self, rule: int, place: int, caller: tuple[int, int, int, int]) -> None:
        node = rule * self.width + place
        target, origin, item, number = caller
        if node not in self.callers:
            self.callers[node] = [caller]
            self.ends[node] = {}
            self.add(self.slots.starts[rule], place, place, None)
            return
        self.callers[node].append(caller)
        for end in list(self.ends[node]):
            self.add(target, origin, end, (item, number))

    def end(self, rule: int, origin: int, place: int, item: int) -> None:
        node = rule * self.width + origin
        within = self.slots.within[rule]
        if within is not None:
            if node not in self.allowed:
                self.allowed[node] = frozenset(within.ends(self.data, origin)[0])
            if place not in self.allowed[node]:
                return
        self.ends[node][place] = self.n_ended
        self.n_ended += 1
        for target, of_caller, caller, number in list(self.callers[node]):
            self.add(target, of_caller, place, (caller, number))

    def add(self, slot: int, origin: int, place: int, by: tuple[int, int] | None) -> None:
        self.n_steps += 1
        if self.n_steps > MOST_STEPS:
            raise LimitError(
                f"finding the parts of this text takes more than {MOST_STEPS} steps",
                remedy='Give texts one derivation each, lists as (item ",")* item, and what is regular one terminal.',
            )
        data = self.data
        bit = END_OF_TEXT if place == len(data) else 1 << data[place]
        if not self.accepts[slot] & bit:
            self.furthest = max(self.furthest, place)
            return
        item = (slot * self.width + origin) * self.width + place
        came = self.came.get(item)
        if came is None:
            came = self.came[item] = []
            self.waiting.append(item)
        if by is not None:
            came.append(by)

    def ways_of(self, slot: int) -> list[Way]:
        """The ways from a slot; those between copies of a counted repetition are made when they are come to."""
        ways = self.ways[slot]
        if ways is None:
            first, n_copies = self.copied[slot]
            counts = self.slots.counts[first]
            ways = []
            if counts.high is None or n_copies < counts.high:
                after = n_copies + 1 if counts.high is not None else min(n_copies + 1, counts.low)
                ways.append(Way(WayKind.RULE, counts.rule, self.copy(first, after)))
            if n_copies >= counts.low:
                ways.append(Way(WayKind.NOTHING, 0, counts.behind))
            self.ways[slot] = ways
        return ways

    def copy(self, first: int, n_copies: int) -> int:
        slot = self.copies.get((first, n_copies))
        if slot is None:
            slot = self.copies[first, n_copies] = len(self.ways)
            self.copied[slot] = (first, n_copies)
            self.ways.append(None)
            self.rule_of.append(self.rule_of[first])
            self.accepts.append(self.accepts[first])
        return slot

    # The derivation that is told

    def parts(self, node: Span) -> list[Span]:
        """What a rule's text is made of, one after the other."""
        first = (self.slots.starts[node.what] * self.width + node.start) * self.width + node.start
        last = (self.slots.ends[node.what] * self.width + node.start) * self.width + node.end
        onward, left = self.back_from(last, node)
        found: list[Span] = []
        item = first
        while item != last:
            options = self.options(item, last, onward)
            longest = max(option[1] % self.width for option in options)
            if longest == item % self.width:
                # Nothing more is read in this rule before its end, or only what is empty: the short way there.
                options = [option for option in options if left[option[1]] < left[item]]
            else:
                options = [option for option in options if option[1] % self.width == longest]
            span, item = options[0]
            if span is not None:
                found.append(span)
        return found

    def back_from(self, last: int, node: Span) -> tuple[dict[int, list[tuple[int, int]]], dict[int, int]]:
        """The items of a rule that lead to its end: where each leads to by which way, and in how few steps."""
        whole = (node.start, node.end)
        rivals = self.slots.around.get(node.what, frozenset())
        seen_at = self.ends[node.what * self.width + node.start][node.end]
        onward: dict[int, list[tuple[int, int]]] = {last: []}
        left = {last: 0}
        waiting = deque([last])
        while waiting:
            item = waiting.popleft()
            for before, number in self.came[item]:
                way = self.ways_of(before // self.width // self.width)[number]
                start, end = before % self.width, item % self.width
                around = way.kind is WayKind.RULE and (start, end) == whole and way.what in rivals
                if around and self.ends[way.what * self.width + start][end] >= seen_at:
                    # A rule around itself: of its derivations those are told that were there before it.
                    continue
                if before not in left:
                    left[before] = left[item] + 1
                    onward[before] = []
                    waiting.append(before)
                onward[before].append((number, item))
        return onward, left

    def options(self, item: int, last: int, onward: dict[int, list[tuple[int, int]]]) -> list[tuple[Span | None, int]]:
        """What may be read next that leads to the end of the rule, in the order in which it is written."""
        found: list[tuple[Span | None, int]] = []
        seen: set[int] = set()
        waiting = [item]
        while waiting:
            at = waiting.pop()
            if at == last:
                found.append((None, last))
            if at in seen:
                continue
            seen.add(at)
            ways = self.ways_of(at // self.width // self.width)
            further = []
            for number, after in sorted(onward[at]):
                way = ways[number]
                if way.kind is WayKind.NOTHING:
                    further.append(after)
                    continue
                is_leaf = way.kind is WayKind.LEAF
                found.append((Span(is_leaf, way.what, at % self.width, after % self.width), after))
            waiting += reversed(further)
        return found
