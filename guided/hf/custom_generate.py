"""`custom_generate`: samplers of `guided.infer` inside transformers' own ``model.generate(..., custom_generate=...)``.

Transformers prepares prompts and settings as for any other way to decode, and calls this in place of its loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from transformers.generation.utils import GenerateDecoderOnlyOutput, GenerateEncoderDecoderOutput

from guided.constraint.protocol import Constrains
from guided.errors import LimitError, UnsupportedError
from guided.hf.front.configured import refuse_configured
from guided.hf.front.generate_call import check_criteria, prompts_of_call, sequences_of_call, truncation_of_call
from guided.hf.front.request import stack_of
from guided.hf.front.sampling import Sampled, Sampler, run_sampler
from guided.hf.front.streaming import ends_streamer
from guided.hf.language_model import TransformersModel
from guided.infer import Enumeration, Particle, Population, Potential, Ranked, Samples, smc
from guided.lm import LanguageModel, transformed
from guided.steer import Stack, Steering

__all__ = ["CustomGenerate", "custom_generate"]


class CustomGenerate:
    """What ``custom_generate=`` takes; made by `custom_generate`.

    >>> import guided.hf
    >>> loaded = guided.hf.load()
    >>> yes_or_no = guided.compile(guided.choice(["yes", "no"]), loaded.vocabulary)
    >>> decode = guided.hf.custom_generate(yes_or_no, n=8, seed=0)
    >>> prompt = loaded.tokenizer("Answer:", return_tensors="pt")
    >>> _ = loaded.model.generate(**prompt, custom_generate=decode, max_new_tokens=8)
    >>> len(decode.results), set(decode.results[0].posterior()) <= {"yes", "no"}
    (1, True)
    """

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

    @ends_streamer
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
        check_criteria(stopping_criteria or ())
        refuse_configured(generation_config, "custom_generate")
        ready = self._ready(model)
        truncation = truncation_of_call(logits_processor or ())
        if truncation:
            ready = transformed(ready, **truncation)
        repeats = max(generation_config.num_return_sequences or 1, 1)
        prompts = prompts_of_call(model, input_ids, inputs_tensor, model_kwargs, repeats)
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
        sequences = sequences_of_call(input_ids, drawn, generation_config)
        if not generation_config.return_dict_in_generate:
            return sequences
        output: Any = GenerateEncoderDecoderOutput if model.config.is_encoder_decoder else GenerateDecoderOnlyOutput
        return output(sequences=sequences)

    def _ready(self, model: Any) -> LanguageModel:
        if self._model is None or self._model[0] is not model:
            plain = TransformersModel(model, eos_ids=self.constraint.vocabulary.eos_ids)
            self._model = (model, self.stack.over(plain) if self.stack else plain)
        return self._model[1]


def custom_generate(
    constraint: Constrains | Potential[Any],
    *,
    sampler: Sampler = smc,
    n: int | None = None,
    seed: np.random.Generator | int | None = None,
    steer: Steering | None = None,
    **options: Any,
) -> CustomGenerate:
    """Make what ``model.generate(..., custom_generate=custom_generate(constraint))`` decodes with.

    ``constraint`` is compiled, or any `Potential`; ``n`` is the sampler's number of particles for each prompt, of which
    ``num_return_sequences`` are drawn by weight.  With ``do_sample=True`` the temperature, top-k, top-p and min-p of
    the generation configuration shape the model's distribution (where nothing is said, transformers may cut it to the
    50 likeliest tokens: pass ``top_k=0``); else it is the model's own.  ``options`` go to the sampler.  The result's
    `results` hold what it returned.

    >>> import guided.hf
    >>> from guided import infer
    >>> loaded = guided.hf.load()
    >>> yes_or_no = guided.compile(guided.choice(["yes", "no"]), loaded.vocabulary)
    >>> decode = guided.hf.custom_generate(yes_or_no, sampler=infer.smc, n=8, seed=0)
    >>> prompt = loaded.tokenizer("Answer:", return_tensors="pt")
    >>> ids = loaded.model.generate(**prompt, custom_generate=decode, max_new_tokens=8)
    >>> loaded.tokenizer.decode(ids[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True) in ("yes", "no")
    True
    """
    return CustomGenerate(constraint, sampler, n, seed, stack_of(steer), dict(options))


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
