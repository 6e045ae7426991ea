"""`custom_generate`: samplers of `guided.infer` inside transformers' own ``model.generate(..., custom_generate=...)``.

Transformers prepares prompts and settings as for any other way to decode, and calls this in place of its loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)
from transformers.generation.stopping_criteria import EosTokenCriteria, MaxLengthCriteria
from transformers.generation.utils import GenerateDecoderOnlyOutput, GenerateEncoderDecoderOutput

from guided.constraint.protocol import Constrains
from guided.errors import LimitError, UnsupportedError
from guided.hf.language_model import TransformersModel, _decoder_start
from guided.hf.sampling import Sampled, Sampler, run_sampler, stack_of
from guided.infer import Enumeration, Particle, Population, Potential, Ranked, Samples, smc
from guided.lm import LanguageModel, transformed
from guided.steer import Stack, Steerer

__all__ = ["CustomGenerate", "custom_generate"]


class CustomGenerate:
    """What ``custom_generate=`` takes; made by `custom_generate`."""

    def __init__(
        self,
        constraint: Constrains | Potential[Any],
        sampler: Sampler,
        n: int | None,
        seed: np.random.Generator | int | None,
        stack: Stack,
        options: dict[str, Any],
    ) -> None:
        self.constraint, self.sampler, self.n, self.stack, self.options = constraint, sampler, n, stack, options
        self.rng = np.random.default_rng(seed)
        self.results: list[Sampled] = []
        """What the sampler returned for each prompt of the last call: weights, log evidence, costs."""
        self._model: tuple[Any, LanguageModel] | None = None

    def __call__(
        self,
        model: Any,
        input_ids: torch.Tensor,
        logits_processor: Any = None,
        stopping_criteria: Any = None,
        generation_config: Any = None,
        synced_gpus: bool = False,
        streamer: Any = None,
        inputs_tensor: torch.Tensor | None = None,
        **model_kwargs: Any,
    ) -> Any:
        """Prompts, and after each of their repetitions a text drawn by weight, padded on the right: ``int64[n, len]``.

        Raises `LimitError` where no text was found, `UnsupportedError` for processors and criteria that would have to
        see texts while they grow.
        """
        if streamer is not None:
            raise UnsupportedError("whole texts are drawn, nothing can be streamed", remedy="Leave out the streamer.")
        if generation_config.num_beams != 1:
            raise UnsupportedError("a sampler has no beams", remedy="Leave out num_beams.")
        _check_criteria(stopping_criteria or ())
        ready = self._ready(model)
        truncation = _truncation(logits_processor or ())
        if truncation:
            ready = transformed(ready, **truncation)
        repeats = max(generation_config.num_return_sequences or 1, 1)
        prompts = _prompts(model, input_ids, inputs_tensor, model_kwargs, repeats)
        max_tokens = int(generation_config.max_length) - input_ids.shape[1]
        self.results = [
            run_sampler(
                self.sampler,
                self.rng,
                ready,
                prompt,
                self.constraint,
                n=self.n,
                max_tokens=max_tokens,
                options=self.options,
            )
            for prompt in prompts
        ]
        drawn = [particle.tokens for result in self.results for particle in draws(result, self.rng, repeats)]
        sequences = _padded(input_ids, drawn, generation_config)
        if not generation_config.return_dict_in_generate:
            return sequences
        output: Any = GenerateEncoderDecoderOutput if model.config.is_encoder_decoder else GenerateDecoderOnlyOutput
        return output(sequences=sequences)

    def _ready(self, model: Any) -> LanguageModel:
        if self._model is None or self._model[0] is not model:
            plain = TransformersModel(model, eos_ids=self.constraint.vocabulary.eos_ids)
            self._model = (model, self.stack.over(plain) if self.stack.steerers else plain)
        return self._model[1]


def custom_generate(
    constraint: Constrains | Potential[Any],
    *,
    sampler: Sampler = smc,
    n: int | None = None,
    seed: np.random.Generator | int | None = None,
    steer: Stack | Iterable[Steerer | Stack] | None = None,
    **options: Any,
) -> CustomGenerate:
    """Make what ``model.generate(..., custom_generate=custom_generate(constraint))`` decodes with.

    ``constraint`` is compiled, or any `Potential`; ``n`` is the sampler's number of particles for each prompt, of which
    ``num_return_sequences`` are drawn by weight.  With ``do_sample=True`` the temperature, top-k, top-p and min-p of
    the generation configuration shape the model's distribution (where nothing is said, transformers may cut it to the
    50 likeliest tokens: pass ``top_k=0``); else it is the model's own.  ``options`` go to the sampler.  The result's
    `results` hold what it returned.
    """
    stack = Stack() if steer is None else stack_of(steer)
    return CustomGenerate(constraint, sampler, n, seed, stack, dict(options))


def draws(result: Sampled, rng: np.random.Generator, n: int) -> list[Particle]:
    """``n`` finished sequences of a result, by weight where it has weights; `LimitError` where none finished."""
    if isinstance(result, Ranked):
        # A ranking says which is better, not how often: its best ones, in turn.
        finished = [particle for particle in result.particles if particle.finished]
        return [finished[i % len(finished)] for i in range(n)]
    if isinstance(result, Enumeration):
        return [result.particles[i] for i in rng.choice(len(result.particles), n, p=result.probabilities)]
    weights = result.weights if isinstance(result, Population) else np.ones(len(result))
    weights = weights * np.array([particle.finished for particle in result.particles], np.float64)
    total = float(weights.sum())
    if not total > 0:
        raise LimitError(
            "the sampler found no whole text within the budget", remedy="Raise max_new_tokens or the number n."
        )
    if isinstance(result, Samples) and n <= np.count_nonzero(weights):
        # Samples count the same and are in random order already: none is used twice while there are others.
        return [particle for particle in result.particles if particle.finished][:n]
    return [result.particles[i] for i in rng.choice(len(weights), n, p=weights / total)]


def _check_criteria(criteria: Sequence[Any]) -> None:
    for criterion in criteria:
        if not isinstance(criterion, (EosTokenCriteria, MaxLengthCriteria)):
            raise UnsupportedError(
                f"{type(criterion).__name__} would cut texts, and their weights would be wrong",
                where="custom_generate",
                remedy="Leave it out; save= and progress= of the sampler can stop a run.",
            )


def _truncation(processors: LogitsProcessorList | Sequence[Any]) -> dict[str, Any]:
    """The settings that these warpers hold."""
    found: dict[str, Any] = {}
    order: list[str] = []
    for processor in processors:
        for kind, name in (
            (TemperatureLogitsWarper, "temperature"),
            (TopKLogitsWarper, "top_k"),
            (TopPLogitsWarper, "top_p"),
            (MinPLogitsWarper, "min_p"),
        ):
            if isinstance(processor, kind):
                found[name] = getattr(processor, name)
                order.append(name)
                break
        else:
            raise UnsupportedError(
                f"a sampler cannot apply {type(processor).__name__}",
                where="custom_generate",
                remedy="Steer with steer=[...], and constrain with the grammar.",
            )
    if order != sorted(order, key=["temperature", "top_k", "top_p", "min_p"].index):
        raise UnsupportedError(
            f"the warpers are in the order {', '.join(order)}", remedy="Put temperature, top-k, top-p, min-p in order."
        )
    return found


def _prompts(
    model: Any, input_ids: torch.Tensor, inputs: torch.Tensor | None, known: dict[str, Any], repeats: int
) -> list[list[int]]:
    """Each prompt once, without padding; an encoder-decoder model's are its encoder's."""
    mask = known.get("attention_mask")
    if model.config.is_encoder_decoder:
        if inputs is None or inputs.ndim != 2 or inputs.is_floating_point():
            raise UnsupportedError("the encoder's input is not token ids", remedy="Pass input_ids.")
        start = _decoder_start(model, None)
        if any(tuple(row) != start for row in input_ids.tolist()):
            raise UnsupportedError("the decoder has a prompt of its own", remedy="Leave out decoder_input_ids.")
        rows = inputs
        mask = None if mask is None else mask[::repeats]
    else:
        rows = input_ids[::repeats]
        mask = None if mask is None else mask[::repeats]
    if mask is None or mask.shape != rows.shape:
        return [list(row) for row in rows.tolist()]
    return [row[kept.bool()].tolist() for row, kept in zip(rows, mask, strict=True)]


def _padded(input_ids: torch.Tensor, drawn: Sequence[Sequence[int]], config: Any) -> torch.Tensor:
    known = config.pad_token_id if config.pad_token_id is not None else config.eos_token_id
    pad = known[0] if isinstance(known, (list, tuple)) else 0 if known is None else int(known)
    longest = max(map(len, drawn))
    rows = torch.tensor([[*tokens, *[pad] * (longest - len(tokens))] for tokens in drawn], dtype=input_ids.dtype)
    return torch.cat([input_ids, rows.to(input_ids.device)], dim=1)
