"""Vocabularies to test with: every single byte, given tokens, random tokens of some letters, and pieces of texts."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from guided import Vocabulary

SINGLE_BYTES = tuple(bytes([byte]) for byte in range(256))


OBJECT_PIECES = [b'{"', b'": ', b'", "', b'"}', b'"name"', b"na", b"me", b'"}, {"']
"""Tokens over several parts of an object at once."""


def of_tokens(tokens: Iterable[bytes]) -> Vocabulary:
    """These tokens, in their order, and the end of text behind them."""
    listed = [*tokens]
    return Vocabulary.from_tokens([*listed, None], eos_ids=[len(listed)])


def of_bytes() -> Vocabulary:
    """Every single byte and the end of text; a new one, since much is kept for as long as its vocabulary."""
    return of_tokens(SINGLE_BYTES)


def with_bytes(tokens: Iterable[bytes]) -> list[bytes]:
    """The tokens and every single byte, sorted: with these each text has tokens.

    Where some text cannot be spelled, each token of a mask is stepped over, and a wrong effect is hidden.
    """
    return sorted({*tokens, *SINGLE_BYTES})


def bytes_first(tokens: Iterable[bytes]) -> list[bytes]:
    """Every single byte, whose id it is, and then the others, sorted."""
    return [*SINGLE_BYTES, *sorted({*tokens} - {*SINGLE_BYTES, b""})]


def random_tokens(seed: random.Random, letters: Sequence[str | bytes], n: int, most: int, least: int = 1) -> set[bytes]:
    """Up to ``n`` tokens, of ``least`` to ``most`` of the letters each."""
    parts = [letter.encode() if isinstance(letter, str) else letter for letter in letters]
    return {b"".join(seed.choices(parts, k=seed.randint(least, most))) for _ in range(n)}


def pieces_of(seed: random.Random, texts: Iterable[bytes], most: int) -> set[bytes]:
    """A piece out of each text, of up to ``most`` bytes."""
    found = set()
    for text in texts:
        at = seed.randrange(len(text))
        found.add(text[at : at + seed.randint(1, most)])
    return found


def cut_tokens(seed: random.Random, tokens: Iterable[bytes], n: int) -> set[bytes]:
    """``n`` of the tokens without their first or last byte, and without their first two: parts of characters too."""
    some = seed.sample(sorted(tokens), n)
    return {part for token in some for part in (token[1:], token[2:], token[:-1]) if part}
