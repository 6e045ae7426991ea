"""`Model`: a smaller language model with the same vocabulary as the draft."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch

from guided.draft.drafter import Context, Observed
from guided.draft.masks import RowMasks, fill_positions
from guided.draft.models.confidence import Confidence
from guided.draft.models.shapes import Chain, Independent, Leaf, OptTree, Shape, Shaping
from guided.draft.proposal import Drawn, Group, Proposal
from guided.errors import UnsupportedError, VocabularyError
from guided.infer.chance import Chance
from guided.lm.given import language_model
from guided.lm.model import NOTHING, LanguageModel, Needs, Scores, Sequences, Tree
from guided.lm.transforms import TransformedModel
from guided.steer.layout import check_vocabulary

__all__ = ["Model"]


class Model:
    """Drafts with a language model, in a chain or in a tree of some `Shape`.

    Its tokens come from its own distribution under the row's constraint.  ``by_rule`` takes the likeliest instead of
    drawing: for greedy decoding.  Temperature and truncation are those of the target's tokens, unless the model is
    `guided.lm.transformed` itself.  The cache follows the rows: what the target refused is rolled back.

    ``target`` is looked at to see whether the ids are the same: the tokenizers are compared where both models have
    theirs, and else the widths.  Models of one tokenizer may be padded to different widths: ids that only one of them
    has are not drafted, and nothing is after a text with an id that the draft model does not know.

    Raises `VocabularyError` for a model of other ids, `UnsupportedError` for trees with a model that has none, for
    `Independent` sequences that are not drawn and for an `OptTree` that is.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> small = TableModel(lambda tokens: np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # less sure
    >>> drafter = draft.Model(small, draft.Chain(4), by_rule=True)
    >>> _, counts = draft.speculate(0, model, [[0]], [None], drafter, greedy=True, max_tokens=16)
    >>> counts.acceptance, counts.passes
    (1.0, 3)
    """

    _asked: Needs = NOTHING
    """What is wanted of the draft model besides logits."""

    def __init__(
        self,
        model: LanguageModel,
        shape: Shape | None = None,
        *,
        by_rule: bool = False,
        target: LanguageModel | None = None,
    ) -> None:
        model = language_model(model)
        if target is not None:
            check_ids(language_model(target), model)
        self.model = model
        self.shape: Shape = Chain() if shape is None else shape
        self.by_rule = by_rule
        if not isinstance(self.shape, Chain) and not model.can.tree:
            raise UnsupportedError(
                f"the draft model takes no trees, so {type(self.shape).__name__} cannot be drafted",
                remedy="Draft with guided.draft.Chain.",
            )
        if not by_rule and isinstance(self.shape, OptTree):
            raise UnsupportedError(
                "OptTree drops nodes, and what was drawn has to be proposed",
                remedy="Draft with by_rule=True, or with guided.draft.Dynamic.",
            )
        if by_rule and isinstance(self.shape, Independent):
            raise UnsupportedError(
                "the likeliest tokens of all sequences of Independent are the same",
                remedy="Draft with guided.draft.Branching, or with by_rule=False.",
            )
        self._sequences: Sequences | None = None
        self._rows: list[int] = []
        self._shares: dict[int, dict[int, float]] = {}
        """By row: the draft's probability of each node of its last chain."""

    @property
    def lines(self) -> bool:
        """Are its proposals lines?"""
        return isinstance(self.shape, Chain)

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """One pass of the draft model for each level, for all rows together."""
        known = [max(context.tokens, default=0) < self.model.width for context in contexts]
        asked = [context for context, reads in zip(contexts, known, strict=True) if reads]
        found = iter(self._drafted(chance, asked) if asked else [])
        return [next(found) if reads else Proposal() for reads in known]

    def _drafted(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """The same for texts that the model can read."""
        self._follow(contexts)
        drawn = Drawn.INDEPENDENTLY if isinstance(self.shape, Independent) else Drawn.WITHOUT_REPLACEMENT
        grown = [_Grown(context, self.model, self._shaping(context), drawn) for context in contexts]
        last = self._last(contexts)
        fill_positions(each for one in grown for each in one.positions([-1]))
        for one, logits in zip(grown, last, strict=True):
            one.begin(logits)
        confidence = self._confidence
        least = 0.0 if confidence is None else confidence.threshold
        depth = min(self.shape.depth, max(context.depth for context in contexts))
        chooses = isinstance(self.shape, OptTree)
        for level in range(depth):
            for one in grown:
                used = 0 if chooses else len(one.proposal)
                left = one.context.budget - used if level < one.context.depth else 0
                if left > 0 and one.leaves:
                    self.shape.grow(chance, self.by_rule, one.leaves, level, left)
                one.settle(self.by_rule, least)
                if chooses:
                    one.narrow(one.context.budget)
            if level + 1 == depth or not any(one.waiting for one in grown):
                break
            self._score(grown)
        for one in grown:
            self._shares[one.context.row] = one.shares
        return [one.only(one.context.budget) if chooses else one.proposal for one in grown]

    @property
    def _confidence(self) -> Confidence | None:
        return self.shape.confidence if isinstance(self.shape, Chain) else None

    def _shaping(self, context: Context) -> Shaping | None:
        return None if self.by_rule or isinstance(self.model, TransformedModel) else context.shaping

    def _follow(self, contexts: Sequence[Context]) -> None:
        """Bring the cache to the rows' texts."""
        if any(context.row in self._rows and not self._begins(context) for context in contexts):
            # Rows of another run: its numbers mean other texts.
            self._sequences, self._rows = None, []
        new = [context for context in contexts if context.row not in self._rows]
        if new:
            prompts = [list(context.tokens) for context in new]
            if self._sequences is None:
                self._sequences = self.model.start(prompts, self._asked)
            else:
                self._sequences.join(prompts)
            self._rows += [context.row for context in new]
        assert self._sequences is not None
        texts = {context.row: context.tokens for context in contexts}
        lengths, missing = [], []
        for i, row in enumerate(self._rows):
            cached = self._sequences.tokens(i)
            text = texts.get(row, cached)
            same = _common(cached, text)
            lengths.append(same)
            missing.append(list(text[same:]))
        if any(length < len(self._sequences.tokens(i)) for i, length in enumerate(lengths)):
            self._sequences.crop(lengths)
        if any(missing):
            self._sequences.extend(missing)

    def _begins(self, context: Context) -> bool:
        assert self._sequences is not None
        cached = self._sequences.tokens(self._rows.index(context.row))
        return tuple(cached[: context.n_prompt]) == tuple(context.tokens[: context.n_prompt])

    def _last(self, contexts: Sequence[Context]) -> list[torch.Tensor]:
        assert self._sequences is not None
        last = self._sequences.last.logits
        return [last[self._rows.index(context.row)] for context in contexts]

    def _score(self, grown: list[_Grown]) -> None:
        """Score what is new in each tree."""
        assert self._sequences is not None
        by_row = {one.context.row: one for one in grown}
        fill_positions(each for one in grown for each in one.positions(node for node, _, _ in one.waiting))
        trees = [by_row[row].proposal.tree if row in by_row else Tree() for row in self._rows]
        if isinstance(self.shape, Chain):
            new = [
                list(tree.tokens[-1:]) if row in by_row and by_row[row].waiting else []
                for row, tree in zip(self._rows, trees, strict=True)
            ]
            found: Sequence[Scores] = self._sequences.extend(new)
            for row, scores in zip(self._rows, found, strict=True):
                if row in by_row and by_row[row].waiting:
                    by_row[row].go_on({by_row[row].waiting[0][0]: scores.logits[-1]})
            return
        found = self._sequences.extend_tree(trees)
        for row, scores in zip(self._rows, found, strict=True):
            if row in by_row:
                logits = scores.logits
                by_row[row].go_on({node: logits[node] for node, _, _ in by_row[row].waiting})

    def learn(self, observed: Sequence[Observed]) -> None:
        """Fit the confidence of a chain; the cache follows when the next draft is wanted."""
        confidence = self._confidence
        for seen in observed:
            shares = self._shares.pop(seen.context.row, {})
            if confidence is not None:
                taken = set(seen.accepted)
                verified = [node for node in sorted(shares) if node in taken or node == len(taken)]
                confidence.saw([(shares[node], node in taken) for node in verified])

    def leave(self, rows: Sequence[int]) -> None:
        """Take rows out of the cache."""
        gone = set(rows)
        staying = [i for i, row in enumerate(self._rows) if row not in gone]
        if len(staying) < len(self._rows):
            self._rows = [self._rows[i] for i in staying]
            if self._rows and self._sequences is not None:
                self._sequences.select(staying)
            else:
                self._sequences = None
        for row in rows:
            self._shares.pop(row, None)


class _Grown:
    """One row's tree while it grows."""

    def __init__(self, context: Context, model: LanguageModel, shaping: Shaping | None, drawn: Drawn) -> None:
        self.context = context
        self._drawn = drawn
        self._n_sequences: dict[int, int] = {}
        """How often each node was drawn."""
        self._ranks: dict[int, tuple[int, ...]] = {}
        self._values: dict[int, float] = {}
        self.width = min(model.width, context.width)
        self.shaping = shaping
        self.proposal = Proposal()
        self.leaves: list[Leaf] = []
        self.waiting: list[tuple[int, float, float]] = []
        """Nodes whose distribution is wanted, with value and key."""
        self.shares: dict[int, float] = {}
        self._places = {-1: (context.state, context.left(0))}
        """For each node the constraint's state after it, and how many tokens are then left."""
        self._masks = context.row_masks
        self._eos_ids = model.eos_ids

    def begin(self, logits: torch.Tensor) -> None:
        """The text itself is the first leaf."""
        self._leaf(-1, 1.0, 0.0, logits)

    def positions(self, nodes: Iterable[int]) -> list[tuple[RowMasks, int, int]]:
        """Whose masks are wanted when these nodes become leaves."""
        return [(self._masks, *self._places[node]) for node in nodes]

    def _leaf(self, node: int, value: float, key: float, logits: torch.Tensor) -> None:
        allowed = self._masks.allowed(*self._places[node], self.width)
        leaf = Leaf.after(node, logits[: self.width], allowed, value, key, self.shaping)
        if leaf is not None:
            leaf.n_sequences = self._n_sequences.get(node, 1)
            leaf.ranks = self._ranks.get(node, ())
            self.leaves.append(leaf)

    def settle(self, by_rule: bool, least: float) -> None:
        """Enter the level's children in the tree."""
        self.waiting = []
        for leaf in self.leaves:
            if not leaf.drawn:
                continue
            tokens = tuple(leaf.drawn)
            group = Group(tokens) if by_rule else Group(tokens, self._drawn, leaf.probabilities)
            nodes = self.proposal.add(leaf.node, group)
            for rank, (token, node, key) in enumerate(zip(tokens, nodes, leaf.keys, strict=True)):
                self._n_sequences[node] = self._n_sequences.get(node, 0) + 1
                if self._n_sequences[node] > 1:
                    continue
                share = float(leaf.probabilities[token])
                self.shares[node] = share
                self._values[node] = leaf.value * share
                self._ranks[node] = (*leaf.ranks, rank)
                state, left = self._places[leaf.node]
                state = self._masks.advance(state, token)
                self._places[node] = state, left - 1
                if token not in self._eos_ids and state and share >= least:
                    self.waiting.append((node, leaf.value * share, key))
        self.leaves = []

    def best(self, n: int) -> set[int]:
        """The nodes of the highest values, parents before children."""
        return set(sorted(self._values, key=lambda node: (-self._values[node], node))[:n])

    def narrow(self, n: int) -> None:
        """Nothing grows on but the best nodes."""
        best = self.best(n)
        self.waiting = [each for each in self.waiting if each[0] in best]

    def only(self, n: int) -> Proposal:
        """The proposal's best nodes."""
        best = self.best(n)
        found, nodes = Proposal(), {-1: -1}
        for parent, groups in self.proposal.groups.items():
            for group in groups:
                children = {token: self.proposal.child(parent, token) for token in group.tokens}
                tokens = tuple(token for token, child in children.items() if child in best)
                if tokens:
                    added = found.add(nodes[parent], Group(tokens))
                    nodes |= {child: node for token, node in zip(tokens, added, strict=True)
                              if (child := children[token]) is not None}  # fmt: skip
        return found

    def go_on(self, logits: Mapping[int, torch.Tensor]) -> None:
        """The new nodes are leaves, with these scores after them."""
        for node, value, key in self.waiting:
            self._leaf(node, value, key, logits[node])


def check_ids(target: LanguageModel, draft: LanguageModel) -> None:
    """Raise `VocabularyError` where a draft model's ids are not the target's."""
    try:
        check_vocabulary(target, draft, "drafts")
    except VocabularyError as error:
        raise VocabularyError(
            f"the draft model's ids are not the target's: {error.what}",
            where="drafts",
            remedy="Draft with a model of the same tokenizer, or with guided.draft.OtherVocabulary.",
        ) from error


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    for i, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return i
    return min(len(left), len(right))
