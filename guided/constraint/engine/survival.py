"""Can a text go on from a state to an end?  For states of `guided.constraint.engine.machine` that may have no way left.

The kernels' own states do, but for two: threads that owe something which no further text can spare them (grammars with
a lexer), and texts that no tokens spell (vocabularies that lack single bytes).  Both are searched, and remembered.
With a checker beside the machine it is `guided.constraint.distinct.spelling` that searches for tokens.
"""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.automata.endings.dead_ends import leads_nowhere
from guided.automata.endings.endings import Endings
from guided.automata.lalr.stacks import Restricted
from guided.automata.lexer.joint import parts_of
from guided.automata.lexer.ordered import OrderedState, combine
from guided.errors import LimitError, UnsatisfiableError, VocabularyError
from guided.kernels.data.layout import DEAD, FINISHED

if TYPE_CHECKING:
    from guided.constraint.engine.machine import ConstraintMachine

__all__ = ["NEAR", "are_alive", "check_start", "ending_row", "endings_of", "measured", "payable", "spellable"]

STEPS_PER_STATE = 7
"""Steps of deciding which terminals can stand side by side, for each state that a search may visit: some 8 us each."""

NEAR = 500
"""States in which an end, or a thread that owes nothing, is looked for before all ends are measured.  Most are found in
a hundred, and to measure all ends of a grammar of a whole language takes half a second."""


def spellable(machine: ConstraintMachine, state: int) -> int:
    """The state, or `DEAD` when the vocabulary's tokens cannot spell any text from it to the end.

    Only for vocabularies that lack single bytes.  The shortest text is tried first, then all texts, token by token.
    """
    if machine.vocabulary.byte_complete or state <= FINISHED:
        return state
    with machine.lock:
        known = machine.spelled.get(state)
        if known is None:
            known = machine.spelled[state] = _can_spell(machine, state)
        return state if known else DEAD


def _can_spell(machine: ConstraintMachine, state: int) -> bool:
    seen = {state}
    queue = [state]
    for at in queue:
        if machine.spelled.get(at) or machine.is_accepting(at):
            return True
        if machine.spell(machine.completions.text(at)):
            return True
        if len(seen) > machine.limits.search_states:
            raise LimitError(
                f"whether the vocabulary can spell a text was not decided in {machine.limits.search_states} states",
                remedy="Use a tokenizer that knows every byte, or pass Limits(search_states=...).",
            )
        for token in tokenset.ids(machine.candidates(at)).tolist():
            after = machine.advance_token_text(at, token)
            if after != DEAD and after not in seen and machine.spelled.get(after) is not False:
                seen.add(after)
                queue.append(after)
    machine.spelled.update(dict.fromkeys(seen, False))
    return False


def check_start(machine: ConstraintMachine, start: int) -> None:
    """Raise `UnsatisfiableError` where no text comes from the start to an end, `VocabularyError` where no tokens do."""
    if payable(machine, start) == DEAD:
        raise UnsatisfiableError(
            "no text satisfies this grammar: its terminals cannot stand side by side, since each match would have been "
            "longer",
            remedy="Separate the terminals, or let them not overlap.",
        )
    if spellable(machine, start) == DEAD:
        raise VocabularyError(
            f"this vocabulary's tokens cannot spell any text of the grammar, such as "
            f"{machine.completions.text(start)!r}",
            remedy="Use a tokenizer that has tokens for these characters.",
        )


def endings_of(machine: ConstraintMachine, first: int, most: int | None = None) -> Endings:
    """What decides which threads can end, of texts that begin in the continuation ``first``; raises `LimitError`.

    ``most`` are the steps that it may take, else as many as compiling may.
    """
    # The machine holds it, and completions hold a proxy of that.
    weak = machine if isinstance(machine, weakref.ProxyType) else weakref.proxy(machine)

    def items(continuation: int) -> list[int]:
        return cast("ConstraintMachine", weak).items(continuation)

    if most is None:
        most = STEPS_PER_STATE * machine.limits.search_states
    return Endings(machine.grammar, machine.states, machine.graph, machine.stacks, items, first, most)


