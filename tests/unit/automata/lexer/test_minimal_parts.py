"""States of minimal automata as parts, against derivatives; and which are endless."""

from __future__ import annotations

import random

import pytest

from guided.automata.lexer import parts
from guided.automata.lexer.endless import is_endless
from guided.automata.lexer.states import StateTable
from guided.grammar.regex.lower import search
from guided.grammar.regex.parse import parse
from guided.grammar.regex.syntax import Dialect
from guided.grammar.regular.characters import Utf8
from guided.grammar.regular.condensed import condensed, lengths_of
from guided.grammar.regular.derivative import edges, inhabited, matches, possible_edges
from guided.grammar.regular.expr import Expr, Kind, alternation, complement, concat, intersection, json_string, literal
from tests.amounts import crossed, some

TEXT = Utf8()
ATOMS = [
    "a", "b", "ab", "^a", "b$", "^b*$", "a.b", "aa|b", "[^a]b", "é", "^[ab]+$", "(ab){2}", "abcabd", "^abcé", "^[ab]{1,30}$",
    "^(abc|abd)+$", "^(aba|é)*$",
]  # fmt: skip
LETTERS = ["a", "b", "c", "é", "ഀ"]


def pattern(text: str) -> Expr:
    return search(parse(text, Dialect.ECMA), TEXT)


def combined(seed: random.Random, depth: int = 2) -> Expr:
    if not depth or seed.random() < 0.2:
        return pattern(seed.choice(ATOMS))
    kind = seed.randrange(3)
    one, other = combined(seed, depth - 1), combined(seed, depth - 1)
    if kind == 0:
        return alternation([one, other])
    if kind == 1:
        return intersection([TEXT.text, complement(one)])
    return intersection([one, alternation([other, intersection([TEXT.text, complement(one)])])])


def read(table: StateTable, state: int, text: bytes) -> int:
    for byte in text:
        state = next((target for low, high, target in table.edges(state) if low <= byte <= high), 0)
        state = table.whole(state)
    return state


def texts(seed: random.Random) -> list[bytes]:
    some = ["", "abcabd", "abcé", "abd", "a" * 29, "ab" * 15, "a" * 31]
    return [text.encode() for text in some] + [
        "".join(seed.choices(LETTERS, (6, 6, 2, 1, 1), k=seed.randint(0, 9))).encode() for _ in range(25)
    ]


@pytest.mark.parametrize(("room", "number"), crossed([16, parts.MOST_PARTS], range(4), share=6))
def test_states_accept_what_derivatives_accept(number, room, monkeypatch):
    """Also where there is room for few parts at first."""
    if room == 16:
        monkeypatch.setattr(parts, "MOST_PARTS", 16)
    seed, table = random.Random(number), StateTable()
    n_automata = 0
    for _ in range(some(25)):
        expr = condensed(intersection([TEXT.text, combined(seed)]), possible_edges)
        if not inhabited(expr):
            continue
        n_automata += lengths_of(expr) is not None
        behind = concat(expr, literal(b"bc"))
        plain, string, followed = table.add(expr), table.add(json_string(expr)), table.add(json_string(behind))
        for text in texts(seed):
            expected = matches(expr, text)
            assert (table.arrays.tag[read(table, plain, text)] >= 0) == expected, text
            assert bool(table.arrays.mode[read(table, string, text)] & 2) == expected, text
            after = read(table, followed, text)
            assert bool(table.arrays.mode[after] & 2) == matches(behind, text), text
    assert n_automata > some(10)


def test_each_state_is_one_part_however_it_is_come_by():
    seed, table = random.Random(9), StateTable()
    for _ in range(30):
        expr = condensed(intersection([TEXT.text, combined(seed)]), possible_edges)
        if not inhabited(expr) or lengths_of(expr) is None:
            continue
        found = {expr: table.add(json_string(expr))}
        work = [expr]
        for item in work:
            for low, _, target in edges(item):
                by_edge = read(table, found[item], bytes([low]))
                if target.kind is Kind.RECURSION and seed.random() < 0.5:
                    # An expression made of a state, before or after it is come by, is that state.
                    assert table.add(json_string(target)) == by_edge
                if target not in found and len(work) < 60:
                    found[target] = by_edge
                    work.append(target)


def test_what_an_automaton_is_part_of_is_laid_down_too():
    """A state that is met first as what follows something, then by itself."""
    table = StateTable()
    expr = condensed(intersection([pattern("abc"), pattern("cba")]), possible_edges)
    either = table.add(json_string(alternation([concat(literal(b"x"), expr), expr])))
    whole = table.add(json_string(expr))
    for text in (b"xabcba", b"abcba", b"xcbabc", b"xx", b"xabc"):
        expected = matches(expr, text) or (text[:1] == b"x" and matches(expr, text[1:]))
        assert bool(table.arrays.mode[read(table, either, text)] & 2) == expected
        assert bool(table.arrays.mode[read(table, whole, text)] & 2) == matches(expr, text)


def endless(expr: Expr) -> bool:
    seen = {expr}
    work = [expr]
    for item in work:
        known = lengths_of(item)
        if known is None or not known.infinite:
            return False
        for _, _, target in edges(item):
            if target not in seen:
                seen.add(target)
                work.append(target)
    return True


def test_endless_is_what_every_state_is():
    seed = random.Random(3)
    answers = []
    for _ in range(150):
        expr = condensed(intersection([TEXT.text, combined(seed)]), possible_edges)
        if inhabited(expr):
            answers.append(is_endless(expr))
            assert answers[-1] == endless(expr)
    assert 10 < sum(answers) < len(answers) - 10
