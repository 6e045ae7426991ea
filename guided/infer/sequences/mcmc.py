"""Markov chains over whole sequences that keep the target, with masked sampling as the proposal.

Anaya Gonzalez et al., "Constrained sampling for language models should be easy: an MCMC perspective", NeurIPS 2025
(arXiv:2506.05754).  A move cuts the sequence at a place, draws the rest anew under the mask, and accepts it by
Metropolis and Hastings, where the proposal's probability is the sum over all places at which the cut could have been.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, LimitError
from guided.infer.chance import Chance, Random, chance_of
from guided.infer.potentials.potential import Potential
from guided.infer.result import Cost, Particle, Samples
from guided.infer.runs.checkpoint import Checkpoint, state_of
from guided.infer.runs.content import described
from guided.infer.runs.rounds import Round, RoundProgress
from guided.infer.sequences.exploration import MEMORY, Exploration
from guided.infer.sequences.masked import continued
from guided.infer.sequences.visited import ROOT
from guided.infer.weights import log_sum_exp
from guided.lm.model import LanguageModel

__all__ = ["Cut", "mcmc", "moved"]


class Cut(Enum):
    """Where a move cuts the sequence.

    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> chains = [infer.mcmc(0, model, [0], language, n=20, max_tokens=4, cut=cut) for cut in infer.Cut]
    >>> [set(chain.posterior()) for chain in chains] == [{"ab", "b"}] * 3
    True
    """

    RESTART = "restart"
    """At the prompt: proposals do not depend on where the chain is."""
    UNIFORM = "uniform"
    """Before any of its tokens, the end-of-text token included, each as likely as the others."""
    PRIORITY = "priority"
    """Before token i in proportion to ``exp(H_i) - 1``, H_i the entropy of the masked distribution that it was drawn
    from: never where there was no choice."""


def mcmc(
    rng: Random,
    model: LanguageModel,
    prompt: Sequence[int],
    potential: Potential[Any] | Constrains,
    *,
    n: int = 16,
    max_tokens: int = 256,
    steps: int = 10,
    cut: Cut = Cut.PRIORITY,
    batch: int = 16,
    max_attempts: int = 10_000,
    memory: int = MEMORY,
    progress: RoundProgress | None = None,
    save: str | Path | None = None,
    save_every: int = 1,
    resume: Checkpoint | str | Path | None = None,
) -> Samples:
    """Draw the last states of ``n`` independent chains of ``steps`` moves, each begun with masked sampling.

    The chains keep ``p(x) potential(x) / Z`` over texts of at most ``max_tokens`` tokens, the end-of-text token
    counted, and come to it as ``steps`` grow; 0 steps are masked sampling.  Potentials need not be Boolean.  A proposal
    that cannot end in time is rejected, and ``batch`` chains move side by side.  ``acceptance`` is the share of moves
    that were accepted, those to the same text included; ``log_ml`` is None: chains do not learn ``Z``.

    Every ``save_every`` moves a checkpoint is written to ``save``; ``resume`` goes on from one to ``steps`` moves,
    drawing what the saved run would have drawn.  Raises `LimitError` when ``max_attempts`` sequences under the mask did
    not give each chain one that ends in ``max_tokens``.
    """
    if n < 1 or steps < 0:
        raise GuidedError(f"{n} chains of {steps} steps", remedy="Ask for at least 1 chain and 0 steps.")
    exploration = Exploration(model, prompt, potential, max_tokens=max_tokens, memory=memory, batch=batch)
    chance = chance_of(rng)
    problem = {
        "sampler": "mcmc",
        "cut": cut.value,
        "n": n,
        "prompt": list(exploration.prompt),
        "max_tokens": max_tokens,
        "vocabulary": exploration.vocabulary.digest,
        "potential": described(exploration.potential),
    }
    if resume is None:
        chains = _Chains(exploration, chance, _first(exploration, chance, n, max_attempts))
    else:
        kept = resume if isinstance(resume, Checkpoint) else Checkpoint.load(resume)
        kept.check(problem)
        chains = _Chains.resumed(exploration, kept)
    while chains.steps < steps:
        chains.move(cut)
        if save is not None and (chains.steps % save_every == 0 or chains.steps == steps):
            chains.checkpoint(problem).save(save)
        if progress is not None:
            progress(Round(chains.steps, chains.states, chains.steps, steps, None, chains.cost))
    total = chains.steps * n
    return Samples(chains.states, chains.accepted / total if total else 1.0, None, chains.cost)


@dataclass
class _Chains:
    """Chains that move side by side: the leaf that each is at, and what was done so far."""

    exploration: Exploration
    chance: Chance
    nodes: list[int]
    steps: int = 0
    accepted: int = 0
    """Moves that were accepted, of all chains."""
    spent: Cost = field(default_factory=Cost)
    """What the run that was saved had cost."""

    @classmethod
    def resumed(cls, exploration: Exploration, kept: Checkpoint) -> _Chains:
        """The chains that were saved.  Raises `GuidedError` where they weigh something else now."""
        nodes = [visited(exploration, tokens) for tokens in kept.tokens]
        if not np.allclose(kept.logw, _weights(exploration, nodes), atol=_SAME):
            raise GuidedError(
                "the checkpoint was made with another model or potential: saved sequences weigh something else",
                remedy="Resume with the arguments of the run that was saved.",
            )
        return cls(exploration, kept.chance(), nodes, kept.step, int(kept.problem["accepted"]), kept.cost)

    @property
    def cost(self) -> Cost:
        """What all of it has cost."""
        return self.spent + self.exploration.cost

    @property
    def states(self) -> tuple[Particle, ...]:
        """The sequence that each chain is at."""
        return tuple(self.exploration.particle(node) for node in self.nodes)

    def move(self, cut: Cut) -> None:
        """Move each chain once."""
        batch = self.exploration.batch
        for start in range(0, len(self.nodes), batch):
            after, taken = moved(self.exploration, self.chance, self.nodes[start : start + batch], cut)
            self.nodes[start : start + batch] = after
            self.accepted += sum(taken)
        self.steps += 1

    def checkpoint(self, problem: Mapping[str, Any]) -> Checkpoint:
        """The chains as data, with what was asked for."""
        return Checkpoint(
            problem={**problem, "accepted": self.accepted},
            step=self.steps,
            tokens=tuple(self.exploration.trie.tokens(node) for node in self.nodes),
            logw=tuple(_weights(self.exploration, self.nodes)),
            twists=(),
            status=(),
            increments=(),
            resampled=(),
            cost=self.cost,
            rng=state_of(self.chance),
        )


_SAME = 0.1
"""The log weight of a sequence in batches of other shapes differs by less, in bfloat16 too."""


def _weights(exploration: Exploration, nodes: Sequence[int]) -> list[float]:
    """The log weight of each sequence."""
    trie = exploration.trie
    return [float(trie.log_weight[trie.path(node)[1:]].sum()) for node in nodes]


def _first(exploration: Exploration, chance: Chance, n: int, max_attempts: int) -> list[int]:
    """``n`` sequences of masked sampling; those that do not end in time are drawn again."""
    nodes = [-1] * n
    tried = 0
    while missing := [i for i, node in enumerate(nodes) if node < 0]:
        if tried >= max_attempts:
            raise LimitError(
                f"{tried} sequences under the mask, and {n - len(missing)} of {n} ended in {exploration.max_tokens}"
                " tokens",
                remedy="Raise max_tokens, or draw with cars, which learns what does not end.",
            )
        part = missing[: min(exploration.batch, max_attempts - tried)]
        tried += len(part)
        for i, node in zip(part, continued(exploration, chance, [ROOT] * len(part)), strict=True):
            if exploration.is_end(node):
                nodes[i] = node
    return nodes


def visited(exploration: Exploration, tokens: Sequence[int]) -> int:
    """The node of a sequence that ends; its prefixes are read.  Raises `GuidedError` if it has no weight."""
    node = ROOT
    for token in tokens:
        [row] = exploration.rows([node])
        place = int(np.searchsorted(row.ids, token))
        if exploration.is_end(node) or place == row.ids.size or int(row.ids[place]) != token:
            raise GuidedError(
                "a saved sequence has no weight here", remedy="Resume with the model and potential that were saved."
            )
        node = exploration.child(node, row, token)
    return node


Ratios = Callable[[Sequence[int], Sequence[int]], Sequence[float]]
"""By how much the log weights of new leaves are above those of old ones, besides what the exploration knows."""


def moved(
    exploration: Exploration, chance: Chance, nodes: Sequence[int], cut: Cut, ratios: Ratios | None = None
) -> tuple[list[int], list[bool]]:
    """One move of each chain from its leaf: where it is then, and whether what was proposed was accepted.

    ``ratios`` weighs texts by something else as well; the moves then keep the product.
    """
    trie = exploration.trie
    paths = [trie.path(node) for node in nodes]
    starts = [path[chance.index(np.exp(_cuts(exploration, path, cut)))] for path in paths]
    proposals = continued(exploration, chance, starts)
    after: list[int] = []
    taken: list[bool] = []
    others = [0.0] * len(nodes) if ratios is None else ratios(nodes, proposals)
    for node, path, proposal, other in zip(nodes, paths, proposals, others, strict=True):
        accept = proposal == node
        if not accept and exploration.is_end(proposal):
            log_ratio = _log_ratio(exploration, path, trie.path(proposal), cut) + other
            accept = log_ratio >= 0 or chance.index([math.exp(log_ratio), -math.expm1(log_ratio)]) == 0
        after.append(proposal if accept else node)
        taken.append(accept)
    return after, taken


def _cuts(exploration: Exploration, path: Sequence[int], cut: Cut) -> NDArray[np.float64]:
    """``float64[len(path) - 1]``: the log probability of cutting before each token."""
    n = len(path) - 1
    logs = np.full(n, -math.inf)
    if cut is Cut.RESTART:
        logs[0] = 0.0
        return logs
    if cut is Cut.PRIORITY:
        chosen = np.expm1(exploration.trie.entropy[path[:-1]])
        if chosen.any():
            with np.errstate(divide="ignore"):
                logs = np.log(chosen)
            return logs - log_sum_exp(logs)
    # Uniform; and where there was no choice anywhere, the only sequence is proposed again from any place.
    logs[:] = -math.log(n)
    return logs


def _log_ratio(exploration: Exploration, old: Sequence[int], new: Sequence[int], cut: Cut) -> float:
    """``log(target(new) q(old | new) / (target(old) q(new | old)))``."""
    common = next(i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b) - 1
    there = _log_proposal(exploration, old, new, common, cut)
    back = _log_proposal(exploration, new, old, common, cut)
    weights = exploration.trie.log_weight
    # Shared tokens have the same weight in both.
    gain = float(weights[new[common + 1 :]].sum() - weights[old[common + 1 :]].sum())
    return gain + back - there


def _log_proposal(exploration: Exploration, at: Sequence[int], to: Sequence[int], common: int, cut: Cut) -> float:
    """``log q(to | at)``: the sum over all cuts in the tokens that both share, the last of them right behind these."""
    trie = exploration.trie
    masked = trie.log_weight[to[1:]] - trie.log_kept[to[:-1]]
    suffixes = np.cumsum(masked[::-1])[::-1]
    return log_sum_exp(_cuts(exploration, at, cut)[: common + 1] + suffixes[: common + 1])