def measured(machine: ConstraintMachine) -> bool:
    """Is `cost` what it takes to the end, debts and all?  Sees to it where that is not too much work."""
    if machine.endings is None and machine.owing and not machine.is_too_large:
        ((_, first, _),) = machine.threads(machine.start)
        try:
            machine.endings = endings_of(machine, first)
        except LimitError:
            machine.is_too_large = True
    return machine.endings is not None or not machine.owing


def payable(machine: ConstraintMachine, state: int) -> int:
    """The state, or `DEAD` when every thread owes something that no further text can spare it.

    A match that must not have been longer can leave only continuations that would make it so.  Where terminals always
    settle, a thread that owes nothing is near; else `guided.automata.endings.endings` knows.
    """
    if not machine.owing or state <= FINISHED:
        return state
    known = machine.paid.get(state)
    if known is None:
        known = _can_pay(machine, state) if machine.endings is None else _lives(machine, state)
        machine.paid[state] = known
    return state if known else DEAD


def _lives(machine: ConstraintMachine, state: int) -> bool:
    endings = cast(Endings, machine.endings)
    return any(endings.lives(*thread) for thread in machine.threads(state))


def _can_pay(machine: ConstraintMachine, state: int) -> bool:
    """Search breadth first over bytes for a thread that owes nothing, which can end since terminals always settle."""
    if _is_free(machine, state):
        return True
    if _is_stuck(machine, state):
        return False
    seen = {state}
    queue = [state]
    for at in queue:
        if len(seen) > NEAR and measured(machine):
            return _lives(machine, state)
        if len(seen) > machine.limits.search_states:
            # Never refused in the middle of a text: this takes seconds, once.
            ((_, first, _),) = machine.threads(machine.start)
            machine.endings = endings_of(machine, first, sys.maxsize)
            return _lives(machine, state)
        for byte in np.flatnonzero(machine.next_bytes(at)).tolist():
            after = machine.read(at, bytes((byte,)))
            if after != DEAD and after not in seen and machine.paid.get(after) is not False:
                # Before those beside it are read, each of which may ask for a lexer state.
                if _is_free(machine, after):
                    return True
                seen.add(after)
                queue.append(after)
    machine.paid.update(dict.fromkeys(seen, False))
    return False


def _is_stuck(machine: ConstraintMachine, state: int) -> bool:
    """Is every thread inside a match that what is owed lets never end?"""
    states = machine.states
    for inside, _, obligation in machine.threads(state):
        if not (inside and obligation):
            return False
        key = states.keys[inside]
        owed = combine(cast(OrderedState, states.keys[part]) for part in parts_of(states, obligation))
        match = cast(OrderedState, key.state if isinstance(key, Restricted) else key)
        if owed is None or not leads_nowhere(match, owed):
            return False
    return True


def _is_free(machine: ConstraintMachine, state: int) -> bool:
    """May the text end, or does some thread owe nothing?"""
    owes_all = all(obligation for _, _, obligation in machine.threads(state))
    return not owes_all or machine.is_accepting(state) or bool(machine.paid.get(state))


def are_alive(machine: ConstraintMachine, states: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of some states have a way left to an end, asking about each once."""
    reached = np.unique(states)
    dead = [state for state in reached.tolist() if spellable(machine, payable(machine, state)) == DEAD]
    return np.isin(states, dead, invert=True)


def ending_row(
    machine: ConstraintMachine, state: int, row: NDArray[np.uint32], undecided: NDArray[np.uint32]
) -> NDArray[np.uint32]:
    """The tokens of both rows behind which some text to the end can be spelled and paid, asking about each state once.

    Those of ``row``, which is written to, are known to have such a text where terminals settle.
    """
    if machine.settles and machine.vocabulary.byte_complete:
        tokens = tokenset.ids(undecided & ~row).tolist()
        after = machine.advance_each(state, tokens)
        alive = {each: spellable(machine, each) != DEAD for each in dict.fromkeys(after)}
        ending = [token for token, each in zip(tokens, after, strict=True) if alive[each]]
        tokenset.add_all(row, np.array(ending, np.int64))
        return row
    # All are asked about: a walk reads once what they share, where one by one a string's 80,000 took 100 ms and more.
    living, _ = machine.advance_all(state)
    return (row | undecided) & tokenset.of_ids(living, row.size)
