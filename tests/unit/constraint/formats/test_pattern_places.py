"""What is told of places in a pattern at once is what trying every character says."""

import random

from guided.constraint.formats.pattern_text import BEGINNING, PatternText
from guided.grammar.formats.pattern_reading import Reading, row
from guided.grammar.formats.regex_automata import EXACT
from guided.grammar.regular.json_text import spelled_ranges
from guided.grammar.regular.stepwise import by_byte


def _read(reading: Reading, text: str) -> Reading | None:
    now: Reading | None = reading
    for byte in text.encode():
        now = None if now is None else now.step(byte)
    return now


def _places(rng: random.Random, n: int):
    """Places in random patterns, at whole characters."""
    for _ in range(n):
        now = BEGINNING.reading
        for _ in range(rng.randint(0, 12)):
            letter = rng.choice("^$[[[]]-((??:=<>|\\\\{}12,auxdk0é\u3042\U0001f600")
            after = _read(now, letter)
            now = now if after is None else after
        yield now


def test_rows_are_those_of_the_automaton():
    for reading in _places(random.Random(1), 400):
        assert row(reading.state) == by_byte(EXACT.steps(reading.state)), reading.state


def test_an_escape_may_begin_where_some_character_of_it_may_come():
    rng = random.Random(2)
    for reading in _places(rng, 150):
        if 0x80 <= min(row(reading.state)) < 0xC0:
            continue
        for pending in ("u0", "u00", "u005", "ud8", "ud83", "ue00", "u20", "ud83d\\udc"):
            ranges = spelled_ranges(pending)
            few = [code for low, high in ranges for code in (low, high, *(rng.randint(low, high) for _ in range(60)))]
            few += [code for low, high in ranges for code in range(low, min(high, 0x7F) + 1)]
            found = PatternText(reading, b"\\" + pending.encode())._can_end()
            if any(_read(reading, chr(code)) is not None for code in few):
                assert found, (reading, pending)
            elif all(high - low < 0x400 for low, high in ranges):
                codes = [code for low, high in ranges for code in range(low, high + 1)]
                assert found == any(_read(reading, chr(code)) is not None for code in codes), (reading, pending)
