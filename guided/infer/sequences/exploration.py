"""`Exploration`: a trie of visited prefixes that asks a model and a potential what it does not know yet.

The samplers that learn from failures (`cars`, `asap`), walk back and forth (`mcmc`) or enumerate share this.  It draws
nothing.  The trie is that of one model, one prompt, one potential and one limit of tokens.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, UnsatisfiableError
from guided.infer.potentials.potential import Potential, as_potential
from guided.infer.result import Cost, Particle, particle_of
from guided.infer.sequences.visited import ROOT, UNKNOWN, Row, Visited
from guided.infer.weights import log_sum_exp
from guided.lm.given import language_model
from guided.lm.model import LanguageModel, Sequences

if TYPE_CHECKING:
    import torch

__all__ = ["MEMORY", "Exploration"]

MEMORY = 1 << 28
"""Bytes of remembered rows: 500 of a JSON string's inside in a vocabulary of 128,000."""

_SAME = 1e-3
"""Log probabilities after the prompt, which is read in the same way each time, differ by less where the model is the
same: float32 on another device is off by 1e-5."""

_CLOSE = 0.05
"""Shares of one model in batches of other shapes differ by less, in bfloat16 too."""


@dataclass
class _Counts:
    """What has been asked for by this exploration."""

    potential: int = 0
    tokens: int = 0


