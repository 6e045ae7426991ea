"""Formats against the official suite's cases, `jsonschema`'s checkers and the calendar."""

from __future__ import annotations

import datetime
import ipaddress
import json
import random
import uuid
from pathlib import Path

import pytest

from guided.errors import UnsupportedError
from guided.grammar.json_schema import Formats, json_schema
from guided.grammar.json_schema.keywords.formats import FORMATS, format_language, format_numbers
from guided.grammar.json_schema.sets.strings import StringSet
from guided.grammar.regular.texts import holds_word
from tests.twin.earley import accepts


def holds(name: str, text: str, draft: int = 2020) -> bool:
    if name == "hostname" and draft >= 7:
        return text in StringSet(hostname=True)
    language = format_language(name, draft)
    assert language is not None
    return holds_word(language, text)


@pytest.mark.parametrize("draft", ["draft4", "draft7", "draft2019-09", "draft2020-12"])
def test_official_cases(data: Path, draft: str) -> None:
    seen = 0
    for path in sorted((data / "json-schema-test-suite" / "tests" / draft / "optional" / "format").glob("*.json")):
        for group in json.loads(path.read_text()):
            name = group["schema"].get("format")
            if name not in FORMATS:
                continue
            for case in group["tests"]:
                text = case["data"]
                if isinstance(text, str):
                    order = int(draft[5:].split("-")[0])
                    assert holds(name, text, order) is case["valid"], (name, text, case["description"])
                    seen += 1
    assert seen > 100


def test_every_day_of_four_centuries() -> None:
    for year in (1600, 1700, 1896, 1900, 1999, 2000, 2023, 2024, 2100):
        for month in range(14):
            for day in (0, 1, 9, 10, 28, 29, 30, 31, 32):
                try:
                    datetime.date(year, month, day)
                    real = True
                except ValueError:
                    real = False
                assert holds("date", f"{year:04}-{month:02}-{day:02}") is real, (year, month, day)


def test_leap_seconds_are_at_midnight_utc() -> None:
    rnd = random.Random(1)
    for _ in range(400):
        local, offset = rnd.randrange(1440), rnd.randrange(1440)
        if rnd.random() < 0.5:
            offset = (1439 - local) % 1440 if rnd.random() < 0.5 else (local - 1439) % 1440
        for sign, utc in (("+", local - offset), ("-", local + offset)):
            text = f"{local // 60:02}:{local % 60:02}:60.5{sign}{offset // 60:02}:{offset % 60:02}"
            assert holds("time", text) is (utc % 1440 == 1439), text
    assert holds("time", "23:59:60Z")
    assert not holds("time", "12:00:60Z")


def test_addresses_agree_with_the_standard_library() -> None:
    rnd = random.Random(2)
    agreed = {True: 0, False: 0}
    for _ in range(4000):
        groups = [
            rnd.choice(["0", "1", "ab", "FFFF", "12345", "g", ""]) if rnd.random() < 0.1 else "a0" for _ in range(8)
        ]
        text = ":".join(groups[: rnd.randint(1, 8)])
        if rnd.random() < 0.6:
            at = rnd.randrange(len(text) + 1)
            text = text[:at] + "::" + text[at:].lstrip(":")
        if rnd.random() < 0.3:
            text += rnd.choice([":1.2.3.4", "1.2.3.4", ":1.2.3.256", ":01.2.3.4"])
        try:
            ipaddress.IPv6Address(text)
            real = True
        except ValueError:
            real = False
        assert holds("ipv6", text) is real, text
        agreed[real] += 1
    assert min(agreed.values()) > 300
    for text in ("0.0.0.0", "255.255.255.255", "1.2.3", "256.1.1.1", "01.2.3.4", "1.2.3.4 ", "1.2.3.4.5"):
        try:
            ipaddress.IPv4Address(text)
            real = True
        except ValueError:
            real = False
        assert holds("ipv4", text) is real, text


