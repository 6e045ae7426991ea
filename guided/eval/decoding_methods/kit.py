"""The models of a run, each loaded when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import guided
from guided.errors import UnsupportedError
from guided.eval.decoding_methods.names import TaskName
from guided.eval.decoding_methods.results import DecodingSettings
from guided.eval.decoding_methods.tasks import PACKAGED, DecodingTask, grammar_of
from guided.hf import LoadedModel, TransformersModel, load
from guided.hf.language_model import in_tokens_of
from guided.lm import LanguageModel

__all__ = ["Kit", "Models"]

REMEMBERED = 64
"""Constraints: the methods take turns on one item, so that few are needed again."""


@dataclass
class Kit:
    """A model, and the small one beside it over the same ids."""

    loaded: LoadedModel
    base: TransformersModel
    load_amateur: Callable[[], LanguageModel | None]
    _amateur: LanguageModel | None = None
    _asked: bool = False

    @property
    def known_amateur(self) -> LanguageModel | None:
        """The small model if a method has asked for it."""
        return self._amateur

    def amateur(self) -> LanguageModel:
        """The small model; raises `UnsupportedError` where there is none."""
        if not self._asked:
            self._amateur = self.load_amateur()
            self._asked = True
            if self._amateur is not None:
                warm(self._amateur)
        if self._amateur is None:
            raise UnsupportedError("there is no small model beside this one", remedy="Name one with --amateur.")
        return self._amateur


def warm(model: LanguageModel) -> None:
    """The first pass of a model allocates what later ones use: it is not of the first method's time."""
    model.start([[0, 0]]).extend([[0]])


class Models:
    """The models of all tasks: the packaged ones, or one for all that the settings name."""

    def __init__(self, settings: DecodingSettings, on_stage: Callable[[str], None] | None = None) -> None:
        self._settings = settings
        self._report = on_stage or (lambda stage: None)
        self._kits: dict[str, Kit] = {}
        self._constraints: dict[tuple[str, str, str], guided.Constraint] = {}
        if settings.model is not None:
            # What cannot be loaded ends the run before its first task.
            self._kit(settings.model, settings.amateur)

    def of(self, task: TaskName) -> Kit:
        """The models of a task."""
        packaged, expert = PACKAGED[task]
        if self._settings.model is None:
            return self._kit(packaged, self._settings.amateur or expert.name_to_load)
        return self._kit(self._settings.model, self._settings.amateur)

    def constraint(self, item: DecodingTask) -> guided.Constraint:
        """What a text of an item may be, compiled for its model."""
        kit = self.of(item.task)
        free = item.mode.value if item.mode.value == "free" else item.id
        key = (kit.loaded.name, item.task.value, free)
        if key not in self._constraints:
            if len(self._constraints) >= REMEMBERED:
                del self._constraints[next(iter(self._constraints))]
            self._constraints[key] = guided.compile(grammar_of(item), kit.loaded.vocabulary)
        return self._constraints[key]

    def _kit(self, name: str, amateur: str | None) -> Kit:
        if name not in self._kits:
            loaded = self._load(name)

            def small() -> LanguageModel | None:
                return None if amateur is None else in_tokens_of(loaded, self._load(amateur))

            self._kits[name] = Kit(loaded, TransformersModel(loaded), small)
            warm(self._kits[name].base)
        return self._kits[name]

    def _load(self, name: str) -> LoadedModel:
        return load(
            name,
            device=self._settings.device,
            local_files_only=self._settings.offline,
            on_stage=lambda stage: self._report(f"{name}: {stage.value}"),
        )
