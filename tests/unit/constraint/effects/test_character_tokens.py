"""`CharacterTokens` against a constraint: the tokens behind which a string's state is what it was."""

import sys

import numpy as np

import guided
from guided.constraint.effects.character_tokens import CharacterTokens

CHARACTERS = [chr(point).encode() for point in range(sys.maxunicode + 1) if not 0xD800 <= point < 0xE000]
TOKENS = [
    *(bytes((byte,)) for byte in range(256)), *CHARACTERS[128::977], "\x7f\ufffe".encode(), b"ab", b'a"', b'"', b"\\n",
    b"{[,:]}", b"\xc3\xa9\xc3", b"\xa9a", b"\xed\xa0\x80", b"\t\t", " é".encode(), None,
]  # fmt: skip
VOCABULARY = guided.Vocabulary.from_tokens(TOKENS, eos_ids=[len(TOKENS) - 1])


def test_whole_characters_are_the_tokens_that_lead_back():
    """And whole escapes, which whoever reads a string must read."""
    constraint = guided.compile(guided.json_schema({"type": "string"}), VOCABULARY)
    inside = constraint.advance_bytes(constraint.start, b'"')
    back = [token for token in range(VOCABULARY.size) if constraint.advance(inside, token) == inside]
    whole = np.flatnonzero(np.frombuffer(CharacterTokens.of(VOCABULARY).whole, np.uint8)).tolist()
    assert whole == [token for token in back if b"\\" not in TOKENS[token]] != back
