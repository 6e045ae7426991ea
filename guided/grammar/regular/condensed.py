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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from guided.grammar.regular.any_text import any_text, is_run, is_text, is_within, text_states
from guided.grammar.regular.combinations import (
    Formula,
    RawEdges,
    States,
    combines,
    is_read_by_bytes,
    lock,
    operands_of,
)
from guided.grammar.regular.expr import (
    ALL,
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
    untrack_edges,
)
from guided.grammar.regular.length_sets import has_length_between, lengths_between, tells_lengths
from guided.grammar.regular.lengths import n_symbols

if TYPE_CHECKING:
    from guided.grammar.regular.minimal import Lengths, Register


@dataclass
class Size:
    """How large a combination may be to be made an automaton."""

    states: int
    """States of the product before equal ones are merged; 2 to 5 microseconds each."""
    expressions: int
    """New expressions for the states of its operands, 20 to 100 microseconds each."""
    counted: int
    """More of them for classes that are counted."""
    symbols: int
    """Symbols of an operand, counting repetitions."""
    shrinks: bool = False
    """Is this for several together?"""

    def spend(self, states: int, expressions: int) -> None:
        """Note what one has taken."""
        if self.shrinks:
            self.states -= states
            self.expressions -= expressions


USUAL = 8
"""Operands up to which a state counts as one."""
MAX_MERGED = 1 << 21
"""Entries of a product's table up to which equal states are merged, which takes 60 bytes for each."""
AT_SIGHT = Size(4000, 250, 300, 750)
"""What is made as it is met.  The states of property names make below 200 expressions; names that are not 1 to 255
symbols take 8 ms so, and 40 otherwise; addresses have 1,000 symbols, and giving up only later takes 7 ms."""
MAX_REMEMBERED = 20_000
"""Combinations remembered with what became of them; what is forgotten is made again and found to be the same."""
_COMBINING = frozenset({Kind.INTERSECTION, Kind.ALTERNATION, Kind.COMPLEMENT})


_made: dict[Expr, Expr] = {}
_large: set[Expr] = set()
_explored: set[Expr] = set()
"""Those of the large ones that were walked through whole, so that no search in them takes more."""
_registers: list[Register] = []


def condensed(expr: Expr, raw_edges: RawEdges, size: Size = AT_SIGHT) -> Expr:
    """The same language as a minimal automaton, or together with one; ``expr`` itself where that is too large."""
    if expr.kind not in _COMBINING or (expr in _large and size is AT_SIGHT):
        return expr
    if expr.kind is Kind.ALTERNATION and not combines(expr):
        return expr
    if size is not AT_SIGHT:
        with lock:
            the_register(raw_edges)
            return _condense(expr, raw_edges, size)
    return _remembered(expr, _condense, raw_edges)


def _remembered(expr: Expr, make: Callable[[Expr, RawEdges, Size], Expr], raw_edges: RawEdges) -> Expr:
    found = _made.get(expr)
    if found is None:
        with lock:
            the_register(raw_edges)
            found = make(expr, raw_edges, AT_SIGHT)
            if len(_made) >= MAX_REMEMBERED:
                _made.clear()
            _made[expr] = found
    return found


def together(parts: Sequence[Expr], raw_edges: RawEdges) -> Sequence[Expr]:
    """The alternatives, with those that combine the same languages joined to one automaton, whose states are of each.

    That includes the ways of meeting just one of several patterns.
    """
    of: dict[frozenset[Expr], list[Expr]] = {}
    for part in parts:
        if part.kind is Kind.INTERSECTION and part not in _large:
            of.setdefault(frozenset(operands_of(part)[1]), []).append(part)
    found = list(parts)
    for leaves, group in of.items():
        # Bounds and words left out are kept apart from automata.
        if len(group) > 1 and not any(_counted(leaf, raw_edges) or _is_listed(leaf) for leaf in leaves):
            whole = alternation(group)
            small = _remembered(whole, _automaton, raw_edges)
            if small is not whole:
                found = [*(part for part in found if part not in group), small]
    return found


