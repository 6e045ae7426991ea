"""`guided.lark`: which mode a grammar gets, what is refused and where, keywords, imports, keys."""

from __future__ import annotations

import os
import pickle
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from lark import Lark
from lark.exceptions import UnexpectedInput

from guided.errors import GrammarError, GuidedError, LimitError, UnsupportedError
from guided.grammar.ir import Lexing, Reference, Repetition, Sequence
from guided.grammar.lark import lark
from tests.amounts import each
from tests.twin.lexed import LexedRecogniser


def accepts(source: str, *texts: str, **options: object) -> list[bool]:
    recogniser = LexedRecogniser(lark(source, **options))
    return [recogniser.accepts(text) for text in texts]


def test_a_grammar_without_conflicts_is_contextual() -> None:
    grammar = lark('start: "a" x*\nx: "b" | "c" x')
    assert grammar.lexing is Lexing.CONTEXTUAL
    assert grammar.tables is not None
    assert grammar.notes == ()
    assert grammar.rules[grammar.start].name == "start"


@pytest.mark.parametrize(
    ("source", "conflict"),
    [
        ('start: "if" start ["else" start] | "x"', "shift/reduce conflict on ELSE in start"),
        ('start: a | b\na: "x"\nb: "x"', "reduce/reduce conflict on $END in a, b"),
        ('start: a | b\na.2: "x"\nb: "x"', "reduce/reduce conflict on $END in a, b"),
    ],
)
def test_a_grammar_with_conflicts_is_dynamic_and_says_so(source: str, conflict: str) -> None:
    grammar = lark(source)
    assert grammar.lexing is Lexing.DYNAMIC
    assert grammar.tables is None
    assert conflict in grammar.notes[0]
    with pytest.raises(UnsupportedError, match=re.escape(conflict)):
        lark(source, lexing=Lexing.CONTEXTUAL)


def test_the_modes_differ_as_in_lark() -> None:
    source = 'start: NAME "=" e\ne: NAME | "not" NAME\nNAME: /[a-z]+/\n%ignore " "'
    assert accepts(source, "a=not b", "not=a", "a=notb", "a=nota b") == [True, True, True, False]
    assert accepts(source, "a=not b", "not=a", "a=notb", lexing=Lexing.DYNAMIC) == [True, True, True]
    assert accepts('start: "a" B\nB: /[ab]+/', "ab", "aab") == [True, True]
    assert accepts("start: A B\nA: /a+/\nB: /[ab]/", "aab", "aaa", "ab") == [True, False, True]


def test_keywords() -> None:
    source = 'start: (NAME | "if" | "IN"i ":")+\nNAME: /[a-z]+/i\n%ignore " "'
    assert accepts(source, "if x", "iff", "In", "in:", "iN :", "if:") == [True, True, False, True, True, False]


def test_a_keyword_that_is_ignored_is_no_longer_ignored_inside_a_name() -> None:
    source = 'start: NAME+\nNAME: /[a-z]+/\n%ignore "um"\n%ignore " "'
    assert accepts(source, "a um b", "a umb") == [False, True]
    # The other way round: what is ignored is not looked up as a keyword, and the keyword is never tried.
    assert accepts('start: "a" "b"\n%ignore /[a-z]/', "ab", "a") == [False, False]


def test_left_recursion_becomes_a_loop() -> None:
    grammar = lark('start: item*\nitem: item "," "x" | "y"')
    bodies = {rule.name: rule.body for rule in grammar.rules}
    assert isinstance(bodies["item"], Sequence)
    assert isinstance(bodies["item"].parts[1], Repetition)
    star = next(body for name, body in bodies.items() if name.startswith("__"))
    assert isinstance(star, Repetition)
    assert isinstance(star.body, Reference)
    assert (star.low, star.high) == (1, None)


