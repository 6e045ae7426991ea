"""A small vocabulary with every byte and some tokens of code, markup and other scripts; random walks through masks."""

from __future__ import annotations

import random

import numpy as np

import guided
from tests import vocabularies

PIECES = [
    b"the", b" the", b"cat", b"at", b"he ", b"ha", b"aa", b"a na", b"self", b".", b"self.", b" self.", b".join", b".path",
    b"os", b"os.", b"path", b"os.path", b".path.join", b"join(", b"(self.", b"  ", b"\n    ", b"\n", b"import ", b"def ",
    b"return ", b"x.", b"x = ", b" = ", b"==", b"get", b"Name", b"getName", b"()", b"(", b").", b"'", b'"', b'"""', b"# ",
    b"app", b"append", b".append(", b".s", b"up", b"upper", b"1.", b".5", b"...", b"..", b"[", b"](", b"] (", b"[the",
    "é".encode(), "日本".encode(), "日".encode()[:2], "本".encode()[1:], b"SELECT ", b"?x", b" WHERE { ", b" . ", b"ex:",
]  # fmt: skip


class Words:
    """Makes the vocabularies."""

    @staticmethod
    def plain() -> guided.Vocabulary:
        tokens = [*vocabularies.SINGLE_BYTES, *PIECES, None, b"</s>"]
        return guided.Vocabulary.from_tokens(tokens, eos_ids=[len(tokens) - 1])

    @staticmethod
    def with_special() -> guided.Vocabulary:
        tokens = [*(bytes([byte]) for byte in range(255)), *PIECES, None, b"</s>"]
        special = {"<|tool|>": len(tokens) - 2}
        return guided.Vocabulary.from_tokens(tokens, eos_ids=[len(tokens) - 1], special_tokens=special)


VOCABULARY = Words.plain()


def ids_of(row: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))


def random_text(constraint, rng: random.Random, length: int, weights=None) -> bytes:
    """A text of random allowed tokens, ended within ``length`` of them by the budget."""
    vocabulary = constraint.vocabulary
    row = np.zeros(vocabulary.n_words, np.uint32)
    state, out = constraint.start, b""
    for left in range(length, 0, -1):
        constraint.fill_budget_mask(state, row, left)
        allowed = ids_of(row).tolist()
        token = rng.choices(allowed, None if weights is None else [weights[t] for t in allowed])[0]
        if token in vocabulary.eos_ids:
            return out
        out += vocabulary.spelled(token) or b""
        state = constraint.advance(state, token)
        assert state
    raise AssertionError("the budget was not kept")
