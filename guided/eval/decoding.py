"""The one loop that every engine runs in, so that their times compare: model, mask, choice, step.

Written on the model's forward pass and its key-value cache, not on `generate`, because what is timed here must be the
same code for all.  One row; a model without a cache is asked about the whole text at every step.
"""

from __future__ import annotations

import inspect
import time
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from guided import tokenset
from guided.errors import LimitError
from guided.eval.engines.protocol import Matcher
from guided.hf import LoadedModel

__all__ = ["Decoded", "Draw", "NextLogits", "Stop", "decode"]


class Stop(Enum):
    """Why a text ended."""

    END = "end"
    """With an end-of-text token."""
    BUDGET = "budget"
    """No token was left, or too few for any whole text."""
    TIME = "time"
    NO_TOKEN = "no token"
    """The mask was empty: the engine ran into a dead end."""
    ERROR = "error"
    """The engine raised."""


@dataclass(frozen=True)
class Decoded:
    """A generated text and its times."""

    token_ids: tuple[int, ...]
    """Without the end-of-text token."""
    stop: Stop
    reason: str
    """What the engine said, for `Stop.ERROR` and a budget that fits no text."""
    first_token_at: float | None
    """``time.perf_counter()`` when the first token was chosen; None when there was none."""
    ended_at: float
    steps: int
    """Chosen tokens, an end-of-text token included."""
    mask_seconds: float
    """Time inside the engine, masks and steps, after the first token was chosen."""


@dataclass(frozen=True)
class Draw:
    """How a token is chosen: the likeliest, or one drawn at ``temperature`` by a generator of this ``seed``."""

    temperature: float | None = None
    seed: int = 0


class NextLogits:
    """A model's scores for the next token of one text: ``begin`` with the prompt, then ``step`` by token."""

    def __init__(self, loaded: LoadedModel) -> None:
        self._model = loaded.model
        self._device = loaded.model.device
        self._encoder_decoder = bool(loaded.model.config.is_encoder_decoder)
        parameters = inspect.signature(loaded.model.forward).parameters
        # Scores of the last position only, where the model can: those of a prompt of 2,000 tokens may take 1 GB.
        self._last_only: dict[str, Any] = {"logits_to_keep": 1} if "logits_to_keep" in parameters else {}
        self._fixed: dict[str, Any] = {}
        self._ids: list[int] = []
        self._cache: Any = None

    @torch.inference_mode()
    def begin(self, prompt: list[int]) -> torch.Tensor:
        """The scores ``float[1, width]`` after a prompt."""
        self._cache = None
        self._fixed = {}
        self._ids = prompt
        if self._encoder_decoder:
            encoder = self._model.get_encoder()
            self._fixed = {"encoder_outputs": encoder(input_ids=self._tensor(prompt))}
            config = self._model.generation_config
            start = config.decoder_start_token_id
            self._ids = [config.bos_token_id if start is None else start]
        return self._forward(self._ids)

    @torch.inference_mode()
    def step(self, token: int) -> torch.Tensor:
        """The scores after one more token."""
        self._ids = [*self._ids, token]
        return self._forward(self._ids if self._cache is None else [token])

    def _forward(self, ids: list[int]) -> torch.Tensor:
        name = "decoder_input_ids" if self._encoder_decoder else "input_ids"
        out = self._model(
            **{name: self._tensor(ids)}, **self._fixed, **self._last_only, past_key_values=self._cache, use_cache=True
        )
        self._cache = getattr(out, "past_key_values", None)
        logits: torch.Tensor = out.logits[:, -1]
        return logits

    def _tensor(self, ids: list[int]) -> torch.Tensor:
        return torch.tensor([ids], device=self._device)


def decode(
    logits: NextLogits,
    prompt: list[int],
    matcher: Matcher,
    *,
    eos_ids: tuple[int, ...],
    max_new_tokens: int,
    draw: Draw,
    seconds: float,
) -> Decoded:
    """Generate until the end of the text, the budget or the time, which is looked at between tokens.

    What an engine raises ends the text and is told in the result; what the model raises is raised.
    """
    began = time.perf_counter()
    generator = torch.Generator().manual_seed(draw.seed)
    tokens: list[int] = []
    first_token_at: float | None = None
    mask_seconds = 0.0
    steps = 0
    stop, reason = Stop.BUDGET, ""
    scores = logits.begin(prompt)
    row = np.zeros((1, tokenset.n_words(scores.shape[1])), np.uint32)
    while steps < max_new_tokens:
        if time.perf_counter() - began > seconds:
            stop = Stop.TIME
            break
        asked = time.perf_counter()
        try:
            matcher.fill_mask(row[0], max_new_tokens - steps)
        except LimitError as error:
            # Our engine: no whole text fits what is left, which is known before a token is wasted.
            reason = str(error)
            break
        except BaseException as error:
            stop, reason = Stop.ERROR, engine_error(error)
            break
        if first_token_at is not None:
            mask_seconds += time.perf_counter() - asked
        if not row.any():
            stop = Stop.NO_TOKEN
            break
        token = _choose(_masked(scores, row[0]), draw, generator)
        steps += 1
        if first_token_at is None:
            first_token_at = time.perf_counter()
        if token in eos_ids:
            stop = Stop.END
            break
        asked = time.perf_counter()
        try:
            matcher.advance(token)
        except BaseException as error:
            stop, reason = Stop.ERROR, engine_error(error)
            break
        mask_seconds += time.perf_counter() - asked
        tokens.append(token)
        scores = logits.step(token) if steps < max_new_tokens else scores
    return Decoded(tuple(tokens), stop, reason, first_token_at, time.perf_counter(), steps, mask_seconds)


def _masked(scores: torch.Tensor, row: NDArray[np.uint32]) -> torch.Tensor:
    """The scores ``float[1, width]`` with ``-inf`` where the bit is 0; plain, since it is the same for all."""
    forbidden = ~tokenset.flags(row, scores.shape[1])
    return scores.masked_fill(torch.from_numpy(forbidden).to(scores.device), -torch.inf)


def _choose(scores: torch.Tensor, draw: Draw, generator: torch.Generator) -> int:
    if draw.temperature is None:
        return int(scores.argmax(dim=-1))
    chances = torch.softmax(scores.float().cpu() / draw.temperature, dim=-1)
    return int(torch.multinomial(chances, 1, generator=generator))


def engine_error(error: BaseException) -> str:
    """What an engine raised, in a line; raises again what is no error of the engine but a wish of the user.

    A panic of a Rust engine arrives as a `BaseException` of its own.
    """
    if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit)):
        raise error
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines)}"[:MAX_REASON]


MAX_REASON = 500
"""Characters of a reason that are kept; grammars of peers print themselves whole."""