def is_large(expr: Expr) -> bool:
    """Is this what is left of a combination that was too large?"""
    return expr in _large


def stay_large(edges: Sequence[Edge], less_apart: Callable[[Expr], Expr], raw_edges: RawEdges) -> Sequence[Edge]:
    """What is left of a combination that was too large, less what adds nothing any more.

    It is not tried again but where it has lost what made it large, as ``less_apart`` tells.
    """
    if len(_large) >= MAX_REMEMBERED:
        _large.clear()
    found: list[Edge] = []
    for low, high, target in edges:
        left = less_apart(target)
        if left is target:
            left = without_runs(target, raw_edges)
            if left.kind in _COMBINING:
                _large.add(left)
        found.append((low, high, left))
    return found


def without_runs(expr: Expr, raw_edges: RawEdges) -> Expr:
    """An intersection without the runs in which something beside them lies anyway.

    Of a pattern and a format the pattern is mostly read up to where it says no more than that any text may come, or
    any without a line's end; from there on the format's own states are known.
    """
    if expr.kind is not Kind.INTERSECTION:
        return expr
    parts = [_less_held(cast(Expr, part), raw_edges) for part in expr.parts]
    runs = [part for part in parts if is_run(part)]
    others = [part for part in parts if part not in runs]
    if not runs or not others:
        return expr
    needed = [run for run in runs if not any(is_within(part, run, raw_edges) for part in others)]
    return expr if len(needed) == len(runs) else intersection((*others, *needed))


def _less_held(expr: Expr, raw_edges: RawEdges) -> Expr:
    """A union without what lies in a run that is part of it."""
    if expr.kind is not Kind.ALTERNATION:
        return expr
    parts = cast("tuple[Expr, ...]", expr.parts)
    run = next((part for part in parts if is_run(part)), None)
    if run is None:
        return expr
    return alternation(part for part in parts if part is run or not is_within(part, run, raw_edges))


def lengths_of(expr: Expr) -> Lengths | None:
    """How long the texts of a language are, where it is a minimal automaton."""
    found = place_of(expr)
    return None if found is None else found[0].lengths(found[1])


def place_of(expr: Expr) -> tuple[Register, int] | None:
    """The state that a minimal automaton begins with, and the register that it is in."""
    for register in reversed(_registers):
        number = register.numbers.get(expr)
        if number is not None:
            return register, number
    return None


def decided_by_length(expr: Expr, raw_edges: RawEdges) -> bool | None:
    """Does a pattern or automaton with a bound on the length, or with words left out, hold any text?

    None where that is not to be told without a search.
    """
    if expr.kind is not Kind.INTERSECTION:
        return None
    low, high, words = 0, None, False
    other: Expr | None = None
    runs: list[Expr] = []
    for part in cast("tuple[Expr, ...]", expr.parts):
        bounds = _counted(part, raw_edges)
        if bounds is not None:
            runs.append(bounds[0])
            low = max(low, bounds[1])
            high = bounds[2] if high is None else high if bounds[2] is None else min(high, bounds[2])
        elif _leaves_words_out(part):
            words = True
        elif other is not None:
            return None
        else:
            other = part
    if other is None:
        return None
    known = lengths_of(other)
    if known is None:
        if len(runs) != 1 or words or not is_text(other, runs[0], raw_edges):
            return None
        return has_length_between(other, low, high, lengths_of) or lengths_between(other, low, high, place_of)
    if any(run is not known.text for run in runs):
        return None
    if high is not None and (known.near > high or low > high):
        return False
    if high is None and known.infinite:
        return True
    if words:
        return None
    if known.near >= low or (known.around is not None and (high is None or known.around <= high)):
        return True
    return lengths_between(other, low, high, place_of)


