"""`SteeringProcessor`: stacks of steerers as a logits processor of vLLM's V1 runner, a class to derive from.

vLLM runs the model, and a processor gets its scores and nothing else: what steerers say by rewards, verdicts, texts or
other models is at hand, what they ask of the generating model itself (another prompt, its layers) is refused by name.
vLLM's V2 runner refuses processors of the V1 interface, as it says; start it with ``VLLM_USE_V2_MODEL_RUNNER=0``.
Neither runner takes processors together with drafts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from vllm.exceptions import VLLMValidationError
from vllm.v1.sample.logits_processor import AdapterLogitsProcessor

from guided.errors import GuidedError, UnsupportedError
from guided.hf.steering import SteeringLogitsProcessor
from guided.lm.model import NOTHING, Abilities, Calls, Needs, Sequences
from guided.steer.declaration import Steerer
from guided.steer.stack import Stack

__all__ = ["ServedModel", "SteeringProcessor"]

STEER = "guided_steer"
"""The key of ``SamplingParams.extra_args`` (``vllm_xargs`` of servers) by which a request asks to be steered."""


class ServedModel:
    """The model that an engine runs, of which a processor gets the scores: it can be asked for nothing."""

    def __init__(self, width: int, eos_ids: frozenset[int]) -> None:
        self.width = width
        self.eos_ids = eos_ids
        self.can = Abilities(crop=False, tree=False)
        self.calls = Calls()

    def start(self, prompts: Sequence[Sequence[int]], needs: Needs = NOTHING) -> Sequences:
        """Raise `UnsupportedError`: the engine runs its model, and for its own requests only."""
        raise _unserved("a steerer")


def _unserved(who: str) -> UnsupportedError:
    return UnsupportedError(
        f"{who} asks the served model about another prompt or its layers, which vLLM does not run beside a request",
        where="SteeringProcessor",
        remedy="Give the steerer a model of its own, such as guided.hf.load of the same weights.",
    )


def _check(given: Stack | Steerer | Sequence[Steerer]) -> None:
    """Raise `UnsupportedError` for steerers that ask the served model for more than its scores."""
    stack = given if isinstance(given, Stack) else Stack([given] if isinstance(given, Steerer) else given)
    if stack.adaptive is not None:
        raise _unserved(type(stack.adaptive).__name__)
    for steerer in stack.steerers:
        declaration = steerer.declare(ServedModel(0, frozenset()))
        watched = declaration.candidates.watched if declaration.candidates is not None else None
        if any(branch.model is None for branch in (*declaration.branches, *(() if watched is None else (watched,)))):
            raise _unserved(type(steerer).__name__)


class SteeringProcessor(AdapterLogitsProcessor):  # type: ignore[misc, unused-ignore]
    """Steers the requests that ask for it; derive, and name the class with ``--logits-processors module:Class``.

    A request asks by ``extra_args={"guided_steer": argument}``; its argument is what `steerers` gets.  Where there is a
    grammar too, its mask comes first: forbidden tokens stay forbidden.
    """

    def __init__(self, vllm_config: Any, device: Any, is_pin_memory: bool) -> None:
        super().__init__(vllm_config, device, is_pin_memory)
        config = vllm_config.model_config
        ends = getattr(config.hf_config, "eos_token_id", None)
        self.model = ServedModel(config.get_vocab_size(), frozenset([ends] if isinstance(ends, int) else ends or ()))

    @classmethod
    def steerers(cls, argument: Any) -> Stack | Steerer | Sequence[Steerer]:
        """The steerers of a request; raises `GuidedError` for an argument that says none.

        It is called in the front end, to check, and in the engine: what is expensive, it should keep.
        """
        raise NotImplementedError

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Refuse what cannot be steered before the engine sees it."""
        argument = (sampling_params.extra_args or {}).get(STEER)
        if argument is not None:
            try:
                _check(cls.steerers(argument))
            except GuidedError as error:
                raise VLLMValidationError(f"guided: {error}", parameter=f"extra_args.{STEER}") from error

    def is_argmax_invariant(self) -> bool:
        """Steering changes which token is the likeliest."""
        return False

    def new_req_logits_processor(
        self, params: Any
    ) -> Callable[[list[int], list[int], torch.Tensor], torch.Tensor] | None:
        """The steering of a request; None where it does not ask."""
        argument = (params.extra_args or {}).get(STEER)
        if argument is None:
            return None
        stack = self.steerers(argument)
        processors: dict[int, SteeringLogitsProcessor] = {}

        def steered(prompt_ids: list[int], output_ids: list[int], logits: torch.Tensor) -> torch.Tensor:
            made = processors.get(len(prompt_ids))
            if made is None:
                made = SteeringLogitsProcessor(stack, self.model, prompt_length=len(prompt_ids), pad_token_id=-1)
                processors[len(prompt_ids)] = made
            ids = torch.tensor([[*prompt_ids, *output_ids]])
            # Scores may be wider than the vocabulary, by padding that nothing writes.
            width = self.model.width
            logits[:width] = made(ids, logits[None, :width])[0]  # type: ignore[arg-type]
            return logits

        return steered
