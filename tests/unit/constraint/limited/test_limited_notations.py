"""Limits on tokens as notations write them, beside the engines whose notations they are."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import guided
from guided import tokenset
from guided.cli.checking.byte_texts import judge
from guided.constraint.spelling.canonical import CanonicalConstraint
from guided.errors import GrammarError, UnsupportedError, VocabularyError
from guided.eval.byte_sampling import compile_bytes
from guided.grammar.excluded import excluding
from guided.grammar.limited.unlimited import unlimited
from guided.grammar.tags import Tag
from guided.monitor.joint import GrammarLanguage
from guided.testing import check_constraint
from tests import vocabularies

TOKENS = [b"a", b"b", b"ab", b"a.", b"b.c", b".", b"c", b".c", b"ca", b"cab"]
VOCABULARY = vocabularies.of_tokens([*TOKENS, *(byte for byte in vocabularies.SINGLE_BYTES if byte not in TOKENS)])
SPAN = 'root ::= "c" x ".c"\nx[{options}] ::= {body}'


def allowed(constraint: guided.Constraint, tokens: list[bytes]) -> set[bytes] | None:
    """What may come behind some tokens; None where one of them may not."""
    state = constraint.start
    for token in tokens:
        state = constraint.advance(state, TOKENS.index(token))
        if not state:
            return None
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    constraint.fill_mask(state, row)
    return {TOKENS[token] for token in tokenset.ids(row).tolist() if token < len(TOKENS)}


def behind(source: str, *tokens: bytes) -> set[bytes] | None:
    return allowed(guided.compile(guided.ebnf(source), VOCABULARY), [*tokens])


def test_a_token_counts_where_its_first_byte_lies() -> None:
    source = SPAN.format(options="max_tokens=2", body="[ab]*")
    assert behind(source, b"c", b"a", b"b") == {b".", b".c"}
    assert b"a." in (behind(source, b"c", b"a") or ())
    assert behind(source, b"ca", b"a", b"b") == {b".", b".c"}
    assert behind(source, b"cab", b"a", b"b") == {b".", b".c"}


@pytest.mark.parametrize("options", ["max_tokens=1", "max_tokens=2", "max_tokens=3", "max_tokens=2, max_chars=3"])
@pytest.mark.parametrize("rest", ["x", '(x ".")*', 'x "." x'])
def test_masks_are_those_of_xgrammar(options: str, rest: str) -> None:
    """Where a span can end anywhere, and is the only one: else XGrammar drops a limit that it cannot keep."""
    xgrammar: Any = pytest.importorskip("xgrammar")
    source = f'root ::= "c" {rest} ".c"\nx[{options}] ::= [ab]*'
    info = xgrammar.TokenizerInfo([*TOKENS, b"</s>"], vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[len(TOKENS)])
    compiled = xgrammar.GrammarCompiler(info, max_threads=1).compile_grammar(xgrammar.Grammar.from_ebnf(source))
    bitmask = xgrammar.allocate_token_bitmask(1, len(TOKENS) + 1)
    constraint = guided.compile(guided.ebnf(source), VOCABULARY)
    level: list[list[bytes]] = [[]]
    n = 0
    for _ in range(4):
        following = []
        for tokens in level:
            matcher = xgrammar.GrammarMatcher(compiled)
            assert all(matcher.accept_token(TOKENS.index(token)) for token in tokens)
            matcher.fill_next_token_bitmask(bitmask)
            word = int(bitmask[0][0])
            theirs = {token for number, token in enumerate(TOKENS) if word >> number & 1}
            ours = allowed(constraint, tokens)
            assert ours == theirs, (tokens, ours, theirs)
            n += 1
            following += [[*tokens, token] for token in sorted(theirs)]
        level = following[:40]
    assert n > 20


def test_a_limit_that_no_text_keeps_is_refused() -> None:
    with pytest.raises(VocabularyError, match=r"max_tokens=2 of x\[max_tokens=2\] is too small: .* than 3 tokens"):
        behind(SPAN.format(options="max_tokens=2", body='"ab" "ab" "ab"'))
    assert behind(SPAN.format(options="max_tokens=3", body='"ab" "ab" "ab"'), b"c") == {b"ab"}
    missing = guided.Vocabulary.from_tokens([b"c", b"a", b".", None], eos_ids=[3])
    with pytest.raises(VocabularyError, match="lacks single bytes"):
        guided.compile(guided.ebnf(SPAN.format(options="max_tokens=2", body="[ab]*")), missing)


def test_limits_go_with_other_options() -> None:
    lazy = SPAN.format(options="max_tokens=2, lazy", body='[ab]* "."').replace('".c"', '"c"')
    # Not "b", behind which no token were left for the full stop.
    assert behind(lazy, b"c", b"a") == {b"a.", b".", b".c", b"b.c"}
    check_constraint(guided.compile(guided.ebnf(lazy), VOCABULARY), walks=3)


LLGUIDANCE = [
    'start: "c" x ".c"\nx[max_tokens=2]: /[ab]*/',
    'start: "c" x "c"\nx[max_tokens=2, lazy]: /[ab]*\\./',
    'start: "c" x "c"\nx[max_tokens=2, suffix="."]: /[ab]*/',
    'start: "c" x\nx[max_tokens=2, stop=""]: /[ab.]*/',
]


@pytest.mark.parametrize("text", LLGUIDANCE)
def test_llguidance_s_dialect(text: str) -> None:
    constraint = guided.compile(guided.lark(text, dialect="llguidance"), VOCABULARY)
    check_constraint(constraint, walks=3)
    state = constraint.start
    for token in (b"c", b"a", b"a"):
        state = constraint.advance(state, TOKENS.index(token))
    # Texts that need their end have no token left for it behind the second.
    assert bool(state) == (text in (LLGUIDANCE[0], LLGUIDANCE[3]))


def test_spans_end_where_those_of_llguidance_do() -> None:
    """Where a text begins with the span; behind another token llguidance is off by one.

    Behind the last token it takes only one of those that may follow the span, so what goes on within is compared.
    """
    llguidance: Any = pytest.importorskip("llguidance")
    text = 'start: x ".c"\nx[max_tokens=2]: /[ab]*/'
    constraint = guided.compile(guided.lark(text, dialect="llguidance"), VOCABULARY)
    for tokens in ([], [b"a"], [b"a", b"b"], [b"ab"], [b"ab", b"ab"]):
        matcher = llguidance.LLMatcher(_tokenizer(), llguidance.grammar_from("lark", text))
        accepted = all(matcher.consume_token(TOKENS.index(token)) for token in tokens)
        assert accepted
        found = matcher.compute_logit_bias()
        theirs = {token for number, token in enumerate(TOKENS) if found[number]}
        ours = allowed(constraint, tokens)
        assert ours is not None and ours >= theirs
        assert all((token in ours) == (token in theirs) for token in TOKENS if token[:1] in b"ab")


def _tokenizer() -> Any:
    import llguidance

    class Tokens:
        def __init__(self) -> None:
            self.eos_token_id = VOCABULARY.size - 1
            self.bos_token_id = None
            self.tokens = [VOCABULARY.token_bytes(token) or b"</s>" for token in range(VOCABULARY.size)]
            self.special_token_ids = [self.eos_token_id]

        def __call__(self, text: bytes) -> list[int]:
            return [self.tokens.index(bytes([byte])) for byte in text]

    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokens()))


def test_xgrammar_s_lark() -> None:
    text = 'start: "c" x ".c"\nx[max_tokens=2]: /[ab]*/'
    constraint = guided.compile(guided.lark(text, dialect="xgrammar"), VOCABULARY)
    assert allowed(constraint, [b"c", b"a", b"b"]) == {b".", b".c"}


@pytest.mark.parametrize("kind", ["any_text", "any_tokens"])
def test_structural_tags(kind: str) -> None:
    one = {"type": "tag", "begin": "c", "content": {"type": kind, "max_tokens": 2}, "end": ".c"}
    triggered = {"type": "triggered_tags", "triggers": ["c"], "tags": [one]}
    for format in (one, triggered):
        grammar = guided.structural_tag(json.dumps({"type": "structural_tag", "format": format}))
        constraint = guided.compile(grammar, VOCABULARY)
        assert allowed(constraint, [b"c", b"a", b"b"]) == {b".", b".c"}
        check_constraint(constraint, walks=3, length=12, full_states=10)


def test_thinking_and_tags() -> None:
    answer = guided.choice(["yes", "no"])
    constraint = guided.compile(guided.think(answer, max_tokens=3), VOCABULARY)
    state = constraint.advance_bytes(constraint.start, b"<think>")
    for token in (b"ab", b"c", b"a."):
        state = constraint.advance(state, TOKENS.index(token))
    assert constraint.forced(state) == b"</think>"
    check_constraint(constraint, walks=3, length=12, full_states=10)
    free = guided.compile(guided.tags([Tag("<a>", None, "</a>", max_tokens=1)]), VOCABULARY)
    state = free.advance(free.advance_bytes(free.start, b"x<a>"), TOKENS.index(b"cab"))
    assert free.forced(state) == b"</a>"
    special = guided.Vocabulary.from_tokens([*vocabularies.SINGLE_BYTES, None, None], eos_ids=[256],
                                            special_tokens={"</think>": 257})  # fmt: skip
    end = guided.special_token("</think>")
    checked = guided.compile(guided.think(answer, begin=None, end=end, max_tokens=2), special)
    state = checked.advance(checked.advance(checked.start, ord("a")), ord("b"))
    assert checked.forced(state) == b"\xff</think>\xff"
    # Not a character that has more bytes than there are tokens.
    assert not checked.advance(checked.start, 0xE2) and checked.advance(checked.start, 0xC3)
    with pytest.raises(GrammarError, match="beside a content"):
        guided.tags([Tag("<a>", answer, "</a>", max_tokens=1)])
    with pytest.raises(UnsupportedError, match="begins one"):
        guided.think(answer, end="aba", max_tokens=1)
    with pytest.raises(GrammarError, match="max_tokens=-1"):
        guided.think(answer, max_tokens=-1)


def test_free_text_beside_others() -> None:
    grammar = guided.sequence(guided.free_text(excludes=["."], max_tokens=2), ".", guided.free_text(max_tokens=0))
    constraint = guided.compile(grammar, VOCABULARY)
    assert allowed(constraint, [b"ab", b"c"]) == {b".", b".c"} - {b".c"}
    check_constraint(constraint, walks=3, length=6, full_states=10)
    assert guided.free_text(max_tokens=1).key != guided.free_text().key
    # More than the number of a state has room for.
    wide = guided.compile(guided.think(guided.choice(["a"]), begin=None, max_tokens=3_000_000), VOCABULARY)
    check_constraint(wide, walks=2, length=6, full_states=5)


UNIQUE = {"type": "array", "items": {"enum": ["a", "b", "ab"]}, "uniqueItems": True, "minItems": 2}


def test_beside_items_that_must_not_repeat() -> None:
    array = guided.json_schema(UNIQUE, whitespace="compact")
    for grammar in (guided.think(array, max_tokens=2), guided.think(array, optional=True, max_tokens=4)):
        constraint = guided.compile(grammar, VOCABULARY)
        check_constraint(constraint, walks=3, length=14, full_states=20)
        read = constraint.advance_bytes(constraint.start, b'<think>a</think>["a","')
        assert read and not constraint.advance_bytes(read, b'a"') and constraint.advance_bytes(read, b'b"]')


def test_characters_are_not_cut() -> None:
    letters = ["é", "日", "a", "日本", "😀"]
    tokens = vocabularies.bytes_first([*(letter.encode() for letter in letters), b"\x97\xa5", b"a\xc3", b"\xa9a"])
    vocabulary = vocabularies.of_tokens(tokens)
    grammar = guided.structural_tag({"type": "structural_tag", "format": {
        "type": "tag", "begin": "<", "content": {"type": "any_text", "max_tokens": 2}, "end": ">"}})  # fmt: skip
    constraint = guided.compile(grammar, vocabulary)
    check_constraint(constraint, walks=6, length=8)
    state = constraint.advance(constraint.start, ord("<"))
    assert not constraint.advance(state, 0xF0)
    after = constraint.advance(state, 0xE6)
    assert after and not constraint.advance(after, 0x97) and constraint.advance(after, tokens.index(b"\x97\xa5"))


def test_it_says_why() -> None:
    constraint = guided.compile(guided.ebnf(SPAN.format(options="max_tokens=1", body='"a" [ab] "c"?')), VOCABULARY)
    state = constraint.advance(constraint.start, TOKENS.index(b"c"))
    assert constraint.explain(state, TOKENS.index(b"a")) == (
        "'a' is not allowed: it leaves too few tokens for the rest of x[max_tokens=1], of 1 tokens at most"
    )


def test_what_knows_no_tokens_leaves_limits_out() -> None:
    grammar = guided.think(guided.choice(["yes"]), begin=None, max_tokens=2)
    constraint = compile_bytes(grammar)
    assert judge(constraint, "many more bytes</think>yes").accepted
    assert unlimited(grammar).key != grammar.key
    with pytest.raises(UnsupportedError, match="max_tokens"):
        GrammarLanguage(guided.compile(grammar, VOCABULARY))
    with pytest.raises(UnsupportedError, match="max_tokens"):
        CanonicalConstraint(guided.compile(grammar, VOCABULARY), None)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="limited tokens"):
        excluding(grammar, ["a"])


def test_captures_are_read_whatever_the_tokens() -> None:
    for dialect in ("llguidance", "xgrammar"):
        grammar = guided.lark('start: "c" x ".c"\nx[max_tokens=1, capture]: /[ab]*/', dialect=dialect)
        assert [part.text for part in guided.captures(grammar, "cabab.c")["x"]] == ["abab"]
