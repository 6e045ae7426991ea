"""What a grammar compiled to, in numbers and words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from guided.grammar.ir import AnyTerminal, Body, Grammar

__all__ = ["GrammarFacts", "facts_of", "rule_lines"]

_LEXING = {
    "none": "none: the text has no lexer, every split counts",
    "dynamic": "dynamic: each terminal takes its own preferred match (Lark's Earley parser)",
    "contextual": "contextual: one match among what the LALR(1) state allows (Lark's LALR parser)",
}


@dataclass(frozen=True)
class GrammarFacts:
    """Counts of a grammar, and how it is read."""

    start: str
    rules: int
    terminals: int
    """Terminals of the lexer; without one, distinct regular languages in the rules."""
    ignored: tuple[str, ...]
    lexing: str
    recursive: tuple[str, ...]
    """Names of rules that can contain themselves; empty: the language is regular."""
    notes: tuple[str, ...]


def facts_of(grammar: Grammar) -> GrammarFacts:
    """The facts of a grammar; linear in its size."""
    from guided.automata.rules.analysis import references
    from guided.grammar.ir import Lexing
    from guided.grammar.rules import every_rule

    lexed = grammar.lexing is not Lexing.NONE
    rules = every_rule(grammar.rules)
    distinct = {part.language() for rule in rules for part in _terminals(rule.body)}
    below = [frozenset(references(rule.body)) for rule in rules]
    names = [rules[index].name for index in _on_cycles(below)]
    return GrammarFacts(
        start=rules[grammar.start].name,
        rules=len(rules),
        terminals=len(grammar.terminals) if lexed else len(distinct),
        ignored=tuple(grammar.terminals[index].name for index in grammar.ignore),
        lexing=_LEXING[grammar.lexing.value],
        recursive=tuple(dict.fromkeys(names)),
        notes=grammar.notes,
    )


def rule_lines(grammar: Grammar) -> list[str]:
    """The rules in a notation like GBNF's, terminals by their labels; start rule first."""
    from guided.grammar.rules import every_rule

    rules = every_rule(grammar.rules)
    counts = Counter(rule.name for rule in rules)
    seen: Counter[str] = Counter()
    names = []
    for rule in rules:
        seen[rule.name] += 1
        names.append(rule.name if counts[rule.name] == 1 else f"{rule.name}'{seen[rule.name]}")
    order = [grammar.start, *(index for index in range(len(rules)) if index != grammar.start)]
    return [f"{names[index]} ::= {_written(rules[index].body, names, False)}" for index in order]


def _written(body: Body, names: list[str], inside: bool) -> str:
    from guided.grammar.ir import (
        Choice,
        DeferredMembers,
        ListedTerminal,
        Members,
        RangedTerminal,
        Reference,
        Repetition,
        Sequence,
        Terminal,
    )

    match body:
        case Terminal() | ListedTerminal() | RangedTerminal():
            return body.label or "(terminal)"
        case Reference(rule):
            return f"<{names[rule]}>"
        case Sequence(parts):
            text = " ".join(_written(part, names, True) for part in parts) or '""'
            return f"({text})" if inside and len(parts) > 1 else text
        case Choice(options):
            text = " | ".join(_written(option, names, False) for option in options) or "(nothing)"
            return f"({text})" if inside else text
        case Repetition():
            text = _written(body.body, names, True)
            count = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((body.low, body.high))
            high = "" if body.high is None else str(body.high)
            text += count or (f"{{{body.low}}}" if body.high == body.low else f"{{{body.low},{high}}}")
            return text if body.separator is None else f"{text} separated by {_written(body.separator, names, True)}"
        case DeferredMembers():
            return _written(body.written(), names, inside)
        case Members():
            declared = [
                f"{_written(one.key, names, True)} {_written(one.value, names, True)}" + ("" if one.required else " ?")
                for one in body.declared
            ]
            extras = [f"{_written(one.key, names, True)} {_written(one.value, names, True)} *" for one in body.extras]
            kind = "members" if body.ordered else "members in any order"
            return f"{kind} [{'; '.join((*declared, *extras))}]"


def _terminals(body: Body) -> list[AnyTerminal]:
    from guided.grammar.ir import (
        Choice,
        DeferredMembers,
        ListedTerminal,
        Members,
        RangedTerminal,
        Repetition,
        Sequence,
        Terminal,
    )

    found: list[AnyTerminal] = []
    stack: list[Body] = [body]
    while stack:
        item = stack.pop()
        match item:
            case Terminal() | ListedTerminal() | RangedTerminal():
                found.append(item)
            case Sequence(parts) | Choice(parts):
                stack.extend(parts)
            case Repetition():
                stack.append(item.body)
                stack.extend([] if item.separator is None else [item.separator])
            case DeferredMembers():
                stack.append(item.written())
            case Members():
                stack.append(item.separator)
                for member in (*item.declared, *item.extras):
                    stack += [member.key, member.value]
    return found


def _on_cycles(below: list[frozenset[int]]) -> list[int]:
    """The rules that reach themselves: strongly connected components (Kosaraju), without recursion."""
    finished = _finishing_order(below)
    above: list[set[int]] = [set() for _ in below]
    for index, targets in enumerate(below):
        for target in targets:
            above[target].add(index)
    seen: set[int] = set()
    found: list[int] = []
    for root in reversed(finished):
        if root in seen:
            continue
        component = [root]
        seen.add(root)
        for index in component:
            fresh = above[index] - seen
            seen |= fresh
            component += fresh
        if len(component) > 1 or root in below[root]:
            found += component
    return sorted(found)


def _finishing_order(below: list[frozenset[int]]) -> list[int]:
    order: list[int] = []
    seen: set[int] = set()
    for root in range(len(below)):
        if root in seen:
            continue
        seen.add(root)
        stack = [(root, iter(below[root]))]
        while stack:
            index, targets = stack[-1]
            for target in targets:
                if target not in seen:
                    seen.add(target)
                    stack.append((target, iter(below[target])))
                    break
            else:
                order.append(index)
                stack.pop()
    return order