@pytest.mark.parametrize("version", [1, 3, 4, 5, 6, 7, 8])
def test_versions_of_uuids_are_those_of_python(version: int) -> None:
    rnd = random.Random(version)
    language = format_language(f"uuid{version}")
    agreed = [0, 0]
    for _ in range(2000):
        made = uuid.UUID(int=rnd.getrandbits(128) & ~(0xF << 76) | rnd.choice((version, rnd.randrange(16))) << 76)
        # None but in the variant of RFC 9562.
        real = made.version == version
        assert holds_word(language, rnd.choice((str, lambda u: str(u).upper()))(made)) is real, made
        agreed[real] += 1
    assert min(agreed) > 200


@pytest.mark.parametrize("name", ["UUID1", "UUID3", "UUID4", "UUID5"])
def test_uuids_of_pydantic_have_their_version(name: str) -> None:
    pydantic = pytest.importorskip("pydantic")
    adapter = pydantic.TypeAdapter(getattr(pydantic, name))
    grammar = json_schema(adapter.json_schema())
    for version in (1, 3, 4, 5):
        text = json.dumps(str(uuid.UUID(int=(1 << 128) - 1, version=version)))
        try:
            adapter.validate_json(text)
            real = True
        except pydantic.ValidationError:
            real = False
        assert accepts(grammar, text.encode()) is real is (name == f"UUID{version}")


@pytest.mark.parametrize(
    ("name", "yes", "no"),
    [
        ("uuid", ["2EB8AA08-aa98-11ea-b4aa-73b441d16380"], ["2eb8aa08aa9811eab4aa73b441d16380", "{}"]),
        (
            "uuid4",
            ["2eb8aa08-aa98-41ea-b4aa-73b441d16380", "2EB8AA08-AA98-41EA-84AA-73B441D16380"],
            [
                "2eb8aa08-aa98-11ea-b4aa-73b441d16380",
                "2eb8aa08-aa98-41ea-c4aa-73b441d16380",
                "2eb8aa08aa9841eab4aa73b4",
            ],
        ),
        ("uuid7", ["01890a5d-ac96-774b-bcce-b302099a8057"], ["01890a5d-ac96-474b-bcce-b302099a8057"]),
        ("duration", ["P1Y2M3DT4H5M6S", "PT36H", "P4W", "P1D"], ["P", "PT", "1D", "P1D2H", "P2D1Y", "P1W2D", "P1Y2D"]),
        ("email", ["joe@example.com", "te~st@[127.0.0.1]", '"a b"@x.y'], ["joe", "@x", ".a@x", "a..b@x", "a@"]),
        (
            "uri",
            ["http://a.b/c?d#e", "urn:isbn:1", "mailto:a@b", "file:///x"],
            ["//a.b", "a b", "http://[::1", "", "a"],
        ),
        ("date-time", ["1963-06-19T08:30:06.28Z", "1990-12-31t15:59:60-08:00"], ["1963-06-19 08:30:06Z", "1963-06-19"]),
        ("json-pointer", ["", "/", "/a~0b/~1", "/é\n"], ["a", "/~", "/~2", "#/a"]),
        ("relative-json-pointer", ["0", "1/a", "12#"], ["01", "-1", "/a", "1a", "##"]),
        ("uri-reference", ["", "a/b", "//x", "?q", "#f", "http://a"], ["a b", "\\\\x", "1:2", "#a#b"]),
        (
            "iri",
            ["http://ƒøø.ßår/?∂éœ=πîx#πîüx", "urn:é"],
            ["/é", "http://é b", "http://a/\ue000", "http://\ud7ff\ufffe"],
        ),
        ("iri", ["http://a/?\ue000", "http://\U0001f600.x/"], ["http://a/\U0001fffe"]),
        ("iri-reference", ["é/ü", "#ƒ", ""], ["\\\\é", "é é"]),
        (
            "uri-template",
            ["", "http://a/{x,y:3}{?q*}", "it's/{;%41b.c}"],
            ["{", "}", "a b", "{}", "{x:0}", "{x y}", "<"],
        ),
        (
            "idn-email",
            ["실례@실례.테스트", '"é"@x', "a@b", "a@cafe\u0301.b", "a@b--c", "a@xn--zca"],
            ["2962", "é", "@é", "a@-é", "a@É", "a@é。b", "a@·", "a@1.א", "a@😀"],
        ),
        ("byte", ["", "aGk=", "aGVsbG8h", "AA=="], ["a", "aGk", "a-b=", "===="]),
        (
            "hostname",
            ["a.b-c.d", "localhost", "a" * 63, "r3---sn-5hne6nsd.googlevideo.com", "co--m", "xn"],
            ["-a", "a-", "a..b", "a_b", "a" * 64, ".", ""],
        ),
    ],
)
def test_chosen_texts(name: str, yes: list[str], no: list[str]) -> None:
    assert [text for text in yes if not holds(name, text)] == []
    assert [text for text in no if holds(name, text)] == []


