"""Random grammars with special tokens against the Earley twin, which reads their bytes; embedded ones too."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

import guided
from guided.grammar.embed import Assembly, embedded_rules
from guided.grammar.ir import Body, Choice, Grammar, Repetition, Rule, Sequence, Terminal
from guided.grammar.rules import every_rule
from guided.grammar.special import special_terminal
from guided.special_bytes import special_bytes
from guided.testing import check_constraint
from tests.amounts import each, mostly_slow
from tests.twin.earley import Recogniser
from tests.twin.random_grammars import ALPHABET, random_grammar, spell

NAMES = ("<s>", "a")
TOKENS = [bytes([byte]) for byte in ALPHABET] + [b"ab", b"ba", b"a,", b",b", b"abc", b"\xff", b"\xffa\xff", b"a\xff"]
SPECIAL = {name: len(TOKENS) + number for number, name in enumerate(NAMES)}
VOCABULARY = guided.Vocabulary.from_tokens(
    [*TOKENS, None, None, None], eos_ids=[len(TOKENS) + 2], special_tokens=SPECIAL
)
UNITS = [bytes([byte]) for byte in ALPHABET] + [special_bytes(name) for name in NAMES]


def with_special(body: Body, rnd: random.Random) -> Body:
    """The body with some of its terminals made special tokens."""
    match body:
        case Terminal():
            return special_terminal(rnd.choice(NAMES)) if rnd.random() < 0.25 else body
        case Sequence(parts):
            return Sequence(tuple(with_special(part, rnd) for part in parts))
        case Choice(options):
            return Choice(tuple(with_special(option, rnd) for option in options))
        case Repetition():
            separator = None if body.separator is None else with_special(body.separator, rnd)
            return replace(body, body=with_special(body.body, rnd), separator=separator)
        case _:
            return body


def special_grammar(rnd: random.Random) -> Grammar:
    made = random_grammar(rnd)
    return replace(made, rules=tuple(Rule(r.name, with_special(r.body, rnd)) for r in made.rules), special_tokens=NAMES)


def fork(twin: Recogniser) -> Recogniser:
    other = object.__new__(Recogniser)
    other.table, other.start = twin.table, twin.start
    other.columns, other.flight = list(twin.columns), set(twin.flight)
    return other


@pytest.mark.parametrize("seed", mostly_slow(range(120), 30))
def test_random_grammars(seed: int) -> None:
    rnd = random.Random(seed)
    grammar = special_grammar(rnd)
    first = Recogniser(grammar)
    try:
        constraint = guided.Constraint(grammar, VOCABULARY)
    except guided.UnsatisfiableError:
        assert not first.alive
        return
    frontier = [(b"", constraint.start, first)]
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    for _ in range(20):
        if not frontier:
            break
        text, state, twin = frontier.pop(rnd.randrange(len(frontier)))
        where = f"after {text!r} of {spell(grammar)}"
        assert constraint.is_accepting(state) == twin.accepting, where
        for unit in UNITS:
            following = fork(twin).feed(unit)
            then = constraint.advance_bytes(state, unit)
            assert (then != 0) == following.alive, f"{unit!r} {where}"
            if then:
                frontier.append((text + unit, then, following))
        constraint.fill_mask(state, row)
        for token in range(VOCABULARY.size - 1):
            data = VOCABULARY.spelled(token)
            alive = data is not None and fork(twin).feed(data).alive
            assert bool(int(row[token >> 5]) >> (token & 31) & 1) == alive, f"token {token} {where}"
            assert (constraint.advance(state, token) != 0) == alive, f"advance {token} {where}"
    if seed % 4 == 0:
        check_constraint(constraint, walks=4, length=12, threads=1, pickled=False)


@pytest.mark.parametrize("seed", each(range(60), 3))
def test_embedded_grammars(seed: int) -> None:
    """Two grammars side by side in a third mean what they mean alone."""
    rnd = random.Random(seed)
    parts = [random_grammar(rnd), special_grammar(rnd)]
    assembly = Assembly()
    references = [assembly.embed(part) for part in parts]
    assert [assembly.embed(part) for part in parts] == references
    start = assembly.rule("either", Choice((Sequence((references[0], references[1])), references[1])))
    whole = assembly.finish(start, source=None, rebuild=(random_grammar, (), {}))
    assert whole.special_tokens == tuple(sorted(NAMES)) and whole.key is None
    alone = [Recogniser(part) for part in parts]
    together = Recogniser(whole)
    for _ in range(25):
        units = [rnd.choice(UNITS) for _ in range(rnd.randrange(6))]
        text = b"".join(units)

        def accepts(recogniser: Recogniser, data: bytes) -> bool:
            return recogniser.alive and fork(recogniser).feed(data).accepting

        cuts = range(len(units) + 1)
        both = any(
            accepts(alone[0], b"".join(units[:cut])) and accepts(alone[1], b"".join(units[cut:])) for cut in cuts
        )
        assert accepts(together, text) == (both or accepts(alone[1], text)), text


def test_renumbered_rules_keep_everything_else() -> None:
    grammar = guided.json_schema({"type": "array", "uniqueItems": True, "items": {"type": "integer"}})
    moved = embedded_rules(grammar, 7)
    assert [(rule.name, rule.mark) for rule in moved] == [(rule.name, rule.mark) for rule in every_rule(grammar.rules)]
    assert embedded_rules(grammar, 0) == every_rule(grammar.rules)
