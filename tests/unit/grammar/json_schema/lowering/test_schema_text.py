"""How the text is written: white space, escapes, order, compact form, open values, duplicates."""

from __future__ import annotations

import json
import pickle
import random
from typing import Any

import pytest

from guided.errors import GrammarError
from guided.grammar.ir import DeferredMembers, Terminal
from guided.grammar.json_schema import json_schema
from guided.grammar.json_schema.layout import Spelling
from guided.grammar.json_schema.sets.strings import quoted
from guided.grammar.regular.texts import CONTENT
from tests.twin import json_schemas
from tests.twin.earley import Recogniser, accepts, is_prefix

RECORD = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "tag": {"enum": ["x/é", 1, None, [True]]}},
    "required": ["name"],
    "additionalProperties": False,
}


def yes(schema: Any, text: str, **options: Any) -> bool:
    return accepts(json_schema(schema, **options), text.encode())


def test_white_space_stands_where_json_allows_it() -> None:
    text = ' \t{ "name" : "a" ,\n"tag" :\r[ true ] } \n'
    assert yes(RECORD, text, spelling="any")
    assert yes(RECORD, text, whitespace="any")
    assert not yes(RECORD, text)
    assert not yes(RECORD, text, whitespace="compact")
    assert yes(RECORD, '{"name":"a","tag":[true]}', whitespace="compact")
    assert yes(RECORD, '{"name": "a", "tag": [true]}', whitespace=" ?")
    assert not yes(RECORD, '{"name":  "a"}', whitespace=" ?")
    for spelling in ("plain", "any"):
        assert not yes(RECORD, '{"na me": "a"}', spelling=spelling)
        assert not yes({"type": "integer"}, "1 2", spelling=spelling)
        assert not yes({"type": "integer"}, "\u00a01", spelling=spelling)


def test_a_white_space_pattern_must_be_white_space() -> None:
    with pytest.raises(GrammarError, match="white space"):
        json_schema(True, whitespace=r"\s*")
    with pytest.raises(GrammarError, match="order"):
        json_schema(True, order="alphabetic")
    with pytest.raises(GrammarError, match="spelling"):
        json_schema(True, spelling="nice")


def test_every_escape_spells_names_constants_and_strings() -> None:
    def any_yes(text: str) -> bool:
        return yes(RECORD, text, spelling="any")

    assert any_yes(r'{"\u006eame": "\ud83d\ude00\/", "tag": "x\/\u00E9"}')
    assert not any_yes(r'{"name": "\x"}')
    assert not any_yes('{"name": "a\nb"}')
    assert not any_yes('{"name": "\\ud800"}')
    assert not any_yes('{"name": "\x1f"}')


PLAIN = [
    ("{}", ["{}", "{ }", "{\n}", " {}\n"], ["{\n\n}", "{  }", "{\t}", "\n\n{}", "{} \n"]),
    (
        '{"name": "a", "age": 1}',
        [
            '{"name":"a","age":1}', '{ "name" : "a" , "age" : 1 }', '{\n\t"name": "a",\r\n\t"age": 1\n}',
            '{"name":\n"a"}', "{" + "\n" + " " * 64 + '"name": "a"}',
        ],
        [
            '{"name"\n: "a"}', '{"name":  "a"}', '{"name": "a",  "age": 1}', "{" + "\n" + " " * 65 + '"name": "a"}',
            '{"\\u006eame": "a"}', '{"name": "\\u0061"}', '{"name": "a", "age": 1.0}', '{"name": "a", "age": 1e0}',
            '{"name": "a", "age": -0}', '{"name": "a",\n\n"age": 1}',
        ],
    ),
    (
        '{"name": "/ é \x7f \u2028 \U0001f600"}',
        [r'{"name": "\" \\ \b \f \n \r \t \u0000 \u000b \u001f"}'],
        [
            r'{"name": "\/"}', r'{"name": "\u00e9"}', r'{"name": "\u0022"}', r'{"name": "\u000a"}',
            r'{"name": "\u001F"}', r'{"name": "\u007f"}', r'{"name": "\u2028"}', r'{"name": "\ud83d\ude00"}',
        ],
    ),
    ('{"name": "a", "tag": "x/é"}', ['{"name": "a", "tag": 1}'], [r'{"name": "a", "tag": "x\/é"}', '{"tag": 1.0}']),
]  # fmt: skip


