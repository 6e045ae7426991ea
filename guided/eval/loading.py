"""Loading the model that an evaluation asks, with its stages reported, and how much it has room for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from guided.hf import LoadedModel, Stage, load

__all__ = ["load_asked", "room_of"]


class _Asks(Protocol):
    """Settings that name a model."""

    @property
    def model(self) -> str: ...

    @property
    def device(self) -> str | None: ...

    @property
    def offline(self) -> bool: ...


def load_asked(settings: _Asks, on_stage: Callable[[str], None] | None) -> LoadedModel:
    """The model of some settings; raises `GuidedError` for one that cannot be loaded."""

    def stage(which: Stage) -> None:
        if on_stage is not None:
            on_stage(f"{settings.model}: {which.value}")

    return load(settings.model, device=settings.device, local_files_only=settings.offline, on_stage=stage)


def room_of(loaded: LoadedModel) -> int | None:
    """The tokens of a prompt and its answer that a model has positions for; None where it does not say."""
    config = loaded.model.config
    room = None if config.is_encoder_decoder else getattr(config.get_text_config(), "max_position_embeddings", None)
    return room if isinstance(room, int) else None
