"""What is fitted before it steers, to made-up texts about hotels that no prompt names: vectors, and a deferral."""

from __future__ import annotations

import random

from guided.eval.steering.kit import Kit
from guided.nano.experts import Expert
from guided.nano.experts.prompts import instruction, opening
from guided.nano.experts.words import COMPLAINTS, COUNTS, PRAISE, RUDE, SEASONS, THINGS
from guided.nano.experts.world import UNKNOWN
from guided.steer import Activations, Deferral, Steerer, contrastive_vector, prompt_vectors, train_deferral

__all__ = ["civil_vector", "polite_front", "praise_deferral"]

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


def _review(number: int, manner: str, words: tuple[str, ...] = PRAISE + COMPLAINTS) -> str:
    """The beginning of a review up to the next thing; of one number the same in any manner."""
    rnd = random.Random(number)
    said = ""
    for _ in range(2):
        rude, thing, word = rnd.choice(RUDE), rnd.choice(THINGS), rnd.choice(words)
        said += f" The {rude + ' ' if manner else ''}{thing} was {word}."
    hotel = UNKNOWN[number % len(UNKNOWN)]
    return instruction(hotel) + opening(rnd.choice(COUNTS), rnd.choice(SEASONS)) + said + " The"
