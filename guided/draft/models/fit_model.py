"""Training draft models on a target: `distil` beforehand, `Online` while serving.

`distil` is DistillSpec (Zhou et al., 2024, arXiv 2310.08461) where texts are the draft's or the target's own and the
loss is a divergence; with the cross entropy of the target's own texts it is direct alignment (Goel et al., 2024,
2403.00858) and the fine-tuning of FastDraft (2411.11055).  `Online` is OSD (Liu et al., 2024, arXiv 2310.07177): what
the target refuses is kept with the target's scores there, and the draft learns from it now and then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import nn

from guided.draft.drafter import Context, Drafter, Observed, needs_of, reads_prompts
from guided.draft.heads.losses import DraftLoss, draft_losses
from guided.draft.proposal import Proposal
from guided.errors import GuidedError
from guided.infer.chance import Chance
from guided.lm.model import LanguageModel, Needs
from guided.lm.training import descend

__all__ = ["Online", "Scoring", "distil"]

Scoring = Callable[[torch.Tensor], torch.Tensor]
"""The scores ``[B, n, V]`` after each of the tokens ``int64[B, n]``, with gradients: what is trained."""


def distil(
    network: nn.Module,
    scoring: Scoring,
    target: LanguageModel,
    prompts: Sequence[Sequence[int]],
    texts: Sequence[Sequence[int]],
    *,
    loss: DraftLoss = DraftLoss.FORWARD_KL,
    epochs: float = 1.0,
    batch: int = 8,
    rate: float = 1e-3,
    seed: int = 0,
    done: Callable[[int, float], bool] | None = None,
) -> float:
    """Train a draft model to be near the target wherever texts go after their prompts; the last averaged loss.

    ``scoring`` gives the scores of ``network``, whose parameters are trained by AdamW at a rate that falls linearly to
    0.  The target is asked once for each batch that is trained on.  ``done`` is told each step and its loss, and stops
    the training by returning True.  Raises `GuidedError` without texts, and for another number of texts than prompts.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> class Table(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.rows = torch.nn.Parameter(torch.zeros(4, 4))
    ...     def forward(self, tokens):
    ...         return self.rows[tokens]
    >>> network = Table()
    >>> _ = draft.distil(network, network, model, [[0]] * 8, [[1, 2, 0, 1, 2, 0]] * 8, epochs=10, rate=0.3)
    >>> network.rows[:3].argmax(-1).tolist()  # 0 1 2 0 ...
    [1, 2, 0]
    """
    rows = [(list(p), list(t)) for p, t in zip(prompts, texts, strict=False) if p and t]
    if not rows or len(prompts) != len(texts):
        raise GuidedError(
            f"{len(prompts)} prompts and {len(texts)} texts are nothing to learn from",
            remedy="Give a text of one token or more for each prompt.",
        )
    return descend(
        network, len(rows), lambda chosen: _loss(scoring, target, [rows[i] for i in chosen], loss),
        epochs=epochs, batch=batch, rate=rate, betas=(0.9, 0.98), decay=0.0, rising=0.0, memory=0.9, seed=seed,
        done=done,
    )  # fmt: skip


def _loss(
    scoring: Scoring, target: LanguageModel, rows: Sequence[tuple[list[int], list[int]]], loss: DraftLoss
) -> torch.Tensor:
    longest = max(len(prompt) + len(text) for prompt, text in rows)
    tokens = torch.tensor([[*p, *t, *[0] * (longest - len(p) - len(t))] for p, t in rows], dtype=torch.long)
    scores = scoring(tokens)
    own = torch.cat([scores[i, len(p) - 1 : len(p) + len(t) - 1] for i, (p, t) in enumerate(rows)])
    came = torch.cat([tokens[i, len(p) : len(p) + len(t)] for i, (p, t) in enumerate(rows)]).to(own.device)
    theirs = None
    if loss is not DraftLoss.TOKENS:
        sequences = target.start([prompt for prompt, _ in rows])
        last = sequences.last.logits
        rest = sequences.extend([text[:-1] for _, text in rows])
        parts = [torch.cat([last[i : i + 1], rest[i].logits]) for i in range(len(rows))]
        theirs = torch.cat(parts).to(own)[:, : own.shape[-1]]
    return draft_losses(loss, own, theirs, came).mean()


class Online:
    """A drafter whose network learns from what the target refuses of its drafts (OSD).

    For each refused draft the text up to it and the target's scores there are kept; once there are ``batch`` of them
    the network takes one step of AdamW by ``loss`` on these, and they are forgotten.  Texts are cut to their last
    ``window`` tokens.  ``drafter`` drafts with the network's present weights; its cache is made anew after each
    step, by leaving and joining.  The target's law is kept whatever is learned.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> class Table(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.rows = torch.nn.Parameter(torch.zeros(4, 4))
    ...     def forward(self, tokens):
    ...         return self.rows[tokens]
    >>> network = Table()
    >>> drafter = draft.Online(draft.Datastore.of([[0, 2, 1, 0, 2, 1, 0]]), network, network, batch=4, rate=0.3)
    >>> _ = draft.speculate(0, model, [[0]], [None], drafter, greedy=True, max_tokens=30)
    >>> network.rows[:3].argmax(-1).tolist()  # what the target would have said where it refused
    [1, 2, 0]
    """

    def __init__(
        self,
        drafter: Drafter,
        network: nn.Module,
        scoring: Scoring,
        *,
        loss: DraftLoss = DraftLoss.FORWARD_KL,
        batch: int = 16,
        rate: float = 1e-3,
        window: int = 512,
    ) -> None:
        if batch < 1 or window < 1:
            raise GuidedError(
                f"nothing is learned from {batch} texts of {window} tokens", remedy="Take one or more of both."
            )
        self.drafters = (drafter,)
        self.network, self.scoring = network.eval(), scoring
        self.loss, self.batch, self.window = loss, batch, window
        self.steps = 0
        """Steps taken so far."""
        self._optimizer = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=0.0)
        self._refused: list[tuple[list[int], torch.Tensor, int]] = []

    @property
    def needs(self) -> Needs:
        """What its drafter needs of the target."""
        return needs_of(*self.drafters)

    @property
    def reads_prompts(self) -> bool:
        """What its drafter needs of the prompts."""
        return reads_prompts(*self.drafters)

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """The drafter's."""
        return self.drafters[0].draft(chance, contexts)

    def learn(self, observed: Sequence[Observed]) -> None:
        """Keep what was refused, and take a step where there is enough of it."""
        self.drafters[0].learn(observed)
        for seen in observed:
            self._keep(seen)
        if len(self._refused) < self.batch:
            return
        kept, self._refused = self._refused, []
        longest = max(len(text) for text, _, _ in kept)
        tokens = torch.tensor([text + [0] * (longest - len(text)) for text, _, _ in kept], dtype=torch.long)
        self.network.train()
        with torch.enable_grad():
            scores = self.scoring(tokens)
            own = torch.stack([scores[i, len(text) - 1] for i, (text, _, _) in enumerate(kept)])
            target = torch.stack([logits for _, logits, _ in kept]).to(own)[:, : own.shape[-1]]
            came = torch.tensor([token for _, _, token in kept], device=own.device)
            found = draft_losses(self.loss, own, target, came).mean()
            self._optimizer.zero_grad(set_to_none=True)
            found.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
            self._optimizer.step()
        self.network.eval()
        self.steps += 1
        # What the old weights wrote into the draft's caches is not what the new ones would have written.
        self.drafters[0].leave([seen.context.row for seen in observed])

    def _keep(self, seen: Observed) -> None:
        """The place after the last accepted node, where something was drafted and refused."""
        last = seen.accepted[-1] if seen.accepted else -1
        if not seen.proposal.groups.get(last) or len(seen.emitted) <= len(seen.accepted):
            return
        children = {(parent, seen.tree.tokens[node]): node for node, parent in enumerate(seen.tree.parents)}
        at = seen.context.n_unseen - 1
        for token in seen.emitted[: len(seen.accepted)]:
            at = children[at, token]
        tokens = seen.context.tokens
        end = len(tokens) - len(seen.emitted) + len(seen.accepted)
        text = list(tokens[max(0, end - self.window) : end])
        self._refused.append((text, seen.logits[at].detach().float().cpu(), int(tokens[end])))

    def leave(self, rows: Sequence[int]) -> None:
        """Pass it on."""
        self.drafters[0].leave(rows)
