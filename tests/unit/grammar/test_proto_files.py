"""Texts of .proto files: protoc reads them, and the schema is the one of the message that they define.

What the schema of a descriptor accepts is in `test_protobuf`, beside protobuf's own parser of JSON.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("grpc_tools")
from google.protobuf import json_format, message_factory

from guided.errors import GrammarError, GuidedError, UnsupportedError
from guided.grammar.proto_files import proto_file_schema, proto_message
from guided.grammar.protobuf import message_schema
from tests.unit.grammar.test_protobuf import NODE, texts

NODE_FILE = """
syntax = "proto3";
package t;

// A comment with "a quote, and message Nothing {}
enum Colour { NONE = 0; RED = 1; GREEN = 2; }

message Node {
  double a_double = 1; float a_float = 2; int64 a_int64 = 3; uint64 a_uint64 = 4; int32 a_int32 = 5; bool a_bool = 6;
  string a_string = 7; bytes a_bytes = 8; uint32 a_uint32 = 9; sfixed64 a_sfixed64 = 10; sint32 a_sint32 = 11;
  repeated Colour colours = 12;
  Node inner_node = 13;
  oneof either { bool one = 14; bool two = 15; bool three = 16; }
  map<int32, string> by_int32 = 17;
  map<string, uint64> by_string = 18;
  map<bool, double> by_bool = 19;
}
"""
SHOP = """syntax = "proto3";
package shop;
import "money.proto";
message Order {
  message Line { string name = 1; cash.Money price = 2; }
  repeated Line lines = 1;
  map<string, Line> by_name = 2;
}
message Customer { string name = 1; }
"""
MONEY = 'syntax = "proto3"; package cash; message Money { int64 cents = 1; }'


def test_a_text_means_what_its_descriptor_means() -> None:
    assert proto_file_schema(NODE_FILE, "Node") == message_schema(NODE)
    made = message_factory.GetMessageClass(proto_message(NODE_FILE))
    n_read = n_refused = 0
    for text in texts():
        verdicts = []
        for kind in (made, NODE):
            try:
                verdicts.append(json_format.MessageToJson(json_format.Parse(text, kind())))
            except json_format.ParseError:
                verdicts.append(None)
        assert verdicts[0] == verdicts[1]
        n_read += verdicts[0] is not None
        n_refused += verdicts[0] is None
    assert min(n_read, n_refused) >= 200


@pytest.mark.parametrize("name", ["Order.Line", "shop.Order.Line"])
def test_messages_by_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "money.proto").write_text(MONEY)
    schema = proto_file_schema(SHOP, name, import_paths=[str(tmp_path)])
    assert schema["$ref"] == "#/$defs/shop.Order.Line"
    assert list(schema["$defs"]) == ["shop.Order.Line", "cash.Money"]


def test_which_message_has_to_be_said(tmp_path: Path) -> None:
    (tmp_path / "money.proto").write_text(MONEY)
    for name in (None, "Line", "cash.Money", "Order.ByNameEntry", ""):
        with pytest.raises(GrammarError) as caught:
            proto_file_schema(SHOP, name, import_paths=[str(tmp_path)])
        assert caught.value.remedy == "Name one of its messages: Order, Order.Line, Customer."
    with pytest.raises(GrammarError, match="the file has 0 messages"):
        proto_file_schema('syntax = "proto3";')


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ('syntax = "proto3";\nmessage P { int33 x = 1; }', "line 2, column 13", '"int33" is not defined'),
        ("message", "line 1, column 8", "Expected message name"),
        ('syntax = "proto3"; message A { int32 a = 1; int32 b = 1; }', "line 1, column 55", "already been used"),
        ('syntax = "proto3"; message A { required int32 a = 1; }', "line 1, column 41", "proto3"),
        (SHOP, "line 3, column 1", "money.proto"),
    ],
)
def test_what_protoc_refuses(text: str, where: str, what: str) -> None:
    with pytest.raises(GrammarError) as caught:
        proto_file_schema(text, "A")
    assert caught.value.where == where
    assert what in caught.value.what


def test_faults_of_an_imported_file_name_it(tmp_path: Path) -> None:
    (tmp_path / "money.proto").write_text('syntax = "proto3"; package cash;\nmessage Money { Cents cents = 1; }')
    with pytest.raises(GrammarError) as caught:
        proto_file_schema(SHOP, "Order", import_paths=[str(tmp_path)])
    assert caught.value.where == f"{tmp_path}/money.proto, line 2, column 17"


def test_refusals_of_the_mapping_stay() -> None:
    text = 'syntax = "proto3"; import "google/protobuf/any.proto"; message A { google.protobuf.Any a = 1; }'
    with pytest.raises(UnsupportedError, match=r"google\.protobuf\.Any"):
        proto_file_schema(text)


def test_protoc_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr("guided.grammar.proto_files.find_spec", lambda name: found("no_such_module"))
    with pytest.raises(GuidedError, match="grpcio-tools") as caught:
        proto_file_schema(MONEY)
    assert caught.value.remedy == "Run: pip install 'guided-decoding[protobuf]'"
