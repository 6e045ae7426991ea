"""`NGrams`: what came in this state of the grammar after these tokens, counted over all texts so far.

DOMINO's speculation (Beurer-Kellner et al., 2024): under a grammar a few counts say most of what a model writes between
values.  Counted under the state and the last two tokens, under the state and the last one, and under the state alone;
the longest context that was seen speaks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from guided.constraint.protocol import Constrains
from guided.draft.drafter import Observed
from guided.draft.guess import Guess, Path
from guided.draft.successors import Successors

__all__ = ["NGrams"]


class NGrams:
    """Guesses by counts conditioned on the grammar's state; stays warm from one run to the next.

    ``threshold`` is the least share of a guess.  At most ``limit`` contexts are kept, those used last.
    """

    def __init__(self, longest: int = 2, *, threshold: float = 0.1, limit: int = 1 << 16) -> None:
        self.longest = longest
        self.threshold = threshold
        self._counts = Successors[tuple[int, int, tuple[int, ...]]](limit)
        self._grammars: OrderedDict[int, Constrains] = OrderedDict()
        """Constraints that are counted, kept so that none takes the identity of another."""

    def guess(self, path: Path) -> Sequence[Guess]:
        """The tokens that came here before, by their shares."""
        grammar = self._number(path.context.constraint)
        last = path.last(self.longest)
        for n in range(len(last), -1, -1):
            found = self._counts.after((grammar, path.state, last[len(last) - n :]))
            if found:
                total = sum(found.values())
                best = sorted(found.items(), key=lambda item: -item[1])[:4]
                return [
                    Guess(token, count / total * total / (total + 1), 64 * n + min(int(8 * count / total), 7))
                    for token, count in best
                    if count >= self.threshold * total
                ]
        return ()

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
                for n in range(min(self.longest, len(before)) + 1):
                    self._counts.add((grammar, state, tuple(before[len(before) - n :])), token)
                before.append(token)
                state = 1 if context.constraint is None else context.constraint.advance(state, token)

    def leave(self, rows: Sequence[int]) -> None:
        """Nothing is kept for a row."""
