"""A target over four tokens and a draft of every kind for it: what exact tests of drafts sum over."""

from __future__ import annotations

import numpy as np
import torch

import guided
from guided.draft import (
    AcceptanceHead,
    Aggressive,
    Base,
    BestFirst,
    BlockSizes,
    Branching,
    Chain,
    Confidence,
    Datastore,
    Dynamic,
    Eagle,
    Eagle3Head,
    EagleHead,
    EarlyExit,
    ForcedBytes,
    Heads,
    HeadStopped,
    Independent,
    Lookahead,
    MaskCounts,
    Model,
    NGrams,
    OptTree,
    OtherVocabulary,
    Overlapped,
    Planned,
    Prefixed,
    PrefixedHeads,
    PromptLookup,
    Recycling,
    Staged,
    Suffixes,
    TriGrams,
    Union,
    intersected,
    new_heads,
)
from guided.lm.table import TableModel

WIDTH, END = 4, 3
VOCABULARY = guided.Vocabulary.from_tokens([b"a", b"b", b"ab", None], eos_ids=[END])
HIDDEN = 3


def state_after(tokens):
    """A hidden state that says something about the last tokens."""
    return np.random.default_rng([1, *tokens[-2:]]).standard_normal(HIDDEN)


def with_states(model, *layers):
    """The same model, with hidden states, and with early exits where ``layers`` are given."""
    return TableModel(model.logprobs, width=WIDTH, eos_ids=[END], layers=layers, hidden=state_after)


EXIT = TableModel.random(7, width=WIDTH, eos_ids=[END])
TARGET = with_states(TableModel.random(5, width=WIDTH, eos_ids=[END]), EXIT.logprobs, EXIT.logprobs)
SMALL = with_states(TableModel.random(6, width=WIDTH, eos_ids=[END]))
CONSTRAINT = guided.compile(guided.regex("(ab|ba|aa)?b*"), VOCABULARY)
PROMPT = [0, 1, 0, 2, 1, 0]

OTHER = guided.Vocabulary.from_tokens([b"b", b"ba", b"a", b"aa", None, b"bb"], eos_ids=[4])
OTHERS = TableModel.random(8, width=6, eos_ids=[4])


def random_module(module, seed=0):
    """A module with random weights."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    return module


BASE = Base(*(torch.from_numpy(np.random.default_rng(3).standard_normal((2, WIDTH, HIDDEN))).float()))
MEDUSA = random_module(new_heads("medusa", 3, BASE))
HYDRA = random_module(new_heads("hydra", 2, BASE))
CLOVER = random_module(new_heads("clover", 2, BASE))
CHIMERA = random_module(new_heads("chimera", 2, BASE))
BLOCK = BlockSizes(HIDDEN, 5, 1, 1, 2)
PREFIXED = random_module(PrefixedHeads(new_heads("hydra", 2, BASE), BLOCK), 4)
EAGLE = random_module(EagleHead(BLOCK, BASE, n_blocks=2))
EAGLE3 = random_module(Eagle3Head(BLOCK, Base(BASE.embeddings, BASE.unembeddings), HIDDEN, ids=torch.tensor([0, 1, 3])))
STOP = random_module(AcceptanceHead(HIDDEN))


def drafts(target, small):
    """For each kind of draft how one is made; ``small`` is the draft model.

    One draft is for one text where outcomes are enumerated: what learns must not remember the last one.
    """
    return {
        "medusa": lambda: Heads(MEDUSA),
        "hydra": lambda: Heads(HYDRA),
        "clover": lambda: Heads(CLOVER),
        "chimera": lambda: Heads(CHIMERA),
        "prefixed": lambda: Prefixed(PREFIXED),
        "eagle": lambda: Eagle(EAGLE, depth=3, top=2),
        "eagle, of likely nodes": lambda: Eagle(EAGLE, depth=3, top=2, floor=0.2),
        "eagle 3, of some ids": lambda: Eagle(EAGLE3, depth=2, top=3),
        "heads as guesses": lambda: BestFirst(Heads(HYDRA), Heads(MEDUSA), PromptLookup(), floor=0.0),
        "heads and a model": lambda: Union(Heads(MEDUSA), Model(small, Chain(1))),
        "early exit": lambda: EarlyExit({1: EXIT}, 9, longest=2),
        "early exit of an expensive pass": lambda: EarlyExit({1: EXIT}, 9, longest=2, by_rule=True),
        "stopped by a head": lambda: HeadStopped(small, STOP, threshold=0.5, least=1, most=2),
        "stopped by a head, by rule": lambda: HeadStopped(small, STOP, threshold=0.5, least=1, by_rule=True),
        "intersection": lambda: Model(intersected(OTHERS, OTHER, VOCABULARY), Chain(2)),
        "intersection, tree": lambda: Model(intersected(OTHERS, OTHER, VOCABULARY), Branching((2, 1))),
        "other vocabulary": lambda: OtherVocabulary(OTHERS, OTHER, VOCABULARY, pieces=2),
        "lookup": PromptLookup,
        "aggressive": Aggressive,
        "recycling": Recycling,
        "tri-grams": lambda: TriGrams([PROMPT]),
        "n-grams": lambda: BestFirst(NGrams(), floor=0.0),
        "datastore": lambda: Datastore.of([PROMPT, [1, 1, 1, 3]]),
        "suffixes": lambda: Suffixes([PROMPT, [1, 1, 1, 3]]),
        "lookahead": lambda: Lookahead(2, 3, 2),
        "jacobi": lambda: Lookahead.jacobi(3),
        "guessers": lambda: BestFirst(ForcedBytes(), PromptLookup(), MaskCounts(), NGrams(), Recycling(), floor=0.0),
        "chain": lambda: Model(small, Chain(2)),
        "chain, confidence": lambda: Model(small, Chain(2, Confidence(0.3))),
        "constant branching": lambda: Model(small, Branching((2, 1))),
        "planned": lambda: Model(small, Planned({(): 2, (1,): 2})),
        "optimal tree": lambda: Model(small, OptTree(3), by_rule=True),
        "dynamic": lambda: Model(small, Dynamic(0.3, depth=2)),
        "independent": lambda: Model(small, Independent(2, 2)),
        "model by rule": lambda: Model(small, Branching((2, 2)), by_rule=True),
        "the target itself": lambda: Model(target, Branching((2, 1))),
        "overlapped": lambda: Overlapped(Model(small, Chain(2), by_rule=True)),
        "staged": lambda: Staged(small, PromptLookup(), 3),
        "union": lambda: Union(PromptLookup(1), Model(small, Chain(1))),
        "union of two models": lambda: Union(Model(small, Branching((2,))), Model(target, Chain(1))),
    }


DRAFTS = drafts(TARGET, SMALL)
