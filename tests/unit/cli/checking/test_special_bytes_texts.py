"""Grammars with special tokens checked and sampled without a tokenizer, as `guided check` does."""

from __future__ import annotations

import re

import guided
from guided.cli.checking.byte_texts import judge
from guided.eval.byte_sampling import compile_bytes, rambling_text, sample_text, shortest_text

GRAMMAR = guided.gbnf('root ::= (<think> [a-z]* </think>)+ ("yes" | "nope" <|end|>)')


def test_names_are_special_tokens() -> None:
    constraint = compile_bytes(GRAMMAR)
    assert judge(constraint, "<think>abc</think><think></think>nope<|end|>").accepted
    verdict = judge(constraint, "<think>abc</thonk>yes")
    assert (verdict.accepted, verdict.offset, verdict.found) == (False, 10, "<")
    assert verdict.expected == "a lower-case letter or the special token </think>"
    assert verdict.explanation == "'<' is not allowed: '<' does not fit; expected </think> or one of 'a'..'z'"
    assert judge(constraint, "yes").expected == "'<think>'"
    assert judge(constraint, "<think></think>nope").expected == "'<|end|>'"


def test_texts_are_written_with_names() -> None:
    constraint = compile_bytes(GRAMMAR)
    assert shortest_text(constraint) == "<think></think>yes"
    texts = [sample_text(constraint, seed, 12) for seed in range(20)]
    texts += [rambling_text(constraint, seed, 9) for seed in range(20)]
    assert all(re.fullmatch(r"(<think>[a-z]*</think>)+(yes|nope<\|end\|>)", text) for text in texts)
    assert all(judge(constraint, text).accepted for text in texts)
    assert len(set(texts)) > 10


def test_text_that_looks_like_a_name_is_text_where_only_text_may_stand() -> None:
    constraint = compile_bytes(guided.tags([guided.Tag(guided.special_token("<a>"), guided.regex("<a>|x"))]))
    assert judge(constraint, "<a><a> <a>x").accepted
    assert not judge(constraint, "<a><b>").accepted