@pytest.mark.parametrize("mode", [Lexing.CONTEXTUAL, Lexing.DYNAMIC])
@pytest.mark.parametrize(
    ("source", "yes", "no"),
    [
        ('start: "a"~2..3 "b"~1', ["aab", "aaab"], ["ab", "aaaab", "aabb"]),
        ('start: "a"~55..60', ["a" * 55, "a" * 60], ["a" * 54, "a" * 61]),
        ('start: _sep{"x", ","}\n_sep{x, s}: x (s x)*', ["x", "x,x"], ["", "x,", ",x"]),
        ('start: a\na: "x"\n%extend a: "y"', ["x", "y"], ["xy"]),
        ('%import common.INT\n%override INT: "7"\nstart: INT', ["7"], ["8"]),
        ('?start: x -> one | "z" -> two\n!x: "a" ["b"]', ["a", "ab", "z"], ["b", ""]),
        ('start: A\nA: "a".."c" | "\\u00e9" | /\\d{2}/', ["b", "é", "42"], ["d", "4"]),
        ('start: A+\nA: "x" B?\nB: "y"i', ["xYx"], ["y"]),
        ("start: /a b # c\n/x", ["ab"], ["a b"]),
        ('start: "a" start | ', ["", "aaa"], ["b"]),
        ('start: "(" start ")" | "x"\nunused: "q" A\nA: "r"', ["((x))"], ["((x)"]),
        ('start: a b\na: "x"\nb: "y" b', [], ["", "x", "xy"]),
    ],
)  # fmt: skip
def test_language(source: str, yes: list[str], no: list[str], mode: Lexing) -> None:
    recogniser = LexedRecogniser(lark(source, lexing=mode))
    assert [text for text in yes if not recogniser.accepts(text)] == []
    assert [text for text in no if recogniser.accepts(text)] == []


@pytest.mark.parametrize(
    ("source", "error", "where", "what"),
    [
        ("start: a", GrammarError, "line 1, column 8", "'a' used but not defined"),
        ('start: "x" // a\n  | a "y"', GrammarError, "line 2, column 5", "'a' used but not defined"),
        ('start: "a', GrammarError, "line 1, column 8", "Unexpected input"),
        ('start: ("a"', GrammarError, "line 1, column 12", "unexpected end of the line"),
        ('a: "b"', GrammarError, None, "no rule 'start'"),
        ("", GrammarError, None, "no rule 'start'"),
        ("start: A\nA: /(/", GrammarError, "line 2, column 6", "missing )"),
        ("start: A\nA: /a*/", GrammarError, "line 1, column 8", "zero-width"),
        ('start: A\nA: "x" A', GrammarError, "line 1, column 8", "Recursion in terminal"),
        ('start: "a"\nstart: "b"', GrammarError, "line 1, column 1", "more than once"),
        ("start: t{A}\nA: \"a\"", GrammarError, "line 1, column 8", "Template 't' used but not defined"),
        ('start: "a"\n%import nowhere.X', GrammarError, "line 2, column 1", "cannot import from 'nowhere'"),
        ("%import common.NOPE\nstart: NOPE", GrammarError, "line 1, column 16", "'NOPE' used but not defined"),
        ('%ignore FOO\nstart: "a"', GrammarError, "line 1, column 9", "not defined"),
        ("start: A\n%declare A", UnsupportedError, "line 1, column 8", "declared"),
        ('start: "a"\n%declare B\n%ignore B', UnsupportedError, "line 2, column 10", "declared"),
        ("%declare foo\nstart: foo", UnsupportedError, "line 1, column 1", "%declare"),
        ("start: /(?P<x>a+)(?P=x)/", UnsupportedError, "offset 9 of (?P<x>a+)(?P=x)", "backreference"),
        ("start: A\nA: /(?P<x>a)|(?P<x>b)/", GrammarError, "line 2, column 18", "redefinition"),
        ("start: A B\nA: /(?P<x>a)/\nB: /(?P<x>b)/", UnsupportedError, None, "cannot join"),
        ("start: " + "(" * 3000 + '"a"' + ")" * 3000, LimitError, None, "too deeply"),
    ],
)  # fmt: skip
def test_errors(source: str, error: type[GuidedError], where: str | None, what: str) -> None:
    with pytest.raises(error, match=re.escape(what)) as caught:
        lark(source)
    assert type(caught.value) is error
    assert caught.value.where == where
    assert caught.value.remedy


def test_what_is_no_text_or_no_lexer_is_refused() -> None:
    with pytest.raises(GrammarError, match="is a str"):
        lark(b'start: "a"')  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="has a lexer"):
        lark('start: "a"', lexing=Lexing.NONE)


@pytest.mark.parametrize(
    "source",
    [
        'start: "a"\n%declare B',
        'start: "a"\nother: B\n%declare B',
        # Lark keeps rules that only name each other.
        'start: "a"\nb: B c\nc: b | "c"\n%declare B',
        '%import python (pass_stmt, suite)\nstart: "a"',
    ],
)
def test_declarations_that_start_does_not_reach_do_no_harm(source: str) -> None:
    assert Lark(source, parser="lalr").parse("a")
    assert accepts(source, "a", "b") == [True, False]


