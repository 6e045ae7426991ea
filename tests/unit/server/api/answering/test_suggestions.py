"""What an editor is told may come next is what the meta-schema allows, and what it is told is wrong is."""

from __future__ import annotations

import jsonschema
import pytest

from guided.server.api.answering.suggestions import suggested


def inserts(text: str) -> list[str]:
    return [one.insert for one in suggested(text).suggestions]


@pytest.mark.parametrize(
    ("text", "among"),
    [
        ("{", '"type": '),
        ('{"ty', 'pe": '),
        ('{"type": ', '"string"'),
        ('{"type": "in', 'teger"'),
        ('{"properties": {"a": {"max', 'imum": '),
        ('{"format": "date', '-time"'),
        ('{"type": "string"', "}"),
        ('{"anyOf": [', "{"),
    ],
)
def test_what_may_come_next(text: str, among: str) -> None:
    assert among in inserts(text)


def test_names_of_properties_are_the_authors() -> None:
    assert not any("type" in one for one in inserts('{"properties": {'))
    assert '"type": ' in inserts('{"properties": {"properties": {')


def test_keywords_that_are_there_are_not_suggested_again() -> None:
    assert '"type": ' not in inserts('{"type": "string", ')


@pytest.mark.parametrize("text", ['{"type": "strin"', '{"required": [1', "[1", '{"type" "a"'])
def test_what_can_be_no_schema_is_told(text: str) -> None:
    assert not suggested(text).valid and not suggested(text).suggestions


def test_each_suggestion_leads_to_a_schema() -> None:
    """By following suggestions at random, a text is never led where the meta-schema refuses what is whole."""
    import json
    import random

    rng = random.Random(0)
    whole = 0
    for _ in range(10):
        text = "{"
        for _ in range(12):
            found = inserts(text)
            assert found or text.endswith('"'), text
            if not found:
                break
            text += rng.choice(found)
            assert suggested(text).valid, text
            try:
                schema = json.loads(text)
            except ValueError:
                continue
            jsonschema.Draft7Validator.check_schema(schema)
            whole += 1
            break
    assert whole >= 2
