"""ECMA-262 patterns against a JavaScript engine, where `node` is installed."""

from __future__ import annotations

import json
import random
import shutil
import subprocess

import pytest

from guided.errors import GuidedError
from guided.grammar.regex import Dialect, parse, search
from guided.grammar.regular.characters import Utf8
from guided.grammar.regular.decide import is_empty
from guided.grammar.regular.derivative import matches
from tests.amounts import Refusals, mostly_slow
from tests.twin import patterns

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="no node on this machine")
UTF8 = Utf8()

# With the flag u, matches begin at characters (RegExpBuiltinExec); V8 finds \B inside of surrogate pairs, too.
SCRIPT = """
const rows = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const found = (expression, text, flags) => {
  if (!flags.includes('u')) return expression.test(text);
  let at = 0;
  for (const character of [...text, '']) {
    expression.lastIndex = at;
    if (expression.test(text)) return true;
    at += character.length;
  }
  return false;
};
console.log(JSON.stringify(rows.map(([pattern, flags, texts]) => {
  let expression;
  try { expression = new RegExp(pattern, flags.includes('u') ? flags + 'y' : flags); } catch (error) { return null; }
  return texts.map(text => found(expression, text, flags));
})));
"""

CORNERS = [
    r"^\d+$", r"\s", r"^[^]$", r"^[^\d]$", r"^[]?$", r"^\cJ$", r"^[\cJ]$", r"^\x41A$", r"^\u{1F600}$", r"^\ud83d\ude00$", "^😀$",
    r"^[😀-😂]$", r"^.$", r"^\/\.\*\$$", r"^[\w\-]+$", r"^\p{Lu}$", r"^\P{L}+$", r"^[\p{L}\d]+$", r"^\p{Script=Greek}+$",
    r"^\p{Alphabetic}$", r"(?<year>\d{4})", r"^\0$", r"a$", r"^a|b$", r"\bfoo\b", r"\Bfoo", r"(?<!a)b", r"(?<=a.*)b", r"^\v\f\t$",
    r"^(?:a|ab)(?:c|bcd)$", r"^[^a]$", r"^\w$", r"^\W$", r"^[\W]$", r"^(?:(?!foo).)*$", r"^[\b]$", r"^a{2,3}$", r"^(?:a?)??$", r"x*",
]  # fmt: skip
TEXTS = [
    "", "a", "b", "ab", "abc", "abcd", "foo", " foo ", "foobar", "xfoo", "5", "12", "\n", "\r", "\u2028", "\ufeff", "\x85", "\xa0", "\x1c",
    "A", "AA", "😀", "😁", "é", "É", "α", "Ω", "ſ", "\u212a", "K", "k", "_", "-", "a-b", "/.*$", "\0", "\x08", "\v\f\t", "١", "2024", "a\n", "\na",
    "aa", "aaa", "aaaa", "xyz", "\u3000", "ß", "ẞ", "\u0345", "ι", "İ", "i",
]  # fmt: skip


def node(rows: list[tuple[str, str, list[str]]]) -> list[list[bool] | None]:
    assert NODE is not None
    result = subprocess.run([NODE, "-e", SCRIPT], input=json.dumps(rows), capture_output=True, text=True, check=True)
    return json.loads(result.stdout)


@pytest.mark.parametrize("flags", ["u", "iu", "su", "mu"])
def test_corners(flags: str) -> None:
    import re

    bits = sum({"i": re.IGNORECASE, "s": re.DOTALL, "m": re.MULTILINE, "u": 0}[flag] for flag in flags)
    answers = node([(pattern, flags, TEXTS) for pattern in CORNERS])
    for pattern, answer in zip(CORNERS, answers, strict=True):
        assert answer is not None, pattern
        language = search(parse(pattern, Dialect.ECMA, bits), UTF8)
        for text, expected in zip(TEXTS, answer, strict=True):
            assert matches(language, text.encode()) == expected, (pattern, flags, text)


def test_annex_b_liberties() -> None:
    rows = [
        (p, "", TEXTS)
        for p in (r"^\-$", r"^\_$", r"^a{$", r"^}$", r"^]$", r"^[\w-]$", r"^[\w-a]$", r"^(?=a)*a$", r"^a{,2}$", r"^\@$")
    ]
    for (pattern, _, texts), answer in zip(rows, node(rows), strict=True):
        assert answer is not None, pattern
        language = search(parse(pattern, Dialect.ECMA), UTF8)
        for text, expected in zip(texts, answer, strict=True):
            if len(text.encode("utf-16-le")) == 2 * len(text):
                assert matches(language, text.encode()) == expected, (pattern, text)


@pytest.mark.parametrize("block", mostly_slow(range(2), 1))
def test_random_patterns_match_what_javascript_matches(block: int) -> None:
    seed = random.Random(block)
    rows: list[tuple[str, str, list[str]]] = []
    languages = []
    with Refusals(most=0.01) as refusals:
        for pattern in (patterns.pattern(seed) for _ in range(270)):
            with refusals.trial(GuidedError):
                language = search(parse(pattern, Dialect.ECMA), UTF8)
                is_empty(language)
                rows.append((pattern, "u", patterns.texts(seed, language, 5)))
                languages.append(language)
    compared = 0
    for (pattern, _, texts), language, answer in zip(rows, languages, node(rows), strict=True):
        if answer is None:
            continue  # u-mode refuses quantified look-aheads, which Annex B allows
        compared += 1
        for text, expected in zip(texts, answer, strict=True):
            assert matches(language, text.encode()) == expected, (pattern, text)
    assert compared > 150
