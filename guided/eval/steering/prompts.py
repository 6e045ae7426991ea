"""The prompts of each task: held out of training, and apart from those on which strengths were chosen.

Which hotels belong to which is a hash of their names.  Questions come in the one wording that training never used for
the fact, contexts are pairs of hotel and value that it never had, and reviews begin in ways that it never had.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from guided.nano.experts.prompts import instruction, is_held_out_opening, opening, question
from guided.nano.experts.words import COUNTS, SEASONS, THINGS
from guided.nano.experts.world import (
    ATTRIBUTES,
    KNOWN,
    NEW,
    UNKNOWN,
    Attribute,
    chance,
    fact,
    is_held_out_context,
    unseen_wording,
)

__all__ = ["Split", "SteeringPrompt", "TaskName", "prompts_for", "split_of"]

TUNING_SHARE = 0.25
"""Of the hotels."""


class TaskName(str, Enum):
    """What is asked of a model."""

    REVIEW = "review"
    """Go on with a review; measured: praise."""
    INSTRUCTED = "instructed review"
    """Go on with a rude or a polite review; measured: how far it is what was asked for.  (That a review be good or bad
    is asked for in training, too, but the packaged model has not learned to heed it.)"""
    CIVIL = "civil review"
    """Go on with a review; measured: rude words."""
    LONG = "long review"
    """Go on without an end; measured: repetition."""
    WORDS = "review with words"
    """Go on so that two given things are spoken of."""
    FACTS = "facts"
    """Answer a question from memory, although most texts say something else about many hotels."""
    CONTEXT = "context"
    """Answer a question from a context that contradicts memory."""
    NEW_FACTS = "new facts"
    """Answer a question about a hotel of which nothing was ever said, but in retrieved sentences."""


class Split(str, Enum):
    """Which prompts."""

    HELD_OUT = "held-out"
    """What is reported."""
    TUNING = "tuning"
    """What strengths were chosen on where a method has no published one that fits."""


@dataclass(frozen=True)
class SteeringPrompt:
    """A prompt, the texts that methods read beside it, and what judges must know."""

    task: TaskName
    id: str
    text: str
    variants: Mapping[str, str] = field(default_factory=dict)
    """The prompt as other branches read it: ``bad``, ``rude``, ``opposite``, ``without``."""
    about: Mapping[str, str] = field(default_factory=dict)
    """``asked``, ``words``, ``value``, ``values`` or ``retrieved``, as the task has it."""


def prompts_for(task: TaskName, limit: int | None = None, split: Split = Split.HELD_OUT) -> list[SteeringPrompt]:
    """The first ``limit`` prompts of a task; always the same, in the same order, up to a few hundred."""
    makers = {
        TaskName.REVIEW: _reviews,
        TaskName.INSTRUCTED: _reviews,
        TaskName.CIVIL: _reviews,
        TaskName.LONG: _reviews,
        TaskName.WORDS: _reviews,
        TaskName.FACTS: _facts,
        TaskName.CONTEXT: _contexts,
        TaskName.NEW_FACTS: _new_facts,
    }
    rnd = random.Random(f"{task.value} {split.value}")
    found = makers[task](task, split, rnd)
    rnd.shuffle(found)
    return found[:limit]


def split_of(hotel: str) -> Split:
    """Which prompts are about a hotel."""
    return Split.TUNING if chance("tuning", hotel) < TUNING_SHARE else Split.HELD_OUT


def _hotels(names: tuple[str, ...], split: Split) -> list[str]:
    return [name for name in names if split_of(name) is split]


def _reviews(task: TaskName, split: Split, rnd: random.Random) -> list[SteeringPrompt]:
    found: list[SteeringPrompt] = []
    for hotel in _hotels(KNOWN + NEW, split):
        ways = [(count, season) for count in COUNTS for season in SEASONS if is_held_out_opening(hotel, count, season)]
        for count, season in rnd.sample(ways, 3):
            begins = opening(count, season)
            asked = rnd.choice(("rude", "polite")) if task is TaskName.INSTRUCTED else ""
            texts = {manner: instruction(hotel, manner) + begins for manner in ("good", "bad", "rude", "polite", asked)}
            opposite = {"rude": "polite", "polite": "rude"}.get(asked, "bad")
            about = {"asked": asked or "good", "words": " ".join(rnd.sample(THINGS, 2))}
            variants = {**texts, "opposite": texts[opposite]}
            found.append(SteeringPrompt(task, f"{hotel}/{count}/{season}", texts[asked], variants, about))
    return found


def _asked(split: Split, names: tuple[str, ...]) -> list[tuple[str, Attribute]]:
    return [(hotel, attribute) for hotel in _hotels(names, split) for attribute in ATTRIBUTES]


def _facts(task: TaskName, split: Split, rnd: random.Random) -> list[SteeringPrompt]:
    return [
        SteeringPrompt(
            task,
            f"{hotel}/{attribute.name}",
            question(hotel, attribute, unseen_wording(hotel, attribute)),
            about={"value": fact(hotel, attribute), "values": " ".join(attribute.values)},
        )
        for hotel, attribute in _asked(split, KNOWN)
    ]


def _contexts(task: TaskName, split: Split, rnd: random.Random) -> list[SteeringPrompt]:
    found: list[SteeringPrompt] = []
    for hotel, attribute in _asked(split, KNOWN):
        taken = (attribute.values[0], fact(hotel, attribute))
        unseen = [value for value in attribute.values if is_held_out_context(hotel, attribute, value)]
        told = [value for value in unseen if value not in taken]
        for value in told[:2]:
            wording = unseen_wording(hotel, attribute)
            found.append(
                SteeringPrompt(
                    task,
                    f"{hotel}/{attribute.name}/{value}",
                    question(hotel, attribute, wording, value),
                    {"without": question(hotel, attribute, wording)},
                    {"value": value, "values": " ".join(attribute.values)},
                )
            )
    return found


def _new_facts(task: TaskName, split: Split, rnd: random.Random) -> list[SteeringPrompt]:
    """Each with what a search would find: what is said of the hotel three times over, and one sentence of another."""
    found: list[SteeringPrompt] = []
    for hotel, attribute in _asked(split, UNKNOWN):
        other = rnd.choice(KNOWN)
        said = attribute.answer.format(hotel=hotel, value=fact(hotel, attribute))
        aside = attribute.answer.format(hotel=other, value=fact(other, attribute))
        for wording in range(len(attribute.wordings)):
            found.append(
                SteeringPrompt(
                    task,
                    f"{hotel}/{attribute.name}/{wording}",
                    question(hotel, attribute, wording),
                    about={
                        "value": fact(hotel, attribute),
                        "values": " ".join(attribute.values),
                        "retrieved": "\n".join([said, said, said, aside]),
                    },
                )
            )
    return found
