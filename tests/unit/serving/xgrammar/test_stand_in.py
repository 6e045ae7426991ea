"""XGrammar's classes as ours: the same calls, beside XGrammar itself where it is installed."""

import json
import random

import numpy as np
import pytest
from transformers import AutoTokenizer

import guided
from guided.nano import MODEL_PATH
from guided.serving.xgrammar import Grammar, GrammarCompiler, GrammarMatcher, RefusedError, install
from guided.serving.xgrammar.compiler import TOKENIZER

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3, "maximum": 30}}, "required": ["a"]}


class Info:
    """What is asked of a ``TokenizerInfo``."""

    def __init__(self, tokenizer):
        setattr(self, TOKENIZER, tokenizer)
        self.vocab_size = len(tokenizer) + 30


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(MODEL_PATH)


@pytest.fixture(scope="module")
def compiler(tokenizer):
    return GrammarCompiler(Info(tokenizer))


def allowed(matcher):
    mask = np.zeros((3, (2048 + 30 + 31) // 32), np.int32)
    assert matcher.fill_next_token_bitmask(mask, 1)
    assert not mask[[0, 2]].any()
    return set(np.flatnonzero(np.unpackbits(mask[1].view(np.uint8), bitorder="little")).tolist())


def test_compilers_of_one_tokenizer_share_what_they_compile(compiler, tokenizer):
    one, other = (each.compile_json_schema(SCHEMA) for each in (compiler, GrammarCompiler(Info(tokenizer))))
    assert one.constraint() is other.constraint() is not compiler.compile_regex("a").constraint()
    with pytest.raises(RefusedError):
        compiler.compile_grammar('start: "a"')


def test_a_request_from_begin_to_end(compiler, tokenizer):
    matcher = GrammarMatcher(compiler.compile_json_schema(SCHEMA))
    for token in tokenizer('{"a": 17}', add_special_tokens=False)["input_ids"]:
        assert token in allowed(matcher)
        assert matcher.accept_token(token)
    assert matcher.is_completed() and not matcher.is_terminated()
    other = matcher.fork()
    assert matcher.accept_token(tokenizer.eos_token_id) and matcher.is_terminated()
    assert not matcher.accept_token(tokenizer.eos_token_id)
    assert not other.is_terminated()
    matcher.rollback(2)
    assert not matcher.is_completed()
    assert matcher.accept_string("}") and matcher.is_completed()
    matcher.rollback()
    matcher.reset()
    assert not matcher.accept_string('{"b"')
    assert GrammarMatcher(compiler.compile_regex("ab(c|d)")).find_jump_forward_string() == "ab"
    assert matcher.stop_token_ids == [tokenizer.eos_token_id]


def test_an_end_without_a_stop_token(compiler):
    compiled = compiler.compile_regex("ab?")
    matcher = GrammarMatcher(compiled, terminate_without_stop_token=True)
    assert matcher.accept_string("a") and not matcher.is_terminated()
    assert matcher.accept_string("b") and matcher.is_terminated()
    plain = GrammarMatcher(compiled)
    assert plain.accept_string("ab") and not plain.is_terminated()


def test_captures_of_a_whole_text(compiler, tokenizer):
    source = 'root ::= list "."\nlist[capture] ::= list "," word | word\nword[capture="w"] ::= [a-z]+'
    matcher = GrammarMatcher(compiler.compile_grammar(source))
    for token in tokenizer("ab,cd", add_special_tokens=False)["input_ids"]:
        assert matcher.accept_token(token)
    with pytest.raises(RefusedError, match="whole text"):
        matcher.get_captures()
    other = matcher.fork()
    assert matcher.accept_string(".") and matcher.accept_token(tokenizer.eos_token_id)
    assert matcher.get_captures() == [("w", b"ab"), ("w", b"cd"), ("list", b"ab,cd")]
    assert matcher.get_captures(deduplicate=False)[1] == ("list", b"ab")
    assert other.accept_string("e") and other.accept_string(".")
    assert other.get_captures() == [("w", b"ab"), ("w", b"cde"), ("list", b"ab,cde")]
    matcher.rollback(2)
    assert matcher.accept_string(",x.") and matcher.get_captures()[-1] == ("list", b"ab,cd,x")
    matcher.reset()
    assert matcher.accept_string("z.") and matcher.get_captures() == [("w", b"z"), ("list", b"z")]
    with pytest.raises(RefusedError, match="another notation"):
        GrammarMatcher(compiler.compile_regex("a")).get_captures()


def test_captures_hold_the_names_of_special_tokens(compiler, tokenizer):
    special = tokenizer.convert_tokens_to_ids("<unk>")
    matcher = GrammarMatcher(compiler.compile_grammar(f'root ::= a "."\na[capture] ::= Token({special}) "x"'))
    assert matcher.accept_token(special) and matcher.accept_string("x.")
    assert matcher.get_captures() == [("a", b"<unk>x")]


def test_other_stop_tokens(compiler, tokenizer):
    (dot,) = tokenizer(".", add_special_tokens=False)["input_ids"]
    matcher = GrammarMatcher(compiler.compile_regex("a"), override_stop_tokens=dot)
    assert matcher.accept_string("a") and allowed(matcher) == {dot}
    assert matcher.accept_token(dot) and matcher.is_terminated()


def test_a_tree_of_drafts(compiler, tokenizer):
    """Node 0 is the root; 1 and 2 are its children, 3 is that of 1 and 4 that of 2, which is not allowed."""
    (a,), (b,) = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in "ab")
    matcher = GrammarMatcher(compiler.compile_regex("a(a|b)a"))
    masks = np.full((5, 66), 7, np.int32)
    assert matcher.traverse_draft_tree([1, 3, 4, -1, -1], [-1, 2, -1, -1, -1], [0, a, b, b, a], masks)
    rows = [set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()) for row in masks]
    after_a = GrammarMatcher(compiler.compile_regex("a(a|b)a"))
    assert rows[0] == allowed(after_a)
    assert after_a.accept_token(a) and rows[1] == allowed(after_a)
    assert after_a.accept_token(b) and rows[3] == allowed(after_a)
    assert (masks[[2, 4]] == 7).all()
    with pytest.raises(guided.UnsupportedError):
        matcher.traverse_draft_tree([], [], [], masks, temperatures=[1.0])


