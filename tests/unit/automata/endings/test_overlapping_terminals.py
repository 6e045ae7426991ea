"""Terminals that cannot stand side by side, as after a forgotten ``%ignore``: decided when compiling, in counted steps."""

from __future__ import annotations

import itertools
import random
import time

import numpy as np
import pytest

import guided
from guided.automata.endings.dead_ends import leads_nowhere
from guided.automata.endings.endings import RuleWays
from guided.automata.endings.obligations import Obligations, Work
from guided.automata.lexer.ordered import lexer_of
from guided.constraint.limits import Limits
from guided.errors import LimitError, UnsatisfiableError
from guided.grammar.ir import Lexing
from guided.kernels.parsing.threads import MANY
from tests import vocabularies
from tests.amounts import each
from tests.twin.lexed import LexedRecogniser
from tests.twin.trials import Trial, fresh_vocabulary

BYTES = vocabularies.of_bytes()
NAME = "\nNAME: /[a-z]+/"


def allowed(constraint: guided.Constraint, text: bytes) -> bytes:
    row = np.zeros(BYTES.n_words, np.uint32)
    constraint.fill_mask(constraint.advance_bytes(constraint.start, text), row)
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")
    return bytes(token for token in np.flatnonzero(bits).tolist() if token < 256)


@pytest.mark.parametrize("lexing", [None, Lexing.DYNAMIC])
def test_a_branch_whose_terminals_cannot_follow_each_other_is_masked_out(lexing):
    source = 'start: "show" NAME | "select" cols "from" NAME\ncols: cols "," cols | NAME' + NAME
    constraint = guided.compile(guided.lark(source, lexing=lexing), BYTES)
    assert allowed(constraint, b"") == b"s"
    assert allowed(constraint, b"s") == b"h"
    assert allowed(constraint, b"show") == bytes(range(ord("a"), ord("z") + 1))
    assert constraint.shortest_text(constraint.start) == b"showa"


@pytest.mark.parametrize(
    "source",
    [
        'start: "select" cols "from" NAME\ncols: cols "," cols | NAME' + NAME,
        'start: "if" e "then" e\ne: e "+" e | NAME' + NAME,
        "start: A B\nA: /a+/\nB: /a/",
        "start: A\nA: /(?=.*;)[a-c]+/",
    ],
)
def test_a_grammar_whose_terminals_never_can_is_refused(source):
    with pytest.raises(UnsatisfiableError, match="side by side"):
        guided.compile(guided.lark(source), BYTES)


def test_rules_that_are_empty_and_begin_with_themselves():
    constraint = guided.compile(guided.lark('start: s\ns: s* A |\nA: "a"'), BYTES)
    assert allowed(constraint, b"") == allowed(constraint, b"aaa") == b"a"
    assert constraint.is_accepting(constraint.start)


@pytest.mark.parametrize("lexing", [Lexing.CONTEXTUAL, Lexing.DYNAMIC])
def test_the_first_mask_leaves_out_what_cannot_end(lexing):
    source = """
    start: "y" e "x" | "z" e WORD "b"
    e: t | e "+" t
    t: NUM | "(" e ")"
    NUM: /[0-9]+/
    WORD: /[a-z]+/
    """
    constraint = guided.compile(guided.lark(source, lexing=lexing), BYTES)
    assert allowed(constraint, b"") == b"y"
    assert constraint.shortest_text(constraint.start) == b"y0x"


@pytest.mark.parametrize("lexing", [Lexing.CONTEXTUAL, Lexing.DYNAMIC])
def test_terminals_that_another_always_hides_do_not_count(lexing):
    # The ignored terminal is preferred to WORD by Lark's contextual lexer, and each is tried alone by the dynamic one.
    grammar = guided.lark('start: "select" WORD\nWORD.-1: "ab"\nA: /ab?/\n%ignore A', lexing=lexing)
    if lexing is Lexing.CONTEXTUAL:
        assert not LexedRecogniser(grammar).accepts("selectab")
        with pytest.raises(UnsatisfiableError):
            guided.compile(grammar, BYTES)
    else:
        assert LexedRecogniser(grammar).accepts("selectab")
        guided.compile(grammar, BYTES)


def test_counted_terminals_owe_one_thing_whatever_the_count():
    grammar = guided.lark("start: A+\nA: /[0-9]{1,300}/", lexing=Lexing.DYNAMIC)
    state = lexer_of(grammar.terminals).start((0,))
    found, obligations = set(), Obligations(Work(10**6))
    for _ in range(200):
        state = state.after(ord("1"))
        found.add(obligations.one(state.exits[0].obligation))
    assert len(found) == 1


def test_obligations_that_forbid_alike_are_one():
    # Each of the two owes that no letter may come, the second behind a state that leads to itself by another way.
    first = guided.lark("start: A\nA: /(?:ab)+/", lexing=Lexing.DYNAMIC)
    second = guided.lark("start: A\nA: /ab(?:abab)*(?:ab)?/", lexing=Lexing.DYNAMIC)
    obligations = Obligations(Work(10**6))
    owed = [
        obligations.one(lexer_of(grammar.terminals).start((0,)).after(ord("a")).after(ord("b")).exits[0].obligation)
        for grammar in (first, second)
    ]
    assert owed[0] is owed[1]


