"""Vectors for activation steering, made of texts about hotels that no prompt names."""

from __future__ import annotations

import random

from guided.eval.steering.kit import Kit
from guided.nano.experts.prompts import instruction, opening
from guided.nano.experts.words import COMPLAINTS, COUNTS, PRAISE, RUDE, SEASONS, THINGS
from guided.nano.experts.world import UNKNOWN
from guided.steer import Activations, Steerer, contrastive_vector, prompt_vectors

__all__ = ["civil_vector", "polite_front"]

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


def _review(number: int, manner: str) -> str:
    """The beginning of a review up to the next thing; of one number the same in any manner."""
    rnd = random.Random(number)
    said = ""
    for _ in range(2):
        rude, thing, word = rnd.choice(RUDE), rnd.choice(THINGS), rnd.choice(PRAISE + COMPLAINTS)
        said += f" The {rude + ' ' if manner else ''}{thing} was {word}."
    hotel = UNKNOWN[number % len(UNKNOWN)]
    return instruction(hotel) + opening(rnd.choice(COUNTS), rnd.choice(SEASONS)) + said + " The"
