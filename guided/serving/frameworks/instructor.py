"""instructor 1.17: a client over a model in this process, whose objects are valid the first time.

``from_guided("nano").create(response_model=Person, messages=[...])``; instructor's validators and retries are its own.
"""

from __future__ import annotations

from typing import Any

import instructor

from guided.hf.loading import LoadedModel
from guided.serving.frameworks.chat import Chat, chat_of
from guided.serving.frameworks.completions import Completions

__all__ = ["from_guided"]


def from_guided(model: str | LoadedModel | Chat) -> Any:
    """An `instructor.Instructor` over a name or path that `guided.hf.load` takes, a loaded model, or a `Chat`."""
    completions = Completions(chat_of(model))
    mode = instructor.Mode.JSON_SCHEMA
    create = instructor.patch(create=completions.create, mode=mode)
    return instructor.Instructor(client=None, create=create, mode=mode)
