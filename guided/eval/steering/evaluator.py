"""A batch of prompts written by a model as it is and under a method; whatever happens becomes records."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from guided.errors import GuidedError
from guided.eval.decoding import engine_error
from guided.eval.loading import load_asked
from guided.eval.steering.judges import JUDGES
from guided.eval.steering.kit import Kit
from guided.eval.steering.methods import METHODS, Method, Write, plain
from guided.eval.steering.names import MethodName
from guided.eval.steering.prompts import SteeringPrompt
from guided.eval.steering.results import Ending, SteeringRecord, SteeringSettings, key_of
from guided.eval.steering.writing import Choice, Written, surprise

__all__ = ["SteeringEvaluator"]


class SteeringEvaluator:
    """A loaded model and the experts beside it.  Not for several threads."""

    def __init__(self, settings: SteeringSettings, *, on_stage: Callable[[str], None] | None = None) -> None:
        """Load the model; raises `GuidedError` for one that cannot be loaded."""
        self.settings = settings
        self.kit = Kit(load_asked(settings, on_stage), on_stage or (lambda stage: None))
        self._plain: dict[tuple[str, str, Choice], Written] = {}

    def evaluate(self, prompts: Sequence[SteeringPrompt], method: MethodName) -> list[SteeringRecord]:
        """The results of a method on prompts of its task; raises only what is no result: an interruption."""
        how = METHODS[method]
        seeds = [self._seed(prompt) for prompt in prompts]
        try:
            base = self._base(how, prompts, seeds)
            steered = how.write(self.kit, prompts, seeds, how.chosen)
            costs = [self._surprises(prompts, texts) for texts in (base, steered)]
        except GuidedError as error:
            return self._without(prompts, method, Ending.REFUSED, " ".join(str(error).split()))
        except Exception as error:
            return self._without(prompts, method, Ending.FAILED, engine_error(error))
        judge = JUDGES[how.task]
        records: list[SteeringRecord] = []
        for number, prompt in enumerate(prompts):
            both = base[number], steered[number]
            texts = [self.kit.text(one.tokens) for one in both]
            values = {judge.name: [judge.of(prompt, text) for text in texts]}
            values.update({name: [one.counted[name] for one in both] for name in both[0].counted})
            values["tokens"] = [float(len(one.tokens)) for one in both]
            measure = how.measure or judge.name
            own = values.pop(measure)
            records.append(
                SteeringRecord(
                    key=key_of(prompt, method, self.settings),
                    task=prompt.task.value,
                    id=prompt.id,
                    method=method.value,
                    ending=Ending.WRITTEN,
                    measure=measure,
                    base=own[0],
                    steered=own[1],
                    aside=values,
                    base_surprise=costs[0][number],
                    steered_surprise=costs[1][number],
                    base_text=texts[0],
                    steered_text=texts[1],
                )
            )
        return records

    def _base(self, how: Method, prompts: Sequence[SteeringPrompt], seeds: Sequence[int]) -> list[Written]:
        """Several methods of a task are compared with the same texts, which are written once."""
        base: Write = how.base
        if base is not plain:
            return base(self.kit, prompts, seeds, how.chosen)
        keys = [(prompt.task.value, prompt.id, how.chosen) for prompt in prompts]
        if any(key not in self._plain for key in keys):
            self._plain.update(zip(keys, base(self.kit, prompts, seeds, how.chosen), strict=True))
        return [self._plain[key] for key in keys]

    def _surprises(self, prompts: Sequence[SteeringPrompt], texts: Sequence[Written]) -> list[float]:
        given = [self.kit.ids(prompt.text) for prompt in prompts]
        return surprise(self.kit.base, given, [text.tokens for text in texts])

    def _without(
        self, prompts: Sequence[SteeringPrompt], method: MethodName, ending: Ending, reason: str
    ) -> list[SteeringRecord]:
        return [
            SteeringRecord(
                key=key_of(prompt, method, self.settings),
                task=prompt.task.value,
                id=prompt.id,
                method=method.value,
                ending=ending,
                reason=reason,
            )
            for prompt in prompts
        ]

    def _seed(self, prompt: SteeringPrompt) -> int:
        """The same for all methods, wherever and in whatever order prompts are answered."""
        written = f"{self.settings.seed}\0{prompt.task.value}\0{prompt.id}"
        return int.from_bytes(hashlib.sha256(written.encode()).digest()[:8], "big")
