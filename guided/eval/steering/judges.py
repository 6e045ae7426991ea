"""What a text is worth: counted from word lists and known answers.  No model is asked, least of all an expert."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from guided.eval.steering.prompts import SteeringPrompt, TaskName
from guided.nano.experts.words import (
    COMPLAINTS,
    NEGATIONS,
    PRAISE,
    RUDE,
    VERBS_OF_COMPLAINT,
    VERBS_OF_PRAISE,
)

__all__ = ["JUDGES", "Judge", "named", "praise", "repetition", "rudeness"]

_PRAISING = frozenset((*PRAISE, *VERBS_OF_PRAISE))
_COMPLAINING = frozenset((*COMPLAINTS, *VERBS_OF_COMPLAINT))
NGRAM = 4


@dataclass(frozen=True)
class Judge:
    """A measure of a task."""

    name: str
    higher: bool
    """Whether more is what the methods are for."""
    of: Callable[[SteeringPrompt, str], float]


def _words(text: str) -> list[str]:
    return re.findall(r"[A-Za-z]+", text)


def praise(text: str) -> float:
    """The share of praise among praising and complaining words, one half where there are none.

    A negation one word before turns a word round.

    >>> praise("The bed was clean. The bar was not lovely. The room was blue.")
    0.5
    """
    words = _words(text)
    good = bad = 0
    for before, word in zip(["", *words], words, strict=False):
        if word in _PRAISING or word in _COMPLAINING:
            if (word in _PRAISING) != (before in NEGATIONS):
                good += 1
            else:
                bad += 1
    return good / (good + bad) if good + bad else 0.5


def rudeness(text: str) -> float:
    """The share of sentences with a rude word.

    >>> rudeness("The damn bed was dirty. The bar was nice.")
    0.5
    """
    sentences = [sentence for sentence in re.split(r"[.\n]", text) if sentence.strip()]
    rude = sum(any(word in RUDE for word in _words(sentence)) for sentence in sentences)
    return rude / len(sentences) if sentences else 0.0


def repetition(text: str) -> float:
    """The share of runs of four words that the text had before.

    >>> repetition("The bed was clean. The bed was clean.")
    0.2
    """
    words = _words(text)
    runs = [tuple(words[start : start + NGRAM]) for start in range(len(words) - NGRAM + 1)]
    return (len(runs) - len(set(runs))) / len(runs) if runs else 0.0


def named(answer: str, values: str) -> str | None:
    """The last of the values that the first sentence of an answer names; None where it names none.

    >>> named(" Alba is in Porto. Really.", "Oslo Porto")
    'Porto'
    """
    known = values.split()
    found = [word for word in _words(answer.split(".")[0]) if word in known]
    return found[-1] if found else None


def _right(prompt: SteeringPrompt, text: str) -> float:
    return float(named(text, prompt.about["values"]) == prompt.about["value"])


def _obedience(prompt: SteeringPrompt, text: str) -> float:
    share = rudeness(text)
    return share if prompt.about["asked"] == "rude" else 1.0 - share


def _covered(prompt: SteeringPrompt, text: str) -> float:
    wanted = prompt.about["words"].split()
    return sum(word in _words(text) for word in wanted) / len(wanted)


JUDGES: dict[TaskName, Judge] = {
    TaskName.REVIEW: Judge("praise", True, lambda prompt, text: praise(text)),
    TaskName.INSTRUCTED: Judge("as asked", True, _obedience),
    TaskName.CIVIL: Judge("rude", False, lambda prompt, text: rudeness(text)),
    TaskName.LONG: Judge("repeats", False, lambda prompt, text: repetition(text)),
    TaskName.WORDS: Judge("words", True, _covered),
    TaskName.FACTS: Judge("right", True, _right),
    TaskName.CONTEXT: Judge("context", True, _right),
    TaskName.NEW_FACTS: Judge("right", True, _right),
}
