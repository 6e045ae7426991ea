"""Verdicts on engines whose faults are known: ours, made to ignore, refuse, narrow or break on purpose."""

from __future__ import annotations

import importlib.util
import json

import pytest

from guided.errors import UnsupportedError
from guided.eval import compare as module
from guided.eval.compare import Verdict, compare
from guided.eval.engines.names import PACKAGES, EngineName
from guided.eval.engines.opening import open_engine
from guided.eval.occurrences import Occurrence, occurrences, without

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 6},
        "n": {"type": "integer", "minimum": 0},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True},
    },
    "required": ["name"],
    "additionalProperties": False,
}
ASSERTING = {
    "#/type", "#/required", "#/additionalProperties", "#/properties/name/type", "#/properties/name/minLength",
    "#/properties/name/maxLength", "#/properties/n/type", "#/properties/n/minimum", "#/properties/tags/type",
    "#/properties/tags/uniqueItems", "#/properties/tags/items/enum",
}  # fmt: skip


class Changed:
    """Our engine, given another schema than it was asked for."""

    def __init__(self, tokens, change):
        self.inner = open_engine(EngineName.GUIDED, tokens)
        self.change = change

    def compile(self, schema):
        return self.inner.compile(self.change(schema))


def ignoring(*keywords):
    def change(schema):
        return without(schema, [one for one in occurrences(schema) if one.keyword in keywords])

    return change


def refusing(*keywords):
    def change(schema):
        found = sorted({one.keyword for one in occurrences(schema)} & set(keywords))
        if found:
            raise UnsupportedError(f"no {found[0]}")
        return schema

    return change


def narrowing(schema):
    """An engine that never writes an empty list where the items are restricted."""
    text = json.dumps(schema)
    return json.loads(text.replace('"uniqueItems": true', '"uniqueItems": true, "minItems": 1'))


def halving(schema):
    """An engine that enforces a minimum only from below -1 on."""
    return json.loads(json.dumps(schema).replace('"minimum": 0', '"minimum": -1'))


@pytest.fixture
def verdicts(tokens, monkeypatch):
    """Compare our engine with one changed like this; the verdicts on the changed one by pointer, and all of it."""

    def run(change, schema=SCHEMA, given=()):
        def opened(name, tokens):
            return Changed(tokens, change) if name is EngineName.XGRAMMAR else open_engine(name, tokens)

        monkeypatch.setattr(module, "open_engine", opened)
        result = compare(schema, tokens, [EngineName.GUIDED, EngineName.XGRAMMAR], given)
        found = {one.pointer: row[EngineName.XGRAMMAR].verdict for one, row in result.keywords.items()}
        for one, row in result.keywords.items():
            if one in result.probes.mutants:
                assert row[EngineName.GUIDED].verdict is Verdict.ENFORCED, one.pointer
        return found, result

    return run


def others(found, *pointers):
    return {verdict for pointer, verdict in found.items() if pointer not in pointers}


def test_an_engine_that_does_all(verdicts):
    found, result = verdicts(lambda schema: schema)
    assert set(found) == ASSERTING
    assert set(found.values()) == {Verdict.ENFORCED}
    for view in result.engines:
        assert (view.message, view.refused) == ("", ())
        assert view.valid_accepted == view.valid == len(result.probes.valid) > 2


@pytest.mark.parametrize(
    ("keyword", "pointer"),
    [
        ("minLength", "#/properties/name/minLength"),
        ("uniqueItems", "#/properties/tags/uniqueItems"),
        ("required", "#/required"),
        ("additionalProperties", "#/additionalProperties"),
        ("minimum", "#/properties/n/minimum"),
        ("enum", "#/properties/tags/items/enum"),
    ],
)
def test_what_is_ignored(verdicts, keyword, pointer):
    found, _ = verdicts(ignoring(keyword))
    assert found[pointer] is Verdict.IGNORED
    assert others(found, pointer) == {Verdict.ENFORCED}


def test_what_is_enforced_in_part(verdicts):
    schema = {"type": "array", "items": {"type": "integer", "minimum": 0}, "maxItems": 1, "minItems": 1}
    found, result = verdicts(halving, schema)
    row = result.keywords[Occurrence(("items",), "minimum")]
    assert found["#/items/minimum"] is Verdict.PARTLY
    assert "allows [-1]" in row[EngineName.XGRAMMAR].detail
    assert others(found, "#/items/minimum") == {Verdict.ENFORCED}


def test_what_is_refused(verdicts):
    found, result = verdicts(refusing("uniqueItems"))
    assert found["#/properties/tags/uniqueItems"] is Verdict.REFUSED
    assert others(found, "#/properties/tags/uniqueItems") == {Verdict.ENFORCED}, "the rest is tried without it"
    view = result.engines[1]
    assert view.message == "UnsupportedError: no uniqueItems"
    assert [one.pointer for one in view.refused] == ["#/properties/tags/uniqueItems"]


def test_several_are_refused_and_each_has_its_message(verdicts):
    """No single removal helps: the fewest are found, and each is told by what the engine says when it alone is left."""
    found, result = verdicts(refusing("uniqueItems", "minLength", "minimum"))
    pointers = ("#/properties/tags/uniqueItems", "#/properties/name/minLength", "#/properties/n/minimum")
    assert {found[pointer] for pointer in pointers} == {Verdict.REFUSED}
    assert others(found, *pointers) == {Verdict.ENFORCED}
    details = {one.keyword: row[EngineName.XGRAMMAR].detail for one, row in result.keywords.items()}
    assert details["minimum"] == "UnsupportedError: no minimum"
    assert details["uniqueItems"] == "UnsupportedError: no uniqueItems"


