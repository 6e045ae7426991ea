"""The format ``idn-hostname`` against the package `idna`, name by name, and in its combinations with other keywords."""

from __future__ import annotations

import json
import random
import re
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import guided
from guided.constraint.formats.host_refusals import _capacities
from guided.constraint.formats.host_sizes import octets_of
from guided.errors import UnsatisfiableError, UnsupportedError
from guided.grammar.formats.idna_characters import characters, valid_characters
from guided.grammar.formats.idna_labels import DEAD, Kind, labels
from guided.grammar.formats.idna_languages import SHORT, names, no_host_names, plain_host_names
from guided.grammar.formats.idna_names import _LETTERS, HostName, _endings, beginning, is_host_name, octets
from guided.grammar.regular.derivative import matches
from guided.testing import check_constraint
from tests import vocabularies
from tests.amounts import each, some

idna = pytest.importorskip("idna")

HOST = {"type": "string", "format": "idn-hostname"}
BYTES = [*vocabularies.SINGLE_BYTES]
PIECES = [
    "xn--", "xn", "--", "-a", "a-", "abc", ".com", "com", "\u0301", "e\u0301", "é", "例え", "テ", "・", "ア", "\u200c", "\u200d",
    "क\u094d", "ب", "א\u05f3", "l·l", "·l", "͵", "α", '"a', '"}', '",', 'xn--zca"', "abcdefghijklmnopqrstuvwxyz" * 2, "привет", "。",
    "\\u00", "e9", "\\u0", '"xn--', "xn--zca", "\u09bc", "ক\u09be", "কে",
]  # fmt: skip
SOME = [*BYTES, *(text.encode() for text in PIECES), b"\xc3", b"\xe3\x83", b"\x82\xa2", b"\x86a", b"e\xcc", None]
VOCABULARY = guided.Vocabulary.from_tokens(SOME, eos_ids=[len(SOME) - 1])
POOLS = [
    "abcxyz019-", "xn--l·l", "abl-·é", "αβγ͵σς", "אבג׳״01", "ابت٠١۰۱\u200c", "कखग\u094d\u200c\u200d\u093c\u093e", "アイ・漢字ひ", "кириллица-",
    "한국어", "ᠠᠡ\u200c\u180b", "aéèe\u0301\u0300\u0327\u0323", "বাংলা\u09be\u09c7", "தமிழ்\u0bbe\u0bc6", "ߊߋ߀-", "ABCXN-", "ńüöß", ".。．｡",
]  # fmt: skip
VALID = [code for low, high in valid_characters() for code in range(low, high + 1)]
_STOPS = re.compile("[.\u3002\uff0e\uff61]")


def is_valid(text: str) -> bool:
    """As `idna` has it, without a last full stop, and with RFC 5893's rule on all labels of a name together."""
    parts = _STOPS.split(text)
    if not all(parts):
        return False
    try:
        idna.encode(text)
        decoded = [idna.ulabel(part) for part in parts]
        if any(unicodedata.bidirectional(letter) in ("R", "AL", "AN") for part in decoded for letter in part):
            for part in decoded:
                idna.check_bidi(part, check_ltr=True)
    except (idna.IDNAError, UnicodeError):
        return False
    return True


def read(text: str) -> HostName | None:
    now: HostName | None = beginning()
    for byte in text.encode():
        now = None if now is None else now.step(byte)
    return now


def is_read(text: str) -> bool:
    found = read(text)
    return found is not None and found.ends


def leaves_no_room(label: str) -> bool:
    """Is it among the labels that the documentation says are left out?"""
    if label.lower().startswith("xn--"):
        return len(label) > 54
    return any(octets(label[:size]) >= 63 for size in range(len(label)))


def some_name(rnd: random.Random) -> str:
    parts = []
    for _ in range(rnd.choice([1, 1, 1, 2, 3])):
        pool = rnd.choice(POOLS) + (rnd.choice(POOLS) if rnd.random() < 0.3 else "")
        size = rnd.choice([1, 2, 3, 4, 5, 8]) if rnd.random() < 0.85 else rnd.randint(15, 66)
        part = "".join(rnd.choice(pool) if rnd.random() < 0.97 else chr(rnd.choice(VALID)) for _ in range(size))
        if rnd.random() < 0.15:
            part = "xn--" + part.encode("punycode").decode()
            if rnd.random() < 0.3:
                at = rnd.randrange(len(part))
                part = part[:at] + rnd.choice("abcxyzXN0-9") + part[at + 1 :]
        parts.append(part)
    text = rnd.choice("....。．｡").join(parts)
    return unicodedata.normalize("NFC", text) if rnd.random() < 0.3 else text


