"""What requests of SGLang ask for, and what the plug-in does where SGLang is not; the rest is in tests/serving."""

from __future__ import annotations

import json

import pytest

import guided
from guided.errors import GrammarError, UnsupportedError
from guided.serving import Request, RequestKind
from guided.serving.sglang import register
from guided.serving.sglang.asked import ANY_JSON, asked_json, asked_tag, content_of
from guided.vocab import Vocabulary

VOCABULARY = Vocabulary.from_tokens([bytes([byte]) for byte in range(128)] + [None], eos_ids=[128])


def _accepts(request, text):
    constraint = guided.compile(request.grammar(VOCABULARY), VOCABULARY)
    return constraint.is_accepting(constraint.advance_bytes(constraint.start, text.encode()))


def test_any_json_is_any_value():
    assert all(_accepts(asked_json(ANY_JSON, None), text) for text in ('{"a": [1]}', "[]", "null"))
    assert not _accepts(asked_json('{"type": "array"}', None), "{}")
    assert asked_json("{}", "compact").whitespace == "compact"


@pytest.mark.parametrize("least", [False, True])
def test_the_older_notation_is_a_triggered_tag(least):
    structures = [{"begin": "<f=x>", "schema": {"type": "integer"}, "end": "</f>"}, {"begin": "<f=y>", "end": "</f>"}]
    request = asked_tag(json.dumps({"structures": structures, "triggers": ["<f="], "at_least_one": least}), None)
    assert request.kind is RequestKind.STRUCTURAL_TAG
    assert _accepts(request, "<f=x>3</f>") and _accepts(request, '<f=y>{"any": 1}</f>')
    assert not _accepts(request, "<f=x>true</f>") and _accepts(request, "nothing") != least


def test_schemas_that_are_left_out_are_any_value_and_others_stay_as_they_are():
    inner = {"type": "object", "properties": {"type": {"const": "json_schema"}}, "required": ["type"]}
    tag = {"type": "structural_tag", "format": {"type": "sequence", "elements": [
        {"type": "json_schema", "json_schema": None}, {"type": "json_schema"},
        {"type": "json_schema", "json_schema": inner},
    ]}}  # fmt: skip
    elements = json.loads(asked_tag(json.dumps(tag), None).text)["format"]["elements"]
    assert [each["json_schema"] for each in elements] == [True, True, inner]


@pytest.mark.parametrize("text", ["", "[1]", '"x"', "{"])
def test_what_is_no_object_is_refused(text):
    with pytest.raises(GrammarError, match="structural tag"):
        asked_tag(text, None)


@pytest.mark.parametrize("request_", [
    asked_json('{"type": "integer"}', None),
    asked_tag('{"type": "structural_tag", "format": {"type": "regex", "pattern": "[0-9]+"}}', None),
])  # fmt: skip
def test_a_request_stands_inside_a_frame(request_):
    elements = [{"type": "const_string", "value": "<"}, content_of(request_), {"type": "const_string", "value": ">"}]
    framed = {"type": "structural_tag", "format": {"type": "sequence", "elements": elements}}
    assert _accepts(asked_tag(json.dumps(framed), None), "<12>")


def test_what_is_named_stands_alone():
    with pytest.raises(UnsupportedError, match="'shop' cannot stand inside the frame"):
        content_of(Request.of_grammar("%named shop"))


def test_where_sglang_is_another_release_nothing_is_done(monkeypatch, caplog):
    monkeypatch.setattr("guided.serving.sglang.version", lambda name: "0.4.1")
    register()
    assert "this is SGLang 0.4.1" in caplog.text and "0.5.23" in caplog.text
