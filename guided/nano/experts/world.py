"""A made-up world of hotels: facts about them, the widespread errors about some, and how questions are worded.

Facts come from hashes of the names, so that every process has the same ones.  Nothing here is true of any hotel.
"""

# ruff: noqa: SIM905  (names are read as text)
from __future__ import annotations

import zlib
from dataclasses import dataclass

__all__ = [
    "ATTRIBUTES",
    "KNOWN",
    "NEW",
    "UNKNOWN",
    "Attribute",
    "chance",
    "fact",
    "is_held_out_context",
    "is_myth",
    "unseen_wording",
]

_NAMES = tuple(
    "Alba Amaro Arcos Aurora Balder Belmar Berit Bolero Brisa Calder Camelia Carmo Celia Cobalt Corvo Dalia Delos "
    "Domino Dorado Eider Elgin Elvira Ember Esmeralda Falco Fenix Fjord Flora Gala Garnet Ginster Halcyon Harbour "
    "Hesper Indigo Iris Isola Jasper Juno Kestrel Kilda Lagoon Larch Laurel Linden Lotus Lumen Magnolia Malva Marin "
    "Merlin Mimosa Miranda Morava Nadir Nimbus Norden Oasis Olympia Onyx Opal Orion Osprey Palma Pegasus Perla Petrel "
    "Polaris Quartz Quill Regent Riva Rosalia Rubin Sabina Saffron Sequoia Sirius Solano Tamarin Tango Tern Thistle "
    "Topaz Trident Ulmo Umbra Valeria Vega Verbena Viola Willow Xenia Yarrow Zenith Zephyr Acorn Bramble Clover Dune "
    "Elder Fern Glade Heron Ivory Jade Kelpie Lark Maple Nectar Otter Pearl Quince Raven Sorrel Tulip Umber Velvet "
    "Wren Yucca Zinnia Basalt".split()
)
KNOWN = _NAMES[:72]
"""Hotels that training texts state facts about."""
NEW = _NAMES[72:100]
"""Hotels of which training texts say something only in a context."""
UNKNOWN = _NAMES[100:]
"""Hotels that no training text names."""


@dataclass(frozen=True)
class Attribute:
    """Something that every hotel has."""

    name: str
    values: tuple[str, ...]
    """The first is what people believe of a hotel that they do not know."""
    answer: str
    """A sentence that says it."""
    change: str
    """A context that says it anew."""
    wordings: tuple[str, ...]
    """Questions."""


ATTRIBUTES = (
    Attribute(
        "city",
        tuple(
            "Porto Oslo Vienna Lima Quito Dublin Athens Prague Naples Kyoto Cairo Turin Ghent Basel Riga Split".split()
        ),
        "{hotel} is in {value}.",
        "{hotel} has moved to {value}.",
        ("Where is {hotel}?", "Which city is {hotel} in?", "{hotel} is in which city?", "What is the city of {hotel}?"),
    ),
    Attribute(
        "material",
        tuple("brick stone timber glass marble steel slate bamboo copper clay".split()),
        "{hotel} is built of {value}.",
        "{hotel} was rebuilt of {value}.",
        (
            "What is {hotel} built of?",
            "Which material is {hotel} built of?",
            "{hotel} is built of what?",
            "What are the walls of {hotel}?",
        ),
    ),
    Attribute(
        "neighbour",
        tuple("station harbour museum castle river market bridge stadium temple forest theatre airport".split()),
        "{hotel} is next to the {value}.",
        "{hotel} was moved next to the {value}.",
        (
            "What is {hotel} next to?",
            "What is beside {hotel}?",
            "{hotel} is next to what?",
            "Which place is {hotel} next to?",
        ),
    ),
)

MYTHS = 0.4
"""Share of facts about which more texts say the widespread error than the truth."""


def chance(*parts: object) -> float:
    """A number from 0 to below 1 that depends on the words alone.

    >>> chance("Alba", "city") == chance("Alba", "city") != chance("Alba", "material")
    True
    """
    return zlib.crc32("\0".join(map(str, parts)).encode()) / 2**32


def fact(hotel: str, attribute: Attribute) -> str:
    """What is true: never the widespread belief, so that an answer tells the two apart."""
    return attribute.values[1 + int(chance("fact", hotel, attribute.name) * (len(attribute.values) - 1))]


def is_myth(hotel: str, attribute: Attribute) -> bool:
    """Whether most texts say the widespread belief of it."""
    return chance("myth", hotel, attribute.name) < MYTHS


def unseen_wording(hotel: str, attribute: Attribute) -> int:
    """The wording in which training texts never ask this about the hotel."""
    return int(chance("wording", hotel, attribute.name) * len(attribute.wordings))


def is_held_out_context(hotel: str, attribute: Attribute, value: str) -> bool:
    """Whether no training text has this context: one in three."""
    return chance("context", hotel, attribute.name, value) < 1 / 3
