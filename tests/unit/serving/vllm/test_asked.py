"""vLLM's structured outputs as requests of ours."""

import pytest

import guided
from guided.serving import Request, RequestKind
from guided.serving.vllm.asked import asked, asked_by_name, field_of
from tests.unit.serving.vllm.stand_ins import StructuredOutputsParams as Params
from tests.unit.serving.vllm.stand_ins import config_class

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
TEXT = '{"type": "object", "properties": {"a": {"type": "integer"}}}'


@pytest.mark.parametrize(("params", "request_"), [
    (Params(json=SCHEMA), Request(RequestKind.JSON_SCHEMA, TEXT)),
    (Params(json=TEXT), Request(RequestKind.JSON_SCHEMA, TEXT)),
    (Params(json={}), Request(RequestKind.JSON_SCHEMA, "{}")),
    (Params(json_object=True), Request(RequestKind.JSON_OBJECT, "")),
    (Params(regex=""), Request(RequestKind.REGEX, "")),
    (Params(choice=["a", "é"]), Request(RequestKind.CHOICE, '["a", "\\u00e9"]')),
    (Params(grammar="start: A"), Request(RequestKind.GRAMMAR, "start: A")),
    (Params(structural_tag="{}"), Request(RequestKind.STRUCTURAL_TAG, "{}")),
])  # fmt: skip
def test_each_kind(params, request_):
    assert asked(params) == request_


@pytest.mark.parametrize("params", [Params(), Params(regex="a", json={}), Params(json_object=False)])
def test_nothing_and_too_much_are_refused(params):
    with pytest.raises(guided.GrammarError):
        asked(params)


def test_white_space_and_objects():
    config = config_class()(backend="guidance", disable_any_whitespace=True, disable_additional_properties=True)
    assert asked(Params(json=TEXT), config) == Request(RequestKind.JSON_SCHEMA, TEXT, whitespace="compact", closed=True)
    assert asked(Params(json_object=True), config) == Request(RequestKind.JSON_OBJECT, "", whitespace="compact")
    assert asked(Params(regex="a"), config) == Request(RequestKind.REGEX, "a")
    assert asked(Params(json=TEXT, whitespace_pattern=" ?"), config).whitespace == " ?"
    assert asked(Params(json=TEXT, disable_any_whitespace=True)).whitespace == "compact"
    assert asked(Params(json=TEXT, disable_additional_properties=True)).closed


def test_by_name_it_is_the_same_request():
    config = config_class()(backend="guidance", disable_any_whitespace=True, disable_additional_properties=True)
    names = {"JSON": Params(json=TEXT), "REGEX": Params(regex="a"), "GRAMMAR": Params(grammar='root ::= "a"')}
    names |= {"CHOICE": Params(choice=["a"]), "STRUCTURAL_TAG": Params(structural_tag="{}")}
    names |= {"JSON_OBJECT": Params(json_object=True)}
    for name, params in names.items():
        request = asked(params, config)
        assert asked_by_name(name, request.text, config) == request


def test_every_kind_has_a_field():
    # vLLM tells notations by their looks.
    assert {field_of(kind) for kind in RequestKind if kind is not RequestKind.EBNF} == {
        f"structured_outputs.{name}" for name in ("json", "json_object", "regex", "choice", "grammar", "structural_tag")
    }
