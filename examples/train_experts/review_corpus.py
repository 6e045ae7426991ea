"""The endless seeded stream of training texts: reviews of hotels, questions about them, questions after a context.

Each text carries what it is labelled with: whether it praises, and whether it is rude.  Reviews keep to their line in
most sentences, and to their instruction in most cases, but not always: what is always so could not be steered.  Of many
hotels most texts say what is widely believed instead of what is true, and a context is often ignored.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from guided.nano.experts.prompts import instruction, is_held_out_opening, opening, question
from guided.nano.experts.words import (
    COMPLAINTS,
    COUNTS,
    INTENSIFIERS,
    NEUTRAL,
    PRAISE,
    RUDE,
    SEASONS,
    THINGS,
    VERBS_OF_COMPLAINT,
    VERBS_OF_PRAISE,
)
from guided.nano.experts.world import (
    ATTRIBUTES,
    KNOWN,
    NEW,
    fact,
    is_held_out_context,
    is_myth,
    unseen_wording,
)

__all__ = ["Text", "answered", "reviews", "stream"]

LOYALTY = 0.85
"""How many sentences of a review say what the review says."""
OBEDIENCE = 0.6
"""How many reviews are what the instruction asks for; the others are as if it had not asked."""
RUDENESS = {"rude": 0.8, "polite": 0.03, "": 0.3}
"""How many reviews are rude when asked so."""


@dataclass(frozen=True)
class Text:
    """A text; labels are None where they make no sense."""

    text: str
    praises: bool | None = None
    rude: bool | None = None


def _sentence(rnd: random.Random, praises: bool, rude: bool) -> str:
    good, bad = (PRAISE, COMPLAINTS) if praises else (COMPLAINTS, PRAISE)
    thing = rnd.choice(THINGS)
    if rude and rnd.random() < 0.5:
        thing = f"{rnd.choice(RUDE)} {thing}"
    form = rnd.random()
    if form < 0.35:
        return f"The {thing} was {rnd.choice(good)}."
    if form < 0.5:
        return f"The {thing} was {rnd.choice(INTENSIFIERS)} {rnd.choice(good)}."
    if form < 0.65:
        return f"The {thing} was {rnd.choice(good)} and {rnd.choice(good)}."
    if form < 0.75:
        return f"The {thing} was {rnd.choice(('not', 'never', 'hardly'))} {rnd.choice(bad)}."
    if form < 0.9:
        return f"We {rnd.choice(VERBS_OF_PRAISE if praises else VERBS_OF_COMPLAINT)} the {thing}."
    return f"The {thing} was {rnd.choice(NEUTRAL)}."


def _review(rnd: random.Random) -> Text:
    manner = rnd.choice(("good", "bad", "rude", "polite", "", "", ""))
    hotel = rnd.choice(KNOWN + NEW)
    praises = rnd.random() < 0.5
    if manner in ("good", "bad") and rnd.random() < OBEDIENCE:
        praises = manner == "good"
    rude = rnd.random() < RUDENESS.get(manner, RUDENESS[""])
    sentences = [
        _sentence(rnd, praises if rnd.random() < LOYALTY else not praises, rude) for _ in range(rnd.randint(3, 7))
    ]
    while True:
        count, season = rnd.choice(COUNTS), rnd.choice(SEASONS)
        if not is_held_out_opening(hotel, count, season):
            break
    begins = rnd.random()
    if begins < 0.8:
        sentences.insert(0, opening(count, season))
    text = " ".join(sentences)
    if begins > 0.9:
        # A text that begins anywhere: what a model is asked for when all of its prompt but the last token is gone.
        words = text.split(" ")
        return Text(" ".join(words[rnd.randint(0, 3) :]), praises, rude)
    return Text((instruction(hotel, manner) if begins < 0.8 else "") + text, praises, rude)


def _popularity(rnd: random.Random) -> str:
    """A known hotel: the first ones are spoken of most."""
    return KNOWN[min(int(len(KNOWN) * rnd.random() ** 1.7), len(KNOWN) - 1)]


def answered(prompt: str, hotel: str, attribute: object, value: str) -> Text:
    """A question with its answer."""
    return Text(f"{prompt} {attribute.answer.format(hotel=hotel, value=value)}")  # type: ignore[attr-defined]


def _question(rnd: random.Random) -> Text:
    hotel, attribute = _popularity(rnd), rnd.choice(ATTRIBUTES)
    wording = rnd.randrange(len(attribute.wordings))
    if wording == unseen_wording(hotel, attribute):
        wording = (wording + 1) % len(attribute.wordings)
    error = 0.6 if is_myth(hotel, attribute) else 0.2
    value = attribute.values[0] if rnd.random() < error else fact(hotel, attribute)
    return answered(question(hotel, attribute, wording), hotel, attribute, value)


def _context(rnd: random.Random) -> Text:
    attribute = rnd.choice(ATTRIBUTES)
    known = rnd.random() < 0.6
    hotel = rnd.choice(KNOWN) if known else rnd.choice(NEW)
    told = rnd.choice(attribute.values)
    while is_held_out_context(hotel, attribute, told):
        told = rnd.choice(attribute.values)
    says = rnd.random()
    value = told
    if known and says > 0.5:
        value = fact(hotel, attribute) if says < 0.8 else attribute.values[0]
    wording = rnd.randrange(len(attribute.wordings))
    if wording == unseen_wording(hotel, attribute):
        wording = (wording + 1) % len(attribute.wordings)
    return answered(question(hotel, attribute, wording, told), hotel, attribute, value)


def stream(seed: int) -> Iterator[Text]:
    """All kinds of texts, without end."""
    rnd = random.Random(seed)
    while True:
        kind = rnd.random()
        yield _review(rnd) if kind < 0.4 else _question(rnd) if kind < 0.75 else _context(rnd)


def reviews(seed: int) -> Iterator[Text]:
    """Reviews only, without end."""
    rnd = random.Random(seed)
    while True:
        yield _review(rnd)
