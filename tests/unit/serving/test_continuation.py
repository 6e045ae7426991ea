"""Masks by ids alone, prompt included; and what users of our functions pass and get."""

from __future__ import annotations

import numpy as np
import pytest

import guided
from guided.errors import GuidedError, LimitError, TextError, VocabularyError
from guided.serving import Continuation, Goal
from guided.vocab import Vocabulary

VOCABULARY = Vocabulary.from_tokens([bytes([byte]) for byte in range(128)] + [None, None], eos_ids=[128])


@pytest.fixture
def constraint():
    return guided.compile(guided.regex("ab{1,9}c"), VOCABULARY)


def _allowed(row):
    return "".join(
        "$" if token == 128 else chr(token)
        for token in np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
    )


def _ask(text, ids, width=130):
    return _allowed(text.mask(np.frombuffer(ids.encode().replace(b"$", b"\x80"), np.uint8), width))


def test_the_first_call_is_the_prompt_and_any_order_of_calls_is_right(constraint):
    text = Continuation(constraint)
    assert [_ask(text, ids) for ids in ("xy", "xya", "xyab", "xya", "xyabb", "xy")] == ["a", "b", "bc", "b", "bc", "a"]
    assert [_ask(text, ids) for ids in ("xyabbc", "xyabbc$", "xyabbc$")] == ["$", "$", "$"]


def test_a_prompt_that_is_known(constraint):
    text = Continuation(constraint, prompt_length=1)
    assert _ask(text, "xab") == "bc"
    with pytest.raises(GuidedError, match="do not continue"):
        _ask(text, "")


def test_budgets_hold_to_the_last_token_and_beyond(constraint):
    text = Continuation(constraint, 5)
    asked = [_ask(text, ids) for ids in ("x", "xa", "xab", "xabb", "xabbc", "xabbc$")]
    assert asked == ["a", "b", "bc", "c", "$", "$"]
    # Engines ask behind the last token, whatever it was.
    assert _ask(text, "xabbbb") == "$"
    with pytest.raises(LimitError):
        Continuation(constraint, 3)


def test_the_width_of_the_scores(constraint):
    text = Continuation(constraint)
    assert len(text.mask([], 130)) == 5 and len(text.mask([], 500)) == 16
    assert _allowed(text.mask([97, 98, 99], 129)) == "$"
    # What has no room is not asked for yet, or is refused.
    assert _allowed(text.mask([97], 100)) == "bc"[:1]
    for width in (96, 99, 128):
        with pytest.raises(VocabularyError, match=f"scores {width} ids"):
            text.mask([97, 98] if width < 100 else [97, 98, 99], width)


def test_an_end_is_what_is_left_of_an_error(constraint):
    assert _allowed(Continuation(constraint).end_mask(130)) == "$"
    assert not Continuation(constraint).end_mask(128).any()


def test_goals_are_what_users_pass(constraint):
    assert Goal.of(constraint, VOCABULARY).constraint is constraint
    goal = Goal.of({"type": "array", "items": {"type": "boolean"}}, VOCABULARY)
    assert goal.text([*b"[true]", 128]).value == [True]
    assert Goal.of(list[int], VOCABULARY).text(list(b"[1,2]")).value == [1, 2]
    with pytest.raises(VocabularyError, match="compiled for"):
        Goal.of(constraint, Vocabulary.from_tokens([b"a", None], eos_ids=[1]))


def test_texts_are_cut_at_their_end_and_say_whether_they_are_whole(constraint):
    goal = Goal.of(constraint, VOCABULARY)
    whole = goal.text([*b"abc", 128, 97])
    assert whole.text == "abc" and whole.token_ids == tuple(b"abc") and whole.finished and whole.value == "abc"
    cut = goal.text(list(b"abb"))
    assert cut.text == "abb" and not cut.finished
    assert not goal.text(list(b"zz")).finished
    with pytest.raises(TextError, match="cut before it was whole"):
        _ = cut.value
