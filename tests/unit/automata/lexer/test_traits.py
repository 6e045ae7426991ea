"""Which languages loop, so that effects of their states are kept."""

from __future__ import annotations

import pytest

from guided.automata.lexer.traits import loops
from guided.grammar.formats.patterns import pattern_language


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a*", True), ("ab{7}", False), ("ab{8}", True), ("(a|b[0-9]+)c", True), ("[0-9a-f]{4}-[0-9a-f]{4}", False),
        # Of one character that may be nearly any few tokens are made, of two many.
        (".", False), (".-.", False), ("..", True), (".{2,3}", True), ("a-[^,][^;]b", True), (".[a-z].", False),
        ("[A-Za-z0-9]{4}", False),
    ],
)  # fmt: skip
def test_what_repeats_loops_and_so_do_two_characters_that_may_be_any(pattern, expected):
    assert loops(pattern_language(pattern)) is expected
