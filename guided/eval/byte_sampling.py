"""Texts of a grammar drawn byte by byte, without a tokenizer: one of the shortest, and random ones that end in time.

Everything here asks a constraint over the vocabulary of the 256 bytes, through its public functions.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from guided.constraint.constraint import Constraint
    from guided.grammar.ir import Grammar

__all__ = ["END", "allowed_bytes", "compile_bytes", "rambling_text", "sample_text", "shortest_text"]

END = 256
"""The end-of-text id of the byte vocabulary."""
SLACK = 40
"""Bytes that a sampled text may be longer than the shortest."""
END_CHANCE = 0.3
_WEIGHTS = (
    (b"abcdefghijklmnopqrstuvwxyz", 8.0),
    (b"0123456789", 3.0),
    (b"\"'", 3.0),
    (b"}])>", 3.0),
    (b"{[(<", 1.5),
    (b",:", 2.0),
    (b".;+-*/=_|&!?#@%", 1.0),
    (b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", 0.5),
    (b" ", 0.4),
    (b"\n", 0.02),
)
"""Chances by class, shared among its bytes: what a person expects to read.  All other bytes share `_REST`."""
_REST = 0.02


def compile_bytes(grammar: Grammar) -> Constraint:
    """The grammar over the vocabulary of single bytes; raises as `guided.compile` does."""
    import guided

    tokens: list[bytes | None] = [*(bytes([byte]) for byte in range(256)), None]
    return guided.compile(grammar, guided.Vocabulary.from_tokens(tokens, eos_ids=[END]))


def shortest_text(constraint: Constraint) -> str:
    """One of the shortest texts, of likeable characters."""
    return _drawn(constraint, constraint.shortest_completion(constraint.start), None)


def sample_text(constraint: Constraint, seed: int, slack: int = SLACK) -> str:
    """A random text, at most ``slack`` bytes longer than the shortest."""
    return _drawn(constraint, constraint.shortest_completion(constraint.start) + slack, random.Random(seed))


def rambling_text(constraint: Constraint, seed: int, steps: int) -> str:
    """A random text: at most ``steps`` bytes freely, then the shortest way to an end from there.

    Cheaper than `sample_text`, which asks at every byte what can still end in time.
    """
    rng = random.Random(seed)
    weights = _weights()
    row = np.zeros(constraint.vocabulary.n_words, np.uint32)
    out = bytearray()
    state = constraint.start
    for _ in range(steps):
        constraint.fill_mask(state, row)
        allowed = allowed_bytes(row)
        if END in allowed and (allowed == [END] or rng.random() < END_CHANCE):
            return out.decode()
        choices = [byte for byte in allowed if byte != END]
        (byte,) = rng.choices(choices, [float(weights[one]) for one in choices])
        out.append(byte)
        state = constraint.advance(state, byte)
    # Ids of the byte vocabulary are the bytes themselves.
    return (out + bytes(constraint._completions.tokens(state))).decode()


def allowed_bytes(row: np.typing.NDArray[np.uint32]) -> list[int]:
    """The ids whose bits a mask row of the byte vocabulary has, `END` included."""
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: END + 1]
    return [int(index) for index in np.flatnonzero(bits)]


def _drawn(constraint: Constraint, length: int, rng: random.Random | None) -> str:
    weights = _weights()
    row = np.zeros(constraint.vocabulary.n_words, np.uint32)
    out = bytearray()
    state = constraint.start
    while True:
        # The end of the text counts as one more token.
        constraint.fill_budget_mask(state, row, length + 1 - len(out))
        allowed = allowed_bytes(row)
        if END in allowed and (rng is None or allowed == [END] or rng.random() < END_CHANCE):
            return out.decode()
        choices = [byte for byte in allowed if byte != END]
        if rng is None:
            byte = max(choices, key=lambda one: float(weights[one]))
        else:
            (byte,) = rng.choices(choices, [float(weights[one]) for one in choices])
        out.append(byte)
        state = constraint.advance(state, byte)


def _weights() -> np.typing.NDArray[np.float64]:
    weights = np.full(END + 1, _REST / 256)
    for members, weight in _WEIGHTS:
        weights[list(members)] = weight / len(members)
    return weights
