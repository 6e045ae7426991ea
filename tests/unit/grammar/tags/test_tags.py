"""`guided.tags` and `guided.think`: languages against an oracle of `re`, contracts, options, errors."""

from __future__ import annotations

import pickle
import random
import re

import pytest

import guided
from guided import Tag
from guided.errors import GrammarError, UnsupportedError
from guided.grammar.ir import Grammar
from guided.testing import check_constraint
from tests import vocabularies
from tests.amounts import each, mostly_slow

PIECES = [b"<a", b"<a>", b"</a>", b"<ab>", b"x<", b"ab", b"12", b">>", b"\n\n", "é<".encode(), b"\xff"]
EOS = 256 + len(PIECES)
SPECIAL = {"</s>": EOS, "<call>": EOS + 1, "<end>": EOS + 2}
VOCABULARY = guided.Vocabulary.from_tokens(
    [*vocabularies.SINGLE_BYTES, *PIECES, None, None, None], eos_ids=[EOS], special_tokens=SPECIAL
)
DIGITS = guided.regex("[0-9]+|<a>")
LETTERS = guided.regex("[ab]*")
D, L = "(?:[0-9]+|<a>)", "[ab]*"


def free(*triggers: str) -> str:
    if not triggers:
        return r"[\s\S]*"
    return rf"(?:(?!{'|'.join(map(re.escape, triggers))})[\s\S])*"


A, AB = rf"<a>{D}</a>", rf"<ab>{L};"
F = free("<a>", "<ab>")
S = free("<a")
TAGS = [Tag("<a>", DIGITS, "</a>"), Tag("<ab>", LETTERS, ";")]
CASES = {
    "two": (guided.tags(TAGS), rf"{F}(?:(?:{A}|{AB}){F})*"),
    "trigger": (guided.tags(TAGS, triggers=["<a"]), rf"{S}(?:(?:{A}|{AB}){S})*"),
    "at least one": (guided.tags(TAGS, at_least_one=True), rf"{F}(?:(?:{A}|{AB}){F})+"),
    "at most one": (guided.tags(TAGS, at_most_one=True), rf"{F}(?:(?:{A}|{AB}){F})?"),
    "exactly one": (guided.tags(TAGS, at_least_one=True, at_most_one=True), rf"{F}(?:{A}|{AB}){F}"),
    "stop": (guided.tags(TAGS, stop_after_first=True), rf"{F}(?:{A}|{AB})?"),
    "stop, one": (guided.tags(TAGS, stop_after_first=True, at_least_one=True), rf"{F}(?:{A}|{AB})"),
    "side by side": (guided.tags(TAGS, free_text=False), rf"(?:{A}|{AB})*"),
    "separated": (
        guided.tags(TAGS, free_text=False, separator="\n", at_least_one=True), rf"(?:{A}|{AB})(?:\n(?:{A}|{AB}))*"
    ),
    "only one": (guided.tags(TAGS[:1], free_text=False, at_least_one=True, at_most_one=True), A),
    "prefix": (
        guided.tags([Tag("<a", LETTERS, ">"), Tag("<ab>", None, "<<a")]),
        rf"{S}(?:(?:<a{L}>|<ab>{free('<<a')}<<a){S})*",
    ),
    "free content": (
        guided.tags([Tag("aab", None, "aba")], at_least_one=True),
        rf"{free('aab')}(?:aab{free('aba')}aba{free('aab')})+",
    ),
    "overlapping": (
        guided.tags([Tag("aba", DIGITS, ";"), Tag("bb", LETTERS, ";")]),
        rf"{free('aba', 'bb')}(?:(?:aba{D};|bb{L};){free('aba', 'bb')})*",
    ),
    "overlapping, one": (
        guided.tags([Tag("aa", None, "aba"), Tag("<a", None, "aa")], at_least_one=True, at_most_one=True),
        rf"{free('aa', '<a')}(?:aa{free('aba')}aba|<a{free('aa')}aa){free('aa', '<a')}",
    ),
    "several ends": (
        guided.tags([Tag("<a>", DIGITS, {"</a>", ""}), Tag("<ab>", LETTERS, {";", ">"})], at_least_one=True),
        rf"{F}(?:(?:<a>{D}(?:</a>)?|<ab>{L}[;>]){F})+",
    ),
    "several ends of free content": (
        guided.tags([Tag("<ab>", None, {"aba", ">>", ";"})]),
        rf"{free('<ab>')}(?:<ab>{free('aba', '>>', ';')}(?:aba|>>|;){free('<ab>')})*",
    ),
    "excludes": (
        guided.tags([Tag("<a>", DIGITS, ";")], excludes=["b<", "aa"]),
        rf"{free('<a>', 'b<', 'aa')}(?:(?<!b)<a>{D};{free('<a>', 'b<', 'aa')})*",
    ),
    "no end": (guided.tags([Tag("<", LETTERS)]), rf"{free('<')}(?:<{L}{free('<')})*"),
    "think": (guided.think(DIGITS), rf"<think>{free('</think>')}</think>\n{{0,2}}{D}"),
    "thought begun": (guided.think(DIGITS, begin=None, end="aa", separator=""), rf"{free('aa')}aa{D}"),
    "maybe think": (guided.think(LETTERS, begin="<", end=">", separator=";", optional=True), rf"<{free('>')}>;{L}|{L}"),
}  # fmt: skip
WORDS = ["<a>", "<ab>", "</a>", "<a", "<", ">", ";", "1", "a", "b", "aa", "aab", "aba", "<<a", "é", "\n", "think>", "/",
         "<a>12</a>", "<a><a></a>", "<ab>ab;", "<think>", "</think>1"]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_language(name: str) -> None:
    """Random texts of the tags' own pieces, against one regular expression."""
    grammar, pattern = CASES[name]
    constraint = guided.compile(grammar, VOCABULARY)
    oracle = re.compile(pattern)
    rnd = random.Random(name)
    accepted = 0
    for _ in range(1500):
        text = "".join(rnd.choice(WORDS) for _ in range(rnd.randrange(rnd.choice((4, 9)))))
        state = constraint.advance_bytes(constraint.start, text.encode())
        whole = bool(state) and constraint.is_accepting(state)
        assert whole == bool(oracle.fullmatch(text)), text
        accepted += whole
    assert accepted


