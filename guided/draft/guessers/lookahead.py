"""`Lookahead`: the model guesses several places ahead at once, and n-grams of its guesses are what is drafted.

Lookahead decoding (Fu et al., 2024, arXiv 2402.02057), on top of Jacobi iteration (Santilli et al., 2023, arXiv
2305.10427): guesses at the next places are fed along, the model's best token after each is a better guess, and so on
from pass to pass.  ``n - 1`` generations of guesses are kept; what a column of them and the newest guess spell is an
n-gram that the model might write, and goes into a pool.  The n-grams that begin with the text's last token are drafted
beside the window.  It needs no second model, no training and no corpus; what it costs are positions of the pass.

Both branches are one tree here: the oldest generation is a line behind the text, and the later guesses of a column
hang below their place in it, which is just what each of them attends to in the paper's mask.  So guesses of the window
that turn out right are accepted as well, and with bigrams this is Jacobi decoding: see `jacobi`.  Guesses are the best
tokens that the grammar allows at their place.  Reconstructed from the paper's text; the window is moved on by as many
places as tokens came, and filled from the pool and the text.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence

import numpy as np

from guided.draft.drafter import Context, Observed
from guided.draft.guessers.guess import Path
from guided.draft.masks import fill_positions
from guided.draft.proposal import Group, Proposal
from guided.errors import GuidedError
from guided.infer.chance import Chance

__all__ = ["Lookahead"]

_Window = list[list[int | None]]
"""By generation, the oldest first, and column: guess g of column c is for the place ``c + g`` behind the text."""

POOL = 1 << 16
"""First tokens of which n-grams are kept."""
TRIED = 8
"""Tokens of the text that are tried to fill a place of the window."""


class Lookahead:
    """Drafts n-grams of the model's own guesses; the pool stays warm from one run to the next.

    ``window`` places ahead are guessed at, ``n`` is the length of n-grams, and ``guesses`` is the most of them that are
    drafted at a time.  A budget of `nodes` has room for all of it; with less the n-grams come first.  Raises
    `GuidedError` for a window below 1, an n below 2 and negative guesses.
    """

    def __init__(self, window: int = 5, n: int = 4, guesses: int = 5) -> None:
        if window < 1 or n < 2 or guesses < 0:
            raise GuidedError(
                f"a window of {window} places, n-grams of {n} and {guesses} guesses",
                remedy="The window is at least 1, n at least 2, and guesses at least 0.",
            )
        self.window = window
        self.n = n
        self.guesses = guesses
        self._pool: OrderedDict[int, OrderedDict[tuple[int, ...], None]] = OrderedDict()
        """By first token, the rest of its n-grams, the latest last."""
        self._windows: dict[int, _Window] = {}
        self._columns: dict[int, list[list[Path]]] = {}
        """By row, the places of each column of its last proposal."""

    @classmethod
    def jacobi(cls, window: int = 8) -> Lookahead:
        """Jacobi decoding: one generation of guesses, verified as it stands, and no n-grams."""
        return cls(window, 2, 0)

    @property
    def nodes(self) -> int:
        """The most nodes of a proposal."""
        return (self.window + self.guesses) * (self.n - 1)

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """The pool's n-grams, and the window behind them."""
        return [self._tree(context) for context in contexts]

    def _tree(self, context: Context) -> Proposal:
        proposal = Proposal()
        here = Path(context, (), context.state)
        for rest in list(reversed(self._pool.get(here.last(1)[0], OrderedDict())))[: self.guesses]:
            path = here
            for token in rest:
                following = self._add(proposal, path, token)
                if following is None:
                    break
                path = following
        window = self._windows.setdefault(context.row, self._empty())
        columns = self._columns[context.row] = []
        place = here
        for column in range(self.window):
            paths: list[Path] = []
            for generation in range(self.n - 1):
                above = paths[-1] if paths else place
                below = self._add(proposal, above, self._guess(window[generation][column], above))
                if below is None:
                    break
                paths.append(below)
            if not paths:
                break
            place = paths[0]
            columns.append(paths)
        return proposal

    def _empty(self) -> _Window:
        return [[None] * self.window for _ in range(self.n - 1)]

    def _add(self, proposal: Proposal, path: Path, token: int | None) -> Path | None:
        """Add a token behind a place; None where it cannot be scored."""
        context = path.context
        following = None if token is None or len(path.drafted) >= context.depth else path.then(token)
        if following is None or token is None:
            return None
        parent = -1
        for drafted in path.drafted:
            child = proposal.child(parent, drafted)
            assert child is not None
            parent = child
        if proposal.child(parent, token) is None:
            if len(proposal) >= context.budget:
                return None
            proposal.add(parent, Group((token,)))
        return following

    def _guess(self, guess: int | None, path: Path) -> int | None:
        """The window's guess for a place, or where there is none, or a forbidden one, a token that is allowed."""
        context = path.context
        constraint = context.constraint
        if constraint is not None and path.state == constraint.end:
            return None
        for token in self._fillings(guess, path):
            if path.then(token) is not None:
                return token
        allowed = context.row_masks.allowed(path.state, context.left(len(path.drafted)), context.width)
        found = () if allowed is None else np.flatnonzero(allowed)
        return int(found[len(path.drafted) % len(found)]) if len(found) else None

    def _fillings(self, guess: int | None, path: Path) -> Iterator[int]:
        if guess is not None:
            yield guess
        known = self._pool.get(path.last(1)[0])
        if known:
            yield next(reversed(known))[0]
        tokens = path.context.tokens
        for step in range(min(TRIED, len(tokens))):
            yield tokens[(len(path.drafted) + step) % len(tokens)]

    def learn(self, observed: Sequence[Observed]) -> None:
        """Enter the n-grams that the window now spells, and move it on."""
        fill_positions(
            (seen.context.row_masks, paths[-1].state, seen.context.left(len(paths[-1].drafted)))
            for seen in observed
            for paths in self._columns.get(seen.context.row, ())
        )
        for seen in observed:
            columns = self._columns.pop(seen.context.row, None)
            if columns is not None:
                newest = self._newest(seen, columns)
                self._windows[seen.context.row] = self._moved(columns, newest, len(seen.emitted))

    def _newest(self, seen: Observed, columns: Sequence[Sequence[Path]]) -> list[int | None]:
        """The model's best token at the end of each column that is whole; its n-gram goes into the pool."""
        context, tree = seen.context, seen.tree
        children = {(parent, token): node for node, (token, parent) in enumerate(zip(tree.tokens, tree.parents))}
        newest: list[int | None] = []
        for paths in columns:
            end = paths[-1]
            at: int | None = context.n_unseen - 1
            for token in end.drafted:
                at = children.get((at, token)) if at is not None else None
            if at is None or len(paths) < self.n - 1:
                newest.append(None)
                continue
            scores = seen.logits[at].cpu().numpy()
            allowed = context.row_masks.allowed(end.state, context.left(len(end.drafted)), scores.size)
            if allowed is not None:
                scores = np.where(allowed, scores, -np.inf)
            best = int(scores.argmax())
            newest.append(best if scores[best] > -np.inf else None)
            if newest[-1] is not None:
                self._enter((*end.drafted[len(end.drafted) - self.n + 1 :], best))
        return newest

    def _moved(self, columns: Sequence[Sequence[Path]], newest: Sequence[int | None], n: int) -> _Window:
        """The window after so many tokens: every guess one generation older, for the place that it was made for."""
        moved = self._empty()
        for column, paths in enumerate(columns):
            guesses = [*(path.drafted[-1] for path in paths[1:]), newest[column]]
            if 0 <= column - n + 1 < self.window and len(paths) == self.n - 1:
                for generation, guess in enumerate(guesses):
                    moved[generation][column - n + 1] = guess
        return moved

    def _enter(self, ngram: tuple[int, ...]) -> None:
        known = self._pool.setdefault(ngram[0], OrderedDict())
        self._pool.move_to_end(ngram[0])
        known[ngram[1:]] = None
        known.move_to_end(ngram[1:])
        if len(known) > max(self.guesses, 1):
            known.popitem(last=False)
        if len(self._pool) > POOL:
            self._pool.popitem(last=False)

    def leave(self, rows: Sequence[int]) -> None:
        """Forget the windows; the pool stays."""
        for row in rows:
            self._windows.pop(row, None)
            self._columns.pop(row, None)
