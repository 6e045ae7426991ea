"""`Request`: kinds and texts as grammars, and what is refused."""

import json

import pytest
from transformers import AutoTokenizer

import guided
from guided.nano import MODEL_PATH
from guided.serving import Request, RequestKind, Vocabularies

VOCABULARY = guided.Vocabulary.from_tokens([bytes([i]) for i in range(255)] + [None], eos_ids=[255])


def takes(request: Request, text: str) -> bool:
    constraint = guided.compile(request.grammar(VOCABULARY), VOCABULARY)
    state = constraint.advance_bytes(constraint.start, text.encode())
    return bool(state) and constraint.is_accepting(state)


@pytest.mark.parametrize(
    ("kind", "text", "good", "bad"),
    [
        (RequestKind.JSON_SCHEMA, '{"type": "integer", "multipleOf": 3}', "12", "13"),
        (RequestKind.JSON_OBJECT, "", '{"a": [1]}', "[1]"),
        (RequestKind.REGEX, "(?=.*7)[0-9]{3}", "174", "184"),
        (RequestKind.CHOICE, '["yes", "no"]', "no", "y"),
        (RequestKind.GRAMMAR, 'root ::= "a" root | "b"', "aab", "aa"),
        (RequestKind.EBNF, 'root ::= [ab]+ "c"', "abc", "ab"),
        (RequestKind.GRAMMAR, 'start: "a" start | "::= b"', "aa::= b", "b"),
    ],
)
def test_each_kind(kind, text, good, bad):
    assert takes(Request(kind, text), good)
    assert not takes(Request(kind, text), bad)


def test_white_space_and_strictness_are_those_of_schemas():
    schema = json.dumps({"properties": {"a": {}}, "type": "object"})
    assert takes(Request(RequestKind.JSON_SCHEMA, schema), '{"b": 1}')
    assert not takes(Request(RequestKind.JSON_SCHEMA, schema, strict=True), '{"b": 1}')
    assert not takes(Request(RequestKind.JSON_SCHEMA, schema, whitespace="compact"), '{"a": 1}')


@pytest.mark.parametrize(
    ("kind", "text", "error", "says"),
    [
        (RequestKind.JSON_SCHEMA, "{", guided.GrammarError, "JSON"),
        (RequestKind.JSON_SCHEMA, '{"type": "strnig"}', guided.GrammarError, "#/type"),
        (RequestKind.REGEX, "(", guided.GrammarError, "offset"),
        (RequestKind.CHOICE, '"yes"', guided.GrammarError, "array of texts"),
        (RequestKind.CHOICE, '["yes", 1]', guided.GrammarError, "array of texts"),
        (RequestKind.CHOICE, "[yes]", guided.GrammarError, "not JSON"),
        (RequestKind.CHOICE, "[]", guided.UnsatisfiableError, "option"),
        (RequestKind.GRAMMAR, "root ::= x", guided.GrammarError, "line 1, column 10"),
        (RequestKind.GRAMMAR, "start: x", guided.GrammarError, "x"),
    ],
)
def test_what_is_refused_says_where(kind, text, error, says):
    with pytest.raises(error, match=says):
        Request(kind, text).grammar(VOCABULARY)


def test_vocabularies_are_made_once_for_each_set_of_ends():
    tokenizer = AutoTokenizer.from_pretrained(MODEL_PATH)
    vocabularies = Vocabularies(tokenizer)
    own = vocabularies.ending_with()
    assert vocabularies.ending_with() is own
    more = vocabularies.ending_with([*own.eos_ids, 5])
    assert more is vocabularies.ending_with([5, *own.eos_ids]) and more is not own
    assert set(more.eos_ids) == {*own.eos_ids, 5}
    assert len(Vocabularies(tokenizer, size=len(own) + 64).ending_with()) == len(own) + 64
    with pytest.raises(guided.VocabularyError):
        vocabularies.ending_with([1 << 30])
