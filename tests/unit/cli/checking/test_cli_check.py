"""`guided check`: facts, examples that are in the language, and verdicts with their place."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest

import guided
from guided.cli.checking.byte_texts import judge
from guided.cli.checking.grammar_facts import facts_of, rule_lines
from guided.eval.byte_sampling import compile_bytes, sample_text, shortest_text
from tests.unit.cli.conftest import PERSON

LARK = 'start: (pair ";")+\npair: NAME "=" NUMBER\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/\n%ignore " "\n'
GBNF = 'root ::= "[" (root ("," root)*)? "]" | [a-z]{2,4}\n'


def record(result):
    assert result.stderr == ""
    return json.loads(result.stdout)


def test_facts_of_a_schema(guided_cli, person):
    found = record(guided_cli("check", person, "--json"))
    assert found["format"] == "JSON Schema"
    assert found["lexing"].startswith("none")
    assert found["rules"] >= 1
    assert found["recursive"] == []
    assert json.loads(found["shortest"]) == {"name": "", "age": 0}
    jsonschema.validate(json.loads(found["example"]), PERSON)


def test_the_page_for_people(guided_cli, person):
    result = guided_cli("check", person, "--rules")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert "JSON Schema" in result.stdout
    assert "none: the language is regular" in result.stdout
    assert "JSON text ::=" in result.stdout
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(
    ("suffix", "text", "format", "lexing", "recursive", "good", "bad"),
    [
        ("lark", LARK, "Lark", "contextual", [], "a = 1; b=22;", "a = ;"),
        ("gbnf", GBNF, "GBNF", "none", ["root"], "[ab,[cd,[]]]", "[a]"),
        ("regex", r"\d{3}-[a-c]+" + "\n", "regular expression", "none", [], "123-abc", "123-"),
    ],
)
def test_formats_by_suffix(guided_cli, tmp_path, suffix, text, format, lexing, recursive, good, bad):
    path = tmp_path / f"grammar.{suffix}"
    path.write_text(text)
    found = record(guided_cli("check", path, "--accepts", good, "--json"))
    assert found["format"] == format
    assert found["lexing"].startswith(lexing)
    assert found["recursive"] == recursive
    assert found["accepts"] == {"accepted": True}
    for shown in (found["shortest"], found["example"]):
        assert guided_cli("check", path, "--accepts", shown).exit_code == 0, shown
    assert guided_cli("check", path, "--accepts", bad).exit_code == 1


def test_standard_input_needs_a_format(guided_cli):
    assert guided_cli("check", "-", "--format", "regex", "--accepts", "aab", stdin="a+b\n").exit_code == 0
    for format, text in (("iso-ebnf", "a = 'a', b; b = {'b'}-;"), ("w3c-ebnf", "a ::= 'a' b b ::= 'b'+")):
        assert guided_cli("check", "-", "--format", format, "--accepts", "abb", stdin=text).exit_code == 0
        assert (
            guided_cli("check", "-", "--format", format, "--start", "b", "--accepts", "abb", stdin=text).exit_code == 1
        )
    result = guided_cli("check", "-", stdin="a+b\n")
    assert result.exit_code == 2
    assert (
        "--format json-schema|proto|openapi|typescript|lark|gbnf|ebnf|llguidance|xgrammar-lark|iso-ebnf|w3c-ebnf|antlr|regex"
        in result.stderr
    )


@pytest.mark.parametrize(
    ("text", "line", "column", "found", "expected"),
    [
        ('{"name": "Ada",\n  "age": x}', 2, 10, "x", "a digit"),
        ('{"name": "Ada", "age": 1777}', 1, 26, "7", "white space"),
        ('{"name": "é\x01"}', 1, 12, "\x01", "any character"),
        ('{"nome": 1}', 1, 4, "o", "'ame\"'"),
        ('{"name": "Ada"', 1, 15, None, "',' or white space"),
        ("", 1, 1, None, "'{' or white space"),
    ],
)
def test_where_a_text_fails(guided_cli, person, text, line, column, found, expected):
    result = guided_cli("check", person, "--accepts", text, "--json")
    verdict = record(result)["accepts"]
    assert result.exit_code == 1
    assert not verdict["accepted"]
    assert (verdict["line"], verdict["column"], verdict["found"]) == (line, column, found)
    assert expected in verdict["expected"], verdict["expected"]


def test_the_page_says_where_and_what_was_expected(guided_cli, person):
    result = guided_cli("check", person, "--accepts", '{"name": 7}')
    page = " ".join(result.stdout.split())
    assert result.exit_code == 1
    assert "no: '7' at line 1, column 10, where '\"' is expected" in page
    assert "7 is not of type 'string' (at $.name)" in page, "the schema's own objection"


def test_order_of_members_is_told_apart_from_invalid_values(guided_cli, person):
    text = '{"age": 1, "name": "x"}'
    verdict = record(guided_cli("check", person, "--accepts", text, "--json"))["accepts"]
    assert "--order any" in verdict["hint"]
    assert guided_cli("check", person, "--accepts", text, "--order", "any").exit_code == 0


def test_text_from_a_file(guided_cli, person, tmp_path):
    text = tmp_path / "value.json"
    text.write_text('{"name": "Ada", "age": 3}\n')
    assert guided_cli("check", person, "--accepts-file", text).exit_code == 0
    assert guided_cli("check", person, "--accepts-file", text, "--accepts", "x").exit_code == 2


def test_over_a_tokenizer(guided_cli, person, model_folder):
    for tokenizer in (model_folder, model_folder / "tokenizer.json"):
        found = record(guided_cli("check", person, "--tokenizer", tokenizer, "--json"))["tokenizer"]
        assert found["ids"] == 295
        assert 0 < found["allowed_first"] < 30
        assert found["shortest_tokens"] <= 20
    result = guided_cli("check", person, "--tokenizer", model_folder / "nothing")
    assert result.exit_code == 2
    assert "there is no tokenizer at" in result.stderr


def test_a_ready_grammar_by_name(guided_cli):
    found = record(guided_cli("check", "json", "--accepts", "[1, {}]", "--json"))
    assert found["format"] == "ready grammar"
    assert found["accepts"] == {"accepted": True}
    result = guided_cli("check", "jsn")
    assert result.exit_code == 2
    assert "neither a file nor a ready grammar" in result.stderr
    assert "smiles" in result.stderr


def test_samples_are_in_the_language_and_depend_on_the_seed_alone():
    pattern = r"[a-z]+@[a-z]+\.(org|net)( \d\d?)*"
    constraint = compile_bytes(guided.regex(pattern))
    samples = [sample_text(constraint, seed) for seed in range(20)]
    assert all(re.fullmatch(pattern, text) for text in samples)
    assert len(set(samples)) > 10
    assert samples == [sample_text(constraint, seed) for seed in range(20)]
    assert len(shortest_text(constraint)) == len("a@a.org")


def test_judge_agrees_with_re_on_every_prefix_and_change():
    pattern = "(foo|bär|fob)+[0-9]{2}"
    constraint = compile_bytes(guided.regex(pattern))
    for text in ("foobär12", "fobfob99"):
        assert judge(constraint, text).accepted
        for length in range(len(text)):
            verdict = judge(constraint, text[:length])
            assert (verdict.accepted, verdict.offset, verdict.found) == (False, length, "")
            changed = text[:length] + "☃" + text[length + 1 :]
            verdict = judge(constraint, changed)
            assert (verdict.accepted, verdict.offset, verdict.found) == (False, length, "☃")
            assert not re.fullmatch(pattern, changed)


def test_a_byte_that_is_no_text_is_rejected_where_it_stands():
    constraint = compile_bytes(guided.regex(".*"))
    assert judge(constraint, "ab\udcff").offset == 2


def test_recursive_rules_are_those_on_cycles():
    grammar = guided.gbnf(
        'root ::= a b\na ::= "(" c ")" | "x"\nc ::= a | d\nd ::= "d" root2\nroot2 ::= "q"\nb ::= "b" b "c" | "z"'
    )
    assert set(facts_of(grammar).recursive) == {"a", "c", "b"}
    lines = rule_lines(grammar)
    assert lines[0].startswith("root ::= <a> <b>")
    assert len(lines) == facts_of(grammar).rules


def test_the_report_of_a_schema(guided_cli, tmp_path):
    path = tmp_path / "schema.json"
    path.write_text('{"type": "array", "uniqueItems": true, "title": "t", "items": {"enum": [1, 2]}}')
    record = json.loads(guided_cli("check", path, "--report", "--json").stdout)
    found = {line["pointer"]: line["enforcement"] for line in record["report"]}
    assert found == {
        "#/type": "masked",
        "#/uniqueItems": "checked",
        "#/title": "annotation",
        "#/items": "masked",
        "#/items/enum": "masked",
    }
    table = guided_cli("check", path, "--report")
    assert table.exit_code == 0
    assert "3 masked, 1 checked, 1 annotation" in table.stdout


def test_the_report_of_a_schema_that_is_refused(guided_cli, tmp_path):
    path = tmp_path / "schema.json"
    path.write_text('{"properties": {"a": {"type": "string"}, "b": {"$ref": "https://example.com/b"}}}')
    result = guided_cli("check", path, "--report", "--json")
    assert result.exit_code == 3
    *_, last = json.loads(result.stdout)["report"]
    assert (last["pointer"], last["enforcement"]) == ("#/properties/b/$ref", "refused")
    assert "nothing is fetched" in last["why"]


def test_reports_are_of_schemas(guided_cli, tmp_path):
    (tmp_path / "x.lark").write_text(LARK)
    result = guided_cli("check", tmp_path / "x.lark", "--report")
    assert result.exit_code == 2
    assert "--report is for JSON Schemas" in result.stderr


def test_a_message_of_a_proto_file(guided_cli, tmp_path):
    pytest.importorskip("grpc_tools")
    path = tmp_path / "shop.proto"
    path.write_text(
        'syntax = "proto3"; import "money.proto"; message Line { Money price = 1; } message Other { bool b = 1; }'
    )
    (tmp_path / "money.proto").write_text('syntax = "proto3"; message Money { int32 cents = 1; }')
    found = record(guided_cli("check", path, "--start", "Line", "--accepts", '{"price": {"cents": 5}}', "--json"))
    assert found["format"] == "Protobuf message"
    lines = record(guided_cli("check", path, "--start", "Line", "--report", "--json"))["report"]
    assert "#/$defs/Money/properties/cents/type" in [line["pointer"] for line in lines]
    result = guided_cli("check", path)
    assert result.exit_code != 0
    assert "the file has 2 messages" in result.stderr


def test_a_schema_has_no_part_to_name(guided_cli, person):
    result = guided_cli("check", person, "--start", "name")
    assert result.exit_code != 0
    assert "--start" in result.stderr


def test_an_operation_of_an_openapi_document(guided_cli, tmp_path):
    pytest.importorskip("yaml")
    path = tmp_path / "pets.yaml"
    path.write_text(
        "openapi: 3.1.0\npaths:\n  /pets/{id}:\n    get:\n      operationId: getPet\n      parameters:\n"
        "        - {name: id, in: path, required: true, schema: {type: integer}}\n"
    )
    for name in ("getPet", "get /pets/{id}"):
        found = record(guided_cli("check", path, "--start", name, "--accepts", '{"id": 5}', "--json"))
        assert found["format"] == "OpenAPI operation"
    assert guided_cli("check", path, "--start", "getPet", "--accepts", "{}").exit_code == 1
    assert "--start" in guided_cli("check", path).stderr
    assert "Its operations are getPet" in guided_cli("check", path, "--start", "x").stderr


def test_a_type_of_a_typescript_file(guided_cli, tmp_path):
    pytest.importorskip("tree_sitter_typescript")
    path = tmp_path / "points.ts"
    path.write_text("interface Point { x: number }\nexport type Line = [Point, Point];\n")
    found = record(guided_cli("check", path, "--start", "Line", "--accepts", '[{"x": 1}, {"x": 2}]', "--json"))
    assert found["format"] == "TypeScript type"
    assert guided_cli("check", path, "--start", "Point", "--accepts", "{}").exit_code == 1


def test_limits_on_tokens_are_left_out(guided_cli, tmp_path):
    path = tmp_path / "limited.ebnf"
    path.write_text('root ::= x "."\nx[max_tokens=2] ::= [ab]*\n')
    found = record(guided_cli("check", path, "--accepts", "ababab.", "--json"))
    assert found["accepts"]["accepted"] and "max_tokens=2 counts the tokens" in found["notes"][0]
