"""Small combinations of languages as the minimal automata that they are.

A derivative of an intersection is an intersection again, and whether anything is left of it is a search each time.
Combinations of patterns mostly have few states, so all of them are found at once here, those that lead nowhere are
dropped, and equal ones are merged.  What comes out are expressions like any others, equal languages the same ones (of
all automata made here, whatever they were made of), of which nothing need be searched again.

What makes automata large stands beside them: bounds on a text's length, and finitely many words left out.  With those
few questions need a search, since of every state it is known how long its texts are.  A combination that is too large
stays as it is, and so does what is left of it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, cast

from guided.grammar.regular.characters import ANY_CHARACTER, utf8
from guided.grammar.regular.expr import (
    EMPTY,
    EPSILON,
    Edge,
    Expr,
    Kind,
    alternation,
    complement,
    concat,
    intersection,
    is_listed,
    n_expressions,
    repeat,
    switch,
    untrack_edges,
)
from guided.grammar.regular.minimal import Row, components, distances, merged, nearest
from guided.grammar.regular.product import Formula, RawEdges, States, combines, operands_of, remember_cuts, walk_of

MAX_STATES = 500
"""States of a product before equal ones are merged; 10 to 20 microseconds each."""
MAX_EXPRESSIONS = 250
"""New expressions for the states of its operands; those of property names make below 200."""
MAX_REMEMBERED = 20_000
"""Combinations remembered with what became of them; what is forgotten is made again and found to be the same."""
ROUNDS = 3
"""Steps that states must have in common to be compared in full."""

_COMBINING = frozenset({Kind.INTERSECTION, Kind.ALTERNATION, Kind.COMPLEMENT})


class Lengths(NamedTuple):
    """How long the texts of a state are, in characters that begin: bytes that continue one do not count."""

    near: int
    """The length of a shortest text."""
    around: int | None
    """A length from which on there are texts of every length; None where none was seen."""
    infinite: bool
    text: Expr | None
    """Any characters, from the same place in a character, if all texts are made of them."""


_made: dict[Expr, Expr] = {}
_large: set[Expr] = set()
_lengths: dict[Expr, Lengths] = {}
_cycles: dict[int, list[Expr]] = {}
_lock = threading.RLock()


@lru_cache(maxsize=1)
def _any_text() -> tuple[Expr, Expr]:
    """One character, and any number of them; shared with all who write texts so."""
    character = utf8(ANY_CHARACTER)
    return character, repeat(character)


def condensed(expr: Expr, raw_edges: RawEdges) -> Expr:
    """The same language as a minimal automaton, or together with one; ``expr`` itself where that is too large."""
    if expr.kind not in _COMBINING or expr in _large:
        return expr
    if expr.kind is Kind.ALTERNATION and not combines(expr):
        return expr
    found = _made.get(expr)
    if found is None:
        with _lock:
            if not _lengths:
                _seed(raw_edges)
            found = _condense(expr, raw_edges)
            if len(_made) >= MAX_REMEMBERED:
                _made.clear()
            _made[expr] = found
    return found


def is_large(expr: Expr) -> bool:
    """Is this what is left of a combination that was too large?"""
    return expr in _large


def stay_large(edges: Sequence[Edge]) -> None:
    """What is left of a combination that was too large is not tried again."""
    if len(_large) >= MAX_REMEMBERED:
        _large.clear()
    _large.update(target for _, _, target in edges if target.kind in _COMBINING)


def decided_by_length(expr: Expr) -> bool | None:
    """Does an automaton with a bound on the length, or with words left out, hold any text?  None: not to be told."""
    if expr.kind is not Kind.INTERSECTION:
        return None
    low, high, words = 0, None, False
    known: Lengths | None = None
    runs: list[Expr] = []
    for part in cast("tuple[Expr, ...]", expr.parts):
        bounds = _counted(part)
        if bounds is not None:
            runs.append(bounds[0])
            low = max(low, bounds[1])
            high = bounds[2] if high is None else high if bounds[2] is None else min(high, bounds[2])
        elif _leaves_words_out(part):
            words = True
        elif known is None and part in _lengths:
            known = _lengths[part]
        else:
            return None
    if known is None or any(run is not known.text for run in runs):
        return None
    if high is not None and (known.near > high or low > high):
        return False
    if high is None and known.infinite:
        return True
    if words:
        return None
    if known.near >= low or (known.around is not None and (high is None or known.around <= high)):
        return True
    return None


def is_bounded(expr: Expr) -> bool:
    """Is this together with a bound on the length in characters?"""
    return expr.kind is Kind.INTERSECTION and any(map(_counted, cast("tuple[Expr, ...]", expr.parts)))


def _counted(expr: Expr) -> tuple[Expr, int, int | None] | None:
    """Of so many characters, after the rest of one: any number of them, least and most."""
    head: Expr = EPSILON
    if expr.kind is Kind.CONCAT:
        head, expr = cast("tuple[Expr, Expr]", expr.parts)
    character, text = _any_text()
    if expr.kind is not Kind.REPEAT or expr.parts[0] is not character:
        return None
    run = concat(head, text)
    low, high = cast("tuple[int, int | None]", expr.parts[1:])
    return None if run not in _lengths or (not low and high is None) else (run, low, high)


def _leaves_words_out(expr: Expr) -> bool:
    """Is this everything but finitely many words?"""
    if expr.kind is not Kind.COMPLEMENT:
        return False
    body = cast(Expr, expr.parts[0])
    items = cast("tuple[Expr, ...]", body.parts) if body.kind is Kind.ALTERNATION else (body,)
    return all(map(_is_listed, items))


def _is_listed(expr: Expr) -> bool:
    if expr.kind is Kind.CONCAT:
        head, expr = cast("tuple[Expr, Expr]", expr.parts)
        if head.kind is not Kind.LITERAL:
            return False
    return expr.kind in (Kind.LITERAL, Kind.BYTES, Kind.EPSILON) or is_listed(expr)


# -- combinations to automata ------------------------------------------------------------------------------------------


def _condense(expr: Expr, raw_edges: RawEdges) -> Expr:
    parts = cast("tuple[Expr, ...]", expr.parts)
    if expr.kind is Kind.COMPLEMENT:
        return complement(condensed(parts[0], raw_edges))
    if expr.kind is Kind.ALTERNATION:
        parts = tuple(condensed(part, raw_edges) for part in parts)
        return _automaton(alternation(parts), raw_edges)
    aside: list[Expr] = []
    inside: list[Expr] = []
    for part in parts:
        run = _counted(part)
        if run is not None:
            inside.append(run[0])
        if run is not None or _leaves_words_out(part):
            aside.append(part)
        else:
            inside.append(condensed(part, raw_edges))
    # Any text adds nothing to an automaton that is known to be of texts.
    texts = {_lengths[part].text for part in inside if part in _lengths and not _is_any(part)}
    inside = [part for part in inside if part not in texts]
    if not aside:
        return _automaton(intersection(inside), raw_edges)
    others = [part for part in inside if part not in _lengths or not _is_any(part)]
    if not others or (len(inside) == 1 and others[0].kind is Kind.COMPLEMENT):
        return expr
    if len(others) == 1 and others[0] not in _lengths and others[0].kind is not Kind.COMPLEMENT:
        # A single pattern, which is walked as it is.
        return expr
    rest = _automaton(intersection(inside), raw_edges)
    if rest is EMPTY:
        return EMPTY
    whole = intersection((rest, *aside))
    if rest in _large and whole.kind is Kind.INTERSECTION:
        _large.add(whole)
    return whole


def _is_any(expr: Expr) -> bool:
    return _lengths[expr].text is expr


def _automaton(expr: Expr, raw_edges: RawEdges) -> Expr:
    """A combination as an automaton; as it is if that would be too large."""
    if expr.kind not in _COMBINING or expr in _large:
        return expr
    found = _product(*operands_of(expr), raw_edges)
    if found is None:
        _large.add(expr)
        return expr
    return found


def _product(formula: Formula, leaves: States, raw_edges: RawEdges) -> Expr | None:
    """All states at once; None when they are too many, or are not read byte by byte."""
    walk = walk_of(leaves, raw_edges)
    if walk is None:
        return None
    most = n_expressions() + MAX_EXPRESSIONS
    numbers: dict[States, int] = {leaves: 0}
    order = [leaves]
    table: list[list[int]] = []
    for states in order:
        row = []
        for after in zip(*walk.rows(states), strict=True):
            number = numbers.get(after)
            if number is None:
                if formula.possible(after):
                    number = len(order)
                    order.append(after)
                else:
                    number = -1
                numbers[after] = number
            row.append(number)
        if len(order) > MAX_STATES or n_expressions() > most:
            return None
        table.append(row)
    accepting = list(map(formula.accepts, order))
    far = distances(table, accepting)
    if 0 not in far:
        return EMPTY
    live = list(far)
    cuts = [*walk.cuts, 256]
    labels = merged(table, far, live)
    return _expressions(table, accepting, live, labels, order, leaves, cuts)


def _expressions(
    table: list[list[int]],
    accepting: list[bool],
    live: list[int],
    labels: list[int],
    order: list[States],
    leaves: States,
    cuts: list[int],
) -> Expr:
    """The expression of the first state; all that it leads to are made, or found."""
    count = max(labels)
    some = [0] * count
    for state in live:
        some[labels[state] - 1] = state
    rows: list[Row] = []
    for state in some:
        row: Row = []
        last = -1
        for position, target in enumerate(table[state]):
            number = labels[target] - 1
            if number >= 0:
                if last == number:
                    row[-1] = (row[-1][0], cuts[position + 1] - 1, number)
                else:
                    row.append((cuts[position], cuts[position + 1] - 1, number))
            last = number
        rows.append(row)
    ends = [accepting[state] for state in some]
    together = components(rows, labels[0] - 1)
    made: dict[int, Expr] = {}
    for component in together:
        first = component[0]
        if len(component) == 1 and all(target != first for _, _, target in rows[first]):
            made[first] = switch([(low, high, made[target]) for low, high, target in rows[first]], ends[first])
        else:
            _place(component, rows, ends, made)
    text = next((i for i, leaf in enumerate(leaves) if leaf in _lengths and _is_any(leaf)), None)
    lengths = _measured(rows, ends, together)
    met = frozenset(at for row in rows for low, high, _ in row for at in (low, high + 1))
    for state, expr in made.items():
        if expr not in _lengths:
            within = None if text is None else order[some[state]][text]
            _lengths[expr] = Lengths(*lengths[state], within)
            remember_cuts(expr, met)
    return made[labels[0] - 1]


def _place(component: list[int], rows: Sequence[Row], ends: Sequence[bool], made: dict[int, Expr]) -> None:
    """The expressions of states that lead to each other: those made before for the same languages, or new ones."""
    labels = {state: int(ends[state]) for state in component}
    fixed = {target: made[target].serial for state in component for _, _, target in rows[state] if target in made}
    for _ in range(ROUNDS):
        known = {**fixed, **labels}
        labels = {
            state: hash((ends[state], *[(low, high, known[target]) for low, high, target in rows[state]]))
            for state in component
        }
    for candidate in _cycles.get(labels[component[0]], ()):
        match = _same(component[0], candidate, rows, ends, made)
        if match is not None:
            made.update(match)
            return
    for state in component:
        made[state] = Expr(Kind.RECURSION, (), ends[state], True)
    for state in component:
        _define(made[state], [(low, high, made[target]) for low, high, target in rows[state]])
        _cycles.setdefault(labels[state], []).append(made[state])


def _define(expr: Expr, edges: list[Edge]) -> None:
    body = switch(edges, expr.nullable)
    expr.parts = (body,)
    expr.edges = tuple(edges)
    untrack_edges(expr.edges)


def _same(
    first: int, candidate: Expr, rows: Sequence[Row], ends: Sequence[bool], made: dict[int, Expr]
) -> dict[int, Expr] | None:
    """Which expressions stand for the same languages as a state, and what it leads to; None when they differ."""
    match = {first: candidate}
    work = [first]
    for state in work:
        expr = match[state]
        edges = expr.edges
        if expr.nullable is not ends[state] or edges is None or len(edges) != len(rows[state]):
            return None
        for (low, high, target), (first_byte, last_byte, other) in zip(rows[state], edges, strict=True):
            if low != first_byte or high != last_byte:
                return None
            known = made.get(target) or match.get(target)
            if known is None:
                match[target] = other
                work.append(target)
            elif known is not other:
                return None
    return match


def _measured(
    rows: Sequence[Row], ends: Sequence[bool], together: list[list[int]]
) -> list[tuple[int, int | None, bool]]:
    before: list[list[tuple[int, int]]] = [[] for _ in rows]
    for state, row in enumerate(rows):
        for low, _, target in row:
            before[target].append((state, int(not 0x80 <= low < 0xC0)))
    near = nearest(before, {state: 0 for state, end in enumerate(ends) if end})
    # A character that leads back to the state can be read any number of times.
    loops = {
        state: near[state]
        for state, row in enumerate(rows)
        if any(target == state and low < 0x80 for low, _, target in row)
    }
    around = nearest(before, loops)
    infinite: set[int] = set()
    for component in together:
        first = component[0]
        if len(component) > 1 or any(target == first or target in infinite for _, _, target in rows[first]):
            infinite.update(component)
    return [(near[state], around.get(state), state in infinite) for state in range(len(rows))]


def _seed(raw_edges: RawEdges) -> None:
    """Any text, which most patterns lead to, stands for itself."""
    order = [_any_text()[1]]
    number = {order[0]: 0}
    rows: list[Row] = []
    for item in order:
        row: Row = []
        edges = tuple(raw_edges(item))
        for low, high, target in edges:
            if target not in number:
                number[target] = len(order)
                order.append(target)
            row.append((low, high, number[target]))
        untrack_edges(edges)
        item.edges = edges
        rows.append(row)
    ends = [item.nullable for item in order]
    labels = [int(end) for end in ends]
    for _ in range(ROUNDS):
        labels = [
            hash((ends[state], *[(low, high, labels[target]) for low, high, target in row]))
            for state, row in enumerate(rows)
        ]
    lengths = _measured(rows, ends, [list(range(len(rows)))])
    for state, item in enumerate(order):
        _cycles.setdefault(labels[state], []).append(item)
        _lengths[item] = Lengths(*lengths[state], item)
