"""The format ``regex``, and its twin, against a JavaScript engine, where `node` is installed."""

from __future__ import annotations

import json
import random
import shutil
import subprocess

import pytest

from guided.grammar.formats.pattern_reading import is_pattern
from guided.grammar.formats.regex_languages import plain_patterns, skeletons
from guided.grammar.formats.unicode_names import property_expressions
from guided.grammar.regular.derivative import matches
from tests.amounts import mostly_slow
from tests.twin import ecma_patterns as twin
from tests.unit.constraint.formats.test_format_regex import FORWARD, INVALID, PIECES, VALID

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="no node on this machine")

SCRIPT = """
const rows = JSON.parse(require('fs').readFileSync(0, 'utf8'));
console.log(JSON.stringify(rows.map(text => { try { new RegExp(text, 'u'); return true; } catch (e) { return false; } })));
"""


def node(texts: list[str]) -> list[bool]:
    assert NODE is not None
    result = subprocess.run([NODE, "-e", SCRIPT], input=json.dumps(texts), capture_output=True, text=True, check=True)
    found: list[bool] = json.loads(result.stdout)
    return found


def test_the_lists_of_the_unit_tests() -> None:
    # Newer engines have the modifiers of ECMA-262's 16th edition.
    texts = [text for text in [*VALID, *FORWARD, *INVALID] if not text.startswith("(?i:")]
    assert node(texts) == [twin.is_pattern(text) for text in texts]


def test_names_of_properties() -> None:
    texts = [f"\\p{{{name}}}" for name in sorted(property_expressions())]
    assert [text for text, known in zip(texts, node(texts), strict=True) if not known] == []


@pytest.mark.parametrize("seed", mostly_slow(range(4), 1))
def test_random_texts(seed: int) -> None:
    rng = random.Random(seed)
    items = [
        "a",
        "z",
        "-",
        "-",
        "\\d",
        "\\uD83D",
        "\\uDE00",
        "\\u{1F600}",
        "\\x41",
        "é",
        "一",
        "😀",
        "😂",
        "\\0",
        "\\b",
        "^",
        "\\-",
        "[",
    ]
    texts = ["".join(rng.choices(PIECES, k=rng.randint(1, 8))) for _ in range(4000)]
    texts += ["[" + "".join(rng.choices(items, k=rng.randint(1, 6))) + "]" for _ in range(4000)]
    for text, valid in zip(texts, node(texts), strict=True):
        assert twin.is_pattern(text) == valid, text
        assert is_pattern(text) == valid, text
        assert matches(skeletons(), text.encode()) or not valid, text
        assert valid or not matches(plain_patterns(), text.encode()), text