@pytest.mark.parametrize("name", CASES)
def test_what_is_generated(name: str) -> None:
    """Random walks by tokens end in texts that the oracle takes."""
    grammar, pattern = CASES[name]
    constraint = guided.compile(grammar, VOCABULARY)
    rnd = random.Random(name)
    for _ in range(15):
        state, text = constraint.start, b""
        for _ in range(12):
            tokens = [t for t in range(EOS) if constraint.advance(state, t)]
            if not tokens:
                break
            token = rnd.choice([t for t in tokens if t >= 256] or tokens)
            text += VOCABULARY.token_bytes(token) or b""
            state = constraint.advance(state, token)
        while not constraint.is_accepting(state):
            token = next(t for t in constraint._machine.completions.tokens(state))
            text += VOCABULARY.token_bytes(token) or b""
            state = constraint.advance(state, token)
        assert re.fullmatch(pattern, text.decode()), text


@pytest.mark.parametrize("name", each(CASES, 2))
def test_contracts(name: str) -> None:
    check_constraint(guided.compile(CASES[name][0], VOCABULARY), walks=4, length=15, threads=1)


CALL, END = guided.special_token("<call>"), guided.special_token("<end>")


def run(constraint: guided.Constraint, parts: list[str | int]) -> bool:
    state = constraint.start
    for part in parts:
        if state and isinstance(part, int):
            state = constraint.advance(state, part)
        elif state:
            state = constraint.advance_bytes(state, str(part).encode())
    return bool(state) and constraint.is_accepting(state)


