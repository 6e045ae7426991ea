"""What transformers' `generate` hands to a ``custom_generate``, read and checked, and the tensor that it wants back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import (
    EpsilonLogitsWarper,
    EtaLogitsWarper,
    LogitsProcessorList,
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    TypicalLogitsWarper,
)
from transformers.generation.stopping_criteria import EosTokenCriteria, MaxLengthCriteria

from guided.errors import UnsupportedError
from guided.hf.loading import decoder_start_ids

__all__ = ["GenerateCall", "check_criteria", "prompts_of_call", "sequences_of_call", "truncation_of_call"]

WARPERS = {
    "temperature": (TemperatureLogitsWarper, "temperature"),
    "top_k": (TopKLogitsWarper, "top_k"),
    "top_p": (TopPLogitsWarper, "top_p"),
    "min_p": (MinPLogitsWarper, "min_p"),
    "typical_p": (TypicalLogitsWarper, "mass"),
    "epsilon_cutoff": (EpsilonLogitsWarper, "epsilon"),
    "eta_cutoff": (EtaLogitsWarper, "epsilon"),
}
"""transformers' warpers by the names of `guided.lm.Truncation`, in its order, and where they hold their value."""


@dataclass(frozen=True)
class GenerateCall:
    """What decoding in place of transformers' loop needs of a call."""

    input_ids: torch.Tensor
    """``int64[rows, length]``: each prompt as often as texts of it are wanted; of encoder-decoder models the start."""
    config: Any
    """The generation configuration, options of the call included."""
    processors: Sequence[Any] = ()
    criteria: Sequence[Any] = ()
    streamer: Any = None

    @classmethod
    def of(
        cls,
        input_ids: torch.Tensor,
        *,
        generation_config: Any,
        logits_processor: Sequence[Any] | None = None,
        stopping_criteria: Sequence[Any] | None = None,
        streamer: Any = None,
        **others: Any,
    ) -> GenerateCall:
        """From what a ``custom_generate`` is called with."""
        return cls(input_ids, generation_config, logits_processor or (), stopping_criteria or (), streamer)

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """The ends of text that are configured."""
        declared = self.config.eos_token_id
        return () if declared is None else (declared,) if isinstance(declared, int) else tuple(declared)


def check_criteria(criteria: Sequence[Any]) -> None:
    """Raise `UnsupportedError` for a stopping criterion other than the end of the text and the length."""
    for criterion in criteria:
        if not isinstance(criterion, (EosTokenCriteria, MaxLengthCriteria)):
            raise UnsupportedError(
                f"{type(criterion).__name__} would cut texts, and their weights would be wrong",
                where="custom_generate",
                remedy="Leave it out; save= and progress= of the sampler can stop a run.",
            )


def truncation_of_call(processors: LogitsProcessorList | Sequence[Any]) -> dict[str, Any]:
    """The temperature and the cuts that these warpers hold; `UnsupportedError` for other processors."""
    found: dict[str, Any] = {}
    order: list[str] = []
    for processor in processors:
        for name, (kind, attribute) in WARPERS.items():
            if isinstance(processor, kind):
                value = getattr(processor, attribute)
                found[name] = value.item() if isinstance(value, torch.Tensor) else value
                order.append(name)
                break
        else:
            raise UnsupportedError(
                f"a sampler cannot apply {type(processor).__name__}",
                where="custom_generate",
                remedy="Steer with steer=[...], and constrain with the grammar.",
            )
    if order != sorted(order, key=list(WARPERS).index):
        raise UnsupportedError(
            f"the warpers are in the order {', '.join(order)}", remedy=f"Put them in the order {', '.join(WARPERS)}."
        )
    return found


def prompts_of_call(
    model: Any, input_ids: torch.Tensor, inputs: torch.Tensor | None, known: dict[str, Any], repeats: int
) -> list[list[int]]:
    """Each prompt once, without padding; an encoder-decoder model's are its encoder's.

    Raises `UnsupportedError` where an encoder's input is not ids, or the decoder has a prompt of its own.
    """
    mask = known.get("attention_mask")
    if model.config.is_encoder_decoder:
        if inputs is None or inputs.ndim != 2 or inputs.is_floating_point():
            raise UnsupportedError("the encoder's input is not token ids", remedy="Pass input_ids.")
        start = decoder_start_ids(model)
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


def sequences_of_call(input_ids: torch.Tensor, drawn: Sequence[Sequence[int]], config: Any) -> torch.Tensor:
    """The prompts with a text after each, padded on the right: ``int64[n, length]``."""
    known = config.pad_token_id if config.pad_token_id is not None else config.eos_token_id
    pad = known[0] if isinstance(known, (list, tuple)) else 0 if known is None else int(known)
    longest = max(map(len, drawn))
    rows = torch.tensor([[*tokens, *[pad] * (longest - len(tokens))] for tokens in drawn], dtype=input_ids.dtype)
    return torch.cat([input_ids, rows.to(input_ids.device)], dim=1)
