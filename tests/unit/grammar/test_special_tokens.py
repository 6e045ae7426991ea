"""Special tokens that grammars name: one id or nothing, on every front end, and never by a text."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest

import guided
from guided.errors import GrammarError, UnsupportedError, VocabularyError
from guided.grammar.ir import Grammar, Lexing
from guided.grammar.regular.derivative import edges
from guided.special_bytes import special_bytes, special_names_in
from guided.testing import brute_force_mask, check_constraint
from guided.vocab import Vocabulary
from guided.vocab.special import near_names
from tests import vocabularies

PIECES = [b"<think>", b"<th", b"ink>", b"</think>", b"ab", b"\xff", b"a\xff", b"\xff<think>\xff", "é".encode(), b'":']
TOKENS = [*vocabularies.SINGLE_BYTES, *PIECES, None, None, None, b"text that is not", None]
FIRST = 256 + len(PIECES)
SPECIAL = {"</s>": FIRST, "<think>": FIRST + 1, "</think>": FIRST + 2, "[TOOL_CALLS]": FIRST + 3}
VOCABULARY = Vocabulary.from_tokens(TOKENS, eos_ids=[FIRST], special_tokens=SPECIAL)
THINK, DONE, CALLS = SPECIAL["<think>"], SPECIAL["</think>"], SPECIAL["[TOOL_CALLS]"]


def allowed(constraint: guided.Constraint, state: int) -> set[int]:
    row = np.zeros(constraint.vocabulary.n_words, np.uint32)
    constraint.fill_mask(state, row)
    assert (row == brute_force_mask(constraint, state)).all()
    return set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())


def test_special_ids_have_no_text_and_are_spelled_with_their_names() -> None:
    assert VOCABULARY.special_tokens == SPECIAL
    assert [VOCABULARY.token_bytes(token) for token in SPECIAL.values()] == [None] * 4
    assert VOCABULARY.spelled(THINK) == b"\xff<think>\xff"
    assert VOCABULARY.spelled(FIRST) is None, "an end-of-text token stays one"
    assert VOCABULARY.token_bytes(255) == b"\xff" and VOCABULARY.spelled(255) is None
    assert VOCABULARY.byte_complete and VOCABULARY.has_special
    # Tokens that could spell a special one in pieces, or that look like it, are no way to it.
    assert [VOCABULARY.spelled(256 + i) for i, piece in enumerate(PIECES) if b"\xff" in piece] == [None] * 3


def test_without_special_tokens_nothing_is_copied() -> None:
    plain = Vocabulary.from_tokens(TOKENS, eos_ids=[FIRST])
    assert plain.spelling.data is plain.data and plain.spelling.offsets is plain.offsets and not plain.has_special
    ends_only = Vocabulary.from_tokens(TOKENS, eos_ids=[FIRST], special_tokens={"</s>": FIRST})
    assert ends_only.spelling.offsets is ends_only.offsets and ends_only.byte_complete


def test_special_tokens_are_content() -> None:
    plain = Vocabulary.from_tokens([b"a", None, None], eos_ids=[])
    one = Vocabulary.from_tokens([b"a", None, None], eos_ids=[], special_tokens={"<a>": 1})
    other = Vocabulary.from_tokens([b"a", None, None], eos_ids=[], special_tokens={"<a>": 2})
    assert len({plain.digest, one.digest, other.digest}) == 3
    copy = pickle.loads(pickle.dumps(one))
    assert copy is one and copy.special_tokens == {"<a>": 1}
    with pytest.raises(TypeError):
        one.special_tokens["<b>"] = 2  # type: ignore[index]


@pytest.mark.parametrize("special", [{"": 1}, {"<a>": 3}, {"<a>": -1}, {"<a>": 1, "<b>": 1}, {"\ud800": 1}])
def test_special_tokens_that_cannot_be(special: dict[str, int]) -> None:
    with pytest.raises(VocabularyError):
        Vocabulary.from_tokens([b"a", None, None], eos_ids=[], special_tokens=special)


def test_names_in_bytes() -> None:
    known = {"<a>", "é"}
    assert special_names_in(b"", known) == special_names_in(b"text", known) == []
    assert special_names_in(b"x" + special_bytes("é") + special_bytes("<a>"), known) == ["é", "<a>"]
    for cut in (b"\xff", special_bytes("<a>")[:-1], special_bytes("<a>")[1:], special_bytes("<b>"), b"\xff\xfe\xff"):
        assert special_names_in(cut, known) is None


def test_one_special_token() -> None:
    grammar = guided.special_token("<think>")
    constraint = guided.compile(grammar, VOCABULARY)
    check_constraint(constraint)
    assert allowed(constraint, constraint.start) == {THINK}
    assert constraint.forced(constraint.start) == b"\xff<think>\xff"
    assert constraint.shortest_completion(constraint.start) == 1
    assert constraint.advance_bytes(constraint.start, b"<think>") == 0
    for cut in range(1, 9):
        assert constraint.advance_bytes(constraint.start, b"\xff<think>\xff"[:cut]) == 0
    after = constraint.advance_bytes(constraint.start, b"\xff<think>\xff")
    assert after == constraint.advance(constraint.start, THINK) and constraint.is_accepting(after)
    assert pickle.loads(pickle.dumps(grammar)).key == grammar.key


def test_explanations_name_special_tokens() -> None:
    constraint = guided.compile(guided.gbnf("root ::= <think> [a-c]+ </think>"), VOCABULARY)
    start = constraint.start
    assert constraint.explain(start, THINK) == "the special token <think> is allowed; after it expected [a-c]+"
    assert constraint.explain(start, DONE) == "the special token </think> is not allowed: expected <think>"
    assert "expected <think>" in constraint.explain(start, ord("a"))
    inside = constraint.advance_bytes(start, b"\xff<think>\xffa")
    assert "expected </think> or" in constraint.explain(inside, ord("z"))
    text = guided.compile(guided.regex("a"), VOCABULARY)
    assert text.explain(text.start, THINK) == "the special token <think> is not allowed: expected a"


@pytest.mark.parametrize(
    ("name", "what", "remedy"),
    [
        ("think", "no special token 'think'", "'<think>'"),
        ("<|think|>", "no special token", "'<think>', '</think>'"),
        ("TOOL_CALLS", "no special token", "'[TOOL_CALLS]'"),
        ("zzz", "no special token 'zzz'", "It has '</s>', '<think>'"),
        ("</s>", "ends the text", "eos_ids"),
    ],
)
def test_what_a_vocabulary_does_not_have(name: str, what: str, remedy: str) -> None:
    with pytest.raises(VocabularyError) as caught:
        guided.compile(guided.special_token(name), VOCABULARY)
    assert what in caught.value.what and remedy in (caught.value.remedy or "")


def test_a_vocabulary_without_special_tokens_says_so() -> None:
    with pytest.raises(VocabularyError, match="It has none"):
        guided.compile(guided.special_token("<a>"), Vocabulary.from_tokens([b"a"], eos_ids=[]))
    assert near_names("x", []) == []


def test_bytes_that_no_text_holds() -> None:
    grammar = guided.choice([b"\xff\x00", "a"])
    with pytest.raises(VocabularyError, match="0xFF"):
        guided.compile(grammar, VOCABULARY)
    plain = Vocabulary.from_tokens(TOKENS, eos_ids=[FIRST])
    constraint = guided.compile(grammar, plain)
    check_constraint(constraint)
    assert constraint.is_accepting(constraint.advance_bytes(constraint.start, b"\xff\x00"))


@pytest.mark.parametrize("name", ["", "\udc80"])
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(GrammarError):
        guided.special_token(name)


GBNF = 'root ::= (<think> [^"<]* </think>)? ("yes" | "no" <[TOOL_CALLS]>{1,2})'
LARK = r"""
start: thought? answer+
thought: <think> TEXT? </think>
answer: "yes" | NAME "=" NAME | <[TOOL_CALLS]> NAME
TEXT: /(.|\n)+/
NAME: /[a-z]+(?!=x)/  // <comment>
%ignore " "
"""


@pytest.mark.parametrize(
    "grammar",
    [
        guided.gbnf(GBNF),
        guided.lark(LARK, special_tokens=True),
        guided.lark(LARK, special_tokens=True, lexing=Lexing.DYNAMIC),
    ],
    ids=["gbnf", "contextual", "dynamic"],
)
def test_front_ends_hold_the_contracts(grammar: Grammar) -> None:
    assert grammar.special_tokens == ("</think>", "<think>", "[TOOL_CALLS]")
    assert pickle.loads(pickle.dumps(grammar)).key == grammar.key
    constraint = guided.compile(grammar, VOCABULARY)
    check_constraint(constraint, walks=10, length=25)


def run(constraint: guided.Constraint, parts: list[str | int]) -> bool:
    state = constraint.start
    for part in parts:
        if state:
            state = (
                constraint.advance(state, part)
                if isinstance(part, int)
                else constraint.advance_bytes(state, part.encode())
            )
    return bool(state) and constraint.is_accepting(state)


def test_gbnf_language() -> None:
    constraint = guided.compile(guided.gbnf(GBNF), VOCABULARY)
    for accepted in (["yes"], [THINK, DONE, "yes"], [THINK, "é", DONE, "no", CALLS], ["no", CALLS, CALLS]):
        assert run(constraint, accepted), accepted
    for rejected in (["no"], ["<think></think>yes"], [THINK, "yes"], [THINK, "<", DONE, "yes"], ["no", *[CALLS] * 3]):
        assert not run(constraint, rejected), rejected


@pytest.mark.parametrize("lexing", [Lexing.CONTEXTUAL, Lexing.DYNAMIC])
def test_a_special_token_ends_a_terminal(lexing: Lexing) -> None:
    text = 'start: (NAME | IF | <think> | "=")+\nIF: "if"\nNAME: /[a-z]+(?![=0-9])/\n%ignore /[ ]+/'
    constraint = guided.compile(guided.lark(text, special_tokens=True, lexing=lexing), VOCABULARY)
    assert run(constraint, ["abc", THINK, "if", THINK])
    assert run(constraint, ["abc", THINK, "="])
    assert not run(constraint, ["abc="])
    check_constraint(constraint, walks=10, length=15)


def test_references_by_id() -> None:
    known = VOCABULARY.special_tokens
    for text in (f"root ::= <[{THINK}-{DONE}, {CALLS}]>", f"root ::= <[{THINK}]> | </think> | <[TOOL_CALLS]>"):
        constraint = guided.compile(guided.gbnf(text, special_tokens=known), VOCABULARY)
        assert allowed(constraint, constraint.start) == {THINK, DONE, CALLS}
    lark = guided.lark(f'start: <[{THINK}-{CALLS}]> "a"', special_tokens=known)
    constraint = guided.compile(lark, VOCABULARY)
    assert allowed(constraint, constraint.start) == {THINK, DONE, CALLS}
    for text in ("root ::= <[0]>", "root ::= <[*]>", "root ::= <[^7]>"):
        with pytest.raises((GrammarError, UnsupportedError)):
            guided.gbnf(text, special_tokens=known)


@pytest.mark.parametrize(
    ("text", "options", "error", "where"),
    [
        ("start: <think>", {}, GrammarError, "line 1, column 8"),
        ('start: A\nA: "a" <think>', {"special_tokens": True}, GrammarError, "terminal A"),
        ("start: <[7]>", {"special_tokens": True}, UnsupportedError, "line 1, column 8"),
        ("start: <think> )", {"special_tokens": True}, GrammarError, "line 1, column 16"),
        ("start: <think> | a\na: <think>", {"special_tokens": True, "lexing": Lexing.CONTEXTUAL}, UnsupportedError, None),
    ],
)  # fmt: skip
def test_lark_errors(text: str, options: dict[str, object], error: type[Exception], where: str | None) -> None:
    with pytest.raises(error) as caught:
        guided.lark(text, **options)  # type: ignore[arg-type]
    assert caught.value.where == where  # type: ignore[attr-defined]
    assert "T0" not in str(caught.value)


@pytest.mark.parametrize(
    "pattern", ["a(?=b)", r"a\b", r"a\B", "a$", r"a\Z", "a(?!b$)", "(?:a(?=b)){2}", "(?:a|b(?=c))"]
)
def test_terminals_that_ask_what_follows(pattern: str) -> None:
    text = f"start: (A | <think>)+\nA: /{pattern}/"
    with pytest.raises(UnsupportedError, match="terminal A asks for what follows"):
        guided.lark(text, special_tokens=True)
    assert guided.lark(text.replace(" | <think>", ""), special_tokens=True)


def test_equal_places_of_different_tokens_are_different_grammars() -> None:
    one, other = (guided.lark(f'start: <{name}> "x"', special_tokens=True) for name in ("a", "b"))
    assert one.key != other.key
    assert guided.gbnf("root ::= <a>").key != guided.gbnf("root ::= <b>").key


def test_quoted_text_is_text() -> None:
    constraint = guided.compile(guided.lark('start: "<think>" /<[a-z]>/', special_tokens=True), VOCABULARY)
    assert run(constraint, ["<think><q>"]) and not run(constraint, [THINK, "<q>"])


NEGATIONS = [
    guided.regex(r"(?s)(?!x)[^a]*\W\D(?<!b).*\B"),
    guided.regex(r"(?:[^\x00-\x7f]|\b)+"),
    guided.gbnf("root ::= [^a]* . [^é]+"),
    guided.lark(r'start: (A | B | "x")*' + "\nA: /[^a]+?(?!b)/\nB: /(?s:.)+$/"),
    guided.lark("start: A+\nA: /[^b]+(?<!c)/", lexing=Lexing.DYNAMIC),
    guided.json_schema({"not": {"const": "a"}}),
    guided.json_schema({"additionalProperties": {"type": "string", "pattern": "^[^a]"}, "properties": {"a": True}}),
    guided.json_schema({"propertyNames": {"not": {"pattern": "b"}}, "minProperties": 1}, order="any"),
]


@pytest.mark.parametrize("grammar", NEGATIONS, ids=range(len(NEGATIONS)))
def test_negated_classes_hold_no_special_token(grammar: Grammar) -> None:
    """What is not some text is other text: no complement lets the byte through that names special tokens."""
    constraint = guided.Constraint(grammar, VOCABULARY)
    rnd = random.Random(1)
    for _ in range(6):
        state = constraint.start
        for _ in range(20):
            tokens = allowed(constraint, state) - {FIRST}
            assert not tokens & set(SPECIAL.values())
            assert not constraint._machine.next_bytes(state)[0xF5:].any()
            if not tokens:
                break
            state = constraint.advance(state, rnd.choice(sorted(tokens)))


def test_no_language_of_text_begins_with_the_byte() -> None:
    for grammar in NEGATIONS:
        for rule in grammar.rules:
            stack = [rule.body]
            while stack:
                item = stack.pop()
                if hasattr(item, "expr") and item.lexer is None:
                    assert all(high < 0xF8 for _, high, _ in edges(item.expr))
                stack += [*getattr(item, "parts", ()), *getattr(item, "options", ())]
