"""`Heads`: drafts by Medusa or Hydra heads, as a static tree or as guesses in `BestFirst`.

Heads' tokens are chosen by rule, the likeliest that the row's constraint allows: what the target does not say is
refused as with any other draft by rule, and the law is kept.  Tokens that were forced since the model's last pass use
up heads.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from guided.draft.drafter import Context, Observed
from guided.draft.guessers.guess import Guess, Path
from guided.draft.heads.draft_heads import DraftHeads
from guided.draft.heads.head_tree import best_nodes
from guided.draft.proposal import Group, Proposal
from guided.infer.chance import Chance
from guided.lm.model import Needs

__all__ = ["RANKS", "UNCALIBRATED", "Heads", "RankedTree", "likeliest"]

RANKS = 10
"""Tokens of each head that may be drafted at one place, as in the paper."""
UNCALIBRATED = 0.5
"""The accuracy of the best rank of heads that say nothing about theirs; each next one has half of it."""
CUTS = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95])
"""Guesses between two of these probabilities are of one kind to `BestFirst`, which learns how often those come true."""


class Heads:
    """Drafts with heads; a drafter, and a guesser for `BestFirst`.

    ``guesses`` is how many tokens are guessed at one place in `BestFirst`.  The heads are not trained further.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> prompts, texts = [[0]], [[1, 2, 0, 1, 2, 0, 1, 2]]
    >>> heads = draft.new_heads("medusa", 2, base)
    >>> examples = draft.head_examples(model, prompts, texts, 2)
    >>> _ = draft.fit_heads(heads, examples, epochs=15, batch=8, rate=0.3)
    >>> draft.calibrate_heads(heads, examples)
    >>> _, counts = draft.speculate(0, model, [[0]], [None], draft.Heads(heads), greedy=True, max_tokens=15)
    >>> counts.passes
    5
    """

    needs = Needs(hidden=True)

    def __init__(self, heads: DraftHeads, *, guesses: int = 4) -> None:
        self.heads = heads.eval()
        self.guesses = guesses
        self._trees: dict[tuple[int, int, int], list[tuple[int, ...]]] = {}
        self._known: dict[int, tuple[torch.Tensor, dict[int, torch.Tensor]]] = {}
        """By row: the hidden state, and what each head that does not look at tokens said about it."""

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """The static tree's first nodes as far as the budget goes, level by level for all rows."""
        grown = [RankedTree(context, self._tree(context)) for context in contexts]
        while True:
            asked = [(one, ranks) for one in grown for ranks in one.level()]
            if not asked:
                return [one.proposal for one in grown]
            places = [(one.context, one.tokens(ranks)) for one, ranks in asked]
            for (one, ranks), logits in zip(asked, self._logits(places), strict=True):
                one.grow(ranks, logits)

    def _tree(self, context: Context) -> list[tuple[int, ...]]:
        first = context.n_unseen
        heads = self.heads.settings.heads
        if context.hidden is None or first > heads:
            return []
        key = (first, context.depth, context.budget)
        if key not in self._trees:
            measured = self.heads.settings.accuracies
            usual = tuple(UNCALIBRATED / 2**rank for rank in range(RANKS))
            self._trees[key] = best_nodes((measured or (usual,) * heads)[first - 1 :][: context.depth], context.budget)
        return self._trees[key]

    def guess(self, path: Path) -> Sequence[Guess]:
        """The likeliest tokens at a place with their probabilities."""
        context = path.context
        count = context.n_unseen + len(path.drafted)
        if context.hidden is None or count > self.heads.settings.heads:
            return []
        tokens = (*_unseen(context), *path.drafted)
        (logits,) = self._logits([(context, tokens)])
        found = likeliest(logits, context, path.state, len(path.drafted), self.guesses)
        return [Guess(token, share, 16 * count + int(np.searchsorted(CUTS, share))) for token, share in found]

    def _logits(self, places: Sequence[tuple[Context, tuple[int, ...]]]) -> list[torch.Tensor]:
        """What the heads say after each context and the tokens that the model has not seen."""
        found: list[torch.Tensor | None] = [None] * len(places)
        asked: dict[int, list[int]] = {}
        for i, (context, tokens) in enumerate(places):
            if not self.heads.sequential:
                found[i] = self._memory(context).get(len(tokens))
            if found[i] is None:
                asked.setdefault(len(tokens), []).append(i)
        for count, all_ in asked.items():
            rows = all_ if self.heads.sequential else list({places[i][0].row: i for i in all_}.values())
            device = self.heads.unembeddings.device
            states = [places[i][0].hidden for i in rows]
            hidden = torch.stack([state for state in states if state is not None])
            after = torch.tensor([places[i][1] for i in rows], dtype=torch.long, device=device)
            with torch.inference_mode():
                logits = self.heads(hidden.to(device, torch.float32), after)
            for i, row in zip(rows, logits, strict=True):
                found[i] = row
                if not self.heads.sequential:
                    self._memory(places[i][0])[count] = row
            if not self.heads.sequential:
                for i in all_:
                    found[i] = self._memory(places[i][0])[count]
        return [row for row in found if row is not None]

    def _memory(self, context: Context) -> dict[int, torch.Tensor]:
        assert context.hidden is not None
        known = self._known.get(context.row)
        if known is None or known[0] is not context.hidden:
            known = self._known[context.row] = (context.hidden, {})
        return known[1]

    def learn(self, observed: Sequence[Observed]) -> None:
        """Nothing: heads are trained before."""

    def leave(self, rows: Sequence[int]) -> None:
        """Forget what the heads said about rows that have ended."""
        for row in rows:
            self._known.pop(row, None)


