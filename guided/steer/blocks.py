"""Controlled decoding by blocks: draw a few continuations of some tokens, keep the one worth most, and go on from it.

A search over a `LanguageModel` and a value of texts, not a function of logits; the model may be steered or transformed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from guided.constraint.protocol import Constrains
from guided.errors import GuidedError
from guided.lm.model import LanguageModel
from guided.steer.declaration import Tokens
from guided.steer.fields import checked_count
from guided.steer.masking import mask_and_ends
from guided.steer.rewards.text_reward import RewardError, TextReward, checked_rewards

__all__ = ["BlockResult", "Value", "best_of_blocks", "values_of"]

Value = TextReward | Callable[[list[Tokens]], Sequence[float] | torch.Tensor]
"""A reward of texts, or a function from token sequences, prompt included, to one number for each."""


@dataclass(frozen=True)
class BlockResult:
    """What `best_of_blocks` chose.

    >>> import numpy as np
    >>> from guided.lm import TableModel
    >>> from guided.steer import best_of_blocks
    >>> model = TableModel.of({}, otherwise=[0.5, 0.3, 0.2], eos_ids=[2])
    >>> def ones(texts):
    ...     return [float(text.count(1)) for text in texts]
    >>> chance = np.random.default_rng(0)
    >>> found = best_of_blocks(model, [0], ones, chance, n_blocks=4, block_tokens=2, max_new_tokens=6)
    >>> [len(values) for values in found.block_values]  # four candidates for each block
    [4]
    >>> found.value == found.tokens.count(1) == max(found.block_values[-1])
    True
    """

    tokens: Tokens
    """The generated tokens, the end-of-text id included if one was drawn."""
    log_probability: float
    """Natural logarithm of the model's probability of them, over all ids."""
    value: float
    """The value of the text."""
    block_values: tuple[tuple[float, ...], ...]
    """The values of all candidates of each block."""


def best_of_blocks(
    model: LanguageModel,
    prompt: Sequence[int],
    value: Value,
    rng: np.random.Generator,
    *,
    n_blocks: int = 8,
    block_tokens: int = 16,
    max_new_tokens: int = 256,
    constraint: Constrains | None = None,
    unit: Callable[[Tokens], bool] | None = None,
) -> BlockResult:
    """Block-wise best-of-K: Mudgal et al. 2023, *Controlled Decoding*, arXiv 2310.17022.

    Draws ``n_blocks`` continuations of ``block_tokens`` tokens (fewer where a text ends) and keeps the one of greatest
    value, the first of equals.  Repeats that until a text ends or ``max_new_tokens`` are reached.  ``n_blocks=1`` is
    plain sampling; blocks as long as the text are best-of-K.  Raises `RewardError`.

    ``unit`` says of a block's tokens so far whether a step of the text ends with them: blocks then end there, each
    candidate's at its own, and after ``block_tokens`` tokens at the latest.  With a process reward model as ``value``
    this is decoding step by step under its rewards (arXiv 2310.10080 does so with a search that also goes back).

    Under a ``constraint`` tokens are drawn from the allowed ones, as by `guided.infer.local`, and the text ends within
    ``max_new_tokens`` tokens, the end-of-text token counted.

    >>> import numpy as np
    >>> from guided.lm import TableModel
    >>> from guided.steer import best_of_blocks
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> def ones(texts):
    ...     return [float(text.count(1)) for text in texts]
    >>> def mean_value(n_blocks):
    ...     chance = np.random.default_rng(0)
    ...     found = [best_of_blocks(model, [0], ones, chance, n_blocks=n_blocks, max_new_tokens=6) for _ in range(9)]
    ...     return sum(each.value for each in found) / 9
    >>> mean_value(8) > mean_value(1)
    True
    """
    for name, number in (("n_blocks", n_blocks), ("block_tokens", block_tokens), ("max_new_tokens", max_new_tokens)):
        checked_count(name, number, of="best_of_blocks")
    masked, ends = mask_and_ends(model, constraint, max_new_tokens)
    given = tuple(int(token) for token in prompt)
    sequences = model.start([given])
    best: Tokens = given
    worth, total = float("nan"), 0.0
    history: list[tuple[float, ...]] = []
    while len(best) - len(given) < max_new_tokens and not _ended(best, len(given), ends):
        sequences.select([0] * n_blocks)
        blocks: list[list[int]] = [[] for _ in range(n_blocks)]
        gained = [0.0] * n_blocks
        logits = sequences.last.logits
        for _ in range(min(block_tokens, max_new_tokens - (len(best) - len(given)))):
            own = torch.log_softmax(logits.double(), dim=-1)
            if masked is not None:
                logits = masked.excluded(logits, [best[len(given) :] + tuple(block) for block in blocks])
            over = [_over(block, ends, unit) for block in blocks]
            if all(over):
                break
            drawn = _draw(logits, rng, over)
            for number, token in enumerate(drawn):
                if token is not None:
                    blocks[number].append(token)
                    gained[number] += float(own[number, token])
            sequences.extend([[] if token is None else [token] for token in drawn])
            logits = sequences.last.logits
        values = values_of(value, [best + tuple(block) for block in blocks], len(given))
        chosen = int(np.argmax(values))
        history.append(tuple(values))
        sequences.select([chosen])
        best, worth = best + tuple(blocks[chosen]), values[chosen]
        total += gained[chosen]
    return BlockResult(best[len(given) :], total, worth, tuple(history))


def values_of(value: Value, texts: list[Tokens], prompt_length: int) -> list[float]:
    """One number for each text; raises `RewardError`."""
    if isinstance(value, TextReward):
        return value.of([text if value.prompt else text[prompt_length:] for text in texts])
    try:
        answer = torch.as_tensor(value(texts), dtype=torch.float64)
    except RewardError:
        raise
    except Exception as error:
        raise RewardError(f"the value raised {type(error).__name__}: {error}", remedy="Mend it.") from error
    return [float(each) for each in checked_rewards(answer, (len(texts),))]


def _ended(text: Tokens, prompt_length: int, ends: AbstractSet[int]) -> bool:
    return len(text) > prompt_length and text[-1] in ends


def _over(block: Sequence[int], ends: AbstractSet[int], unit: Callable[[Tokens], bool] | None) -> bool:
    """Whether the text or its step ends with a block."""
    return bool(block) and (block[-1] in ends or (unit is not None and unit(tuple(block))))


def _draw(logits: torch.Tensor, rng: np.random.Generator, over: Sequence[bool]) -> list[int | None]:
    """One token for each row, None for those that are over; a row draws one uniform number."""
    probabilities: NDArray[np.float64] = torch.softmax(logits.double(), dim=-1).cpu().numpy()
    drawn: list[int | None] = []
    for row, done in zip(probabilities, over, strict=True):
        if done:
            drawn.append(None)
            continue
        sums = np.cumsum(row)
        if not sums[-1] > 0:
            raise GuidedError(
                "no token that may come has a probability",
                where="best_of_blocks",
                remedy="A steerer excludes all that the constraint allows: put Masked first in the stack.",
            )
        drawn.append(int(np.searchsorted(sums, rng.random() * sums[-1], side="right")))
    return drawn
