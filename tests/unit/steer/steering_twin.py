"""Random models, one of each steerer, and the slow twin: each position computed alone, from fresh models."""

from __future__ import annotations

import numpy as np
import torch

from guided.lm import NOTHING, TableModel
from guided.steer import (
    ARGS,
    ARM,
    FSD,
    FUDGE,
    GRAD,
    RAD,
    Bucket,
    ClassifierFree,
    ContextAdaptive,
    ContextAware,
    Contrastive,
    ContrastiveSearch,
    ControlledDecoding,
    DeCoRe,
    Deferral,
    DExperts,
    Divergence,
    DoLa,
    DomainMixture,
    DynamicFocus,
    FSDVectors,
    Instructive,
    KnowledgeInfused,
    KnowledgeTrie,
    LayersOverLayers,
    Mixture,
    ModelReward,
    Momentum,
    Nudging,
    PrefixAdaptive,
    Prefixed,
    Product,
    ProxyTuning,
    ReferenceSpace,
    Replaced,
    Seen,
    SelfDebiasing,
    TextReward,
    TransitionGraph,
    Without,
)
from guided.steer.formulas.combining import candidates

WIDTH = 6
BLOCKS = 4


def numbers(seed: int, width: int = WIDTH, scale: float = 1.5):
    return lambda tokens: scale * np.random.default_rng([seed, width, *tokens]).standard_normal(width)


def random_model(seed: int, *, width: int = WIDTH, trees: bool = True, offset: int | None = None) -> TableModel:
    """A table model with layers, hidden states and heads, all of them random functions of the prefix.

    ``offset`` seeds a number for each prefix that is added to all its logits, which says nothing.
    """

    def logits(own: int):
        scores = numbers(own, width)
        if offset is None:
            return scores
        shift = numbers(own + offset, 1, 40.0)
        return lambda tokens: scores(tokens) + shift(tokens)

    model = TableModel(
        logits(seed),
        width=width,
        eos_ids=[width - 1],
        layers=[logits(1000 * seed + block) for block in range(BLOCKS)],
        hidden=numbers(1000 * seed + 500, 5, 1.0),
        masked=lambda tokens, heads: logits(1000 * seed + 600 + len(heads))(tokens),
    )
    if not trees:
        model.can = type(model.can)(**{**vars(model.can), "tree": False})
    return model


def text_of(tokens) -> str:
    return "".join("abcdefghij"[token] for token in tokens)


def vowels(texts):
    """A reward between 0 and 1 that depends on the whole text."""
    return [(sum(text.count(vowel) for vowel in "ae") + len(text) % 3) / (len(text) + 3) for text in texts]


BASE, AMATEUR, OTHER = random_model(1), random_model(2), random_model(3)
REWARD = TextReward(vowels, text_of)
HEAD = ModelReward(lambda hidden: torch.sigmoid(hidden.sum(-1)), AMATEUR)
OWN_HEAD = ModelReward(lambda hidden: torch.tanh(hidden[:, 0]), None, Prefixed((2,)))
FORKING_HEAD = ModelReward(lambda hidden: torch.sigmoid(hidden.sum(-1)), random_model(4, trees=False))


