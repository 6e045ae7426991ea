"""The rules of `NamedRules` as slots: places in rules, and the ways on from each, for a chart parser.

A way leads on by nothing, by a leaf (a regular language, or a grammar inside) or by a rule.  Of each slot it is known
with which bytes a text may go on there, so that most of what cannot come to an end is never begun.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from guided.grammar.folding import RegularParts
from guided.grammar.named import IGNORED, NamedRule, NamedRules, Peer, named_rules
from guided.grammar.pieces import Either, Name, Piece, Regular, Repeated, Row, Special, Whole, pieces_of
from guided.grammar.regular.expr import Expr, alternation, literal
from guided.reading.named.leaves import GrammarLeaf, RegularLeaf
from guided.special_bytes import special_bytes

__all__ = ["END_OF_TEXT", "Counts", "Leaf", "Slots", "Way", "WayKind", "slots_of"]

END_OF_TEXT = 1 << 256
"""Beside the bits of the bytes that may come next: the text may end."""
Leaf: TypeAlias = "RegularLeaf | GrammarLeaf"


class WayKind(IntEnum):
    """What a way reads."""

    NOTHING = 0
    LEAF = 1
    RULE = 2


class Way(NamedTuple):
    """``what`` is the number of the leaf or rule."""

    kind: WayKind
    what: int
    target: int


@dataclass(frozen=True, slots=True)
class Counts:
    """A slot between the copies of a counted repetition: the rule of its body, and the slot behind all."""

    rule: int
    low: int
    high: int | None
    behind: int


class Slots:
    """The slots of a grammar; rule 0 is where texts begin."""

    def __init__(self, named: NamedRules) -> None:
        self.ways: list[list[Way]] = []
        self.rule_of: list[int] = []
        self.counts: dict[int, Counts] = {}
        """Slots before the first copy; of these the ways are those of any number of copies."""
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.said: list[NamedRule | None] = []
        self.within: list[RegularLeaf | None] = []
        self.leaves: list[Leaf] = []
        self._bodies: list[tuple[_Group, Piece]] = []
        self._rule = 0
        self._is_silent = False
        """Says nothing in the rule that is read anything of its text?"""
        self._groups: dict[int, _Group] = {}
        self._regular: dict[tuple[int, bool], int] = {}
        self._grammars: dict[int, int] = {}
        self._whole(named)
        while self._rule < len(self._bodies):
            group, body = self._bodies[self._rule]
            self._is_silent = not group.says(body)
            self.ends.append(self._slot())
            self.starts.append(self._entry(group, body, self.ends[-1]))
            self._rule += 1
        opens, may_end = _openings(self)
        follow = _follow(self, opens, may_end)
        self.accepts = [
            found | (follow[rule] if ends else 0)
            for found, ends, rule in zip(opens, may_end, self.rule_of, strict=True)
        ]
        """Of each slot the bytes that may come next there, and `END_OF_TEXT`, as a bit set; perhaps too many."""
        self.around = _around(self, may_end)
        """Rules that may be all the text of another, which may be all of theirs: each with all such others."""

    # From pieces to slots

    def _slot(self, ways: Sequence[Way] = ()) -> int:
        self.ways.append(list(ways))
        self.rule_of.append(self._rule)
        return len(self.ways) - 1

    def _whole(self, named: NamedRules) -> int:
        """The first rule of a grammar."""
        group = self._groups.get(id(named))
        if group is None:
            group = self._groups[id(named)] = _Group(named)
        return self._named(group, named.start)

    def _named(self, group: _Group, name: str) -> int:
        rule = group.numbers.get(name)
        if rule is None:
            named = group.named
            language = named.within.get(name)
            body = named.definitions[name].body
            if language is not None and not group.says(body):
                body, language = Regular(language, name), None
            within = None if language is None else RegularLeaf(language)
            rule = group.numbers[name] = self._add(group, body, named.rules.get(name), within)
        return rule

    def _add(self, group: _Group, body: Piece, said: NamedRule | None, within: RegularLeaf | None) -> int:
        self._bodies.append((group, body))
        self.said.append(said)
        self.within.append(within)
        return len(self._bodies) - 1

    def _entry(self, group: _Group, piece: Piece, target: int) -> int:
        """The slot before a piece, behind which the target comes."""
        language = group.language(piece)
        if language is not None:
            ignored = group.named.peer is Peer.LLGUIDANCE and isinstance(piece, Regular) and piece.label == IGNORED
            return self._slot([Way(WayKind.LEAF, self._leaf(RegularLeaf(language, ignored)), target)])
        if isinstance(piece, (Row, Either, Repeated)) and not self._is_silent and not group.says(piece):
            # What says nothing is one part, whether it is regular or not.
            return self._slot([Way(WayKind.RULE, self._add(group, piece, None, None), target)])
        match piece:
            case Name(name):
                return self._slot([Way(WayKind.RULE, self._named(group, name), target)])
            case Row(parts):
                for part in reversed(parts):
                    target = self._entry(group, part, target)
                return target
            case Either(options):
                return self._slot([_nothing(self._entry(group, option, target)) for option in options])
            case Repeated(body, low, high):
                return self._repeated(group, body, low, high, target)
            case Special(names):
                spelled = alternation([literal(special_bytes(name)) for name in names])
                return self._slot([Way(WayKind.LEAF, self._leaf(RegularLeaf(spelled)), target)])
            case Whole(grammar):
                inside = named_rules(grammar)
                if inside is not None:
                    return self._slot([Way(WayKind.RULE, self._whole(inside), target)])
                number = self._grammars.get(id(grammar))
                if number is None:
                    self.leaves.append(GrammarLeaf(grammar))
                    number = self._grammars[id(grammar)] = len(self.leaves) - 1
                return self._slot([Way(WayKind.LEAF, number, target)])
            case _:
                raise AssertionError("texts, classes and patterns are regular")

    def _leaf(self, leaf: RegularLeaf) -> int:
        key = (leaf.language.serial, leaf.is_ignored)
        if key not in self._regular:
            self._regular[key] = len(self.leaves)
            self.leaves.append(leaf)
        return self._regular[key]

    def _repeated(self, group: _Group, body: Piece, low: int, high: int | None, target: int) -> int:
        """Copies of a body, each a part of its own."""
        if (low, high) == (0, 1):
            return self._slot([_nothing(self._entry(group, body, target)), _nothing(target)])
        rule = self._add(group, body, None, None)
        between = self._slot()
        self.ways[between] += [Way(WayKind.RULE, rule, between), _nothing(target)]
        if high is not None or low > 1:
            self.counts[between] = Counts(rule, low, high, target)
        elif low:
            return self._slot([Way(WayKind.RULE, rule, between)])
        return between


class _Group:
    """The rules of one grammar, of which others may be inside."""

    def __init__(self, named: NamedRules) -> None:
        self.named = named
        self.numbers: dict[str, int] = {}
        self._speaking = _speaking(named)
        silent = {
            name: definition
            for name, definition in named.definitions.items()
            if name not in named.rules and name not in named.within and not _shows_ignored(named.peer, definition.body)
        }
        self._parts = RegularParts(silent)

    def language(self, piece: Piece) -> Expr | None:
        """The language of a piece that says nothing inside; None where it is none or not regular."""
        if not isinstance(piece, Regular) and _shows_ignored(self.named.peer, piece):
            return None
        return self._parts.language(piece)

    def says(self, piece: Piece) -> bool:
        """Does any rule that it names say something, or one below?"""
        for part in pieces_of([piece]):
            if isinstance(part, Name) and part.name in self._speaking:
                return True
            if _says_whole(part):
                return True
        return False


def _speaking(named: NamedRules) -> set[str]:
    """The rules that say something of their texts, and all that name such."""
    callers: dict[str, list[str]] = {name: [] for name in named.definitions}
    found = set(named.rules)
    for name, definition in named.definitions.items():
        for part in pieces_of([definition.body]):
            if isinstance(part, Name):
                callers[part.name].append(name)
            elif _says_whole(part):
                found.add(name)
    waiting = list(found)
    while waiting:
        for caller in callers[waiting.pop()]:
            if caller not in found:
                found.add(caller)
                waiting.append(caller)
    return found


def _says_whole(piece: Piece) -> bool:
    """Is it a grammar inside that names parts?"""
    inside = named_rules(piece.grammar) if isinstance(piece, Whole) else None
    return inside is not None and bool(inside.rules)


def _shows_ignored(peer: Peer, piece: Piece) -> bool:
    """Is there ignored text in it, of which it matters where it is?"""
    return peer is Peer.LLGUIDANCE and any(
        isinstance(part, Regular) and part.label == IGNORED for part in pieces_of([piece])
    )


def _nothing(target: int) -> Way:
    return Way(WayKind.NOTHING, 0, target)


def _openings(slots: Slots) -> tuple[list[int], list[bool]]:
    """Of each slot with which bytes what is left of its rule may begin, and whether it may be empty."""
    n = len(slots.ways)
    firsts = [(leaf.first, leaf.may_be_empty) for leaf in slots.leaves]
    opens, may_end = [0] * n, [False] * n
    for end in slots.ends:
        may_end[end] = True

    def read(way: Way) -> tuple[int, bool]:
        """With what a way may begin, and may it read nothing?"""
        if way.kind is WayKind.NOTHING:
            return 0, True
        if way.kind is WayKind.LEAF:
            return firsts[way.what]
        start = slots.starts[way.what]
        return opens[start], may_end[start]

    changed = True
    while changed:
        changed = False
        for slot in range(n):
            found, ends = opens[slot], may_end[slot]
            for way in slots.ways[slot]:
                first, is_nothing = read(way)
                found |= first
                if is_nothing:
                    found |= opens[way.target]
                    ends |= may_end[way.target]
            if (found, ends) != (opens[slot], may_end[slot]):
                opens[slot], may_end[slot] = found, ends
                changed = True
    return opens, may_end


def _follow(slots: Slots, opens: list[int], may_end: list[bool]) -> list[int]:
    """What may come behind each rule."""
    follow = [0] * len(slots.starts)
    follow[0] = END_OF_TEXT
    calls = [
        (way.what, way.target, slots.rule_of[slot])
        for slot, ways in enumerate(slots.ways)
        for way in ways
        if way.kind is WayKind.RULE
    ]
    changed = True
    while changed:
        changed = False
        for rule, target, caller in calls:
            found = follow[rule] | opens[target] | (follow[caller] if may_end[target] else 0)
            if found != follow[rule]:
                follow[rule] = found
                changed = True
    return follow


def _around(slots: Slots, may_end: list[bool]) -> dict[int, frozenset[int]]:
    alone: dict[int, set[int]] = {}
    for rule, start in enumerate(slots.starts):
        waiting, seen = [start], {start}
        while waiting:
            for way in slots.ways[waiting.pop()]:
                if way.kind is WayKind.RULE and may_end[way.target]:
                    alone.setdefault(rule, set()).add(way.what)
                empty = (
                    way.kind is WayKind.NOTHING
                    or (way.kind is WayKind.LEAF and slots.leaves[way.what].may_be_empty)
                    or (way.kind is WayKind.RULE and may_end[slots.starts[way.what]])
                )
                if empty and way.target not in seen:
                    seen.add(way.target)
                    waiting.append(way.target)
    below: dict[int, set[int]] = {}
    for rule, inside in alone.items():
        below[rule], left = set(), list(inside)
        while left:
            other = left.pop()
            if other not in below[rule]:
                below[rule].add(other)
                left += alone.get(other, ())
    return {
        rule: frozenset(other for other in found if rule in below.get(other, ()))
        for rule, found in below.items()
        if rule in found
    }


@lru_cache(maxsize=32)
def slots_of(named: NamedRules) -> Slots:
    """Those of a grammar, remembered while texts of it are read."""
    return Slots(named)
