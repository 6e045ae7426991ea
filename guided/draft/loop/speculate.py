"""Decoding with drafts: the loop that drafts, scores a tree of drafts in one pass, verifies, and goes on.

The output has the law of decoding token by token under the same model, constraint and seedless choice of tokens,
whatever the drafts propose; greedy output is the same tokens.  Rows of a batch have constraints of their own, accept
different numbers of tokens, and leave the batch when they end.

A row always has pending tokens: emitted, not yet seen by the model.  A pass feeds them with the draft tree behind them,
so that the scores after the last pending token and after every node come from one pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from guided.constraint.protocol import Constrains
from guided.draft.acceptance.lossy import HiddenAfter, Lossy
from guided.draft.acceptance.verify import Greedy, Sampled, Target, first_accepted
from guided.draft.drafter import Context, Drafter, Observed, needs_of
from guided.draft.loop.reshaping import Reshaping
from guided.draft.loop.rows import Plan, Row
from guided.draft.loop.statistics import Statistics
from guided.draft.masks import RowMasks
from guided.draft.models.shapes import Shaping, shaping_of
from guided.draft.policies.policy import Fixed, Policy, Round
from guided.draft.proposal import Proposal
from guided.errors import GuidedError
from guided.infer.chance import Chance, Random, chance_of
from guided.infer.distribution import distributions_of
from guided.lm.model import LanguageModel, Scores, Sequences

__all__ = ["Progress", "Speculated", "Watch", "speculate"]

Progress = Callable[[Statistics], None]
"""Called after each round with the counts so far; what it raises stops the run."""
Watch = Callable[[int, Sequence[int]], bool]
"""Called after each token with the row's number and its text so far, without the prompt; True ends the text there.

As a rule for stopping it is one of the text so far, so that drafts change nothing of what comes out."""


@dataclass(frozen=True)
class Speculated:
    """The text of one row."""

    tokens: tuple[int, ...]
    """Without the prompt; with the end-of-text id where it came."""
    finished: bool
    """True when an end-of-text id came, and not the limit of tokens or a stop."""
    logw: float | None
    """The log of the product, over all tokens, of the mass that the constraint left of the model's distribution: the
    importance weight of the text, for the model's own law under the constraint.  None where it was not asked for."""