def test_special_tokens_as_delimiters() -> None:
    grammar = guided.tags([Tag(CALL, DIGITS, END), Tag(["<", CALL, "x"], None, [END, ";"])])
    constraint = guided.compile(grammar, VOCABULARY)
    check_constraint(constraint, walks=6, length=15, threads=1)
    call, end = SPECIAL["<call>"], SPECIAL["<end>"]
    for accepted in (
        [],
        ["<call>1<end>"],
        ["é", call, "12", end, "x"],
        ["<", call, "x<call>", end, ";", call, "1", end],
    ):
        assert (accepted and "<" in accepted[0]) or run(constraint, accepted), accepted
    # The text "<" begins a tag, so it cannot stand for itself.
    for rejected in (["<"], ["<call>"], [call], [call, "1"], [call, "x", end], ["<", call, "x", end], [end]):
        assert not run(constraint, rejected), rejected
    assert run(constraint, ["<", call, "x<call>", end, ";", call, "1", end])


def test_thinking_with_special_tokens() -> None:
    constraint = guided.compile(guided.think(DIGITS, begin=CALL, end=END), VOCABULARY)
    check_constraint(constraint, walks=6, length=15, threads=1)
    assert run(constraint, [SPECIAL["<call>"], "hm <end> </think>", SPECIAL["<end>"], "\n\n1"])
    assert not run(constraint, [SPECIAL["<call>"], "hm", SPECIAL["<end>"], "\n\n\n1"])


def test_keys_and_pickles() -> None:
    grammars = [grammar for grammar, _ in CASES.values()]
    assert len({grammar.key for grammar in grammars}) == len(grammars)
    for grammar in grammars:
        assert pickle.loads(pickle.dumps(grammar)).key == grammar.key
    x, y = guided.regex("x"), guided.regex("y")
    by_content = {
        guided.tags([Tag(name, content) for name, content in zip("abc", contents, strict=True)]).key
        for contents in ([x, y, x], [x, y, y], [x, x, y], [y, y, x])
    }
    assert len(by_content) == 4
    nested = guided.tags([Tag("<", guided.think(guided.tags([Tag("(", x, ")")])), ">")])
    assert pickle.loads(pickle.dumps(nested)).key == nested.key
    by_hand = Grammar(x.rules, x.start)
    assert guided.tags([Tag("a", by_hand)]).key is None


def test_parts_keep_their_marks_and_notes() -> None:
    unique = guided.json_schema({"type": "array", "uniqueItems": True, "items": {"type": "integer"}})
    plain = guided.json_schema({"type": "array", "items": {"type": "integer"}})
    grammar = guided.tags([Tag("<a>", unique, "</a>"), Tag("<ab>", plain, ";")])
    assert {rule.mark for rule in unique.rules} == {rule.mark for rule in grammar.rules}
    assert set(grammar.notes) == {*unique.notes, *plain.notes}
    constraint = guided.compile(grammar, VOCABULARY)
    assert run(constraint, ['[1,1] "<a>[1,2]</a>[[" <ab>[1,1];<a>[2,1]</a> [3,3'])
    for rejected in ("<a>[1,1]</a>", "<a>[1]</a><a>[1,2,1]</a>", '"<ab>[1,1];<a>[2,2]</a>'):
        assert not run(constraint, [rejected])


def test_grammars_of_every_kind_inside() -> None:
    contents = [
        guided.choice(["x", "y"]),
        guided.gbnf('root ::= "(" root? ")"'),
        guided.json_schema({"type": "object", "properties": {"a": {"$ref": "#"}}}),
        guided.grammar("json"),
    ]
    grammar = guided.tags([Tag(f"<{number}>", content, ";") for number, content in enumerate(contents)])
    constraint = guided.compile(grammar, VOCABULARY)
    assert run(constraint, ['<0>y;(<1>(());<2>{"a": {}};<3>[1, {}];'])
    assert not run(constraint, ["<1>(();"])
    check_constraint(constraint, walks=4, length=20, threads=1)


