"""A loaded denoiser that answers tasks by methods; whatever happens becomes a record."""

from __future__ import annotations

import time
from collections.abc import Callable

import jsonschema

import guided
from guided.diffusion import Denoiser
from guided.errors import GuidedError
from guided.eval.diffusion.methods import Decoder, DiffusionMethod
from guided.eval.diffusion.results import DiffusionRecord, DiffusionSettings, key_of
from guided.eval.diffusion.tasks import ExtractionTask, fields_right
from guided.eval.resumable import Resumable
from guided.hf import load
from guided.hf.denoisers import denoiser_for

__all__ = ["RUN", "DiffusionEvaluator"]

WHITESPACE = " ?"
"""As ``guided extract --whitespace line``: the packaged models write one space where they write any."""


class DiffusionEvaluator:
    """A loaded model.  Not for several threads."""

    def __init__(self, settings: DiffusionSettings, on_stage: Callable[[str], None] | None = None) -> None:
        """Load the model; raises `GuidedError` for one that is no denoiser."""
        report = on_stage or (lambda stage: None)
        self.settings = settings
        self.loaded = load(
            settings.model,
            device=settings.device,
            local_files_only=settings.offline,
            on_stage=lambda stage: report(stage.value),
        )
        self.denoiser: Denoiser = denoiser_for(self.loaded)
        self._constraints: dict[str, guided.Constraint] = {}

    def evaluate(self, task: ExtractionTask, method: DiffusionMethod) -> DiffusionRecord:
        """The result of a method on a task; the grammar is compiled outside the time."""
        key = key_of(task, method, self.settings)
        try:
            constraint = None if method.decoder is Decoder.FREE else self._constraint(task)
            begun = time.perf_counter()
            made = guided.generate(
                self.denoiser,
                task.prompt,
                constraint,
                tokenizer=self.loaded.tokenizer,
                max_new_tokens=self.settings.max_new_tokens,
                denoising=method.how,
                law=method.decoder.law,
            )
        except GuidedError as error:
            return DiffusionRecord(key, task.id, method.name, False, 0.0, reason=" ".join(str(error).split()))
        seconds = round(time.perf_counter() - begun, 4)
        # What a published decoder completes may be longer than the canvas, and ends without a token for it.
        valid = made.finished and _validates(made.text, task.schema)
        assert made.denoised is not None
        passes, tokens = made.denoised.passes, len(made.token_ids)
        right = fields_right(made.text, task.answer)
        return DiffusionRecord(key, task.id, method.name, valid, right, passes, tokens, seconds, "", made.text)

    def _constraint(self, task: ExtractionTask) -> guided.Constraint:
        if task.id not in self._constraints:
            grammar = guided.json_schema(task.schema, whitespace=WHITESPACE)
            self._constraints[task.id] = guided.compile(grammar, self.loaded.vocabulary)
        return self._constraints[task.id]


def _validates(text: str, schema: object) -> bool:
    """What jsonschema says; not of formats, because its dates have no year 0, which RFC 3339 has."""
    import json

    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


RUN: Resumable[ExtractionTask, DiffusionMethod, DiffusionSettings, DiffusionRecord] = Resumable(
    key_of, DiffusionEvaluator
)
"""The evaluation: a task of it is an extraction and a method."""