class Exploration:
    """The visited prefixes of one problem: a `Visited` trie, and how to find out more.

    The last of ``max_tokens`` tokens can only be the end of the text, so a prefix of ``max_tokens - 1`` tokens that
    may not end there has an empty row.
    """

    def __init__(
        self,
        model: LanguageModel,
        prompt: Sequence[int],
        potential: Potential[Any] | Constrains,
        *,
        max_tokens: int,
        memory: int = MEMORY,
        batch: int = 64,
        trie: Visited | None = None,
        trusted: bool = False,
    ) -> None:
        """``trie`` is what was learned earlier, compared with what is said now: at some prefixes at once, and at those
        that are read again.  ``trusted`` says that it comes from the same objects: the prompt is compared alone.

        Raises `GuidedError` for ``max_tokens`` or ``batch`` below 1, `UnsatisfiableError` where the potential forbids
        every text.
        """
        if max_tokens < 1:
            raise GuidedError(
                f"max_tokens is {max_tokens}", remedy="Allow at least 1: the end-of-text token counts as one."
            )
        if batch < 1:
            raise GuidedError(f"batch is {batch}", remedy="Read at least one prefix in a pass of the model.")
        self.model = model = language_model(model)
        self.prompt = tuple(int(token) for token in prompt)
        self.potential = as_potential(potential)
        self.max_tokens = max_tokens
        self.batch = batch
        self.vocabulary = self.potential.vocabulary
        self.eos_ids = self.potential.eos_ids
        self.trie = Visited(memory) if trie is None else trie
        self.counts = _Counts()
        self._passes, self._positions = model.calls.passes, model.calls.positions
        self._sequences: Sequences | None = None
        self._held: list[int] = []
        start = self.potential.start()
        if self.potential.checked(self.potential.prefix_at(start)) == -math.inf:
            raise UnsatisfiableError(
                f"{self.potential!r} forbids every text", remedy="Nothing can be sampled: loosen the constraint."
            )
        # States mean something to one potential only, and a trie that was learned earlier may bring another's.
        self.trie.states[:] = [start] + [UNKNOWN] * (len(self.trie) - 1)
        self._inherited = len(self.trie)
        """Nodes that somebody else has made: when they are read again, they must say what they said."""
        if self.trie.is_expanded(ROOT):
            self._recognise(() if trusted else range(1, self._inherited))

    def _recognise(self, nodes: Iterable[int]) -> None:
        """Raise `GuidedError` if model and potential do not say what the trie knows of the prompt and some of these."""
        self._compare(ROOT, self.log_probs([ROOT])[0])
        others = [node for node in nodes if self.trie.is_expanded(node)]
        some = others[:: max(1, -(-len(others) // self.batch))]
        for node, log_probs in zip(some, self.log_probs(some), strict=True):
            self._compare(node, log_probs)

    def _compare(self, node: int, log_probs: NDArray[Any]) -> None:
        trie = self.trie
        known = {token: float(trie.log_weight[child]) for token, child in trie.children(node).items()}
        weights = log_probs.astype(np.float64)
        masked = weights + self._logw_next(node)[: weights.size]
        kept = float(trie.log_kept[node])
        # Of all tokens where nothing or only failures taught, else of those that were allowed.
        masses = [(kept, log_sum_exp(masked)), (kept, log_sum_exp(weights))]
        alike = any(_alike(before, now, node) for before, now in masses)
        spoken = all(_alike(before, float(weights[token]), node) for token, before in known.items())
        if not (alike and spoken):
            raise GuidedError(
                f"what was learned belongs to another {'potential' if spoken else 'model'}",
                where=f"after the tokens {trie.tokens(node)[-8:]}",
                remedy="Pass it to calls with the same arguments only.",
            )

    @property
    def cost(self) -> Cost:
        """What has been asked for since this object was made."""
        calls = self.model.calls
        return Cost(
            constraint_calls=self.counts.potential,
            model_calls=calls.passes - self._passes,
            model_rows=calls.positions - self._positions,
            tokens=self.counts.tokens,
        )

    def state(self, node: int) -> Any:
        """The potential's state at a node, found again by its tokens where the trie came from elsewhere."""
        states, trie = self.trie.states, self.trie
        unknown = []
        while states[node] is UNKNOWN:
            unknown.append(node)
            node = int(trie.parent[node])
        for after in reversed(unknown):
            states[after], _ = self.step(states[node], int(trie.token[after]))
            node = after
        return states[node]

    def step(self, state: Any, token: int) -> tuple[Any, float]:
        """The potential's step, counted."""
        self.counts.potential += 1
        after, change = self.potential.step(state, token)
        return after, self.potential.checked(change)

    def rows(self, nodes: Sequence[int]) -> list[Row]:
        """The rows of these nodes: the potential's tokens with their weights; the model is asked in batches."""
        found = [self.trie.row(node) for node in nodes]
        missing = [i for i, row in enumerate(found) if row is None]
        for i, log_probs in zip(missing, self.log_probs([nodes[i] for i in missing]), strict=True):
            found[i] = self.expand(nodes[i], log_probs)
        return [row for row in found if row is not None]

    def expand(self, node: int, log_probs: NDArray[Any]) -> Row:
        """Give a node the row of the tokens that its potential allows, from the model's log-probabilities."""
        self._check_inherited(node, log_probs)
        allowed = self._allowed(node)
        size = log_probs.size
        if allowed is None:
            values = log_probs + self._logw_next(node)[:size]
            ids = np.flatnonzero(values > -math.inf).astype(np.int32)
            row = Row(ids, values[ids].astype(log_probs.dtype), size)
        else:
            ids = np.flatnonzero(allowed[:size] & (log_probs > -math.inf)).astype(np.int32)
            row = Row(ids, log_probs[ids], size)
        self.trie.expand(node, row)
        return row

    def expand_unmasked(self, node: int, log_probs: NDArray[Any]) -> Row:
        """Give a node the row of all tokens that the model may say, whatever its potential allows."""
        self._check_inherited(node, log_probs)
        ids = np.flatnonzero(log_probs > -math.inf).astype(np.int32)
        row = Row(ids, log_probs[ids], log_probs.size)
        self.trie.expand(node, row)
        return row

    def _check_inherited(self, node: int, log_probs: NDArray[Any]) -> None:
        if node < self._inherited and self.trie.is_expanded(node):
            self._compare(node, log_probs)

    def _allowed(self, node: int) -> NDArray[np.bool_] | None:
        """The tokens that a Boolean potential with masks allows after a node; None for others."""
        if not self.potential.boolean or self._is_last(node):
            return None
        masks = self.potential.allowed_each([self.state(node)])
        if masks is None:
            return None
        self.counts.potential += 1
        allowed: NDArray[np.bool_] = masks[0]
        return allowed

    def _logw_next(self, node: int) -> NDArray[np.float64]:
        state = self.state(node)
        self.counts.potential += 1
        if not self._is_last(node):
            return self.potential.logw_next_at(state)
        weights = np.full(self.vocabulary.size, -math.inf)
        for token in self.eos_ids:
            weights[token] = self.potential.step(state, token)[1]
        return weights

    def _is_last(self, node: int) -> bool:
        """Is the next token the last that there may be?"""
        return bool(self.trie.depth[node] >= self.max_tokens - 1)

    def child(self, node: int, row: Row, token: int) -> int:
        """The node after a token of an expanded node's row; an end-of-text token leads to a leaf of value 1."""
        found = self.trie.child(node, token)
        if found < 0:
            state, _ = self.step(self.state(node), token)
            found = self.trie.add(node, row, token, state)
        return found

    def is_end(self, node: int) -> bool:
        """Is this node a finished sequence?"""
        return int(self.trie.token[node]) in self.eos_ids

    def particle(self, node: int, *, logw: float = 0.0, finished: bool = True) -> Particle:
        """The tokens that lead to a node."""
        return particle_of(self.vocabulary, self.trie.tokens(node), logw=logw, finished=finished)

    # The model

    def log_probs(self, nodes: Sequence[int]) -> list[NDArray[Any]]:
        """The model's log-probabilities ``[vocabulary.size]`` after each node, in the precision of its logits.

        A pass reads at most `batch` distinct nodes.  Rows of the model's cache are forked from the nearest prefix that
        one of the last batch held, so that only new tokens are computed.
        """
        distinct = list(dict.fromkeys(nodes))
        found: dict[int, NDArray[Any]] = {}
        for start in range(0, len(distinct), self.batch):
            part = distinct[start : start + self.batch]
            found.update(zip(part, self._read(part), strict=True))
        return [found[node] for node in nodes]

    def _read(self, nodes: Sequence[int]) -> list[NDArray[Any]]:
        if self._sequences is None:
            self._sequences = self.model.start([self.prompt])
            self._held = [ROOT]
        sequences, trie = self._sequences, self.trie
        sources, common = self._nearest(nodes)
        # The first row always is the bare prompt, which nothing then has to compute again.
        sequences.select([0, *sources])
        paths = [trie.tokens(node) for node in nodes]
        kept = [int(trie.depth[node]) for node in common]
        lengths = [len(self.prompt) + n for n in (0, *kept)]
        if [len(sequences.tokens(row)) for row in range(len(sequences))] != lengths:
            sequences.crop(lengths)
        if any(len(path) > n for path, n in zip(paths, kept, strict=True)):
            sequences.extend([(), *(path[n:] for path, n in zip(paths, kept, strict=True))])
        self._held = [ROOT, *nodes]
        return self._normalised(sequences.last.logits[1:], paths)

    def _nearest(self, nodes: Sequence[int]) -> tuple[list[int], list[int]]:
        """For each node the row that shares most tokens with it, and the node up to which it does."""
        holders = {node: row for row, node in reversed(list(enumerate(self._held)))}
        complete = False
        sources, common = [], []
        for node in nodes:
            at = node if node in holders else int(self.trie.parent[node]) if node else ROOT
            if at not in holders and not complete:
                # Rows can be cropped, so each one also holds all prefixes of its node.
                for row, held in enumerate(self._held):
                    while held >= 0 and holders.setdefault(held, row) == row:
                        held = int(self.trie.parent[held])
                complete = True
            while at not in holders:
                at = int(self.trie.parent[at])
            sources.append(holders[at])
            common.append(at)
        return sources, common

    def _normalised(self, logits: torch.Tensor, paths: Sequence[tuple[int, ...]]) -> list[NDArray[Any]]:
        # Sums in float64, differences in the logits' own precision: a copy in float64 costs more than all the rest.
        # From the highest, so that a constant that all logits share takes no digits away.
        highest = logits.max(dim=-1, keepdim=True).values
        gaps = logits - highest
        sums = gaps.exp().sum(dim=-1, keepdim=True, dtype=highest.double().dtype).log()
        rows: NDArray[Any] = (gaps[:, : self.vocabulary.size] - sums.to(logits.dtype)).cpu().numpy()
        for path, norm in zip(paths, (highest + sums)[:, 0].tolist(), strict=True):
            if not math.isfinite(norm):
                raise GuidedError(
                    "the model's scores of the next token are no distribution: NaN, infinity or nothing possible",
                    where=f"after the tokens {path[-8:]}",
                    remedy="They came out of the model, a transform or a steering step: look there.",
                )
        return list(rows)


def _alike(before: float, now: float, node: int) -> bool:
    """Is this the same log probability, as exactly as it is read after the prompt, or after others?"""
    if before == now:
        return True
    return abs(before - now) <= _SAME if node == ROOT else abs(math.exp(before) - math.exp(now)) <= _CLOSE
