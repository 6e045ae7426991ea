"""Decoding with drafts: the loop that drafts, scores a tree of drafts in one pass, verifies, and goes on.

The output has the law of decoding token by token under the same model, constraint and seedless choice of tokens,
whatever the drafts propose; greedy output is the same tokens.  Rows of a batch have constraints of their own, accept
different numbers of tokens, and leave the batch when they end.

A row always has pending tokens: emitted, not yet seen by the model.  A pass feeds them with the draft tree behind them,
so that the scores after the last pending token and after every node come from one pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from guided.constraint.protocol import Constrains
from guided.draft.acceptance.block import verify_block
from guided.draft.acceptance.lossy import HiddenAfter, Lossy
from guided.draft.acceptance.verify import Greedy, Sampled, Target, first_accepted
from guided.draft.drafter import Context, Drafter, needs_of, reads_prompts, require_lines
from guided.draft.loop.reshaping import Reshaping
from guided.draft.loop.rows import Plan, Row, Walk
from guided.draft.loop.statistics import Statistics
from guided.draft.masks import RowMasks, fill_positions
from guided.draft.models.shapes import Shaping, shaping_of
from guided.draft.policies.policy import Fixed, Policy, Round
from guided.draft.proposal import Proposal
from guided.errors import GuidedError
from guided.infer.chance import Chance, Random, chance_of
from guided.infer.distribution import TokenDistribution, distributions_of
from guided.lm.model import LanguageModel, Scores, Sequences

__all__ = ["Progress", "Speculated", "Watch", "speculate"]

Progress = Callable[[Statistics], None]
"""Called after each round with the counts so far; what it raises stops the run."""
Watch = Callable[[int, Sequence[int]], bool]
"""Called after each token with the row's number and its text so far, without the prompt; True ends the text there.