def test_what_takes_too_many_steps_is_refused_when_compiling():
    grammar = guided.lark('start: A | B | " " A ";"\nA: /[^a]{3,20}/\nB: /\\w*[^"]{1,3}a/')
    begun = time.process_time()
    with pytest.raises(LimitError, match="side by side"):
        guided.compile(grammar, BYTES)
    assert time.process_time() - begun < 10  # a bound on counted work, seconds even on a busy machine
    with pytest.raises(LimitError, match="700 steps"):
        guided.compile(grammar, BYTES, limits=Limits(search_states=100))


def test_a_match_that_no_text_can_end_is_told_by_its_lexer():
    """Each byte that goes on with it breaks what is owed: no letter may come behind the word before it."""
    terminals = guided.lark("start: A B C\nA: /[ab]+/\nB: /b+c/\nC: /b+c|d/", lexing=Lexing.DYNAMIC).terminals
    starts = {each.name: lexer_of(terminals).start((place,)) for place, each in enumerate(terminals)}
    (exit_,) = starts["A"].after(ord("a")).exits
    assert leads_nowhere(starts["B"], exit_.obligation)
    assert not leads_nowhere(starts["C"], exit_.obligation), "d ends it"


def test_states_after_tokens_are_those_of_each_alone():
    """Threads that one byte leads as the last one did are not merged again, and what is merged is asked for at once."""
    grammar = guided.lark('start: B [start "="? B | "b"] (e* C+ C | e) | B start?\ne: B | start start\n'
                          'B: /(?:ab)?[^c]+(?=.*;)|[^c]/s\nC: /[0-9]{1,9}/', lexing=Lexing.DYNAMIC)  # fmt: skip
    together, alone = (guided.compile(grammar, BYTES)._machine for _ in range(2))
    tokens = list(range(256))

    def shown(machine, state):
        return sorted((i, o) for i, _, o in machine.threads(state)) if state else []

    state, other = together.start, alone.start
    most = 0
    for byte in b"ab1a;b":
        state, other = together.read(state, bytes((byte,))), alone.read(other, bytes((byte,)))
        after = together.advance_each(state, tokens)
        each = [alone.advance_token_text(other, token) for token in tokens]
        assert [each.index(one) for one in each] == [after.index(one) for one in after]
        assert [shown(together, one) for one in after] == [shown(alone, one) for one in each]
        most = max(most, *(len(together.threads(one)) for one in after if one))
    assert most > MANY


LISTS = 'start: e\ne: e "," e | A B | "(" e ")"\nA: /a+/\nB: /[ab]/'
"""Which is not LALR(1)."""
SOURCES = [
    'start: (A | B)+ C\nA: /a+/\nB: /ab?/\nC: "b" | "ba"',
    'start: A+ "," B\nA: /a|ab|abb/\nB: /b+(?!a)/\n%ignore /b,?/',
    'start: "a" x | x "b"\nx: A x | B\nA: /[ab]{2}/\nB: /b(?=a|$)/',
]


@pytest.mark.parametrize(
    ("source", "lexing"),
    each([*itertools.product(SOURCES, [Lexing.CONTEXTUAL, Lexing.DYNAMIC]), (LISTS, Lexing.DYNAMIC)], 2),
)
def test_masks_and_shortest_texts_are_the_twins(source, lexing):
    """All texts over three letters: a prefix is alive exactly if the twin accepts some text that begins so."""
    grammar = guided.lark(source, lexing=lexing)
    twin, longest = LexedRecogniser(grammar), 7
    texts = ["".join(t) for n in range(longest + 1) for t in itertools.product("ab,", repeat=n)]
    accepted = {text for text in texts if twin.accepts(text)}
    try:
        constraint = guided.compile(grammar, BYTES)
    except UnsatisfiableError:
        assert not accepted
        return
    for text in random.Random(1).sample(texts, 400):
        state = constraint.advance_bytes(constraint.start, text.encode())
        assert constraint.is_accepting(state) == (text in accepted), text
        rests = [other[len(text) :] for other in accepted if other.startswith(text)]
        if not state:
            assert not rests, text
        else:
            rest = constraint.shortest_text(state).decode()
            assert twin.accepts(text + rest)
            assert not rests or len(rest) == min(map(len, rests)), (text, rest)


@pytest.mark.parametrize("rule", ['e "+" e', "e e"])
def test_ambiguous_lists_are_as_deep_as_one_term(rule):
    """``e: e "+" e`` may be read in exponentially many ways, which all go on alike."""
    constraint = guided.compile(guided.gbnf("root ::= e\ne ::= " + rule + ' | "a"'), BYTES)
    text = b"a" if rule == "e e" else b"a+"
    near = constraint.advance_bytes(constraint.start, text * 8)
    assert constraint.advance_bytes(constraint.start, text * 800) == near


def test_items_behind_which_there_is_no_end_are_looked_at_once(monkeypatch):
    """Two thousand continuations of an ambiguous grammar held the same items: a mask of 0.1 s (seed 53107)."""
    trial = Trial("lark", 53107, fresh_vocabulary())
    constraint = trial.constraint
    counts = [0]
    left = RuleWays._left

    def counted(*arguments):
        counts[-1] += 1
        return left(*arguments)

    monkeypatch.setattr(RuleWays, "_left", counted)
    mask = Trial._mask

    def counted_mask(*arguments):
        counts.append(0)
        return mask(*arguments)

    monkeypatch.setattr(Trial, "_mask", counted_mask)
    rnd = random.Random(trial.seed)
    for _ in range(3):
        trial._text(constraint, rnd, 40, False)
    assert 500 < max(counts) < 3000
