"""One problem answered by one method with a loaded model; whatever happens becomes a record."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from guided.errors import GuidedError
from guided.eval.awrs.methods import MethodName, answer
from guided.eval.awrs.problems import Asker, Problem, Question, TaskName, asker_for
from guided.eval.awrs.results import AwrsRecord, AwrsSettings, Ending, key_of
from guided.eval.decoding import engine_error
from guided.eval.loading import load_asked, room_of
from guided.eval.time_limit import OutOfTimeError, time_limit
from guided.hf import TransformersModel
from guided.infer import Population
from guided.lm import LanguageModel, transformed

__all__ = ["AwrsEvaluator"]


class AwrsEvaluator:
    """A loaded model and the tasks' questions.  Not for several threads."""

    def __init__(self, settings: AwrsSettings, *, on_stage: Callable[[str], None] | None = None) -> None:
        """Load the model; raises `GuidedError` for one that cannot be loaded."""
        self.settings = settings
        self.loaded = load_asked(settings, on_stage)
        self._room = room_of(self.loaded)
        self._askers: dict[TaskName, Asker] = {}
        self._models: dict[tuple[int, ...], LanguageModel] = {}
        self._asked: tuple[Problem, Question] | None = None

    def evaluate(self, problem: Problem, method: MethodName) -> AwrsRecord:
        """The result of a method on a problem; raises only what is no result: an interruption."""
        known: dict[str, Any] = {
            "key": key_of(problem, method, self.settings),
            "task": problem.task.value,
            "id": problem.id,
            "method": method.value,
        }
        try:
            with time_limit(self.settings.seconds):
                question = self._question(problem)
        except OutOfTimeError:
            return AwrsRecord(**known, ending=Ending.REFUSED, reason="making the condition took too long")
        except GuidedError as error:
            return AwrsRecord(**known, ending=Ending.REFUSED, reason=" ".join(str(error).split()))
        known["judge"] = question.judge
        left = self.settings.max_new_tokens
        if self._room is not None and len(question.prompt) + left > self._room:
            reason = f"the prompt takes {len(question.prompt)} tokens, and the model has room for {self._room}"
            return AwrsRecord(**known, ending=Ending.REFUSED, reason=reason)
        model = self._model(question)
        began = time.perf_counter()
        try:
            with time_limit(self.settings.seconds):
                found = answer(
                    method, self._seed(problem, method), model, question, n=self.settings.particles, max_tokens=left
                )
        except OutOfTimeError:
            reason = f"it took longer than {self.settings.seconds:g} s"
            spent = time.perf_counter() - began
            return AwrsRecord(**known, ending=Ending.TIME, reason=reason, accuracy=0.0, best=False, seconds=spent)
        except Exception as error:
            return AwrsRecord(**known, ending=Ending.FAILED, reason=engine_error(error), accuracy=0.0, best=False)
        seconds = time.perf_counter() - began
        return AwrsRecord(**known, ending=Ending.ANSWERED, seconds=seconds, **_measured(found, question))

    def _question(self, problem: Problem) -> Question:
        """The methods take turns at one problem, so the last question is kept."""
        if self._asked is None or self._asked[0] is not problem:
            if self._asked is not None:
                self._asked[1].close()
                self._asked = None
            if problem.task not in self._askers:
                self._askers[problem.task] = asker_for(problem.task, self.loaded)
            self._asked = problem, self._askers[problem.task](problem)
        return self._asked[1]

    def _model(self, question: Question) -> LanguageModel:
        ends = tuple(sorted(question.vocabulary.eos_ids))
        if ends not in self._models:
            model: LanguageModel = TransformersModel(self.loaded, eos_ids=ends)
            if self.settings.temperature is not None:
                model = transformed(model, temperature=self.settings.temperature)
            self._models[ends] = model
        return self._models[ends]

    def _seed(self, problem: Problem, method: MethodName) -> int:
        """The same wherever and in whatever order the problem is answered."""
        written = f"{self.settings.seed}\0{problem.task.value}\0{problem.id}\0{method.value}"
        return int.from_bytes(hashlib.sha256(written.encode()).digest()[:4], "big")


def _measured(found: Any, question: Question) -> dict[str, Any]:
    weights: Sequence[float]
    if isinstance(found, Population):
        weights, log_ml, ess = found.weights.tolist(), found.log_ml, found.ess
        error = found.log_ml_error
    else:
        weights, log_ml, ess, error = [1 / len(found)] * len(found), None, None, math.inf
    judged: dict[str, bool] = {}
    right = ended = 0.0
    for particle, weight in zip(found.particles, weights, strict=True):
        text = particle.text
        if not weight or not particle.finished:
            continue
        ended += weight
        if text is not None:
            if text not in judged:
                judged[text] = question.correct(text)
            right += weight * judged[text]
    best = next(iter(found.posterior()), None)
    return {
        "accuracy": min(right, 1.0),
        "best": best is not None and judged.get(best, False),
        "satisfied": min(ended, 1.0),
        "log_ml": log_ml if log_ml is not None and math.isfinite(log_ml) else None,
        "log_ml_error": error if math.isfinite(error) else None,
        "ess": ess,
        "n": len(found),
        "tokens": found.cost.tokens,
        "constraint_calls": found.cost.constraint_calls,
        "tested": found.cost.tested,
        "model_calls": found.cost.model_calls,
        "model_rows": found.cost.model_rows,
        "text": best,
    }
