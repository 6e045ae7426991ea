"""The cuts of known pre-tokenizers against the pre-tokenizers themselves, on texts made to be difficult."""

from __future__ import annotations

import json
import random
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guided.errors import UnsupportedError
from guided.vocab.canonical import _kinds
from guided.vocab.splitting import DEAD, INITIAL, Pattern, Splitter, known_pattern
from tests.amounts import mostly_slow, some
from tests.twin.byte_pairs import PATTERNS, pre_tokenizer, train

PIECES = [*"'''stmdrvelSTREVLxyz  \t\n\r\n12!?.,{}\"_", "é", "\u00a0", "\u3000", "ſ", "中文", "😀", "٣", "\u0301", "ǅ", "½", "\u2028", "\x1c", "\x85", "𝔸"]  # fmt: skip
FAMILY = {
    "gpt2": Pattern(newlines=False, digits=0, ignore_case=False),
    "llama3": Pattern(newlines=True, digits=3, ignore_case=True),
    "qwen": Pattern(newlines=True, digits=1, ignore_case=True),
}


@cache
def splitter(name: str) -> Splitter:
    """Over the kinds that a tokenizer of this family has; asking it for those of all characters takes three seconds."""
    tokenizer = train(name)
    written = json.dumps(json.loads(tokenizer.to_str())["pre_tokenizer"])
    return Splitter(FAMILY[name], _kinds(tokenizer, FAMILY[name], written))


@cache
def _pre_tokenizer(name: str):
    return pre_tokenizer(name)


def chunks_of(name: str, text: str) -> list[str]:
    return [text[low:high] for _, (low, high) in _pre_tokenizer(name).pre_tokenize_str(text)]


def ours(name: str, text: str) -> list[str]:
    data = text.encode()
    cuts = splitter(name).cuts(data)
    return [data[low:high].decode() for low, high in zip(cuts, [*cuts[1:], len(data)], strict=True)]


@pytest.mark.parametrize("name", mostly_slow(PATTERNS, 2))
def test_cuts_are_the_tokenizers(name):
    rng = random.Random(0)
    for _ in range(some(8000, 96)):
        text = "".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 14)))
        assert ours(name, text) == chunks_of(name, text), text


@pytest.mark.parametrize("name", mostly_slow(PATTERNS, 2))
@given(text=st.text(min_size=1, max_size=20))
def test_cuts_of_any_unicode(name, text):
    assert ours(name, text) == chunks_of(name, text)


@pytest.mark.parametrize("name", mostly_slow(PATTERNS, 2))
def test_no_marking_dies_too_early_or_lives_too_long(name):
    """Of a beginning, exactly the markings live that are true for some way to go on."""
    rng = random.Random(1)
    endings = ["", "a", " ", "\n", "1", "'", "!", " a", "  ", " \n", "e", "ve", "\t", "  x", "l", " 1", "s"]
    for _ in range(some(400)):
        text = "".join(rng.choice(PIECES[:32]) for _ in range(rng.randrange(1, 6)))
        size = len(text.encode())
        alive = {found for state, found in splitter(name).markings(text.encode()).items()}
        true = set()
        for ending in endings:
            offset, cuts = 0, []
            for chunk in chunks_of(name, text + ending):
                cuts.append(offset)
                offset += len(chunk.encode())
            true.add(tuple(cut for cut in cuts if cut < size))
        assert alive == true, text


@pytest.mark.parametrize("name", mostly_slow(PATTERNS, 2))
def test_a_certain_cut_is_there_whatever_follows(name):
    rng = random.Random(2)
    known = 0
    for _ in range(some(1500)):
        text = "".join(rng.choice(PIECES[:32]) for _ in range(rng.randrange(1, 6)))
        byte = rng.choice("a'1 !\n\"e")
        states = splitter(name).markings(text.encode())
        certain = [splitter(name).is_certain_cut(state, ord(byte)) for state in states]
        if not all(certain):
            continue
        known += 1
        for ending in ("", "a", " ", "\n", "!", "1", "e", "  x", "\n\n", " \n"):
            assert len(text) in _starts(chunks_of(name, text + byte + ending)), (text, byte, ending)
    assert known > some(300)


def _starts(chunks: list[str]) -> set[int]:
    starts, at = set(), 0
    for chunk in chunks:
        starts.add(at)
        at += len(chunk)
    return starts


def test_within_a_character_nothing_is_cut_and_broken_ones_die():
    automaton = splitter("llama3")
    for data in ("中".encode(), "😀".encode(), "é".encode()):
        state = automaton.step(automaton.cut(INITIAL), data[0])
        assert state != DEAD and automaton.cut(state) == DEAD and not automaton.may_end(state)
    for broken in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"a\x80", b"\xe4\x41", b"\xf4\x90\x80\x80", b"\xe0\x80\x80"):
        assert not automaton.markings(broken), broken
        with pytest.raises(ValueError, match="UTF-8"):
            automaton.cuts(broken)


def test_unknown_pre_tokenizers_are_refused():
    for spec in (None, {"type": "Whitespace"}, {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True}):
        with pytest.raises(UnsupportedError, match="GPT-2, Llama-3 and Qwen"):
            known_pattern(spec)