class Compiled:
    def __init__(self, schema: Any, **options: Any) -> None:
        self.constraint = guided.compile(guided.json_schema(schema, spelling="any", **options), VOCABULARY)

    def __call__(self, text: str, *, ascii_only: bool = False) -> bool:
        return self.accepts(json.dumps(text, ensure_ascii=ascii_only))

    def accepts(self, data: str) -> bool:
        state = self.constraint.advance_bytes(self.constraint.start, data.encode("utf-8", "surrogatepass"))
        return state != 0 and self.constraint.is_accepting(state)


@pytest.fixture(scope="module")
def accepts() -> Compiled:
    return Compiled(HOST)


def test_characters_are_those_of_idna() -> None:
    from idna import idnadata
    from idna.intranges import intranges_contain

    theirs = {
        code
        for ranges in idnadata.codepoint_classes.values()
        for packed in ranges
        for code in range(packed >> 32, packed & 0xFFFFFFFF)
    }
    assert all(intranges_contain(code, idnadata.codepoint_classes["PVALID"]) for code in (0x61, 0x4E00))
    assert set(VALID) <= theirs
    # They may know a newer Unicode than this interpreter.
    assert {unicodedata.category(chr(code)) for code in theirs - set(VALID)} <= {"Cn"}


def test_official_cases(data: Path, accepts: Compiled) -> None:
    seen = 0
    for draft in ("draft7", "draft2019-09", "draft2020-12"):
        path = data / "json-schema-test-suite" / "tests" / draft / "optional" / "format" / "idn-hostname.json"
        for group in json.loads(path.read_text()):
            for case in group["tests"]:
                text = case["data"]
                if isinstance(text, str):
                    seen += 1
                    assert is_host_name(text) is case["valid"], case["description"]
                    assert accepts(text) is case["valid"], case["description"]
                    assert accepts(text, ascii_only=True) is case["valid"], case["description"]
    assert seen > 200


def _agrees(seed: int, n: int) -> None:
    rnd = random.Random(seed)
    valid = unread = short = 0
    for _ in range(n):
        text = some_name(rnd)
        wanted, data = is_valid(text), text.encode()
        assert is_host_name(text) is wanted, ascii(text)
        is_regular = matches(names(Kind.HOST), data)
        assert matches(no_host_names(), data) is not is_regular, ascii(text)
        assert is_regular or not wanted, ascii(text)
        valid += wanted
        if is_read(text):
            assert wanted, ascii(text)
        elif wanted:
            unread += 1
            assert any(leaves_no_room(part) for part in _STOPS.split(text)), ascii(text)
        if matches(plain_host_names(), data):
            short += 1
            assert wanted, ascii(text)
    assert n // 5 < valid < n // 2 and short > n // 10 and unread <= n // 500


def test_names_agree_with_idna() -> None:
    _agrees(1, some(400))


@pytest.mark.slow
def test_many_names_agree_with_idna() -> None:
    _agrees(2, 20000)


def test_every_spelling(accepts: Compiled) -> None:
    rnd = random.Random(5)
    for _ in range(some(300)):
        text = some_name(rnd)
        spelled = "".join(
            letter
            if rnd.random() < 0.5 and letter not in '"\\'
            else "".join(f"\\u{unit:04{rnd.choice('xX')}}" for unit in np.frombuffer(letter.encode("utf-16-le"), "<u2"))
            for letter in text
        )
        assert accepts.accepts(f'"{spelled}"') is is_read(text), ascii(text)


@given(st.integers(0, 2**32))
def test_every_beginning_goes_on(seed: int) -> None:
    """From wherever reading comes to, byte by byte, some byte leads on until the name may end; and `ending` is true."""
    rnd = random.Random(seed)
    now = beginning()
    for byte in some_name(rnd).encode():
        then = now.step(byte)
        if then is None:
            break
        now = then
    while now.partial:
        ways = [then for byte in range(0x80, 0xC0) if (then := now.step(byte)) is not None]
        assert ways, now
        now = rnd.choice(ways)
    ending = now.ending
    for at, letter in enumerate(ending):
        for byte in letter.encode():
            then = now.step(byte)
            assert then is not None, (now, ending, at)
            now = then
    assert now.ends


