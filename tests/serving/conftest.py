"""The packaged model, and what `guided.generate` makes of the cases with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import guided
import guided.hf
from guided.constraint.protocol import Constrains
from tests.serving.cases import BUDGET, CASES, Case


@dataclass(frozen=True)
class Answered:
    """A case with its prompt as ids, so that no engine's way of reading texts matters, and its text's tokens."""

    case: Case
    ids: list[int]
    constraint: Constrains
    token_ids: tuple[int, ...]


def answer(nano: guided.hf.LoadedModel, case: Case) -> Answered:
    """What `guided.generate` makes of a case."""
    constraint = guided.compile(case.make(), nano.vocabulary)
    text = guided.generate(nano, case.prompt, constraint, max_new_tokens=BUDGET)
    assert text.finished, case.name
    return Answered(case, nano.tokenizer(case.prompt)["input_ids"], constraint, text.token_ids)


@pytest.fixture(scope="session")
def nano():
    return guided.hf.load("nano", device="cpu")


@pytest.fixture(scope="session")
def answered(nano):
    """All cases."""
    return [answer(nano, case) for case in CASES]


def differing(texts: Sequence[Any], answered: Sequence[Answered]) -> dict[str, tuple[Any, Any]]:
    """The names of the cases whose tokens differ, with both."""
    return {
        each.case.name: (text.token_ids, each.token_ids)
        for text, each in zip(texts, answered, strict=True)
        if text.token_ids != each.token_ids
    }


def allowed_after(constraint: Constrains, tokens: Sequence[int]) -> set[int]:
    """The ids that a constraint allows after some tokens."""
    state = constraint.start
    for token in tokens:
        state = constraint.advance(state, token)
    row = np.zeros(constraint.vocabulary.n_words, np.uint32)
    constraint.fill_mask(state, row)
    return set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())
