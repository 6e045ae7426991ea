"""Beginnings that none of a list's strings has which are not there yet: against every string that is left."""

from __future__ import annotations

import random

import numpy as np
import pytest

from guided.constraint.distinct.json_text import Mode, Reader
from guided.constraint.distinct.token_texts import TokenTexts
from guided.constraint.distinct.unused_strings import UnusedStrings
from tests.unit.constraint.distinct.test_finite_strings import names, spellings, vocabulary_of


def leads_on(token: bytes, left: list[bytes]) -> bool:
    """May one that is left still come behind a token that is a part of a string?  By all of its spellings."""
    for text in left:
        rests = {token}
        for character in text.decode():
            behind = set()
            for rest in rests:
                for written in spellings(character):
                    if written.startswith(rest):
                        return True
                    if rest.startswith(written):
                        behind.add(rest[len(written) :])
            rests = behind
        if b"" in rests:
            return True
    return False


@pytest.mark.parametrize("seed", range(6))
def test_tokens_that_end(seed: int) -> None:
    rnd = random.Random(seed)
    values = names(rnd.choice([14, 40, 90]))
    vocabulary = vocabulary_of(values, rnd)
    texts, row = TokenTexts.of(vocabulary), np.full(vocabulary.n_words, 0xFFFFFFFF, np.uint32)
    told = tuple(sorted(value.encode() for value in values))
    unseen, left = UnusedStrings(told), set(told)
    before = UnusedStrings(told)
    reader = Reader()
    start = reader.text(None, Mode.NAME)
    assert start is not None
    n_ended = 0
    refused: set[int] = set()
    opened: set[int] = set()
    order = rnd.sample(told, len(told))
    while order:
        joined = [order.pop() for _ in range(min(len(order), rnd.choice([1, 1, 3, 12])))]
        left -= set(joined)
        refused |= set(unseen.ended(texts, row, joined, inside=True))
        opened |= set(before.ended(texts, row, joined, inside=False))
        for token, data in enumerate(vocabulary.tokens):
            # Upper case in escapes and what is no text have no place among the spellings here.
            if data is None or data != data.lower():
                continue
            for quote in (b"", b'"'):
                if not data.startswith(quote) or b'"' in data[len(quote) :].replace(b'\\"', b""):
                    continue
                part = data[len(quote) :]
                text, at = reader.spelled(start, part, 0)
                led = any(key.startswith(text.text) for key in told if key not in left)
                if at < len(part) or not part.isascii() or not led:
                    continue
                ended = token in (opened if quote else refused)
                alive = leads_on(part, sorted(left))
                assert not (ended and alive), (part, sorted(left))
                if part and leads_on(part, list(told)) and not alive:
                    assert ended, (part, sorted(left))
                    n_ended += 1
    assert n_ended > 10


def test_nothing_is_left() -> None:
    vocabulary = vocabulary_of(["ab", "b", "c"], random.Random(0))
    texts, row = TokenTexts.of(vocabulary), np.full(vocabulary.n_words, 0xFFFFFFFF, np.uint32)
    unseen = UnusedStrings((b"", b"a"))
    token = {data: token for token, data in enumerate(vocabulary.tokens)}
    assert not {token[b"a"], token[b"\\"]} & set(unseen.ended(texts, row, [b""], inside=True))
    assert {token[b"a"], token[b"\\"]} <= set(unseen.ended(texts, row, [b"a"], inside=True))
