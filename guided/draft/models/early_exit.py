"""`EarlyExit`: the model's own first layers draft, with the exit and the length chosen for each round (DEL, 2025).

Every verification pass also says what each exit would have said at the places that the text went through: so the share
of tokens that an exit gets right is known for all exits, whichever was used.  The exit and length are taken that give
the most tokens for the layers that they run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from guided.draft.drafter import Context, Observed
from guided.draft.models.confidence import Confidence
from guided.draft.models.model import Model
from guided.draft.models.shapes import Chain, Leaf
from guided.draft.models.sublayers import Skippable
from guided.draft.proposal import Proposal
from guided.errors import GuidedError
from guided.infer.chance import Chance
from guided.lm.model import LanguageModel, Needs

__all__ = ["EarlyExit", "early_exits", "tokens_per_layer"]

PRIOR_PLACES = 4.0
"""Places that the expectation before any text weighs as much as."""
EXPECTED = 0.5
MEMORY = 100.0
"""Places after which what was seen counts half: shares follow the text."""


def tokens_per_layer(share: float, length: int, exit_cost: float, whole_cost: float) -> float:
    """Tokens expected of a round for the cost of its layers, each of ``length`` drafts being right by ``share``.

    >>> tokens_per_layer(0.5, 1, 1.0, 4.0)
    0.3
    """
    expected = length + 1.0 if share >= 1.0 else (1.0 - share ** (length + 1)) / (1.0 - share)
    return expected / (length * exit_cost + whole_cost)


class EarlyExit:
    """Drafts chains with the model that ends after some of the target's blocks.

    ``exits`` has such a model by its number of blocks, see `early_exits`; ``blocks`` is the target's number.  A pass
    costs its blocks and ``overhead``, for what a pass costs besides (embedding, head, starting it), in blocks.
    ``by_rule``: the likeliest tokens, for greedy decoding.  With ``confidence`` a draft also ends after a token that
    the exit itself held less likely.  Asks the target for its early scores, which costs a head for each exit and place.
    Raises `GuidedError` for exits that the model does not have.

    >>> import guided.hf
    >>> from guided import draft
    >>> from guided.lm import language_model
    >>> from guided.hf.skipped_layers import SkippedLayers
    >>> nano = guided.hf.load()
    >>> exits = draft.early_exits(SkippedLayers(language_model(nano)), [4])
    >>> drafter = draft.EarlyExit(exits, blocks=6, by_rule=True)
    >>> prompt = nano.tokenizer.encode("SELECT name FROM")
    >>> model = language_model(nano)
    >>> texts, counts = draft.speculate(0, model, [prompt], [None], drafter, greedy=True, max_tokens=8)
    >>> texts == draft.speculate(0, model, [prompt], [None], greedy=True, max_tokens=8)[0], counts.passes <= 8
    (True, True)
    """

    lines = True
    """Its proposals are lines."""

    def __init__(
        self,
        exits: Mapping[int, LanguageModel],
        blocks: int,
        *,
        longest: int = 8,
        by_rule: bool = False,
        overhead: float = 0.0,
        confidence: Confidence | None = None,
    ) -> None:
        if not exits or not all(0 < exit_ < blocks for exit_ in exits):
            raise GuidedError(
                f"{sorted(exits)} are no exits of a model of {blocks} blocks",
                remedy="Give one or more exits after the first block and before the last.",
            )
        self.blocks = blocks
        self.longest = longest
        self.by_rule = by_rule
        self.overhead = overhead
        self.needs = Needs(layers=tuple(sorted(exits)))
        self._models = {e: Model(m, Chain(longest, confidence), by_rule=by_rule) for e, m in exits.items()}
        self._right = dict.fromkeys(exits, 0.0)
        self._places = 0.0

    def share(self, exit_: int) -> float:
        """How often the exit is expected to be right."""
        return (self._right[exit_] + EXPECTED * PRIOR_PLACES) / (self._places + PRIOR_PLACES)

    def choice(self) -> tuple[int, int]:
        """The exit and the length for the next round; length 0 where drafting does not pay."""
        whole = self.blocks + self.overhead
        best, chosen = 1.0 / whole, (min(self._models), 0)
        for exit_ in self._models:
            share = self.share(exit_)
            for length in range(1, self.longest + 1):
                value = tokens_per_layer(share, length, exit_ + self.overhead, whole)
                if value > best:
                    best, chosen = value, (exit_, length)
        return chosen

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """A chain a row, all by one exit."""
        exit_, length = self.choice()
        if not length:
            return [Proposal() for _ in contexts]
        asked = [replace(context, budget=min(context.budget, length)) for context in contexts]
        return self._models[exit_].draft(chance, asked)

    def learn(self, observed: Sequence[Observed]) -> None:
        """Compare what each exit would have said with what the target took."""
        for model in self._models.values():
            model.learn(observed)
        for seen in observed:
            self._compare(seen)
        if self._places > MEMORY:
            self._right = {exit_: right / 2 for exit_, right in self._right.items()}
            self._places /= 2

    def _compare(self, seen: Observed) -> None:
        context, tree = seen.context, seen.tree
        children = {(parent, tree.tokens[node]): node for node, parent in enumerate(tree.parents)}
        at: int | None = context.n_unseen - 1
        state = context.state
        width = int(seen.logits.shape[1])
        masks = context.row_masks
        for n, token in enumerate(seen.emitted):
            if at is None:
                return
            allowed = masks.allowed(state, context.left(n), width)
            target = Leaf.after(at, seen.logits[at], allowed, shaping=context.shaping)
            for exit_ in self._models:
                own = Leaf.after(at, seen.layers[exit_][at], allowed, shaping=context.shaping)
                if own is not None and target is not None:
                    both = np.minimum(own.probabilities, target.probabilities)
                    self._right[exit_] += float(own.probabilities.argmax() == token if self.by_rule else both.sum())
            self._places += 1.0
            state = masks.advance(state, token)
            at = children.get((at, token))

    def leave(self, rows: Sequence[int]) -> None:
        """Pass it on."""
        for model in self._models.values():
            model.leave(rows)


def early_exits(model: Skippable, exits: Sequence[int]) -> dict[int, LanguageModel]:
    """The models that end after so many blocks.

    >>> import guided.hf
    >>> from guided import draft
    >>> from guided.lm import language_model
    >>> from guided.hf.skipped_layers import SkippedLayers
    >>> nano = guided.hf.load()
    >>> sorted(draft.early_exits(SkippedLayers(language_model(nano)), [2, 4]))
    [2, 4]
    """
    return {exit_: model.first(exit_) for exit_ in exits}
