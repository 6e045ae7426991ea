"""Subtrees of tokens that are kept without being walked, against every token advanced by itself."""

from __future__ import annotations

import json

import numpy as np
import pytest

import guided
from guided.automata.lexer.states import StateTable
from guided.grammar.regular.expr import byte_set, repeat
from guided.kernels.data.layout import EXAMINED
from guided.kernels.lexing.byte_classes import BROKEN, LINES, TEXT, UTF8_PHASES, class_of_byte, phase_after
from guided.testing import brute_force_mask
from tests import vocabularies
from tests.amounts import each

WORDS = [
    b"word", b"Word", b"WORD", b"abc", b"xyz", b"gg", b"0123", b"a1", b"a-b", b"a.b", b"a:b", b"dot.", b" space",
    "grün".encode(), "日本".encode(), "日本".encode()[:-1], b"\xe6", b"\x97", "a\u2028".encode(), "\u2029".encode(),
    "x\u2028y".encode(), b"\xe2\x80", b"\xa8", b"\xa8b", "\U0001f600".encode(), b"\xf0\x9f", b"\x98\x80", b'a"', b'",',
    b"\\u00", b"\\n", b"\xff", b"a\xff", b"\xc0", b"f\xe4", "ä-ö".encode(), "é\x00".encode(), b"\x01", b"\x7f",
]  # fmt: skip
VOCABULARY = guided.Vocabulary.from_tokens(
    [*vocabularies.SINGLE_BYTES] + WORDS + [a + b for a in WORDS for b in WORDS], eos_ids=[0]
)

PATTERNS = [
    r"^.+:.+$", r"^[a-z0-9-]+$", r"^[^/:]*$", r"^[0-9a-f]{2,}$", r"^\S+$", r"^[^\x00-\x7f]+$", r"^[\s\S]*$",
    r"^(?:[a-z]+\.)*[a-z]+$", r"^.*$", r"^[\u0080-\uffff]+$", r"^[^\u2028]*$", r"\d",
]  # fmt: skip


@pytest.mark.parametrize("pattern", each(PATTERNS, 2))
def test_masks_of_patterns(pattern):
    constraint = guided.compile(guided.json_schema({"type": "string", "pattern": pattern}), VOCABULARY)
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    for text in ('"', '"a', '"a1', '"grün', '"a:', '"a-', '"0', '"\u2028', '"日'):
        for data in (text.encode(), text.encode()[:-1]):
            state = constraint.advance_bytes(constraint.start, data)
            if state:
                constraint.fill_mask(state, row)
                assert (row == brute_force_mask(constraint, state)).all(), (pattern, data)


def test_classes_partition_the_bytes():
    of_byte = class_of_byte()
    assert all(of_byte[byte] == TEXT for byte in range(128, 256))
    assert all(bin(bit).count("1") == 1 for bit in of_byte.tolist())
    assert of_byte[ord("A")] == of_byte[ord("F")] != of_byte[ord("G")] == of_byte[ord("Z")]
    assert of_byte[ord("a")] != of_byte[ord("f")]
    assert BROKEN < EXAMINED


@pytest.mark.parametrize("spared", [None, *b"af0A:~ "])
def test_a_state_is_closed_on_the_classes_all_of_whose_bytes_lead_back(spared):
    stays = [byte for byte in range(0x80) if byte != spared]
    table = StateTable()
    state = table.add(repeat(byte_set(sum(1 << byte for byte in stays))))
    table.expand(state)
    of_byte = class_of_byte()
    lost = 0 if spared is None else int(of_byte[spared])
    expected = int(np.bitwise_or.reduce(of_byte[:128])) & ~lost
    assert int(table.arrays.closed[state]) & (TEXT - 1) == expected


def test_phases_read_exactly_utf8():
    after = phase_after()
    for data in (json.dumps("ä日\U0001f600", ensure_ascii=False).encode(), b"\xed\x9f\xbf", b"\xf4\x8f\xbf\xbf"):
        phase = 0
        for byte in data:
            phase = after[phase, byte]
            assert phase < 8
        assert phase == 0
    assert after[0, 0xC1] == 8
    assert after[after[0, 0xED], 0xA0] == 8
    assert after[after[0, 0xF4], 0x90] == 8
    assert len(UTF8_PHASES) == after.shape[0]
    assert LINES == TEXT << 1
