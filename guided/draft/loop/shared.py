"""`SharedDrafts`: drafts for a population of particles, scored ahead of time and shared by all that come by.

A particle draws its tokens from the model's own scores, and a draft only decides which scores are known before they are
asked for.  So every draw and every weight is what it would be without drafts, resampled or not, and what changes is how
often the model runs: not at all while every particle moves to a place that was scored with an earlier one.

Particles with equal tokens are one row; drafts after it are one tree, which all of them walk.  Where they part inside
the tree, the row forks.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from guided.constraint.protocol import Constrains
from guided.draft.drafter import Context, Drafter, Observed, require_no_needs
from guided.draft.masks import RowMasks
from guided.draft.models.shapes import shaping_of
from guided.draft.policies.policy import Policy, Round
from guided.draft.proposal import Proposal
from guided.infer.chance import Drawn
from guided.infer.distribution import TokenDistribution, distributions_of
from guided.infer.populations.prefixes import Branches, PrefixTree
from guided.infer.result import Cost
from guided.lm.model import LanguageModel, Scores, Tree

__all__ = ["SharedDrafts"]

HERE = -1
"""The place in a draft that is the row itself."""


@dataclass
class _Row:
    """One row of the model's batch, and what was scored after it in the last pass."""

    number: int
    """What drafts know it by."""
    tokens: list[int]
    """Prompt and text; grows with the row."""
    state: int
    """The constraint's state after the text."""
    pending: list[int] = field(default_factory=list)
    """The end of the text, as far as the model has not seen it."""
    context: Context | None = None
    proposal: Proposal = field(default_factory=Proposal)
    index: dict[int, int] = field(default_factory=dict)
    """For each node of the proposal that was fed, its number among those."""
    tree: Tree = field(default_factory=Tree)
    """What was fed: pending tokens, then nodes."""
    n_fed: int = 0
    """How many pending tokens that were."""
    logits: torch.Tensor | None = None

    def path(self, place: int) -> tuple[int, ...]:
        """The nodes of the proposal on the way to a place."""
        return () if place == HERE else self.proposal.tree.path(place)

    def at(self, place: int) -> int:
        """The number of a place among what was fed."""
        return self.n_fed - 1 if place == HERE else self.n_fed + self.index[place]


@dataclass(frozen=True)
class _Heir:
    """What a row of the next batch comes from."""

    node: int
    source: int
    """The row of the old batch."""
    path: tuple[int, ...]
    """The nodes of its proposal that are now text."""
    rest: tuple[int, ...]
    """Tokens after them that were not scored."""


