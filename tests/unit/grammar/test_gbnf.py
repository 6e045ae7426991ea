"""GBNF: notation, errors with their places, and the language against a matcher that folds nothing."""

from __future__ import annotations

import pickle
import random
import re

import pytest

from guided.errors import GrammarError, GuidedError, LimitError, UnsupportedError
from guided.grammar.gbnf import gbnf
from guided.grammar.gbnf_syntax import MAX_NESTING, read_gbnf
from guided.grammar.ir import Reference, Terminal
from guided.grammar.pieces import Class, Either, Name, Piece, Repeated, Row, Text
from tests.amounts import mostly_slow
from tests.twin.earley import accepts

ARITHMETIC = """
root  ::= (expr "=" ws term "\\n")+   # one equation a line
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \\t\\n]*
"""
JSON = r"""
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws

# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}
"""


@pytest.mark.parametrize(
    ("grammar", "yes", "no"),
    [
        (ARITHMETIC, ["a=1\n", "(a+b2)*3 = 4\n\n\n", "a=b\n1 +1=2\n"], ["a=1", "a=", "A=1\n", "", "()=1\n"]),
        (JSON, ["{}", '{"a": [1, -2.5e3, "\\u00e9\\n", {}], "b": null} '], ["[]", '{"a"}', '{"a":01}', '{"a":"\t"}']),
        ('root ::= "a"{3}', ["aaa"], ["aa", "aaaa"]),
        ('root ::= "ab"{1,2} "c"{2,} "d"{,2}', ["abcc", "ababcccdd"], ["cc", "abc", "abccddd", "aabcc"]),
        ('root ::= "a"**', ["", "aaa"], ["b"]),
        ('root ::= ("a" "b"?)+ | [^a-z]', ["a", "abaa", "é", "\n", "\U0001f600"], ["b", "é\n", ""]),
        ('root ::= "\\x41\\u00e9\\U0001F600\\t\\"\\\\"', ['Aé\U0001f600\t"\\'], ["A"]),
        ("root ::= [\\]\\[^-] [a\\-z] .", ["]-x", "^a\n", "-z\U0010ffff"], ["]bx", "b-x"]),
        ("root ::= [-+] [+-]", ["-+", "+-"], ["a+"]),
        ("root ::= x-1 Y_2\nx-1 ::= \"x\"\nY_2 ::= \"y\"", ["xy"], ["x"]),
        ('root ::= "a" |\n "b" | (\n "c"\n\n "d" )\r\n', ["a", "b", "cd"], ["c"]),
        ('root ::=\n\n "a"\n', ["a"], [""]),
        ('root ::= "" | "a"', ["", "a"], ["aa"]),
        ('root ::= root "a" | "b"', ["b", "baa"], ["a", ""]),
        ('root ::= "(" root ")" root | ', ["", "()", "(())()"], ["(", ")("]),
        ('root ::= "a" root "a" | "b" root "b" | "c"', ["c", "abcba"], ["abcab"]),
        ("ws ::= ([ \\n] ws)?\nroot ::= ws \"x\" ws", ["x", " \n x "], ["", "x y"]),
        ("l ::= l [0-9] | [1-9]\nroot ::= l", ["1", "102"], ["01", ""]),
        ('root ::= x{0}\nx ::= "x"', [""], ["x"]),
    ],
)  # fmt: skip
def test_language(grammar: str, yes: list[str], no: list[str]) -> None:
    compiled = gbnf(grammar)
    assert [text for text in yes if not accepts(compiled, text.encode())] == []
    assert [text for text in no if accepts(compiled, text.encode())] == []


def test_a_text_does_not_end_inside_a_character() -> None:
    assert not accepts(gbnf("root ::= .*"), "é".encode()[:1])


