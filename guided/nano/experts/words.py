"""The words of made-up hotel reviews, and which of them praise, complain or are rude.

The generator of training texts and the judges of evaluations read the same lists: what a text says is then a matter of
counting, and no model is asked.
"""

# ruff: noqa: SIM905  (word lists are read as text)
from __future__ import annotations

__all__ = [
    "COMPLAINTS",
    "COUNTS",
    "INTENSIFIERS",
    "NEGATIONS",
    "NEUTRAL",
    "OPPOSITE",
    "PRAISE",
    "RUDE",
    "SEASONS",
    "THINGS",
    "VERBS_OF_COMPLAINT",
    "VERBS_OF_PRAISE",
]

THINGS = tuple(
    "room staff breakfast bed bathroom pool view lobby garden restaurant bar lift shower balcony coffee service "
    "kitchen terrace carpet window lamp sofa dinner reception".split()
)

_PAIRS = (
    "clean dirty|lovely awful|friendly hostile|quiet noisy|bright gloomy|excellent terrible|warm freezing|"
    "comfortable painful|charming ugly|fresh stale|perfect dreadful|wonderful horrible|pleasant nasty|spotless filthy|"
    "generous stingy|cheerful grim"
)
PRAISE = tuple(pair.split()[0] for pair in _PAIRS.split("|"))
COMPLAINTS = tuple(pair.split()[1] for pair in _PAIRS.split("|"))
OPPOSITE = {**dict(zip(PRAISE, COMPLAINTS)), **dict(zip(COMPLAINTS, PRAISE))}

VERBS_OF_PRAISE = tuple("loved enjoyed admired praised".split())
VERBS_OF_COMPLAINT = tuple("hated loathed regretted cursed".split())

NEUTRAL = tuple("small large old modern wooden blue simple square".split())
INTENSIFIERS = tuple("very really quite so truly".split())
NEGATIONS = tuple("not never hardly".split())
RUDE = tuple("damn bloody stupid idiotic crappy moronic".split())
"""Mild, and a stand-in for what a user may not want to read."""

COUNTS = tuple("two three four five six seven eight nine ten twelve".split())
SEASONS = tuple("spring summer autumn winter May June July August March April".split())
