"""Names of tables, columns and fields, and the values that are stored in them; all drawn from one side of the split."""

# ruff: noqa: SIM905  (word lists are read as text)
from __future__ import annotations

import datetime
import random
from dataclasses import dataclass

import words
from words import Lexicon

__all__ = [
    "RESERVED",
    "Name",
    "Style",
    "column_name",
    "date_value",
    "number_value",
    "plural",
    "styled",
    "text_value",
    "written_date",
]

Style = str
"""``snake``, ``camel``, ``plain`` (words run together) or ``pascal``: how a schema joins the words of a name."""

STYLES: tuple[Style, ...] = ("snake",) * 6 + ("camel", "plain", "pascal")
RESERVED = frozenset(
    "add all alter and as asc between by case check column commit create default delete desc distinct drop else end "
    "escape except exists for foreign from full group having if in index insert intersect into is join key left like "
    "limit match natural not null of offset on or order outer plan primary query references release replace right "
    "row select set table then to transaction trigger union unique update using values view virtual when where "
    "with".split()
)
"""Words that SQL wants quoted when they are identifiers; generated names are never one of these."""

MONTHS = "January February March April May June July August September October November December".split()


@dataclass(frozen=True)
class Name:
    """An identifier and the words that a person would say for it."""

    identifier: str
    spoken: str


def styled(parts: list[str], style: Style) -> str:
    """The words joined into an identifier."""
    if style == "snake":
        return "_".join(parts)
    if style == "camel":
        return parts[0] + "".join(part.capitalize() for part in parts[1:])
    if style == "pascal":
        return "".join(part.capitalize() for part in parts)
    return "".join(parts)


def plural(word: str) -> str:
    """The regular English plural of a noun."""
    if word.endswith(("s", "x", "ch", "sh", "z")):
        return word + "es"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def column_name(rng: random.Random, base: list[str], style: Style, lexicon: Lexicon) -> Name:
    """A name of one or two words: from ``base``, sometimes qualified by another word or made up altogether."""
    while True:
        name = _column_name(rng, base, style, lexicon)
        if name.identifier.lower() not in RESERVED:
            return name


def _column_name(rng: random.Random, base: list[str], style: Style, lexicon: Lexicon) -> Name:
    draw = rng.random()
    if draw < 0.25:
        parts = [words.made_up_word(rng, lexicon)]
    else:
        parts = [words.pick(rng, base, lexicon)]
    if rng.random() < 0.35:
        first = rng.random()
        if first < 0.3:
            parts.insert(0, words.made_up_word(rng, lexicon))
        elif first < 0.65:
            parts.insert(0, words.pick(rng, words.NOUNS, lexicon))
        else:
            parts.insert(0, words.pick(rng, words.ATTRIBUTES, lexicon))
    return Name(styled(parts, style), " ".join(parts))


def text_value(rng: random.Random, lexicon: Lexicon) -> str:
    """A value of a text column: a person, a place, a few loose words, a made-up word or a code."""
    draw = rng.random()
    if draw < 0.2:
        return words.pick(rng, words.FIRST_NAMES, lexicon) + " " + _last_name(rng, lexicon)
    if draw < 0.3:
        return words.pick(rng, words.FIRST_NAMES, lexicon)
    if draw < 0.45:
        return words.pick(rng, words.CITIES, lexicon)
    if draw < 0.6:
        return words.pick(rng, words.LOOSE_WORDS, lexicon)
    if draw < 0.72:
        return " ".join(words.pick(rng, words.LOOSE_WORDS, lexicon) for _ in range(rng.randint(2, 3)))
    if draw < 0.82:
        return _last_name(rng, lexicon) + " " + rng.choice(["Ltd", "Inc", "Group", "Labs", "and Sons", "Systems"])
    if draw < 0.9:
        return words.made_up_word(rng, lexicon).capitalize()
    if draw < 0.93:
        return _foreign(rng, words.made_up_word(rng, lexicon).capitalize())
    return rng.choice("ABCDEFGHKLMNPRSTX") + rng.choice("ABCDEFGHKLMNPRSTX") + f"-{rng.randint(10, 9999)}"


_LETTERS = ((0xC0, 0xFF), (0x100, 0x17F), (0x391, 0x3C9), (0x410, 0x44F), (0x4E00, 0x9FA5), (0x3041, 0x3096))
"""Code points outside ASCII that values are sprinkled with, so that the byte tokens are learned too."""


def _foreign(rng: random.Random, word: str) -> str:
    """The word with one or two letters replaced by ones outside ASCII."""
    letters = list(word)
    for _ in range(rng.randint(1, 2)):
        letters[rng.randrange(len(letters))] = chr(
            rng.randint(*rng.choice(_LETTERS[:3] if rng.random() < 0.7 else _LETTERS))
        )
    return "".join(letters)


def _last_name(rng: random.Random, lexicon: Lexicon) -> str:
    if rng.random() < 0.4:
        return words.made_up_word(rng, lexicon).capitalize()
    return words.pick(rng, words.LAST_NAMES, lexicon)


def number_value(rng: random.Random, whole: bool) -> str:
    """A number as it is written, of one to six digits; not whole ones carry one or two decimals."""
    digits = rng.choice([1, 2, 2, 2, 3, 3, 4, 5])
    number = rng.randint(10 ** (digits - 1), 10**digits - 1)
    if whole:
        return str(number)
    return f"{number}.{rng.randint(1, 9)}" if rng.random() < 0.6 else f"{number}.{rng.randint(0, 9)}{rng.randint(1, 9)}"


def date_value(rng: random.Random) -> str:
    """An ISO date."""
    return (datetime.date(1990, 1, 1) + datetime.timedelta(days=rng.randrange(13000))).isoformat()


def written_date(rng: random.Random, iso: str) -> str:
    """The date as a text writes it: ISO, ``March 5, 2024`` or ``5 March 2024``."""
    date = datetime.date.fromisoformat(iso)
    month = MONTHS[date.month - 1]
    return rng.choice([iso, iso, f"{month} {date.day}, {date.year}", f"{date.day} {month} {date.year}"])