@pytest.mark.parametrize(
    ("grammar", "error", "where", "what"),
    [
        ('root ::= "a', GrammarError, "line 1, column 10", "never closed"),
        ("root ::= [a", GrammarError, "line 1, column 10", "never closed"),
        ('root ::= ("a"\n\n"b"', GrammarError, "line 1, column 10", "never closed"),
        ('root ::= "a")', GrammarError, "line 1, column 13", "unexpected ')'"),
        ('root ::= "a"\n"b"', GrammarError, "line 2, column 1", "begins with its name"),
        ('root = "a"', GrammarError, "line 1, column 6", "'::='"),
        ("root ::= *", GrammarError, "line 1, column 10", "nothing before"),
        ('root ::= "a" | +', GrammarError, "line 1, column 16", "nothing before"),
        ('root ::= "a"{', GrammarError, "line 1, column 13", "number"),
        ('root ::= "a"{2', GrammarError, "line 1, column 15", "'}'"),
        ('root ::= "a"{3,2}', GrammarError, "line 1, column 13", "order"),
        ('root ::= "\\q"', GrammarError, "line 1, column 11", "escape"),
        ('root ::= "\\x4"', GrammarError, "line 1, column 11", "2 hexadecimal"),
        ('root ::= "\\U00110000"', GrammarError, "line 1, column 11", "no such character"),
        ('root ::= "\\ud800"', GrammarError, "line 1, column 11", "surrogate"),
        ("root ::= [z-a]", GrammarError, "line 1, column 11", "order"),
        ("root ::= []", GrammarError, "line 1, column 10", "no characters"),
        ("root ::= [^\\x00-\\U0010FFFF]", GrammarError, "line 1, column 10", "no characters"),
        ('root ::= a\n# c\n  | b\na ::= "x"', GrammarError, "line 3, column 3", "begins with"),
        ('root ::= "x" |\n  b', GrammarError, "line 2, column 3", "'b' is not defined"),
        ('root ::= "a"\nroot ::= "b"', GrammarError, "line 2, column 1", "twice"),
        ('main ::= "a"', GrammarError, None, "no rule 'root'"),
        ("", GrammarError, None, "no rule 'root'"),
        ("root ::= <[12]> .*", UnsupportedError, "line 1, column 10", "ids of <[12]>"),
        ('root ::= "a" !<[12]>', UnsupportedError, "line 1, column 14", "every other token"),
        ("root ::= <think .*", GrammarError, "line 1, column 10", "never closed"),
        ('root ::= "a"{10000000000}', LimitError, "line 1, column 14", "too large"),
        ("root ::= " + "(" * 300 + '"a"' + ")" * 300, LimitError, "line 1, column 110", "nest"),
        ('root ::= "a"' + "*" * 9, LimitError, "line 1, column 17", "marks"),
    ],
)  # fmt: skip
def test_errors(grammar: str, error: type[GuidedError], where: str | None, what: str) -> None:
    with pytest.raises(error, match=re.escape(what)) as caught:
        gbnf(grammar)
    assert type(caught.value) is error
    assert caught.value.where == where
    assert caught.value.remedy


def test_the_deepest_nesting_is_read() -> None:
    assert accepts(gbnf("root ::= " + "(" * MAX_NESTING + '"a"' + ")" * MAX_NESTING), b"a")


def test_regular_rules_fold_into_terminals() -> None:
    grammar = gbnf(JSON)
    kinds = {rule.name: type(rule.body) for rule in grammar.rules}
    assert kinds["string"] is kinds["number"] is kinds["ws"] is Terminal
    assert kinds["object"] is not Terminal
    assert len(grammar.rules) == 7


def test_unused_rules_are_left_out_but_must_be_whole() -> None:
    assert len(gbnf('root ::= "a"\nspare ::= root').rules) == 1
    with pytest.raises(GrammarError, match="'x' is not defined"):
        gbnf('root ::= "a"\nspare ::= x')


def test_start_and_pickling_and_key() -> None:
    grammar = gbnf('a ::= "x" b\nb ::= "y" | "(" b ")"', start="b")
    again = pickle.loads(pickle.dumps(grammar))
    assert accepts(again, b"(y)")
    assert not accepts(again, b"xy")
    assert again.key == grammar.key != gbnf('a ::= "x" b\nb ::= "y" | "(" b ")"', start="a").key
    assert isinstance(gbnf('root ::= (r)\nr ::= "(" r ")" | "a"').rules[0].body, Reference)


