"""`Particles`: a population while it runs, and the one step that every sequence sampler takes.

A step draws a token for each live particle, or ends it at the length limit, and weighs it.  When to resample, and what
the weights are for, is the samplers' concern: `guided.infer.smc`, `guided.infer.smc_steer`, `guided.infer.local`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np

from guided.constraint.protocol import Constrains
from guided.errors import UnsatisfiableError, VocabularyError
from guided.infer.chance import Chance
from guided.infer.distribution import TokenDistribution
from guided.infer.errors import PotentialError
from guided.infer.populations.prefixes import Branches, Drafts, PrefixTree
from guided.infer.populations.units import Units
from guided.infer.potentials.potential import ConstraintPotential, Potential, Product
from guided.infer.result import Cost, Particle, Population, particle_of
from guided.infer.runs.checkpoint import SHOWN, Checkpoint, answers, said, state_of
from guided.infer.runs.content import described
from guided.infer.runs.progress import Progress, Step
from guided.infer.token_samplers.token_sampler import Draw, TokenSampler
from guided.infer.weights import effective_sample_size, family_shares, log_mean_exp, log_sum_exp, relative_error
from guided.lm.given import language_model
from guided.lm.model import LanguageModel

__all__ = ["Particles", "Status"]

_DEAD_WEIGHT = -math.inf


class Status(Enum):
    """Where a particle stands."""

    LIVE = "live"
    ENDED = "ended"
    """An end-of-text id came; the weight stays."""
    DEAD = "dead"
    """The weight is 0 and stays so."""


_EACH = ("nodes", "lengths", "waiting", "states", "critic_states", "twists", "status", "increments", "founders")
"""What there is of each particle besides its weight."""

Increments = tuple[Any, float] | None
"""What each token added to a log weight, the last one first, linked so that copies share."""


class Particles:
    """Parallel lists, one entry a particle; `copy` replaces them all.

    Raises `ValueError` for counts below 1, `VocabularyError` for a critic over another vocabulary, `UnsatisfiableError`
    where the potential forbids every text.
    """

    def __init__(
        self,
        chance: Chance,
        model: LanguageModel,
        prompt: Sequence[int],
        potential: Potential[Any],
        n: int,
        max_tokens: int,
        *,
        critic: Potential[Any] | None = None,
        proposal: LanguageModel | None = None,
        draft: Drafts | None = None,
    ) -> None:
        for name, value in (("n", n), ("max_tokens", max_tokens)):
            if value < 1:
                raise ValueError(f"{name} is at least 1, not {value}")
        if critic is not None and critic.vocabulary != potential.vocabulary:
            raise VocabularyError(
                "the critic is over another vocabulary", remedy="Use the model's vocabulary for both."
            )
        start = potential.start()
        weight = potential.checked(potential.prefix_at(start))
        if weight == _DEAD_WEIGHT:
            raise UnsatisfiableError(
                f"{potential!r} forbids every text, the empty prefix included",
                remedy="Give a potential that some text can meet.",
            )
        self.chance = chance
        self.potential = potential
        self.critic = critic
        self.max_tokens = max_tokens
        self.prompt = list(prompt)
        self.tree = PrefixTree()
        size = potential.vocabulary.size
        self._eos = [token for token in potential.vocabulary.eos_ids if token < size]
        if draft is None:
            self._branches = Branches(model, prompt, self.tree, size)
        else:
            self._branches = draft.branches(
                language_model(model), prompt, self.tree, size,
                constraint=_constraint_in(potential), eos_ids=self._eos, max_tokens=max_tokens,
            )  # fmt: skip
        self._proposals = None if proposal is None else Branches(proposal, prompt, self.tree, size)
        self._prompted = [None if each is None else each.after(0) for each in (self._branches, self._proposals)]
        self.done = 0
        """Steps taken."""
        self.nodes = [0] * n
        self.lengths = [0] * n
        """Tokens of each particle."""
        self.waiting = [False] * n
        """Which live particles have ended a unit, and wait for the others to."""
        self.states: list[Any] = [start] * n
        self.critic_states: list[Any] = [None if critic is None else critic.start()] * n
        self.logw = [weight] * n
        self.twists = [0.0] * n
        self.status = [Status.LIVE] * n
        self.increments: list[Increments] = [None] * n
        self.founders = list(range(n))
        """Which particle of the first population each one comes from."""
        self._spent = Cost()

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def live(self) -> list[int]:
        """The particles that still grow."""
        return [i for i, status in enumerate(self.status) if status is Status.LIVE]

    @property
    def growing(self) -> list[int]:
        """The live particles that do not wait."""
        return [i for i in self.live if not self.waiting[i]]

    @property
    def cost(self) -> Cost:
        """All that was asked for so far, the model included."""
        cost = self._spent + self._branches.cost
        return cost if self._proposals is None else cost + self._proposals.cost

    def untwist(self) -> None:
        """Take the critic's passing opinions back out of the weights."""
        for i in self.live:
            self.logw[i] -= self.twists[i]
            self.twists[i] = 0.0

    def grow(
        self, sampler: TokenSampler, units: Units | None, *, twist: bool, progress: Progress | None = None
    ) -> tuple[list[int | None], list[float]]:
        """Take one step, or with ``units`` as many as it takes until each live particle has ended one; criticise.

        Gives what `step` gave last; ``progress`` is told of those before.
        """
        self.waiting = [False] * len(self)
        while True:
            tokens, added = self.step(sampler)
            if units is not None:
                for i in self.growing:
                    self.waiting[i] = units.ends(self.nodes[i])
            last = units is None or not self.growing
            self.criticise(tokens, twist=twist and last)
            # The critic may have ended the last one that grew.
            if last or not self.growing:
                if not last and twist:
                    self.twist()
                return tokens, added
            self.follow()
            if progress is not None:
                progress(self.report(tokens, added, self.logw, None))

    def step(self, sampler: TokenSampler, *, force_end: bool = True) -> tuple[list[int | None], list[float]]:
        """Draw a token for each growing particle and weigh it; at the length limit the only token is the end of text.

        Gives each particle's token, None for one that did not grow, and what the draw added to its log weight.
        ``force_end`` False draws the last token like all others.
        """
        growing = self.growing
        self.done += 1
        ending = [i for i in growing if force_end and self.lengths[i] + 1 == self.max_tokens]
        others = [i for i in growing if i not in set(ending)] if ending else growing
        drawn = dict(zip(ending, self._end(ending), strict=True))
        if others:
            drawn |= zip(others, self._draws(others, sampler), strict=True)
        tokens: list[int | None] = [None] * len(self)
        added = [0.0] * len(self)
        for i in growing:
            draw = drawn[i]
            tokens[i], added[i] = draw.token, draw.logw
            self.lengths[i] += 1
            self.nodes[i] = self.tree.child(self.nodes[i], draw.token)
            self.states[i] = draw.state
            self.increments[i] = (self.increments[i], draw.logw)
            self._add(i, draw.logw)
            if self.status[i] is Status.LIVE and draw.token in self.potential.eos_ids:
                self.status[i] = Status.ENDED
        self._spent += Cost(
            constraint_calls=sum(draw.calls for draw in drawn.values()),
            accepted=sum(draw.accepted for draw in drawn.values()),
            tested=sum(draw.tested for draw in drawn.values()),
            tokens=len(growing),
        )
        return tokens, added

    def _draws(self, live: list[int], sampler: TokenSampler) -> list[Draw]:
        nodes = [self.nodes[i] for i in live]
        return sampler.sample_each(
            self.chance,
            [self._branches.after(node) for node in nodes],
            self.potential,
            [self.states[i] for i in live],
            None if self._proposals is None else [self._proposals.after(node) for node in nodes],
            [_last(self.increments[i]) for i in live],
        )

    def _end(self, live: list[int]) -> list[Draw]:
        """End-of-text for all, by the model's probabilities where there are several; the weight makes up for it."""
        return [self._end_one(self._branches.after(self.nodes[i]), self.states[i]) for i in live]

    def _end_one(self, distribution: TokenDistribution, state: Any) -> Draw:
        if not self._eos:
            return Draw(int(distribution.weights.argmax()), _DEAD_WEIGHT, state, 0)
        after, value = self.potential.step(state, self._eos[0])
        logs = [distribution.logprob(token) for token in self._eos]
        total = log_sum_exp(logs)
        if total == _DEAD_WEIGHT or value == _DEAD_WEIGHT:
            return Draw(self._eos[0], _DEAD_WEIGHT, after, 1, 1, 0)
        token = self._eos[self.chance.index(np.exp(np.array(logs) - total))] if len(logs) > 1 else self._eos[0]
        return Draw(token, total + self.potential.checked(value), after, 1, 1, 1)

    def _add(self, i: int, change: float) -> None:
        self.logw[i] = self.logw[i] + change if change > _DEAD_WEIGHT else _DEAD_WEIGHT
        if self.logw[i] == _DEAD_WEIGHT:
            self.status[i] = Status.DEAD
            self.twists[i] = 0.0

    def criticise(self, tokens: Sequence[int | None], *, twist: bool) -> None:
        """Weigh what ended by the critic, for good; with ``twist`` what is live as well, until `untwist`.

        Raises `PotentialError` where the critic forbids a prefix that it allows as a whole text.
        """
        critic = self.critic
        if critic is None:
            return
        stepped = [i for i, token in enumerate(tokens) if token is not None]
        for i in stepped:
            token = tokens[i]
            if self.status[i] is Status.LIVE and token is not None:
                self.critic_states[i] = critic.advance(self.critic_states[i], token)
        ended = [i for i in stepped if self.status[i] is Status.ENDED]
        for i, value in zip(ended, critic.complete_each([self.critic_states[i] for i in ended]), strict=True):
            self._add(i, critic.checked(value))
        self._spent += Cost(constraint_calls=len(ended))
        if twist:
            self.twist()

    def twist(self) -> None:
        """Weigh what is live by the critic's opinion of prefixes, until `untwist`."""
        critic = self.critic
        if critic is None:
            return
        live = self.live
        values = critic.prefix_each([self.critic_states[i] for i in live])
        doomed = []
        for i, value in zip(live, values, strict=True):
            self.twists[i] = critic.checked(value)
            self._add(i, value)
            if self.status[i] is Status.DEAD:
                doomed.append(self.critic_states[i])
        for value in critic.complete_each(doomed):
            if value > _DEAD_WEIGHT:
                raise PotentialError(
                    f"{critic!r} forbids a prefix that it allows as a whole text",
                    remedy="prefix may be minus infinity only where every text that begins so has weight 0.",
                )
        self._spent += Cost(constraint_calls=len(live))

    def copy(self, ancestors: Sequence[int], logw: Sequence[float]) -> None:
        """Particle i becomes a copy of old particle ``ancestors[i]``, with another weight; its twist comes along."""
        for name in (
            "nodes",
            "lengths",
            "waiting",
            "states",
            "critic_states",
            "twists",
            "status",
            "increments",
            "founders",
        ):
            values = getattr(self, name)
            setattr(self, name, [values[i] for i in ancestors])
        self.logw = list(logw)

    def follow(self) -> None:
        """Let the models read what was drawn, once for each distinct prefix; nothing when no particle is live."""
        nodes = [self.nodes[i] for i in self.live]
        for branches in (self._branches, self._proposals):
            if branches is not None:
                branches.move(nodes)

    def close(self) -> None:
        """End the run: drafts outlive it, and forget its rows."""
        self._branches.close()

    def report(
        self,
        tokens: Sequence[int | None],
        added: Sequence[float],
        logw: Sequence[float],
        ancestors: Sequence[int] | None,
        parents: Sequence[int] | None = None,
    ) -> Step:
        """What a progress callback is told of the step just taken."""
        return Step(
            number=self.done,
            limit=self.max_tokens,
            tokens=tuple(tokens),
            increments=tuple(added),
            logw=tuple(logw),
            ess=effective_sample_size(logw),
            ancestors=None if ancestors is None else tuple(ancestors),
            finished=len(self) - len(self.live),
            cost=self.cost,
            parents=None if parents is None else tuple(parents),
        )

    def results(self) -> tuple[Particle, ...]:
        """The particles as results."""
        return tuple(
            particle_of(
                self.potential.vocabulary,
                self.tree.tokens(node),
                logw=weight,
                finished=status is Status.ENDED,
                increments=_unlinked(increments),
            )
            for node, weight, status, increments in zip(
                self.nodes, self.logw, self.status, self.increments, strict=True
            )
        )

    def population(self, resampled: Sequence[int]) -> Population:
        """The particles as a result, whose error is known by the families of the first particles."""
        return Population(
            self.results(),
            log_mean_exp(self.logw),
            self.cost,
            tuple(resampled),
            relative_error(family_shares(self.logw, self.founders)),
            tuple(self.founders),
        )

    def problem(self, **options: Any) -> dict[str, Any]:
        """What a checkpoint must have been made for: these options, described where they are objects, and more."""
        plain = (str, int, float)
        return {
            **{name: each if isinstance(each, plain) else described(each) for name, each in options.items()},
            "max_tokens": self.max_tokens,
            "prompt": self.prompt,
            "vocabulary": self.potential.vocabulary.digest,
            "potential": described(self.potential),
            "critic": described(self.critic),
            "proposal": self._proposals is not None,
        }

    def _seen(self) -> dict[str, Any]:
        """What models and potentials say of the prompt and of some live particles."""
        some = list({self.nodes[i]: i for i in self.live}.values())[:SHOWN]
        seen: dict[str, Any] = {"potential": answers(self.potential, [self.states[i] for i in some])}
        if self.critic is not None:
            seen["critic"] = answers(self.critic, [self.critic_states[i] for i in some])
        for name, branches, first in zip(
            ("model", "proposal"), (self._branches, self._proposals), self._prompted, strict=True
        ):
            if branches is not None and first is not None:
                seen[name] = said([first, *(branches.after(self.nodes[i]) for i in some)])
        return seen

    def checkpoint(self, problem: dict[str, Any], resampled: Sequence[int]) -> Checkpoint:
        """The population as data."""
        return Checkpoint(
            problem=problem,
            step=self.done,
            tokens=tuple(self.tree.tokens(node) for node in self.nodes),
            logw=tuple(self.logw),
            twists=tuple(self.twists),
            status=tuple(status.value for status in self.status),
            increments=tuple(_unlinked(increments) for increments in self.increments),
            resampled=tuple(resampled),
            cost=self.cost,
            rng=state_of(self.chance),
            seen=self._seen(),
            founders=tuple(self.founders),
        )

    def restore(self, kept: Checkpoint) -> None:
        """Become the population that was kept; states and scores are made again from its tokens.

        Raises `GuidedError` where they are not what they were.
        """
        self.chance = kept.chance()
        self.done = kept.step
        self._spent = kept.cost
        self.logw, self.twists = list(kept.logw), list(kept.twists)
        self.status = [Status(name) for name in kept.status]
        self.founders = list(kept.founders)
        self.nodes = [self.tree.insert(tokens) for tokens in kept.tokens]
        self.lengths = [len(tokens) for tokens in kept.tokens]
        self.waiting = [False] * len(self)
        self.increments = [_linked(values) for values in kept.increments]
        self.states = [None] * len(self)
        self.critic_states = [None] * len(self)
        states: dict[int, Any] = {}
        critics: dict[int, Any] = {}
        for i in self.live:
            node = self.nodes[i]
            if node not in states:
                tokens = self.tree.tokens(node)
                states[node] = self.potential.state_of(tokens)
                critics[node] = None if self.critic is None else self.critic.state_of(tokens)
            self.states[i], self.critic_states[i] = states[node], critics[node]
        for branches in (self._branches, self._proposals):
            if branches is not None:
                branches.restore([self.nodes[i] for i in self.live])
        for name, said_now in self._seen().items():
            kept.recognise(name, said_now)


def _constraint_in(potential: Potential[Any]) -> Constrains | None:
    """The constraint that a potential is, or has as a factor."""
    factors = potential.factors if isinstance(potential, Product) else (potential,)
    return next((factor.constraint for factor in factors if isinstance(factor, ConstraintPotential)), None)


def _last(increments: Increments) -> float:
    return -math.inf if increments is None else increments[1]


def _unlinked(increments: Increments) -> tuple[float, ...]:
    found = []
    while increments is not None:
        increments, value = increments
        found.append(value)
    return tuple(reversed(found))


def _linked(values: Sequence[float]) -> Increments:
    increments: Increments = None
    for value in values:
        increments = (increments, value)
    return increments
