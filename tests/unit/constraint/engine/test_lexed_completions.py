"""Shortest completions of grammars of whole languages, whose ends are far in bytes and near in terminals."""

from __future__ import annotations

import pytest

import guided
from guided.grammar import library
from tests import vocabularies
from tests.amounts import ALL, each

VOCABULARY = vocabularies.of_bytes()
TEXTS = {
    "c_program": [
        (b"int main(int n) { while (n) { f(g[(h * (n ? f : (n", b")))]);}}"),
        (b"int main(int n, char *a) { if (", b"0){}}"),
        (b"int a[", b"];"),
    ],
    "sqlite_select": [
        (
            b"SELECT a FROM t JOIN u ON t.x = u.y WHERE a IN (SELECT c FROM d WHERE e BETWEEN 1 AND 2 AND (f((g(",
            b"*))))",
        ),
        (b"SELECT a FROM t WHERE CASE WHEN a THEN b ELSE (c IN (", None),
    ],
    "python_expression": [
        (b"[a for b in c if (d, {e: lambda x: (f if g else h[i:j, (k", b")])})]"),
        (b"f(a, *(b or [c, {", b"}]))"),
    ],
}


@pytest.mark.parametrize("name", each(TEXTS, 2))
def test_ends_of_deep_texts_are_found(name: str) -> None:
    """Searched byte by byte they were beyond the limit, or took seconds; every beginning has one now."""
    constraint = guided.compile(library.grammar(name), VOCABULARY)
    for text, wanted in TEXTS[name]:
        state = constraint.start
        for place, byte in enumerate(text):
            state = constraint.advance(state, byte)
            assert state, text
            if place % (1 if ALL else 4) and place + 1 < len(text):
                continue
            end = state
            for token in constraint.shortest_text(state):
                end = constraint.advance(end, token)
            assert constraint.is_accepting(end)
        if wanted is not None:
            assert len(constraint.shortest_text(state)) == len(wanted)
