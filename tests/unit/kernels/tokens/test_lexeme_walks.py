"""Walks along words and runs against tokens looked at one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import guided
from guided import tokenset
from guided.constraint.attributed.tables import IN_QUOTES, IN_WORD, quoted_run, word_run
from guided.constraint.attributed.walks import Walks
from guided.grammar.attributed.words import words_of

LETTERS = st.text("abAB_", min_size=1, max_size=4)
TOKENS = st.lists(st.text("abAB_1 ,.'é\\", min_size=1, max_size=6), min_size=1, max_size=30)


def vocabulary_of(tokens: list[str]) -> guided.Vocabulary:
    texts = list(dict.fromkeys(token.encode() for token in tokens))
    return guided.Vocabulary.from_tokens([*texts, None], eos_ids=[len(texts)])


def allowed(row: np.ndarray, vocabulary: guided.Vocabulary) -> set[bytes]:
    return {vocabulary.token_bytes(token) or b"" for token in tokenset.ids(row).tolist()}


@settings(max_examples=60, deadline=None)
@given(tokens=TOKENS, words=st.lists(LETTERS, min_size=1, max_size=6), prefix=st.text("ab", max_size=2))
def test_words(tokens: list[str], words: list[str], prefix: str) -> None:
    vocabulary = vocabulary_of(tokens)
    walks = Walks(vocabulary)
    listed = words_of(word.lower() for word in words)
    begun = prefix.encode()
    rests = {word[len(begun) :] for word in listed.sorted if word.startswith(begun)} - {b""}
    walked = walks.words(walks.starts([0]), listed, begun, True, frozenset(range(256)))
    texts = [token.encode() for token in dict.fromkeys(tokens)]
    assert allowed(walked.row, vocabulary) == {
        text for text in texts if any(rest.startswith(text.lower()) for rest in rests)
    }
    longer = {(text[: len(rest)]) for text in texts for rest in rests if text.lower().startswith(rest) and text != rest}
    longer = {text for text in longer if any(one.startswith(text) and len(one) > len(text) for one in texts)}
    assert {walks.last_bytes(one.node, len(one.text)) for one in walked.crossings} == longer
    assert {one.text for one in walked.crossings} == {text.lower() for text in longer}


@settings(max_examples=60, deadline=None)
@given(tokens=TOKENS)
def test_runs_of_words(tokens: list[str]) -> None:
    vocabulary = vocabulary_of(tokens)
    walks = Walks(vocabulary)
    walked = walks.run(walks.starts([0]), word_run(), IN_WORD, frozenset(range(256)), None)
    members = b"abAB_1"
    texts = [token.encode() for token in dict.fromkeys(tokens)]
    assert allowed(walked.row, vocabulary) == {text for text in texts if not text.strip(members)}
    runs = {text[: len(text) - len(text.lstrip(members))] for text in texts if text.strip(members)} - {b""}
    assert {one.text for one in walked.crossings} == runs


@settings(max_examples=60, deadline=None)
@given(tokens=TOKENS)
def test_runs_in_quotes(tokens: list[str]) -> None:
    vocabulary = vocabulary_of(tokens)
    walks = Walks(vocabulary)
    run = quoted_run(ord("'"), (0,), escapes=True)
    walked = walks.run(walks.starts([0]), run, IN_QUOTES, frozenset(range(256)), ord("'"))
    inside, ended = set(), set()
    for text in (token.encode() for token in dict.fromkeys(tokens)):
        at = 0
        while at < len(text):
            if text[at] == ord("\\"):
                at += 2 if text[at + 1 : at + 2].isascii() else 3
            elif text[at : at + 2] == b"''":
                at += 2
            elif text[at] == ord("'"):
                if at + 1 < len(text):
                    ended.add(text[:at].replace(b"''", b"'"))
                    break
                at += 1
            else:
                at += 1
        else:
            inside.add(text)
    assert allowed(walked.row, vocabulary) == inside
    assert {one.text for one in walked.crossings} == ended
