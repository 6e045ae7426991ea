"""Loaded models that answer items by methods; whatever happens becomes a record."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from guided.errors import GuidedError
from guided.eval.decoding import engine_error
from guided.eval.decoding_methods.kit import Models
from guided.eval.decoding_methods.methods import METHODS
from guided.eval.decoding_methods.names import MethodName
from guided.eval.decoding_methods.results import DecodingRecord, DecodingSettings, Ending, key_of
from guided.eval.decoding_methods.tasks import MAX_TOKENS, DecodingTask, quality
from guided.eval.decoding_methods.writing import Asked, Written, write

__all__ = ["DecodingEvaluator"]


class DecodingEvaluator:
    """The models of a run.  Not for several threads."""

    def __init__(self, settings: DecodingSettings, on_stage: Callable[[str], None] | None = None) -> None:
        """Raises `GuidedError` for a model that was named and cannot be loaded."""
        self.settings = settings
        self.models = Models(settings, on_stage)

    def evaluate(self, item: DecodingTask, name: MethodName) -> DecodingRecord:
        """The result of a method on an item; the grammar is compiled outside the time."""
        try:
            written = self._written(item, name)
        except GuidedError as error:
            return self._without(item, name, Ending.REFUSED, " ".join(str(error).split()))
        except Exception as error:
            return self._without(item, name, Ending.FAILED, engine_error(error))
        kit = self.models.of(item.task)
        text = str(kit.loaded.tokenizer.decode(list(written.tokens), skip_special_tokens=True))
        return DecodingRecord(
            key=key_of(item, name, self.settings),
            task=item.task.value,
            id=item.id,
            mode=item.mode.value,
            method=name.value,
            ending=Ending.WRITTEN,
            quality=quality(item, text),
            finished=bool(written.tokens) and written.tokens[-1] in kit.base.eos_ids,
            tokens=len(written.tokens),
            passes=written.passes,
            positions=written.positions,
            small_passes=written.small_passes,
            seconds=round(written.seconds, 5),
            text=text,
        )

    def _written(self, item: DecodingTask, name: MethodName) -> Written:
        asked = Asked(item.mode, MAX_TOKENS[item.task], self._seed(item))
        return write(self.models.of(item.task), METHODS[name], item.prompt, self.models.constraint(item), asked)

    def _without(self, item: DecodingTask, name: MethodName, ending: Ending, reason: str) -> DecodingRecord:
        key = key_of(item, name, self.settings)
        return DecodingRecord(key, item.task.value, item.id, item.mode.value, name.value, ending, reason)

    def _seed(self, item: DecodingTask) -> int:
        """The same for all methods and both modes, wherever and in whatever order items are answered."""
        written = f"{self.settings.seed}\0{item.task.value}\0{item.id}"
        return int.from_bytes(hashlib.sha256(written.encode()).digest()[:8], "big")
