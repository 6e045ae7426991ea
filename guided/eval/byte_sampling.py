"""Texts of a grammar drawn byte by byte, without a tokenizer: one of the shortest, and random ones that end in time.

Everything here asks a constraint over the vocabulary of the 256 bytes, through its public functions.  Special tokens
that a grammar names are tokens of that vocabulary too; in texts they are written by their names.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np

from guided import tokenset

if TYPE_CHECKING:
    from guided.constraint.constraint import Constraint
    from guided.grammar.ir import Grammar

__all__ = ["END", "compile_bytes", "rambling_text", "sample_text", "shortest_text", "special_ids"]

END = 256
"""The end-of-text id of the byte vocabulary."""
SLACK = 40
"""Bytes that a sampled text may be longer than the shortest."""
LONG = 1_000
"""Bytes of the shortest text from which on not every byte is chosen: it takes 1 ms, and more of long texts."""
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
SPECIAL_WEIGHT = 2.0
"""The chance of a special token: about that of a bracket or a comma with its like."""


def compile_bytes(grammar: Grammar) -> Constraint:
    """The grammar over the vocabulary of single bytes; raises as `guided.compile` does.

    Limits on tokens are left out: no text tells how a tokenizer cuts it.
    """
    import guided
    from guided.grammar.limited.unlimited import unlimited

    grammar = unlimited(grammar)

    special = {name: END + 1 + number for number, name in enumerate(grammar.special_tokens)}
    tokens: list[bytes | None] = [*(bytes([byte]) for byte in range(256)), None, *[None] * len(special)]
    return guided.compile(grammar, guided.Vocabulary.from_tokens(tokens, eos_ids=[END], special_tokens=special))


def special_ids(constraint: Constraint) -> dict[int, bytes]:
    """The special tokens of a byte vocabulary: their names as bytes, by id."""
    return {token: name.encode() for name, token in constraint.vocabulary.special_tokens.items()}


def shortest_text(constraint: Constraint) -> str:
    """One of the shortest texts; of likeable characters, where it is not long."""
    length = constraint.shortest_completion(constraint.start)
    return rambling_text(constraint, 0, 0) if length > LONG else _drawn(constraint, length, None)


def sample_text(constraint: Constraint, seed: int, slack: int = SLACK) -> str:
    """A random text, at most ``slack`` bytes longer than the shortest; where that is long, of `rambling_text`."""
    length = constraint.shortest_completion(constraint.start)
    if length > LONG:
        return rambling_text(constraint, seed, slack)
    return _drawn(constraint, length + slack, random.Random(seed))


def rambling_text(constraint: Constraint, seed: int, steps: int) -> str:
    """A random text: at most ``steps`` bytes freely, then the shortest way to an end from there.

    Cheaper than `sample_text`, which asks at every byte what can still end in time.
    """
    rng = random.Random(seed)
    weights = _weights(constraint)
    special = special_ids(constraint)
    row = np.zeros(constraint.vocabulary.n_words, np.uint32)
    out = bytearray()
    state = constraint.start
    for _ in range(steps):
        constraint.fill_mask(state, row)
        allowed = tokenset.ids(row).tolist()
        if END in allowed and (allowed == [END] or rng.random() < END_CHANCE):
            return out.decode()
        choices = [token for token in allowed if token != END]
        (token,) = rng.choices(choices, [float(weights[one]) for one in choices])
        out += special.get(token) or bytes([token])
        state = constraint.advance(state, token)
    rest = constraint._machine.completions.tokens(state)
    return (out + b"".join(special.get(token) or bytes([token]) for token in rest)).decode()


def _drawn(constraint: Constraint, length: int, rng: random.Random | None) -> str:
    weights = _weights(constraint)
    special = special_ids(constraint)
    row = np.zeros(constraint.vocabulary.n_words, np.uint32)
    out = bytearray()
    state = constraint.start
    # The end of the text counts as one more token.
    for left in range(length + 1, -1, -1):
        constraint.fill_budget_mask(state, row, left)
        allowed = tokenset.ids(row).tolist()
        if END in allowed and (rng is None or allowed == [END] or rng.random() < END_CHANCE):
            break
        choices = [token for token in allowed if token != END]
        if rng is None:
            token = max(choices, key=lambda one: float(weights[one]))
        else:
            (token,) = rng.choices(choices, [float(weights[one]) for one in choices])
        out += special.get(token) or bytes([token])
        state = constraint.advance(state, token)
    return out.decode()


def _weights(constraint: Constraint) -> np.typing.NDArray[np.float64]:
    weights = np.full(constraint.vocabulary.size, _REST / 256)
    weights[END + 1 :] = SPECIAL_WEIGHT
    for members, weight in _WEIGHTS:
        weights[list(members)] = weight / len(members)
    return weights
