"""Lattices against all texts of small canvases: masses, likeliest texts, samples, marginals, bounds and refusals."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest

import guided
from guided.diffusion.lattice import Lattice, LatticeLimits
from guided.errors import GuidedError, LimitError, UnsatisfiableError
from guided.grammar.ir import Grammar
from guided.grammar.sql import Column, DatabaseSchema, Table
from guided.testing.enumeration import enumerate_choices
from tests.amounts import Refusals, some
from tests.tolerances import SUMS
from tests.twin.random_grammars import random_grammar
from tests.twin.slow_constraint import SlowConstraint
from tests.unit.diffusion.lattice.enumerated import EOS, PAD, VOCABULARY, WIDTH, random_canvas, weights

NESTED = r"""
root ::= value
value ::= "a" | "b" value? "c" | "," value "," value
"""


def log_total(found: dict[tuple[int, ...], float]) -> float:
    top = max(found.values())
    return top + math.log(math.fsum(math.exp(weight - top) for weight in found.values()))


def check(lattice: Lattice, found: dict[tuple[int, ...], float]) -> None:
    """The lattice is exact, and says so."""
    assert lattice.bound == lattice.best_bound == 0
    assert lattice.log_z == pytest.approx(log_total(found), abs=SUMS, rel=SUMS)
    tokens, weight = lattice.best()
    assert weight == pytest.approx(max(found.values()), abs=SUMS, rel=SUMS)
    assert found[tuple(tokens.tolist())] == pytest.approx(weight, abs=SUMS, rel=SUMS)
    expected = np.zeros((len(lattice), WIDTH))
    for text, each in found.items():
        expected[range(len(text)), text] += math.exp(each - log_total(found))
    assert np.abs(lattice.marginals() - expected).max() < SUMS
    assert np.abs(lattice.marginal(len(lattice) - 1) - expected[-1]).max() < SUMS
    for row in lattice.sample(np.random.default_rng(1), 5).tolist():
        assert tuple(row) in found
        given = {place: row[place] for place in range(0, len(row), 2)}
        some_of = {text: each for text, each in found.items() if all(text[i] == given[i] for i in given)}
        assert lattice.log_mass(given) == pytest.approx(log_total(some_of), abs=SUMS, rel=SUMS)
    assert lattice.log_mass({}) == lattice.log_z
    assert lattice.log_mass({0: WIDTH - 1}) == -math.inf


def compared(constraint: guided.Constrains, rnd: random.Random) -> bool:
    """Whether a text fits a random canvas; the lattice agrees with all texts in every respect."""
    logp, known = random_canvas(rnd, most=4)
    room, pad = rnd.choice((0, 0, 1, 2, None)), rnd.choice((None, PAD))
    found = weights(constraint, logp, known, room, pad)
    if not found:
        with pytest.raises(UnsatisfiableError, match="no text of the constraint fits"):
            Lattice(constraint, logp, known, room=room, pad_id=pad)
        return False
    check(Lattice(constraint, logp, known, room=room, pad_id=pad), found)
    return True


def compiled(grammar: Grammar) -> guided.Constrains:
    return guided.compile(grammar, VOCABULARY)


def test_random_canvases() -> None:
    """Ten thousand of random grammars, recursion among them: each is solved or refused, as enumeration says."""
    rnd = random.Random(26)
    fits = 0
    n = some(10_000, 80)
    with Refusals(most=0.6) as refusals:
        done = 0
        while done < n:
            with refusals.trial(UnsatisfiableError, guided.VocabularyError):
                constraint = compiled(random_grammar(rnd))
                for _ in range(5):
                    fits += compared(constraint, rnd)
                    done += 1
    assert n / 20 < fits < n


@pytest.mark.parametrize("text", ["[ab]*c", "(a|ab)(,(a|ab))*", "a{2,3}|c", "[abc,]*"])
def test_automata(text: str) -> None:
    rnd = random.Random(text)
    constraint = compiled(guided.regex(text))
    assert sum(compared(constraint, rnd) for _ in range(12)) > 2


def test_recursion() -> None:
    rnd = random.Random(5)
    constraint = compiled(guided.gbnf(NESTED))
    assert sum(compared(constraint, rnd) for _ in range(25)) > 5


def test_only_the_protocol() -> None:
    """A constraint that knows nothing else gives the same lattices, from tokens that are read one by one."""
    rnd = random.Random(11)
    constraint = SlowConstraint(guided.gbnf(NESTED), VOCABULARY)
    assert sum(compared(constraint, rnd) for _ in range(15)) > 3


def test_names_that_must_not_repeat() -> None:
    vocabulary = guided.Vocabulary.from_tokens([b'{"', b"a", b"b", b'":1', b',"', b"}", b'":{}', None], eos_ids=[7])
    constraint = guided.compile(guided.json_schema({"type": "object", "maxProperties": 2}), vocabulary)
    logp = np.log(np.random.default_rng(0).dirichlet(np.ones(8), 6))
    logp = np.hstack([logp, np.full((6, 1), -np.inf)])
    found = weights(constraint, logp, {1: 1})
    assert found and all(tokens[:6] != (0, 1, 3, 4, 1, 3) for tokens in found)
    check(Lattice(constraint, logp, {1: 1}), found)


def test_samples_have_the_law_of_the_product() -> None:
    """Every random choice of a draw is enumerated."""
    constraint = compiled(guided.gbnf(NESTED))
    logp = np.log(np.random.default_rng(3).dirichlet(np.ones(WIDTH), 4))
    found = weights(constraint, logp, {})
    lattice = Lattice(constraint, logp)
    drawn: Counter[tuple[int, ...]] = Counter()
    for probability, tokens in enumerate_choices(lambda chance: tuple(lattice.sample(chance)[0].tolist())):
        drawn[tokens] += probability
    total = log_total(found)
    assert len(found) > 4
    assert drawn == pytest.approx({tokens: math.exp(weight - total) for tokens, weight in found.items()}, abs=SUMS)


@pytest.mark.parametrize("states", [1, 2, 3])
def test_cut_states_are_bounded(states: int) -> None:
    rnd = random.Random(states)
    constraint = compiled(guided.gbnf(NESTED))
    cut = proved = 0
    for _ in range(some(100)):
        logp, known = random_canvas(rnd)
        found = weights(constraint, logp, known)
        if not found:
            continue
        lattice = Lattice(constraint, logp, known, limits=LatticeLimits(states=states))
        tokens, weight = lattice.best()
        assert found[tuple(tokens.tolist())] == pytest.approx(weight, rel=SUMS)
        assert lattice.log_z - SUMS <= log_total(found) <= lattice.log_z + lattice.bound + SUMS
        assert weight - SUMS <= max(found.values()) <= weight + lattice.best_bound + SUMS
        cut += lattice.is_cut
        proved += lattice.is_cut and lattice.best_bound == 0
    assert cut > 3
    assert proved


def test_cut_tokens_are_bounded() -> None:
    rnd = random.Random(8)
    constraint = SlowConstraint(guided.regex("[abc,]*"), VOCABULARY)
    cut = 0
    for _ in range(some(60)):
        logp, known = random_canvas(rnd, most=4)
        found = weights(constraint, logp, known)
        if not found:
            continue
        lattice = Lattice(constraint, logp, known, limits=LatticeLimits(tokens=1))
        assert lattice.log_z - SUMS <= log_total(found) <= lattice.log_z + lattice.bound + SUMS
        weight = lattice.best()[1]
        assert weight - SUMS <= max(found.values()) <= weight + lattice.best_bound + SUMS
        cut += lattice.is_cut
    assert cut > 3


def test_blocks_carry_their_end_states() -> None:
    """The lattices of two blocks, the second from all states in which the first may end, have the mass of the whole."""
    constraint = compiled(guided.gbnf(NESTED))
    logp = np.log(np.random.default_rng(4).dirichlet(np.ones(WIDTH), 6))
    whole = Lattice(constraint, logp)
    first = Lattice(constraint, logp[:3], room=None)
    second = Lattice(constraint, logp[3:], start=first.ends)
    assert len(first.ends) > 3
    assert second.log_z == pytest.approx(whole.log_z, rel=SUMS)
    assert np.abs(second.marginals() - whole.marginals()[3:]).max() < SUMS


def test_what_is_kept_survives_every_cut() -> None:
    constraint = compiled(guided.gbnf(NESTED))
    logp = np.log(np.random.default_rng(4).dirichlet(np.ones(WIDTH), 7))
    rare = Lattice(constraint, -logp).best()[0]
    limits = LatticeLimits(states=1, most_states=1)
    known = {4: int(rare[4]), 6: int(rare[6])}
    assert Lattice(constraint, logp, known, limits=limits, keep=rare.tolist()).best()[0].tolist() == rare.tolist()
    slow = SlowConstraint(guided.gbnf(NESTED), VOCABULARY)
    narrow = LatticeLimits(states=1, most_states=1, tokens=1)
    assert Lattice(slow, logp, known, limits=narrow, keep=rare.tolist()).best()[0].tolist() == rare.tolist()


def test_committed_positions_of_a_solution_leave_it() -> None:
    """Whatever positions of a sample are committed, in whatever order, a text is left."""
    constraint = compiled(guided.gbnf(NESTED))
    rng = np.random.default_rng(9)
    for _ in range(10):
        known: dict[int, int] = {}
        while len(known) < 6:
            logp = np.log(rng.dirichlet(np.ones(WIDTH), 6))
            tokens = Lattice(constraint, logp, known).sample(rng)[0]
            place = int(rng.choice([i for i in range(6) if i not in known]))
            known[place] = int(tokens[place])
        Lattice(constraint, logp, known)


def test_masses_below_the_smallest_float() -> None:
    constraint = compiled(guided.regex("a,b"))
    logp = np.full((3, WIDTH), -2000.0)
    logp[:, 2] = 0.0
    lattice = Lattice(constraint, logp)
    assert lattice.log_z == -6000
    assert lattice.best()[0].tolist() == [0, 3, 1]
    assert lattice.marginals()[range(3), [0, 3, 1]].tolist() == [1, 1, 1]


def test_ids_that_are_not_scored() -> None:
    """A model narrower than its tokenizer never writes what it does not score."""
    constraint = compiled(guided.regex("[ab]*"))
    lattice = Lattice(constraint, np.zeros((2, 2)))
    assert lattice.log_z == pytest.approx(math.log(4))
    assert lattice.marginals().shape == (2, 2)


def test_refusals() -> None:
    constraint = compiled(guided.regex("a{5}"))
    logp = np.zeros((3, WIDTH))
    with pytest.raises(UnsatisfiableError, match=r"fits 3 positions.*at the end of the canvas"):
        Lattice(constraint, logp)
    with pytest.raises(UnsatisfiableError, match="past position 1"):
        Lattice(constraint, logp, {1: 1})
    with pytest.raises(UnsatisfiableError, match="past position 0"):
        Lattice(constraint, np.full((3, WIDTH), -np.inf))
    with pytest.raises(UnsatisfiableError, match="no live state"):
        Lattice(constraint, logp, start=0)
    with pytest.raises(GuidedError, match="no numbers"):
        Lattice(constraint, np.full((3, WIDTH), np.nan))
    with pytest.raises(GuidedError, match=r"float\[L, width\]"):
        Lattice(constraint, np.zeros(4))
    with pytest.raises(GuidedError, match="position 3 of 3"):
        Lattice(constraint, logp, {3: 0})
    with pytest.raises(GuidedError, match="a text of 1 tokens"):
        Lattice(constraint, logp, keep=[0])
    for rows in ([[0.0, 0.0], [0.0]], np.zeros((3, WIDTH), complex), np.full((3, WIDTH), "a")):
        with pytest.raises(GuidedError, match=r"are no numbers.*float\[L, width\]"):
            Lattice(constraint, rows)
    with pytest.raises(GuidedError, match="room is -1"):
        Lattice(constraint, logp, room=-1)
    with pytest.raises(GuidedError, match="pad_id is -1"):
        Lattice(constraint, logp, pad_id=-1)
    with pytest.raises(GuidedError, match="0 to 5 states"):
        LatticeLimits(states=0, most_states=5)
    nested = compiled(guided.gbnf(NESTED))
    # The one state that is kept after each position is that of ",": the known end asks for "c" at once.
    with pytest.raises(LimitError, match=r"among 1 states a position.*most_states"):
        Lattice(nested, np.zeros((6, WIDTH)), {2: 2, 3: EOS}, limits=LatticeLimits(states=1, most_states=1))


@pytest.mark.parametrize("place", [-1, 3])
def test_no_position_is_counted_from_the_end(place: int) -> None:
    """Python's lists would answer for another position."""
    lattice = Lattice(compiled(guided.regex("[ab]*")), np.zeros((3, WIDTH)))
    for ask in (lattice.marginal, lambda at: lattice.log_mass({at: 0})):
        with pytest.raises(GuidedError, match=f"position {place} of 3"):
            ask(place)
    with pytest.raises(GuidedError, match="-1 texts"):
        lattice.sample(0, -1)


