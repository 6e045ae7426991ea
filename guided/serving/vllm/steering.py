"""`SteeringProcessor`: stacks of steerers as a logits processor of vLLM's two runners, a class to derive from.

vLLM runs the model, and a processor gets its scores and nothing else: what steerers say by rewards, verdicts, texts or
other models is at hand, what they ask of the generating model itself (another prompt, its layers) is refused by name.
Each runner has an interface of its own, and refuses classes of the other's (0.32 and 0.33 alike): ours is of both, so
that a user need not know which one runs.  Drafts go with processors in the V2 runner only; V1 refuses them itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from vllm.exceptions import VLLMValidationError
from vllm.v1.sample.logits_processor import AdapterLogitsProcessor
from vllm.v1.worker.gpu.sample.logits_processor import LogitsContext, LogitsProcRequestState
from vllm.v1.worker.gpu.sample.logits_processor import LogitsProcessor as SlotLogitsProcessor

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


Steering: TypeAlias = Callable[[list[int], list[int], torch.Tensor], torch.Tensor]
"""A request's: from the prompt's ids, those behind it and a row of scores, which it writes in place, to that row."""


class SteeringProcessor(AdapterLogitsProcessor, SlotLogitsProcessor):  # type: ignore[misc, unused-ignore]
    """Steers the requests that ask for it; derive, and name the class with ``--logits-processors module:Class``.

    A request asks by ``extra_args={"guided_steer": argument}``; its argument is what `steerers` gets.  Where there is a
    grammar too, its mask comes first: forbidden tokens stay forbidden.
    """

    def __init__(self, vllm_config: Any, given: Any, is_pin_memory: bool = False) -> None:
        """Made by a runner: V1 gives the device, V2 the ids of its requests."""
        AdapterLogitsProcessor.__init__(self, vllm_config, given, is_pin_memory)
        self._requests = given if isinstance(given, LogitsProcRequestState) else None
        self._by_slot: dict[int, Steering] = {}
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

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        """Take a request into a slot, which an ended one may have had (V2); says whether it asks to be steered."""
        steering = self.new_req_logits_processor(sampling_params)
        if steering is None:
            self._by_slot.pop(req_idx, None)
        else:
            self._by_slot[req_idx] = steering
        return steering is not None

    def apply(self, logits: torch.Tensor, ctx: LogitsContext | None = None) -> torch.Tensor:
        """Steer the rows of a step's scores, in place; V2 says in ``ctx`` what they are of, V1 beforehand."""
        if ctx is None:
            AdapterLogitsProcessor.apply(self, logits)
            return logits
        # Of the slots on the host first: most steps wait for no device.
        if self._by_slot.keys().isdisjoint(ctx.idx_mapping_np.tolist()):
            return logits
        assert self._requests is not None
        drafted = ctx.input_ids.tolist()
        rows = zip(
            ctx.expanded_idx_mapping.tolist(), ctx.pos.tolist(), ctx.expanded_local_pos.tolist(), logits, strict=True
        )
        for row, (slot, position, n_drafted, scores) in enumerate(rows):
            steering = self._by_slot.get(slot)
            n_prompt = int(self._requests.prompt_len.np[slot])
            # Before the prompt's end nothing is drawn.
            if steering is None or position + 1 < n_prompt:
                continue
            # What is drafted is only among the tokens that are fed: a request's rows stand together, in order.
            known = self._requests.all_token_ids.gpu[slot, : position + 1 - n_drafted].tolist()
            ids = known + drafted[row + 1 - n_drafted : row + 1]
            steering(ids[:n_prompt], ids[n_prompt:], scores)
        return logits

    def new_req_logits_processor(self, params: Any) -> Steering | None:
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
