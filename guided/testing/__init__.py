"""The contracts as functions that any implementation can be run through; each loads only what it needs.

`check_constraint` and `brute_force_mask` are in `constraints`, `check_language_model` in `language_model`,
`check_potential` in `potentials`; `enumerate_choices`, for proofs about samplers, in `enumeration`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from guided.testing.constraints import brute_force_mask, check_constraint
    from guided.testing.enumeration import enumerate_choices
    from guided.testing.language_model import check_language_model
    from guided.testing.potentials import check_potential

_HOMES = {
    "brute_force_mask": "guided.testing.constraints",
    "check_constraint": "guided.testing.constraints",
    "check_language_model": "guided.testing.language_model",
    "check_potential": "guided.testing.potentials",
    "enumerate_choices": "guided.testing.enumeration",
}

__all__ = ["brute_force_mask", "check_constraint", "check_language_model", "check_potential", "enumerate_choices"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'guided.testing' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
