"""Lark's LALR(1) parse table as `LalrTables`, unless the grammar has conflicts.

Lark resolves shift/reduce conflicts silently as shifts, and reduce/reduce conflicts by rule priority; the table's
language is then smaller than the grammar's, so such a table is not used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from guided.grammar.lark.terminals import Terminals
from guided.grammar.lexing import LalrTables


def read_tables(
    rules: Sequence[Any], start: str, terminals: Terminals, nonterminals: Mapping[str, int]
) -> LalrTables | str:
    """The parse table, its states numbered from the start; or, in words, the conflict that forbids one.

    ``nonterminals`` numbers the rules' names.
    """
    from lark.common import ParserConf
    from lark.parsers.lalr_analysis import LALR_Analyzer

    analyser: Any = LALR_Analyzer(ParserConf(list(rules), {}, [start]))
    try:
        analyser.compute_lr0_states()
        analyser.compute_reads_relations()
        analyser.compute_includes_lookback()
        analyser.compute_lookaheads()
    except RecursionError:
        return "the grammar is too deep for Lark's LALR analysis"
    conflict = _conflict(analyser)
    if conflict:
        return conflict
    analyser.compute_lalr1_states()
    return _convert(analyser.parse_table, rules, start, terminals, nonterminals)


def _conflict(analyser: Any) -> str | None:
    """The first conflict by name, so that the answer does not depend on the order of Lark's sets."""
    found = []
    for itemset in analyser.lr0_itemsets:
        for symbol, reductions in itemset.lookaheads.items():
            names = sorted({str(rule.origin.name) for rule in reductions})
            if len(reductions) > 1:
                found.append(f"reduce/reduce conflict on {symbol.name} in {', '.join(names)}")
            elif symbol in itemset.transitions:
                found.append(f"shift/reduce conflict on {symbol.name} in {', '.join(names)}")
    return min(found) if found else None


def _convert(
    table: Any, rules: Sequence[Any], start: str, terminals: Terminals, nonterminals: Mapping[str, int]
) -> LalrTables:
    from lark.parsers.lalr_analysis import Shift

    # Lark numbers its states in the order of sets of strings, which differs between processes.
    order = [table.start_states[start]]
    number = {order[0]: 0}
    for state in order:
        for _, (action, target) in sorted(table.states[state].items(), key=_name):
            if action is Shift and target not in number:
                number[target] = len(order)
                order.append(target)
    end = len(terminals.items)
    rule_index = {rule: position for position, rule in enumerate(rules)}
    shift: list[dict[int, int]] = []
    reduce: list[dict[int, int]] = []
    goto: list[dict[int, int]] = []
    accepts: list[tuple[int, ...]] = []
    for state in order:
        shifts: dict[int, int] = {}
        reductions: dict[int, int] = {}
        gotos: dict[int, int] = {}
        candidates = set(terminals.ignore)
        for symbol, (action, target) in sorted(table.states[state].items(), key=_name):
            name = str(symbol)
            if name in nonterminals:
                gotos[nonterminals[name]] = number[target]
                continue
            indices = [end] if name == "$END" else [terminals.index[name]]
            if name != "$END":
                candidates.add(indices[0])
                if indices[0] in terminals.ignore:
                    indices = []
                phantom = terminals.phantoms.get(terminals.index[name])
                indices += [] if phantom is None else [phantom]
            for index in indices:
                if action is Shift:
                    shifts[index] = number[target]
                else:
                    reductions[index] = rule_index[target]
        shift.append(shifts)
        reduce.append(reductions)
        goto.append(gotos)
        phantoms = [phantom for original, phantom in terminals.phantoms.items() if original in candidates]
        # Terminals are numbered in match order.  Phantoms are candidates as keywords only: no text is left for them.
        accepts.append((*sorted(candidates), *phantoms))
    return LalrTables(
        start=0,
        final=number[table.end_states[start]],
        end=end,
        shift=tuple(shift),
        reduce=tuple(reduce),
        goto=tuple(goto),
        rules=tuple((nonterminals[str(rule.origin.name)], len(rule.expansion)) for rule in rules),
        accepts=tuple(accepts),
    )


def _name(entry: tuple[Any, Any]) -> str:
    return str(entry[0])
