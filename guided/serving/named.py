"""Constraints that a server's operator has named: databases and monitors, which are no text that a request could bring.

A request asks for one by ``%named shop`` in place of a grammar's text.  ``GUIDED_CONSTRAINTS=module:attribute``, in the
environment of the server, says which there are: a mapping from names to grammars, or to functions that make a
constraint for each request, of the vocabulary and the prompt.  So a request can name what it was given, and no more.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from guided.constraint.protocol import Constrains
from guided.errors import GrammarError, GuidedError, UnsupportedError
from guided.grammar.ir import Grammar
from guided.vocab.vocabulary import Vocabulary

__all__ = ["VARIABLE", "Maker", "make", "name_in", "named"]

VARIABLE = "GUIDED_CONSTRAINTS"
"""The environment variable that says where the mapping is."""

Maker: TypeAlias = Callable[[Vocabulary, str], Constrains]
"""Makes the constraint of one request, of its vocabulary and the text of its prompt."""

_PREFIX = "%named "


def name_in(text: str) -> str | None:
    """The name that a grammar's text asks for; None for a grammar.

    >>> name_in("%named shop"), name_in("start: /[a-z]+/")
    ('shop', None)
    """
    return text[len(_PREFIX) :].strip() if text.startswith(_PREFIX) else None


def named(name: str) -> Grammar | Maker:
    """What goes by a name; raises `GrammarError` where nothing does."""
    known = _known(os.environ.get(VARIABLE, ""))
    found = known.get(name)
    if found is None:
        there = f"Ask for one of {', '.join(known)}." if known else f"Nothing is: see {VARIABLE} in the documentation."
        raise GrammarError(f"nothing is named {name!r} on this server", remedy=there)
    return found


def make(name: str, vocabulary: Vocabulary, prompt: str | None) -> Constrains:
    """The constraint of a request for a name whose constraints are made for each.

    Raises `UnsupportedError` where the prompt is not known, `GuidedError` for whatever the maker does wrong.
    """
    maker = named(name)
    assert not isinstance(maker, Grammar)
    if prompt is None:
        raise UnsupportedError(
            f"what is named {name!r} is made of a request's prompt, which is not known here",
            remedy="Ask for it in a request to vLLM, without beams.",
        )
    try:
        return maker(vocabulary, prompt)
    except GuidedError:
        raise
    except Exception as error:
        raise GuidedError(
            f"what is named {name!r} cannot be made: {type(error).__name__}: {error}",
            remedy=f"Mend the function that {VARIABLE} names.",
        ) from error


@lru_cache(maxsize=8)
def _known(place: str) -> Mapping[str, Grammar | Maker]:
    if not place:
        return {}
    module, _, attribute = place.partition(":")
    try:
        found: Any = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise _misnamed(place, str(error)) from error
    if not isinstance(found, Mapping) or not all(
        isinstance(each, Grammar) or callable(each) for each in found.values()
    ):
        raise _misnamed(place, "it is no mapping from names to grammars or functions")
    return found


def _misnamed(place: str, why: str) -> GuidedError:
    return GuidedError(f"{VARIABLE}={place}: {why}", remedy="Give the place of a mapping, as module:attribute.")
