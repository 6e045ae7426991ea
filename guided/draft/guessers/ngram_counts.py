"""`NGrams`: what came in this state of the grammar after these tokens, counted over all texts so far.

DOMINO's speculation (Beurer-Kellner et al., 2024): under a grammar a few counts say most of what a model writes between
values.  Counted under the state and the last two tokens, under the state and the last one, under the last two in any
grammar, and under the state alone; the first of these contexts that was seen speaks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from guided.constraint.protocol import Constrains
from guided.draft.drafter import Observed
from guided.draft.guessers.guess import Guess, Path
from guided.draft.guessers.successors import Successors

__all__ = ["NGrams"]

_Key = tuple[int, int, tuple[int, ...]]
ANY_GRAMMAR = -1


class NGrams:
    """Guesses by counts conditioned on the grammar's state; stays warm from one run to the next.

    ``threshold`` is the least share of a guess.  At most ``limit`` contexts are kept, those used last.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> drafter = draft.BestFirst(draft.NGrams())
    >>> def passes():
    ...     return draft.speculate(0, model, [[0]], [None], drafter, greedy=True, max_tokens=12)[1].passes
    >>> passes() > passes()  # it stays warm
    True
    """

    def __init__(self, longest: int = 2, *, threshold: float = 0.1, limit: int = 1 << 16) -> None:
        self.longest = longest
        self.threshold = threshold
        self._counts = Successors[_Key](limit)
        self._grammars: OrderedDict[int, Constrains] = OrderedDict()
        """Constraints that are counted, kept so that none takes the identity of another."""

    def guess(self, path: Path) -> Sequence[Guess]:
        """The tokens that came here before, by their shares."""
        grammar = self._number(path.context.constraint)
        for level, key in enumerate(self._contexts(grammar, path.state, path.last(self.longest))):
            found = self._counts.after(key)
            if found:
                total = sum(found.values())
                best = sorted(found.items(), key=lambda item: -item[1])[:4]
                return [
                    Guess(token, count / (total + 1), 64 * level + min(int(8 * count / total), 7))
                    for token, count in best
                    if count >= self.threshold * total
                ]
        return ()

    def _contexts(self, grammar: int, state: int, last: tuple[int, ...]) -> list[_Key]:
        """From the one that says most to the one that was seen most."""
        found: list[_Key] = [(grammar, state, last[len(last) - n :]) for n in range(len(last), 0, -1)]
        return [*found, (ANY_GRAMMAR, 0, last), (grammar, state, ())]

    def _number(self, constraint: Constrains | None) -> int:
        if constraint is None:
            return 0
        number = id(constraint)
        if number not in self._grammars:
            self._grammars[number] = constraint
            if len(self._grammars) > 64:
                gone, _ = self._grammars.popitem(last=False)
                self._counts.drop(lambda key: key[0] == gone)
        return number

    def learn(self, observed: Sequence[Observed]) -> None:
        """Count the emitted tokens, each where it came."""
        for seen in observed:
            context = seen.context
            grammar = self._number(context.constraint)
            state, text = context.state, list(context.tokens[-len(seen.emitted) - self.longest :])
            # The context's text is the row's own, which has grown by what was emitted.
            before = text[: len(text) - len(seen.emitted)]
            for token in seen.emitted:
                last = tuple(before[max(0, len(before) - self.longest) :])
                for key in self._contexts(grammar, state, last):
                    self._counts.add(key, token)
                before.append(token)
                state = 1 if context.constraint is None else context.constraint.advance(state, token)

    def leave(self, rows: Sequence[int]) -> None:
        """Nothing is kept for a row."""
