"""``MODULE:FUNCTION``: a reward of the user's own, named on the command line.  Imports nothing but that module."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from guided.errors import GuidedError

__all__ = ["reward_function"]


def reward_function(text: str, where: str) -> Callable[[list[str]], Any]:
    """The function of that name, of an installed module or one in this folder; raises `GuidedError` for none."""
    if os.getcwd() not in sys.path:
        # Python itself looks there only when it is called as `python -m`.
        sys.path.append(os.getcwd())
    module, _, name = text.partition(":")
    try:
        function: Callable[[list[str]], Any] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise GuidedError(
            f"no reward function {text!r}: {error}",
            where=where,
            remedy="Write MODULE:FUNCTION, of a function from a list of texts to a list of numbers.",
        ) from error
    if not callable(function):
        raise GuidedError(f"{text} is no function", where=where, remedy="Write MODULE:FUNCTION.")
    return function
