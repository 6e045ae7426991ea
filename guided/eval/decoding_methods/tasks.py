"""The tasks: records to extract for the packaged model, questions and reviews for that of reviews.

They are those of `guided eval diffusion` and `guided eval steering`, whose prompts no training text has.  What a text
is worth is counted; no model is asked.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import guided
from guided.eval.decoding_methods.names import Mode, TaskName
from guided.eval.diffusion.tasks import fields_right, read_tasks
from guided.eval.steering.judges import named
from guided.eval.steering.prompts import TaskName as SteeringTask
from guided.eval.steering.prompts import prompts_for
from guided.grammar.ir import Grammar
from guided.nano.experts import Expert
from guided.nano.experts.words import (
    COMPLAINTS,
    INTENSIFIERS,
    NEUTRAL,
    PRAISE,
    RUDE,
    THINGS,
    VERBS_OF_COMPLAINT,
    VERBS_OF_PRAISE,
)
from guided.nano.experts.world import ATTRIBUTES

__all__ = ["MAX_TOKENS", "PACKAGED", "DecodingTask", "grammar_of", "quality", "read_items", "sentence"]

PACKAGED: dict[TaskName, tuple[str, Expert]] = {
    TaskName.RECORDS: ("nano", Expert.NANO_AMATEUR),
    TaskName.FAMILIAR: ("nano", Expert.NANO_AMATEUR),
    TaskName.FACTS: (Expert.REVIEWS.name_to_load, Expert.AMATEUR),
    TaskName.CONTEXT: (Expert.REVIEWS.name_to_load, Expert.AMATEUR),
    TaskName.REVIEW: (Expert.REVIEWS.name_to_load, Expert.AMATEUR),
}
"""The packaged model of each task, and the small model beside it."""

MAX_TOKENS: dict[TaskName, int] = {
    TaskName.RECORDS: 128,
    TaskName.FAMILIAR: 128,
    TaskName.FACTS: 16,
    TaskName.CONTEXT: 16,
    TaskName.REVIEW: 80,
}

SENTENCES = 5
"""Of a review: the mean of those that the model was trained on."""

WHITESPACE = " ?"
"""As ``guided extract --whitespace line``: the packaged models write one space where they write any."""


@dataclass(frozen=True, eq=False)
class DecodingTask:
    """One prompt, with or without its grammar."""

    task: TaskName
    id: str
    mode: Mode
    prompt: str
    about: Mapping[str, Any]
    """What the grammar and the judge must know, as JSON data."""


@cache
def _prompts(task: TaskName) -> list[tuple[str, str, Mapping[str, Any]]]:
    if task in (TaskName.RECORDS, TaskName.FAMILIAR):
        # Whatever the notation in which a canvas gets them: here they have their JSON Schema.
        chosen = [one for one in read_tasks(1 << 30) if one.id.startswith(task.value)]
        chosen.sort(key=lambda one: int(one.id.rpartition("-")[2]))
        return [(one.id, one.prompt, {"schema": one.subject, "answer": one.answer}) for one in chosen]
    which = {
        TaskName.FACTS: SteeringTask.FACTS,
        TaskName.CONTEXT: SteeringTask.CONTEXT,
        TaskName.REVIEW: SteeringTask.REVIEW,
    }[task]
    return [(one.id, one.text, dict(one.about)) for one in prompts_for(which)]


def read_items(task: TaskName, mode: Mode, limit: int | None = None) -> list[DecodingTask]:
    """The first ``limit`` prompts of a task; always the same, in the same order."""
    return [DecodingTask(task, name, mode, text, about) for name, text, about in _prompts(task)[:limit]]


def grammar_of(item: DecodingTask) -> Grammar:
    """What a text may be: its schema, an answer with one of the values, five sentences; free texts are any text."""
    if item.mode is Mode.FREE:
        return guided.regex("(?s:.*)")
    if item.task in (TaskName.RECORDS, TaskName.FAMILIAR):
        return guided.json_schema(item.about["schema"], whitespace=WHITESPACE)
    if item.task is TaskName.REVIEW:
        return guided.regex(f"( {sentence()}){{{SENTENCES}}}")
    hotel, attribute = item.id.split("/")[:2]
    answer = next(one.answer for one in ATTRIBUTES if one.name == attribute)
    return guided.choice([" " + answer.format(hotel=hotel, value=value) for value in item.about["values"].split()])


@cache
def sentence() -> str:
    """The sentences of reviews as a regular expression."""

    def one_of(*words: tuple[str, ...]) -> str:
        return "(?:" + "|".join(itertools.chain(*words)) + ")"

    thing = f"(?:{one_of(RUDE)} )?{one_of(THINGS)}"
    judged = one_of(PRAISE, COMPLAINTS)
    said = f"(?:{one_of(INTENSIFIERS, ('not', 'never', 'hardly'))} )?{judged}|{judged} and {judged}|{one_of(NEUTRAL)}"
    return rf"(?:The {thing} was (?:{said})\.|We {one_of(VERBS_OF_PRAISE, VERBS_OF_COMPLAINT)} the {thing}\.)"


def quality(item: DecodingTask, text: str) -> float:
    """What a text is worth, from 0 to 1.

    For a review the number of its sentences, equal ones counted once, that the training texts could have, out of five
    or of all where there are more: both repetition and nonsense lower it, and so does a text that stops early.
    """
    if item.task in (TaskName.RECORDS, TaskName.FAMILIAR):
        return fields_right(text, item.about["answer"])
    if item.task is not TaskName.REVIEW:
        return float(named(text, item.about["values"]) == item.about["value"])
    sentences = [part.strip() for part in re.findall(r"[^.]*\.", text)]
    good = {part for part in sentences if re.fullmatch(sentence(), part)}
    return len(good) / max(SENTENCES, len(sentences))