class RankedTree:
    """One row's tree while it grows by levels; its nodes are wanted by ranks."""

    def __init__(self, context: Context, nodes: Sequence[tuple[int, ...]]) -> None:
        self.context = context
        self.proposal = Proposal()
        self._children: dict[tuple[int, ...], list[int]] = {}
        for ranks in nodes:
            self._children.setdefault(ranks[:-1], []).append(ranks[-1])
        self._places: dict[tuple[int, ...], tuple[int, int, tuple[int, ...]]] = {
            (): (-1, context.state, _unseen(context))
        }
        """By ranks: the node, the constraint's state there, and the tokens since the model's last pass."""
        self._depth = 0

    def level(self) -> list[tuple[int, ...]]:
        """The nodes of the next level that get children."""
        found = [r for r in self._places if len(r) == self._depth and r in self._children]
        self._depth += 1
        return found

    def tokens(self, ranks: tuple[int, ...]) -> tuple[int, ...]:
        """The tokens up to a node since the model's last pass."""
        return self._places[ranks][2]

    def node(self, ranks: tuple[int, ...]) -> int | None:
        """The node of the proposal, -1 for the text; None where nothing can come behind it, or it was not grown."""
        return self._places[ranks][0] if ranks in self._places else None

    def grow(self, ranks: tuple[int, ...], logits: torch.Tensor) -> None:
        """Give a node its children; ranks count what is allowed."""
        node, state, tokens = self._places[ranks]
        wanted = self._children[ranks]
        masks = self.context.row_masks
        found = likeliest(logits, self.context, state, len(ranks), max(wanted) + 1)
        chosen = [(rank, found[rank][0]) for rank in wanted if rank < len(found)]
        if not chosen:
            return
        children = self.proposal.add(node, Group(tuple(token for _, token in chosen)))
        for (rank, token), child in zip(chosen, children, strict=True):
            following = masks.advance(state, token)
            constraint = self.context.constraint
            if following and (constraint is None or following != constraint.end):
                self._places[(*ranks, rank)] = (child, following, (*tokens, token))


def _unseen(context: Context) -> tuple[int, ...]:
    return tuple(context.tokens[len(context.tokens) - context.n_unseen :])


def likeliest(logits: torch.Tensor, context: Context, state: int, drafted: int, n: int) -> list[tuple[int, float]]:
    """The likeliest tokens that the constraint allows after so many drafted ones, with their shares of those."""
    scores: NDArray[np.float32] = logits.float().cpu().numpy()
    allowed = context.row_masks.allowed(state, context.left(drafted), scores.size)
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf).astype(np.float32)
    weights = np.exp(scores - scores.max()) if np.isfinite(scores.max()) else np.zeros(0)
    if not weights.size:
        return []
    shares = weights / weights.sum()
    n = min(n, int((shares > 0).sum()))
    order = np.argpartition(-shares, n - 1)[:n]
    order = order[np.argsort(-shares[order], kind="stable")]
    return [(int(token), float(shares[token])) for token in order]
