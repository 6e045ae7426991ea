"""Ordered lexer states against Python's `re`: the one match that they leave possible is the one that `re` finds."""

from __future__ import annotations

import random
import re
import sys
import threading

import pytest

from guided.automata.lexer.ordered import OrderedLexer, OrderedState, combine, start_state
from guided.errors import GrammarError, UnsupportedError
from guided.grammar.lexing import LexerTerminal
from guided.grammar.regex.parse import parse
from tests.amounts import Refusals, mostly_slow

if sys.version_info >= (3, 11):
    from re import _parser as sre_parse
else:
    import sre_parse


def lexer_for(*patterns: str) -> OrderedLexer:
    return OrderedLexer([LexerTerminal(f"T{index}", parse(pattern)) for index, pattern in enumerate(patterns)])


def matches(lexer: OrderedLexer, text: str, position: int = 0) -> set[tuple[int, int]]:
    """Every ``(end, terminal)`` that the states leave possible when the whole text is known."""
    order = tuple(range(len(lexer.terminals)))
    memory = lexer.initial_memory
    if lexer.looking_back:
        # A terminal that reads any one character carries the memory over the text before.
        reader = OrderedLexer([*lexer.terminals, LexerTerminal("ANY", parse("(?s:.)"))])
        for character in text[:position]:
            reading = reader.start((len(order),), memory)
            for byte in character.encode():
                reading = reading.after(byte)
            memory = reading.memory
    state: OrderedState | None = lexer.start(order, memory)
    pending: list[tuple[int, int, OrderedState | None]] = []
    for end, character in enumerate(text[position:], position + 1):
        for byte in character.encode():
            state = None if state is None else state.after(byte)
            moved = []
            for found, tag, owed in pending:
                after = None if owed is None else owed.after(byte)
                if after is None or not after.violated:
                    moved.append((found, tag, after))
            pending = moved
            if state is not None:
                pending += [(end, way.tag, way.obligation) for way in state.exits]
    return {(end, tag) for end, tag, owed in pending if owed is None or not owed.violated_at_end}


def expected(patterns: list[str], text: str, position: int = 0) -> set[tuple[int, int]]:
    joined = re.compile("|".join(f"(?P<T{index}>{pattern})" for index, pattern in enumerate(patterns)))
    match = joined.match(text, position)
    return {(match.end(), int(match.lastgroup[1:]))} if match else set()


@pytest.mark.parametrize(
    ("patterns", "texts"),
    [
        (["a|ab", "abc"], ["abc", "a", "ab", "b"]),
        ([r'".*?(?<!\\)(\\\\)*?"'], ['"a"', r'"a\"b" "', r'"\\"x"', r'"\\\"', '""', '"']),
        ([r"/\*(?:.|\n)*?\*/", "/"], ["/**/", "/* */ */", "/*", "//", "/* *", "/*\n*/x"]),
        (["[0-9]+", r"[0-9]+\.[0-9]*", r"\.\."], ["1..2", "1.5", "1.", "..", "12"]),
        ([r"[a-z]+(?!\()", "[a-z]", r"\("], ["ab(", "ab", "a(", "abc)"]),
        (["a(?!b)", "a", "b"], ["ab", "aa", "a"]),
        (["a+(?=b)", "a(?!b)", "a"], ["aab", "aaa", "a", "ab", "aaab"]),
        ([r"\bfor\b", r"\w+"], ["for", "form", "for ", "fo"]),
        ([r"(?:a?){3}b", r"(?:a??){3}a", "a"], ["aaab", "aab", "b", "aaa", "a"]),
        ([r"(?:|a)*b", "a"], ["aab", "ab", "a"]),
        ([r"(?:a|b|ab)*?c"], ["abc", "ababc", "ab"]),
        ([r"(?i:straße)", r"\w"], ["STRASSE", "STRAßE", "straẞe"]),
        ([r"x$", r"x\Z", r"(?m:x$)", "x"], ["x", "x\n", "x\n\n", "xy"]),
        ([r"(?:(?!end)[a-z])+", "end"], ["weekend", "end", "ended", "enend"]),
        ([r"[ab]{2,40}?c|[ab]+"], ["ababc", "abab", "aab" * 20 + "c"]),
        ([r"a(?!(?:b|cc?)\b)[a-z]*", "."], ["ab", "abc", "acc", "accc", "ab c", "a"]),
    ],
)
def test_examples(patterns: list[str], texts: list[str]) -> None:
    lexer = lexer_for(*patterns)
    for text in texts:
        for position in range(len(text)):
            assert matches(lexer, text, position) == expected(patterns, text, position), (text, position)


