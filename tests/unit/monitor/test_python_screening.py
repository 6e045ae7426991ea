"""An engine that always knows names: then a place that is screened out although it is analysed would show in a mask."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import guided
from guided.monitor.monitor import WatchedText, monitored
from guided.monitor.python_identifiers import python_identifiers
from guided.monitor.python_text import Place, Primary, PythonText, before_dot
from guided.testing import check_constraint
from tests import vocabularies
from tests.amounts import each

FRAGMENTS = [
    "x", "self", "s", ".", "x.", "self.", "a.b.", "()", "(", ")", "[", "]", "{", "}", "'", '"', '"""', "'a'", "# ", "\n", "\n    ",
    " ", "\t", "1", "1.", "0x", "from ", "import ", "import *", "from . import ", "lambda ", "for ", " in ", "def f(", "):", ":", ";",
    "=", " = ", ":=", ",", "é", "größe", "print", "None", "if ", "return ", "\\\n", "\r", "zz", "z", ").", "].", "'.", "f'", "...",
    "().", "[].", "('').", "x().y.", " x.", "(x.", "\nx.",
]  # fmt: skip


class Knowing:
    """Names the same two members everywhere."""

    def complete(self, source: str, suffix: str, seconds: float) -> frozenset[str]:
        assert isinstance(source, str) and isinstance(suffix, str)
        return frozenset({"zz", "z"})

    def close(self) -> None:
        pass


def vocabulary() -> guided.Vocabulary:
    tokens = [*vocabularies.SINGLE_BYTES, *(text.encode() for text in FRAGMENTS), b"</s>"]
    return guided.Vocabulary.from_tokens(tokens, eos_ids=[len(tokens) - 1])


@pytest.mark.parametrize("seed", each(range(4), 2))
@pytest.mark.parametrize("assignments", [False, True])
def test_masks_with_an_engine_that_always_knows(seed, assignments, tmp_path):
    watching = python_identifiers(tmp_path, engine=Knowing, assignments=assignments)
    before = "x = self = s = a = zz = 1\n" + "".join(random.Random(seed).choices(FRAGMENTS, k=5 * seed))
    check_constraint(
        monitored(watching, vocabulary(), before=before), seed=seed, walks=6, length=25, pickled=False, threads=1
    )


@settings(max_examples=400)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14), st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=3))
def test_what_is_screened_out_is_not_analysed(fragments, more):
    watching = python_identifiers(".", engine=Knowing)
    text, prefix = "".join(fragments).encode(), "".join(more).encode() + b"."
    lexical, context = watching.lexical_start, watching.context_start
    for position, byte in enumerate(text + prefix):
        if position == len(text):
            outside = watching.screen(text, context)
        context = watching.follow(context, lexical, byte, position)
        lexical = watching.read(lexical, byte)
    if PythonText.dereferences(lexical) and not outside(prefix):
        assert watching.analyse(text + prefix, context) is None


@given(st.text(alphabet="ab.()[]{}'\"\\ \n\té1_rf#", max_size=40), st.booleans())
def test_any_text_can_be_read_backwards(text, inside):
    found = before_dot(text + ".", inside=inside)
    assert isinstance(found, (Place, Primary))
    if isinstance(found, Primary):
        assert 0 <= found.start <= len(text)
        assert found.root is None or text[found.start :].startswith(found.root)


@given(st.binary(max_size=40))
def test_any_bytes_can_stand_before_the_cursor(before):
    watching = python_identifiers(".", engine=Knowing)
    language = WatchedText(watching, before)
    assert language.may_end(0) or language.rest(0)