@pytest.mark.parametrize(
    ("make", "error", "what"),
    [
        (lambda: guided.tags([]), GrammarError, "no tags"),
        (lambda: guided.tags(["<a>"]), GrammarError, "not a tag"),
        (lambda: guided.tags([Tag("<a>", DIGITS)], free_text=False, separator=123), GrammarError, "separator is text"),
        (lambda: guided.tags([Tag("<a>", DIGITS)], separator=0), GrammarError, "separator is text"),
        (lambda: guided.tags([Tag("", DIGITS)]), GrammarError, "begins with nothing"),
        (lambda: guided.tags([Tag("<a>", None)]), GrammarError, "without an end"),
        (lambda: guided.tags([Tag("<a>", "[0-9]")]), GrammarError, "not a Grammar"),
        (lambda: guided.tags([Tag(DIGITS, DIGITS)]), GrammarError, "delimiter"),
        (lambda: guided.tags([Tag("\ud800", DIGITS)]), GrammarError, "surrogate"),
        (lambda: guided.tags([Tag("abc", DIGITS), Tag("b", DIGITS)]), GrammarError, "never read in full"),
        (lambda: guided.tags([Tag("<a>", DIGITS)], triggers=["<b"]), GrammarError, "no trigger begins"),
        (lambda: guided.tags([Tag("<a>", DIGITS)], triggers=["<a", "<b"]), GrammarError, "begins no tag"),
        (lambda: guided.tags([Tag("<a>", DIGITS)], triggers=["<", "<a"]), GrammarError, "never read in full"),
        (lambda: guided.tags([Tag("<a>", DIGITS)], triggers=""), GrammarError, "triggers are texts"),
        (lambda: guided.tags([Tag("<a>", DIGITS)], triggers="<a"), GrammarError, "triggers are texts"),
        (lambda: guided.tags([Tag("<a>", DIGITS)], separator=";"), GrammarError, "free_text=False"),
        (lambda: guided.tags([Tag("<a>", guided.lark('start: "a"'))]), UnsupportedError, "lexer"),
        (lambda: guided.tags([Tag(CALL, guided.choice([b"\xff"]))]), UnsupportedError, "0xFF"),
        (lambda: guided.think(DIGITS, end=""), GrammarError, "without an end"),
        (lambda: guided.think(DIGITS, begin=""), GrammarError, "begins with nothing"),
        (lambda: guided.think(guided.lark('start: "a"')), UnsupportedError, "lexer"),
    ],
)
def test_errors(make, error: type[Exception], what: str) -> None:
    with pytest.raises(error, match=re.escape(what)):
        make()


TOKENIZERS = ("gpt2", "llama2", "llama3", "qwen2.5")


@pytest.mark.parametrize("name", mostly_slow(TOKENIZERS, 1))
def test_real_tokenizers(name: str, data) -> None:
    folder = data / "tokenizers" / name
    if not (folder / "tokenizer.json").exists():
        pytest.skip(f"no {name} tokenizer in the test data")
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    vocabulary = guided.Vocabulary.from_tokenizer(tokenizer, cache=False)
    added = tokenizer.get_added_vocab()
    assert {n: t for n, t in vocabulary.special_tokens.items() if n in added} == added
    marks = [n for n, t in vocabulary.special_tokens.items() if t not in vocabulary.eos_ids][:2] or ["<t>", "</t>"]
    begin, end = map(guided.special_token, marks) if vocabulary.has_special else marks
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    grammar = guided.tags([Tag(begin, guided.json_schema(schema), end), Tag("<tool>", None, "</tool>")])
    constraint = guided.compile(grammar, vocabulary)
    check_constraint(constraint, walks=2, length=6, full_states=1, threads=1, pickled=False)
    ids = tokenizer("Ünïcode <tool>x</tool> text", add_special_tokens=False)["input_ids"]
    state = constraint.start
    for token in ids:
        state = constraint.advance(state, token)
        assert state
    assert constraint.is_accepting(state)