As a rule for stopping it is one of the text so far, so that drafts change nothing of what comes out."""


@dataclass(frozen=True)
class Speculated:
    """The text of one row.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> (text,), _ = draft.speculate(0, model, [[0]], [None], draft.PromptLookup(), greedy=True, max_tokens=6)
    >>> text.tokens, text.finished  # six tokens, and no end
    ((1, 2, 0, 1, 2, 0), False)
    """

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
    masks: Sequence[RowMasks] | None = None,
    max_tokens: int = 256,
    greedy: bool = False,
    end_in_time: bool = True,
    weigh: bool = False,
    policy: Policy | None = None,
    lossy: Lossy | None = None,
    by_block: bool = False,
    reshaping: Reshaping | None = None,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> tuple[list[Speculated], Statistics]:
    """Decode one text for each prompt, each under its own constraint (None: none).

    ``end_in_time`` forbids tokens after which the text could no longer end within ``max_tokens``, the end-of-text token
    counted; raises `LimitError` where no text fits.  ``weigh`` asks for importance weights: tokens that the constraint
    forces are then drafted, since their probability under the model counts, and not simply taken.  ``policy`` says how
    many nodes to draft, `Fixed` by default.  ``lossy`` accepts more drafts by another law than the target's, which is
    then not kept: it cannot be weighed.  ``by_block`` verifies drafts that are lines as wholes, which keeps the law and
    more of drawn drafts (`guided.draft.acceptance.block`); greedy texts gain nothing by it.  Temperature, truncation
    and steering are the model's: see `guided.lm.transformed` and `guided.steer`; ``reshaping`` is for what belongs
    elsewhere, such as a truncation that sees allowed tokens only, and cannot be weighed either.  ``watch`` hears of
    every token, and may end a text.  ``masks`` are those of the constraints, where a steerer of the model asks for them
    as well.
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
    if lossy is not None and by_block:
        raise GuidedError(
            "drafts are accepted by another law one by one", where="by_block", remedy="Leave out lossy or by_block."
        )
    if by_block:
        require_lines(drafter)
    if reshaping is not None and weigh:
        raise GuidedError(
            "weights are of the model's own distribution, which is reshaped here",
            where="weigh",
            remedy="Leave out one of weigh and reshaping.",
        )
    run = _Run(chance_of(rng), model, drafter, max_tokens, greedy, weigh, policy or Fixed(), lossy, reshaping, watch)
    run.by_block = by_block and not greedy
    if masks is None:
        masks = [RowMasks(constraint, end_in_time=end_in_time) for constraint in constraints]
    rows = [
        Row(number, list(prompt), len(prompt), own, own.start)
        for number, (prompt, own) in enumerate(zip(prompts, masks, strict=True))
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
        self.by_block = False
        self.statistics = Statistics(trees=model.can.tree)
        self.sequences: Sequences

    def begin(self, rows: Sequence[Row]) -> list[Row]:
        """Read the prompts and draw each row's first token; the rows that go on."""
        if not rows or self.max_tokens < 1:
            return []
        self._fill((row.masks, row.state, self.max_tokens) for row in rows)
        for row in rows:
            row.masks.check_start(self.max_tokens)
        self._read(rows)
        last = self.sequences.last
        for i, row in enumerate(rows):
            row.hidden = None if last.hidden is None else last.hidden[i]
            self._emit(row, self._target(row, last.logits[i], self._allowed(row)).draw(self.chance))
            self._count(tokens=1)
        self._force(rows)
        return self._leave(rows)

    def _read(self, rows: Sequence[Row]) -> None:
        """Read the prompts, with the states after all of their tokens where the draft wants them."""
        needs = needs_of(self.drafter, self.lossy)
        if not reads_prompts(self.drafter) or self.model.can.encoder:
            self.sequences = self.model.start([row.tokens for row in rows], needs)
            return
        self.sequences = self.model.start([row.tokens[:1] for row in rows], needs)
        first = self.sequences.last.hidden
        rest = self.sequences.extend([row.tokens[1:] for row in rows])
        for i, row in enumerate(rows):
            following = rest[i].hidden
            if first is not None and following is not None:
                row.prompt_hidden = torch.cat([first[i : i + 1], following])[: row.n_prompt]

    def round(self, rows: list[Row]) -> list[Row]:
        """One forward pass for all rows; those that go on."""
        began = time.perf_counter()
        for row in rows:
            row.masks.next_round()
        contexts = [self._context(row, len(rows)) for row in rows]
        wanted = [i for i, context in enumerate(contexts) if context.budget > 0]
        proposals = [Proposal() for _ in rows]
        if self.drafter is not None and wanted:
            for i, proposal in zip(wanted, self.drafter.draft(self.chance, [contexts[i] for i in wanted]), strict=True):
                proposals[i] = proposal
        if self.weigh:
            chains = self._forced(rows, [self._most(row) for row in rows])
            for proposal, tokens in zip(proposals, chains, strict=True):
                proposal.add_chain(tokens)
        drafted = time.perf_counter()
        prompt_ids = range(self.model.width, self.model.width + self.model.can.prompt_tokens)
        plans = [
            Plan.of(row, proposal, self._most(row), not self.model.can.tree, prompt_ids)
            for row, proposal in zip(rows, proposals, strict=True)
        ]
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
        walks = [Walk(row, plan, score) for row, plan, score in zip(rows, plans, scores, strict=True)]
        self._verify(walks)
        self._force(rows)
        observed, rounds = [], []
        for walk, context in zip(walks, contexts, strict=True):
            row, plan, accepted = walk.row, walk.plan, walk.accepted
            plan.keep = [*range(plan.n_pending), *(plan.n_pending + plan.index[node] for node in accepted)]
            emitted = row.tokens[walk.begun :]
            observed.append(plan.observed(context, accepted, emitted, walk.scores))
            rounds.append(
                Round(row.number, len(plan.states), len(accepted), len(emitted), len(rows),
                      (planned - began) / len(rows), scored - planned, tuple(walk.chosen))
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
            depth, self.model.width, self._shaping(row), row.prompt_hidden, row.masks,
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

    def _verify(self, walks: Sequence[Walk]) -> None:
        """Walk down all proposals, a token of each row at a time; emits tokens."""
        going = [walk for walk in walks if not (self.by_block and self._verify_line(walk))]
        while going:
            self._fill((walk.row.masks, walk.row.state, self._left(walk.row)) for walk in going)
            going = [walk for walk in going if self._step(walk)]

    def _step(self, walk: Walk) -> bool:
        """Emit the next token of a row; True where it was drafted, so that the walk goes on behind it."""
        row, plan = walk.row, walk.plan
        row.pending = []
        allowed = self._allowed(row)
        target = self._target(row, walk.scores.logits[walk.at], allowed, plan.hidden_after(walk.node, walk.scores))
        token = first_accepted(self.chance, target, plan.proposal.groups.get(walk.node, []))
        child = None if token is None else plan.proposal.child(walk.node, token)
        if token is None:
            token = target.draw(self.chance)
        self._emit(row, token)
        self._count(tokens=1, accepted=int(child in plan.index))
        if child is None or child not in plan.index or row.ended or row.n_emitted >= self.max_tokens:
            row.hidden = None if walk.scores.hidden is None else walk.scores.hidden[walk.at]
            return False
        walk.go_to(child, chosen=_is_choice(allowed))
        return True

    def _verify_line(self, walk: Walk) -> bool:
        """Verify a line as a whole and emit what follows of it; False for other proposals, of which nothing is done."""
        row, plan = walk.row, walk.plan
        line = plan.line(self._most(row), self.model.eos_ids)
        if not line:
            return False
        fed = [node for node in line if node in plan.index]
        states = [row.state, *(plan.states[plan.index[node]] for node in fed)]
        lefts = [self._left(row) - n for n in range(len(states))]
        self._fill((row.masks, state, left) for state, left in zip(states, lefts, strict=True))
        masks = [row.masks.allowed(*place, self.model.width) for place in zip(states, lefts, strict=True)]
        tokens = [plan.proposal.token(node) for node in line]
        at = [plan.n_pending - 1, *(plan.n_pending + plan.index[node] for node in fed)]

        def law(n: int) -> TokenDistribution:
            text = [*row.tokens[row.n_prompt :], *tokens[:n]]
            return self._law(row, text, self._reshaped(row, text, walk.scores.logits[at[n]], masks[n]), masks[n])

        laws: list[TokenDistribution] = []
        for n in range(len(line)):
            try:
                laws.append(law(n))
            except GuidedError:  # Nothing may come at this place, which is an error only for a text that comes to it.
                if not n:
                    raise
                line = line[:n]
                break
        groups = [plan.proposal.groups[parent][0] for parent in (-1, *line[:-1])]
        kept = verify_block(self.chance, groups, laws)
        for n, node in enumerate(line[: kept.n]):
            row.pending = []
            row.logw += 0.0 if masks[n] is None else laws[n].log_mass
            self._emit(row, tokens[n])
            self._count(tokens=1, accepted=1)
            walk.go_to(node, chosen=_is_choice(masks[n]))
            if row.ended:
                break
        else:
            row.pending = []
            rest = kept.rest
            last = laws[kept.n] if rest is not None else law(kept.n)
            row.logw += 0.0 if masks[kept.n] is None else last.log_mass
            self._emit(row, self.chance.token(last if rest is None else rest))
            self._count(tokens=1)
        row.hidden = None if walk.scores.hidden is None else walk.scores.hidden[walk.at]
        return True

    def _left(self, row: Row) -> int:
        """Tokens to the limit."""
        return self.max_tokens - row.n_emitted

    def _fill(self, positions: Iterable[tuple[RowMasks, int, int]]) -> None:
        """Fill the masks of positions that are not known yet."""
        began = time.perf_counter()
        fill_positions(positions)
        self._count(constraint_seconds=time.perf_counter() - began)

    def _allowed(self, row: Row) -> NDArray[np.bool_] | None:
        """``bool[V]``: the tokens that may come next; None: all."""
        began = time.perf_counter()
        allowed = row.masks.allowed(row.state, self._left(row), self.model.width)
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
        logits = self._reshaped(row, emitted, logits, allowed)
        if self.greedy:
            scores = logits.cpu().numpy()
            return Greedy(scores if allowed is None else np.where(allowed, scores, -np.inf))
        distribution = self._law(row, emitted, logits, allowed)
        if allowed is not None:
            row.logw += distribution.log_mass
        if self.lossy is None or after is None:
            return Sampled(distribution)
        return self.lossy.target(distribution, after)

    def _reshaped(
        self, row: Row, emitted: Sequence[int], logits: torch.Tensor, allowed: NDArray[np.bool_] | None
    ) -> torch.Tensor:
        """The scores ``[V]`` after a text as they are before the mask."""
        if self.reshaping is not None:
            logits = self.reshaping.before(row.number, emitted, logits)
            if self.reshaping.changes_all and allowed is not None:
                open_ = torch.from_numpy(allowed).to(logits.device)
                if bool(torch.isneginf(logits[open_]).all()):
                    raise self.reshaping.nothing_left(row.number, emitted, open_)
        return logits

    def _law(
        self, row: Row, emitted: Sequence[int], logits: torch.Tensor, allowed: NDArray[np.bool_] | None
    ) -> TokenDistribution:
        """The law of the token after a text, from its scores before the mask."""
        if self.reshaping is not None:
            if allowed is not None:
                logits = logits.masked_fill(torch.from_numpy(~allowed).to(logits.device), -torch.inf)
            logits = self.reshaping.after(row.number, emitted, logits)
        distribution = distributions_of(logits[None], self.model.width)[0]
        return distribution if allowed is None else distribution.only(allowed)

    def _force(self, rows: Sequence[Row]) -> None:
        """Emit the tokens about which the constraints leave no choice: the model need not be asked."""
        # What comes before the mask may forbid such a token, and is asked where the model is.
        if self.weigh or (self.reshaping is not None and self.reshaping.changes_all):
            return
        chains = self._forced(rows, [0 if row.ended else self._left(row) for row in rows])
        for row, tokens in zip(rows, chains, strict=True):
            before = row.n_emitted
            for token in tokens:
                self._emit(row, token)
                if row.ended:
                    break
            self._count(tokens=row.n_emitted - before, forced=row.n_emitted - before)

    def _emit(self, row: Row, token: int) -> None:
        row.emit(token, self.model.eos_ids)
        if self.watch is not None and self.watch(row.number, row.tokens[row.n_prompt :]):
            row.stopped = True

    def _forced(self, rows: Sequence[Row], most: Sequence[int]) -> list[list[int]]:
        """For each row the tokens that must come next, one after the other, at most so many."""
        chains: list[list[int]] = [[] for _ in rows]
        states = [row.state for row in rows]
        going = [i for i, n in enumerate(most) if n > 0]
        while going:
            left = {i: self._left(rows[i]) - len(chains[i]) for i in going}
            self._fill((rows[i].masks, states[i], left[i]) for i in going)
            for i in list(going):
                token = rows[i].masks.only_token(states[i], left[i], self.model.width)
                if token is not None:
                    chains[i].append(token)
                    states[i] = rows[i].masks.advance(states[i], token)
                if token is None or token in self.model.eos_ids or len(chains[i]) >= most[i]:
                    going.remove(i)
        return chains

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


def _is_choice(allowed: NDArray[np.bool_] | None) -> bool:
    """Whether a mask leaves more than one token."""
    return allowed is None or int(np.count_nonzero(allowed)) > 1