def test_every_state_has_a_short_ending() -> None:
    table, of = labels(Kind.HOST), characters().of
    for state, row in enumerate(table.rows):
        if all(target == DEAD for target in row):
            assert state not in table.starts
            continue
        endings = _endings(state)
        assert endings
        for text in endings:
            assert set(text) <= set(_LETTERS)
            # What is left of an ending is an ending.
            assert not text or text[1:] in _endings(row[of[ord(text[0])]])


def test_short_labels_always_fit() -> None:
    # Digits of a distance, times the length of the label and with a place in it; the distances add up to all of Unicode.
    digits = [0] * SHORT
    for count, capacity in enumerate(_capacities().tolist(), 2):
        reached = min(SHORT, 0x10FF80 // max(capacity // SHORT - 1, 1))
        digits[:reached] = [count] * reached
    assert sorted(digits) == [6] * 6 + [7] * 3 and 4 + sum(digits) == 61
    rnd = random.Random(4)
    for _ in range(some(2000)):
        assert octets("".join(chr(rnd.choice(VALID)) for _ in range(SHORT))) <= 61


def test_sizes_are_those_of_punycode() -> None:
    rnd = random.Random(3)
    texts = []
    for _ in range(some(400)):
        pool = [chr(rnd.choice(VALID)) for _ in range(rnd.randint(1, 12))] + list("abc-01"[: rnd.randint(0, 6)])
        texts.append("".join(rnd.choice(pool) for _ in range(rnd.randint(1, 62))))
    wanted = [len(text) if text.isascii() else 4 + len(text.encode("punycode")) for text in texts]
    assert [octets(text) for text in texts] == wanted
    for text, size in zip(texts, wanted, strict=True):
        assert octets_of(np.asarray([[ord(letter) for letter in text]], np.int64)).tolist() == [size]


def test_vocabularies_of_bytes() -> None:
    vocabulary = guided.Vocabulary.from_tokens([*BYTES, None], eos_ids=[256])
    check_constraint(guided.compile(guided.json_schema(HOST), vocabulary), walks=2, length=20, full_states=20)


@pytest.mark.parametrize(
    "schema",
    [
        HOST,
        {"type": "array", "items": HOST, "uniqueItems": True, "maxItems": 3},
        {"anyOf": [HOST, {"type": "string", "format": "regex"}, {"type": "string", "maxLength": 3}]},
        {"type": "object", "properties": {"a": HOST}, "additionalProperties": HOST},
    ],
)
def test_masks_are_exact_and_lead_nowhere_dead(schema: Any) -> None:
    constraint = guided.compile(guided.json_schema(schema), VOCABULARY)
    check_constraint(constraint, walks=some(3, 8), length=30, full_states=some(20, 8))


@pytest.mark.parametrize(
    "begun",
    each([
        "a" * 60, "a" * 62, "ü" * 50, "привет" * 8, "例" * 20, "xn--" + "a" * 50, "xn--a-", ".".join(["a" * 62] * 3) + "." + "b" * 60,
        ".".join(["é" * 30] * 6), "xn--4dbc5h.", "e", "কে", "l·", "ア・", "क\u094d\u200c", "ب", "1.",
    ], 2),
)  # fmt: skip
def test_masks_are_exact_near_limits(accepts: Compiled, begun: str) -> None:
    constraint = accepts.constraint
    state = constraint.advance_bytes(constraint.start, f'"{begun}'.encode())
    rnd = random.Random(1)
    for _ in range(some(12, 12)):
        row = np.zeros((VOCABULARY.size + 31) // 32, np.uint32)
        constraint.fill_mask(state, row)
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
        after = {token: constraint.advance(state, token) for token in range(VOCABULARY.size)}
        assert allowed == [token for token, then in after.items() if then]
        if constraint.is_accepting(state):
            return
        assert allowed
        left = constraint.shortest_completion(state)
        constraint.fill_budget_mask(state, row, left + 1)
        for token in np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist():
            assert constraint.shortest_completion(after[token]) < left
        assert row.any()
        state = after[rnd.choice(allowed)]


def test_what_is_sampled_is_valid(accepts: Compiled) -> None:
    constraint = accepts.constraint
    rnd = random.Random(7)
    seen = set()
    for _ in range(some(24, 4)):
        state, data = constraint.start, b""
        for _ in range(rnd.choice([3, 10, 40])):
            row = np.zeros((VOCABULARY.size + 31) // 32, np.uint32)
            constraint.fill_mask(state, row)
            allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
            token = rnd.choice([token for token in allowed if SOME[token] is not None] or [len(SOME) - 1])
            if SOME[token] is None:
                break
            data += SOME[token] or b""
            state = constraint.advance(state, token)
        text = json.loads(data + constraint.shortest_text(state))
        assert is_valid(text), ascii(text)
        seen.add(text)
    assert len(seen) > some(24, 4) // 2


COMBINED = [
    ({**HOST, "maxLength": 5}, ["a.b", "例え.jp", "éü"], ["abc.de", "a-", "xn--zca"]),
    ({**HOST, "minLength": 1, "maxLength": 253}, ["a", "xn--zca", "привет" * 8], ["", "-"]),
    ({**HOST, "minLength": 4}, ["abcd", "例え.jp"], ["abc", "a..b", "ab-."]),
    ({**HOST, "pattern": "\\.jp$"}, ["例え.jp", "a.b.jp"], ["例え.com", ".jp", "-.jp", "xn--X.jp"]),
    ({**HOST, "not": {"const": "例え.jp"}}, ["例え.com", "a"], ["例え.jp", "-"]),
    ({**HOST, "not": {"const": "-"}}, ["xn--zca"], ["-"]),
    ({"enum": ["xn--zca", "xn--X", "ü", 3], "format": "idn-hostname"}, ["xn--zca", "ü"], ["xn--X"]),
    ({"const": "例え。jp", "format": "idn-hostname"}, ["例え。jp"], ["例え.jp"]),
    ({"type": "string", "not": HOST}, ["-a", "", "a..b", "A é", "·"], ["a", "xn--X", "a\u0301", "例え.jp", "\U0001dff0"]),
    ({"type": "string", "not": {"format": "idn-hostname"}, "maxLength": 2}, ["-a", ""], ["a", "-ab"]),
    ({"anyOf": [HOST, {"type": "string", "maxLength": 3}]}, ["-", "a\u0301", "xn--zca"], ["-----", "xn--X"]),
    ({"allOf": [HOST, {"format": "idn-hostname"}]}, ["xn--zca", "é"], ["xn--X", "a-"]),
    ({"allOf": [HOST, {"format": "hostname"}]}, ["a.b", "A1"], ["é", "a-", "xn--X"]),
    ({"if": {"format": "idn-hostname"}, "then": {"maxLength": 3}, "type": "string"}, ["abc", "-----"], ["abcd"]),
    ({"oneOf": [HOST, {"type": "string", "pattern": "^x"}]}, ["a.b", "x-"], ["xa", "-a"]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "good", "bad"), COMBINED)
def test_combined(schema: Any, good: list[str], bad: list[str]) -> None:
    check = Compiled(schema)
    assert [text for text in good if not check(text)] == []
    assert [text for text in bad if check(text)] == []


def test_where_it_is_an_annotation() -> None:
    assert Compiled(HOST, formats="annotate")("-")
    assert Compiled({"$schema": "https://json-schema.org/draft/2020-12/schema", "format": "idn-hostname"})("-")
    (line,) = (line for line in guided.json_schema(HOST).report() if line.pointer.endswith("/format"))
    assert line.enforcement.value == "checked" and "xn--" in line.why
    assert any("idn-hostname" in note for note in guided.json_schema(HOST).notes)


def test_names_of_properties_stand_without_the_checker() -> None:
    check = Compiled({"type": "object", "propertyNames": {"format": "idn-hostname"}})
    assert check.accepts('{"例え.jp": 1}') and not check.accepts('{"-": 1}') and not check.accepts('{"xn--X": 1}')


def test_what_is_refused_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="idn-hostname"):
        guided.json_schema({**HOST, "pattern": "^xn--.{3}$"})
    with pytest.raises(UnsupportedError, match="idn-hostname"):
        guided.json_schema({**HOST, "pattern": "^-"})
    for schema in ({**HOST, "maxLength": 0}, {**HOST, "minLength": 254}, {**HOST, "const": "-"}):
        with pytest.raises(UnsatisfiableError):
            guided.json_schema(schema)


def test_why_a_token_is_refused(accepts: Compiled) -> None:
    constraint = accepts.constraint
    state = constraint.advance_bytes(constraint.start, b'"xn--X')
    assert "encoded label" in constraint.explain(state, ord('"'))