def test_unknown_formats_assert_nothing() -> None:
    assert format_language("no such format") is None
    assert format_language(5) is None


def test_number_formats_are_ranges() -> None:
    for name, low, high in (("int32", -(2**31), 2**31 - 1), ("int64", -(2**63), 2**63 - 1), ("uint8", 0, 255)):
        found = format_numbers(name)
        assert found is not None
        assert (found.low, found.high, found.step) == (low, high, 1)
    for name in ("float", "double", "password", "binary", 3):
        assert format_numbers(name) is None
        assert format_language(name) is None


@pytest.mark.parametrize(
    ("schema", "asserted"),
    [
        ({"format": "date"}, True),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "format": "date"}, True),
        ({"$schema": "https://json-schema.org/draft/2019-09/schema", "format": "date"}, True),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "format": "date"}, False),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "string", "format": "date"}, True),
    ],
)
def test_when_formats_are_asserted(schema: dict[str, str], asserted: bool) -> None:
    for choice, wanted in ((Formats.DEFAULT, asserted), ("assert", True), ("annotate", False)):
        assert accepts(json_schema(schema, formats=choice), b'"2020-13-01"') is not wanted
        assert accepts(json_schema(schema, formats=choice), b'"2020-12-01"')


ENCODED = "xn--9n2bp8q.xn--9t4b11yi5a"
HOST = {"format": "hostname"}
LABELS = ["r3---sn-5hne6nsd.googlevideo.com", "co--m", "a", "xn", "xn-a", "xnn--a", "Xa--b", "x-n.c", "x" * 63]


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (HOST, LABELS, [ENCODED, "xn--X", "XN--a.b", "a-", "-", "x" * 64]),
        ({"not": HOST}, ["a-", "", "::1"], [*LABELS, ENCODED]),
        ({"not": {"not": HOST}}, LABELS, ["a-", "xn--X"]),
        ({"not": {"anyOf": [HOST, {"format": "ipv6"}]}}, ["a-"], ["a", "::1", ENCODED]),
        ({"oneOf": [HOST, {"minLength": 2}]}, ["a", "a-"], ["ab", ENCODED]),
        ({"if": HOST, "then": {"maxLength": 3}, "else": {"minLength": 2}}, ["a", "a-"], ["abcd", "-", ENCODED]),
        ({"not": {**HOST, "maxLength": 30}}, ["a-", "b" * 31], ["a", ENCODED]),
        ({"enum": [ENCODED, "xn--X", "a", "a-"], **HOST}, [ENCODED, "a"], ["xn--X", "a-"]),
        ({"enum": [ENCODED, "xn--X", "a", "a-"], "not": HOST}, ["xn--X", "a-"], [ENCODED, "a"]),
        ({"not": {"enum": [ENCODED, "a"], **HOST}}, ["b", "-", "xn--X"], [ENCODED, "a"]),
    ],
)
def test_host_names_are_narrowed_under_not_too(schema: dict[str, object], good: list[str], bad: list[str]) -> None:
    grammar = json_schema({"type": "string", **schema})
    assert [text for text in good if not accepts(grammar, json.dumps(text).encode())] == []
    assert [text for text in bad if accepts(grammar, json.dumps(text).encode())] == []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", **HOST, "pattern": "^xn--"},
        {"type": "string", "oneOf": [HOST, {"pattern": "^xn--"}]},
        {"type": "object", "not": {"propertyNames": HOST}},
        {"oneOf": [{"type": "object", "propertyNames": HOST}, {"type": "object", "required": [ENCODED]}]},
    ],
)
def test_where_only_encoded_host_names_are_left_is_refused(schema: dict[str, object]) -> None:
    with pytest.raises(UnsupportedError, match=r"host names|'hostname'"):
        json_schema(schema)
