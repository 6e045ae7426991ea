"""Random patterns that Python's and JavaScript's engines both read, and texts that almost match them."""

from __future__ import annotations

import random

from guided.grammar.regular.decide import shortest
from guided.grammar.regular.derivative import edges
from guided.grammar.regular.expr import Expr

ATOMS = [
    "a",
    "b",
    "c",
    "0",
    " ",
    "é",
    "[ab]",
    "[^a]",
    "[a-c0-9]",
    ".",
    r"\w",
    r"\W",
    r"\d",
    r"\D",
    r"\s",
    r"\S",
    r"\n",
    "[^]a]",
]
ASSERTIONS = ["^", "$", r"\b", r"\B"]
QUANTIFIERS = ["*", "+", "?", "{2}", "{0,2}", "{1,3}", "{2,}", "*?", "+?", "??", "{1,2}?"]
LETTERS = "aabbc0 é\n_-]"


def pattern(random: random.Random, *, atomic: bool = False, depth: int = 0, assertions: bool = True) -> str:
    """A pattern in the notation that both dialects share; ``atomic``: with Python's atomic groups and possessives."""

    def again() -> str:
        return pattern(random, atomic=atomic, depth=depth + 1, assertions=assertions)

    kind = random.random()
    if depth > 3 or kind < 0.3:
        return random.choice(ATOMS + ASSERTIONS if assertions else ATOMS)
    if kind < 0.55:
        return again() + again()
    if kind < 0.67:
        return f"(?:{again()}|{again()})"
    if kind < 0.72:
        return f"({again()})"
    if kind < 0.85 or not assertions:
        return f"(?:{again()})" + random.choice(QUANTIFIERS + (["*+", "++", "?+", "{1,2}+"] if atomic else []))
    if atomic and kind < 0.92:
        return f"(?>{again()})"
    return random.choice(["(?=", "(?!", "(?<=", "(?<!"]) + again() + ")"


def walk(random: random.Random, language: Expr, steps: int) -> bytes:
    """A text of the language: at random for some steps, then the shortest way out."""
    path = bytearray()
    for _ in range(random.randrange(steps + 1)):
        outgoing = edges(language)
        if not outgoing:
            break
        low, high, language = random.choice(outgoing)
        path.append(random.randint(low, high))
    rest = shortest(language)
    assert rest is not None
    return bytes(path) + rest


def texts(random: random.Random, language: Expr, count: int) -> list[str]:
    """Random short texts, and members of the language as they are and with one character changed, added or removed."""
    result = ["".join(random.choice(LETTERS) for _ in range(random.randrange(7))) for _ in range(count)]
    for _ in range(count if language.inhabited else 0):
        member = walk(random, language, 12).decode()
        result.append(member)
        at = random.randrange(len(member) + 1)
        letter = random.choice(["", *LETTERS])
        result.append(member[:at] + letter + member[at + random.randrange(2) :])
    return result
