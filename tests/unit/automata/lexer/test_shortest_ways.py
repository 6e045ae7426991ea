"""Shortest ways through long terminals: each is searched once, not anew from every place on it."""

from __future__ import annotations

from typing import Any

import pytest

import guided
from guided.automata.lexer import distances
from tests import vocabularies

BYTES = vocabularies.of_bytes()


@pytest.mark.parametrize("schema", [{"const": "ab" * 400}, {"type": "string", "minLength": 800}, {"const": "\n" * 800}])
def test_the_work_grows_as_the_text(schema: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0
    real = distances._steps

    def counted(*arguments: Any) -> Any:
        nonlocal steps
        steps += 1
        return real(*arguments)

    monkeypatch.setattr(distances, "_steps", counted)
    constraint = guided.Constraint(guided.json_schema(schema), BYTES)
    text = constraint.shortest_text(constraint.start)
    assert len(text) >= 802
    assert constraint.is_accepting(constraint.advance_bytes(constraint.start, text))
    assert steps < 8 * 800