def steerers_with(base, amateur, other):
    """One of each steerer and more, with these models, to steer the first of them."""
    return {
        "contrastive": Contrastive(amateur),
        "contrastive-2022": Contrastive(amateur, beta=None),
        "dexperts": DExperts(amateur, other),
        "proxy": ProxyTuning(amateur, other),
        "mixture": Mixture((amateur, other), (0.5, 0.3, 0.2)),
        "product": Product((amateur, other)),
        "arm": ARM(amateur, top_k=4),
        "nudging": Nudging(amateur, 0.45),
        "deferral": Deferral(amateur, lambda hidden: hidden.sum(-1)),
        "deferral-soft": Deferral(amateur, lambda hidden: hidden[:, 0], threshold=None),
        "domains": DomainMixture((amateur, other), (0.5, 0.3, 0.2)),
        "domains-without": DomainMixture((amateur, other), (0.0, 0.5, 0.5)),
        "context": ContextAware(Without((1, 2))),
        "cfg": ClassifierFree(),
        "negative": ClassifierFree(2.0, Replaced((3, 3))),
        "instructive": Instructive(Prefixed((3, 1))),
        "preadd": PrefixAdaptive(Prefixed((2, 4)), alpha=-1.5),
        "debias": SelfDebiasing((Prefixed((1,)), Prefixed((2,)))),
        "dola": DoLa(),
        "dola-low": DoLa(Bucket.LOW, divergence=Divergence.JENSEN_SHANNON),
        "dola-layers": DoLa((0, -2), final_norm=True),
        "lol": LayersOverLayers(amateur, 2, truth=0.5, truthful=Prefixed((4,))),
        "decore": DeCoRe(((0, 1), (2, 0)), cap=1.5),
        "decore-prompt": DeCoRe(((0, 1),), masked_prompt=True),
        "focus": DynamicFocus(sigma=4.0),
        "rad": RAD(REWARD, top_k=4),
        "rad-model": RAD(ModelReward(HEAD.head, amateur), top_k=4),
        "rad-forking": RAD(FORKING_HEAD, top_k=4),
        "args": ARGS(REWARD),
        "fudge": FUDGE(
            TextReward(lambda texts: [value - 2 for value in vowels(texts)], text_of, prompt=False), top_k=5
        ),
        "controlled": ControlledDecoding(OWN_HEAD, top_k=5),
        "momentum": Momentum(),
        "search": ContrastiveSearch(),
        "fsd": FSD(n=2),
        "fsd-vectors": FSDVectors(n=3),
        "caad": ContextAdaptive(ReferenceSpace.of(base, [(1, 2, 3, 1, 4), (0, 0, 2)]), 0.8, 3),
        "kid": KnowledgeInfused(KnowledgeTrie([[(1,), (2, 3)], [(2,), (0,), (4, 1)]]), hops=2),
        "grad": GRAD(TransitionGraph.of(base, [(1, 2, 3, 1, 2, 4), (0, 0, 5)])),
    }


STEERERS = steerers_with(BASE, AMATEUR, OTHER)


def asked(model, prompt, tokens, needs=NOTHING):
    """What a model says after a prompt and tokens, asked with nothing but that."""
    sequences = model.start([prompt], needs)
    for token in tokens:
        sequences.extend([[token]])
    return sequences.last


def alone(steerers, base, prompt, tokens) -> torch.Tensor:
    """The steered logits ``[V]`` after ``prompt + tokens``, one position by itself."""
    prompt, tokens = tuple(prompt), tuple(tokens)
    logits = asked(base, prompt, tokens).logits
    for steerer in steerers:
        declared = steerer.declare(base)
        branches = tuple(
            asked(branch.model or base, tuple(branch.prompt(prompt)), tokens, branch.needs)
            for branch in declared.branches
        )
        ids = rewards = ahead = None
        history = ()
        wanted = declared.candidates
        if wanted is not None:
            ids = candidates(logits, wanted.k)
            if wanted.reward is not None:
                whole = (prompt if wanted.reward.prompt else ()) + tokens
                found = [wanted.reward.of([(*whole, token)])[0] for token in ids[0].tolist()]
                rewards = torch.tensor([found], dtype=logits.dtype)
            if wanted.watched is not None:
                model = wanted.watched.model or base
                own = tuple(wanted.watched.prompt(prompt)) + tokens
                if wanted.ahead is not None:
                    ahead = torch.tensor(np.array([[model.hidden((*own, token)) for token in ids[0].tolist()]]))
                if wanted.history or wanted.ahead is None:
                    history = (torch.tensor(np.array([model.hidden(own[: n + 1]) for n in range(len(own))])),)
        seen = Seen(branches, ids, rewards, ahead, history, (prompt + tokens,), (len(prompt),))
        logits = steerer.steer(logits, seen)
    return logits[0]


def agree(ours: torch.Tensor, theirs: torch.Tensor, tolerance: float = 1e-9) -> None:
    """Two rows of logits are one distribution."""
    assert not torch.isnan(ours).any()
    np.testing.assert_allclose(
        torch.softmax(ours.double(), -1).numpy(), torch.softmax(theirs.double(), -1).numpy(), atol=tolerance
    )
