"""`guided.generate` masks each position of each row once, whatever decodes, and the rows of a batch by one call a step."""

from __future__ import annotations

from collections import Counter

import pytest

import guided
from guided.draft import BestFirst, Chain, Drafting, Fixed, ForcedBytes, Model, PromptLookup, Recycling, Union
from guided.hf import LoadedModel, TransformersModel, generate
from guided.steer import ClassifierFree, Contrastive, ContrastiveSearch
from tests.amounts import crossed

PROMPTS = ['["a", "b", [1, 22, 333]], ["a", "b", [1, 22', "yes no", "{"]
GRAMMARS = ["nested", "record", "record"]
BUDGET, LEVELS = 24, 3
FILLED_BY = {
    "guided.hf.constraints": "fill_masks",
    "guided.hf.processor": "kept_rows",
    "guided.draft.masks": "fill_masks",
}
"""What makes the masks of rows that decode, by the modules that call it."""


class Counted:
    """A constraint whose states are texts, which counts how often the mask after each of them is filled."""

    def __init__(self, inner) -> None:
        self.inner = inner
        self.vocabulary, self.start, self.end = inner.vocabulary, 1, 2
        self._texts = [(0, ()), (inner.start, ()), (inner.end, ("end",))]
        self._numbers = {(): 1}
        self.filled: Counter[tuple[int, ...]] = Counter()

    def advance(self, state, token):
        inner, text = self._texts[state]
        found = self.inner.advance(inner, token)
        if found in (0, self.inner.end):
            return 2 if found else 0
        if (*text, token) not in self._numbers:
            self._numbers[(*text, token)] = len(self._texts)
            self._texts.append((found, (*text, token)))
        return self._numbers[(*text, token)]

    def advance_bytes(self, state, data):
        raise NotImplementedError

    def fill_mask(self, state, row):
        inner, text = self._texts[state]
        self.filled[text] += 1
        self.inner.fill_mask(inner, row)

    def fill_budget_mask(self, state, row, budget):
        inner, text = self._texts[state]
        self.filled[text] += 1
        self.inner.fill_budget_mask(inner, row, budget)

    def is_accepting(self, state):
        return self.inner.is_accepting(self._texts[state][0])

    def forced(self, state):
        return self.inner.forced(self._texts[state][0])

    def shortest_completion(self, state):
        return self.inner.shortest_completion(self._texts[state][0])

    def most_filled(self):
        """How often the mask of one position was filled at most; positions after the end are none."""
        return max(count for text, count in self.filled.items() if text != ("end",))


@pytest.fixture(scope="module")
def loaded(llama, tokenizer):
    return LoadedModel("llama", llama, tokenizer)


@pytest.fixture(scope="module")
def small(draft_llama, tokenizer):
    return TransformersModel(draft_llama, tokenizer)


@pytest.fixture
def filled(monkeypatch):
    """The number of rows of each call that makes masks."""
    import importlib

    calls = []

    def count(name, makes):
        module = importlib.import_module(name)
        make = getattr(module, makes)

        def counted(constraints, states, *places, **options):
            calls.append(len(states))
            return make(constraints, states, *places, **options)

        monkeypatch.setattr(module, makes, counted)

    for name, makes in FILLED_BY.items():
        count(name, makes)
    return calls


HOW = {
    "plain": lambda small: {},
    "drawn": lambda small: {"do_sample": True, "top_k": 0, "seed": 3},
    "steered": lambda small: {"steer": ClassifierFree(scale=1.5)},
    "steered by a look ahead": lambda small: {"steer": ContrastiveSearch()},
    "steered in the loop of transformers": lambda small: {"steer": Contrastive(small), "output_scores": True},
    "looked up": lambda small: {"draft": Drafting(PromptLookup(), Fixed(6))},
    "forced": lambda small: {"draft": Drafting(BestFirst(ForcedBytes(), Recycling()), Fixed(6))},
    "drafted by a model": lambda small: {"draft": Drafting(Model(small, Chain(LEVELS)), Fixed(LEVELS))},
    "drafted and drawn": lambda small: {
        "draft": Drafting(Union(PromptLookup(), Model(small, Chain(LEVELS))), Fixed(6)), "do_sample": True, "top_k": 0,
    },
    "drafted and steered": lambda small: {
        "draft": Drafting(PromptLookup(), Fixed(6)), "steer": ClassifierFree(scale=1.5),
    },
    "drafted by a model and steered": lambda small: {
        "draft": Drafting(Model(small, Chain(LEVELS)), Fixed(LEVELS)), "steer": [Contrastive(small)],
    },
}  # fmt: skip


@pytest.mark.parametrize(("how", "n_rows"), crossed(HOW, [1, 3]))
def test_each_position_is_masked_once(how, n_rows, loaded, small, constraints):
    counted = [Counted(constraints[name]) for name in GRAMMARS[:n_rows]]
    made = generate(loaded, PROMPTS[:n_rows], counted, max_new_tokens=BUDGET, **HOW[how](small))
    for constraint, one in zip(counted, made, strict=True):
        assert constraint.most_filled() == 1
        missing = [n for n in range(len(one.token_ids)) if not constraint.filled[one.token_ids[:n]]]
        assert not missing


@pytest.mark.parametrize(("how", "shared"), crossed(HOW, [False, True], share=6))
def test_a_batch_is_one_call_a_step(how, shared, loaded, small, vocabulary, filled):
    """A step is a token of every row that goes on, a level of a draft model's drafts, or the drafts that are steered."""
    free = guided.compile(guided.regex("[a-z ]{20}"), vocabulary)
    grammars = free if shared else [free, guided.regex("[a-z]{4,20}"), guided.regex("[0-9a-f]{20}")]
    made = generate(loaded, PROMPTS, grammars, max_new_tokens=BUDGET, **HOW[how](small))
    counts = made[0].drafts
    steps = 1 + max(len(one.token_ids) + one.finished for one in made)
    if counts is not None:
        levels = LEVELS if "model" in how or how == "drafted and drawn" else int("steered" in how)
        steps = 1 + counts.passes * (1 + levels) + counts.accepted + counts.forced
    assert len(filled) <= steps
    assert max(filled) >= len(PROMPTS) - shared
    assert len(filled) < sum(filled)
