"""What is behind ``guided.generate(..., search=)``: prompts and phrases in words, a grammar, and a search.

A search is a function of `guided.search` (`beam_search`, `best_first_beam_search`, `diverse_beam_search`,
`grid_beam_search`, `dynamic_beam_search`, `neurologic_search`, `lattice_search`, `deal_search`, `block_search`), or a
partial of one that fixes its options.  Nothing here compares anything.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, UnsupportedError
from guided.hf.encoding import Conversation
from guided.hf.questions import Questions, checked_options, name_of, read_questions
from guided.search import (
    Clause,
    DiverseFound,
    Found,
    LatticeFound,
    Literal,
    PhraseConstraint,
    TextPhrase,
    dynamic_beam_search,
    neurologic_search,
)
from guided.steer import Steering
from guided.vocab import Vocabulary

__all__ = ["Phrase", "Search", "Searched", "search_texts"]

Searched: TypeAlias = "Found | DiverseFound | LatticeFound"
"""What searches return; all have ``hypotheses``, best first, and a ``cost``."""

Search: TypeAlias = "Callable[..., Searched]"
"""``search(model, prompt, constraint, *, max_tokens, ...)``; those that place phrases take ``phrases`` or
``clauses``."""

Phrase: TypeAlias = "str | Sequence[str] | PhraseConstraint"
"""A text, several of which one suffices, or token ids as a `PhraseConstraint`."""


def search_texts(
    model: Any,
    prompt: str | Conversation | Sequence[int] | Sequence[str] | Sequence[Conversation] | Sequence[Sequence[int]],
    grammar: Any,
    search: Search | None,
    *,
    tokenizer: Any = None,
    n: int | None = None,
    seed: Any = None,
    steer: Steering | None = None,
    max_new_tokens: int = 256,
    chat: bool = False,
    canonical: bool = False,
    must_include: str | Sequence[Phrase] = (),
    must_exclude: str | Sequence[Phrase] = (),
    **options: Any,
) -> Searched | list[Searched]:
    """As `guided.hf.generate.generate` with a search, which documents the arguments; a list for a list of prompts.

    ``model`` may also be any `LanguageModel`, and prompts token ids.  Without a ``search``, phrases are placed by
    `dynamic_beam_search`, and by `neurologic_search` where some are excluded.
    """
    if search is None:
        search = neurologic_search if _listed(must_exclude) else dynamic_beam_search
    if not callable(search):
        raise TypeError(f"search is {search!r}: pass a function of guided.search, such as guided.search.beam_search")
    draws = "seed" in inspect.signature(search).parameters
    if seed is not None and not draws:
        raise UnsupportedError(f"{name_of(search)} draws nothing", where="seed", remedy="Leave out the seed.")
    # Prompts of one call must not all draw the same numbers.
    rng = np.random.default_rng(seed) if seed is not None else None
    asked = read_questions(
        model,
        prompt,
        grammar,
        tokenizer=tokenizer,
        steer=steer,
        max_new_tokens=max_new_tokens,
        chat=chat,
        canonical=canonical,
        options=options,
    )
    results: list[Searched] = []
    for question in asked.each:
        if not isinstance(question.goal, Constrains):
            raise UnsupportedError(
                f"a search needs a grammar, and {type(question.goal).__name__} is none",
                remedy="Use a sampler of guided.infer for potentials.",
            )
        wanted = {**asked.options, "max_tokens": max_new_tokens}
        if n is not None:
            wanted["n_best"] = n
        if rng is not None:
            wanted["seed"] = rng
        vocabulary = question.goal.vocabulary
        included = _phrases(must_include, vocabulary, asked)
        excluded = _phrases(must_exclude, vocabulary, asked)
        wanted |= _placed(search, included, excluded, wanted)
        results.append(search(asked.model, question.ids, question.goal, **checked_options(search, wanted)))
    return results[0] if asked.single else results


def _listed(given: str | Sequence[Phrase]) -> list[Phrase]:
    """Phrases as a list: one text alone is one phrase."""
    return [given] if isinstance(given, (str, PhraseConstraint)) else list(given)


def _phrases(given: str | Sequence[Phrase], vocabulary: Vocabulary, asked: Questions) -> list[PhraseConstraint]:
    found: list[PhraseConstraint] = []
    for phrase in _listed(given):
        if isinstance(phrase, PhraseConstraint):
            found.append(phrase)
            continue
        if asked.tokenizer is None or isinstance(asked.tokenizer, Vocabulary):
            raise GuidedError(
                "a phrase in words needs a tokenizer",
                remedy="Pass PhraseConstraint.of(token ids), or the model's tokenizer.",
            )
        texts = [phrase] if isinstance(phrase, str) else list(phrase)
        found.append(TextPhrase.written(vocabulary, partial(_encoded, asked.tokenizer), *texts))
    return found


def _encoded(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def _placed(
    search: Search,
    included: Sequence[PhraseConstraint],
    excluded: Sequence[PhraseConstraint],
    wanted: Mapping[str, Any],
) -> dict[str, Any]:
    """The options through which a search learns of phrases, besides those that are bound or given already."""
    parameters = inspect.signature(search).parameters
    bound = dict(getattr(search, "keywords", {}))
    if "clauses" in parameters:
        clauses = [
            *(Clause.of(Literal(phrase)) for phrase in included),
            *(Clause.of(Literal(phrase, positive=False)) for phrase in excluded),
        ]
        return {"clauses": [*wanted.get("clauses", bound.get("clauses", ())), *clauses]}
    if excluded:
        raise UnsupportedError(f"{name_of(search)} excludes no phrases", remedy="Use guided.search.neurologic_search.")
    if "phrases" in parameters:
        phrases = [*wanted.get("phrases", bound.get("phrases", ())), *included]
        placed: dict[str, Any] = {"phrases": phrases}
        if getattr(search, "func", search) is dynamic_beam_search and not {"width"} & {*bound, *wanted}:
            # Below the number of phrase tokens and one, some number of them has no place in the beam.
            placed["width"] = max(4, 2 * (1 + sum(phrase.automaton.length for phrase in phrases)))
        return placed
    if included:
        raise UnsupportedError(
            f"{name_of(search)} places no phrases",
            remedy="Use guided.search.dynamic_beam_search, grid_beam_search or neurologic_search.",
        )
    return {}