@pytest.mark.parametrize("state", [-1, 1 << 20, (1 << 32) + 5, 1 << 60])
@pytest.mark.parametrize("grammar", [guided.regex("a+b"), guided.json_schema({"type": "object"})])
def test_a_state_that_no_text_led_to_is_named(grammar: guided.Grammar, state: int) -> None:
    """Kernels would read whatever lies behind their arrays."""
    vocabulary = guided.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), None], eos_ids=[256])
    with pytest.raises(GuidedError, match=f"state {state}, which the constraint never made"):
        Lattice(guided.compile(grammar, vocabulary), np.zeros((3, 257)), start=state)


def test_a_state_of_another_language_is_named_too() -> None:
    with pytest.raises(GuidedError, match="state 77, which"):
        Lattice(SlowConstraint(guided.gbnf(NESTED), VOCABULARY), np.zeros((3, WIDTH)), start=77)


def test_a_beam_over_a_grammar_that_searches_for_its_ends_is_never_stuck():
    schema = DatabaseSchema((Table("a", (Column("b"), Column("c"))),))
    vocabulary = guided.Vocabulary.from_tokens(
        [*(bytes([byte]) for byte in range(256)), b"SELECT", b" FROM", b" a", b" WHERE", b" NOT", b" (", None],
        eos_ids=[262],
    )
    constraint = guided.compile(guided.sql(schema), vocabulary)
    rng = np.random.default_rng(5)
    least = constraint.shortest_completion(constraint.start)
    for _ in range(some(12, 8)):
        length = least + 1 + int(rng.integers(0, 8))
        logp = np.log(rng.dirichlet(np.full(263, 0.05), length) + 1e-30)
        # With one state a position there is one way on, and it must be one that ends.
        for states in (1, 3):
            lattice = Lattice(
                constraint, logp, limits=LatticeLimits(searched_states=states, most_states=4096, tokens=4)
            )
            text, _ = lattice.best()
            state = constraint.start
            for token in text.tolist():
                state = constraint.advance(state, token)
            assert constraint.is_accepting(state)
            assert max(step.layer.after.size for step in lattice._steps) <= max(states, 2), "no wider than it was asked"
