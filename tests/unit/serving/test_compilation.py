"""`Compiler`: the same object for the same request and ends, and errors that are counted, not kept."""

import json

import pytest

import guided
from guided.serving import Request, RequestKind, compilation
from guided.serving.compilation import Compiler, compiler_for
from tests.unit.serving.vllm.stand_ins import SIZE, TOKENIZER

REQUEST = Request(RequestKind.REGEX, "[ab]+")


def test_the_same_request_is_compiled_once():
    compiler = Compiler(TOKENIZER, SIZE)
    first = compiler.constraint(REQUEST)
    assert compiler.constraint(Request(RequestKind.REGEX, "[ab]+")) is first
    assert compiler.constraint(REQUEST, []) is first
    assert compiler.constraint(Request(RequestKind.REGEX, "[ab]*")) is not first


def test_other_ends_are_another_constraint():
    compiler = Compiler(TOKENIZER, SIZE)
    stop = TOKENIZER.encode("}", add_special_tokens=False)[-1]
    other = compiler.constraint(REQUEST, {stop, TOKENIZER.eos_token_id})
    assert other.advance(other.advance_bytes(other.start, b"a"), stop) == other.end
    assert compiler.constraint(REQUEST, [TOKENIZER.eos_token_id, stop, stop]) is other
    own = compiler.constraint(REQUEST)
    assert own.advance(own.advance_bytes(own.start, b"a"), stop) == 0


def test_an_error_comes_each_time():
    compiler = Compiler(TOKENIZER, SIZE)
    for _ in range(2):
        with pytest.raises(guided.GrammarError):
            compiler.constraint(Request(RequestKind.REGEX, "("))


def test_what_came_to_a_limit_is_not_tried_again(monkeypatch):
    compiler = Compiler(TOKENIZER, SIZE)
    schema = {"patternProperties": {f"^[a-z]{{{n}}}x": {"type": "integer"} for n in range(1, 20)}}
    request = Request(RequestKind.JSON_SCHEMA, json.dumps(schema))
    with pytest.raises(guided.LimitError) as first:
        compiler.constraint(request)
    monkeypatch.setattr(Request, "grammar", None)
    for _ in range(2):
        with pytest.raises(guided.LimitError) as again:
            compiler.constraint(request)
        assert str(again.value) == str(first.value) and again.value is not first.value
        assert (again.value.where, again.value.remedy) == (first.value.where, first.value.remedy)


def test_limits_are_those_of_the_compiler():
    limits = guided.Limits(step_work=123_456)
    assert Compiler(TOKENIZER, SIZE, limits).constraint(REQUEST).limits == limits


def test_few_are_kept(monkeypatch):
    monkeypatch.setattr(compilation, "KEPT", 2)
    compiler = Compiler(TOKENIZER, SIZE)
    requests = [Request(RequestKind.REGEX, text) for text in "abc"]
    first, *_ = [compiler.constraint(request) for request in requests]
    assert len(compiler._made) == 2
    assert compiler.constraint(requests[0]) is not None and first is not None


def test_a_tokenizer_has_one_compiler():
    assert compiler_for(TOKENIZER, SIZE) is compiler_for(TOKENIZER, SIZE)
    assert compiler_for(TOKENIZER, SIZE) is not compiler_for(TOKENIZER, SIZE + 32)
    assert compiler_for(TOKENIZER, SIZE + 32).constraint(REQUEST).vocabulary.size == SIZE + 32


def test_warming_up_is_a_text():
    compiler = Compiler(TOKENIZER, SIZE)
    compiler.warm()
    assert len(compiler._made) == 1


def test_an_operator_sets_limits(monkeypatch):
    monkeypatch.setenv("GUIDED_LIMITS", "step_work=1_000, steps=7")
    made = compiler_for(object(), 3)
    assert (made.limits.step_work, made.limits.steps) == (1000, 7)
    assert made.limits.mask_bytes == guided.Limits().mask_bytes


@pytest.mark.parametrize("text", ["step_work", "step_work=", "step_work=-1", "work=3", "step_work=1__5", "step_work=²"])
def test_what_is_no_limit_is_said(monkeypatch, text):
    monkeypatch.setenv("GUIDED_LIMITS", text)
    with pytest.raises(guided.GuidedError, match=r"is no limit \(at GUIDED_LIMITS\).*step_work"):
        compiler_for(object(), 3)
