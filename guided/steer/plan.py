"""`Plan`: what steerers declare of a model, checked, and one step of them over what was supplied.

What runs the models is `guided.steer.steered`, and `guided.hf.steering` for `transformers`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from guided.lm.given import same_model
from guided.lm.model import LanguageModel, Needs, Scores
from guided.steer.declaration import AsGiven, Candidates, Declaration, Seen, Steerer, Tokens
from guided.steer.formulas.combining import candidates as likeliest
from guided.steer.layout import Layout, Place, arrange, check_abilities, check_vocabulary
from guided.steer.rows import BranchRows

__all__ = ["Look", "Plan", "look_in"]

Look = Callable[[Place, torch.Tensor | None], tuple[torch.Tensor | None, tuple[torch.Tensor, ...]]]
"""Hidden states ``[n, k, d]`` after candidates ``[n, k]``, if any, on a branch, and those of all tokens before."""


def look_in(runs: Sequence[BranchRows], rows: Sequence[int]) -> Look:
    """Looks ahead from the ends of these rows, one for each position that is steered."""

    def look(place: Place, ids: torch.Tensor | None) -> tuple[torch.Tensor | None, tuple[torch.Tensor, ...]]:
        run = runs[place.run]
        history = run.history(rows, place.prompt) if place.prompt in run.run.history else ()
        return None if ids is None else run.ahead(rows, place.prompt, ids), history

    return look


class Plan:
    """Steerers over a model: their declarations, checked; and how to apply them to one batch of positions."""

    def __init__(self, model: LanguageModel, steerers: Sequence[Steerer], *, same_tokenizer: bool = False) -> None:
        self.model = model
        self.steerers = tuple(steerers)
        check_vocabulary(model, model, "Stack")
        self.declarations = tuple(steerer.declare(model) for steerer in self.steerers)
        self.others: list[LanguageModel] = []
        """The other models that run, each once."""
        for steerer, declaration in zip(self.steerers, self.declarations, strict=True):
            for other in _models(declaration):
                check_vocabulary(model, other, type(steerer).__name__, same_tokenizer=same_tokenizer)
                if not same_model(other, model) and other not in self.others:
                    self.others.append(other)
            check_abilities(model, declaration, type(steerer).__name__)
        # Looked ahead on, or scored: either way an id that a model lacks cannot be asked about.
        self.shared_width = min([model.width, *(other.width for other in self.others)])
        self.reads_text = any(each.text or _rewards_text(each) for each in self.declarations)
        self.reads_prompt_end = any(_reads_prompt_end(each) for each in self.declarations)
        self.looks_ahead = arrange(model, self.declarations, Needs()).looks_ahead

    def layout(self, needs: Needs, *, with_base: bool = True) -> Layout:
        """Where everything runs when the model itself is asked for ``needs``."""
        return arrange(self.model, self.declarations, needs, with_base=with_base)

    def steer(
        self,
        logits: torch.Tensor,
        layout: Layout,
        answers: Sequence[Sequence[Scores]],
        texts: tuple[Tokens, ...],
        prompt_lengths: tuple[int, ...],
        look: Look | None = None,
        rows: tuple[int, ...] = (),
    ) -> torch.Tensor:
        """The steered logits ``[n, V]`` of ``n`` positions.

        ``answers[run][prompt]`` are the branches' scores, ``[n, ...]``; ``texts`` and ``prompt_lengths`` may be empty
        when `reads_text` is False, and ``look`` None when `looks_ahead` is; ``rows`` are those of `Seen`.
        """
        if not len(logits):
            return logits
        if self.shared_width < logits.shape[1]:
            logits = logits.clone()
            logits[:, self.shared_width :] = -math.inf
        for steerer, declaration, places, ahead in zip(
            self.steerers, self.declarations, layout.branches, layout.ahead, strict=True
        ):
            branches = tuple(
                _like(answers[place.run][place.prompt], branch.needs, logits)
                for place, branch in zip(places, declaration.branches, strict=True)
            )
            ids = rewards = hidden = None
            history: tuple[torch.Tensor, ...] = ()
            if declaration.candidates is not None:
                ids = likeliest(logits, declaration.candidates.k)
                rewards = _rewards(declaration.candidates, logits, ids, texts, prompt_lengths)
                if ahead is not None and look is not None:
                    after = _possible(logits, ids) if declaration.candidates.ahead is not None else None
                    hidden, history = look(ahead, after)
                    hidden = None if hidden is None else hidden.to(logits)
                    history = tuple(states.to(logits) for states in history)
            seen = Seen(branches, ids, rewards, hidden, history, texts, prompt_lengths, rows)
            logits = steerer.steer(logits, seen)
        return logits


def _models(declaration: Declaration) -> list[LanguageModel]:
    branches = list(declaration.branches)
    if declaration.candidates is not None and declaration.candidates.watched is not None:
        branches.append(declaration.candidates.watched)
    return [branch.model for branch in branches if branch.model is not None]


def _reads_prompt_end(declaration: Declaration) -> bool:
    """Whether a longer prompt is not the same as a longer text."""
    branches = list(declaration.branches)
    wanted = declaration.candidates
    if wanted is not None and wanted.watched is not None:
        branches.append(wanted.watched)
    return (
        declaration.prompt_end
        or (wanted is not None and wanted.reward is not None and not wanted.reward.prompt)
        or any(branch.prompt != AsGiven() for branch in branches)
        or any(branch.needs.own_prompts for branch in branches)
    )


def _rewards_text(declaration: Declaration) -> bool:
    return declaration.candidates is not None and declaration.candidates.reward is not None


def _like(scores: Scores, needs: Needs, logits: torch.Tensor) -> Scores:
    """What was asked for, of a run that may know more, in the dtype, on the device and in the width of the logits."""
    return Scores(
        _fitted(scores.logits, logits),
        {layer: _fitted(scores.layers[layer], logits) for layer in needs.layers},
        scores.hidden.to(logits) if needs.hidden and scores.hidden is not None else None,
    )


def _fitted(values: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    values = values.to(logits)
    width = logits.shape[1]
    if values.shape[1] == width:
        return values
    if values.shape[1] > width:
        return values[:, :width]
    return torch.nn.functional.pad(values, (0, width - values.shape[1]), value=-math.inf)


def _possible(logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """The candidates, with the first in place of those that are excluded: no model is asked about them."""
    return torch.where(torch.isneginf(logits.gather(-1, ids)), ids[:, :1], ids)


def _rewards(
    wanted: Candidates,
    logits: torch.Tensor,
    ids: torch.Tensor,
    texts: tuple[Tokens, ...],
    prompt_lengths: tuple[int, ...],
) -> torch.Tensor | None:
    if wanted.reward is None:
        return None
    possible = ~torch.isneginf(logits.gather(-1, ids))
    starts = [0 if wanted.reward.prompt else length for length in prompt_lengths]
    asked = [
        (*text[start:], token)
        for text, start, tokens, alive in zip(texts, starts, ids.tolist(), possible.tolist(), strict=True)
        for token, asked in zip(tokens, alive, strict=True)
        if asked
    ]
    values = torch.zeros(ids.shape, dtype=logits.dtype, device=logits.device)
    if asked:
        values[possible] = torch.tensor(wanted.reward.of(asked), dtype=logits.dtype, device=logits.device)
    return values
