"""`draft_generate`: speculative decoding under grammars for ``model.generate(..., custom_generate=...)``.

Unlike transformers' own assisted generation it takes batches, a grammar for each row, and any draft of `guided.draft`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers.generation.utils import GenerateDecoderOnlyOutput, GenerateEncoderDecoderOutput

from guided.constraint.protocol import Constrains
from guided.draft.auto import Drafting, auto
from guided.draft.loop.speculate import Speculated
from guided.draft.loop.statistics import Statistics
from guided.errors import GuidedError
from guided.hf.front.configured import refuse_configured
from guided.hf.front.draft_argument import check_adaptive, drafting_for
from guided.hf.front.generate_call import GenerateCall, prompts_of_call, sequences_of_call
from guided.hf.front.own_loop import OwnLoop
from guided.hf.front.request import stack_of
from guided.hf.front.streaming import ends_streamer
from guided.hf.language_model import TransformersModel, wrapped
from guided.steer import Stack, Steering

__all__ = ["DraftGenerate", "draft_generate"]


class DraftGenerate:
    """What ``custom_generate=`` takes; made by `draft_generate`.  `drafting` learns from call to call."""

    def __init__(
        self,
        constraint: Constrains | Sequence[Constrains | None] | None,
        drafting: Drafting,
        seed: np.random.Generator | int | None,
        stack: Stack,
        same_tokenizer: bool = False,
    ) -> None:
        self.constraint, self.drafting, self.stack = constraint, drafting, stack
        self.same_tokenizer = same_tokenizer
        self.rng = np.random.default_rng(seed)
        self.results: list[Speculated] = []
        """The texts of the last call."""
        self.statistics = Statistics()
        """What the last call cost."""
        self._model: tuple[Any, TransformersModel] | None = None

    @ends_streamer
    def __call__(
        self,
        model: Any,
        input_ids: torch.Tensor,
        inputs_tensor: torch.Tensor | None = None,
        **given: Any,
    ) -> Any:
        """Prompts and a text after each, padded on the right: ``int64[n, len]``.

        Greedy without ``do_sample``.  A streamer gets each token when it is certain, and the end in any case.  Raises
        what `OwnLoop.of` raises.
        """
        call = GenerateCall.of(input_ids, **given)
        refuse_configured(call.config, "draft_generate")
        repeats = max(call.config.num_return_sequences or 1, 1)
        prompts = prompts_of_call(model, input_ids, inputs_tensor, given, repeats)
        loop = OwnLoop.of(
            self._ready(model, call),
            [prompt for prompt in prompts for _ in range(repeats)],
            [constraint for constraint in self._constraints(len(prompts)) for _ in range(repeats)],
            call,
            self.rng,
            drafting=self.drafting,
            stack=self.stack,
            same_tokenizer=self.same_tokenizer,
        )
        self.results, self.statistics = loop.run()
        sequences = sequences_of_call(input_ids, [text.tokens for text in self.results], call.config)
        if not call.config.return_dict_in_generate:
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

    def _ready(self, model: Any, call: GenerateCall) -> TransformersModel:
        if self._model is None or self._model[0] is not model:
            known = [self.constraint] if isinstance(self.constraint, Constrains) else self.constraint or ()
            ends = {end for constraint in known if constraint is not None for end in constraint.vocabulary.eos_ids}
            self._model = (model, wrapped(model, eos_ids=ends or call.eos_ids or None))
        return self._model[1]


def draft_generate(
    constraint: Constrains | Sequence[Constrains | None] | None = None,
    draft: Drafting | None = None,
    *,
    seed: np.random.Generator | int | None = None,
    steer: Steering | None = None,
    same_tokenizer: bool = False,
) -> DraftGenerate:
    """Make what ``model.generate(..., custom_generate=draft_generate(constraint))`` decodes with.

    ``constraint`` is compiled: one for all prompts, or one (or None) for each.  ``draft`` is `guided.draft.auto` by
    default.  The output is that of transformers' own loop with a `GuidedLogitsProcessor`: greedily the same tokens, and
    with ``do_sample=True`` the same law, temperature and truncation of the generation configuration included.
    ``steer`` speaks before the grammar, and is told beforehand what the grammar allows, as in `guided.generate`;
    ``same_tokenizer`` is that of `Stack.over`.
    `statistics` of what is returned say what the last call cost.
    """
    stack = stack_of(steer)
    drafting = auto() if draft is None else drafting_for(draft) or auto()
    check_adaptive(drafting, stack)
    return DraftGenerate(constraint, drafting, seed, stack, same_tokenizer)
