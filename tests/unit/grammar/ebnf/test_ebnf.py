"""XGrammar's EBNF: notation, options and macros, refusals with their places, and the language beside XGrammar's own."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import guided
from guided.errors import GrammarError, GuidedError, LimitError, UnsupportedError
from guided.grammar.ebnf import ebnf
from guided.grammar.ebnf.reader import MAX_NESTING
from tests.amounts import each
from tests.engines import assert_same_masks, xgrammar_matchers
from tests.vocabularies import of_bytes

JSON = r"""
root ::= basic_object | basic_array   # a value

basic_any ::= "true" | "null" | basic_string |
  basic_object
  | basic_array
basic_string ::= "\"" ([^"\\\r\n] | "\\" ["\\/bfnrt])* "\""
basic_array ::= "[" (basic_any ("," basic_any)*)? "]"
basic_object ::= "{" "}" | "{" basic_string ":" basic_any ("," basic_string ":" basic_any){0,-1} "}"
"""
TAGS = """
root ::= body "</a>"
body ::= TagDispatch(("<t>", tool), ("<u>", other), excludes=("</a>",))
tool ::= "1"+ ;
other ::= [x-z]
""".replace(" ;", "")

LANGUAGES = [
    (JSON, ['{"a":[true,"\\n"],"b":{}}', "[]"], ["true", '{"a"}', '{"a":1}']),
    ('a.b-c ::= "x"\nroot ::=\n  a.b-c{2}', ["xx"], ["x", "xxx"]),
    ('root ::= ("a" | ()) "b"', ["ab", "b"], ["a"]),
    ("root ::= [a-]+ [^] [^\\]x]", ["a-\nb", "a-zz"], ["a-z]", "-"]),
    ('root ::= "\\x41\\u00e9\\U0001F600\\e\\/\\\'\\?"', ["A\u00e9\U0001f600\x1b/'?"], ["A"]),
    ('root ::= "a" | []', ["a"], ["", "b"]),
    ('root ::= a "b"\na ::= "x" (="c")', ["xb"], ["xc", "xcb"]),
    ('root ::= root "a" | "b"', ["b", "baa"], ["ab"]),
    ('root ::= "<" a ">"\na[lazy] ::= [a-z]* "end"', ["<end>", "<xend>"], ["<endend>", "<x>"]),
    ('root ::= a "!"\na[max_chars=3] ::= [a-z]*', ["!", "abc!"], ["abcd!"]),
    ('root ::= a "!"\na[max_chars=3] ::= ("\u00e9" "b")*', ["!", "\u00e9b\u00e9b!"], ["\u00e9b\u00e9b\u00e9b!"]),
    ('root ::= a "!"\na[max_chars=0] ::= [a-z]+', ["a!"], ["!", "ab!"]),
    ('root ::= a\na[capture="x", temperature=0.7] ::= [0-9]', ["1"], ["12"]),
    ('root ::= Regex("^\\\\d+\\\\u{41}.$")', ["12A\n"], ["\u0663A\n", "A\n"]),
    ('root ::= Regex("a.", flags="i")', ["Ab"], ["A\n"]),
    ('root ::= "\\"" Regex(".*", json_string=true) "\\""', ['"a\u00e9"'], ['"a""', '"\\"', '"\n"']),
    ('root ::= Substring("ab", "cd", "e")', ["", "abcd", "cde", "e"], ["bc", "abe"]),
    (TAGS, ["</a>", "x<<t>11y<u>z</a>", "<t</a>"], ["<t></a>", "</a></a>", "<u>a</a>"]),
    ('root ::= TagDispatch(("ab", x), loop_after_dispatch=false)\nx ::= "1"', ["", "za", "zab1"], ["ab", "ab1z"]),
]


@pytest.mark.parametrize(("text", "yes", "no"), LANGUAGES)
def test_it_holds_what_xgrammar_says(text: str, yes: list[str], no: list[str]) -> None:
    constraint = guided.compile(ebnf(text), of_bytes())
    for word, wanted in [*((word, True) for word in yes), *((word, False) for word in no)]:
        state = constraint.advance_bytes(constraint.start, word.encode())
        assert (state != 0 and constraint.is_accepting(state)) is wanted, word


@pytest.mark.parametrize(
    ("text", "error", "place", "words"),
    [
        ('root ::= "a" b', GrammarError, "line 1, column 14", "'b' is not defined"),
        ('root ::= "a"\nroot ::= "b"', GrammarError, "line 2, column 1", "twice"),
        ('root ::= "a" other ::= "b"', GrammarError, "line 1, column 14", "new line"),
        ('root ::= "a', GrammarError, "line 1, column 10", "never closed"),
        ("root ::= [a\n]", GrammarError, "line 1, column 10", "never closed"),
        ("root ::= [\\d]", GrammarError, "line 1, column 11", "\\d"),
        ("root ::= [b-a]", GrammarError, "line 1, column 10", "wrong order"),
        ('root ::= "a"{2,1}', GrammarError, "line 1, column 13", "wrong order"),
        ('root ::= "a"{,2}', GrammarError, "line 1, column 14", "expected a number"),
        ('root ::= "a"**', GrammarError, "line 1, column 14", "expected a string"),
        ('root ::= | "a"', GrammarError, "line 1, column 10", "expected a string"),
        ('root ::= "\\q"', GrammarError, "line 1, column 11", "unknown escape"),
        ('root ::= "\\uD800"', GrammarError, "line 1, column 11", "no such character"),
        ("root := x", GrammarError, "line 1, column 6", "unexpected ':'"),
        ('root[lazy, fast] ::= "a"', GrammarError, "line 1, column 1", "'fast'"),
        ('root[max_tokens=0] ::= "a"', UnsupportedError, "line 1, column 1", "begins before it"),
        ('root[max_tokens=3] ::= "a" root | "b"', UnsupportedError, "line 1, column 1", "not regular"),
        ('root[max_tokens=9] ::= a\na[max_tokens=2] ::= "b"*', UnsupportedError, "line 1, column 1", "names another"),
        ('root[lazy] ::= "a" root | "b"', UnsupportedError, "line 1, column 1", "not regular"),
        ('root[max_chars=9] ::= a\na[max_chars=2] ::= "b"*', UnsupportedError, "line 1, column 1", "names another"),
        ('root ::= Regex("a$b")', UnsupportedError, "line 1, column 10", "offset 1"),
        ('root ::= Regex("(?=a)a")', UnsupportedError, "line 1, column 10", "offset 0"),
        ('root ::= Regex("(a)\\\\1")', UnsupportedError, "line 1, column 10", "\\1"),
        ('root ::= Regex("a", mode="x")', GrammarError, "line 1, column 10", "'mode'"),
        ('root ::= Token("a")', GrammarError, "line 1, column 10", "ids"),
        ('root ::= TokenTagDispatch((3, x))\nx ::= "1"', UnsupportedError, "line 1, column 10", "belong to one tokenizer"),
        ("root ::= Token(3)", UnsupportedError, "line 1, column 10", "belong to one tokenizer"),
        ("root ::= ExcludeToken(3)", UnsupportedError, "line 1, column 10", "depends on the tokenizer"),
        ('root ::= TagDispatch(("a", x), ("ab", x))\nx ::= "1"', UnsupportedError, "line 1, column 10", "contains"),
        ('root ::= TagDispatch(("a", y))', GrammarError, "line 1, column 28", "'y' is not defined"),
        (f'root ::= {"(" * (MAX_NESTING + 1)}"a"', LimitError, "line 1, column 110", "deeper"),
    ],
)  # fmt: skip
def test_it_refuses_with_a_place(text: str, error: type[GuidedError], place: str, words: str) -> None:
    with pytest.raises(error) as caught:
        ebnf(text)
    assert (caught.value.where, words in caught.value.what, bool(caught.value.remedy)) == (place, True, True)


def test_what_changes_no_text_is_said() -> None:
    grammar = ebnf('root ::= a\na[capture="x", temperature=0.5] ::= "b" (="c")')
    assert [note.split(":")[0] for note in grammar.notes] == ["rule a"] * 3


def test_special_tokens_by_id() -> None:
    vocabulary = guided.Vocabulary.from_tokens([b"a", None, None], eos_ids=[2], special_tokens={"<call>": 1, "</s>": 2})
    grammar = ebnf('root ::= Token(1) "a"', special_tokens=vocabulary.special_tokens)
    constraint = guided.compile(pickle.loads(pickle.dumps(grammar)), vocabulary)
    assert grammar.special_tokens == ("<call>",)
    assert constraint.advance(constraint.start, 0) == 0
    assert constraint.is_accepting(constraint.advance(constraint.advance(constraint.start, 1), 0))


def test_text_between_special_tokens() -> None:
    special = {"<call>": 256, "<end>": 257, "</s>": 258}
    tokens = [*(bytes([byte]) for byte in range(256)), None, None, None]
    vocabulary = guided.Vocabulary.from_tokens(tokens, eos_ids=[258], special_tokens=special)
    loop = 'root ::= TokenTagDispatch((256, x), excludes=(257,))\nx ::= "1"'
    texts = [
        (ebnf(loop, special_tokens=special), [b"a", 256, b"1b", 256, b"1"], [256, b"b"]),
        (
            ebnf(loop.replace("excl", "loop_after_dispatch=false, excl"), special_tokens=special),
            [b"a", 256, b"1"],
            [256, b"1b"],
        ),
        (
            ebnf("root ::= Token(256) ExcludeToken(257)* Token(257)", special_tokens=special),
            [256, b"ab", 257],
            [256, 257, b"a"],
        ),
        (guided.gbnf("root ::= <call> (!<end>)* <end>", special_tokens=special), [256, b"ab", 257], [256, 256]),
        (guided.gbnf('root ::= <[256]> !<[257]>* "."', special_tokens=special), [256, b"ab."], [257]),
    ]
    for grammar, yes, no in texts:
        assert "no special token" in " ".join(grammar.notes)
        constraint = guided.compile(grammar, vocabulary)
        for parts, wanted in ((yes, True), (no, False)):
            state = constraint.start
            for part in parts:
                for token in part if isinstance(part, bytes) else [part]:
                    state = state and constraint.advance(state, token)
            assert (state != 0 and constraint.is_accepting(state)) is wanted, (grammar, parts)


def test_a_long_row_of_texts_is_cut_into_terminals() -> None:
    text = "root ::= " + " ".join(f'"{index}," [a-b]' for index in range(300))
    constraint = guided.compile(ebnf(text), of_bytes())
    assert constraint.shortest_text(constraint.start) == b"".join(b"%d,a" % index for index in range(300))


@pytest.mark.parametrize("text", each([text for text, _, _ in LANGUAGES], 2))
def test_masks_are_xgrammars(text: str) -> None:
    xgrammar: Any = pytest.importorskip("xgrammar")
    assert_same_masks(ebnf(text), xgrammar_matchers(xgrammar.Grammar.from_ebnf(text)), text)
