"""One row of a run that decodes with drafts, and what it feeds to the model in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from guided.draft.acceptance.lossy import HiddenAfter
from guided.draft.drafter import Context, Observed
from guided.draft.masks import RowMasks
from guided.draft.proposal import Proposal
from guided.lm.model import Scores, Tree

__all__ = ["Plan", "Row", "Walk"]


@dataclass
class Row:
    """A text that grows."""

    number: int
    tokens: list[int]
    n_prompt: int
    masks: RowMasks
    state: int
    pending: list[int] = field(default_factory=list)
    hidden: torch.Tensor | None = None
    """After the last token that the model has seen, where it is needed."""
    prompt_hidden: torch.Tensor | None = None
    """After each token of the prompt, where that is needed."""
    logw: float = 0.0
    finished: bool = False
    stopped: bool = False
    """By whoever watches the run."""

    @property
    def ended(self) -> bool:
        """Does nothing come any more?"""
        return self.finished or self.stopped

    def emit(self, token: int, eos_ids: frozenset[int]) -> None:
        """Add a token that the model has not seen."""
        self.tokens.append(token)
        self.pending.append(token)
        self.state = self.masks.advance(self.state, token)
        self.finished = token in eos_ids

    @property
    def n_emitted(self) -> int:
        """Tokens of the text without its prompt."""
        return len(self.tokens) - self.n_prompt


@dataclass
class Plan:
    """What one row feeds in one pass: its pending tokens in a line, then the nodes of the proposal that can live.

    Behind these come the prompt tokens that the proposal asks for.
    """

    proposal: Proposal
    tree: Tree
    n_pending: int
    index: dict[int, int]
    """For each node of the proposal that is fed, its number among those."""
    states: list[int]
    """The constraint's state after each of them."""
    keep: list[int] = field(default_factory=list)
    prompted: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By node of the proposal the first of its prompt tokens in the tree, and the place after the last."""

    @classmethod
    def of(cls, row: Row, proposal: Proposal, most: int, line: bool, prompt_ids: range = range(0)) -> Plan:
        """Nodes deeper than ``most`` or dead under the constraint are not fed; ``line``: only first children are."""
        tokens = list(row.pending)
        parents = list(range(-1, len(tokens) - 1))
        n_pending = len(tokens)
        index: dict[int, int] = {}
        states: list[int] = []
        depths: list[int] = []
        tree = proposal.tree
        led: set[int] = set()
        for node, (token, parent) in enumerate(zip(tree.tokens, tree.parents, strict=True)):
            if parent >= 0 and parent not in index:
                continue
            above = index.get(parent, -1)
            depth = depths[above] + 1 if above >= 0 else 1
            if depth > most or (line and parent in led):
                continue
            state = row.masks.advance(states[above] if above >= 0 else row.state, token)
            if state == 0:
                continue
            led.add(parent)
            index[node] = len(states)
            states.append(state)
            depths.append(depth)
            tokens.append(token)
            parents.append(n_pending + above if above >= 0 else n_pending - 1)
        prompted: dict[int, tuple[int, int]] = {}
        for node, n in {} if line else proposal.prompted.items():
            if node < 0 or node in index:
                at, first = n_pending + index.get(node, -1), len(tokens)
                depth = depths[index[node]] if node >= 0 else 0
                for token in prompt_ids[: min(n, most - depth)]:
                    parents.append(at)
                    at = len(tokens)
                    tokens.append(token)
                prompted[node] = (first, len(tokens))
        return cls(proposal, Tree(tuple(tokens), tuple(parents)), n_pending, index, states, prompted=prompted)

    @property
    def n_verified(self) -> int:
        """The places of the tree that are no prompt tokens; they come first."""
        return self.n_pending + len(self.states)

    def observed(self, context: Context, accepted: Sequence[int], emitted: Sequence[int], scores: Scores) -> Observed:
        """What a draft is told of the pass; ``emitted`` are the tokens that the round added to the row."""
        n, tree, unseen = self.n_verified, self.tree, len(context.tokens) - len(emitted) - self.n_pending
        return Observed(
            context, self.proposal, tuple(accepted), tuple(emitted), Tree(tree.tokens[:n], tree.parents[:n]),
            context.tokens[unseen - 1] if unseen else None, scores.logits[:n],
            {layer: logits[:n] for layer, logits in scores.layers.items()},
            None if scores.hidden is None else scores.hidden[:n],
            {node: scores.logits[first:end] for node, (first, end) in self.prompted.items()},
        )  # fmt: skip

    def line(self, most: int, eos_ids: frozenset[int]) -> list[int] | None:
        """The nodes of a drafter's line as far as it can be verified; None where forced tokens stand beside it.

        The last node may be one that is not fed, since the constraint forbids it.
        """
        found: list[int] = []
        parent = -1
        while groups := self.proposal.groups.get(parent):
            if len(groups) > 1 or len(groups[0].tokens) > 1:
                return None
            (token,) = groups[0].tokens
            child = self.proposal.child(parent, token)
            if child is None or len(found) == most:
                break
            found.append(child)
            if child not in self.index or token in eos_ids:
                break
            parent = child
        return found

    def hidden_after(self, node: int, scores: Scores) -> HiddenAfter:
        """The model's state after a child of a node, by its token."""

        def after(token: int) -> torch.Tensor | None:
            child = self.proposal.child(node, token)
            if scores.hidden is None or child not in self.index:
                return None
            return scores.hidden[self.n_pending + self.index[child]]

        return after


@dataclass
class Walk:
    """How far the verification of a row's proposal has come."""

    row: Row
    plan: Plan
    scores: Scores
    accepted: list[int] = field(default_factory=list)
    """Nodes of the proposal."""
    chosen: list[int] = field(default_factory=list)
    """Those of them that were a choice, by their numbers among the nodes that were fed."""
    node: int = -1

    def __post_init__(self) -> None:
        self.begun = len(self.row.tokens)
        self.at = self.plan.n_pending - 1
        """The position whose scores are next."""

    def go_to(self, child: int, *, chosen: bool) -> None:
        """Accept a node that was fed."""
        number = self.plan.index[child]
        self.accepted.append(child)
        if chosen:
            self.chosen.append(number)
        self.node, self.at = child, self.plan.n_pending + number
