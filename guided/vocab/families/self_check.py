"""The check that the bytes read for a tokenizer are what its own ``decode`` prints, on a few dozen samples.

It guards against a tokenizer that looks like a known family and is not: an error now instead of wrong text later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from guided.vocab.families.table import unknown_bytes

__all__ = ["check_round_trips"]

# Evenly spread over the ids, so that byte tokens, merges and late additions are all among them; pairs are made of
# neighbours in this sample.  48 decodes cost a few milliseconds.
_SAMPLES = 48

# How many more ids are tried, from the lowest, for a token to put first.
_ANCHORS = 1000


def check_round_trips(
    tokens: Sequence[bytes | None],
    decode: Callable[[list[int]], str],
    *,
    strips_space: bool,
    ignore_outer_spaces: bool = False,
) -> None:
    """Compare ``decode`` of sampled ids and pairs with their bytes; raise `VocabularyError` naming those that differ.

    Only bytes that are whole characters are compared: what ``decode`` prints for others is not defined.
    """
    whole = [(token, text) for token, data in enumerate(tokens) if data and (text := _text(data)) is not None]
    if not whole:
        return
    step = max(1, len(whole) // _SAMPLES)
    sample = whole[::step] + whole[-1:]

    def prints(ids: list[int], text: str) -> bool:
        printed = decode(ids)
        if ignore_outer_spaces:
            return printed.strip() == text.strip()
        return printed == (text.removeprefix(" ") if strips_space else text)

    # What a decoder does to the first token of a text (spaces, continuation marks) is not what is checked: put a token
    # there that is free of it.
    candidates = sample + whole[:_ANCHORS]
    anchor = next((pair for pair in candidates if pair[1] == pair[1].strip() and prints([pair[0]], pair[1])), None)
    if anchor is None:
        # Only word beginnings, each with its space: their first space is all that a decoder takes away.
        anchor = next((pair for pair in candidates if pair[1].strip() and prints([pair[0]], pair[1])), None)
    if anchor is None and not any(text.strip() for _, text in sample):
        return  # nothing but white space: no text could tell
    if anchor is None:
        raise unknown_bytes([token for token, _ in sample], "the tokenizer's decode prints other text for them")
    token, text = anchor
    wrong = [
        a
        for (a, first), (b, second) in zip(sample, sample[1:] + sample[:1], strict=True)
        if not prints([token, a, b], text + first + second)
    ]
    if wrong:
        raise unknown_bytes(sorted(set(wrong)), "the tokenizer's decode prints other text for them")


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
