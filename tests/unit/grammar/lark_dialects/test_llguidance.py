"""llguidance's dialect of Lark: what texts mean, where its lexer matters, and the masks beside its own."""

from __future__ import annotations

import random
from typing import Any

import pytest

import guided
from guided.errors import GrammarError, GuidedError, LimitError, UnsupportedError
from tests.amounts import Refusals, each, some
from tests.engines import assert_same_masks, llguidance_matchers
from tests.vocabularies import of_bytes

TOOLS = r"""
start: ( f_foo | f_bar )* f_end
f_end: TEXT
TEXT: /(.|\n)*/
f_foo_hd[lazy]: TEXT "<f"
f_foo: f_foo_hd "=foo>" /[a-z]+/ "</f>"
f_bar_hd[lazy]: TEXT "<f"
f_bar: f_bar_hd "=bar>" /[0-9]+/ "</f>"
"""
PERMUTATIONS = """
start: all::0x0 ";"
all::_: "" %if is_ones([0:3])
   | "a" all::set_bit(0) %if bit_clear(0)
   | "b" all::set_bit(1) %if bit_clear(1)
   | "c" all::set_bit(2) %if bit_clear(2)
"""
COUNTS = """
start: list::0
list::_: "a" list::incr([0:2]) %if lt([0:2], 2)
   | ("b" | "c") list::incr([2:5]) %if and(le([2:5], 3), bit_count_le(_, 2))
   | ""
"""
LANGUAGES = [
    ('start: "a" | B "c"i\nB: "\\x41".."Z"', ["a", "Ac", "ZC"], ["b", "ac"]),
    ("start: A\nA: /[a-z \\n]*/ & ~/(?s:.*)\\n\\n(?s:.*)/", ["a\nb\n", ""], ["a\n\nb", "A"]),
    ("start: A & B | C\nA: /[ab]+/\nB: ~/b+/\nC: /c/".replace("start: A & B | C", "start: D\nD: A & B | C"),
     ["ab", "c"], ["bb", ""]),
    ('start: %regex {"substring_words": "one two, three"}', ["two, three", ""], ["wo", "one three"]),
    ("%import common.INT\n%ignore / +/\nstart: INT (\"+\" INT)*", ["1 + 22 +3", "1 "], [" 1", "1 2"]),
    ("%ignore / /\nstart: \"a\" \"b\"", ["ab", "a   b"], ["ab ", " ab"]),
    ("%llguidance {\"ignore_once\": true}\n%ignore / /\nstart: \"a\" \"b\"", ["ab", "a b"], ["a  b"]),
    ("%llguidance {\"allow_initial_skip\": true}\n%ignore / /\nstart: \"a\" \"b\"", [" ab"], ["ab "]),
    ('start: name "!"\nname[lazy]: /[a-z]+x/', ["ax!", "abx!"], ["axbx!", "x!"]),
    ('start[suffix="<end>", capture]: /.*/', ["<end>", "a<end>"], ["a<end>b<end>", "a"]),
    ('start: "k" v\nv[temperature=0.5, stop=""]: /[0-9]*/', ["k", "k12"], ["kx"]),
    ('start: a "x"?\na[max_tokens=0]: /b+/', ["", "x"], ["b"]),
    ('start: e\ne: "(" e ")" | /[0-9]+/ | e "*" e', ["(1*23)", "1*2*3"], ["(1", "1**2"]),
    ('start: (item "," | n ";")*\nitem[stop=","]: /[a-z]*/\nn: /[a-z]+[0-9]+/', ["ab,,c1;", ""], ["ab", "a,,b", "a;"]),
    ('start: "<" all "."\nall: (name) "<end>"\nname[stop="<end>"]: /[^\\n]*/', ["<a<end>."], ["<a<end><end>.", "<a."]),
    (r'start: /\w{2}/ " " /[^\d\s]+/', ["\u00e9\u0663 x"], ["\u00e9a 1"]),
    (PERMUTATIONS, ["abc;", "cab;"], ["ab;", "abb;", "abca;"]),
    (COUNTS, ["", "aacb", "cccc"], ["aaa", "ccccc"]),
    ('start: x::0xF0\nx::_: "a" x::decr([4:8]) %if not(is_zeros([4:8]))\n  | "b" y::bit_or(3) %if true\ny::_: "c" %if eq(_, 3)'
     '\n  | "d" y::clear_bit(4) %if bit_set(4) | "e" %if and(ge([0:2], 3), ne(_, 3))', ["a" * 15 + "bc", "bde"], ["bc", "abde"]),
    (TOOLS, ["", "x <", "a<f=foo>ab</f><f=bar>1</f>z"], ["<f", "<f=foo>1</f>", "a<f>"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "yes", "no"), LANGUAGES)
def test_it_holds_what_llguidance_says(text: str, yes: list[str], no: list[str]) -> None:
    constraint = guided.compile(guided.lark(text, dialect="llguidance"), of_bytes())
    for word, wanted in [*((word, True) for word in yes), *((word, False) for word in no)]:
        state = constraint.advance_bytes(constraint.start, word.encode())
        assert (state != 0 and constraint.is_accepting(state)) is wanted, word


@pytest.mark.parametrize("text", each([text for text, _, _ in LANGUAGES], 2))
def test_masks_are_llguidances(text: str) -> None:
    pytest.importorskip("llguidance")
    grammar: Any = guided.lark(text, dialect="llguidance")
    assert_same_masks(grammar, llguidance_matchers(text), text)


def test_a_directive_of_llguidances_says_whose_dialect_it_is() -> None:
    text = '%llguidance {}\nstart: %json {"type": "boolean"} "b"-rule\n'.replace('"b"-rule', '"."{1,2}')
    constraint = guided.compile(guided.lark(text), of_bytes())
    assert constraint.is_accepting(constraint.advance_bytes(constraint.start, b"true.."))


def test_what_is_not_read_is_said() -> None:
    text = 'start[capture]: %json {"type": "null", "x-guidance": {"whitespace_flexible": false}}'
    grammar = guided.lark(text, dialect="llguidance")
    assert [note.partition(" ")[0] for note in grammar.notes] == ["rule", "x-guidance"]


def test_tools_behind_a_special_token() -> None:
    text = """
        start: TEXT | fun
        TEXT: /[^{](.|\\n)*/
        fun: <|tool|> body <|end|>
        body: %json {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": false}
    """
    special = {"<|tool|>": 256, "<|end|>": 257, "</s>": 258}
    tokens = [*(bytes([byte]) for byte in range(256)), None, None, None]
    vocabulary = guided.Vocabulary.from_tokens(tokens, eos_ids=[258], special_tokens=special)
    constraint = guided.compile(guided.lark(text, dialect="llguidance"), vocabulary)
    state = constraint.start
    for token in (256, *b'{"a":12}', 257):
        state = constraint.advance(state, token)
    assert constraint.is_accepting(state)
    assert not constraint.advance_bytes(constraint.start, b"{")


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("start: /[a-z]+/ /[a-z0-9]/", "line 1, column 8", "may go on with what comes behind it"),
        ('start: ("if" | /[a-z]+/) /[a-z]/', "line 1, column 16", "may go on where it ends: 'if'"),
        ('start: A | B "bc"\nA: "ab"\nB: "a"', "line 1, column 8", "may go on where it ends: B"),
        ("start: (a | T)+\na[lazy]: /[^E]*/ \"END\"\nT: /[^x]+/", "line 1, column 13", "may go on with"),
        ('start: "x" l | T "y"\nl[lazy]: "a"\nT: /x[a-z]*/', "line 1, column 16", "may go on where it ends"),
        ('start: %json {"type": "number"} /[0-9]/', "line 1, column 8", "of a grammar inside"),
        ('start: %json {"type": "object"} | /[{]x/', "line 1, column 8", "begin with the same byte"),
        ('start: a "x"\na[stop=""]: /[b]*/', "line 2, column 1", "something comes behind it"),
    ],
)  # fmt: skip
def test_it_refuses_where_the_lexer_matters(text: str, place: str, words: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        guided.lark(text, dialect="llguidance")
    assert (caught.value.where, words in caught.value.what, bool(caught.value.remedy)) == (place, True, True)


@pytest.mark.parametrize(
    ("text", "error", "place", "words"),
    [
        ('start: "a" b', GrammarError, "line 1, column 12", "'b' is not defined"),
        ("start: a\na[max_tokens=3]: b\nb: /x/", GrammarError, "line 2, column 18", "stands in a terminal"),
        ("start: a\na[stop=\"x\"]: /b/", UnsupportedError, "line 1, column 8", "takes back"),
        ("start: a \"x\"?\na[stop=\"x\"]: /b/", UnsupportedError, "line 1, column 8", "takes back"),
        ("start: a \"x\"\na[stop=/x/]: /b/", UnsupportedError, "line 1, column 8", "takes back"),
        ("%ignore / /\nstart: a \"x\"\na[stop=\"x\"]: /b/", UnsupportedError, "line 3, column 1", "takes back"),
        ("start[stop=\"x\"]: /b/", UnsupportedError, "line 1, column 1", "takes back"),
        ("start: a\na[max_chars=3]: /x/", GrammarError, "line 2, column 1", "no attribute"),
        ("start: /a(?=b)/", UnsupportedError, "line 1, column 8", "offset 1"),
        ("start: /a/x", UnsupportedError, "line 1, column 8", "the flag 'x'"),
        ("%grammar_options {}\nstart: /a/", UnsupportedError, "line 1, column 1", "%grammar_options"),
        ('%llguidance {"allow_invalid_utf8": true}\nstart: /a/', UnsupportedError, "line 1, column 1", "option"),
        ("start: a\na::_: /x/", GrammarError, "line 1, column 8", "needs a parameter"),
        ("start: a::1\na: /x/", GrammarError, "line 1, column 8", "has no parameter"),
        ("start: a::_\na::_: /x/", GrammarError, "line 1, column 8", "to pass on"),
        ("start: /x/ %if true", GrammarError, "line 1, column 8", "without a parameter"),
        ("start: a::twice(2)\na::_: /x/", GrammarError, "line 1, column 11", "'twice'"),
        ("start: a::0\na::_: /x/ %if odd(_)", GrammarError, "line 2, column 15", "'odd'"),
        ("start: a::0\na::_: /x/ %if lt([3:3], 1)", GrammarError, "line 2, column 18", "wrong order"),
        ("start: a::0\na::_: /x/ %if bit_set(64)", GrammarError, "line 2, column 23", "greater than 63"),
        ("start: a::0\na::_: \"x\" a::incr(_) | \"y\"", LimitError, "line 2, column 1", "2000 values"),
        ("start: a::0\na::_[lazy]: /x/", UnsupportedError, "line 2, column 1", "attributes"),
        ("start: <[^3]>", UnsupportedError, "line 1, column 8", "tokens of text"),
        ('start: %regex {"type": "number"}', UnsupportedError, "line 1, column 8", "%regex"),
    ],
)  # fmt: skip
def test_it_refuses_with_a_place(text: str, error: type[GuidedError], place: str, words: str) -> None:
    with pytest.raises(error) as caught:
        guided.lark(text, dialect="llguidance")
    assert (caught.value.where, words in caught.value.what, bool(caught.value.remedy)) == (place, True, True)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ('start: l{1,2} ("c" | "a")\nl[suffix="c"]: /[abd]*/', "line 1, column 16", "in some places"),
        ('start: ("c")* "c"\n%ignore " "', "line 1, column 15", "may end the text"),
        ('start: "x" (%json {"type": "null"} | "y") "z"\n%ignore " "', None, "may come where a lexeme may too"),
    ],
)
def test_it_refuses_what_depends_on_the_text_before(text: str, place: str | None, words: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        guided.lark(text, dialect="llguidance")
    assert (caught.value.where, words in caught.value.what) == (place, True)


@pytest.mark.parametrize("part", range(3))
def test_random_grammars_have_llguidances_masks(part: int) -> None:
    """Small grammars of overlapping lexemes, some lazy, some with ignored text: those that are not refused.

    No lazy lexeme is a single byte: where one begins with the byte that ends a greedy one, llguidance 1.9.1 stops.
    """
    pytest.importorskip("llguidance")
    seed = random.Random(part)
    with Refusals(most=0.6) as refusals:
        for number in range(some(160, 16)):
            text = _grammar(seed)
            with refusals.trial(UnsupportedError):
                grammar = guided.lark(text, dialect="llguidance")
                assert_same_masks(grammar, llguidance_matchers(text), f"{part} {number}", texts=3, steps=12)


def _grammar(seed: random.Random) -> str:
    lexemes = ["/a+/", "/[ab]+/", "/b*c/", '"a"', '"ab"', '"b"', "/[^c]*c/", "/(ab)+/", "/b{1,2}/", "/[ad]b/", '";"']
    names = [*lexemes, "T", "r", "l"]

    def expression(depth: int) -> str:
        if depth == 0 or seed.random() < 0.4:
            return seed.choice(names)
        parts = [expression(depth - 1) for _ in range(seed.randint(1, 3))]
        shape = seed.choice(["{}", "({})", "({})*", "({})?", "({}){{1,2}}"])
        return shape.format(seed.choice([" ", " | "]).join(parts))

    lines = [f"start: ({expression(2)})", f"T: {seed.choice(['/[a-c]+/', '/c+d/', '/[bc]/ & ~/b/'])}"]
    names.remove("r")
    lines.append(f"r: ({expression(1)})")
    lines.append(seed.choice(["l[lazy]: /[ab]+d/", 'l[lazy]: /a+/ "d"', 'l[suffix=";;"]: /[abc;]*/']))
    return "\n".join([*lines, '%ignore " "'] if seed.random() < 0.3 else lines)
