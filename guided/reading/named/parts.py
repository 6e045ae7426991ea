"""The named parts of a text of `NamedRules`: what XGrammar and llguidance call its captures.

Both engines tell of every rule that they came to the end of, also of beginnings and of what turned out not to be so.
Here the text is whole, and one derivation of it is told (`guided.reading.named.chart`).
"""

from __future__ import annotations

from dataclasses import dataclass

from guided.grammar.named import Ending, NamedRule, NamedRules, Peer
from guided.reading.named.chart import Read, derivation
from guided.reading.named.leaves import RegularLeaf
from guided.reading.named.slots import Slots, slots_of

__all__ = ["NamedPart", "named_parts", "names_of"]


@dataclass(frozen=True, slots=True)
class NamedPart:
    """A part of a text: its bytes, and where in the text they are; hidden markers inside are left out of ``data``."""

    name: str
    data: bytes
    start: int
    end: int


def names_of(named: NamedRules) -> list[str]:
    """The names that parts of its texts can have."""
    said = [rule for rule in slots_of(named).said if rule is not None]
    names = [name for rule in said for name in (rule.name, rule.marker_name) if name is not None]
    return list(dict.fromkeys(names))


def named_parts(named: NamedRules, data: bytes, *, every: bool = False) -> list[NamedPart]:
    """All parts of a text, by their ends, inner ones first.

    ``every``: of XGrammar's, also those of a rule that begins where a longer one of the same rule does.  Raises
    `TextError` for what is no text of the grammar, `LimitError` for one with too many derivations.
    """
    slots = slots_of(named)
    keeps_all = every or named.peer is Peer.LLGUIDANCE
    reading = _Reading(slots, data, named.peer is Peer.LLGUIDANCE, keeps_all)
    for read in derivation(slots, data):
        reading.take(read)
    return [part for part in reading.found if part is not None]


class _Reading:
    """A derivation from the left; ``joins``: ignored text belongs to the lexeme behind it, and else to its rule."""

    def __init__(self, slots: Slots, data: bytes, joins: bool, keeps_all: bool) -> None:
        self.slots = slots
        self.data = data
        self.joins = joins
        self.keeps_all = keeps_all
        self.found: list[NamedPart | None] = []
        self.behind = 0
        """Where the last lexeme ended."""
        self.starts: list[int] = []
        """Of the rules that are open."""
        self.hidden: list[tuple[int, int]] = []
        self.longest: dict[tuple[int, int], int] = {}
        """Where in ``found`` the last part of a rule is that began at a place."""

    def take(self, read: Read) -> None:
        span = read.span
        if span.is_leaf:
            if not self.slots.leaves[span.what].is_ignored:
                self.behind = span.end
                if self.starts and self.starts[-1] < 0:
                    self.starts[-1] = span.start
            return
        said = self.slots.said[span.what]
        if said is None:
            return
        if not read.is_over:
            is_apart = said.is_lexeme or said.ending is not None
            # Of a lexeme of its own the text begins with its first leaf.
            self.starts.append(-1 if is_apart and self.joins else self.behind if self.joins else span.start)
            return
        start = self.starts.pop()
        end = self.behind if self.joins else span.end
        self.close(span.what, said, end if start < 0 else start, max(start, end))

    def close(self, rule: int, said: NamedRule, start: int, end: int) -> None:
        if said.ending is not None:
            marker = self.marker(said.ending, start, end)
            if said.marker_name is not None and marker < end:
                self.add(rule, said.marker_name, marker, end, is_marker=True)
            if said.ending.is_hidden and marker < end:
                self.hidden.append((marker, end))
            end = marker
        if said.name is not None:
            self.add(rule, said.name, start, end)

    def add(self, rule: int, name: str, start: int, end: int, is_marker: bool = False) -> None:
        shown = []
        at = start
        for low, high in self.hidden:
            if start <= low and high <= end:
                shown.append(self.data[at:low])
                at = high
                end = low if high == end else end
        shown.append(self.data[at:end])
        if not self.keeps_all and not is_marker:
            before = self.longest.get((rule, start))
            if before is not None:
                self.found[before] = None
            self.longest[rule, start] = len(self.found)
        self.found.append(NamedPart(name, b"".join(shown), start, end))

    def marker(self, ending: Ending, start: int, end: int) -> int:
        """Where the marker begins: XGrammar takes the longest, llguidance the shortest; the end where there is none."""
        if ending.body is None or ending.marker is None:
            return max(start, end - ending.n_bytes)
        text = self.data[start:end]
        places = RegularLeaf(ending.body).ends(text, 0)[0]
        marker = RegularLeaf(ending.marker)
        for place in reversed(places) if self.joins else places:
            if marker.matches(text[place:]):
                return start + place
        return end
