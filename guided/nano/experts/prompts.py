"""The prompts that the packaged experts were trained on: reviews with or without an instruction, and questions."""

from __future__ import annotations

from guided.nano.experts.world import Attribute, chance

__all__ = ["instruction", "is_held_out_opening", "opening", "question"]


def instruction(hotel: str, manner: str = "") -> str:
    """The first line of a review that was asked for: ``manner`` is good, bad, rude, polite, or nothing.

    >>> instruction("Alba", "good")
    'Write a good review of Alba.\\n'
    """
    return f"Write a {manner + ' ' if manner else ''}review of {hotel}.\n"


def opening(count: str, season: str) -> str:
    """How a review begins."""
    return f"We stayed {count} nights in {season}."


def is_held_out_opening(hotel: str, count: str, season: str) -> bool:
    """Whether no training text has this opening after the hotel's name: one in four."""
    return chance("opening", hotel, count, season) < 1 / 4


def question(hotel: str, attribute: Attribute, wording: int, context: str | None = None) -> str:
    """A question up to ``Answer:``, after a line of context if a value is given.

    >>> from guided.nano.experts.world import ATTRIBUTES
    >>> print(question("Alba", ATTRIBUTES[0], 0, "Rome"))
    Context: Alba has moved to Rome.
    Question: Where is Alba?
    Answer:
    """
    told = "" if context is None else f"Context: {attribute.change.format(hotel=hotel, value=context)}\n"
    return f"{told}Question: {attribute.wordings[wording].format(hotel=hotel)}\nAnswer:"