def test_a_malformed_pattern_is_not_blamed_on_a_declaration() -> None:
    with pytest.raises(GrammarError, match="malformed") as caught:
        lark('%declare B\nstart: "a" Y\nY: /(/')
    assert caught.value.where == "line 3, column 6"


@pytest.mark.parametrize(
    "pattern",
    [r"\p{Lu}", r"\pL\d", r"[\p{Greek}\P{L}_]", r"[^\p{Script=Latin}\s]", r"(?i:\p{Lu}i)", r"(?i:[h-j]\w)", r"\w+", r"\s",
     r"(?a:\w)+", r"a\b.\B.", r"(?i:\u0131\x49)", r"[\p{alnum}\-]{2,3}", r"\p{Lu}++\N{DIGIT ONE}", r"\p{^L}"],
)  # fmt: skip
@pytest.mark.parametrize("mode", each([Lexing.CONTEXTUAL, Lexing.DYNAMIC], 2))
def test_patterns_of_the_regex_package(pattern: str, mode: Lexing) -> None:
    source = f"start: WORD\nWORD: /{pattern}/"
    theirs = Lark(source, parser="lalr" if mode is Lexing.CONTEXTUAL else "earley", regex=True)
    recogniser = LexedRecogniser(lark(source, lexing=mode, regex=True))
    characters = "aIi\u0130\u0131Kk\u212a\u0138\u01c5\u03b1\u0301\u00b2_1\x1c \u00a0-\u4e00\U00010d40\ue000"
    some = random.Random(0)
    for text in (*characters, *("".join(some.choices(characters, k=some.randint(2, 3))) for _ in range(60))):
        try:
            theirs.parse(text)
            expected = True
        except UnexpectedInput:
            expected = False
        assert recogniser.accepts(text) is expected, (text, expected)


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("a{e}", "fuzzy"),
        ("[[:alpha:]]", "POSIX"),
        (r"\X", "X"),
        ("(?|a|b)", "group"),
        (r"(?i:(a|b)\1)", "backreference"),
    ],
)
def test_what_the_regex_package_alone_has_is_refused(pattern: str, what: str) -> None:
    with pytest.raises((GrammarError, UnsupportedError), match=what):
        lark(f"start: /{pattern}/", regex=True)


def test_properties_need_the_regex_package_as_in_lark() -> None:
    with pytest.raises(GrammarError, match="regex=True"):
        lark(r"start: /\p{Lu}/")
    plain, other = lark(r"start: /\w/"), lark(r"start: /\w/", regex=True)
    assert plain.key != other.key
    assert pickle.loads(pickle.dumps(other)).key == other.key


def test_imports_from_folders(tmp_path: Path) -> None:
    (tmp_path / "words.lark").write_text('pair: X "-" X\nX: "x"')
    source = "%import words.pair\nstart: pair"
    first = lark(source, import_paths=[tmp_path])
    assert LexedRecogniser(pickle.loads(pickle.dumps(first))).accepts("x-x")
    (tmp_path / "words.lark").write_text('pair: X "-" X\nX: "y"')
    assert lark(source, import_paths=[str(tmp_path)]).key != first.key


def test_keys_and_pickling() -> None:
    source = 'start: "a" start "b" |'
    grammar = lark(source)
    assert lark(source + " // comment").key == grammar.key
    assert lark(source, lexing=Lexing.DYNAMIC).key != grammar.key
    again = pickle.loads(pickle.dumps(grammar))
    assert again.key == grammar.key
    assert again.tables == grammar.tables or repr(again.tables) == repr(grammar.tables)


def test_tables_do_not_depend_on_hash_seeds() -> None:
    program = (
        "from guided.grammar.lark import lark\n"
        'g = lark(\'start: e\\ne: e "+" t | t\\nt: "(" e ")" | N | "f" N\\nN: /[a-z]+/\\n%ignore " "\')\n'
        "print(g.key, g.tables, [(t.name, t.keywords, sorted(t.absorbs)) for t in g.terminals])"
    )

    def run(seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        return subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        ).stdout

    first = run("1")
    assert "LalrTables" in first and run("2") == first


def test_importing_the_front_end_does_not_load_lark() -> None:
    program = "import sys, guided.grammar.lark\nassert not any(m.split('.')[0] == 'lark' for m in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
