"""Random small grammars of every shape the IR has: recursion of all kinds, counts, separators, members, ambiguity.

Driven by a `random.Random`, so that a seed names a grammar and hypothesis (``st.randoms()``) can shrink one.
"""

from __future__ import annotations

import random

from guided.grammar.ir import Body, Choice, Grammar, Member, Members, Reference, Repetition, Rule, Sequence, Terminal
from guided.grammar.regular.expr import EPSILON, Expr, alternation, byte_set, concat, difference, literal, repeat

ALPHABET = b"abc,"

A, B, C, COMMA = (literal(bytes([byte])) for byte in ALPHABET)
AB = byte_set(1 << ord("a") | 1 << ord("b"))
TERMINALS: list[tuple[str, Expr]] = [
    ("a", A), ("b", B), ("c", C), (",", COMMA), ("ab", literal(b"ab")), ("ba", literal(b"ba")), ("[ab]", AB),
    ("a+", repeat(A, 1)), ("[ab]*", repeat(AB)), ("a*b", concat(repeat(A), B)), ("(ab)+", repeat(literal(b"ab"), 1)),
    ("aa|ab", alternation((literal(b"aa"), literal(b"ab")))), ("[ab]{2,5}", repeat(AB, 2, 5)),
    ("[ab]{,12}", repeat(AB, 0, 12)), ("[ab]+ less a, ab", difference(repeat(AB, 1), alternation((A, literal(b"ab"))))),
    ("c?", alternation((C, EPSILON))), ("[ab]{3,}c", concat(repeat(AB, 3), C)),
]  # fmt: skip
KEYS: list[tuple[str, Expr]] = [("a", A), ("ab", literal(b"ab")), ("b", B), ("aab", literal(b"aab")), ("c", C)]
EXTRAS: list[tuple[str, Expr]] = [
    ("[ab]+ less keys", difference(repeat(AB, 1), alternation(expr for _, expr in KEYS))),
    ("cc+", concat(C, repeat(C, 1))),
]


def random_grammar(rnd: random.Random, *, depth: int = 3, rules: int = 4) -> Grammar:
    """A grammar of up to ``rules`` rules; its start rule may be unproductive."""
    n = rnd.randint(1, rules)
    bodies = [random_body(rnd, n, rnd.randint(1, depth)) for _ in range(n)]
    return Grammar(tuple(Rule(f"r{i}", body) for i, body in enumerate(bodies)), 0)


def random_body(rnd: random.Random, n_rules: int, depth: int) -> Body:
    roll = rnd.random()
    if depth == 0 or roll < 0.18:
        return _terminal(rnd, TERMINALS) if rnd.random() < 0.55 else Reference(rnd.randrange(n_rules))
    if roll < 0.45:
        return Sequence(tuple(random_body(rnd, n_rules, depth - 1) for _ in range(rnd.choice((0, 1, 2, 2, 2, 3)))))
    if roll < 0.72:
        return Choice(tuple(random_body(rnd, n_rules, depth - 1) for _ in range(rnd.choice((1, 2, 2, 3)))))
    if roll < 0.88:
        low = rnd.choice((0, 0, 1, 1, 2, 3, 5))
        high = None if rnd.random() < 0.4 else low + rnd.choice((0, 1, 2, 4))
        separator = None if rnd.random() < 0.5 else random_body(rnd, n_rules, depth - 1)
        return Repetition(random_body(rnd, n_rules, depth - 1), low, high, separator)
    return _members(rnd, n_rules, depth - 1)


def _members(rnd: random.Random, n_rules: int, depth: int) -> Members:
    keys = rnd.sample(KEYS, rnd.randint(0, 3))
    extras = rnd.sample(EXTRAS, rnd.choice((0, 0, 1, 1, 2)))
    low = rnd.choice((0, 0, 0, 1, 2, 4))
    goals = rnd.choice((0, 0, 1, 3)) if extras else 0
    if goals:
        # The same keys once more, as those that meet something.
        extras = [(label, expr, meets) for label, expr in extras for meets in {0, rnd.randint(0, goals)}]
    else:
        extras = [(label, expr, 0) for label, expr in extras]
    return Members(
        declared=tuple(
            Member(Terminal(expr, label), _value(rnd, n_rules, depth), rnd.random() < 0.4) for label, expr in keys
        ),
        extras=tuple(
            Member(Terminal(expr, label), _value(rnd, n_rules, depth), meets=meets) for label, expr, meets in extras
        ),
        separator=Terminal(COMMA, ",") if rnd.random() < 0.8 else random_body(rnd, n_rules, depth),
        ordered=rnd.random() < 0.5,
        low=low,
        high=None if rnd.random() < 0.6 else low + rnd.choice((0, 1, 2, 3)),
        goals=goals,
    )


def _value(rnd: random.Random, n_rules: int, depth: int) -> Body:
    if rnd.random() < 0.3:
        return Sequence(())
    return random_body(rnd, n_rules, depth)


def _terminal(rnd: random.Random, terminals: list[tuple[str, Expr]]) -> Terminal:
    label, expr = rnd.choice(terminals)
    return Terminal(expr, label)


def spell(grammar: Grammar) -> str:
    """The grammar as text for messages: ``{..}`` is a repetition, ``<..>`` are members."""
    return "; ".join(f"{rule.name} = {_spell(rule.body)}" for rule in grammar.rules)


def _spell(body: Body) -> str:
    match body:
        case Terminal():
            return f"/{body.label}/"
        case Reference(rule):
            return f"r{rule}"
        case Sequence(parts):
            return "(" + " ".join(map(_spell, parts)) + ")"
        case Choice(options):
            return "(" + " | ".join(map(_spell, options)) + ")"
        case Repetition():
            separator = "" if body.separator is None else f" by {_spell(body.separator)}"
            return f"{{{_spell(body.body)}{separator} {body.low}..{body.high}}}"
        case Members():
            items = [f"{_spell(m.key)}:{_spell(m.value)}{'!' if m.required else ''}" for m in body.declared]
            items += [f"...{_spell(m.key)}:{_spell(m.value)}" for m in body.extras]
            how = "" if body.ordered else " free"
            return f"<{', '.join(items)} by {_spell(body.separator)}{how} {body.low}..{body.high}>"
