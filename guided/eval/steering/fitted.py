"""What is fitted before it steers, to made-up texts about hotels that no prompt names: vectors, and a deferral."""

from __future__ import annotations

import random
from collections.abc import Sequence

from guided.eval.steering.kit import Kit
from guided.eval.steering.prompts import Split, SteeringPrompt, split_of
from guided.nano.experts import Expert
from guided.nano.experts.prompts import instruction, opening, question
from guided.nano.experts.words import COMPLAINTS, COUNTS, PRAISE, RUDE, SEASONS, THINGS
from guided.nano.experts.world import ATTRIBUTES, KNOWN, UNKNOWN, fact, unseen_wording
from guided.steer import (
    Activations,
    ContextAdaptive,
    Deferral,
    ReferenceSpace,
    Steerer,
    contrastive_vector,
    prompt_vectors,
    train_deferral,
)

__all__ = ["civil_vector", "polite_front", "praise_deferral", "truthful_space"]

TEXTS = 3 * len(UNKNOWN)


def civil_vector(kit: Kit) -> Steerer:
    """Contrastive activation addition: reviews in civil words less the same reviews in rude ones, before a thing."""
    pairs = [_review(n, "") for n in range(TEXTS)], [_review(n, "rude") for n in range(TEXTS)]
    civil, rude = ([kit.ids(text) for text in texts] for texts in pairs)
    return Activations((contrastive_vector(kit.base, civil, rude, block=kit.base.can.blocks // 2),))


def polite_front(kit: Kit, strength: float) -> Steerer:
    """Activation addition: one instruction less the other, on the first tokens of the prompt."""
    wanted, unwanted = (kit.plain_ids(f"Write a {manner} review") for manner in ("polite", "rude"))
    padding = kit.plain_ids(" ")[0]
    return Activations((prompt_vectors(kit.base, wanted, unwanted, block=0, strength=strength, padding=padding),))


def praise_deferral(kit: Kit) -> Steerer:
    """The praising expert where a gate says so that was fitted to praising reviews."""
    texts = [kit.ids(_review(n, "", PRAISE)) for n in range(TEXTS)]
    prompts = [len(kit.ids(instruction(UNKNOWN[n % len(UNKNOWN)]))) for n in range(TEXTS)]
    other = kit.expert(Expert.POSITIVE)
    return Deferral(other, train_deferral(kit.base, other, texts, prompt_lengths=prompts, steps=200))


def truthful_space(kit: Kit, prompts: Sequence[SteeringPrompt], weight: float, top_n: int) -> Steerer:
    """What the model says in true answers about the hotels of the other prompts, tuning ones or held-out ones."""
    tuning = Split.TUNING in {split_of(prompt.id.split("/")[0]) for prompt in prompts}
    texts, lengths = [], []
    for hotel in KNOWN:
        if (split_of(hotel) is Split.TUNING) == tuning:
            continue
        for attribute in ATTRIBUTES:
            asked = question(hotel, attribute, unseen_wording(hotel, attribute))
            said = attribute.answer.format(hotel=hotel, value=fact(hotel, attribute))
            texts.append(kit.ids(f"{asked} {said}"))
            lengths.append(len(kit.ids(asked)))
    return ContextAdaptive(ReferenceSpace.of(kit.base, texts, prompt_lengths=lengths), weight, top_n)


def _review(number: int, manner: str, words: tuple[str, ...] = PRAISE + COMPLAINTS) -> str:
    """The beginning of a review up to the next thing; of one number the same in any manner."""
    rnd = random.Random(number)
    said = ""
    for _ in range(2):
        rude, thing, word = rnd.choice(RUDE), rnd.choice(THINGS), rnd.choice(words)
        said += f" The {rude + ' ' if manner else ''}{thing} was {word}."
    hotel = UNKNOWN[number % len(UNKNOWN)]
    return instruction(hotel) + opening(rnd.choice(COUNTS), rnd.choice(SEASONS)) + said + " The"
