"""`compile`: the one place where a grammar and a vocabulary meet, remembered so that the second time is a look-up."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, cast

from guided.collection import hold, release
from guided.constraint.constraint import Constraint
from guided.constraint.limits import Limits
from guided.grammar.given import grammar_of
from guided.grammar.ir import Grammar
from guided.vocab.remembered import vocabulary_of
from guided.vocab.vocabulary import Vocabulary

if TYPE_CHECKING:
    from guided.constraint.languages import LanguageConstraint

REMEMBERED = 64
"""Constraints kept per vocabulary for grammars that are compiled again; each holds its tables and remembered masks."""

AT_ONCE = 32
"""Constraints more after which as many are forgotten: to take one apart is 40 to 90 us, by the profiler, and somebody
waits for the next."""

LIVELY = 8
"""Constraints of databases and the like that keep all that they have found: up to 300 MB each along some hundred
queries, so that 64 of them would be 19 GB.  What others had found they find again."""

_DEFAULT = Limits()

_recent: weakref.WeakKeyDictionary[Vocabulary, OrderedDict[tuple[str | Grammar, Limits], Constraint]]
_recent = weakref.WeakKeyDictionary()
_lively: OrderedDict[int, weakref.ref[LanguageConstraint]] = OrderedDict()
"""The constraints that keep all, by address, the last that was asked for at the end."""
_lock = threading.Lock()


def compile(grammar: Any, vocabulary: Any, *, limits: Limits | None = None) -> Constraint:
    """Compile a grammar for a vocabulary; lazily, so the cost is that of the first state.

    ``grammar`` may also be what stands for one: a type, a function, a JSON Schema as data (`guided.json_schema`).
    ``vocabulary`` may be a tokenizer, whose own end-of-text id is then the end, or what `guided.hf.load` gives, whose
    model may know more of them.

    The same source, vocabulary and limits give the same object while it is among the recently used.  Raises
    `guided.UnsatisfiableError` when no text satisfies the grammar.

    >>> import guided
    >>> vocabulary = guided.Vocabulary.from_tokens([b"yes", b"no", b"y", None], eos_ids=[3])
    >>> constraint = guided.compile(guided.choice(["yes", "no"]), vocabulary)
    >>> constraint.is_accepting(constraint.advance(constraint.start, 1))
    True
    """
    held = hold()
    try:
        return _compiled(grammar_of(grammar), vocabulary_of(vocabulary), limits or _DEFAULT)
    finally:
        if held:
            release()


def _compiled(grammar: Grammar, vocabulary: Vocabulary, limits: Limits) -> Constraint:
    # A grammar without a source of its own, such as a schema with a registry, is known by being the same object.
    key = (grammar.key or grammar, limits)
    with _lock:
        recent = _recent.setdefault(vocabulary, OrderedDict())
        found = recent.get(key)
        if found is not None:
            recent.move_to_end(key)
    if found is None:
        found = _made(grammar, vocabulary, limits)
        forgotten: list[object] = []  # taken apart when this returns, not under the lock
        with _lock:
            recent[key] = found
            if len(recent) >= REMEMBERED + AT_ONCE:
                forgotten += [recent.popitem(last=False) for _ in range(AT_ONCE)]
    if grammar.language is not None:
        _keep_few_lively(cast(Any, found))
    return found


def _keep_few_lively(used: LanguageConstraint) -> None:
    """Have the constraint that was asked for longest ago forget what it has found, if there are more than some."""
    with _lock:
        _lively[id(used)] = weakref.ref(used)
        _lively.move_to_end(id(used))
        last = _lively.popitem(last=False)[1]() if len(_lively) > LIVELY else None
    if last is not None:
        last.forget()


def _made(grammar: Grammar, vocabulary: Vocabulary, limits: Limits) -> Constraint:
    # Whatever takes a compiled constraint takes all that keep its protocol.
    if grammar.language is not None:
        from guided.constraint.languages import LanguageConstraint

        return cast(Constraint, LanguageConstraint(grammar, vocabulary, limits))
    if grammar.indentation is not None:
        from guided.constraint.indented import IndentedConstraint

        return cast(Constraint, IndentedConstraint(grammar, vocabulary, limits))
    return Constraint(grammar, vocabulary, limits)