def is_decided(expr: Expr, raw_edges: RawEdges) -> bool:
    """Is it known of every state of a language, with bounds and words left out or alone, whether it has texts?"""
    if expr in _explored or place_of(expr) is not None:
        return True
    if expr.kind is not Kind.INTERSECTION:
        return expr.kind is not Kind.COMPLEMENT or _leaves_words_out(expr)
    others, low, high = without_bounds(expr, raw_edges)
    if not others:
        return True
    if expr in _large:
        return not low and high is None and intersection(others) in _explored
    other = others[0]
    if len(others) > 1 or other.kind is Kind.COMPLEMENT or (other.kind is Kind.ALTERNATION and combines(other)):
        return False
    place = place_of(other)
    return place is None or not low or tells_lengths(*place, low, high)


def without_bounds(expr: Expr, raw_edges: RawEdges) -> tuple[list[Expr], int, int | None]:
    """What is combined in an intersection but for bounds, words left out and any text; and the bounds."""
    others: list[Expr] = []
    low, high = 0, cast("int | None", None)
    for part in cast("tuple[Expr, ...]", expr.parts):
        bounds = _counted(part, raw_edges)
        if bounds is not None:
            low = max(low, bounds[1])
            high = bounds[2] if high is None else high if bounds[2] is None else min(high, bounds[2])
        elif not _leaves_words_out(part) and not _is_any(part):
            others.append(part)
    return others, low, high


def is_bounded(expr: Expr, raw_edges: RawEdges) -> bool:
    """Is this together with a bound on the length in characters?"""
    return expr.kind is Kind.INTERSECTION and any(
        _counted(part, raw_edges) for part in cast("tuple[Expr, ...]", expr.parts)
    )


def _counted(expr: Expr, raw_edges: RawEdges) -> tuple[Expr, int, int | None] | None:
    """Of so many characters, after the rest of one: any number of them, least and most."""
    head: Expr = EPSILON
    if expr.kind is Kind.CONCAT:
        head, expr = cast("tuple[Expr, Expr]", expr.parts)
    character, text = any_text()
    if expr.kind is not Kind.REPEAT or expr.parts[0] is not character:
        return None
    run = concat(head, text)
    low, high = cast("tuple[int, int | None]", expr.parts[1:])
    return None if run not in text_states(raw_edges) or (not low and high is None) else (run, low, high)


def leaves_words_out(expr: Expr) -> bool:
    """Is one of the languages that are combined everything but finitely many words?"""
    return expr.kind is Kind.INTERSECTION and any(map(_leaves_words_out, cast("tuple[Expr, ...]", expr.parts)))


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


def _condense(expr: Expr, raw_edges: RawEdges, size: Size) -> Expr:
    parts = cast("tuple[Expr, ...]", expr.parts)
    if expr.kind is Kind.COMPLEMENT:
        return complement(condensed(parts[0], raw_edges, size))
    if expr.kind is Kind.ALTERNATION:
        parts = tuple(condensed(part, raw_edges, size) for part in parts)
        return _automaton(alternation(parts), raw_edges, size)
    aside: list[Expr] = []
    inside: list[Expr] = []
    for part in parts:
        run = _counted(part, raw_edges)
        if run is not None:
            inside.append(run[0])
        if run is not None or _leaves_words_out(part):
            aside.append(part)
        else:
            inside.append(condensed(part, raw_edges, size))
    inside = _without_texts(inside, raw_edges)
    if not aside:
        return inside[0] if len(inside) == 1 else _automaton(intersection(inside), raw_edges, size)
    others = [part for part in inside if not _is_any(part)]
    if not others or (len(inside) == 1 and others[0].kind is Kind.COMPLEMENT):
        return expr
    if len(others) == 1 and lengths_of(others[0]) is None and others[0].kind is not Kind.COMPLEMENT:
        # A single pattern, which is walked as it is.
        return expr
    rest = _automaton(intersection(inside), raw_edges, size)
    if rest is EMPTY:
        return EMPTY
    whole = intersection((rest, *aside))
    if rest in _large and whole.kind is Kind.INTERSECTION:
        _large.add(whole)
    return whole


def _without_texts(parts: list[Expr], raw_edges: RawEdges) -> list[Expr]:
    """Without any text, which adds nothing to an automaton that is known to be of texts, nor to a pattern of texts."""
    for text in filter(_is_any, parts):
        others = [part for part in parts if part is not text]
        if any((known := lengths_of(part)) is not None and known.text is text for part in others):
            parts = others
        elif len(others) == 1 and is_text(others[0], text, raw_edges):
            return others
    return parts


