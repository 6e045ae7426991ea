"""Protobuf messages as schemas, beside the JSON mapping of protobuf itself."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

import guided
from guided.errors import UnsupportedError
from guided.grammar.protobuf import _integers, message_schema
from guided.testing import check_constraint
from tests.vocabularies import of_bytes

descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
from google.protobuf import descriptor_pool, json_format, message_factory  # noqa: E402

VOCABULARY = of_bytes()
SCALARS = ["double", "float", "int64", "uint64", "int32", "bool", "string", "bytes", "uint32", "sfixed64", "sint32"]


def made() -> Any:
    """The class of a message with every type of field, lists, maps, a choice and itself."""
    file = descriptor_pb2.FileDescriptorProto(name="guided_test.proto", package="t", syntax="proto3")
    colour = file.enum_type.add(name="Colour")
    for number, name in enumerate(("NONE", "RED", "GREEN")):
        colour.value.add(name=name, number=number)
    node = file.message_type.add(name="Node")
    kinds = descriptor_pb2.FieldDescriptorProto
    numbers = iter(range(1, 100))

    def add(
        where: Any, name: str, kind: str, type_name: str | None = None, repeated: bool = False, **more: Any
    ) -> None:
        where.field.add(
            name=name, number=next(numbers), type=getattr(kinds, f"TYPE_{kind.upper()}"), type_name=type_name,
            label=kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL, **more,
        )  # fmt: skip

    for kind in SCALARS:
        add(node, f"a_{kind}", kind)
    add(node, "colours", "enum", ".t.Colour", repeated=True)
    add(node, "inner_node", "message", ".t.Node")
    node.oneof_decl.add(name="either")
    for name in ("one", "two", "three"):
        add(node, name, "bool", oneof_index=0)
    for key, value in (("int32", "string"), ("string", "uint64"), ("bool", "double")):
        entry = node.nested_type.add(name=f"By{key.capitalize()}Entry")
        entry.options.map_entry = True
        add(entry, "key", key)
        add(entry, "value", value)
        entry.field[0].number, entry.field[1].number = 1, 2
        add(node, f"by_{key}", "message", f".t.Node.By{key.capitalize()}Entry", repeated=True)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Node"))


NODE = made()
VALUES: dict[str, list[str]] = {
    "aDouble": ["1.5", "-0.25", "1e+300", '"NaN"', '"-Infinity"', "1e+400", '"x"', "true"],
    "aFloat": ["3", "2.5", "1e+39", "[]", '"Infinity"'],
    "aInt64": ['"0"', '"-9223372036854775808"', '"9223372036854775808"', '"x"', '"1.5"'],
    "aUint64": ['"18446744073709551615"', '"18446744073709551616"', '"-1"'],
    "aInt32": ["-2147483648", "2147483647", "2147483648", "1.5", "{}"],
    "aBool": ["true", "false", "1", '"true"'],
    "aString": ['"é\\n"', '""', "1", "[]"],
    "aBytes": ['"AQI="', '""', '"AAAA"', '"A"', "1"],
    "aUint32": ["4294967295", "-1", "4294967296"],
    "aSfixed64": ['"7"', '"-9223372036854775809"'],
    "colours": ['["RED", "NONE"]', "[]", '["BLUE"]', '"RED"'],
    "innerNode": ["{}", '{"innerNode": {"one": true}}', '{"aBool": 2}', "[]"],
    "one": ["true", "false"],
    "two": ["true", "0"],
    "three": ["false"],
    "byInt32": ["{}", '{"-5": "a", "7": ""}', '{"x": "a"}', '{"2147483648": ""}'],
    "byString": ['{"k": "7"}', '{"k": "-7"}'],
    "byBool": ['{"true": 1.5}', '{"yes": 1.5}'],
    "other": ["1"],
}


def texts() -> list[str]:
    rng = random.Random(5)
    found: dict[str, None] = {}
    while len(found) < 1200:
        names = [name for name in VALUES if rng.random() < 0.12]
        # The first values of each list are the ones that are right.
        members = [f'"{name}": {VALUES[name][0] if rng.random() < 0.6 else rng.choice(VALUES[name])}' for name in names]
        found["{" + ", ".join(members) + "}"] = None
    return list(found)


def test_protobuf_s_own_parser_agrees() -> None:
    constraint = guided.compile(guided.json_schema(message_schema(NODE), order="any"), VOCABULARY)

    def accepted(text: str) -> bool:
        state = constraint.advance_bytes(constraint.start, text.encode())
        return bool(state) and constraint.is_accepting(state)

    n_read = n_accepted = n_refused = 0
    for text in texts():
        try:
            message = json_format.Parse(text, NODE())
        except json_format.ParseError:
            n_refused += 1
            assert not accepted(text), text
            continue
        n_read += 1
        for whole in (False, True):
            written = json_format.MessageToJson(message, always_print_fields_with_no_presence=whole, ensure_ascii=False)
            assert accepted(written), written
        # What is read and not accepted is another spelling of the same message.
        if accepted(text):
            n_accepted += 1
            assert json_format.Parse(written, NODE()) == message
        else:
            # As texts: in Python true, which the parser takes for a number, is equal to 1.
            assert json.dumps(json.loads(text)) != json.dumps(json_format.MessageToDict(message)), text
    assert n_read >= n_accepted >= 200
    assert n_refused >= 200


def test_contracts() -> None:
    grammar = guided.json_schema(message_schema(NODE.DESCRIPTOR))
    check_constraint(guided.compile(grammar, VOCABULARY), walks=2, length=15, full_states=3, threads=0)


@pytest.mark.parametrize(("low", "high"), [(0, 9), (-10, 10), (-128, 127), (0, 305), (-99, 100), (-1, 1099)])
def test_patterns_of_integers(low: int, high: int) -> None:
    pattern = re.compile(_integers(low, high))
    assert [number for number in range(-1200, 1200) if pattern.search(str(number))] == list(range(low, high + 1))
    assert not any(pattern.search(text) for text in ("", "-", "-0", "00", "01", "+1", "1.0"))


def test_refusals_say_which_message() -> None:
    from google.protobuf import api_pb2, struct_pb2, type_pb2

    for message, where in (
        (struct_pb2.Struct, "google.protobuf.Struct"),
        (type_pb2.Option, "google.protobuf.Any"),
        (api_pb2.Api, "google.protobuf.Any"),
        (descriptor_pb2.FileOptions, "google.protobuf.FileOptions"),
    ):
        with pytest.raises(UnsupportedError) as caught:
            message_schema(message)
        assert caught.value.where == where
        assert caught.value.remedy


def test_required_fields_of_proto2() -> None:
    part = descriptor_pb2.UninterpretedOption.NamePart
    constraint = guided.compile(guided.json_schema(message_schema(part), whitespace="compact"), VOCABULARY)
    for text, verdict in (('{"namePart":"a","isExtension":false}', True), ('{"namePart":"a"}', False), ("{}", False)):
        state = constraint.advance_bytes(constraint.start, text.encode())
        assert (bool(state) and constraint.is_accepting(state)) is verdict
        assert json_format.Parse(text, part()).IsInitialized() is verdict