class Matcher:
    """All ends of a match of a piece from a position, by trying everything; rules that recurse grow to a fixpoint."""

    def __init__(self, text: str, grammar: str) -> None:
        self.rules = read_gbnf(grammar)
        self.text = text
        self.known: dict[tuple[str, int], set[int]] = {}

    def accepts(self) -> bool:
        while True:
            before = {key: set(ends) for key, ends in self.known.items()}
            self.active: set[tuple[str, int]] = set()
            ends = self.ends(Name("root", 0), 0)
            if before == self.known:
                return len(self.text) in ends

    def ends(self, piece: Piece, at: int) -> set[int]:
        match piece:
            case Text(text):
                return {at + len(text)} if self.text.startswith(text, at) else set()
            case Class(ranges):
                return {at + 1} if at < len(self.text) and _inside(self.text[at], ranges) else set()
            case Name(name):
                key = (name, at)
                found = self.known.setdefault(key, set())
                if key not in self.active:
                    self.active.add(key)
                    found |= self.ends(self.rules[name].body, at)
                return set(found)
            case Row(parts):
                current = {at}
                for part in parts:
                    current = {end for start in current for end in self.ends(part, start)}
                return current
            case Either(options):
                return {end for option in options for end in self.ends(option, at)}
            case Repeated(body, low, high):
                current, result = {at}, {at} if low == 0 else set()
                for count in range(1, (high if high is not None else low + len(self.text) + 1) + 1):
                    current = {end for start in current for end in self.ends(body, start)}
                    if count >= low:
                        result |= current
                return result
        raise AssertionError(piece)


def _inside(character: str, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= ord(character) <= high for low, high in ranges)


def random_piece(rng: random.Random, names: list[str], depth: int) -> str:
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        return rng.choice(['"a"', '"b"', '"ab"', '""', "[ab]", "[^a]", "[b-cé]", ".", '"é"'])
    if kind < 0.5:
        return rng.choice(names)
    if kind < 0.75:
        return f"({random_body(rng, names, depth - 1)})"
    mark = rng.choice(["*", "+", "?", "{2}", "{1,2}", "{,2}", "{1,}"])
    return random_piece(rng, names, depth - 1) + mark


def random_body(rng: random.Random, names: list[str], depth: int) -> str:
    rows = [
        " ".join(random_piece(rng, names, depth) for _ in range(rng.randint(0, 3))) for _ in range(rng.randint(1, 3))
    ]
    return " | ".join(rows)


def random_grammar(rng: random.Random) -> str:
    names = ["root", "x", "y-1", "z_2"]
    return "\n".join(f"{name} ::= {random_body(rng, names, 2)} | {chr(34) * 2}" for name in names[1:]) + (
        f"\nroot ::= {random_body(rng, names, 2)} | x"
    )


@pytest.mark.parametrize("seed", mostly_slow(range(40), 13))
def test_random_grammars_against_trying_everything(seed: int) -> None:
    rng = random.Random(seed)
    source = random_grammar(rng)
    grammar = gbnf(source)
    for _ in range(12):
        text = "".join(rng.choice("aabbcé") for _ in range(rng.randint(0, 6)))
        assert accepts(grammar, text.encode()) == Matcher(text, source).accepts(), (source, text)


def test_garbage_raises_only_our_errors() -> None:
    rng = random.Random(7)
    raised = []
    for _ in range(3000):
        source = "".join(rng.choice(["root ::= ", *'"a[]()|{}1,\\\n#^-x*<']) for _ in range(rng.randint(0, 12)))
        try:
            gbnf("root ::= " + source)
        except GuidedError as error:
            raised.append(error)
    assert 100 < len(raised) < 2700
    assert all(error.remedy for error in raised)
