"""Drafts keep nothing that grows: generation after generation, and no more of a cache than their own nodes."""

from __future__ import annotations

import gc
import os
import tracemalloc
import weakref
from pathlib import Path

import pytest

import guided
from guided.constraint.compile import AT_ONCE, REMEMBERED
from guided.draft import (
    Aggressive,
    BestFirst,
    Chain,
    Confidence,
    Drafting,
    Fixed,
    ForcedBytes,
    MaskCounts,
    Model,
    NGrams,
    PromptLookup,
    Recycling,
    Staged,
    TriGrams,
    Union,
    auto,
    speculate,
)
from guided.hf import LoadedModel, TransformersModel, generate
from guided.hf.cache.row_cache import RowCache
from guided.infer import smc
from tests.amounts import some

PROMPTS = ["yes no maybe", '["a", "b", [1, 22', "the cat sat on the", '{"name": "ann", "n":', "[[1], [22], ["]


@pytest.fixture(autouse=True, scope="module")
def frozen():
    """What is there before these tests is neither collected nor counted: quicker, and nobody else's garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def words(vocabulary):
    """Few texts, so that what a constraint remembers of its states is soon all there is."""
    return guided.compile(guided.choice(["yes", "no", "maybe", "the cat", "the mat", "[1, 22]"]), vocabulary)


@pytest.fixture(scope="module")
def record(vocabulary):
    return guided.compile(guided.regex('\\{"name": "[a-z]{1,6}", "n": [0-9]{1,4}\\}'), vocabulary)


@pytest.fixture(scope="module")
def target(llama, tokenizer):
    return TransformersModel(llama, tokenizer)


@pytest.fixture(scope="module")
def small(draft_llama, tokenizer):
    return TransformersModel(draft_llama, tokenizer)


def everything(small):
    """A tree of all drafts that keep something of a row."""
    found = Union(PromptLookup(), Recycling(), share=0.7)
    for other in (TriGrams(), Aggressive(), Model(small, Chain(2, Confidence())), Staged(small, PromptLookup(), 2)):
        found = Union(found, other, share=0.7)
    return found


def left(generation, times):
    """Objects that ``times`` generations leave for each of them, after as many others: learning fills up first."""
    for number in range(times):
        generation(number)
    gc.collect()
    before = len(gc.get_objects())
    for number in range(times):
        generation(number)
    gc.collect()
    return (len(gc.get_objects()) - before) / times


def grown(generation, times):
    """The same in bytes, of all that Python allocates."""
    tracemalloc.start(1)
    try:
        for number in range(times):
            generation(number)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(times):
            generation(number)
        gc.collect()
        return (tracemalloc.get_traced_memory()[0] - before) / times
    finally:
        tracemalloc.stop()


def test_what_stays_is_found_out():
    kept = []
    assert left(lambda number: kept.append([[number]]), 20) >= 1
    assert grown(lambda number: kept.append(bytes(300)), 20) >= 300


def through_generate(loaded, constraint, draft):
    def generation(number):
        prompt = PROMPTS[number % len(PROMPTS)]
        generate(loaded, prompt, constraint, max_new_tokens=8, draft=draft, do_sample=bool(number % 2), seed=number % 3)

    return generation


def test_fifty_generations_leave_nothing(llama, tokenizer, words):
    loaded = LoadedModel("llama", llama, tokenizer)
    generation = through_generate(loaded, words, auto())
    # A row that was forgotten, with its lists and cache, is dozens of objects.
    assert left(generation, some(25, 2)) < 3


def test_rows_leave_nothing(target, small, tokenizer, words):
    drafter = everything(small)
    prompts = [tokenizer(prompt)["input_ids"] for prompt in PROMPTS]

    def generation(number):
        chosen = [prompts[(number + i) % 5] for i in range(2)]
        speculate(number % 3, target, chosen, [words, None], drafter, max_tokens=5, policy=Fixed(12), greedy=True)

    assert left(generation, some(15, 2)) < 0.5


def test_populations_leave_nothing(target, tokenizer, words):
    draft = Drafting(BestFirst(ForcedBytes(), PromptLookup(), MaskCounts(), NGrams(), Recycling()), Fixed(8))
    prompt = tokenizer(PROMPTS[1])["input_ids"]

    def generation(number):
        smc(number % 2, target, prompt, words, n=4, max_tokens=8, draft=draft)

    assert left(generation, 10) < 0.5
    assert not draft.drafter._guessed
    assert not draft.drafter.guessers[1]._places


def test_grammars_are_let_go(target, vocabulary, tokenizer):
    """Where every text has a grammar of its own, the last ones are kept and no others."""
    draft = auto()
    prompt = tokenizer(PROMPTS[0])["input_ids"]
    alive = []
    for number in range(REMEMBERED + AT_ONCE + 20):
        constraint = guided.compile(guided.regex(f"yes|no{number}"), vocabulary)
        alive.append(weakref.ref(constraint))
        speculate(0, target, [prompt], [constraint], draft.drafter, max_tokens=4, policy=draft.policy, greedy=True)
        del constraint
    gc.collect()
    assert sum(reference() is not None for reference in alive) < REMEMBERED + AT_ONCE + 2


@pytest.fixture
def caches(monkeypatch):
    """Every cache that is made, with the most slots and columns that were asked of it."""
    found = []
    init, reserve = RowCache.__init__, RowCache.reserve

    def watched_init(self, *args, **options):
        init(self, *args, **options)
        self.most = (0, 0)
        found.append(self)

    def watched_reserve(self, slots, columns):
        self.most = (max(self.most[0], slots), max(self.most[1], columns))
        reserve(self, slots, columns)

    monkeypatch.setattr(RowCache, "__init__", watched_init)
    monkeypatch.setattr(RowCache, "reserve", watched_reserve)
    return found


def elements(cache):
    """Numbers that a cache holds, and how many of them one column of one slot is."""
    stored = [buffer for layer in cache.layers for buffer in layer.stored]
    return sum(buffer.numel() for buffer in stored), sum(buffer.shape[1] * buffer.shape[3] for buffer in stored)


@pytest.mark.parametrize("nodes", [4, 16, 40])
def test_a_cache_holds_the_text_and_one_tree(target, tokenizer, record, caches, nodes):
    prompts = [tokenizer(prompt)["input_ids"] for prompt in PROMPTS]
    grammars = [record, None, record, None, record]
    drafter = BestFirst(ForcedBytes(), PromptLookup(), MaskCounts(), NGrams(), Recycling(), floor=0.0)
    limits = {"max_tokens": 24, "greedy": True}
    (plain, _), (drafted, counts) = (
        speculate(0, target, prompts, grammars, each, policy=Fixed(nodes), **limits) for each in (None, drafter)
    )
    assert plain == drafted and counts.drafted > 0
    (first, second), longest = caches, max(len(prompt) for prompt in prompts) + 24
    # A tree's columns are behind the text, and no row that drafts has a slot more.
    assert second.most[0] == first.most[0] == len(prompts)
    assert first.most[1] <= longest
    assert second.most[1] <= longest + nodes
    size, column = elements(second)
    # A buffer is a half and 64 columns larger than what is asked for, so that it is seldom copied.
    assert size <= len(prompts) * column * (1.5 * (longest + nodes) + 64)


def test_a_populations_cache_holds_its_rows_and_their_trees(target, tokenizer, vocabulary, caches):
    prompt = tokenizer(PROMPTS[1])["input_ids"]
    draft = Drafting(
        BestFirst(ForcedBytes(), PromptLookup(), MaskCounts(), NGrams(), Recycling(), floor=0.0), Fixed(16)
    )
    lists = guided.compile(guided.regex("\\[([0-9a-c]{1,3}, ){0,9}\\]"), vocabulary)
    for each in (None, draft):
        smc(1, target, prompt, lists, n=6, max_tokens=16, draft=each, ess_threshold=0.9)
    first, second = caches
    assert second.most[0] <= max(6, first.most[0])
    assert second.most[1] <= len(prompt) + 16 + 16


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ["auto", "everything"])
def test_a_thousand_generations_leave_nothing(llama, tokenizer, small, words, name):
    """Neither Python objects nor, as far as the system tells, memory of the process."""
    loaded = LoadedModel("llama", llama, tokenizer)
    draft = auto() if name == "auto" else Drafting(everything(small), Fixed(12))
    generation = through_generate(loaded, words, draft)
    # Interpreter and libraries keep some kilobytes one time or another.
    assert grown(generation, 200) < 100
    statm = Path(f"/proc/{os.getpid()}/statm")
    if not statm.exists():
        pytest.skip("the system does not say how much memory a process has")

    def resident():
        gc.collect()
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident()
    for number in range(600):
        generation(number)
    # Allocators keep pages; a cache that stayed would be hundreds of kilobytes a generation.
    assert resident() - before < 16 << 20
