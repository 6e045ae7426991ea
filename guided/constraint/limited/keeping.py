"""Can each limit of a grammar be kept: is there a text of few enough tokens, that begin and end with it?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from guided.automata.lexer.distances import minimum, shortest
from guided.constraint.limited.spans import Spans
from guided.errors import LimitError, VocabularyError
from guided.grammar.ir import Body, Choice, Grammar, Mark, Repetition, Rule, Sequence, Terminal
from guided.grammar.limited.terminals import most_tokens
from guided.grammar.rules import every_rule
from guided.vocab.spelled import spell

if TYPE_CHECKING:
    from guided.constraint.engine.machine import ConstraintMachine

__all__ = ["KeptLimits", "kept_limits"]


class KeptLimits(NamedTuple):
    """What is known of all limited texts of a grammar."""

    names: dict[str, int]
    """What each is called, and the tokens that it may take."""
    widest: list[tuple[int, int]]
    """These tokens, and the bytes that are enough to end it from wherever a token leads within."""
    are_priced: bool
    """Is the shortest text of each, which budgets count with, within its limit?"""


def kept_limits(grammar: Grammar, base: ConstraintMachine) -> KeptLimits:
    """Raises `VocabularyError` for a limit that no text keeps, `LimitError` where that takes long to find out."""
    names: dict[str, int] = {}
    widest: list[tuple[int, int]] = []
    are_priced = True
    spans = Spans(base, base)
    for name, terminal, most in _limited(grammar):
        names[name] = most
        start = base.states.add(terminal.expr)
        widest.append((most, spans.widest_of(start)))
        if not minimum(base.states, start) or len(spell(base.vocabulary, shortest(base.states, start))) <= most:
            continue
        are_priced = False
        if not terminal.expr.nullable:
            fewest = _fewest(terminal, base)
            if fewest > most:
                raise VocabularyError(
                    f"max_tokens={most} of {name} is too small: no text of it takes fewer than {fewest} tokens of "
                    "this vocabulary",
                    remedy=f"Let max_tokens be {fewest} or more, or use a vocabulary with longer tokens.",
                )
    return KeptLimits(names, widest, are_priced)


def _limited(grammar: Grammar) -> Iterator[tuple[str, Terminal, int]]:
    """Each limited terminal once, with what it is called."""
    seen: set[object] = set()
    for rule in every_rule(grammar.rules):
        if rule.mark is not Mark.LIMITED:
            continue
        for terminal in _terminals(rule.body):
            most = most_tokens(terminal.expr)
            if most is not None and terminal.expr not in seen:
                seen.add(terminal.expr)
                yield terminal.label or rule.name, terminal, most


def _terminals(body: Body) -> Iterator[Terminal]:
    match body:
        case Terminal():
            yield body
        case Sequence(parts) | Choice(parts):
            for part in parts:
                yield from _terminals(part)
        case Repetition():
            yield from _terminals(body.body)
            if body.separator is not None:
                yield from _terminals(body.separator)


def _fewest(terminal: Terminal, base: ConstraintMachine) -> int:
    """The fewest tokens that a text of a terminal takes, of which the last ends where it does."""
    machine = type(base)(Grammar((Rule(terminal.label, terminal),), 0), base.vocabulary, base.limits)
    seen = now = {machine.start}
    count = 0
    while now:
        count += 1
        now = {after for state in now for after in set(machine.advance_all(state)[1].tolist())} - seen
        if any(map(machine.is_accepting, now)):
            return count
        seen = seen | now
        if len(seen) > base.limits.search_states:
            break
    raise LimitError(
        f"no text of {terminal.label or 'a limited text'} was found within {base.limits.search_states} states",
        remedy="Leave out its max_tokens, or pass Limits(search_states=...).",
    )
