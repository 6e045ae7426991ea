"""The runner by transformers' own `generate`: the grammar is a logits processor, and so are steerers if there are any.

Its loops know beams, assistants, and whatever else takes a processor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from guided.hf.front.encoding import pad_id, padded
from guided.hf.front.generation import Generation, generation_of
from guided.hf.front.request import Request
from guided.hf.front.streaming import with_stop_strings
from guided.hf.language_model import wrapped
from guided.hf.processor import GuidedLogitsProcessor
from guided.hf.steering import SteeringLogitsProcessor
from guided.vocab import Vocabulary

__all__ = ["call_transformers", "run_transformers", "transformers_options"]


def transformers_options(options: Mapping[str, Any], tokenizer: Any, n: int | None) -> dict[str, Any]:
    """The options of `generate` that say what those of `guided.generate` do: ``n``, and strings that stop."""
    found = with_stop_strings(dict(options), tokenizer)
    if n is not None:
        found["num_return_sequences"] = n
        if n > 1 and "num_beams" not in found:
            found.setdefault("do_sample", True)
    if "assistant_tokenizer" in found:
        found["tokenizer"] = tokenizer
    return found


def run_transformers(request: Request) -> list[Generation]:
    """The texts of each prompt, in order."""
    vocabulary = request.vocabulary
    given = [constraint for constraint in request.constraints if constraint is not None]
    # Steering after the grammar, so that candidates are of allowed tokens; the grammar then masks once more.
    processors = [
        *(request.options.get("logits_processor") or ()),
        *([GuidedLogitsProcessor(given, max_new_tokens=request.max_new_tokens)] if given else []),
        *([_steering(request, vocabulary)] if request.stack else []),
    ]
    out = call_transformers(request, vocabulary, logits_processor=processors or None)
    sequences = out if isinstance(out, torch.Tensor) else out.sequences
    # The decoder of an encoder-decoder model begins with its one start token.
    encoder_decoder = bool(request.model.config.is_encoder_decoder)
    start = 1 if encoder_decoder else max(len(prompt.ids) for prompt in request.prompts)
    rows = sequences[:, start:].tolist()
    each = len(rows) // len(request.prompts)
    pad = pad_id(request.model, request.tokenizer, vocabulary.eos_ids)
    return [
        generation_of(request.prompts[row // each], _unpadded(ids, pad, vocabulary), vocabulary)
        for row, ids in enumerate(rows)
    ]


def call_transformers(request: Request, vocabulary: Vocabulary, **more: Any) -> Any:
    """What ``model.generate`` returns for the prompts, padded, with the request's options and ``more``."""
    model = request.model
    pad = pad_id(model, request.tokenizer, vocabulary.eos_ids)
    left = not model.config.is_encoder_decoder
    input_ids, attention_mask = padded([prompt.ids for prompt in request.prompts], pad, left=left)
    with _seeded(request.seed):
        return model.generate(
            input_ids=input_ids.to(model.device),
            attention_mask=attention_mask.to(model.device),
            max_new_tokens=request.max_new_tokens,
            eos_token_id=list(vocabulary.eos_ids) or None,
            pad_token_id=pad,
            **{**request.options, **more},
        )


@contextmanager
def _seeded(seed: int | None) -> Iterator[None]:
    """Seeds torch for what is inside, and nothing after it."""
    if seed is None:
        yield
        return
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def _steering(request: Request, vocabulary: Vocabulary) -> SteeringLogitsProcessor:
    """The stack as a processor."""
    pad = pad_id(request.model, request.tokenizer, vocabulary.eos_ids)
    # Equal lengths have no padding, and a prompt may begin with the padding's id itself.
    padding = pad if len({len(prompt.ids) for prompt in request.prompts}) > 1 else None
    ready = wrapped(request.model, request.tokenizer)
    return SteeringLogitsProcessor(request.stack, ready, pad_token_id=padding, same_tokenizer=request.same_tokenizer)


def _unpadded(ids: Sequence[int], pad: int, vocabulary: Vocabulary) -> Sequence[int]:
    """The tokens of a row that was cut before others ended; padding that is an end or text as well is kept."""
    if pad in vocabulary.eos_ids or (pad < vocabulary.size and vocabulary.token_bytes(pad) is not None):
        return ids
    end = len(ids)
    while end and ids[end - 1] == pad:
        end -= 1
    return ids[:end]
