"""``--search``, ``--must-include`` and ``--must-exclude``: from words to a search of `guided.search`, and its results.

Nothing here imports torch before a model runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from guided.cli.methods.options import ModelOptions, SamplingOptions, searches
from guided.cli.methods.rewards import reward_function
from guided.cli.methods.search_methods import SEARCHES, SearchKind
from guided.cli.methods.words import Words, parse_words, read_value
from guided.cli.progress import kernel_compilation
from guided.errors import GuidedError, LimitError

if TYPE_CHECKING:
    from guided.cli.methods.steered import Steered
    from guided.constraint.constraint import Constraint
    from guided.hf.front.searching import Search
    from guided.search import Hypothesis

__all__ = [
    "FoundTexts",
    "alternatives",
    "check_search",
    "parse_search",
    "search_function",
    "search_text",
]


@dataclass(frozen=True)
class FoundTexts:
    """What a search found for one prompt."""

    text: str
    """The best text."""
    tokens: int
    """Its tokens, the end of the text left out."""
    scores: tuple[tuple[str, float], ...]
    """Each text with its log-probability, best first."""
    passes: int
    rows: int

    def record(self) -> dict[str, Any]:
        """All of it but the text, as JSON data."""
        return {
            "texts": [{"text": text, "score": score} for text, score in self.scores],
            "cost": {"passes": self.passes, "rows": self.rows},
        }


def check_search(sampling: SamplingOptions, running: ModelOptions) -> None:
    """Raise `GuidedError` for options that do not fit together or are misspelt, before anything is loaded."""
    if not searches(sampling):
        return
    given = _asked_by(sampling)
    if sampling.sampler is not None:
        raise GuidedError(
            "a sampler draws texts and a search compares them",
            where=f"--sampler {sampling.sampler.value}",
            remedy=f"Leave out --sampler or {given}.",
        )
    if running.sample or running.temperature:
        raise GuidedError(
            "a search compares texts and draws nothing",
            where="--temperature" if running.temperature else "--sample",
            remedy=f"Leave it out, or {given}.",
        )
    if sampling.search is not None:
        words = parse_search(sampling.search)
        method = SEARCHES[words.name]
        _values(words)
        if sampling.must_include and not method.includes:
            able = [key for key, one in SEARCHES.items() if one.includes]
            raise _cannot(words.name, "--must-include", "place", able)
        if sampling.must_exclude and not method.excludes:
            raise _cannot(
                words.name, "--must-exclude", "exclude", [key for key, one in SEARCHES.items() if one.excludes]
            )
    for phrase in (*(sampling.must_include or ()), *(sampling.must_exclude or ())):
        alternatives(phrase)


def _asked_by(sampling: SamplingOptions) -> str:
    """The options that a search comes from."""
    if sampling.search is not None:
        return "--search"
    given = (("--must-include", sampling.must_include), ("--must-exclude", sampling.must_exclude))
    return " and ".join(option for option, phrases in given if phrases)


def _cannot(name: str, option: str, verb: str, able: Sequence[str]) -> GuidedError:
    return GuidedError(
        f"{name} cannot {verb} phrases",
        where=option,
        remedy=f"Use --search {' or '.join(able)}, or leave --search out.",
    )


def parse_search(specification: str) -> Words:
    """Take a specification apart and check names, without building anything.

    >>> parse_search('best-first:beams=4').settings
    {'beams': ('4',)}
    """
    return parse_words(specification, "--search", "search", {name: each.settings for name, each in SEARCHES.items()})


def search_function(specification: str, decode: Callable[[Sequence[int]], str]) -> Search:
    """The search with its options; ``decode`` makes the texts that rewards read."""
    words = parse_search(specification)
    return SEARCHES[words.name].build(_values(words), decode)


def alternatives(phrase: str) -> list[str]:
    r"""The texts between vertical bars; a backslash keeps the next character.

    Raises `GuidedError` for an empty one.

    >>> alternatives(r"train|rail\|way")
    ['train', 'rail|way']
    """
    found, escaped = [""], False
    for character in phrase:
        if character == "|" and not escaped:
            found.append("")
            continue
        escaped = character == "\\" and not escaped
        if not escaped:
            found[-1] += character
    if not all(found):
        raise GuidedError(
            "a phrase is empty", where=repr(phrase), remedy=r"Write PHRASE or ONE|OTHER, and \| for a bar itself."
        )
    return found


def search_text(
    ready: Steered,
    prompt: Any,
    constraint: Constraint,
    *,
    max_new_tokens: int,
    quiet: bool = False,
) -> FoundTexts:
    """Search the texts for one prompt; raises `LimitError` where none was found."""
    from guided.hf import generate

    sampling = ready.sampling
    search, seed = None, None
    if sampling.search is not None:
        search = search_function(sampling.search, ready.sources.decode)
        seed = ready.running.seed if SEARCHES[parse_search(sampling.search).name].draws else None
    with kernel_compilation(quiet=quiet):
        result: Any = generate(
            ready.model,
            prompt,
            constraint,
            search=search,
            seed=seed,
            tokenizer=ready.loaded.tokenizer,
            max_new_tokens=max_new_tokens,
            must_include=[alternatives(phrase) for phrase in sampling.must_include or ()],
            must_exclude=[alternatives(phrase) for phrase in sampling.must_exclude or ()],
        )
    # Several ways to split a text into tokens are several hypotheses: the best of them stands for it.
    best: dict[str, Hypothesis] = {}
    for each in result.hypotheses:
        if each.text is not None:
            best.setdefault(each.text, each)
    if not best:
        raise LimitError(
            "the search found no text",
            where=_asked_by(sampling),
            remedy="Raise beams=, or ask for fewer phrases: the grammar may have no room for them.",
        )
    first = next(iter(best.values()))
    ends = set(constraint.vocabulary.eos_ids)
    return FoundTexts(
        str(first.text),
        sum(token not in ends for token in first.tokens),
        tuple((text, each.score) for text, each in best.items()),
        result.cost.passes,
        result.cost.rows,
    )


def _values(words: Words) -> dict[str, Any]:
    settings = SEARCHES[words.name].settings
    return {
        key: _value(settings[key].kind, texts[0], f"--search {words.name}:{key}={texts[0]}")
        for key, texts in words.settings.items()
    }


def _value(kind: Enum, text: str, where: str) -> Any:
    if kind is SearchKind.COUNT_OR_NONE and text.lower() == "none":
        return None
    if kind is SearchKind.REWARD:
        return reward_function(text, where)
    return read_value(_READERS[kind], kind, text, where)


def _stopping(text: str) -> str:
    """One of the words of its kind; `Stopping` itself is not loaded to check it."""
    if text not in SearchKind.STOPPING.value.split("|"):
        raise ValueError(text)
    return text


_READERS: dict[Enum, Callable[[str], Any]] = {
    SearchKind.COUNT: int,
    SearchKind.COUNT_OR_NONE: int,
    SearchKind.NUMBER: float,
    SearchKind.STOPPING: _stopping,
}
