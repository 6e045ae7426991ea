"""XGrammar's dialect of Lark: what texts mean, refusals with their places, and the masks beside XGrammar's own."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import guided
from guided.errors import GrammarError, GuidedError, LimitError, UnsupportedError
from guided.grammar.lark_dialects.reader import MAX_NESTING
from tests.amounts import each
from tests.engines import assert_same_masks, xgrammar_matchers
from tests.vocabularies import of_bytes

TOOLS = r"""
start: (foo | bar)* tail
tail: TEXT
foo_head[lazy]: TEXT "<f"
foo: foo_head "=foo>" /[a-z]+/ "</f>"
bar_head[suffix="<g>"]: TEXT
bar: bar_head INT "</g>"
INT: /[0-9]/+
TEXT: /(\n|.)*/
"""
LANGUAGES = [
    ('start: "a" | B "c"i\nB: "x".."z"', ["a", "xc", "zC"], ["b", "ac"]),
    ('start: item ("," item)*  // items\nitem: /[a-c]/ -> one\n    | "d"~2..3 | ["e"]', ["a,dd", ",e", "ddd"], ["d"]),
    ('?start: "a"{2} "b"{,2} _c{1,} "d"~2\n!_c: "c"', ["aacdd", "aabbccdd"], ["aadd", "abcdd"]),
    (r'start: "\u00e9\n\/" /a.b/ /c.d/s /\d\w/', ["\u00e9\n/axbc\nd1_"], ["\u00e9\n/a\nbc\nd1_"]),
    ("%import common (INT, WS)\n%ignore WS\n%ignore /#[a-z]*/\nstart: INT \"+\" INT", ["1+2", "1 + #a 2 "], [" 1+2"]),
    ('%grammar_options {"allow_initial_skip": true}\n%ignore " "\nstart: "a" B\nB: "b" "c"', [" a bc "], ["a b c"]),
    ('start: "<" name ">" /[a-z]*/\nname[lazy]: /[a-z]+/', ["<a>", "<a>bc"], ["<ab>"]),
    ('start: f "z"\nf[suffix=/!+/, capture]: /[a-z]*/', ["!z", "ab!z"], ["z", "ab!!z"]),
    ('start: f "z"\nf[stop=END]: /[a-z]*/\nEND: "x" | "yy"', ["xz", "abyyz"], ["axxz"]),
    ('start: a "!"\na[max_chars=2]: /[a-z]*/', ["!", "ab!"], ["abc!"]),
    ('start: "v" a\na[temperature=0.3]: /[a-z]/ "x"', ["vax"], ["vx"]),
    ('start: %regex {"substring_chunks": ["ab", "cd", "e"]}', ["", "abcd", "cde"], ["bc", "abe"]),
    ('start: "[" %lark {\n  %ignore " "\n  start: item "x"\n  item: "y"\n} "]"\nitem: "z"', ["[y x ]"], ["[ yx]"]),
    ('start: head\nhead[lazy]: TEXT "<end>"\nTEXT: /(.|\\n)*/', ["", "ab", "a<end>"], ["<end>a"]),
    (TOOLS, ["", "x<f", "<f=foo>ab</f>y<g>12</g>"], ["<f>", "<f=foo>12</f>", "<g>", "<f="]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "yes", "no"), LANGUAGES)
def test_it_holds_what_xgrammar_says(text: str, yes: list[str], no: list[str]) -> None:
    constraint = guided.compile(guided.lark(text, dialect="xgrammar"), of_bytes())
    for word, wanted in [*((word, True) for word in yes), *((word, False) for word in no)]:
        state = constraint.advance_bytes(constraint.start, word.encode())
        accepted = state != 0 and constraint.is_accepting(state)
        # XGrammar takes free text that ends in the beginning of a tool's text, and not one that ends inside a tool.
        assert accepted is wanted or (wanted and word == "x<f"), word


@pytest.mark.parametrize("text", each([text for text, _, _ in LANGUAGES], 2))
def test_masks_are_xgrammars(text: str) -> None:
    xgrammar: Any = pytest.importorskip("xgrammar")
    grammar = guided.lark(text, dialect="xgrammar")
    assert_same_masks(grammar, xgrammar_matchers(xgrammar.Grammar.from_lark(text)), text)


def test_schemas_and_grammars_inside() -> None:
    digits = guided.regex("[0-9]+")
    text = 'start: "v=" %json {"type": "integer", "minimum": 5} ";" @digits @words'
    grammars = {"digits": digits, "words": 'start: ("a" | "b")+'}
    grammar = pickle.loads(pickle.dumps(guided.lark(text, dialect="xgrammar", grammars=grammars)))
    constraint = guided.compile(grammar, of_bytes())
    for word, wanted in [("v=7;12ab", True), ("v=4;1a", False), ("v= 7;1a", False), ("v=7;a", False)]:
        state = constraint.advance_bytes(constraint.start, word.encode())
        assert (state != 0 and constraint.is_accepting(state)) is wanted, word


def test_special_tokens() -> None:
    vocabulary = guided.Vocabulary.from_tokens([b"a", None, None], eos_ids=[2], special_tokens={"<t>": 1, "</s>": 2})
    known = vocabulary.special_tokens
    for text in ("start: <t> /a/", "start: <[1]> /a/", "start: <[^1]>* <[1]> /a/"):
        constraint = guided.compile(guided.lark(text, dialect="xgrammar", special_tokens=known), vocabulary)
        assert constraint.is_accepting(constraint.advance(constraint.advance(constraint.start, 1), 0))


@pytest.mark.parametrize(
    ("text", "error", "place", "words"),
    [
        ('start: "a" b', GrammarError, "line 1, column 12", "'b' is not defined"),
        ('begin: "a"', GrammarError, None, "no rule 'start'"),
        ('start: "a', GrammarError, "line 1, column 8", "unexpected"),
        ('start: "\\q"', GrammarError, "line 1, column 8", "malformed string"),
        ('start: "a"\nstart: "b"', GrammarError, "line 2, column 1", "twice"),
        ("start: B\nB: c\nc: /x/", GrammarError, "line 2, column 4", "stands in a terminal"),
        ("start: B\nB: /x/ B", GrammarError, "line 2, column 8", "refers to itself"),
        ("start: B\nB: <t>", UnsupportedError, "line 2, column 4", "inside of a terminal"),
        ("start.2: /x/", UnsupportedError, "line 1, column 6", "priorities"),
        ("start: a{/x/}\na{b}: b", UnsupportedError, "line 1, column 9", "template"),
        ("start: a::1\na::_: /x/", UnsupportedError, "line 1, column 8", "parameter"),
        ("start: /x/ %if true", UnsupportedError, "line 1, column 8", "%if"),
        ("start: A & B\nA: /a/\nB: /b/", UnsupportedError, "line 1, column 8", "&, which XGrammar"),
        ("start: ~A\nA: /a/", UnsupportedError, "line 1, column 8", "~, which XGrammar"),
        ("%declare A\nstart: A", UnsupportedError, "line 1, column 1", "%declare"),
        ("%import lark.RULE\nstart: RULE", UnsupportedError, "line 1, column 9", "lark.RULE"),
        ("start: a\na[max_tokens=0]: /x/", UnsupportedError, "line 2, column 1", "may take none"),
        ('start: a\na[max_tokens=3]: "x" a | "y"', UnsupportedError, "line 2, column 1", "not regular"),
        ("start: a\na[max_tokens=3]: b\nb[max_tokens=2]: /x/", UnsupportedError, "line 2, column 1", "names another"),
        ("%ignore / /\nstart[max_tokens=3]: /x/", UnsupportedError, "line 2, column 1", "ignores text"),
        ("start: a\na[best=3]: /x/", GrammarError, "line 2, column 3", "'best'"),
        ("start: a\na[stop_capture=\"x\"]: /x/", GrammarError, "line 2, column 20", "alone"),
        ('start: a\na[suffix=""]: /(.|\\n)*/', GrammarError, "line 2, column 10", "suffix is empty"),
        ("start: /a^b/", UnsupportedError, "line 1, column 8", "offset 1"),
        ("start: <[^3]>", UnsupportedError, "line 1, column 8", "tokens of text"),
        ("start: @other", GrammarError, "line 1, column 8", "no grammar @other"),
        ('start: %json {"type": "strin"}', GrammarError, "line 1, column 8", "%json"),
        ('start: %json {"type"}', GrammarError, "line 1, column 21", "no JSON"),
        (f'start: {"(" * (MAX_NESTING + 1)}"a"', LimitError, "line 1, column 108", "deeper"),
    ],
)  # fmt: skip
def test_it_refuses_with_a_place(text: str, error: type[GuidedError], place: str | None, words: str) -> None:
    with pytest.raises(error) as caught:
        guided.lark(text, dialect="xgrammar")
    assert (caught.value.where, words in caught.value.what, bool(caught.value.remedy)) == (place, True, True)


def test_larks_own_arguments_are_not_for_dialects() -> None:
    with pytest.raises(UnsupportedError):
        guided.lark('start: "a"', dialect="xgrammar", regex=True)
    with pytest.raises(GrammarError, match="no dialect"):
        guided.lark('start: "a"', dialect="antlr")
