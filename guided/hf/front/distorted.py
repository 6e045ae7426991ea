"""What the grammar took from the model along texts that were generated: ``distortion=True`` of `guided.generate`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from guided.constraint.protocol import Constrains
from guided.hf.front.generation import Generation
from guided.hf.front.request import Request
from guided.hf.language_model import wrapped
from guided.infer.analysis.distortion import Distortion, distortions
from guided.lm import LanguageModel

__all__ = ["distortions_of", "with_distortions"]


def with_distortions(request: Request, results: Sequence[Generation]) -> list[Generation]:
    """The same results, each with its `Generation.distortion`."""
    found = distortions_of(request, results)
    return [replace(result, distortion=each) for result, each in zip(results, found, strict=True)]


def distortions_of(request: Request, results: Sequence[Generation]) -> list[Distortion]:
    """What the masks took along each result; there are as many results of each prompt, in the prompts' order.

    Under the model itself, at temperature 1: steering and truncation come behind the mask, and may leave out what was
    likely before it.  The mask is the grammar's, without the budget of tokens.  Asks the model about all tokens again,
    one pass for the results of a prompt.
    """
    model: LanguageModel = wrapped(request.model, request.tokenizer)
    each = len(results) // len(request.prompts)
    found: list[Distortion] = []
    for place, prompt in enumerate(request.prompts):
        # The arguments were refused without a grammar, and only whole texts have other goals.
        constraint = cast(Constrains, prompt.constraint)
        end = list(constraint.vocabulary.eos_ids)[:1]
        texts = [
            [*result.token_ids, *(end if result.finished else [])]
            for result in results[place * each : (place + 1) * each]
        ]
        found += distortions(model, prompt.ids, constraint, texts)
    return found