def test_refused_and_ignored_at_once(verdicts):
    def change(schema):
        return ignoring("maxLength")(refusing("uniqueItems")(schema))

    found, _ = verdicts(change)
    assert found["#/properties/tags/uniqueItems"] is Verdict.REFUSED
    assert found["#/properties/name/maxLength"] is Verdict.IGNORED


def test_an_engine_that_refuses_everything(verdicts):
    def change(schema):
        raise UnsupportedError("not today")

    found, result = verdicts(change, given=[("x", '{"name":"abc"}')])
    assert set(found.values()) == {Verdict.UNKNOWN}
    assert result.engines[1].refused == ()
    assert result.engines[1].valid_accepted == 0
    assert result.given[0].accepted == {EngineName.GUIDED: True, EngineName.XGRAMMAR: None}


def test_what_is_too_strict(verdicts):
    schema = {"type": "object", "properties": {"t": SCHEMA["properties"]["tags"]}, "required": ["t"]}
    found, result = verdicts(narrowing, schema)
    assert found["#/properties/t/uniqueItems"] is Verdict.TOO_STRICT
    assert result.engines[1].valid_accepted < result.engines[1].valid


def test_an_engine_that_breaks_while_reading(verdicts):
    """What raises in the middle is not accepted, valid or not, and nothing is told about keywords."""

    class Broken:
        notes = ()

        def start(self):
            return self

        def fill_mask(self, row, left):
            row[:] = 0xFFFFFFFF

        def advance(self, token):
            raise ValueError("oh")

    class Inner:
        def compile(self, schema):
            return Broken()

    class Breaking(Changed):
        def __init__(self, tokens, change):
            self.inner, self.change = Inner(), change

    module_changed = Changed
    try:
        globals()["Changed"] = Breaking
        found, result = verdicts(lambda schema: schema)
    finally:
        globals()["Changed"] = module_changed
    assert set(found.values()) == {Verdict.UNCLEAR}
    assert result.engines[1].valid_accepted == 0


def test_instances_of_the_user(verdicts):
    given = [
        ("good", '{"name": "abc", "n": 3}'),
        ("bad", '{"name": "abc", "n": -3}'),
        ("other order", '{"n": 3, "name": "abc"}'),
    ]
    _, result = verdicts(ignoring("minimum"), given=given)
    good, bad, order = result.given
    assert (good.fault, set(good.accepted.values())) == (None, {True})
    assert "minimum" in bad.fault
    assert bad.accepted == {EngineName.GUIDED: False, EngineName.XGRAMMAR: True}
    assert order.fault is None
    assert order.accepted[EngineName.GUIDED] is False, "members come in the schema's order by default"


def test_texts_are_read_in_either_spelling(tokens):
    """A tokenizer that begins with a space, and one whose usual spelling an engine insists on."""
    speller = module._Speller(tokens)
    ways = speller('{"name":"abc"}')
    texts = [b"".join(tokens.vocabulary.token_bytes(ids[0]) for ids in way) for way in ways]
    assert set(texts) == {b'{"name":"abc"}'}
    usual = tokens.tokenizer.encode('{"name":"abc"}', add_special_tokens=False)
    assert all(token in ids for token, ids in zip(usual, ways[0], strict=True))


PEERS = [name for name, package in PACKAGES.items() if importlib.util.find_spec(package)]


@pytest.mark.parametrize("name", PEERS)
def test_peers(tokens, name):
    """Facts about the pinned versions that hold for keywords which all of them support."""
    schema = {
        "type": "object",
        "properties": {"a": {"enum": ["x", "yy"]}},
        "required": ["a"],
        "additionalProperties": False,
    }
    result = compare(schema, tokens, [EngineName.GUIDED, name])
    for one, row in result.keywords.items():
        assert row[name].verdict is Verdict.ENFORCED, (one.pointer, row[name])


def test_the_command(tmp_path, guided_cli):
    pytest.importorskip("xgrammar")
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps({"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "maxItems": 3}))
    instance = tmp_path / "instance.json"
    instance.write_text("[1, 1]")
    result = guided_cli("check", schema, instance, "--compare", "xgrammar", "--json")
    assert result.exit_code == 0
    record = json.loads(result.stdout)
    rows = {
        one["pointer"]: {name: found["verdict"] for name, found in one["engines"].items()} for one in record["keywords"]
    }
    assert rows["#/uniqueItems"]["guided"] == "enforced"
    assert set(rows["#/maxItems"]) == {"guided", "xgrammar"}
    (given,) = record["instances"]
    assert (given["valid"], given["engines"]["guided"]) == (False, False)
    table = guided_cli("check", schema, instance, "--compare", "xgrammar")
    assert "#/uniqueItems" in table.stdout and "valid instances accepted" in table.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--compare", "xgrammar,lmfe"], "there is no engine 'lmfe'"),
        (["--compare", "xgrammar", "--format", "regex"], "--compare is for JSON Schemas"),
        (["instance.json"], "instances are given without --compare"),
    ],
)
def test_wrong_usage(tmp_path, guided_cli, arguments, message):
    schema = tmp_path / "schema.json"
    schema.write_text("{}")
    result = guided_cli("check", schema, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
