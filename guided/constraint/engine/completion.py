"""Ending in time: the shortest text that completes a state, in tokens, and masks under a token budget.

The text is the shortest in bytes, the first in byte order among equals; its fewest-tokens segmentation is a bound on
the distance to the end that can always be kept, because the rest of such a text is such a text again.  A mask under a
budget allows every token after which a cheaper bound fits: the terminal in progress at one token a byte, each later one
at the fewest tokens of its shortest text.  Where it fits after none, it allows the next token of that segmentation.  So
it is never empty, and a text is never cut.
"""

from __future__ import annotations

import heapq
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.automata.lalr.stack_costs import StackCosts
from guided.automata.lexer.distances import minimum, minimum_owing, shortest
from guided.automata.lexer.spelling import written_edges
from guided.constraint.engine.survival import NEAR, measured
from guided.errors import LimitError
from guided.kernels.data.layout import DEAD, FINISHED

if TYPE_CHECKING:
    from guided.constraint.engine.machine import ConstraintMachine

_MANY = 1 << 30
"""More tokens than any way has."""


class _Texts:
    """A text for each state, as what is read first and the state behind that: those of a long text share its rest."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[bytes, int]] = {FINISHED: (b"", DEAD)}
        """The state is `DEAD` where the text ends."""

    def __contains__(self, state: int) -> bool:
        return state in self._found

    def __setitem__(self, state: int, text: bytes) -> None:
        self._found[state] = text, DEAD

    def lead(self, state: int, piece: bytes, after: int) -> None:
        """Note how the text of a state begins, and the state behind that, which has one."""
        self._found[state] = piece, after

    def get(self, state: int) -> bytes | None:
        """The text of a state."""
        if state not in self._found:
            return None
        pieces = []
        while state != DEAD:
            piece, state = self._found[state]
            pieces.append(piece)
        return b"".join(pieces)


class Completions:
    """Shortest completions of one machine's states; remembers every text it has found."""

    def __init__(self, machine: ConstraintMachine) -> None:
        self._machine: ConstraintMachine = weakref.proxy(machine)
        self._texts = _Texts()
        self._priced: dict[int, list[int]] = {}
        self._nearest: dict[int, list[int]] = {}
        self._least: StackCosts | None = None

    def text(self, state: int) -> bytes:
        """The shortest text after which ``state`` may end."""
        found = self._texts.get(state)
        if found is None:
            machine = self._machine
            found = self._search(state) if machine.owing and machine.endings is None else self._descend(state)
        return found

    def _descend(self, state: int) -> bytes:
        """Follow prices down, smallest byte first: terminal by terminal, where one alone leads on."""
        machine = self._machine
        path: list[tuple[int, bytes]] = []
        at, left = state, machine.cost(state)
        while left and at not in self._texts:
            step = self._try_bytes(at, left) if machine.owing else self._next_piece(at, left)
            if step is None:
                return self._search(state)
            piece, after = step
            path.append((at, piece))
            at, left = after, left - len(piece)
        text = self._remember(path, self._texts.get(at) or b"", at)
        if not machine.owing:
            self._remember_tokens(path, at, text)
        return text

    def _next_piece(self, state: int, left: int) -> tuple[bytes, int] | None:
        """What is read next on the way to the nearest end, and the state behind it.

        Where all such ways begin with one terminal, that is its whole text: a byte takes as long as a terminal.
        """
        machine = self._machine
        states = machine.states
        leading = -1
        for inside, after, obligation in machine.threads(state):
            if obligation:
                return self._next_byte(state, left)
            ways = [(inside, after)] if inside else [(start, then) for start, then, _ in machine.closure(after)]
            for start, then in ways:
                within = left - machine.cost_behind(then)
                if within > 0 and minimum(states, start) == within:
                    if leading >= 0:
                        return self._next_byte(state, left)
                    leading = start
        if leading < 0:
            return None
        piece = shortest(states, leading)
        return piece, machine.advance_text(state, piece)

    def _next_byte(self, state: int, left: int) -> tuple[bytes, int] | None:
        """The smallest byte that leads nearer to the end, and where to: read off the edges of what is read there."""
        machine = self._machine
        states = machine.states
        nearest, owes = 256, False
        for inside, after, obligation in machine.threads(state):
            if obligation:
                ahead = minimum_owing(states, inside, obligation) if inside else 0
                owes = owes or machine.cost_behind(after) + ahead <= left
                continue
            ways = [(inside, after)] if inside else [(start, then) for start, then, _ in machine.closure(after)]
            for start, then in ways:
                within = left - machine.cost_behind(then)
                if within > 0 and minimum(states, start) == within:
                    lows = (low for low, _, to in written_edges(states, start) if minimum(states, to) == within - 1)
                    nearest = min(nearest, next(lows, 256))
        owing = self._try_bytes(state, left, nearest) if owes else None
        if owing is not None or nearest == 256:
            return owing
        byte = bytes([nearest])
        return byte, machine.advance_text(state, byte)

    def _try_bytes(self, state: int, left: int, below: int = 256) -> tuple[bytes, int] | None:
        """The same where debts have a say, which no edge tells; None where no byte leads nearer."""
        machine = self._machine
        for code in np.flatnonzero(machine.next_bytes(state)[:below]).tolist():
            byte = bytes([code])
            after = machine.advance_text(state, byte)
            if after != DEAD and machine.cost(after) == left - 1:
                return byte, after
        return None

    def _search(self, state: int) -> bytes:
        """Best first over bytes to the nearest accepting state, smallest text first among equals.

        The price without debts is a lower bound.  Where it is not the whole price, and no end is found soon, the way is
        taken that lowers it: whatever is owed can be settled, so that comes to an end, which may not be the nearest.
        """
        machine = self._machine
        rough = machine.owing and machine.endings is None
        greedy = 0
        seen: set[int] = set()
        queue: list[tuple[int, bytes, int]] = [(0, b"", state)]
        while queue:
            _, text, at = heapq.heappop(queue)
            if at in seen:
                continue
            seen.add(at)
            if machine.is_accepting(at):
                self._texts[state] = text
                return text
            if len(seen) > NEAR and not greedy:
                if rough and measured(machine):
                    return self._descend(state)
                if rough:
                    greedy = _MANY
                    seen = {at}
                    queue = []
            if len(seen) > (_MANY if greedy else machine.limits.search_states):
                break
            for byte in np.flatnonzero(machine.next_bytes(at).copy()).tolist():
                after = machine.advance_text(at, bytes([byte]))
                if after != DEAD and after not in seen:
                    left = self._least_cost(after) if rough else machine.cost(after)
                    heapq.heappush(queue, (len(text) + 1 + left * (1 + greedy), text + bytes([byte]), after))
        raise LimitError(
            f"no end of the text was found within {machine.limits.search_states} states of this one",
            remedy="Generate without a token budget, or pass Limits(search_states=...).",
        )

    def _least_cost(self, state: int) -> int:
        """No more than the bytes to an end, for grammars with a lexer of which these are not measured."""
        machine = self._machine
        if machine.stacks is None:
            return machine.cost(state)
        if self._least is None:

            def items(continuation: int) -> list[int]:
                return machine.items(continuation)

            self._least = StackCosts(machine.grammar, machine.states, items)
        return min(self._least.cost(inside, continuation) for inside, continuation, _ in machine.threads(state))

    def _remember(self, path: Sequence[tuple[int, bytes]], text: bytes, end: int) -> bytes:
        """Note what is read in each of some states, one after another, and the text of the state behind them."""
        if end not in self._texts:
            self._texts[end] = text
        after = end
        for at, piece in reversed(path):
            self._texts.lead(at, piece, after)
            after = at
        return b"".join([piece for _, piece in path]) + text

    def _remember_tokens(self, path: Sequence[tuple[int, bytes]], end: int, text: bytes) -> None:
        """Note the states behind the tokens of a text, which come next: they are inside of what was read at once."""
        machine = self._machine
        at = begun = read = 0
        state = path[0][0] if path else end
        for token in machine.spell(text):
            state = machine.advance_token(state, token)
            read += len(machine.vocabulary.spelled(token) or b"")
            while at < len(path) and begun + len(path[at][1]) <= read:
                begun += len(path[at][1])
                at += 1
            if at == len(path):
                return
            if state not in self._texts:
                self._texts.lead(state, path[at][1][read - begun :], path[at + 1][0] if at + 1 < len(path) else end)

    def tokens(self, state: int) -> list[int]:
        """The fewest tokens that spell `text`; where it cannot be spelled, or another end was found nearer, to that."""
        text = self.text(state)
        found = self._machine.spell(text)
        known = self._nearest.get(state)
        if known is None and text and not found:
            known = self._search_tokens(state)
        return found if known is None or (found and len(found) <= len(known)) else known

    def _search_tokens(self, state: int) -> list[int]:
        """Best first over tokens to the nearest end, for vocabularies that cannot spell the shortest text.

        Remembered for every state on the way, so that after the first token the rest is again what is found.
        """
        known = self._nearest.get(state)
        if known is not None:
            return known
        machine = self._machine
        parents: dict[int, tuple[int, int]] = {}
        depth = {state: 0}
        queue = [(0, 0, state)]
        while queue:
            _, behind, at = heapq.heappop(queue)
            if -behind > depth[at]:
                continue
            rest = [] if machine.is_accepting(at) else self._nearest.get(at)
            if rest is not None:
                self._nearest[at] = rest
                while at != state:
                    at, token = parents[at]
                    rest = [token, *rest]
                    self._nearest[at] = rest
                return rest
            if len(depth) > machine.limits.search_states:
                break
            for token in tokenset.ids(machine.mask(at)).tolist():
                after = machine.advance_token(at, token)
                if 1 - behind < depth.get(after, _MANY):
                    depth[after] = 1 - behind
                    parents[after] = (at, token)
                    heapq.heappush(queue, (1 - behind + self._least_tokens(after), behind - 1, after))
        raise LimitError(
            f"no end of the text was found within {machine.limits.search_states} states of this one",
            remedy="Generate without a token budget, or pass Limits(search_states=...).",
        )

    def _least_tokens(self, state: int) -> int:
        """A lower bound on the tokens to an end: what is known, or what the longest tokens could do."""
        known = self._nearest.get(state)
        if known is not None:
            return len(known)
        machine = self._machine
        rough = machine.owing and machine.endings is None
        left = self._least_cost(state) if rough else machine.cost(state)
        return -(-left // max(machine.vocabulary.spelling.longest, 1))

    def fill(self, state: int, row: NDArray[np.uint32], budget: int) -> None:
        """The mask of ``state`` under a budget that counts the token itself, all after it, and the end of text.

        Where prices tell (`ConstraintMachine.near`) they have left nothing: then it is the shortest text's next token.
        Raises `LimitError` where the shortest completion does not fit.
        """
        machine = self._machine
        # Where stacks are priced, the text that prices stand for is at hand, and the shortest would have to be found.
        path = self._by_price(state) if machine.prices and not machine.plain else None
        if path is None or len(path) + 1 > budget:
            path = self.tokens(state)
            if len(path) + 1 > budget:
                path = min(path, self._by_price(state) or path, key=len)
        if len(path) + 1 > budget:
            raise LimitError(
                f"{budget} tokens are left, but the shortest completion takes {len(path)} and the end-of-text token",
                remedy="Raise max_new_tokens.",
            )
        if machine.prices or budget < 2:
            row[:] = 0
        else:
            row[:] = machine.mask(state)
            self._drop_far(state, row, budget)
        if path and budget >= 2:
            tokenset.add(row, path[0])

    def _by_price(self, state: int) -> list[int] | None:
        """The tokens of the text that masks under a budget rely on; None where there is none.

        Remembered for every state on the way, so that what was promised once can be kept.
        """
        found = self._priced.get(state)
        if found is not None:
            return found
        text = self._machine.cheapest_text(state)
        found = None if text is None else self._spelled(state, text)
        if found is None:
            return None
        at = state
        for i, token in enumerate(found):
            known = self._priced.get(at)
            if known is None or len(known) > len(found) - i:
                self._priced[at] = found[i:]
            at = self._machine.advance_token(at, token)
        return found

    def _spelled(self, state: int, text: bytes) -> list[int] | None:
        """The tokens of a text that comes at a state; None where none join to it."""
        found = self._machine.spell(text)
        return None if text and not found else found

    def _drop_far(self, state: int, row: NDArray[np.uint32], budget: int) -> None:
        """Try every allowed token: for grammars whose debts have no price, and vocabularies with gaps."""
        for token in tokenset.ids(row).tolist():
            if not self.is_near(self._machine.advance_token(state, token), budget - 2):
                tokenset.remove(row, token)

    def is_near(self, state: int, limit: int) -> bool:
        """Are so many tokens enough?  False also where no end is found: fewer tokens than possible, never too many."""
        try:
            # A byte is a token at most: mostly nothing has to be spelled.
            if self._machine.vocabulary.byte_complete and len(self.text(state)) <= limit:
                return True
            return len(self.tokens(state)) <= limit
        except LimitError:
            return False
