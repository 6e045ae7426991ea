"""A Lark grammar's LALR(1) parse table as `LalrTables`, unless the grammar has conflicts.

Lark resolves shift/reduce conflicts silently as shifts, and reduce/reduce conflicts by rule priority; the table's
language is then smaller than the grammar's, so such a table is not used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from guided.grammar.lark.lalr import Automaton, build
from guided.grammar.lark.terminals import Terminals
from guided.grammar.lexing import LalrTables


def read_tables(
    rules: Sequence[Any], start: str, terminals: Terminals, nonterminals: Mapping[str, int], shifts: bool = False
) -> LalrTables | str:
    """The parse table, its states numbered from the start; or, in words, the conflict that forbids one.

    ``nonterminals`` numbers the rules' names.  Raises `LimitError` for a grammar whose table is too large.
    """
    names = [*nonterminals, *sorted({str(s.name) for rule in rules for s in rule.expansion if s.is_term})]
    number = {name: index for index, name in enumerate(names)}
    n_names = len(nonterminals)
    plain = [(number[str(rule.origin.name)], tuple(number[str(s.name)] for s in rule.expansion)) for rule in rules]
    automaton = build(plain, number[start], n_names, len(names) - n_names)
    names.append("$END")
    conflict = _conflict(automaton, plain, names, n_names, shifts)
    return conflict or _convert(automaton, plain, number[start], names, n_names, terminals)


def _conflict(
    automaton: Automaton,
    rules: Sequence[tuple[int, tuple[int, ...]]],
    names: Sequence[str],
    n_names: int,
    shifts: bool,
) -> str | None:
    """The first conflict by name."""
    found = []
    for moves, reduces in zip(automaton.moves, automaton.reduces, strict=True):
        shifted = sum(1 << (symbol - n_names) for symbol in moves if symbol >= n_names)
        once = twice = 0
        for terminals in reduces.values():
            twice |= once & terminals
            once |= terminals
        for terminal in _bits(twice if shifts else twice | (once & shifted)):
            kind = "reduce/reduce" if twice >> terminal & 1 else "shift/reduce"
            where = sorted({names[rules[rule][0]] for rule, before in reduces.items() if before >> terminal & 1})
            found.append(f"{kind} conflict on {names[n_names + terminal]} in {', '.join(where)}")
    return min(found) if found else None


def _bits(number: int) -> list[int]:
    return [bit for bit in range(number.bit_length()) if number >> bit & 1]


def _convert(
    automaton: Automaton,
    rules: Sequence[tuple[int, tuple[int, ...]]],
    start: int,
    names: Sequence[str],
    n_names: int,
    terminals: Terminals,
) -> LalrTables:
    n_terminals = len(names) - n_names - 1
    end = len(terminals.items)
    shift: list[dict[int, int]] = []
    reduce: list[dict[int, int]] = []
    accepts: list[tuple[int, ...]] = []
    for moves, reduces in zip(automaton.moves, automaton.reduces, strict=True):
        actions = {terminal: (False, rule) for rule, before in reduces.items() for terminal in _bits(before)}
        actions |= {symbol - n_names: (True, target) for symbol, target in moves.items() if symbol >= n_names}
        shifts: dict[int, int] = {}
        reductions: dict[int, int] = {}
        candidates = set(terminals.ignore)
        for terminal, (shifts_it, target) in sorted(actions.items()):
            row = shifts if shifts_it else reductions
            if terminal == n_terminals:
                row[end] = target
                continue
            index = terminals.index[names[n_names + terminal]]
            candidates.add(index)
            if index not in terminals.ignore:
                row[index] = target
            if (phantom := terminals.phantoms.get(index)) is not None:
                row[phantom] = target
        shift.append(shifts)
        reduce.append(reductions)
        phantoms = [phantom for original, phantom in terminals.phantoms.items() if original in candidates]
        # Terminals are numbered in match order.  Phantoms are candidates as keywords only: no text is left for them.
        accepts.append((*sorted(candidates), *phantoms))
    return LalrTables(
        start=0,
        final=automaton.moves[0][start],
        end=end,
        shift=tuple(shift),
        reduce=tuple(reduce),
        goto=tuple({symbol: to for symbol, to in moves.items() if symbol < n_names} for moves in automaton.moves),
        rules=tuple((name, len(derived)) for name, derived in rules),
        accepts=tuple(accepts),
    )