def random_pattern(rng: random.Random, depth: int = 0) -> str:
    kind = rng.random()
    if depth > 3 or kind < 0.35:
        return rng.choice(["a", "b", "c", ".", "[ab]", "[^a]", "é", "[a-cé]", r"\w", "\n"])
    if kind < 0.5:
        return random_pattern(rng, depth + 1) + random_pattern(rng, depth + 1)
    if kind < 0.62:
        return f"(?:{random_pattern(rng, depth + 1)}|{random_pattern(rng, depth + 1)})"
    if kind < 0.68:
        return f"(?:{random_pattern(rng, depth + 1)}|)"
    if kind < 0.86:
        mark = rng.choice(["*", "+", "?", "{2}", "{1,2}", "{0,3}", "{2,}"]) + rng.choice(["", "?"])
        return f"(?:{random_pattern(rng, depth + 1)}){mark}"
    if kind < 0.93:
        return f"(?{rng.choice('!=')}{random_pattern(rng, 3)})"
    if kind < 0.96:
        return rng.choice(["(?<!a)", "(?<=b)", "(?<!ab)", "(?<=.)", "(?<![^b])"])
    return rng.choice([r"\b", r"\B", "$", "^", r"\Z", "(?m:$)", "(?m:^)"])


def random_patterns(rng: random.Random) -> list[str]:
    wanted = rng.choice([1, 1, 2, 3])
    found: list[str] = []
    while len(found) < wanted:
        pattern = random_pattern(rng)
        try:
            if sre_parse.parse(pattern).getwidth()[0]:
                found.append(pattern)
        except re.error:
            continue
    return found


def compare_random(seed: int, count: int, refusals: Refusals) -> int:
    rng = random.Random(seed)
    compared = 0
    for _ in range(count):
        patterns = random_patterns(rng)
        lexer = None
        with refusals.trial(UnsupportedError):
            lexer = lexer_for(*patterns)
        if lexer is None:
            continue
        for _ in range(8):
            text = "".join(rng.choice("aabbbcé\n d") for _ in range(rng.randint(1, 9)))
            position = rng.randint(0, len(text) - 1) if rng.random() < 0.4 else 0
            assert matches(lexer, text, position) == expected(patterns, text, position), (patterns, text, position)
            compared += 1
    return compared


@pytest.mark.parametrize("seed", mostly_slow(range(4), 1))
def test_random_patterns(seed: int) -> None:
    with Refusals(most=0.03) as refusals:
        assert compare_random(seed, 120, refusals) > 800


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1020))
def test_many_random_patterns(seed: int) -> None:
    with Refusals(most=0.03) as refusals:
        assert compare_random(seed, 2500, refusals) > 15_000


def test_counts_are_not_unrolled() -> None:
    lexer = lexer_for("[a-z]{3,1000000}")
    state = lexer.start((0,))
    for _ in range(50):
        state = state.after(ord("x"))
    assert state.tag == 0
    assert state.pending is not None
    assert state.pending.after(ord("y")).violated


