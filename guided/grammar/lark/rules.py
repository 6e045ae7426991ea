"""Lark's compiled rules as IR bodies.

Lark has already expanded ``?``, ``*``, ``+``, ``~``, templates and aliases into plain alternatives.  Direct left
recursion, which is what it makes of ``*`` and ``+``, becomes a repetition again, so that a list's hundredth element
meets the states of its second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from guided.grammar.ir import Body, Choice, Reference, Repetition, Rule, Terminal
from guided.grammar.ir import Sequence as Parts
from guided.grammar.lexing import LexerTerminal
from guided.grammar.regular.expr import EMPTY


def number_rules(rules: Sequence[Any]) -> dict[str, int]:
    """An index for every rule name, in order of first definition.

    Lark's names may be tokens, which compare by token type too; here they are plain strings.
    """
    return {name: position for position, name in enumerate(dict.fromkeys(str(rule.origin.name) for rule in rules))}


def read_rules(
    rules: Sequence[Any], nonterminals: Mapping[str, int], index: Mapping[str, int], terminals: Sequence[LexerTerminal]
) -> tuple[Rule, ...]:
    """One IR rule per name; ``index`` numbers the terminals by Lark's names."""
    leaves = {name: Terminal(EMPTY, terminals[position].name, position) for name, position in index.items()}
    expansions: dict[str, list[Sequence[Any]]] = {name: [] for name in nonterminals}
    for rule in rules:
        expansions[str(rule.origin.name)].append(rule.expansion)

    def body(symbols: Sequence[Any]) -> Body:
        parts = tuple(leaves[str(s.name)] if s.is_term else Reference(nonterminals[str(s.name)]) for s in symbols)
        return parts[0] if len(parts) == 1 else Parts(parts)

    def choice(options: Sequence[Sequence[Any]]) -> Body:
        return body(options[0]) if len(options) == 1 else Choice(tuple(map(body, options)))

    result = []
    for name, options in expansions.items():
        first = [option for option in options if not _starts_with(option, name)]
        again = [option[1:] for option in options if _starts_with(option, name) and len(option) > 1]
        if any(str(symbol.name) == name for option in [*first, *again] for symbol in option) or not again:
            # An option that is the rule itself alone (a: a) adds no text.
            result.append(Rule(name, choice([o for o in options if len(o) != 1 or str(o[0].name) != name])))
        elif [list(option) for option in first] == [list(option) for option in again]:
            result.append(Rule(name, Repetition(choice(first), 1)))
        else:
            result.append(Rule(name, Parts((choice(first), Repetition(choice(again))))))
    return tuple(result)


def _starts_with(option: Sequence[Any], name: str) -> bool:
    return bool(option) and str(option[0].name) == name and not option[0].is_term
