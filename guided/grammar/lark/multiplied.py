"""How large the rules and terminals become that Lark makes of a grammar.

It writes alternatives inside of sequences out: ``(a | b)~8 c?`` is 512 expansions, and Lark takes 25 us for each symbol
of them.  It writes terminals out in those that name them: of n terminals each may name the next one twice, which is
2^n.  What takes minutes is refused before.
"""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

from guided.errors import LimitError

if TYPE_CHECKING:
    from lark.load_grammar import Grammar

MOST_SYMBOLS = 10_000
"""Symbols of all expansions: 0.2 s of Lark, and as much again behind it.  Lark's own grammar of Python has 1,280."""

_UNBROKEN = 50
"""Lark writes repetitions with a lower bound than this out, others by rules of their own."""
_FACTOR = 10
"""Copies that such a rule holds at most."""


def check_size(grammar: Grammar) -> None:
    """Raise `LimitError` where the rules would become too large."""
    for name, _, tree, _ in grammar.rule_defs:
        found = _Multiplied()
        _, symbols = found.count(tree)
        if symbols + found.besides > MOST_SYMBOLS:
            raise LimitError(
                f"rule {str(name)!r} is more than {MOST_SYMBOLS} symbols when Lark has multiplied its alternatives out",
                remedy="Give the alternatives inside it, above all repeated ones, a rule of their own.",
            )


_TERMINAL = re.compile(r"^[ \t]*(?:%(?:override|extend)[ \t]+)?(_*[A-Z][_A-Z0-9]*)[^:\n]*:", re.MULTILINE)
_DEFINED = re.compile(r"^[ \t]*[!?%]*\w[^\n|]*?:|^[ \t]*%", re.MULTILINE)
_PART = re.compile(r"\b(_*[A-Z][_A-Z0-9]*)\b")


def check_terminals(text: str) -> None:
    """Raise `LimitError` where a terminal would become too large; ``text`` is the grammar without strings and patterns.

    A count over the text, since Lark writes terminals out while it reads; imported ones count as one symbol.
    """
    bodies: dict[str, dict[str, int]] = {}
    for found in _TERMINAL.finditer(text):
        following = _DEFINED.search(text, found.end())
        parts = bodies.setdefault(found[1], {})
        for part in _PART.findall(text, found.end(), following.start() if following else len(text)):
            parts[part] = parts.get(part, 0) + 1
    sizes: dict[str, int] = {}
    try:
        order = tuple(TopologicalSorter(bodies).static_order())
    except CycleError:
        return  # Lark says so
    for name in order:
        sizes[name] = 1 + sum(n * sizes[part] for part, n in bodies.get(name, {}).items())
        if sizes[name] > MOST_SYMBOLS:
            raise LimitError(
                f"terminal {name!r} is more than {MOST_SYMBOLS} symbols when Lark has written out those that it names",
                remedy="Put the parts together in a rule, in small letters.",
            )


class _Multiplied:
    """Counts of one rule; ``besides`` are the symbols of rules that Lark makes for its repetitions."""

    def __init__(self) -> None:
        self.besides = 0

    def count(self, item: Any) -> tuple[int, int]:
        """The alternatives that an item is written out to, and the symbols of all of them, up to what is too many."""
        kind = getattr(item, "data", None)
        if kind == "expansions":
            each = [self.count(child) for child in item.children]
            return _least(sum(n for n, _ in each), sum(symbols for _, symbols in each))
        if kind == "expansion":
            ways, symbols = 1, 0
            for child in item.children:
                ways, symbols = _row((ways, symbols), self.count(child))
            return ways, symbols
        if kind in ("alias", "value"):
            return self.count(item.children[0])
        if kind == "maybe":
            ways, symbols = self.count(item.children[0])
            return ways + 1, symbols
        if kind == "expr":
            return self._repeated(*item.children)
        return 1, 1

    def _repeated(self, body: Any, operator: str, *bounds: str) -> tuple[int, int]:
        ways, symbols = self.count(body)
        if operator == "?":
            return ways + 1, symbols
        if operator in ("+", "*"):
            self.besides += 2 * symbols + ways
            return 1 + (operator == "*"), 1
        low, high = int(bounds[0]), int(bounds[-1])
        if high >= _UNBROKEN:
            # Rules of a few copies each, logarithmically many.
            copies = (1, 0)
            for _ in range(_FACTOR):
                copies = _row(copies, (ways, symbols))
            self.besides += copies[1] * high.bit_length()
            return 1, 2
        total, copies = (0, 0), (1, 0)
        for n in range(high + 1):
            if n >= low:
                total = _least(total[0] + copies[0], total[1] + copies[1])
            copies = _row(copies, (ways, symbols))
        return total


def _row(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    return _least(left[0] * right[0], left[1] * right[0] + left[0] * right[1])


def _least(ways: int, symbols: int) -> tuple[int, int]:
    return min(ways, MOST_SYMBOLS + 1), min(symbols, MOST_SYMBOLS + 1)