def takes(compiled, text):
    matcher = GrammarMatcher(compiled)
    return matcher.accept_string(text) and matcher.is_completed()


def test_each_way_to_compile(compiler):
    assert takes(compiler.compile_builtin_json_grammar(), "[1]")
    assert takes(compiler.compile_grammar('root ::= "a" root | "b"'), "aab")
    assert takes(compiler.compile_grammar(Grammar.from_ebnf('root ::= "x"')), "x")
    tag = {"type": "structural_tag", "format": {"type": "const_string", "value": "hey"}}
    assert takes(compiler.compile_structural_tag(tag), "hey")
    assert takes(compiler.compile_structural_tag(json.dumps(tag)), "hey")
    assert takes(compiler.compile_json_schema(json.dumps(SCHEMA)), '{"a": 3}')
    assert not takes(compiler.compile_json_schema(SCHEMA), '{"a": 3, "b": 1}')
    assert takes(compiler.compile_json_schema(SCHEMA, strict_mode=False), '{"a": 3, "b": 1}')
    assert takes(compiler.compile_grammar(Grammar.from_json_schema(SCHEMA)), '{"a": 3}')
    exact = compiler.compile_json_schema(SCHEMA, any_whitespace=False)
    assert takes(exact, '{"a": 3}') and not takes(exact, '{"a":3}')
    tight = compiler.compile_json_schema(SCHEMA, any_whitespace=False, separators=(",", ":"))
    assert takes(tight, '{"a":3}') and not takes(tight, '{"a": 3}')
    two = {"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}}, "required": ["a", "b"]}
    assert takes(compiler.compile_json_schema(two, any_order=True), '{"b": 2, "a": 1}')
    assert not takes(compiler.compile_json_schema(two), '{"b": 2, "a": 1}')


@pytest.mark.parametrize(
    "ask",
    [
        lambda c: c.compile_json_schema('{"type": "strnig"}'),
        lambda c: c.compile_json_schema(SCHEMA, indent=2),
        lambda c: c.compile_regex("("),
        lambda c: c.compile_grammar("root ::= x"),
        lambda c: c.compile_grammar('top ::= "x"', root_rule_name="top"),
        lambda c: c.compile_structural_tag("{}"),
        lambda c: Grammar.from_json_schema({"type": "integer", "minimum": 2, "maximum": 1}),
    ],
)
def test_refusals_are_what_engines_expect(compiler, ask):
    with pytest.raises(RefusedError):
        ask(compiler)


def test_a_tokenizer_is_needed():
    class Bare:
        vocab_size = 5

    with pytest.raises(RefusedError, match="from_huggingface"):
        GrammarCompiler(Bare())


def test_the_same_texts_as_xgrammar(tokenizer, monkeypatch):
    xgrammar = pytest.importorskip("xgrammar")
    theirs = {
        name: getattr(xgrammar, name) for name in ("Grammar", "GrammarCompiler", "GrammarMatcher", "CompiledGrammar")
    }
    for name in theirs:
        monkeypatch.setattr(xgrammar, name, theirs[name])
    monkeypatch.setattr(xgrammar.TokenizerInfo, "from_huggingface", xgrammar.TokenizerInfo.from_huggingface)
    plain = theirs["GrammarCompiler"](xgrammar.TokenizerInfo.from_huggingface(tokenizer))
    install()
    install()
    ours = xgrammar.GrammarCompiler(xgrammar.TokenizerInfo.from_huggingface(tokenizer))
    assert isinstance(ours, GrammarCompiler)
    rng = random.Random(0)
    for pattern in ("(ab|a1*b){0,4}", "[a-c]{2,3}x?", "a?b?c?"):
        one, two = (
            theirs["GrammarMatcher"](plain.compile_regex(pattern)),
            xgrammar.GrammarMatcher(ours.compile_regex(pattern)),
        )
        for _ in range(200):
            token = rng.choice([*tokenizer("ab1cx", add_special_tokens=False)["input_ids"], tokenizer.eos_token_id])
            assert one.accept_token(token) == two.accept_token(token)
            assert one.is_terminated() == two.is_terminated()
            if one.is_terminated():
                one.reset()
                two.reset()