@pytest.mark.parametrize(("text", "others", "not_plain"), PLAIN)
@pytest.mark.parametrize("order", ["schema", "any"])
def test_plain_spelling(text: str, others: list[str], not_plain: list[str], order: str) -> None:
    closed = {**RECORD, "required": []}
    for schema in (closed, {**closed, "additionalProperties": True}, True):
        for each in (text, *others):
            assert yes(schema, each, order=order), each
    for schema in (closed, {**closed, "additionalProperties": True}):
        for each in not_plain:
            assert not yes(schema, each, order=order), each
            assert yes(schema, each, order=order, spelling="any"), each


def test_compact_is_no_white_space_at_all() -> None:
    assert yes(RECORD, '{"name":"a","tag":"x/é"}', whitespace="compact")
    assert not yes(RECORD, '{"name": "a"}', whitespace="compact")
    assert not yes(RECORD, '{"name": "a"}', whitespace="compact", spelling="any")
    assert not yes(RECORD, '{"\\u006eame":"a"}', whitespace="compact")
    assert yes(RECORD, '{"\\u006eame":"a"}', whitespace="compact", spelling="any")


def test_constants_are_spelled_as_json_dumps_writes_them() -> None:
    assert not yes({"const": 1}, "1.0")
    assert yes({"const": 1}, "1.0", spelling="any")
    for value in (0.5, 1e-7, -3, 123456789012345678901234567890, 2.0, 1e22, -0.5e-300, 0, 19.9):
        assert yes({"const": value}, json.dumps(value)), value
        assert yes({"enum": [value, "a", {"b": [value]}]}, json.dumps({"b": [value]})), value
        assert not yes({"const": value}, json.dumps(value) + "0"), value
    # Where the schema itself writes a fraction, so may the text; not where an integer is asked for.
    assert yes({"enum": [1.0, 1.5]}, "1")
    assert yes({"enum": [1.0, 1.5]}, "1.0")
    assert not yes({"enum": [1.0, 1.5], "type": "integer"}, "1.0")


@pytest.mark.parametrize("seed", range(3))
def test_json_dumps_writes_compact_texts(seed: int) -> None:
    rnd = random.Random(seed)
    for _ in range(40):
        value = json_schemas.value(rnd)
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        assert accepts(json_schema({"const": value}, whitespace="compact"), text)
        assert accepts(json_schema(True, whitespace="compact"), text)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_json_dumps_writes_is_plain(seed: int) -> None:
    rnd = random.Random(10 + seed)
    for _ in range(40):
        value = json_schemas.value(rnd, 4)
        grammars = [json_schema({"const": value}), json_schema(True)]
        indents = [None, 0, 1, 2, 4, 8, "\t"]
        separators = [None, (",", ":"), (", ", ": "), (" , ", " : "), (",", ": ")]
        text = json.dumps(value, ensure_ascii=False, indent=rnd.choice(indents), separators=rnd.choice(separators))
        escaped = json.dumps(value, indent=2)
        for grammar in grammars:
            if ",  " not in text and ", \n" not in text:
                assert accepts(grammar, text.encode()), text
            # Escapes of what is not ASCII are needless.
            assert accepts(grammar, escaped.encode()) is (json.dumps(value, ensure_ascii=False, indent=2) == escaped)


def test_members_come_in_schema_order_or_in_any() -> None:
    turned = '{"age": 1, "name": "a"}'
    assert not yes(RECORD, turned)
    assert yes(RECORD, turned, order="any")
    assert not yes(RECORD, '{"age": 1}', order="any")
    for order in ("schema", "any"):
        assert not yes(RECORD, '{"name": "a", "name": "a"}', order=order)
        assert not yes(RECORD, '{"name": "a",}', order=order)
        assert not yes(RECORD, '{"name": "a", "other": 1}', order=order)


def test_undeclared_names_stand_anywhere_but_are_never_declared_ones() -> None:
    open_record = {**RECORD, "additionalProperties": {"type": "integer"}}
    assert yes(open_record, '{"z": 1, "name": "a", "nam": 2, "names": 3, "age": 3, "y": 4}')
    assert yes(open_record, '{"z": 1, "name": "a", "nam": 2, "names": 3, "age": 3, "\\u007a": 4}', spelling="any")
    for spelling in ("plain", "any"):
        assert not yes(open_record, '{"z": "1", "name": "a"}', spelling=spelling)
        assert not yes(open_record, '{"name": "a", "\\u006eame": 1}', spelling=spelling)


