"""The searches that ``--search`` knows, by name: their settings, and the functions of `guided.search` behind them.

Nothing here imports torch until a search is built.  Rewards read the text after the prompt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

from guided.cli.methods.words import Setting, listed
from guided.errors import GuidedError

if TYPE_CHECKING:
    from guided.hf.front.searching import Search

__all__ = ["SEARCHES", "SearchKind", "SearchMethod", "search_help"]


class SearchKind(Enum):
    """What a setting's value is; the value is how help shows it."""

    COUNT = "COUNT"
    COUNT_OR_NONE = "COUNT|none"
    NUMBER = "NUMBER"
    REWARD = "MODULE:FUNCTION"
    STOPPING = "bound|current_length|first"


Values = dict[str, Any]

Decode = Callable[[Sequence[int]], str]
"""A model's tokens as a text, for rewards."""


@dataclass(frozen=True)
class SearchMethod:
    """One search as the command line knows it."""

    summary: str
    settings: Mapping[str, Setting]
    build: Callable[[Values, Decode], Search]
    includes: bool = False
    """True if it takes --must-include."""
    excludes: bool = False
    """True if it takes --must-exclude."""
    draws: bool = False
    """True if it takes --seed."""


def _partial(name: str) -> Callable[[Values, Decode], Search]:
    """The function of that name with these options; ``beams`` is its ``width``."""

    def build(values: Values, decode: Decode) -> Search:
        import guided.search

        return partial(
            getattr(guided.search, name), **{"width" if key == "beams" else key: value for key, value in values.items()}
        )

    return build


def _rewarded(name: str, reward: str, **renamed: str) -> Callable[[Values, Decode], Search]:
    """The same with a reward of the text after the prompt, which is its option ``reward``."""

    def build(values: Values, decode: Decode) -> Search:
        from guided.steer import TextReward

        options = {renamed.get(key, key): value for key, value in values.items() if key != "reward"}
        options[reward] = TextReward(values["reward"], decode, prompt=False)
        return _partial(name)(options, decode)

    return build


def _judged(name: str, judge: str, scores: Callable[[Callable[[list[str]], Any]], Any]) -> Callable[..., Search]:
    """The same with a potential of the text after the prompt: ``scores`` makes its log weights of the reward."""

    def build(values: Values, decode: Decode) -> Search:
        from guided.infer import TextScorer

        options = {key: value for key, value in values.items() if key != "reward"}
        if "reward" in values:
            options[judge] = partial(TextScorer, **scores(values["reward"]))
        return _partial(name)(options, decode)

    return build


def _logarithms(reward: Callable[[list[str]], Any]) -> dict[str, Any]:
    """Rewards from 0 are weights; 0 never comes back."""

    def complete(texts: Sequence[str]) -> list[float]:
        found = [float(value) for value in reward(list(texts))]
        if min(found, default=0.0) < 0:
            raise GuidedError(
                f"the reward gave {min(found)}", where="--search mcts", remedy="Give numbers from 0, at best up to 1."
            )
        return [math.log(value) if value else -math.inf for value in found]

    return {"complete": complete}


def _of_all_texts(reward: Callable[[list[str]], Any]) -> dict[str, Any]:
    """Rewards are log weights, of partial texts as of whole ones."""
    return {"complete": lambda texts: reward(list(texts)), "prefix": lambda texts: reward(list(texts))}


def _beam(values: Values, decode: Decode) -> Search:
    from guided.search import Stopping

    if "stopping" in values:
        values["stopping"] = Stopping(values["stopping"])
    return _partial("beam_search")(values, decode)


def _neurologic(values: Values, decode: Decode) -> Search:
    from guided.search import LookAhead

    ahead = {key.removeprefix("ahead_"): values.pop(key) for key in list(values) if key.startswith("ahead")}
    if ahead:
        values["look_ahead"] = LookAhead(**{"length" if key == "ahead" else key: ahead[key] for key in ahead})
    return _partial("neurologic_search")(values, decode)


_COUNT, _NUMBER = Setting(SearchKind.COUNT), Setting(SearchKind.NUMBER)
_REWARD = Setting(SearchKind.REWARD, required=True)
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
    "mcts": SearchMethod(
        "Monte Carlo tree search: the text of greatest reward among those that roll-outs of the model end in",
        {
            "reward": _REWARD,
            "rollouts": _COUNT,
            "expand": _COUNT,
            "exploration": _NUMBER,
            "base": _NUMBER,
            "n_best": _COUNT,
        },
        _judged("mcts_search", "reward", _logarithms),
    ),
    "a-star": SearchMethod(
        "A*: the prefix of greatest log-probability and weight times reward is expanded next, within a budget",
        {
            "reward": Setting(SearchKind.REWARD),
            "weight": _NUMBER,
            "per_token": _NUMBER,
            "expand": Setting(SearchKind.COUNT_OR_NONE),
            "batch": _COUNT,
            "max_expanded": _COUNT,
            "n_best": _COUNT,
        },
        _judged("a_star_search", "judge", _of_all_texts),
    ),
    "deal": SearchMethod(
        "DeAL: beams ranked by log-probability and by a reward of the text with what the model would write next",
        {
            "reward": _REWARD,
            "weight": _NUMBER,
            "ahead": _COUNT,
            "beams": _COUNT,
            "expand": _COUNT,
            "n_best": _COUNT,
        },
        _rewarded("deal_search", "heuristic", ahead="look_ahead"),
    ),
    "blocks": SearchMethod(
        "controlled decoding by blocks: draw a few continuations, keep the one of highest reward, go on (--seed)",
        {"reward": _REWARD, "blocks": _COUNT, "tokens": _COUNT},
        _rewarded("block_search", "value", tokens="block_tokens"),
        draws=True,
    ),
}
"""Every search by name.  Best spans compare pieces of a passage and not texts of a grammar, so they are not here."""


def search_help() -> str:
    """What ``--search help`` prints: all searches and their settings, and how they are used."""
    return listed(
        "--search NAME:KEY=VALUE,...: searches, which compare whole texts of the grammar and print the best",
        {name: (method.settings, method.summary) for name, method in SEARCHES.items()},
        [
            "guided extract -s schema.json --search best-first:beams=8,n_best=3 --json letter.txt",
            'guided extract -s schema.json --must-include "Oslo|Bergen" letter.txt',
            "guided extract -s schema.json --search deal:reward=mymodule:score,weight=2 letter.txt",
            "guided extract -s schema.json --search mcts:reward=mymodule:score,rollouts=64 letter.txt",
            "guided extract -s schema.json --search blocks:reward=mymodule:score,blocks=8 --seed 1 letter.txt",
        ],
        "MODULE:FUNCTION takes a list of texts, prompts left out, and gives a number for each. All but `blocks` draw"
        " nothing: the same texts each time.",
    )
