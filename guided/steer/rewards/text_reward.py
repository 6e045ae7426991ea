"""`TextReward`: rewards of candidate continuations by any function of texts, batched and cached.

What a reward means is the method's business (`guided.steer.rewards.rewarded`); that it is a finite number for each
candidate is checked here.
"""

from __future__ import annotations

import enum
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import torch

from guided.errors import GuidedError
from guided.steer.fields import Checked, Count, Range

__all__ = ["OnFailure", "RewardError", "RewardWarning", "TextReward", "checked_rewards"]

CACHED = 1 << 16
"""Texts whose scores are remembered by default; the oldest go first."""


class RewardError(GuidedError):
    """A reward function raised, or did not return one finite number for each text.

    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import ARGS, RewardError, Stack, TextReward
    >>> silent = TextReward(lambda texts: [], str)
    >>> try:
    ...     next_logits(Stack([ARGS(silent)]).over(TableModel.of({}, otherwise=[0.5, 0.5])), [[0]])
    ... except RewardError as error:
    ...     print(str(error).splitlines()[0])
    the reward returned shape [0], not [2]. Return one number for each text, in order.
    """


class RewardWarning(UserWarning):
    """A reward failed and, as the caller asked, the step went on without it.

    >>> import warnings
    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import ARGS, OnFailure, RewardWarning, Stack, TextReward
    >>> silent = TextReward(lambda texts: [], str, on_failure=OnFailure.SKIP)
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     found = next_logits(Stack([ARGS(silent)]).over(TableModel.of({}, otherwise=[0.5, 0.5])), [[0]])
    >>> told[0].category is RewardWarning, found.softmax(-1).tolist()
    (True, [[0.5, 0.5]])
    """


class OnFailure(enum.Enum):
    """What happens when a reward function raises or returns something else than scores.

    >>> from guided.steer import OnFailure, TextReward
    >>> careful = TextReward(lambda texts: [0.0] * len(texts), str, on_failure=OnFailure.SKIP)
    >>> [each.value for each in OnFailure], careful.on_failure.value
    (['raise', 'skip'], 'skip')
    """

    RAISE = "raise"
    """`RewardError`."""
    SKIP = "skip"
    """The candidates of that call get reward 0; a `RewardWarning` says so and ``TextReward.failures`` counts it."""


@dataclass(frozen=True, eq=False)
class TextReward(Checked):
    """A reward that is a function of texts: ``score(["...", "..."])`` gives one number for each.

    ``text`` turns token ids into what ``score`` gets (a tokenizer's ``decode``); with ``prompt=False`` only the ids
    after the prompt.  All candidates of all rows of a step are scored in one call, each distinct text once; ``batch``
    splits large calls.  Scores are remembered by the token ids.
    """

    score: Callable[[list[str]], Any]
    text: Callable[[Sequence[int]], str]
    prompt: bool = True
    batch: Count | None = None
    on_failure: OnFailure = OnFailure.RAISE
    cached: Annotated[int, Range(0)] = CACHED
    _memo: dict[tuple[int, ...], float] = field(default_factory=dict, init=False, repr=False)
    _failures: list[str] = field(default_factory=list, init=False, repr=False)
    _lock: Any = field(default_factory=threading.Lock, init=False, repr=False)

    @property
    def failures(self) -> int:
        """How many calls of ``score`` failed so far."""
        return len(self._failures)

    def of(self, texts: Sequence[tuple[int, ...]]) -> list[float]:
        """One number for each sequence of ids; raises `RewardError`, unless failures are to be skipped."""
        with self._lock:
            found = {tokens: self._memo[tokens] for tokens in texts if tokens in self._memo}
        missing = [tokens for tokens in dict.fromkeys(texts) if tokens not in found]
        size = self.batch or max(len(missing), 1)
        for start in range(0, len(missing), size):
            part = missing[start : start + size]
            try:
                values = self._ask([self.text(tokens) for tokens in part])
            except RewardError as error:
                if self.on_failure is OnFailure.RAISE:
                    raise
                self._failures.append(str(error))
                warnings.warn(f"{error}; this step goes on without it", RewardWarning, stacklevel=2)
                found.update(dict.fromkeys(part, 0.0))
                continue
            found.update(zip(part, values, strict=True))
            self._remember(part, values)
        return [found[tokens] for tokens in texts]

    def _ask(self, texts: list[str]) -> list[float]:
        try:
            answer = self.score(texts)
        except Exception as error:
            raise RewardError(
                f"the reward raised {type(error).__name__}: {error}",
                where=f"a call with {len(texts)} texts",
                remedy="Mend it, or pass on_failure=OnFailure.SKIP to go on without it.",
            ) from error
        return [float(value) for value in checked_rewards(_as_tensor(answer), (len(texts),))]

    def _remember(self, texts: list[tuple[int, ...]], values: list[float]) -> None:
        with self._lock:
            self._memo.update(zip(texts, values, strict=True))
            while len(self._memo) > self.cached:
                del self._memo[next(iter(self._memo))]


def _as_tensor(answer: object) -> torch.Tensor:
    try:
        return torch.as_tensor(answer, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise RewardError(
            f"the reward returned {type(answer).__name__}, not numbers", remedy="Return one number for each text."
        ) from error


def checked_rewards(values: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """The values, if they are of this shape and neither NaN nor +inf; raises `RewardError`."""
    if tuple(values.shape) != shape:
        raise RewardError(
            f"the reward returned shape {list(values.shape)}, not {list(shape)}",
            remedy="Return one number for each text, in order.",
        )
    if bool((torch.isnan(values) | torch.isposinf(values)).any()):
        raise RewardError("the reward returned NaN or +inf", remedy="Return a number for each text.")
    return values
