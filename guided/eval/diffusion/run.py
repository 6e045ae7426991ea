"""A loaded denoiser that answers tasks by methods; whatever happens becomes a record."""

from __future__ import annotations

import time
from collections.abc import Callable

import guided
from guided.diffusion import Denoiser
from guided.errors import GuidedError
from guided.eval.diffusion.languages import grammar_of, is_valid
from guided.eval.diffusion.methods import Decoder, DiffusionMethod
from guided.eval.diffusion.results import DiffusionRecord, DiffusionSettings, key_of
from guided.eval.diffusion.tasks import DiffusionTask
from guided.eval.resumable import Resumable
from guided.hf import load
from guided.hf.denoisers import denoiser_for

__all__ = ["RUN", "DiffusionEvaluator"]


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

    def evaluate(self, task: DiffusionTask, method: DiffusionMethod) -> DiffusionRecord:
        """The result of a method on a task.

        The grammar is compiled outside the time, anew for each method: what one finds out about its states is of no use
        to the next.
        """
        key, front_end = key_of(task, method, self.settings), task.front_end.value
        try:
            constraint = None
            if method.decoder is not Decoder.FREE:
                constraint = guided.compile(grammar_of(task), self.loaded.vocabulary)
            begun, worked = time.perf_counter(), time.process_time()
            made = guided.generate(
                self.denoiser,
                task.prompt,
                constraint,
                tokenizer=self.loaded.tokenizer,
                max_new_tokens=min(self.settings.max_new_tokens, task.front_end.positions),
                denoising=method.how,
                law=method.decoder.law,
            )
        except GuidedError as error:
            reason = " ".join(str(error).split())
            return DiffusionRecord(key, task.id, front_end, method.name, False, 0.0, reason=reason)
        worked, seconds = time.process_time() - worked, time.perf_counter() - begun
        assert made.denoised is not None
        return DiffusionRecord(
            key,
            task.id,
            front_end,
            method.name,
            # What a published decoder completes may be longer than the canvas, and ends without a token for it.
            valid=made.finished and is_valid(task, made.text),
            right=task.right(made.text),
            passes=made.denoised.passes,
            tokens=len(made.token_ids),
            seconds=round(seconds, 4),
            processor=round(worked, 4),
            text=made.text,
        )


RUN: Resumable[DiffusionTask, DiffusionMethod, DiffusionSettings, DiffusionRecord] = Resumable(
    key_of, DiffusionEvaluator
)
"""The evaluation: an item of it is a task, to be done by a method."""