class SharedDrafts(Branches):
    """`Branches` that score drafts along with what is asked for; made by `guided.draft.Drafting.branches`.

    ``constraint`` is what drafts know of the population's potential, ``eos_ids`` end a text, and nothing is scored that
    a text of ``max_tokens`` cannot reach.
    """

    def __init__(
        self,
        drafter: Drafter,
        policy: Policy,
        model: LanguageModel,
        prompt: Sequence[int],
        tree: PrefixTree,
        size: int,
        *,
        constraint: Constrains | None,
        eos_ids: Iterable[int],
        max_tokens: int,
    ) -> None:
        require_no_needs(drafter, "drafts for particles")
        super().__init__(model, prompt, tree, size)
        self._drafter, self._policy = drafter, policy
        self._constraint = constraint
        self._eos_ids = frozenset(eos_ids)
        self._masks = RowMasks(constraint, end_in_time=False)
        self._n_prompt = len(prompt)
        self._max_tokens = max_tokens
        # Drafts draw from a generator of their own: the particles' draws are those of a run without drafts.
        self._chance = Drawn(np.random.default_rng(0))
        self._batch = [_Row(0, list(prompt), self._masks.start)]
        self._n_numbers = 1
        self._places: dict[int, tuple[int, int]] = {0: (0, HERE)}
        """Where each present node is: its row, and its place in the row's draft."""
        self._known: dict[int, TokenDistribution] = {0: self._distributions[0]}
        self._drafted = self._met = 0
        self._free_moves = 0
        """Moves since the last pass."""
        self._seconds = (0.0, 0.0)
        """Of drafting, and of the last pass."""

    def after(self, node: int) -> TokenDistribution:
        """The distribution after a node of the last `move`; the same object for the same node."""
        return self._distribution(node, self._places[node])

    def _distribution(self, node: int, place: tuple[int, int]) -> TokenDistribution:
        found = self._known.get(node)
        if found is None:
            row = self._batch[place[0]]
            assert row.logits is not None
            found = self._known[node] = distributions_of(row.logits[row.at(place[1])][None], self._size)[0]
        return found

    def move(self, nodes: Iterable[int]) -> None:
        """Go on with these nodes; the model runs where one of them was not scored before."""
        wanted = list(dict.fromkeys(nodes))
        if not wanted or wanted == list(self._places):
            return
        found: dict[int, tuple[int, int]] = {}
        heirs: list[_Heir] = []
        for node in wanted:
            place = self._place(node)
            if place is not None:
                found[node] = place
                heirs.append(_Heir(node, place[0], self._batch[place[0]].path(place[1]), ()))
            else:
                row, above = self._places[self._tree.parents[node]]
                heirs.append(_Heir(node, row, self._batch[row].path(above), (self._tree.last[node],)))
        self._met += sum(node not in self._places for node in found)
        if len(found) == len(wanted):
            self._free_moves += 1
            self._places = found
        else:
            for node, place in found.items():
                self._distribution(node, place)
            self._go_on(heirs)
        self._known = {node: self._known[node] for node in wanted if node in self._known}

    def restore(self, nodes: Iterable[int]) -> None:
        """Go from the prompt alone to these nodes, in one pass."""
        wanted = list(dict.fromkeys(nodes))
        if wanted and wanted != [0]:
            self._go_on([_Heir(node, 0, (), self._tree.tokens(node)) for node in wanted])
            self._known = {node: self._known[node] for node in wanted if node in self._known}

    def close(self) -> None:
        """Let the draft forget the rows."""
        numbers = [row.number for row in self._batch]
        self._drafter.leave(numbers)
        self._policy.leave(numbers)

    @property
    def cost(self) -> Cost:
        """What the model has computed since the start, and what of it was drafted."""
        return super().cost + Cost(drafted=self._drafted, met=self._met)

    def _place(self, node: int) -> tuple[int, int] | None:
        """Where a node was scored."""
        found = self._places.get(node)
        if found is None:
            number, above = self._places[self._tree.parents[node]]
            row = self._batch[number]
            child = row.proposal.child(above, self._tree.last[node])
            found = None if child is None or child not in row.index else (number, child)
        return found

    def _go_on(self, heirs: list[_Heir]) -> None:
        """One pass: what was walked becomes text, and new drafts are scored behind it."""
        began = time.perf_counter()
        pending = self._bring(heirs)
        self._hand_over(heirs, pending)
        self._draft()
        drafted = time.perf_counter()
        for row, scores in zip(self._batch, self._feed(), strict=True):
            row.logits = scores.logits
        self._seconds = (drafted - began, time.perf_counter() - drafted)
        self._places = {heir.node: (number, HERE) for number, heir in enumerate(heirs)}
        self._free_moves = 0

    def _bring(self, heirs: Sequence[_Heir]) -> list[list[int]]:
        """Bring the model's rows to the heirs' texts as far as it has seen them; what it has not, for each heir."""
        fed = [self._fed(heir) for heir in heirs]
        texts = [
            [self._batch[heir.source].tree.tokens[at] for at in path] for heir, path in zip(heirs, fed, strict=True)
        ]
        cached: list[list[int]] = []
        paths: list[list[int]] = []
        for source, row in enumerate(self._batch):
            mine = [i for i, heir in enumerate(heirs) if heir.source == source]
            longest = max(mine, key=lambda i: len(fed[i]), default=None)
            paths.append([] if longest is None else fed[longest])
            line = list(row.tree.tokens)
            cached.append(line if not self._model.can.tree else [] if longest is None else texts[longest])
        if any(len(row.tree) for row in self._batch) and self._model.can.tree:
            self._sequences.keep(paths)
        sources = [heir.source for heir in heirs]
        self._sequences.select(sources)
        common = [_common(cached[source], text) for source, text in zip(sources, texts, strict=True)]
        excess = [len(cached[source]) - length for source, length in zip(sources, common, strict=True)]
        if any(excess):
            self._sequences.crop([len(self._sequences.tokens(i)) - more for i, more in enumerate(excess)])
        return [[*text[length:], *heir.rest] for heir, text, length in zip(heirs, texts, common, strict=True)]

    def _fed(self, heir: _Heir) -> list[int]:
        """The numbers in the fed tree of what an heir's row was fed and the heir keeps."""
        row = self._batch[heir.source]
        return [*range(row.n_fed), *(row.n_fed + row.index[node] for node in heir.path)]

    def _hand_over(self, heirs: Sequence[_Heir], pending: Sequence[list[int]]) -> None:
        """Make the new batch, and let draft and policy learn from the old one."""
        old, batch, observed = self._batch, [], []
        begun = {source: list(row.tokens) for source, row in enumerate(old)}
        first: set[int] = set()
        for heir, unseen in zip(heirs, pending, strict=True):
            row = old[heir.source]
            emitted = (*(row.proposal.token(node) for node in heir.path), *heir.rest)
            if heir.source in first:
                number, tokens = self._n_numbers, list(begun[heir.source])
                self._n_numbers += 1
            else:
                number, tokens = row.number, row.tokens
            state = row.state
            for token in emitted:
                tokens.append(token)
                state = self._masks.advance(state, token)
            batch.append(_Row(number, tokens, state, unseen))
            if row.context is not None:
                context = replace(row.context, row=number, tokens=tokens)
                observed.append(self._observed(row, context, heir.path, emitted, scores=heir.source not in first))
            first.add(heir.source)
        gone = [row for source, row in enumerate(old) if source not in first]
        observed += [self._observed(row, row.context, (), (), scores=True) for row in gone if row.context is not None]
        (drafting, running), free = self._seconds, self._free_moves
        rounds = [
            Round(row.number, len(row.index), free, free + 1, len(old), drafting / len(old), running)
            for row in old
            if row.context is not None
        ]
        self._batch = batch
        self._drafter.learn(observed)
        self._policy.saw(rounds)
        self._drafter.leave([row.number for row in gone])
        self._policy.leave([row.number for row in gone])

    def _observed(
        self, row: _Row, context: Context, path: tuple[int, ...], emitted: tuple[int, ...], *, scores: bool
    ) -> Observed:
        """What came of a row's draft; what the model said is told once."""
        assert row.logits is not None and row.context is not None
        unseen = len(row.context.tokens) - len(emitted) - row.n_fed
        before = row.context.tokens[unseen - 1] if scores and unseen > 0 else None
        tree, logits = (row.tree, row.logits) if scores else (Tree(), row.logits[:0])
        return Observed(context, row.proposal, path, emitted, tree, before, logits)

    def _draft(self) -> None:
        """Plan what each row feeds."""
        self._masks.next_round()
        contexts = []
        for row in self._batch:
            most = self._most(row)
            budget = self._policy.budget(row.number, len(self._batch)) if most > 0 else 0
            row.context = Context(
                row.number, row.tokens, self._n_prompt, self._constraint, row.state, budget, depth=most,
                width=self._model.width, shaping=shaping_of(self._model), masks=self._masks,
            )  # fmt: skip
            contexts.append(row.context)
        wanted = [i for i, context in enumerate(contexts) if context.budget > 0]
        if wanted:
            proposals = self._drafter.draft(self._chance, [contexts[i] for i in wanted])
            for i, proposal in zip(wanted, proposals, strict=True):
                self._batch[i].proposal = proposal
        for row in self._batch:
            row.proposal.add_chain(self._forced(row))
            self._plan(row)

    def _most(self, row: _Row) -> int:
        """How deep a draft is of use: what comes last is an end of text, after which nothing is asked."""
        return self._max_tokens - 1 - (len(row.tokens) - self._n_prompt)

    def _forced(self, row: _Row) -> list[int]:
        """The tokens about which the constraint leaves no choice; their weights have still to be known."""
        tokens: list[int] = []
        state, most = row.state, self._most(row)
        while len(tokens) < most:
            token = self._masks.only_token(state, 0, self._model.width)
            if token is None or token in self._eos_ids:
                break
            tokens.append(token)
            state = self._masks.advance(state, token)
        return tokens

    def _plan(self, row: _Row) -> None:
        """Leave out nodes that no particle can reach; for models without trees, all but each node's first child."""
        tokens, parents = list(row.pending), list(range(-1, len(row.pending) - 1))
        row.n_fed, most = len(tokens), self._most(row)
        states, depths, led = {HERE: row.state}, {HERE: 0}, set()
        proposed = row.proposal.tree
        for node, (token, parent) in enumerate(zip(proposed.tokens, proposed.parents, strict=True)):
            if parent not in states or depths[parent] >= most or token in self._eos_ids or token >= self._model.width:
                continue
            if parent in led and not self._model.can.tree:
                continue
            state = self._masks.advance(states[parent], token)
            if state == 0:
                continue
            led.add(parent)
            states[node], depths[node] = state, depths[parent] + 1
            row.index[node] = len(row.index)
            tokens.append(token)
            parents.append(row.n_fed - 1 if parent == HERE else row.n_fed + row.index[parent])
        row.tree = Tree(tuple(tokens), tuple(parents))
        self._drafted += len(row.index)

    def _feed(self) -> Sequence[Scores]:
        if self._model.can.tree:
            return self._sequences.extend_tree([row.tree for row in self._batch])
        return self._sequences.extend([row.tree.tokens for row in self._batch])


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    """How many tokens two texts begin with alike."""
    n = 0
    while n < min(len(left), len(right)) and left[n] == right[n]:
        n += 1
    return n
