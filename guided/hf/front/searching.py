"""The runner by a search of `guided.search`: what is behind ``guided.generate(..., search=)``, phrases included.

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
from guided.hf.front.request import Prompt, Request, checked_options, name_of, truncated
from guided.search import (
    Clause,
    DiverseFound,
    Found,
    LatticeFound,
    Literal,
    PhraseConstraint,
    TextPhrase,
    beam_search,
    beam_search_each,
    dynamic_beam_search,
    neurologic_search,
)
from guided.vocab import Vocabulary

__all__ = ["Phrase", "Search", "Searched", "run_searches"]

Searched: TypeAlias = "Found | DiverseFound | LatticeFound"
"""What searches return; all have ``hypotheses``, best first, and a ``cost``."""

Search: TypeAlias = "Callable[..., Searched]"
"""``search(model, prompt, constraint, *, max_tokens, ...)``; those that place phrases take ``phrases`` or
``clauses``."""

Phrase: TypeAlias = "str | Sequence[str] | PhraseConstraint"
"""A text, several of which one suffices, or token ids as a `PhraseConstraint`."""


def run_searches(
    request: Request,
    search: Search | None,
    must_include: str | Sequence[Phrase] = (),
    must_exclude: str | Sequence[Phrase] = (),
) -> list[Searched]:
    """What the search returns for each prompt, in order.

    Without a ``search``, phrases are placed by `dynamic_beam_search`, and by `neurologic_search` where some are
    excluded.  Raises `TypeError` for what is no search, `UnsupportedError` for a seed, and for a goal that is no
    grammar.
    """
    if search is None:
        search = neurologic_search if _listed(must_exclude) else dynamic_beam_search
    if not callable(search):
        raise TypeError(f"search is {search!r}: pass a function of guided.search, such as guided.search.beam_search")
    if request.seed is not None and "seed" not in inspect.signature(search).parameters:
        raise UnsupportedError(f"{name_of(search)} draws nothing", where="seed", remedy="Leave out the seed.")
    model, options = truncated(request)
    options["max_tokens"] = request.max_new_tokens
    if request.n is not None:
        options["n_best"] = request.n
    if request.seed is not None:
        # Prompts of one call must not all draw the same numbers.
        options["seed"] = np.random.default_rng(request.seed)
    calls: list[tuple[Prompt, Constrains, dict[str, Any]]] = []
    for prompt in request.prompts:
        if not isinstance(prompt.goal, Constrains):
            raise UnsupportedError(
                f"a search needs a grammar, and {type(prompt.goal).__name__} is none",
                remedy="Use a sampler of guided.infer for potentials.",
            )
        included = _phrases(must_include, prompt.goal.vocabulary, request.tokenizer)
        excluded = _phrases(must_exclude, prompt.goal.vocabulary, request.tokenizer)
        wanted = options | _placed(search, included, excluded, options)
        calls.append((prompt, prompt.goal, checked_options(search, wanted)))
    if search is beam_search and len(calls) > 1:
        together = beam_search_each(
            model, [prompt.ids for prompt, _, _ in calls], [goal for _, goal, _ in calls], **calls[0][2]
        )
        return list(together)
    return [search(model, prompt.ids, goal, **wanted) for prompt, goal, wanted in calls]


def _listed(given: str | Sequence[Phrase]) -> list[Phrase]:
    """Phrases as a list: one text alone is one phrase."""
    return [given] if isinstance(given, (str, PhraseConstraint)) else list(given)


def _phrases(given: str | Sequence[Phrase], vocabulary: Vocabulary, tokenizer: Any) -> list[PhraseConstraint]:
    found: list[PhraseConstraint] = []
    for phrase in _listed(given):
        if isinstance(phrase, PhraseConstraint):
            found.append(phrase)
            continue
        if tokenizer is None or isinstance(tokenizer, Vocabulary):
            raise GuidedError(
                "a phrase in words needs a tokenizer",
                remedy="Pass PhraseConstraint.of(token ids), or the model's tokenizer.",
            )
        texts = [phrase] if isinstance(phrase, str) else list(phrase)
        found.append(TextPhrase.written(vocabulary, partial(_encoded, tokenizer), *texts))
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
