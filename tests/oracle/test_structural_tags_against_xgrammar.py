"""Structural tags against XGrammar's own reading of them: the same texts are accepted and refused.

Texts are random sequences of the formats' own pieces, half of them such as stay alive here.  All are UTF-8: XGrammar's
free text holds any bytes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

import guided
from tests import vocabularies
from tests.amounts import each, some

xgrammar = pytest.importorskip("xgrammar")

VOCABULARY = vocabularies.of_bytes()
TOKENS = [bytes([byte]) for byte in range(256)]
Format = dict[str, Any]


def const(value: str) -> Format:
    return {"type": "const_string", "value": value}


def pattern(text: str) -> Format:
    return {"type": "regex", "pattern": text}


def free(*excludes: str, **limits: int) -> Format:
    return {"type": "any_text", **({"excludes": list(excludes)} if excludes else {}), **limits}


def tag(begin: str, content: Format, end: str | list[str]) -> Format:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def triggered(*triggers: str, **options: Any) -> Format:
    tags = options.pop("tags", [tag("<a>", DIGITS, "</a>"), tag("<ab>", LETTERS, ";")])
    return {"type": "triggered_tags", "triggers": list(triggers), "tags": tags, **options}


def separated(separator: str, **options: bool) -> Format:
    tags = [tag("<a>", DIGITS, "</a>"), tag("<ab>", LETTERS, ";")]
    return {"type": "tags_with_separator", "tags": tags, "separator": separator, **options}


def repeated(low: int, high: int, content: Format) -> Format:
    return {"type": "repeat", "min": low, "max": high, "content": content}


DIGITS, LETTERS = pattern("[0-9]+"), pattern("[ab]*")
CASES: dict[str, Format] = {
    "const": const("ab"),
    "nothing": const(""),
    "any": free(),
    "any but words": free("ab", "<a>"),
    "any of few characters": free(max_chars=3),
    "any of few characters but words": free("ab", max_chars=3),
    "no token": tag("<a>", free(max_tokens=0), ";"),
    "sequence": {"type": "sequence", "elements": [const("a"), free("b"), const("<a>")]},
    "or": {"type": "or", "elements": [const("a"), tag("<a>", LETTERS, ";")]},
    "tag": tag("<a>", free(), "</a>"),
    "several ends": tag("<a>", free(), ["</a>", ";", "aba"]),
    "maybe no end": tag("<a>", LETTERS, ["", ";"]),
    "an end that begins as it ends": tag("<a>", free(), "aba"),
    "tags in tags": tag(
        "<a>", {"type": "sequence", "elements": [free(), tag("<ab>", free(), ";"), free()]}, "</a>"
    ),
    "triggered": triggered("<a"),
    "triggered, one at least": triggered("<a>", "<ab>", at_least_one=True),
    "triggered, then the end": triggered("<a", stop_after_first=True),
    "triggered, just one": triggered("<a", at_least_one=True, stop_after_first=True),
    "triggered, words left out": triggered("<a", excludes=["aa", "b<"]),
    "triggered in a tag": tag("(", triggered("<a", tags=[tag("<a>", DIGITS, "</a>"), tag("<ab>", free(), ";")]), [")", "1"]),
    "separated": separated(","),
    "side by side": separated("", at_least_one=True),
    "separated, just one": separated("b", stop_after_first=True),
    "optional": {"type": "optional", "content": DIGITS},
    "plus": {"type": "plus", "content": tag("<", DIGITS, ";")},
    "star": {"type": "star", "content": const("ab")},
    "plus of what may be nothing": {"type": "plus", "content": LETTERS},
    "star of any": tag("<a>", {"type": "star", "content": free()}, ";"),
    "repeated": repeated(1, 3, const("ab")),
    "repeated without limit": repeated(2, -1, tag("<", LETTERS, ";")),
    "repeated never": repeated(0, 0, const("a")),
    "repeated, what may be nothing": repeated(2, 5, LETTERS),
    "dispatch": {"type": "dispatch", "rules": [["<a", DIGITS], ["b", const(";")]]},
    "dispatch once": {
        "type": "dispatch", "rules": [["<a", DIGITS], ["b", const(";")]], "loop": False, "excludes": ["aa"]
    },
    "dispatch that overlaps": {"type": "dispatch", "rules": [["aba", DIGITS], ["bb", const(";")]]},
    "grammar": {"type": "grammar", "grammar": 'root ::= "a" root "b" | "<"'},
}  # fmt: skip
PIECES = ["<a>", "<ab>", "</a>", "<a", "<", ">", ";", "1", "a", "b", "aa", "aab", "aba", "é", "\n", "(", ")", ",", "ab",
          "<a>12</a>", "<ab>ab;"]  # fmt: skip


def theirs(format: Format) -> Callable[[bytes], bool]:
    info = xgrammar.TokenizerInfo([*TOKENS, b"</s>"], vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[256])
    compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    compiled = compiler.compile_structural_tag(json.dumps({"type": "structural_tag", "format": format}))

    def accepts(text: bytes) -> bool:
        matcher = xgrammar.GrammarMatcher(compiled, terminate_without_stop_token=True)
        return (not text or matcher.accept_string(text)) and matcher.is_completed()

    return accepts


class Ours:
    """The format here."""

    def __init__(self, format: Format, **options: Any) -> None:
        grammar = guided.structural_tag({"type": "structural_tag", "format": format}, **options)
        self.constraint = guided.compile(grammar, VOCABULARY)

    def state(self, text: str) -> int:
        return self.constraint.advance_bytes(self.constraint.start, text.encode())

    def accepts(self, text: str) -> bool:
        state = self.state(text)
        return bool(state) and self.constraint.is_accepting(state)

    def alive(self, pieces: list[str], seed: random.Random) -> str:
        """A random text of which there are longer ones, as far as there are any."""
        text = ""
        for _ in range(seed.randint(1, 7)):
            going = [piece for piece in pieces if self.state(text + piece)]
            if not going:
                break
            text += seed.choice(going)
        return text


def compare(format: Format, pieces: list[str], seed: random.Random, trials: int, **options: Any) -> None:
    """Both say the same of random texts, some of which are accepted."""
    mine, other = Ours(format, **options), theirs(format)
    texts = {""}
    for _ in range(trials // 2):
        texts.add("".join(seed.choices(pieces, k=seed.randint(1, 7))))
        texts.add(mine.alive(pieces, seed))
    accepted = 0
    for text in sorted(texts):
        found = mine.accepts(text)
        assert found == other(text.encode()), f"{text!r}: {found}"
        accepted += found
    assert accepted


@pytest.mark.parametrize("name", each(CASES, 3))
def test_same_language(name: str) -> None:
    compare(CASES[name], PIECES, random.Random(name), some(1000, 8))


def test_rare_texts() -> None:
    """Of the formats that random texts seldom meet."""
    for name, texts in {
        "tags in tags": {
            "<a>x<ab>y;z</a>": True,
            "<a><ab>;</a>": True,
            "<a>x<ab></a>": False,
            "<a>;<ab></a>;</a>": True,
        },
        "plus": {"<1;": True, "<1;<22;": True, "": False, "<1;<;": False},
        "repeated without limit": {"<;<a;": True, "<;": False, "<;<;<;<;<;": True},
        "triggered in a tag": {"(x<a>1</a>y)": True, "(<ab>)1;x1": True, "(<ab>x)": False, "(1": True, "()": True},
        "no token": {"<a>;": True, "<a>x;": False},
    }.items():
        mine, other = Ours(CASES[name]), theirs(CASES[name])
        for text, expected in texts.items():
            assert mine.accepts(text) is expected, (name, text)
            assert other(text.encode()) is expected, (name, text)


def test_words_that_no_json_string_holds() -> None:
    """In plain spelling; of names and constants XGrammar takes one spelling only, so none of these holds a word."""
    schema = {
        "type": "object",
        "properties": {
            "s": {"type": "string"},
            "e": {"enum": ["x", "y", 3]},
            "a": {"type": "array", "items": {"type": "string"}},
            "o": {},
        },
        "additionalProperties": {"type": "integer"},
    }
    format = {"type": "json_schema", "json_schema": schema, "excludes": ["ab", "<|"]}
    pieces = ['"s":', '"e":', '"a":', '"o":', '"aab":', '"w":', ",", "{", "}", "[", "]", '"x"', '"xaby"', '"ab"', '"a"',
              '"b"', "3", '"a\\"b"', '"<|"', '"<"']  # fmt: skip
    mine, other = Ours(format, whitespace="compact"), theirs(format)
    seed = random.Random(0)
    # XGrammar has members that are not declared behind all others.
    orders = [text for text in (mine.alive(pieces, seed) for _ in range(some(2000, 8))) if '"w":' not in text]
    accepted = 0
    for text in orders:
        for found in (text, f"{text}}}", text + seed.choice(pieces)):
            if '"w":' not in found:
                assert mine.accepts(found) == other(found.encode()), found
                accepted += mine.accepts(found)
    assert accepted
    for text, expected in {'{"s":"ab"}': False, '{"o":{"k":["xab"]}}': False, '{"o":{"ab":1}}': False,
                           '{"a":["a","b"]}': True, '{"aab":3}': False}.items():  # fmt: skip
        assert mine.accepts(text) is other(text.encode()) is expected