def _is_any(expr: Expr) -> bool:
    known = lengths_of(expr)
    return known is not None and known.text is expr


def _automaton(expr: Expr, raw_edges: RawEdges, size: Size) -> Expr:
    """A combination as an automaton; as it is if that would be too large."""
    if expr.kind not in _COMBINING or (expr in _large and size is AT_SIGHT):
        return expr
    parts = cast("tuple[Expr, ...]", expr.parts)
    # Automata are walked apart also in a union of them.
    apart = expr.kind is Kind.ALTERNATION and any(lengths_of(part) is not None for part in parts)
    found = _product(*operands_of(expr, apart), raw_edges, size)
    if found is None or found is ALL:
        _large.add(expr)
        if found is ALL:
            if len(_explored) >= MAX_REMEMBERED:
                _explored.clear()
            _explored.add(expr)
        return expr
    return found


def _product(formula: Formula, leaves: States, raw_edges: RawEdges, size: Size) -> Expr | None:
    """All states at once; None when they are too many, or are not read byte by byte, `ALL` if they are many."""
    import numpy as np

    from guided.grammar.regular import walks

    if not all(map(is_read_by_bytes, leaves)) or any(n_symbols(leaf) > size.symbols for leaf in leaves):
        return None
    walk = walks.the_walk(raw_edges)
    program, operands = formula.program(leaves)
    counted = sum([_counted_symbols(leaf) for leaf in leaves])
    before = n_expressions() + walk.read
    # A state of many operands takes as long as several.
    most = size.states * USUAL // max(len(operands), USUAL)
    found = walk.automaton(program, operands, most, size.expressions + min(counted, size.counted))
    size.spend(walk.taken, n_expressions() + walk.read - before)
    if found is None:
        return None
    if not found.accepting.any():
        return EMPTY
    if found.table.size > MAX_MERGED:
        return ALL
    register = the_register(raw_edges)
    labels, some = walks.merged(found.table, found.accepting)
    if labels[0] < 0:
        return EMPTY
    texts = np.full(some.size, -1, np.int32)
    within = found.operands[some, : max(program.wanted, 0)]
    if program.wanted < -1:
        within = found.operands[some, -2 - program.wanted, np.newaxis]
    if within.size:
        # What is within a text of any characters, by one operand, is within that.
        states, places = np.unique(within, return_inverse=True)
        of_states = np.array([register.text(walk.exprs[state]) for state in states.tolist()], np.int32)
        texts = of_states[places.reshape(within.shape)].max(axis=1)
    numbers = register.place(found.table, found.accepting, labels, some, found.cuts, texts)
    return register.expr(int(numbers[labels[0]]))


def _counted_symbols(leaf: Expr) -> int:
    """How many symbols of classes that are counted a sequence may have; each of its rests is an expression."""
    found = 0
    while leaf.kind is Kind.CONCAT:
        head, leaf = cast("tuple[Expr, Expr]", leaf.parts)
        found += _counted_symbols(head)
    if leaf.kind is Kind.REPEAT:
        body, low, high = cast("tuple[Expr, int, int | None]", leaf.parts)
        if body.kind in (Kind.BYTES, Kind.SWITCH):
            found += low if high is None else high
    return found


def the_register(raw_edges: RawEdges) -> Register:
    """The register in use: any text, which most patterns lead to, stands for itself in it."""
    if not _registers or _registers[-1].is_full:
        from guided.grammar.regular.minimal import Register

        made = Register()
        texts = text_states(raw_edges)
        number = {item: i for i, item in enumerate(texts)}
        rows = [[(low, high, number[target]) for low, high, target in edges] for edges in texts.values()]
        for item, edges in texts.items():
            untrack_edges(edges)
            item.edges = edges
        made.seed(list(texts), rows, texts=True)
        _registers.append(made)
    return _registers[-1]