def speculate(
    rng: Random,
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    constraints: Sequence[Constrains | None],
    drafter: Drafter | None = None,
    *,
    max_tokens: int = 256,
    greedy: bool = False,
    end_in_time: bool = True,
    weigh: bool = False,
    policy: Policy | None = None,
    lossy: Lossy | None = None,
    reshaping: Reshaping | None = None,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> tuple[list[Speculated], Statistics]:
    """Decode one text for each prompt, each under its own constraint (None: none).

    ``end_in_time`` forbids tokens after which the text could no longer end within ``max_tokens``, the end-of-text token
    counted; raises `LimitError` where no text fits.  ``weigh`` asks for importance weights: tokens that the constraint
    forces are then drafted, since their probability under the model counts, and not simply taken.  ``policy`` says how
    many nodes to draft, `Fixed` by default.  ``lossy`` accepts more drafts by another law than the target's, which is
    then not kept: it cannot be weighed.  Temperature, truncation and steering are the model's: see
    `guided.lm.transformed` and `guided.steer`; ``reshaping`` is for what belongs elsewhere, such as a truncation that
    sees allowed tokens only, and cannot be weighed either.  ``watch`` hears of every token, and may end a text.
    """
    if len(prompts) != len(constraints):
        raise GuidedError(
            f"{len(prompts)} prompts have {len(constraints)} constraints",
            remedy="Pass one constraint, or None, for each prompt.",
        )
    if lossy is not None and (weigh or greedy):
        raise GuidedError(
            "drafts accepted by another law can be neither weighed nor greedy",
            where="lossy",
            remedy="Leave out lossy, or weigh and greedy.",
        )
    if reshaping is not None and weigh:
        raise GuidedError(
            "weights are of the model's own distribution, which is reshaped here",
            where="weigh",
            remedy="Leave out one of weigh and reshaping.",
        )
    run = _Run(chance_of(rng), model, drafter, max_tokens, greedy, weigh, policy or Fixed(), lossy, reshaping, watch)
    rows = [
        Row(number, list(prompt), len(prompt), masks, masks.start)
        for number, (prompt, masks) in enumerate(
            (prompt, RowMasks(constraint, model.width, model.eos_ids, end_in_time))
            for prompt, constraint in zip(prompts, constraints, strict=True)
        )
    ]
    live = run.begin(rows)
    try:
        while live:
            live = run.round(live)
            if progress is not None:
                progress(run.statistics)
    except BaseException:
        # Drafts and policies outlive a run that was stopped, and the next one numbers its rows anew.
        run.forget([row.number for row in rows])
        raise
    return [
        Speculated(tuple(row.tokens[row.n_prompt :]), row.finished, row.logw if weigh else None) for row in rows
    ], run.statistics


class _Run:
    """What stays the same over the rounds of one call, and its counts."""

    def __init__(
        self,
        chance: Chance,
        model: LanguageModel,
        drafter: Drafter | None,
        max_tokens: int,
        greedy: bool,
        weigh: bool,
        policy: Policy,
        lossy: Lossy | None,
        reshaping: Reshaping | None,
        watch: Watch | None,
    ) -> None:
        self.chance = chance
        self.model = model
        self.drafter = drafter
        self.max_tokens = max_tokens
        self.greedy = greedy
        self.weigh = weigh
        self.policy = policy
        self.lossy = lossy
        self.reshaping = reshaping
        self.watch = watch
        self.statistics = Statistics(trees=model.can.tree)
        self.sequences: Sequences

    def begin(self, rows: Sequence[Row]) -> list[Row]:
        """Read the prompts and draw each row's first token; the rows that go on."""
        if not rows or self.max_tokens < 1:
            return []
        self.sequences = self.model.start([row.tokens for row in rows], needs_of(self.drafter, self.lossy))
        last = self.sequences.last
        for i, row in enumerate(rows):
            row.hidden = None if last.hidden is None else last.hidden[i]
            self._emit(row, self._target(row, last.logits[i], self._allowed(row)).draw(self.chance))
            self._count(tokens=1)
            self._force(row)
        return self._leave(rows)

    def round(self, rows: list[Row]) -> list[Row]:
        """One forward pass for all rows; those that go on."""
        began = time.perf_counter()
        contexts = [self._context(row, len(rows)) for row in rows]
        wanted = [i for i, context in enumerate(contexts) if context.budget > 0]
        proposals = [Proposal() for _ in rows]
        if self.drafter is not None and wanted:
            for i, proposal in zip(wanted, self.drafter.draft(self.chance, [contexts[i] for i in wanted]), strict=True):
                proposals[i] = proposal
        if self.weigh:
            for row, proposal in zip(rows, proposals, strict=True):
                proposal.add_chain(self._forced(row, self._most(row)))
        drafted = time.perf_counter()
        plans = [Plan.of(row, proposal, self._most(row), not self.model.can.tree) for row, proposal in zip(
            rows, proposals, strict=True
        )]  # fmt: skip
        planned = time.perf_counter()
        before_pass = self.model.calls.passes
        scores = self._score(plans)
        scored = time.perf_counter()
        # A state is carried on token by token, and read again where it was carried too far: no pass is one there.
        passes = 1 if self.model.can.crop else self.model.calls.passes - before_pass
        self._count(
            passes=passes, row_passes=passes * len(rows), drafted=sum(len(plan.states) for plan in plans),
            draft_seconds=drafted - began, constraint_seconds=planned - drafted, model_seconds=scored - planned,
        )  # fmt: skip
        observed, rounds = [], []
        for row, context, plan, score in zip(rows, contexts, plans, scores, strict=True):
            before = len(row.tokens)
            accepted, chosen = self._verify(row, plan, score)
            plan.keep = [*range(plan.n_pending), *(plan.n_pending + plan.index[node] for node in accepted)]
            emitted = tuple(row.tokens[before:])
            unseen = before - plan.n_pending
            observed.append(
                Observed(context, plan.proposal, tuple(accepted), emitted, plan.tree,
                         row.tokens[unseen - 1] if unseen else None, score.logits, score.layers)
            )  # fmt: skip
            rounds.append(
                Round(row.number, len(plan.states), len(accepted), len(emitted), len(rows),
                      (planned - began) / len(rows), scored - planned, chosen)
            )  # fmt: skip
        self._commit(plans)
        if self.drafter is not None:
            self.drafter.learn(observed)
        self.policy.saw(rounds)
        self._count(verify_seconds=time.perf_counter() - scored)
        return self._leave(rows)

    def _context(self, row: Row, batch: int) -> Context:
        depth = self._most(row)
        budget = self.policy.budget(row.number, batch) if self.drafter is not None and depth > 0 else 0
        return Context(
            row.number, row.tokens, row.n_prompt, row.masks.constraint, row.state, budget, len(row.pending), row.hidden,
            depth, self.model.width, self._shaping(row),
        )  # fmt: skip

    def _shaping(self, row: Row) -> Shaping | None:
        """What comes after the mask where tokens are drawn."""
        if self.greedy:
            return None
        reshaping = self.reshaping
        if reshaping is not None:
            return lambda logits: reshaping.after(row.number, row.tokens[row.n_prompt :], logits)
        return shaping_of(self.model)

    def _most(self, row: Row) -> int:
        """Draft tokens in a line that can still be accepted: one more is drawn after them."""
        return self.max_tokens - row.n_emitted - 1

    def _score(self, plans: list[Plan]) -> Sequence[Scores]:
        if self.model.can.tree:
            return self.sequences.extend_tree([plan.tree for plan in plans])
        return self.sequences.extend([plan.tree.tokens for plan in plans])

    def _commit(self, plans: list[Plan]) -> None:
        """Keep what was accepted in the model's caches."""
        if self.model.can.tree:
            self.sequences.keep([plan.keep for plan in plans])
        elif any(len(plan.keep) < len(plan.tree) for plan in plans):
            self.sequences.crop(
                [len(self.sequences.tokens(i)) - len(plan.tree) + len(plan.keep) for i, plan in enumerate(plans)]
            )

    def _verify(self, row: Row, plan: Plan, scores: Scores) -> tuple[list[int], tuple[int, ...]]:
        """Walk down the proposal; emits tokens, and returns the nodes accepted, and those of them that were a choice,
        the latter by their numbers among the nodes that were fed."""
        logits = scores.logits
        accepted: list[int] = []
        chosen: list[int] = []
        node, at = -1, plan.n_pending - 1
        row.pending = []
        while True:
            allowed = self._allowed(row)
            target = self._target(row, logits[at], allowed, plan.hidden_after(node, scores))
            groups = plan.proposal.groups.get(node, [])
            token = first_accepted(self.chance, target, groups)
            child = None if token is None else plan.proposal.child(node, token)
            if token is None:
                token = target.draw(self.chance)
            self._emit(row, token)
            self._count(tokens=1, accepted=int(child in plan.index))
            if child is None or child not in plan.index or row.ended or row.n_emitted >= self.max_tokens:
                break
            accepted.append(child)
            if allowed is None or np.count_nonzero(allowed) > 1:
                chosen.append(plan.index[child])
            row.pending = []
            node, at = child, plan.n_pending + plan.index[child]
        row.hidden = None if scores.hidden is None else scores.hidden[at]
        self._force(row)
        return accepted, tuple(chosen)

    def _allowed(self, row: Row) -> NDArray[np.bool_] | None:
        """``bool[V]``: the tokens that may come next; None: all."""
        began = time.perf_counter()
        allowed = row.masks.allowed(row.state, self.max_tokens - row.n_emitted)
        self._count(constraint_seconds=time.perf_counter() - began)
        return allowed

    def _target(
        self,
        row: Row,
        logits: torch.Tensor,
        allowed: NDArray[np.bool_] | None,
        after: HiddenAfter | None = None,
    ) -> Target:
        """The law of the row's next token, from the scores ``[V]`` after its last one."""
        emitted = row.tokens[row.n_prompt :]
        if self.reshaping is not None:
            logits = self.reshaping.before(row.number, emitted, logits)
            if self.reshaping.changes_all and allowed is not None:
                open_ = torch.from_numpy(allowed).to(logits.device)
                if bool(torch.isneginf(logits[open_]).all()):
                    raise self.reshaping.nothing_left(row.number, emitted, open_)
        if self.greedy:
            scores = logits.cpu().numpy()
            return Greedy(scores if allowed is None else np.where(allowed, scores, -np.inf))
        if self.reshaping is not None:
            if allowed is not None:
                logits = logits.masked_fill(torch.from_numpy(~allowed).to(logits.device), -torch.inf)
            logits = self.reshaping.after(row.number, emitted, logits)
        distribution = distributions_of(logits[None], self.model.width)[0]
        if allowed is not None:
            distribution = distribution.only(allowed)
            row.logw += distribution.log_mass
        if self.lossy is None or after is None:
            return Sampled(distribution)
        return self.lossy.target(distribution, after)

    def _force(self, row: Row) -> None:
        """Emit the tokens about which the constraint leaves no choice: the model need not be asked."""
        # What comes before the mask may forbid such a token, and is asked where the model is.
        if self.weigh or row.ended or (self.reshaping is not None and self.reshaping.changes_all):
            return
        began = time.perf_counter()
        before = row.n_emitted
        for token in self._forced(row, self.max_tokens - before):
            self._emit(row, token)
            if row.ended:
                break
        n = row.n_emitted - before
        self._count(tokens=n, forced=n, constraint_seconds=time.perf_counter() - began)

    def _emit(self, row: Row, token: int) -> None:
        row.emit(token, self.model.eos_ids)
        if self.watch is not None and self.watch(row.number, row.tokens[row.n_prompt :]):
            row.stopped = True

    def _forced(self, row: Row, most: int) -> list[int]:
        """The tokens that must come next, one after the other."""
        tokens: list[int] = []
        state = row.state
        while len(tokens) < most:
            token = row.masks.only_token(state, self.max_tokens - row.n_emitted - len(tokens))
            if token is None:
                break
            tokens.append(token)
            if token in self.model.eos_ids:
                break
            state = row.masks.advance(state, token)
        return tokens

    def _leave(self, rows: Sequence[Row]) -> list[Row]:
        """Take the rows that have ended out of the batch."""
        staying = [i for i, row in enumerate(rows) if not row.ended and row.n_emitted < self.max_tokens]
        if len(staying) < len(rows):
            self.forget([row.number for i, row in enumerate(rows) if i not in set(staying)])
            if staying:
                self.sequences.select(staying)
        return [rows[i] for i in staying]

    def forget(self, rows: Sequence[int]) -> None:
        """Tell the draft and the policy that rows have ended."""
        self.policy.leave(rows)
        if self.drafter is not None:
            self.drafter.leave(rows)

    def _count(self, **more: float) -> None:
        old = self.statistics
        self.statistics = replace(old, **{name: getattr(old, name) + value for name, value in more.items()})