def test_a_forbidden_name_is_not_an_undeclared_one() -> None:
    schema = {"properties": {"a": False, "b": {"enum": []}, "c": {"type": "array", "minItems": 1, "items": False}}}
    assert yes(schema, '{"d": 1}')
    for name in "abc":
        assert not yes(schema, f'{{"{name}": 1}}'), name
        assert not yes(schema, f'{{"{name}": [1]}}'), name
    assert yes({"properties": {"c": {"minItems": 1, "items": False}}}, '{"c": 1}')


def test_open_values_are_all_of_json() -> None:
    rnd = random.Random(5)
    grammar = json_schema(True, spelling="any")
    for _ in range(60):
        assert accepts(grammar, json.dumps(json_schemas.value(rnd, 4), indent=rnd.choice([None, 2])).encode())
    for text in ("", "nul", "[1,]", "{,}", '{"a"}', "01", "[1 2]", "'a'", '"a', "tru e", "[[]", "{}{}"):
        assert not accepts(grammar, text.encode()), text


def test_counts() -> None:
    some = {"type": "object", "minProperties": 1, "maxProperties": 2}
    assert [yes(some, text) for text in ("{}", '{"a":1}', '{"a":1,"b":1}', '{"a":1,"b":1,"c":1}')] == [
        False,
        True,
        True,
        False,
    ]
    items = {"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "minItems": 1, "maxItems": 3}
    wanted = {"[]": False, "[1]": True, "[1,2]": True, "[1,2,3]": True, "[1,2,3,4]": False, "[2]": False}
    assert {text: yes(items, text) for text in wanted} == wanted


def test_large_counts_and_enums_are_not_unrolled() -> None:
    grammar = json_schema({"type": "array", "items": {"type": "string", "maxLength": 10**9}, "maxItems": 10**9})
    assert len(grammar.rules) < 5
    names = [f"entry {i:05}" for i in range(10_000)]
    for layout in (None, "compact"):
        choice = json_schema({"enum": names}, whitespace=layout)
        start = Recogniser(choice)
        assert start.feed(b'"entry 09999"').accepting
        assert not accepts(choice, b'"entry 10000"')
        assert is_prefix(choice, b'"entry 0999')


@pytest.mark.parametrize("spelling", list(Spelling))
def test_strings_of_any_text_are_one_shared_expression(spelling: Spelling) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    grammar = json_schema(schema, spelling=spelling.value)
    found = [t for rule in grammar.rules for t in _terminals(rule.body) if t.label.split(" ")[0] == "string"]
    assert len(found) >= 3
    assert all(terminal.expr is quoted(CONTENT, spelling) for terminal in found)
    assert {terminal.label for terminal in found} >= {"string at #/properties/a", "string at #/properties/b"}


def _terminals(body: Any) -> list[Terminal]:
    if isinstance(body, Terminal):
        return [body]
    if isinstance(body, DeferredMembers):
        return _terminals(body.written())
    parts: list[Any] = []
    for name in ("parts", "options", "declared", "extras"):
        parts.extend(getattr(body, name, ()))
    for name in ("body", "key", "value", "separator"):
        if getattr(body, name, None) is not None:
            parts.append(getattr(body, name))
    return [terminal for part in parts for terminal in _terminals(part)]


def test_grammars_are_picklable_and_keyed_by_content() -> None:
    grammar = json_schema(RECORD, order="any", whitespace=" ?")
    again = pickle.loads(pickle.dumps(grammar))
    assert again.key == grammar.key is not None
    assert accepts(again, b'{"age": 1, "name": "a"}')
    keys = {json_schema(RECORD, order=o, whitespace=w).key for o in ("schema", "any") for w in (None, "compact")}
    keys |= {json_schema(RECORD, spelling="any").key}
    assert len(keys) == 5
    assert json_schema(json.dumps(RECORD)).key == json_schema(RECORD).key


def test_notes_say_how_numbers_are_read() -> None:
    assert json_schema({"type": "string"}, spelling="any").notes == ()
    for schema in ({"type": "integer"}, {"type": "number", "minimum": 3}):
        assert any("exponent" in note for note in json_schema(schema, spelling="any").notes)
        assert json_schema(schema).notes == ()
