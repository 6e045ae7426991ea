"""The searches that ``--search`` knows, by name: their settings, and the functions of `guided.search` behind them.

Nothing here imports torch until a search is built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

from guided.cli.words import Setting

if TYPE_CHECKING:
    from guided.hf.searching import Search

__all__ = ["SEARCHES", "SearchKind", "SearchMethod"]


class SearchKind(Enum):
    """What a setting's value is; the value is how help shows it."""

    COUNT = "COUNT"
    COUNT_OR_NONE = "COUNT|none"
    NUMBER = "NUMBER"
    STOPPING = "bound|current_length|first"


Values = dict[str, Any]


@dataclass(frozen=True)
class SearchMethod:
    """One search as the command line knows it."""

    summary: str
    settings: Mapping[str, Setting]
    build: Callable[[Values], Search]
    includes: bool = False
    """True if it takes --must-include."""
    excludes: bool = False
    """True if it takes --must-exclude."""


def _partial(name: str) -> Callable[[Values], Search]:
    """The function of that name with these options; ``beams`` is its ``width``."""

    def build(values: Values) -> Search:
        import guided.search

        return partial(
            getattr(guided.search, name), **{"width" if key == "beams" else key: value for key, value in values.items()}
        )

    return build


def _beam(values: Values) -> Search:
    from guided.search import Stopping

    if "stopping" in values:
        values["stopping"] = Stopping(values["stopping"])
    return _partial("beam_search")(values)


def _neurologic(values: Values) -> Search:
    from guided.search import LookAhead

    ahead = {key.removeprefix("ahead_"): values.pop(key) for key in list(values) if key.startswith("ahead")}
    if ahead:
        values["look_ahead"] = LookAhead(**{"length" if key == "ahead" else key: ahead[key] for key in ahead})
    return _partial("neurologic_search")(values)


_COUNT, _NUMBER = Setting(SearchKind.COUNT), Setting(SearchKind.NUMBER)
_BEAMS = {"beams": _COUNT, "n_best": _COUNT, "length_penalty": _NUMBER}

SEARCHES: dict[str, SearchMethod] = {
    "beam": SearchMethod("beam search", {**_BEAMS, "stopping": Setting(SearchKind.STOPPING)}, _beam),
    "best-first": SearchMethod(
        "the texts of beam search from fewer rows of the model",
        {**_BEAMS, "batch": _COUNT},
        _partial("best_first_beam_search"),
    ),
    "diverse": SearchMethod(
        "groups of beams kept apart",
        {**_BEAMS, "groups": _COUNT, "penalty": _NUMBER},
        _partial("diverse_beam_search"),
    ),
    "dynamic": SearchMethod(
        "texts with all phrases, one beam in banks (the default with --must-include)",
        _BEAMS,
        _partial("dynamic_beam_search"),
        includes=True,
    ),
    "grid": SearchMethod(
        "texts with all phrases, a beam for each number of phrase tokens placed",
        _BEAMS,
        _partial("grid_beam_search"),
        includes=True,
    ),
    "neurologic": SearchMethod(
        "texts with and without phrases, looking ahead on request (the default with --must-exclude)",
        {
            **_BEAMS,
            "expand": _COUNT,
            "progress_weight": _NUMBER,
            "ahead": _COUNT,
            "ahead_weight": _NUMBER,
            "ahead_beams": _COUNT,
        },
        _neurologic,
        includes=True,
        excludes=True,
    ),
    "lattice": SearchMethod(
        "a lattice of texts that share continuations",
        {
            "rows": _COUNT,
            "branch": _COUNT,
            "ngram": Setting(SearchKind.COUNT_OR_NONE),
            "length_difference": _COUNT,
            "n_best": _COUNT,
            "length_penalty": _NUMBER,
            "batch": _COUNT,
        },
        _partial("lattice_search"),
    ),
}
"""Every search by name.  Best spans compare pieces of a passage and not texts of a grammar, so they are not here."""
