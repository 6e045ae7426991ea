"""Which lexemes of a grammar may be looked for at once, and which must be: the positions of its rules.

A position is a leaf of a rule's body: a lexeme, a special token, another grammar, or the name of a rule.  After
Glushkov ("The abstract theory of automata", 1961), a rule has first positions, last ones, and those that may follow
each; returns from a rule go to all of its uses.  So what is said of lexemes that *may* stand together is at least what
can be, and what is said of those that *must* is at most that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from guided.grammar.pieces import Either, Name, Piece, Regular, Repeated, Row, Special, Text, Whole

__all__ = ["Position", "Positions"]


@dataclass(eq=False, slots=True)
class Position:
    """A leaf of a rule's body."""

    piece: Piece
    rule: str
    follow: dict[Position, set[int]] = field(default_factory=dict)
    """Those of the same rule that may come next, and what says so: repetitions by their ``id``, or 0 for a row."""
    is_last: bool = False

    def leads_to(self, positions: Iterable[Position], reason: int) -> None:
        """Add what may come next."""
        for position in positions:
            self.follow.setdefault(position, set()).add(reason)


@dataclass(slots=True)
class _Part:
    nullable: bool
    first: list[Position]
    last: list[Position]


class Positions:
    """The positions of all rules; ``start`` is the rule with which texts begin."""

    def __init__(self, bodies: Mapping[str, Piece], start: str) -> None:
        self.start = start
        self.nullable = _nullable_rules(bodies)
        self.counted: set[int] = set()
        """The repetitions that have a bound, by their ``id``."""
        self.first: dict[str, list[Position]] = {}
        self.leaves: list[Position] = []
        self.uses: dict[str, list[Position]] = {name: [] for name in bodies}
        for name, body in bodies.items():
            part = self._part(body, name)
            self.first[name] = part.first
            for position in part.last:
                position.is_last = True
        for position in self.leaves:
            if isinstance(position.piece, Name):
                self.uses[position.piece.name].append(position)
        self._initial: dict[str, frozenset[Position]] = {}
        self._after: dict[Position, frozenset[Position]] = {}

    def _part(self, piece: Piece, rule: str) -> _Part:
        match piece:
            case Row(parts):
                return self._row([self._part(part, rule) for part in parts])
            case Either(options):
                found = [self._part(option, rule) for option in options]
                first = [position for part in found for position in part.first]
                last = [position for part in found for position in part.last]
                return _Part(any(part.nullable for part in found), first, last)
            case Repeated(body, low, high):
                part = self._part(body, rule)
                if high is not None:
                    self.counted.add(id(piece))
                if high is None or high > 1:
                    for position in part.last:
                        position.leads_to(part.first, id(piece))
                return _Part(low == 0 or part.nullable, part.first, part.last)
            case _:
                leaf = Position(piece, rule)
                self.leaves.append(leaf)
                return _Part(_is_nullable(piece, self.nullable), [leaf], [leaf])

    def _row(self, parts: list[_Part]) -> _Part:
        whole = _Part(True, [], [])
        for part in parts:
            for position in whole.last:
                position.leads_to(part.first, 0)
            first = [*whole.first, *part.first] if whole.nullable else whole.first
            last = [*whole.last, *part.last] if part.nullable else part.last
            whole = _Part(whole.nullable and part.nullable, first, last)
        return whole

    def initial(self, rule: str) -> frozenset[Position]:
        """The lexemes with which a rule may begin."""
        if rule not in self._initial:
            self._initial[rule] = frozenset(self._lexemes(self.first[rule]))
        return self._initial[rule]

    def _lexemes(self, positions: Iterable[Position]) -> set[Position]:
        return {position for position in self.closure(positions) if not isinstance(position.piece, Name)}

    def closure(self, positions: Iterable[Position]) -> set[Position]:
        """The positions, and those with which the rules that they name may begin."""
        found: set[Position] = set()
        waiting = list(positions)
        while waiting:
            position = waiting.pop()
            if position not in found:
                found.add(position)
                if isinstance(position.piece, Name):
                    waiting += self.first[position.piece.name]
        return found

    def after(self, position: Position) -> frozenset[Position]:
        """The lexemes that may come after a lexeme."""
        if position not in self._after:
            next_ones: set[Position] = set()
            seen = {position}
            waiting = [position]
            while waiting:
                at = waiting.pop()
                next_ones |= at.follow.keys()
                for use in self.uses[at.rule] if at.is_last else ():
                    if use not in seen:
                        seen.add(use)
                        waiting.append(use)
            self._after[position] = frozenset(self._lexemes(next_ones))
        return self._after[position]

    def together(self) -> dict[Position, frozenset[Position]]:
        """For each position those that are looked for wherever it is, in every text."""
        groups: list[tuple[str | None, list[Position], set[Position]]] = []
        for rule, first in self.first.items():
            groups.append((rule, first, self.closure(first)))
        for leaf in self.leaves:
            # Behind the last of counted copies there is not one more.
            certain = [after for after, reasons in leaf.follow.items() if not reasons <= self.counted]
            groups.append((None, list(leaf.follow), self.closure(certain)))
        within: dict[Position, list[tuple[str | None, set[Position]]]] = {leaf: [] for leaf in self.leaves}
        for rule_or_none, members, closed in groups:
            for member in members:
                within[member].append((rule_or_none, closed))
        everything = set(self.leaves)
        found = dict.fromkeys(self.leaves, everything)
        changed = True
        while changed:
            changed = False
            for leaf in self.leaves:
                sets = [closed | self._around(rule, found) for rule, closed in within[leaf]]
                common = set.intersection(*sets) if sets else everything
                if common != found[leaf]:
                    found[leaf] = common
                    changed = True
        return {leaf: frozenset(positions) for leaf, positions in found.items()}

    def _around(self, rule: str | None, found: Mapping[Position, set[Position]]) -> set[Position]:
        """What stands with the beginning of a rule wherever it is used."""
        if rule is None or rule == self.start or not self.uses[rule]:
            return set()
        return set.intersection(*(found[use] for use in self.uses[rule]))


def _is_nullable(piece: Piece, rules: set[str]) -> bool:
    match piece:
        case Name(name):
            return name in rules
        case Regular(language):
            return language.nullable
        case Text(text):
            return not text
        case Row(parts):
            return all(_is_nullable(part, rules) for part in parts)
        case Either(options):
            return any(_is_nullable(option, rules) for option in options)
        case Repeated(body, low):
            return low == 0 or _is_nullable(body, rules)
        case Special() | Whole():
            return False
        case _:
            return False


def _nullable_rules(bodies: Mapping[str, Piece]) -> set[str]:
    found: set[str] = set()
    changed = True
    while changed:
        new = {name for name, body in bodies.items() if name not in found and _is_nullable(body, found)}
        found |= new
        changed = bool(new)
    return found
