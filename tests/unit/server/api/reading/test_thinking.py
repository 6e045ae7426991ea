"""Reasoning is told apart from the answer, however the text is cut into pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from guided.server.api.reading.calls import ContentReader
from guided.server.api.reading.parts import Content, Reasoning
from guided.server.api.reading.thinking import ThinkingReader

PIECES = st.lists(st.sampled_from(["<think>", "</think>", "a", "\n", "<", "</thin", "k>", "é"]), max_size=8)


def told(begin: str | None, text: str, cuts: list[int]) -> tuple[str, str]:
    reader = ThinkingReader(begin, "</think>", ContentReader())
    parts, at = [], 0
    for size in [*cuts, len(text)]:
        parts += reader.read(text[at : at + size])
        at += size
    parts += reader.close()
    reasoning = "".join(part.text for part in parts if isinstance(part, Reasoning))
    return reasoning, "".join(part.text for part in parts if isinstance(part, Content))


def twin(begin: str | None, text: str) -> tuple[str, str]:
    """The same of the whole text at once."""
    if begin is not None:
        if not text.startswith(begin):
            return "", text
        text = text[len(begin) :]
    reasoning, found, answer = text.partition("</think>")
    return (reasoning, answer.lstrip("\n")) if found else (reasoning, "")


@given(st.sampled_from([None, "<think>"]), PIECES, st.lists(st.integers(1, 4), max_size=12))
def test_pieces_say_what_the_whole_says(begin: str | None, pieces: list[str], cuts: list[int]) -> None:
    text = "".join(pieces)
    assert told(begin, text, cuts) == twin(begin, text)


def test_a_part_of_the_beginning_alone_is_content() -> None:
    assert told("<think>", "<thi", [1, 1]) == ("", "<thi")
