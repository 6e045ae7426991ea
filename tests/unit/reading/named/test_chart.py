"""The derivation that is told, beside all derivations of short texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

import guided
from guided.errors import TextError
from guided.grammar.named import NamedRules, named_rules
from guided.grammar.pieces import Class, Either, Name, Piece, Repeated, Row, Text, pieces_of
from guided.reading.named.parts import named_parts
from tests.amounts import some

Path = tuple[int, ...]


@dataclass(frozen=True)
class Step:
    """A part of a rule's text, and by which choices it is come to."""

    rule: str | None
    start: int
    end: int
    path: Path


class Everything:
    """All derivations, one after the other; no part of a grammar may be empty but a rule's whole body."""

    def __init__(self, named: NamedRules, text: str) -> None:
        self.named = named
        self.text = text
        self._ends: dict[tuple[int, int], set[int]] = {}
        self.bodies: dict[tuple[int, int, Path], Piece] = {}

    def says(self, piece: Piece) -> bool:
        names = {part.name for part in pieces_of([piece]) if isinstance(part, Name)}
        seen: set[str] = set()
        while names - seen:
            name = min(names - seen)
            seen.add(name)
            names |= {p.name for p in pieces_of([self.named.definitions[name].body]) if isinstance(p, Name)}
        return bool(seen & self.named.rules.keys())

    def ends(self, piece: Piece, at: int) -> set[int]:
        """Where the piece may end that begins at a place."""
        key = (id(piece), at)
        if key not in self._ends:
            self._ends[key] = set()
            while (found := self._find(piece, at)) != self._ends[key]:
                self._ends[key] = found
        return self._ends[key]

    def _find(self, piece: Piece, at: int) -> set[int]:
        match piece:
            case Text(text):
                return {at + len(text)} if self.text.startswith(text, at) else set()
            case Class(ranges):
                fits = at < len(self.text) and any(low <= ord(self.text[at]) <= high for low, high in ranges)
                return {at + 1} if fits else set()
            case Name(name):
                return self.ends(self.named.definitions[name].body, at)
            case Row(parts):
                found = {at}
                for part in parts:
                    found = {end for place in found for end in self.ends(part, place)}
                return found
            case Either(options):
                return {end for option in options for end in self.ends(option, at)}
            case Repeated(body, low, high):
                every, found = set(), {at}
                for n in range((high if high is not None else len(self.text)) + 1):
                    every |= found if n >= low else set()
                    found = {end for place in found for end in self.ends(body, place)}
                return every
            case _:
                raise AssertionError(piece)

    def steps(self, piece: Piece, at: int, path: Path) -> Iterator[tuple[list[Step], int]]:
        """All ways to read a piece, in the order in which they are written."""
        if not self.says(piece) and not isinstance(piece, Name):
            for end in sorted(self.ends(piece, at)):
                yield [Step(None, at, end, path)], end
            return
        match piece:
            case Name(name):
                for end in sorted(self.ends(piece, at)):
                    yield [Step(name, at, end, path)], end
            case Either(options):
                for number, option in enumerate(options):
                    yield from self.steps(option, at, (*path, number))
            case Row(parts):
                yield from self.row(parts, at, path)
            case Repeated(body, 0, 1):
                yield from self.steps(body, at, (*path, 0))
                yield [], at
            case Repeated(body, low, high):
                yield from self.copies(body, low, high, at, path)

    def row(self, parts: tuple[Piece, ...], at: int, path: Path) -> Iterator[tuple[list[Step], int]]:
        if not parts:
            yield [], at
            return
        for first, place in self.steps(parts[0], at, (*path, len(parts))):
            for rest, end in self.row(parts[1:], place, path):
                yield first + rest, end

    def copies(self, body: Piece, low: int, high: int | None, at: int, path: Path) -> Iterator[tuple[list[Step], int]]:
        if high is None or high > 0:
            for place in sorted(self.ends(body, at)):
                for rest, end in self.copies(body, max(low - 1, 0), None if high is None else high - 1, place, path):
                    yield [self.copy(body, at, place, path), *rest], end
        if low == 0:
            yield [], at

    def copy(self, body: Piece, at: int, end: int, path: Path) -> Step:
        self.bodies[at, end, path] = body
        return Step("", at, end, path)

    def told(self, body: Piece, at: int, end: int) -> list[tuple[str, str]]:
        """The captures of what is to be told of a rule's body."""
        left = [steps for steps, place in self.steps(body, at, (id(body),)) if place == end]
        number = 0
        while len(left) > 1:
            assert all(len(steps) > number for steps in left)
            longest = max(steps[number].end for steps in left)
            left = [steps for steps in left if steps[number].end == longest]
            left = [steps for steps in left if steps[number].path == left[0][number].path]
            number += 1
        found: list[tuple[str, str]] = []
        for step in left[0]:
            if step.rule == "":
                found += self.told(self.bodies[step.start, step.end, step.path], step.start, step.end)
            elif step.rule is not None:
                found += self.told(self.named.definitions[step.rule].body, step.start, step.end)
                if step.rule in self.named.rules:
                    found.append((step.rule, self.text[step.start : step.end]))
        return found


LEAVES = st.sampled_from(['"a"', '"b"', "[ab]", '"ab"', "x", "y", "z"])
BODIES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(" ".join),
        st.lists(inner, min_size=2, max_size=2).map(lambda options: "(" + " | ".join(options) + ")"),
        st.tuples(inner, st.sampled_from(["+", "{2}", "{1,2}", "{2,}"])).map(lambda pair: f"({pair[0]}){pair[1]}"),
    ),
    max_leaves=5,
)


@settings(max_examples=some(400), deadline=None)
@given(BODIES, BODIES, BODIES, st.lists(st.text("ab", min_size=1, max_size=7), min_size=3, max_size=3), st.booleans())
def test_it_is_the_one_with_the_longest_parts(x: str, y: str, z: str, texts: list[str], third: bool) -> None:
    # No rule comes back to itself: x names y and z, y names z.
    y, z = y.replace("x", '"a"').replace("y", '"b"'), z.replace("x", '"a"').replace("y", "[ab]").replace("z", '"b"')
    x = x.replace("x", '"a"')
    shown = "[capture]" if third else ""
    source = f'root ::= x | y z?\nx[capture] ::= {x}\ny[capture] ::= {y} | "b"\nz{shown} ::= {z}'
    named = named_rules(guided.ebnf(source))
    assert named is not None
    for text in texts:
        everything = Everything(named, text)
        body = named.definitions["root"].body
        try:
            found = [(part.name, part.data.decode()) for part in named_parts(named, text.encode(), every=True)]
        except TextError:
            assert len(text) not in everything.ends(body, 0)
            continue
        assert found == everything.told(body, 0, len(text)), source
