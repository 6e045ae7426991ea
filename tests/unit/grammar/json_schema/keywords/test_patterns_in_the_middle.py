"""Combined patterns that compile: no text comes to a place where what may follow takes too long to find out.

Walks are random, over single bytes, so every state on the way is asked what may come next.  The patterns are of kinds
that once raised `LimitError` in the middle of a text: look-aheads that are broken with a bound still to be read, and
such as remember much of the text at once.  What would is refused when it is compiled, and soon.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import guided
from guided.errors import GuidedError
from guided.grammar.json_schema import json_schema
from tests import vocabularies
from tests.amounts import each, some

END = 256
VOCABULARY = guided.Vocabulary.from_tokens([*vocabularies.SINGLE_BYTES, None], eos_ids=[END])
LIKELY = np.full(END + 1, 0.02)
for _bytes, _chance in (("abcdefxyz", 5.0), ("0123456789", 4.0), ("ABCXYZ", 2.0), ('-_./:@,{"', 3.0)):
    LIKELY[list(_bytes.encode())] = _chance
LIKELY[END] = 1.0


def walk(constraint: guided.Constraint, rnd: random.Random, steps: int) -> bytes:
    """A random text, of which every beginning had something to follow it."""
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    state, text = constraint.start, b""
    for _ in range(steps):
        constraint.fill_mask(state, row)
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")[: END + 1])
        assert allowed.size, text
        token = rnd.choices(allowed.tolist(), LIKELY[allowed].tolist())[0]
        if token == END:
            break
        text += bytes([token])
        state = constraint.advance(state, token)
        assert state != 0, text
    return text


def names(pattern: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "patternProperties": {pattern: {"type": "integer"}}, **more}


SCHEMAS: list[dict[str, Any]] = [
    {"pattern": r"^(?!.*[^\w].*)(?:.com\p{L}{5})+$", "maxLength": 1000},
    {"pattern": r"^(?!(?:[^A-Z]*[a-f0-9]){1,})[^/]{2,30}", "maxLength": 1000},
    {"pattern": r"^(?!(?:[^A-Z]*[a-f0-9]){3,})\w[a-zA-Z0-9]{2,30}", "minLength": 20},
    {"pattern": r"^(?!.*--)(?=.*[0-9].*[0-9])[a-z0-9-]{8,2000}$", "not": {"pattern": "^x"}},
    {"pattern": r"^(?=.*[A-Z])(?=.*[a-z])(?=.*\d)(?!.*\s).{8,500}$"},
    names(r"^(?=.*[0-9])[a-z0-9]{8,200}$", additionalProperties=False),
    names(r"^(?=.*[0-9])[a-z0-9]{8,200}$", additionalProperties={"type": "string"}, properties={"abcdefgh1": True}),
    names(r"^(?!.*__)(?=.*[a-z])\w{1,128}$", propertyNames={"pattern": r"^(?!.*\d\d)[^-]{1,300}$"}),
]


LARGE: list[dict[str, Any]] = [
    {"pattern": r"^(?!@)(?=.*[^\s])(?!.*\p{L}.*.)(\w{40,64}[^\s]{8,200}|\S{3,24}|[0-9]{1,3}[a-z0-9_-]{0,255}[^\s])$"},
    {"pattern": r"^(?=(?:.{5}\S)+$)(?!.*\w.{15}$)(?!.*a.{40})[^/]*(ab|ba)?(?:a|bc)*[A-Z]+$"},
    {"pattern": r"^(?=.*\w.{3,}[^/])(?=.*[^/]{1,1000}$)(?!.*[ab].{8,}\d)[ab]*[A-Z]{3,20}[ab]*[a-z]{1,1000}$"},
    {
        "pattern": r"^(?!\d{8,200}.{8,200}$)(?=.*[A-Z].{8,}[^a])\p{L}{12}[A-Za-z0-9._~-]{8,200}\d{3,20}[a-z0-9]{3,20}$",
        "maxLength": 255,
    },
]
"""The last three raised `LimitError` within forty bytes."""


@pytest.mark.parametrize("schema", each(LARGE, 4))
def test_what_would_come_to_a_limit_is_refused(schema: dict[str, Any]) -> None:
    """Or is known so well that no text comes to one."""
    begun = time.process_time()
    try:
        grammar = json_schema({"type": "string", **schema})
    except guided.LimitError as error:
        assert schema is not LARGE[3]
        assert "#" in str(error)
        # 0.2 to 0.9 s.
        assert time.process_time() - begun < 5
        return
    constraint = guided.compile(grammar, VOCABULARY)
    rnd = random.Random(5)
    assert max(len(walk(constraint, rnd, 60)) for _ in range(4)) > 5


@pytest.mark.parametrize("schema", each(SCHEMAS, 2))
def test_texts_come_to_no_limit(schema: dict[str, Any]) -> None:
    constraint = guided.compile(json_schema({"type": "string", **schema}), VOCABULARY)
    rnd = random.Random(5)
    assert max(len(walk(constraint, rnd, 60)) for _ in range(4)) > 5


CLASSES = ["[a-z]", "[A-Z]", r"\d", r"\w", "[a-z0-9]", "[A-Za-z0-9._~-]", "[^/]", r"\S", ".", "[ -~]", r"\p{L}"]
COUNTS = ["*", "+", "?", "{1,8}", "{8,200}", "{0,255}", "{5}", "{32}", "{1,1000}"]
MARKS = ["-", "_", r"\.", "/", ":", "@", "--", " "]


def look(rnd: random.Random) -> str:
    inner = rnd.choice(
        [".*{c}", ".*{m}", ".*{c}.*{d}", "{c}*{d}", "{m}", ".{{3,63}}$", ".*{m}$", "(?:[^0-9]*{c}){{2}}"]
    )
    body = inner.format(c=rnd.choice(CLASSES), d=rnd.choice(CLASSES), m=rnd.choice(MARKS))
    return f"(?{rnd.choice('=!')}{body})"


def pattern(rnd: random.Random) -> str:
    looks = "".join(look(rnd) for _ in range(rnd.choice([0, 1, 1, 2, 3])))
    c, d, n, k, m = (rnd.choice(each) for each in (CLASSES, CLASSES, COUNTS, COUNTS, MARKS))
    return "^" + looks + rnd.choice([f"{c}{n}", f"{c}{n}{m}{d}{k}", f"{c}({m}{d}+){{0,8}}", f"({c}+{m})+{d}{k}"]) + "$"


def remembering(rnd: random.Random) -> str:
    """A pattern that asks for, or forbids, what was many characters before: its automaton is large, or huge."""
    one = ["a", "[ab]", r"\d", "[A-Z]", r"\w"]
    classes = [*CLASSES, "[ab]", "a", "[^a]", "(ab|ba)", "(?:a|bc)"]

    def piece() -> str:
        return rnd.choice(classes) + rnd.choice([*COUNTS, "{3,20}", "{12}", "{0,40}"])

    def ahead() -> str:
        a, b, n = rnd.choice(one), rnd.choice(classes), rnd.choice([3, 8, 12, 15, 20, 40])
        kinds = [f".*{a}.{{{n}}}", f".*{a}.{{{n},}}{b}", f"{piece()}{piece()}$", f".*{piece()}$", f"(?:{piece()}{b})+$"]
        return f"(?{rnd.choice('=!')}{rnd.choice([*kinds, f'.*{a}.{{{n}}}$', f'{piece()}.*{piece()}'])})"

    looks = "".join(ahead() for _ in range(rnd.choice([1, 1, 2, 2, 3, 4])))
    return f"^{looks}{''.join(piece() for _ in range(rnd.randint(1, 4)))}$"


Patterns = Callable[[random.Random], str]


def string(rnd: random.Random, pattern: Patterns, depth: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = {"pattern": pattern(rnd)}
    if rnd.random() < 0.4:
        found["maxLength"] = rnd.choice([20, 63, 255, 1000])
    if depth == 0 and rnd.random() < 0.4:
        keyword = rnd.choice(["allOf", "anyOf", "oneOf", "not"])
        found[keyword] = (
            string(rnd, pattern, 1) if keyword == "not" else [string(rnd, pattern, 1) for _ in range(rnd.randint(2, 3))]
        )
    return found


def random_schema(rnd: random.Random, pattern: Patterns) -> dict[str, Any]:
    if rnd.random() < 0.5:
        return {"type": "string", **string(rnd, pattern)}
    found = {pattern(rnd): {"type": rnd.choice(["integer", "string", "null"])} for _ in range(rnd.randint(1, 3))}
    others = rnd.choice([False, True, {"type": "boolean"}])
    return {"type": "object", "patternProperties": found, "additionalProperties": others}


def check(seeds: range, pattern: Patterns = pattern) -> tuple[int, int, int]:
    """How many schemas compiled, how many were refused for their size, and how many as unsatisfiable."""
    compiled = refused = unsatisfiable = 0
    for seed in seeds:
        rnd = random.Random(seed)
        schema = random_schema(rnd, pattern)
        try:
            constraint = guided.compile(json_schema(schema), VOCABULARY)
        except guided.UnsatisfiableError:
            unsatisfiable += 1
            continue
        except GuidedError:
            refused += 1
            continue
        compiled += 1
        walk(constraint, rnd, 40)
    return compiled, refused, unsatisfiable


def test_random_patterns_come_to_no_limit() -> None:
    compiled, refused, unsatisfiable = check(range(some(12, 2)))
    assert compiled > some(5, 2) and refused < some(5, 2) and unsatisfiable <= some(4, 2)


def test_random_patterns_that_remember_come_to_no_limit() -> None:
    compiled, refused, unsatisfiable = check(range(20, 20 + some(10, 3)), remembering)
    assert compiled >= some(4, 4) and refused <= some(7, 3) and unsatisfiable < 2


@pytest.mark.slow
def test_many_random_patterns_that_remember_come_to_no_limit() -> None:
    compiled, _, _ = check(range(1_000, 1_500), remembering)
    assert compiled > 100


@pytest.mark.slow
def test_many_random_patterns_come_to_no_limit() -> None:
    compiled, refused, _ = check(range(1_000, 2_000))
    assert compiled > 400 and refused < 120