def test_states_are_interned() -> None:
    lexer = lexer_for('"[^"]*"', "[a-z]+")
    inside = lexer.start((0, 1)).after(ord('"'))
    assert inside.after(ord("a")) is inside
    assert lexer_for('"[^"]*"', "[a-z]+").start((0, 1)).after(ord('"')) is inside
    assert lexer.start((1,)).after(ord("a")) is lexer.start((0, 1)).after(ord("b"))


def test_obligations_combine_to_one_canonical_state() -> None:
    lexer = lexer_for("a+", "[ab]+?c")
    left = lexer.start((0,)).after(ord("a")).pending
    right = lexer_for("b+").start((0,)).after(ord("b")).pending
    both = combine([left, right])
    assert both is combine([right, left]) is combine([both, left])
    assert both.after(ord("a")).violated
    assert both.after(ord("b")).violated
    assert both.after(ord("c")) is None
    assert combine([left]) is left


def test_dead_ends_have_no_edge() -> None:
    state = lexer_for("a(?<!a)b", "ac", "ad(?!.*)").start((0, 1, 2)).after(ord("a"))
    assert [(low, high) for low, high, _ in state.edges()] == [(ord("c"), ord("c"))]
    assert lexer_for("a(?<!a)").start((0,)).edges() == ()


def test_an_exit_that_can_never_be_taken_is_left_out() -> None:
    state = lexer_for("a(?=b)", "a(?!b)", "a").start((0, 1, 2)).after(ord("a"))
    assert [way.tag for way in state.exits] == [0, 1]


def test_further_exits_form_a_chain() -> None:
    state = lexer_for(r"if\b", "[a-z]+").start((0, 1)).after(ord("i")).after(ord("f"))
    assert state.tag == 0
    assert (state.also.tag, state.also.also, state.also.edges()) == (1, None, ())
    digit, letter = ord("9"), ord("x")
    assert state.pending.after(digit).violated
    assert state.also.pending.after(digit) is None
    assert state.also.pending.after(letter).violated
    assert state.also.pending.violated_at_end
    assert not state.pending.violated_at_end


def test_keywords_become_their_terminals() -> None:
    name = LexerTerminal(
        "NAME", parse("[a-z]+"), keywords=((parse("if"), 1), (parse("(?i:In)"), 2)), absorbs=frozenset({1})
    )
    terminals = (name, LexerTerminal("IF", parse("if")), LexerTerminal("IN", parse("(?i:in)")))

    def tag(text: str, order: tuple[int, ...]) -> int:
        state = start_state(terminals, order)
        for byte in text.encode():
            state = state.after(byte)
        return state.tag

    assert [tag(text, (0, 1, 2)) for text in ("i", "if", "iff", "in", "In")] == [0, 1, 0, 2, 2]
    assert [tag(text, (0, 2)) for text in ("if", "in")] == [0, 2]
    assert tag("if", (1,)) == 1
    words = start_state(terminals, (0, 1, 2)).after(ord("x"))
    assert words.after(ord("y")) is words


def test_a_terminal_that_matches_nothing_is_refused() -> None:
    with pytest.raises(GrammarError, match="T0 matches the empty text"):
        lexer_for("a*")


def test_assertions_that_cannot_be_kept_are_refused_by_terminal() -> None:
    with pytest.raises(UnsupportedError, match="looks back") as caught:
        lexer_for("a", r"a(?=\bb)")
    assert caught.value.where == "terminal T1"
    assert caught.value.remedy


def test_terminals_that_look_back_are_named() -> None:
    assert lexer_for("a", r"\bb", "(?<=a)c", r'"(?<!\\)"', r"d\b", "^e").looking_back == ("T1", "T2", "T5")
    assert not lexer_for("a", r'"(?<!\\)"').looking_back


def test_threads_agree_on_the_same_states() -> None:
    found: list[OrderedState] = []

    def build() -> None:
        state = lexer_for(r"[a-z]+\d{2,9}|\w+é").start((0,))
        for byte in b"abc12":
            state = state.after(byte)
        found.append(state)

    workers = [threading.Thread(target=build) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(set(found)) == 1
