"""`draft_generate`: speculative decoding under grammars for ``model.generate(..., custom_generate=...)``.

Unlike transformers' own assisted generation it takes batches, a grammar for each row, and any draft of `guided.draft`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from transformers.generation.utils import GenerateDecoderOnlyOutput, GenerateEncoderDecoderOutput

from guided.constraint.protocol import Constrains
from guided.draft.auto import Drafting, auto
from guided.draft.speculate import Speculated, speculate
from guided.draft.statistics import Statistics
from guided.errors import GuidedError, UnsupportedError
from guided.hf.generate_call import check_criteria, prompts_of_call, sequences_of_call, truncation_of_call
from guided.hf.language_model import TransformersModel
from guided.hf.sampling import stack_of
from guided.lm import LanguageModel, transformed
from guided.steer import Stack, Steerer

__all__ = ["DraftGenerate", "draft_generate"]


class DraftGenerate:
    """What ``custom_generate=`` takes; made by `draft_generate`.  `drafting` learns from call to call."""

    def __init__(
        self,
        constraint: Constrains | Sequence[Constrains | None] | None,
        drafting: Drafting,
        seed: np.random.Generator | int | None,
        stack: Stack,
    ) -> None:
        self.constraint, self.drafting, self.stack = constraint, drafting, stack
        self.rng = np.random.default_rng(seed)
        self.results: list[Speculated] = []
        """The texts of the last call."""
        self.statistics = Statistics()
        """What the last call cost."""
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
        """Prompts and a text after each, padded on the right: ``int64[n, len]``.

        Greedy without ``do_sample``.  Raises `UnsupportedError` for beams, streamers, other processors and criteria.
        """
        if streamer is not None:
            raise UnsupportedError("tokens come several at a time", remedy="Leave out the streamer.")
        if generation_config.num_beams != 1:
            raise UnsupportedError("drafts are not verified for beams", remedy="Leave out num_beams.")
        check_criteria(stopping_criteria or ())
        ready = self._ready(model)
        sampled = bool(generation_config.do_sample)
        truncation = truncation_of_call(logits_processor or ())
        if truncation and sampled:
            ready = transformed(ready, **truncation)
        repeats = max(generation_config.num_return_sequences or 1, 1)
        prompts = prompts_of_call(model, input_ids, inputs_tensor, model_kwargs, repeats)
        constraints = self._constraints(len(prompts))
        self.results, self.statistics = speculate(
            self.rng,
            ready,
            [prompt for prompt in prompts for _ in range(repeats)],
            [constraint for constraint in constraints for _ in range(repeats)],
            self.drafting.drafter,
            max_tokens=int(generation_config.max_length) - input_ids.shape[1],
            greedy=not sampled,
            policy=self.drafting.policy,
        )
        sequences = sequences_of_call(input_ids, [text.tokens for text in self.results], generation_config)
        if not generation_config.return_dict_in_generate:
            return sequences
        output: Any = GenerateEncoderDecoderOutput if model.config.is_encoder_decoder else GenerateDecoderOnlyOutput
        return output(sequences=sequences)

    def _constraints(self, n: int) -> list[Constrains | None]:
        if self.constraint is None or isinstance(self.constraint, Constrains):
            return [self.constraint] * n
        if len(self.constraint) != n:
            raise GuidedError(
                f"{n} prompts have {len(self.constraint)} constraints",
                where="draft_generate",
                remedy="Pass one for all, or one for each prompt.",
            )
        return list(self.constraint)

    def _ready(self, model: Any) -> LanguageModel:
        if self._model is None or self._model[0] is not model:
            known = [self.constraint] if isinstance(self.constraint, Constrains) else self.constraint or ()
            ends = {end for constraint in known if constraint is not None for end in constraint.vocabulary.eos_ids}
            plain = TransformersModel(model, eos_ids=ends or None)
            self._model = (model, self.stack.over(plain) if self.stack.steerers else plain)
        return self._model[1]


def draft_generate(
    constraint: Constrains | Sequence[Constrains | None] | None = None,
    draft: Drafting | None = None,
    *,
    seed: np.random.Generator | int | None = None,
    steer: Stack | Iterable[Steerer | Stack] | None = None,
) -> DraftGenerate:
    """Make what ``model.generate(..., custom_generate=draft_generate(constraint))`` decodes with.

    ``constraint`` is compiled: one for all prompts, or one (or None) for each.  ``draft`` is `guided.draft.auto` by
    default.  With ``do_sample=True`` the temperature, top-k, top-p and min-p of the generation configuration apply, and
    the law of the output is that of decoding token by token; without, the tokens are the same.  `statistics` of what is
    returned say what the last call cost.
    """
    stack = Stack() if steer is None else stack_of(steer)
    return DraftGenerate(constraint, auto() if draft is None else draft, seed, stack)
