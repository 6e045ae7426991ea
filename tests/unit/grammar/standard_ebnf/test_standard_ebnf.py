"""EBNF of ISO 14977 and of the W3C: the notations, errors with places, and the languages beside parsers of JSON and XML."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable
from xml.parsers import expat

import pytest

import guided
from guided.errors import GuidedError
from guided.testing import check_constraint
from tests.twin.earley import accepts
from tests.vocabularies import of_bytes

VOCABULARY = of_bytes()

# The productions of XML 1.0 that have exceptions, as they stand there, with few letters in names and two references.
XML = """
/* the element is always r: that tags fit each other is no matter of a grammar */
document ::= '<r>' content '</r>'
[43] content ::= CharData? ((Reference | CDSect | PI | Comment) CharData?)*
[2]  Char ::= #x9 | #xA | #xD | [#x20-#xD7FF] | [#xE000-#xFFFD] | [#x10000-#x10FFFF]
[3]  S ::= (#x20 | #x9 | #xD | #xA)+
[5]  Name ::= [A-Za-z_#xE9] [-A-Za-z0-9._#xE9]*
[14] CharData ::= [^<&#x0-#x8#xB#xC#xE-#x1F#xFFFE#xFFFF]*
                  - ([^<&]* ']]>' [^<&]*)
[15] Comment ::= '<!--' ((Char - '-') | ('-' (Char - '-')))* '-->'
[16] PI ::= '<?' PITarget (S (Char* - (Char* '?>' Char*)))? '?>'
[17] PITarget ::= Name - (('X' | 'x') ('M' | 'm') ('L' | 'l'))
[18] CDSect ::= CDStart CData CDEnd
[19] CDStart ::= '<![CDATA['
[20] CData ::= (Char* - (Char* ']]>' Char*))
[21] CDEnd ::= ']]>'
Reference ::= "&amp;" | "&lt;"
"""
XML_PARTS = [
    "<!--", "-->", "-", "--", "]]>", "]", "<![CDATA[", "<?", "?>", "?", "xml", "XmL", "x", "xmlx", "_p-1.2", " ", "\n",
    "&amp;", "&", "<", ">", "é", "\U0001f600", "\x01", "\ufffe", "<r>", "1",
]  # fmt: skip
XML_TEXTS = [
    "a<!-- b - c -->", "<?p q ? >?>", "<?xmlx?>", "<![CDATA[ ]] > & < ]]>", "]] >&amp;x", "<!----><?a?>", "<?p  ??>",
]  # fmt: skip

JSON = """
(* RFC 8259 (its (nested) "comment" says: don't skip) *)
json text = ws, value, ws;
value = "true" | 'false' / "null" ! object | array | string | number;
object = "{", ws, [member, {ws, ",", ws, member}], ws, "}";
member = string, ws, ":", ws, value;
array = "[", ws, (/ value, (: ws, ",", ws, value :) /), ws, "]".
string = '"', {plain | "\\", ('"' | "\\" | "/" | "b" | "f" | "n" | "r" | "t" | "u", 4 * hex digit)}, '"';
plain = ? U+0000 .. U+10FFFF ? - (? U+0000 .. U+001F ? | '"' | "\\");
number = ["-"], ("0" | digit - "0", {digit}), [".", {digit}-], [("e" | "E"), ["+" | "-"], {digit}-];
digit = "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9";
hex digit = digit | "a" | "b" | "c" | "d" | "e" | "f" | "A" | "B" | "C" | "D" | "E" | "F";
ws = {" " | ? U+0009 .. U+000A ? | ? U+000D ?};
"""
JSON_PARTS = [
    *'{}[]",:-+.eE0109 \n\t\\/',
    "\\u00e9",
    "\\u00G9",
    "true",
    "null",
    '"a"',
    "é",
    "\x1f",
    "1.5e-3",
    '"b":',
    "NaN",
]
JSON_TEXTS = ['{"a": [1, -2.5e+3, "\\u00e9\\n"], "b": null}', " [ ] ", '"é\\/\\\\"', "-0.10E05", '[{"x":{}},[[]],"",0]']


def random_json(rng: random.Random, depth: int = 2) -> object:
    """A value with texts, numbers and containers of each kind."""
    kind = rng.randint(0, 6 if depth else 4)
    if kind == 5:
        return [random_json(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    if kind == 6:
        return {rng.choice("ab\u00e9\n"): random_json(rng, depth - 1) for _ in range(rng.randint(0, 3))}
    return [None, True, rng.randint(-20, 300), rng.uniform(-1, 1) * 10.0 ** rng.randint(-20, 20), 'a"\u00e9\\\t'][kind]


def is_xml(text: str) -> bool:
    try:
        expat.ParserCreate("utf-8").Parse(f"<r>{text}</r>".encode(), True)
    except expat.ExpatError:
        return False
    return True


def is_json(text: str) -> bool:
    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        return False
    return True


def random_texts() -> list[str]:
    rng = random.Random(1)
    return [
        json.dumps(random_json(rng), indent=rng.choice([None, 1]), ensure_ascii=rng.random() < 0.5) for _ in range(500)
    ]


def mutations(seeds: list[str], parts: list[str], seed: int) -> list[str]:
    """Different texts: seeds with up to three places changed, and rows of parts."""
    rng = random.Random(seed)
    found = dict.fromkeys(seeds)
    while len(found) < 1500:
        text = rng.choice(seeds) if rng.random() < 0.7 else "".join(rng.choices(parts, k=rng.randint(1, 4)))
        for _ in range(rng.randint(0, 3)):
            at = rng.randint(0, len(text))
            text = text[:at] + rng.choice([*parts, ""]) + text[at + rng.randint(0, 2) :]
        found[text] = None
    return list(found)


@pytest.mark.parametrize(
    ("dialect", "grammar", "texts", "parts", "frame", "oracle"),
    [
        ("w3c", XML, XML_TEXTS, XML_PARTS, "<r>{}</r>", is_xml),
        ("iso", JSON, [*JSON_TEXTS, *random_texts()], JSON_PARTS, "{}", is_json),
    ],
    ids=["XML's productions and expat", "JSON and json"],
)
def test_the_format_s_own_parser_agrees(
    dialect: str, grammar: str, texts: list[str], parts: list[str], frame: str, oracle: Callable[[str], bool]
) -> None:
    constraint = guided.compile(guided.ebnf(grammar, dialect=dialect), VOCABULARY)
    verdicts = {}
    for text in mutations(texts, parts, 7):
        state = constraint.advance_bytes(constraint.start, frame.replace("{}", text).encode())
        verdicts[text] = bool(state) and constraint.is_accepting(state)
    assert [text for text, verdict in verdicts.items() if verdict != oracle(text)] == []
    assert sum(verdicts.values()) >= 200
    assert len(verdicts) - sum(verdicts.values()) >= 200


@pytest.mark.parametrize(("dialect", "grammar"), [("w3c", XML), ("iso", JSON)])
def test_contracts(dialect: str, grammar: str) -> None:
    read = guided.ebnf(grammar, dialect=dialect)
    check_constraint(guided.compile(read, VOCABULARY), walks=2, length=15, full_states=3, threads=0)
    assert pickle.loads(pickle.dumps(read)).key == read.key
    assert guided.ebnf(grammar, dialect=dialect, start="string" if dialect == "iso" else "PI").key != read.key


@pytest.mark.parametrize(
    ("dialect", "grammar", "yes", "no"),
    [
        ("iso", "a = {'x'}-;", ["x", "xxx"], [""]),
        ("iso", "a = {b}-; b = '(', [b], ')';", ["()", "(())()"], ["", "("]),
        ("iso", "a = 3 * 'ab', 0 * 'c';", ["ababab"], ["abab", "abababc"]),
        ("iso", "a = b - b c; b = {'x'}; bc = 'xx';", ["", "x", "xxx"], ["xx"]),
        ("iso", "a = (c - 'a') - 'b'; c = 'a' | 'b' | 'c' | ;", ["c", ""], ["a", "b"]),
        ("iso", "a = b; b = d - c; c = d - 'x'; d = 'x' | 'y';", ["x"], ["y", ""]),
        ("iso", "a = \"it's\", 'a \"b\"'.", ["it'sa \"b\""], ["its"]),
        ("iso", "a = '(* no comment *)' (* one, isn't it? *);", ["(* no comment *)"], [""]),
        ("iso", "a = | 'x', ;", ["", "x"], ["xx"]),
        ("iso", "a = ? U+0061 .. u ? - ? U+0062 ?;".replace(".. u", ".. U+0063"), ["a", "c"], ["b", "d"]),
        ("w3c", "a ::= b* 'x'?\nb::='b'|'c'", ["", "bcbx"], ["xb"]),
        ("w3c", "a ::= 'p' 'q' | 'r' ('s' | '')", ["pq", "r", "rs"], ["pr", "pqs"]),
        ("w3c", "a ::= [a-c#x64] [^#x5D\"] [-+] [[]", ["d[-[", "bz+["], ["e[-[", "a]-["]),
        ("w3c", 'a ::= ([a-z]+ - ("if" | "do")) " "?', ["i", "iff", "dot "], ["if", "do", "do ", ""]),
        ("w3c", "a ::= x-1 - 'b'\n [12a] x-1 ::= [4] | 'b'", ["4"], ["b", "12a"]),
        ("w3c", "a ::= [4]\r\n[5] b ::= 'x' [6]", ["4"], ["45"]),
        ("w3c", "\ufeffa ::= #x1F600 /* - 'x' */", ["\U0001f600"], ["x"]),
    ],
)  # fmt: skip
def test_language(dialect: str, grammar: str, yes: list[str], no: list[str]) -> None:
    read = guided.ebnf(grammar, dialect=dialect)
    assert [text for text in yes if not accepts(read, text.encode())] == []
    assert [text for text in no if accepts(read, text.encode())] == []


@pytest.mark.parametrize(
    ("dialect", "grammar", "error", "where", "what"),
    [
        ("iso", "a = 'x'", "GrammarError", "line 1, column 8", "';'"),
        ("iso", "a = 'x' 'y';", "GrammarError", "line 1, column 9", "';'"),
        ("iso", "a = 'x;", "GrammarError", "line 1, column 5", "never closed"),
        ("iso", "a = '';", "GrammarError", "line 1, column 5", "never closed"),
        ("iso", "a = (* x\n'y';", "GrammarError", "line 1, column 5", "comment"),
        ("iso", "a = ['x');", "GrammarError", "line 1, column 9", "']'"),
        ("iso", "a = 'x';\n'y' = a;", "GrammarError", "line 2, column 1", "begins"),
        ("iso", "a = 'x'; a = 'y';", "GrammarError", "line 1, column 10", "twice"),
        ("iso", "a = b c;", "GrammarError", "line 1, column 5", "'bc' is not defined"),
        ("iso", "a = 'x' - b;", "GrammarError", "line 1, column 11", "'b' is not defined"),
        ("iso", "a = ? any text ?;", "UnsupportedError", "line 1, column 5", "leaves open"),
        ("iso", "a = ? U+D800 ?;", "GrammarError", "line 1, column 5", "no characters"),
        ("iso", "a = 'b' | ['('], a, ')';\nc = a - 'b';", "UnsupportedError", "line 2, column 7", "comes back"),
        ("iso", "a = {b}- ; b = ['(', b, ')'];", "UnsupportedError", "line 1, column 8", "comes back"),
        ("iso", "a = " + "(" * 200 + "'x'" + ")" * 200 + ";", "LimitError", "line 1, column 105", "nest"),
        ("iso", "a = 99999999999 * 'x';", "LimitError", "line 1, column 5", "too large"),
        ("iso", "a = '\udc80';", "GrammarError", "line 1, column 6", "no character"),
        ("w3c", "a ::= [\udc80b]", "GrammarError", "line 1, column 8", "no character"),
        ("iso", "", "GrammarError", None, "no rule"),
        ("w3c", "a ::= 'x' 'y' - 'z'", "GrammarError", "line 1, column 15", "parentheses|bracketed"),
        ("w3c", "a ::= 'x' - 'z' 'y'", "GrammarError", "line 1, column 17", "bracketed"),
        ("w3c", "a ::= 'x' - 'y' - 'z'", "GrammarError", "line 1, column 17", "bracketed"),
        ("w3c", "a ::= ", "GrammarError", "line 1, column 7", "without anything"),
        ("w3c", "a ::= 'x' |\nb ::= 'y'", "GrammarError", "line 2, column 1", "without anything"),
        ("w3c", "a ::= 'x' [wfc: legal]", "UnsupportedError", "line 1, column 11", "prose"),
        ("w3c", "a ::= [z-a]", "GrammarError", "line 1, column 7", "order"),
        ("w3c", "a ::= [^#x0-#x10FFFF]", "GrammarError", "line 1, column 7", "no characters"),
        ("w3c", "a ::= #xD800", "GrammarError", "line 1, column 7", "no character"),
        ("w3c", "a ::= 'x", "GrammarError", "line 1, column 7", "never closed"),
        ("w3c", "a ::= ('x'", "GrammarError", "line 1, column 11", "'\\)'"),
        ("w3c", "a ::= * 'x'", "GrammarError", "line 1, column 7", "unexpected"),
        ("w3c", "'x'", "GrammarError", "line 1, column 1", "begins"),
        ("w3c", "a ::= b", "GrammarError", "line 1, column 7", "not defined"),
        ("other", "", "GrammarError", None, "no dialect"),
    ],
)  # fmt: skip
def test_refusals(dialect: str, grammar: str, error: str, where: str | None, what: str) -> None:
    with pytest.raises(GuidedError, match=what) as caught:
        guided.ebnf(grammar, dialect=dialect)
    assert type(caught.value).__name__ == error
    assert caught.value.where == where
    assert caught.value.remedy


def test_exceptions_against_sets_of_texts() -> None:
    """Exceptions inside each other, over all texts of up to three letters."""
    texts = ["", *(a + b + c for a in "xy" for b in ("", "x", "y") for c in ("", "x", "y"))]
    rng = random.Random(3)

    def made(depth: int) -> tuple[str, frozenset[str]]:
        chosen = frozenset(rng.sample(sorted(set(texts)), rng.randint(2, 6)))
        if not depth or rng.random() < 0.2:
            return "(" + " | ".join(f"'{text}'" if text else "" for text in sorted(chosen)) + ")", chosen
        left, right = made(depth - 1), made(depth - 1)
        if rng.random() < 0.6:
            return f"({left[0]} - {right[0]})", left[1] - right[1]
        return f"({left[0]} | {right[0]})", left[1] | right[1]

    tried = 0
    while tried < 30:
        written, expected = made(3)
        if expected:
            tried += 1
            read = guided.ebnf(f"a = {written};", dialect="iso")
            assert {text for text in texts if accepts(read, text.encode())} == expected, written


def test_special_tokens_are_none_of_the_standards() -> None:
    with pytest.raises(GuidedError, match="special tokens"):
        guided.ebnf("a = 'x';", dialect="iso", special_tokens={"<a>": 1})
