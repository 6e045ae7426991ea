"""`fit_preferences`: an autoregressive reward model from pairs of texts of which one is preferred (GenARM).

GenARM (Xu et al., 2024, arXiv 2410.08193), equations 5 and 7: the reward of a text is the log-probability that a
language model gives it, ``r(x, y) = sum_t log pi(y_t | x, y_<t)``, and the model is trained so that preferred texts
win: ``-log sigmoid(beta (r(x, y_w) - r(x, y_l)))``.  So each prefix has a reward for every next token, and
`guided.steer.Product` adds it to another model's law.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from guided.errors import GuidedError
from guided.lm.training import descend
from guided.steer.declaration import Tokens

__all__ = ["Preference", "fit_preferences", "preference_loss"]

Scoring = Callable[[torch.Tensor], torch.Tensor]
"""The scores ``[B, n, V]`` after each of the tokens ``int64[B, n]``, with gradients: what is trained."""


@dataclass(frozen=True)
class Preference:
    """A prompt of one token or more, and two texts behind it, each with its end token where it has ended.

    >>> from guided.steer import Preference
    >>> polite = Preference(prompt=(5,), preferred=(7, 2), other=(8, 2))
    >>> polite.preferred, polite.other
    ((7, 2), (8, 2))
    """

    prompt: Tokens
    preferred: Tokens
    other: Tokens


def fit_preferences(
    network: nn.Module,
    scoring: Scoring,
    pairs: Sequence[Preference],
    *,
    beta: float = 1.0,
    epochs: float = 1.0,
    batch: int = 8,
    rate: float = 1e-3,
    seed: int = 0,
    done: Callable[[int, float], bool] | None = None,
) -> float:
    """Train a reward model on preferences; the last averaged loss.

    ``scoring`` gives the scores of ``network``, whose parameters are trained by AdamW at a rate that falls linearly to
    0.  ``beta`` scales the difference of two rewards; the authors have 0.05, and tokens by the hundred.  ``done`` is
    told each step and its loss, and stops the training by returning True.  Raises `GuidedError` without pairs, and for
    prompts and texts of no tokens.

    >>> import torch
    >>> from guided.steer import Preference, fit_preferences
    >>> class Table(torch.nn.Module):  # a reward for each next token
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.rows = torch.nn.Parameter(torch.zeros(3, 3))
    ...     def forward(self, tokens):
    ...         return self.rows[tokens]
    >>> reward = Table()
    >>> _ = fit_preferences(reward, reward, [Preference((0,), (1,), (2,))], epochs=20, batch=1, rate=0.1)
    >>> bool(reward.rows[0, 1] > reward.rows[0, 2])
    True
    """
    if not pairs or not all(pair.prompt and pair.preferred and pair.other for pair in pairs):
        raise GuidedError(
            "there is no preference to learn from, or one without a prompt or text",
            remedy="Give pairs of texts of one token or more, behind a prompt of one token or more.",
        )
    return descend(
        network, len(pairs), lambda chosen: preference_loss(scoring, [pairs[number] for number in chosen], beta),
        epochs=epochs, batch=batch, rate=rate, betas=(0.9, 0.98), decay=0.0, rising=0.0, memory=0.9, seed=seed,
        done=done,
    )  # fmt: skip


def preference_loss(scoring: Scoring, pairs: Sequence[Preference], beta: float) -> torch.Tensor:
    """The mean of ``-log sigmoid(beta (r_w - r_l))``, with gradients."""
    rows = [(pair.prompt, text) for pair in pairs for text in (pair.preferred, pair.other)]
    longest = max(len(prompt) + len(text) for prompt, text in rows)
    tokens = torch.tensor([[*p, *t, *[0] * (longest - len(p) - len(t))] for p, t in rows], dtype=torch.long)
    laws = scoring(tokens[:, :-1]).log_softmax(-1)
    tokens = tokens.to(laws.device)
    came = laws.gather(-1, tokens[:, 1:, None])[..., 0]
    places = torch.arange(1, longest, device=laws.device)
    first = torch.tensor([len(prompt) for prompt, _ in rows], device=laws.device)[:, None]
    stop = torch.tensor([len(prompt) + len(text) for prompt, text in rows], device=laws.device)[:, None]
    rewards = torch.where((places >= first) & (places < stop), came, 0.0).sum(1)
    return -nn.functional.logsigmoid(beta * (rewards[0::2] - rewards[1::2])).mean()
